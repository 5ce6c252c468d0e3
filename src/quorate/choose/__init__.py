"""Settings and calibration without gold: annotators are hidden, and a consensus is judged by them."""
