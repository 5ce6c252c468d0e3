"""A compiled kernel that finds the distinct tokens: those of which the same was said, by the same people."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["distinct_tokens"]

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]


@njit(nogil=True, cache=True)
def same(event_start: Ints, event_cell: Ints32, known: Ints32, a: int, b: int) -> bool:
    """Whether two tokens have the same events, and the same known label or none."""
    if known.shape[0] and known[a] != known[b]:
        return False
    first, second = event_start[a], event_start[b]
    length = event_start[a + 1] - first
    if event_start[b + 1] - second != length:
        return False
    differ = 0
    for e in range(length):
        differ += event_cell[first + e] != event_cell[second + e]
    return differ == 0


@njit(nogil=True, cache=True)
def distinct_tokens(event_start: Ints, event_cell: Ints32, known: Ints32) -> tuple[Ints, Ints]:
    """The first token of each kind, in their order, and how many there are of each kind.

    A token's events must stand in a fixed order; ``known`` may be empty. The hash table is twice as large as the
    tokens are many, and what falls into the same place goes to the next free one.
    """
    N = event_start.shape[0] - 1
    size = 16
    while size < 2 * N:
        size *= 2
    table = np.full(size, -1, np.int64)
    first = np.empty(N, np.int64)
    times = np.zeros(N, np.int64)
    kinds = 0
    for t in range(N):
        code = np.uint64(known[t] + 1) if known.shape[0] else np.uint64(0)
        for e in range(event_start[t], event_start[t + 1]):
            code = (code ^ np.uint64(event_cell[e] + 1)) * np.uint64(0x9E3779B97F4A7C15)
            code ^= code >> np.uint64(29)
        place = np.int64(code & np.uint64(size - 1))
        while table[place] >= 0 and not same(event_start, event_cell, known, first[table[place]], t):
            place = (place + 1) & (size - 1)
        if table[place] < 0:
            table[place] = kinds
            first[kinds] = t
            kinds += 1
        times[table[place]] += 1
    return first[:kinds].copy(), times[:kinds].copy()
