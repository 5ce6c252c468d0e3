"""Compiled functions on arrays, and what they stand on: no objects, no strings."""
