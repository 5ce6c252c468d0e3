"""The parts of a model: truth, annotators, text; immutable, with counts in and posteriors out."""
