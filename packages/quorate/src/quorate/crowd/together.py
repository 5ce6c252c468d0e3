"""What every two annotators marked alike, where both looked: the cosine of their sets of spans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.algebra import document_of, marked_spans, seen_pairs
from quorate.crowd.crowd import Crowd
from quorate.crowd.kernels import Marked, marked_together

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ENOUGH = 40
"""Spans that two must have, on average, before their agreement says anything."""


class Pairs(NamedTuple):
    """What two annotators marked in documents that both saw, by type: the cosine, and the mean number of spans."""

    one: Integers
    other: Integers
    kind: Integers
    cosine: Floats
    spans: Floats

    def where(self, chosen: NDArray[np.bool_] | Integers) -> Pairs:
        """Some of the rows."""
        one, other, kind, cosine, spans = self
        return Pairs(one[chosen], other[chosen], kind[chosen], cosine[chosen], spans[chosen])


def in_common(crowd: Crowd, kinds: Iterable[int | None], least: float) -> Pairs:
    """All pairs of annotators with at least so many spans of a type (``None``: of all) where both looked.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.crowd.encode import encode
    >>> tags = {"ann": ("B-PER", "O", "B-PER"), "bob": ("B-PER", "O", "O")}
    >>> corpus = Corpus([Document("1", ("Ada", "met", "Bob"), tags)])
    >>> in_common(encode(corpus, corpus.tagset()), [None], 1.0).cosine.round(2).tolist()
    [0.71]
    """
    spans, T, K = marked_spans(crowd), len(crowd.tagset.types), len(crowd.annotators)
    document, who = seen_pairs(crowd)
    by_annotator = np.argsort(who, kind="stable")
    first_of_document = np.searchsorted(document, np.arange(crowd.n_docs + 1))
    first_of_annotator = np.searchsorted(who[by_annotator], np.arange(K + 1))
    looked = document, who, first_of_document, by_annotator, first_of_annotator
    found = []
    for kind in kinds:
        these = spans if kind is None else spans.where(spans.kind == kind)
        pair = np.searchsorted(document * K + who, document_of(crowd, these.start) * K + these.who)
        marks = np.bincount(pair, minlength=len(who)).astype(np.float64)
        different, span = np.unique(these.key(crowd.n_tokens, T), return_inverse=True)
        order = np.argsort(span, kind="stable")
        first_marker = np.searchsorted(span[order], np.arange(len(different) + 1))
        own = np.searchsorted(these.who, np.arange(K + 1))
        marked = Marked(*looked, marks, these.who[order], first_marker, span, own)
        one, other, mean, both = marked_together(marked, least)
        found.append(Pairs(one, other, np.full(len(one), kind or 0, np.int64), both / mean, mean))
    return Pairs(*(np.concatenate(column) for column in zip(*found, strict=True)))


def groups_of(one: Integers, other: Integers, n_annotators: int) -> list[list[int]]:
    """Annotators linked by these pairs, group by group, two or more in each.

    >>> groups_of(np.array([0, 3]), np.array([3, 1]), 5)
    [[0, 1, 3]]
    """
    from scipy.sparse import coo_array  # takes a while, and is seldom needed
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(one), np.int8), (one, other)), shape=(n_annotators, n_annotators))
    _, group = connected_components(links, directed=False)
    members: dict[int, list[int]] = {}
    for annotator, number in enumerate(group.tolist()):
        members.setdefault(number, []).append(annotator)
    return [annotators for annotators in members.values() if len(annotators) > 1]
