"""A sample whose totals are those of all documents: the cube method (Deville and Tillé, 2004).

Every document begins with its probability π_d of being drawn, and step by step these become 0 or 1. A step moves the
probabilities of a few documents along a line on which no total Σ z_d·p_d/π_d of a balancing number z changes, to one of
the line's two ends, where one of them is 0 or 1; to which end is by lot, such that every probability stays what it was
on average. At the end, when too few documents are left to hold all totals, those of the last numbers are let go one
after the other; the first, π itself, is held throughout, so that as many are drawn as were wanted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.native import native

__all__ = ["balanced_draw"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
    p = probability.astype(np.float64)
    decide(p, np.ascontiguousarray(share), np.ascontiguousarray(lots))
    return np.flatnonzero(p > 0.5)


@native
def decide(p: Floats, share: Floats, lots: Floats) -> None:
    """``p [D]`` comes as the probabilities and leaves as 0 or 1; ``share [D, q]`` is z_d / π_d, that of π first."""
