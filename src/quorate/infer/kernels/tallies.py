"""Compiled kernels: sums over what was said, token by token. Events lie in the order of their tokens."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["cell_counts", "votes"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@njit(nogil=True, cache=True)
def cell_counts(event_start: Ints, event_cell: NDArray[np.int32], weight: Floats, posterior: Floats, G: int) -> Floats:
    """``[G, J]`` The posterior ``[N, J]`` summed over the events of each cell; without ``weight``, each counts once."""
    J = posterior.shape[1]
    out = np.zeros((G, J))
    for n in range(posterior.shape[0]):
        for e in range(event_start[n], event_start[n + 1]):
            w = weight[e] if weight.shape[0] else 1.0
            cell = event_cell[e]
            for j in range(J):
                out[cell, j] += w * posterior[n, j]
    return out


@njit(nogil=True, cache=True)
def votes(
    event_start: Ints, event_cell: NDArray[np.int32], weight: Floats, kind: Ints, begins: NDArray[np.bool_], T: int
) -> tuple[Floats, Floats, Floats]:
    """``[N]`` everybody's votes, ``[N]`` those for a span that begins, and ``[T, N]`` those for each type.

    ``kind`` and ``begins`` are of cells; a kind below 0 is no type.
    """
    N = event_start.shape[0] - 1
    everybody, opening, of_type = np.zeros(N), np.zeros(N), np.zeros((T, N))
    for n in range(N):
        for e in range(event_start[n], event_start[n + 1]):
            w = weight[e] if weight.shape[0] else 1.0
            cell = event_cell[e]
            everybody[n] += w
            if begins[cell]:
                opening[n] += w
            if kind[cell] >= 0:
                of_type[kind[cell], n] += w
    return everybody, opening, of_type
