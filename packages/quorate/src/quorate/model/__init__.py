"""Variational inference: parts that are immutable, one loop over them, and engines that run a pass."""
