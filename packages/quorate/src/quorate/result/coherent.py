"""One set of probabilities for documents, spans and tokens: nothing is surer than what it contains.

Probabilities of sequences, spans and tokens are raised to exponents of their own, and a vote for spans knows nothing of
tokens: each is cut down to the least of what it is made of. What is known is certain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.model.engines.protocol import Decoded

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Probabilities(NamedTuple):
    """What is told of every document ``[D]``, of every span in the order of their starts, and of every token ``[N]``.

    p(document) ≤ p(span) ≤ p(token) for all that each contains, to the last bit.
    """

    documents: Floats
    spans: Floats
    tokens: Floats


def coherent(decoded: Decoded, doc_start: Integers, known: NDArray[np.int32] | None = None) -> Probabilities:
    """The probabilities of a consensus; ``known [N]`` are labels that were taken as certain (−1: none)."""
    tokens = decoded.token_probability
    if not len(tokens):
        tokens = decoded.posterior[np.arange(len(decoded.path)), decoded.path]
    tokens = np.minimum(tokens, 1.0)
    start = np.flatnonzero(decoded.span_end)
    end = decoded.span_end[start].astype(np.int64)
    spans, documents = decoded.span_probability[start], np.exp(decoded.log_probability)
    if known is not None:
        certain = np.concatenate([[0], np.cumsum(known == decoded.path)])
        tokens = np.where(known == decoded.path, 1.0, tokens)
        spans = np.where(_settled(start, end, doc_start, certain), 1.0, spans)
        documents = np.where(np.diff(certain[doc_start]) == np.diff(doc_start), 1.0, documents)
    spans = np.minimum(spans, _least(tokens, start, end))
    np.minimum.at(documents, np.repeat(np.arange(len(documents)), np.diff(doc_start)), tokens)
    np.minimum.at(documents, np.searchsorted(doc_start, start, side="right") - 1, spans)
    return Probabilities(documents, spans, tokens)


def _settled(start: Integers, end: Integers, doc_start: Integers, certain: Integers) -> NDArray[np.bool_]:
    """Whether the labels of a span and those beside it are all certain, so that it can be no other.

    ``certain [N + 1]`` counts them from the first token on.
    """
    document = np.searchsorted(doc_start, start, side="right") - 1
    low, high = np.maximum(start - 1, doc_start[document]), np.minimum(end + 1, doc_start[document + 1])
    return np.asarray(certain[high] - certain[low] == high - low)


def _least(tokens: Floats, start: Integers, end: Integers) -> Floats:
    """The least of every span's tokens; spans do not overlap."""
    if not len(start):
        return np.zeros(0)
    bounds = np.column_stack([start, end]).ravel()
    return np.asarray(np.minimum.reduceat(np.append(tokens, 1.0), bounds)[::2])
