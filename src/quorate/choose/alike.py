"""What annotators marked alike: for each pair, the cosine of their sets of spans, or of marked tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.choose.kernels import Marked, marked_together
from quorate.crowd.algebra import document_of, laid_end_to_end, marked_spans, seen_pairs
from quorate.crowd.crowd import Crowd

__all__ = ["ENOUGH", "Pairs", "in_common", "tokens_in_common"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ENOUGH = 40
"""Spans that two must have, on average, before anything is told of them."""
_MOST_TOKENS = 1 << 24  # marked ones that are looked at
_MOST_BY_CHANCE = 0.999


class Pairs(NamedTuple):
    """What two annotators marked, in documents that both saw, by type: the cosine, and the mean number of spans."""

    one: Integers
    other: Integers
    kind: Integers
    cosine: Floats
    spans: Floats

    def where(self, chosen: NDArray[np.bool_] | Integers) -> Pairs:
        """Some of the rows."""
        one, other, kind, cosine, spans = self
        return Pairs(one[chosen], other[chosen], kind[chosen], cosine[chosen], spans[chosen])

    def within(self, members: Sequence[int]) -> Pairs:
        """Only the pairs of these."""
        return self.where(np.isin(self.one, members) & np.isin(self.other, members))


def in_common(encoded: Crowd, kinds: Iterable[int | None], least: float) -> Pairs:
    """All pairs of annotators with at least so many spans of a type (``None``: of all) where both looked.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.crowd.encode import encode
    >>> tags = {"ann": ("B-PER", "O", "B-PER"), "bob": ("B-PER", "O", "O")}
    >>> corpus = Corpus([Document("1", ("Ada", "met", "Bob"), tags)])
    >>> in_common(encode(corpus, corpus.tagset()), [None], 1.0).cosine.round(2).tolist()
    [0.71]
    """
    spans, n_types, looked = marked_spans(encoded), len(encoded.tagset.types), _Looked.of(encoded)
    found = []
    for kind in kinds:
        these = spans if kind is None else spans.where(spans.kind == kind)
        key = these.key(encoded.n_tokens, n_types)
        found.append(_marked_alike(encoded, looked, these.start, these.who, key, kind or 0, least))
    return Pairs(*(np.concatenate(column) for column in zip(*found, strict=True)))


def tokens_in_common(encoded: Crowd) -> Pairs:
    """The same of the tokens that were marked, in whatever type, beyond what two would have in common by chance.

    Where they are many, those of some of the documents.
    """
    spans, K, looked = marked_spans(encoded), len(encoded.annotators), _Looked.of(encoded)
    every = int((spans.end - spans.start).sum()) // _MOST_TOKENS + 1
    spans = spans.where(document_of(encoded, spans.start) % every == 0)
    length = spans.end - spans.start
    _, token = laid_end_to_end(spans.start, length)
    marked_by = np.repeat(spans.who, length)
    alike = _marked_alike(encoded, looked, token, marked_by, token, 0, ENOUGH)
    here = looked.document % every == 0
    seen = np.bincount(looked.who[here], np.diff(encoded.doc_start)[looked.document[here]], minlength=K)
    density = np.bincount(marked_by, minlength=K) / np.maximum(seen, 1)
    chance = np.minimum(np.sqrt(density[alike.one] * density[alike.other]), _MOST_BY_CHANCE)
    return alike._replace(cosine=np.maximum((alike.cosine - chance) / (1 - chance), 0.0))


class _Looked(NamedTuple):
    """Who looked at which document: pairs in the order of documents and, in ``by_annotator``, of annotators."""

    document: Integers
    who: Integers
    first_of_document: Integers
    by_annotator: Integers
    first_of_annotator: Integers

    @classmethod
    def of(cls, encoded: Crowd) -> _Looked:
        document, who = seen_pairs(encoded)
        order = np.argsort(who, kind="stable")
        first = np.searchsorted(document, np.arange(encoded.n_docs + 1))
        return cls(document, who, first, order, np.searchsorted(who[order], np.arange(len(encoded.annotators) + 1)))


def _marked_alike(
    encoded: Crowd, looked: _Looked, start: Integers, who: Integers, key: Integers, kind: int, least: float
) -> Pairs:
    """How many spans each pair of annotators has in common; those that have the same key are the same.

    They come annotator by annotator, each with its first token.
    """
    K = len(encoded.annotators)
    pair = np.searchsorted(looked.document * K + looked.who, document_of(encoded, start) * K + who)
    marks = np.bincount(pair, minlength=len(looked.who)).astype(np.float64)
    different, span = np.unique(key, return_inverse=True)
    order = np.argsort(span, kind="stable")
    first_marker = np.searchsorted(span[order], np.arange(len(different) + 1))
    own = np.searchsorted(who, np.arange(K + 1))
    one, other, mean, both = marked_together(Marked(*looked, marks, who[order], first_marker, span, own), least)
    return Pairs(one, other, np.full(len(one), kind, np.int64), both / mean, mean)
