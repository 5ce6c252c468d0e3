"""Estimators in scikit-learn's habits: BSC, votes, CRF-MA; updating, streaming, and methods by name."""
