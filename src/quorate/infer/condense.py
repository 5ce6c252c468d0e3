"""Tokens of which the same was said, done once: for models in which every token stands alone and words do not count.

On a crowd most tokens are ``O`` to the same few annotators, so that a corpus has several times fewer distinct tokens.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.encode import Encoded

__all__ = ["Condensed", "condense"]


class Condensed(NamedTuple):
    """The distinct tokens, as documents of one token each; their known labels; and how often each occurs."""

    encoded: Encoded
    known: NDArray[np.int32] | None
    times: NDArray[np.float64]


def condense(encoded: Encoded, known: NDArray[np.int32] | None) -> Condensed | None:
    """The distinct tokens of a corpus; ``None`` where labels have weights, or where it cannot be told for certain.

    Tokens are compared by two sums of random numbers, one for each event: equal in both means the same events, and a
    disagreement between the two sums gives up rather than mix tokens.
    """
    if encoded.event_weight is not None or not len(encoded.event_cell):
        return None
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 1 << 62, (2, len(encoded.cells.label)), dtype=np.uint64)
    sums = np.zeros((2, len(encoded.event_cell) + 1), np.uint64)
    np.cumsum(numbers[:, encoded.event_cell], axis=1, out=sums[:, 1:])  # wraps around, as hashes may
    hashes = sums[:, encoded.event_start[1:]] - sums[:, encoded.event_start[:-1]]
    if known is not None:
        hashes += (rng.integers(0, 1 << 62, (2, len(encoded.tagset.labels) + 1), dtype=np.uint64))[:, known]
    _, first, which, times = np.unique(hashes[0], return_index=True, return_inverse=True, return_counts=True)
    if not np.array_equal(hashes[1], hashes[1][first][which]):
        return None
    lengths = np.diff(encoded.event_start)[first]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    places = np.repeat(encoded.event_start[first] - starts[:-1], lengths) + np.arange(starts[-1])
    distinct = replace(
        encoded,
        doc_start=np.arange(len(first) + 1),
        word=encoded.word[first],
        event_start=starts,
        event_cell=encoded.event_cell[places],
    )
    return Condensed(distinct, None if known is None else known[first], times.astype(np.float64))
