"""Compiled kernels: sums over what was said, token by token. Events lie in the order of their tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.native import native

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Bools = NDArray[np.bool_]


def cell_counts(event_start: Ints, event_cell: Ints32, weight: Floats, posterior: Floats, G: int) -> Floats:
    """``[G, J]`` The posterior ``[N, J]`` summed over the events of each cell; without ``weight``, each counts once."""
    out = np.zeros((G, posterior.shape[1]))
    add_cell_counts(event_start, event_cell, weight, posterior, out)
    return out


@native
def add_cell_counts(event_start: Ints, event_cell: Ints32, weight: Floats, posterior: Floats, out: Floats) -> None:
    """The same, added to ``out`` ``[G, J]``."""


def votes(
    event_start: Ints, event_cell: Ints32, weight: Floats, kind: Ints, begins: Bools, T: int
) -> tuple[Floats, Floats, Floats]:
    """``[N]`` everybody's votes, ``[N]`` those for a span that begins, and ``[T, N]`` those for each type.

    ``kind`` and ``begins`` are of cells; a kind below 0 is no type.
    """
    N = len(event_start) - 1
    everybody, opening, of_type = np.zeros(N), np.zeros(N), np.zeros((T, N))
    add_votes(event_start, event_cell, weight, kind, begins, everybody, opening, of_type)
    return everybody, opening, of_type


@native
def add_votes(
    event_start: Ints,
    event_cell: Ints32,
    weight: Floats,
    kind: Ints,
    begins: Bools,
    everybody: Floats,
    opening: Floats,
    of_type: Floats,
) -> None:
    """The same, added to the last three."""
