"""Settings as types, the parts that are built from them, and what needs no loop: votes, and history as prior."""
