"""What to have labelled next, by whom, and when to stop."""
