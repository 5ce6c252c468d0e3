"""Output that is there whole or not at all: written beside its place, then renamed."""
