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

__all__ = ["Condensed", "condense"]


class Condensed(NamedTuple):
    """The distinct tokens, as documents of one token each; their known labels; and how often each occurs."""

    encoded: Crowd
    known: NDArray[np.int32] | None
    times: NDArray[np.float64]


def condense(encoded: Crowd, known: NDArray[np.int32] | None, *, by_previous: bool) -> Condensed | None:
    """The distinct tokens of a corpus; ``None`` where labels have weights, or nobody said anything.

    Unless annotators are looked at ``by_previous`` label, cells that differ in that alone become one.
    """
    if encoded.event_weight is not None or not len(encoded.event_cell):
        return None
    cells, event_cell = encoded.cells, encoded.event_cell
    if not by_previous:
        alike, merged = cells.without_previous()
        cells = alike._replace(n_previous=cells.n_previous)
        if merged is not None:
            event_cell = merged.astype(np.int32)[event_cell]
    none_known = np.zeros(0, np.int32)
    first, times = distinct_tokens(encoded.event_start, event_cell, none_known if known is None else known)
    starts, places = laid_end_to_end(encoded.event_start[first], np.diff(encoded.event_start)[first])
    distinct = replace(
        encoded,
        doc_start=np.arange(len(first) + 1),
        word=encoded.word[first],
        event_start=starts,
        event_cell=event_cell[places],
        cells=cells,
    )
    return Condensed(distinct, None if known is None else known[first], times.astype(np.float64))
