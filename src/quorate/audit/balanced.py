"""A sample whose totals are those of all documents: the cube method (Deville and Tillé, 2004).

Every document begins with its probability π_d of being drawn, and step by step these become 0 or 1. A step moves the
probabilities of a few documents along a line on which no total Σ z_d·p_d/π_d of a balancing number z changes, to one of
the line's two ends, where one of them is 0 or 1; to which end is by lot, such that every probability stays what it was
on average. At the end, when too few documents are left to hold all totals, those of the last numbers are let go one
after the other; the first, π itself, is held throughout, so that as many are drawn as were wanted.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["balanced_draw"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_DECIDED = 1e-9  # from 0 or 1: rounding alone
_NOTHING = 1e-8  # of a pivot, where numbers are about 1


def balanced_draw(probability: Floats, numbers: Floats, lots: Floats) -> Integers:
    """The positions of documents drawn with these probabilities, in their order.

    ``numbers [D, q]`` are what is balanced, the most important first (none is nought throughout), and ``lots [D]``
    uniform. Documents that stand side by side exclude each other, so they should stand in an order by lot. The
    probabilities must add up to a whole number.

    >>> balanced_draw(np.full(4, 0.5), np.array([[1.0], [1.0], [5.0], [5.0]]), np.array([0.2, 0.7, 0.1, 0.9])).tolist()
    [1, 2]
    """
    scale = np.sqrt((numbers**2).mean(axis=0)) * probability[:, np.newaxis] / probability.mean()
    share = np.column_stack([np.ones(len(probability)), numbers / scale])
    return np.flatnonzero(_decided(probability, np.ascontiguousarray(share), lots) > 0.5)


@njit(nogil=True, cache=True)
def _decided(probability: Floats, share: Floats, lots: Floats) -> Floats:
    """``[D]`` Who is drawn, 0 or 1: ``share [D, q]`` is z_d / π_d, that of π itself first."""
    p = probability.copy()
    held = share.shape[1]
    open_ones = np.empty(held + 1, np.int64)
    n_open = following = step = 0
    while True:
        while n_open <= held and following < len(p):
            if _DECIDED < p[following] < 1 - _DECIDED:
                open_ones[n_open] = following
                n_open += 1
            following += 1
        held = min(held, n_open - 1)
        if held < 1:
            return p
        here = open_ones[: held + 1]
        line = _line_of_no_change(share[here, :held].T.copy())
        up = down = np.inf  # how far it goes to either side
        for i, d in enumerate(here):
            if line[i] > 0:
                up, down = min(up, (1 - p[d]) / line[i]), min(down, p[d] / line[i])
            elif line[i] < 0:
                up, down = min(up, -p[d] / line[i]), min(down, (p[d] - 1) / line[i])
        far = up if lots[step] * (up + down) < down else -down
        step += 1
        n_open = 0
        for i, d in enumerate(here):
            p[d] = min(max(p[d] + far * line[i], 0.0), 1.0)
            if _DECIDED < p[d] < 1 - _DECIDED:
                open_ones[n_open] = d
                n_open += 1


@njit(nogil=True, cache=True)
def _line_of_no_change(a: Floats) -> Floats:
    """``[q + 1]`` A direction u with a·u = 0, of ``a [q, q + 1]``: by elimination, the largest pivot first."""
    q, m = a.shape
    pivot, is_pivot = np.full(q, -1, np.int64), np.zeros(m, np.bool_)
    rank = 0
    while rank < q:
        largest, row, column = _NOTHING, -1, -1
        for i in range(rank, q):
            for j in range(m):
                if not is_pivot[j] and abs(a[i, j]) > largest:
                    largest, row, column = abs(a[i, j]), i, j
        if row < 0:
            break
        for j in range(m):
            a[rank, j], a[row, j] = a[row, j], a[rank, j]
        a[rank] /= a[rank, column]
        for i in range(q):
            if i != rank and a[i, column] != 0:
                a[i] -= a[i, column] * a[rank]
        pivot[rank], is_pivot[column] = column, True
        rank += 1
    line = np.zeros(m)
    free = np.flatnonzero(~is_pivot)[0]
    line[free] = 1.0
    for i in range(rank):
        line[pivot[i]] = -a[i, free]
    return line
