"""Compiled kernels: how well probabilities of the truth predict what somebody said, and what two marked alike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.native import native

__all__ = ["Marked", "add_readings", "marked_together"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Marked(NamedTuple):
    """Who saw which document, and which spans each marked.

    Pair p is annotator ``who[p]`` in ``document[p]``, ascending, with ``marks[p]`` spans; those of document d begin at
    ``first_pair[d]``, and annotator k has the pairs ``pair`` from ``first_own_pair[k]`` on. Span s was marked by
    ``marker`` from ``first_marker[s]`` on, and annotator k marked ``span`` from ``first_own_span[k]`` on.
    """

    document: Ints
    who: Ints
    first_pair: Ints
    pair: Ints
    first_own_pair: Ints
    marks: Floats
    marker: Ints
    first_marker: Ints
    span: Ints
    first_own_span: Ints


def marked_together(said: Marked, least: float) -> tuple[Ints, Ints, Floats, Floats]:
    """Every two annotators with at least so many spans where both looked: the mean of those, and how many both marked.

    It is the geometric mean of what one marked there and what the other did.
    """
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    n = find_together(said, least, *nothing)
    found = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.empty(n)
    find_together(said, least, *found)
    return found


@native
def find_together(said: Marked, least: float, one: Ints, other: Ints, mean: Floats, both: Floats) -> int:
    """:func:`marked_together`, while there is room; returns how many pairs of annotators there are."""


@native
def add_readings(
    posterior: Floats,
    token: Ints,
    label: NDArray[np.int32],
    low: int,
    high: int,
    matrix: Floats,
    logs: bool,
    right: Floats,
) -> float:
    """Adds to ``right [label, truth]`` how probable each truth is, now that items ``low`` to ``high`` were said.

    ``matrix [label, truth]`` is how often each label is said of a truth; while it is empty, nothing is known of that.
    Returns Σ ln of how likely what was said is, if ``logs``.
    """
