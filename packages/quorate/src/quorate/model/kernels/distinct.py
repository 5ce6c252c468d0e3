"""A compiled kernel that finds the distinct tokens: those of which the same was said, by the same people."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.native import native

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]


def distinct_tokens(event_start: Ints, event_cell: Ints32, known: Ints32) -> tuple[Ints, Ints]:
    """The first token of each kind, in their order, and how many there are of each kind.

    A token's events must stand in a fixed order; ``known`` may be empty.
    """
    N = len(event_start) - 1
    first, times = np.empty(N, np.int64), np.zeros(N, np.int64)
    kinds = find_distinct(event_start, event_cell, known, first, times)
    return first[:kinds].copy(), times[:kinds].copy()


@native
def find_distinct(event_start: Ints, event_cell: Ints32, known: Ints32, first: Ints, times: Ints) -> int:
    """The same, into the room that is given; returns how many kinds there are."""
