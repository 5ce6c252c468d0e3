"""What is given out: consensus, spans with confidence, calibration, annotators, figures."""
