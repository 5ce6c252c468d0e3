"""The live consensus: a process of its own that follows what is saved."""
