"""Who labelled something in which document: pairs of document and annotator, as numbers.

A large corpus has many events: what is said of each is kept in short numbers, and pairs are looked up, not sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.encode.encoded import Encoded

__all__ = ["are_among", "document_of", "number_pairs", "pair_of_events", "seen_pairs"]

Integers = NDArray[np.int64]


def document_of(encoded: Encoded, token: NDArray[np.integer]) -> Integers:
    """The document of each token."""
    return np.asarray(np.searchsorted(encoded.doc_start, token, side="right") - 1)


def pair_of_events(encoded: Encoded) -> NDArray[np.integer]:
    """For every event one number for its document and annotator, document·K + annotator: ascending by document."""
    K, D = len(encoded.annotators), encoded.n_docs
    short = np.int32 if K * D < 1 << 31 else np.int64
    first = np.arange(D) * K
    pair: NDArray[Any] = np.repeat(first.astype(short), np.diff(encoded.event_start[encoded.doc_start]))
    pair += encoded.cells.annotator.astype(short)[encoded.event_cell]
    return pair


def seen_pairs(encoded: Encoded) -> tuple[Integers, Integers]:
    """Who labelled something in which document: documents, ascending, and annotators."""
    K = len(encoded.annotators)
    pair, end = pair_of_events(encoded), K * encoded.n_docs
    if _is_sparse(pair, end):
        return np.divmod(np.unique(pair).astype(np.int64), max(K, 1))
    return np.divmod(np.flatnonzero(_occurring(pair, end)), max(K, 1))


def number_pairs(encoded: Encoded) -> tuple[Integers, Integers, NDArray[np.integer]]:
    """The same pairs, and for every event the number of its pair among them."""
    K = len(encoded.annotators)
    pair, end = pair_of_events(encoded), K * encoded.n_docs
    if _is_sparse(pair, end):
        present, number = np.unique(pair, return_inverse=True)
        return *np.divmod(present.astype(np.int64), max(K, 1)), number
    occurs = _occurring(pair, end)
    rank = np.cumsum(occurs, dtype=pair.dtype) - 1
    return *np.divmod(np.flatnonzero(occurs), max(K, 1)), rank[pair]


def are_among(numbers: NDArray[np.integer], wanted: Integers, end: int) -> NDArray[np.bool_]:
    """Whether each of the numbers below ``end`` is among those wanted."""
    if _is_sparse(numbers, end):
        return np.isin(numbers, wanted)
    return np.asarray(_occurring(wanted, end)[numbers])


def _is_sparse(numbers: NDArray[np.integer], end: int) -> bool:
    """Whether a table of all numbers below ``end`` would be far larger than the numbers themselves."""
    return end > max(4 * len(numbers), 1 << 20)


def _occurring(numbers: NDArray[np.integer], end: int) -> NDArray[np.bool_]:
    occurs = np.zeros(end, np.bool_)
    occurs[numbers] = True
    return occurs
