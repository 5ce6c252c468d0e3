"""Tokens of which the same was said, done once: for models in which every token stands alone and words do not count.

On a crowd most tokens are ``O`` to the same few annotators, so that a corpus has several times fewer distinct tokens.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.algebra import laid_end_to_end
from quorate.crowd.crowd import Crowd
from quorate.model.kernels.distinct import distinct_tokens


class Condensed(NamedTuple):
    """The distinct tokens, as documents of one token each, and how often each occurs."""

    crowd: Crowd
    times: NDArray[np.float64]


def condense(crowd: Crowd, *, by_previous: bool) -> Condensed | None:
    """The distinct tokens of a crowd; ``None`` where labels have weights, or nobody gave any.

    Unless annotators are looked at ``by_previous`` label, cells that differ in that alone become one.
    """
    if crowd.event_weight is not None or not len(crowd.event_cell):
        return None
    cells, event_cell = crowd.cells, crowd.event_cell
    if not by_previous:
        alike, merged = cells.without_previous()
        cells = alike._replace(n_previous=cells.n_previous)
        if merged is not None:
            event_cell = merged.astype(np.int32)[event_cell]
    known = np.zeros(0, np.int32) if crowd.known is None else crowd.known
    first, times = distinct_tokens(crowd.event_start, event_cell, known)
    starts, places = laid_end_to_end(crowd.event_start[first], np.diff(crowd.event_start)[first])
    distinct = replace(
        crowd,
        doc_start=np.arange(len(first) + 1),
        word=np.zeros(len(first), np.int32),  # the same whichever document comes first
        event_start=starts,
        event_cell=event_cell[places],
        cells=cells,
        known=None if crowd.known is None else crowd.known[first],
        slices=None,
    )
    return Condensed(distinct, times.astype(np.float64))
