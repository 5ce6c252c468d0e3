"""How things are kept: array files, corpora on disk, model files, logs of finished work."""
