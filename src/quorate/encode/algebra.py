"""What can be done with an encoded corpus: fewer documents or labels, one more annotator, other weights; its spans."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.encode.encoded import Cells, Encoded
from quorate.encode.pairs import document_of

__all__ = ["Spans", "as_one", "count_as_one", "joined", "marked_spans", "only_documents", "sure_events", "without"]


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Spans(NamedTuple):
    """Spans as columns: first token, token after the last, type, and who marked it; tokens count through the corpus."""

    start: Integers
    end: Integers
    kind: Integers
    who: Integers

    def key(self, n_tokens: int, n_kinds: int) -> Integers:
        """One integer for each different (start, end, type)."""
        return (self.start * (n_tokens + 1) + self.end) * n_kinds + self.kind

    def painted(self, n_tokens: int) -> Integers:
        """``[N]`` The type of every token that is in a span, −1 elsewhere; spans must not overlap."""
        change = np.zeros(n_tokens + 1, np.int64)
        np.add.at(change, self.start, self.kind + 1)
        np.subtract.at(change, self.end, self.kind + 1)
        return np.cumsum(change)[:-1] - 1

    def share(self, same: Integers) -> Floats:
        """Of each span, the share of its tokens that count in ``same``, a running sum ``[N + 1]``."""
        return np.asarray((same[self.end] - same[self.start]) / (self.end - self.start))

    def where(self, chosen: NDArray[np.bool_] | Integers) -> Spans:
        """Those that were chosen."""
        return Spans(*(column[chosen] for column in self))


def sure_events(encoded: Encoded) -> NDArray[np.bool_]:
    """Events that say one label: of someone who gave probabilities, those above a half."""
    if encoded.event_weight is None:
        return np.ones(len(encoded.event_cell), dtype=np.bool_)
    return np.asarray(encoded.event_weight > 0.5)


def without(encoded: Encoded, gone: NDArray[np.bool_]) -> Encoded:
    """The corpus without some of its events."""
    kept = ~gone
    so_far = np.concatenate([[0], np.cumsum(kept)])
    return replace(
        encoded,
        event_start=so_far[encoded.event_start],
        event_cell=encoded.event_cell[kept],
        event_weight=None if encoded.event_weight is None else encoded.event_weight[kept],
    )


def only_documents(encoded: Encoded, documents: Integers) -> Encoded:
    """Some of the documents, with the same annotators, words and cells."""
    lengths = np.diff(encoded.doc_start)[documents]
    doc_start = np.concatenate([[0], np.cumsum(lengths)])
    token = np.arange(doc_start[-1]) + np.repeat(encoded.doc_start[documents] - doc_start[:-1], lengths)
    said = np.diff(encoded.event_start)[token]
    event_start = np.concatenate([[0], np.cumsum(said)])
    event = np.arange(event_start[-1]) + np.repeat(encoded.event_start[token] - event_start[:-1], said)
    return replace(
        encoded,
        doc_start=doc_start,
        word=encoded.word[token],
        event_start=event_start,
        event_cell=encoded.event_cell[event],
        event_weight=None if encoded.event_weight is None else encoded.event_weight[event],
    )


def joined(encoded: Encoded, name: str, path: NDArray[np.int32]) -> Encoded:
    """The same corpus with one more annotator, last, who gave every token the label that ``path`` ``[N]`` says.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.encode.from_corpus import encode
    >>> corpus = Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O")})])
    >>> more = joined(encode(corpus, corpus.tagset()), "(tagger)", np.array([1, 2], np.int32))
    >>> more.annotators, more.event_start.tolist(), more.cells.label.tolist()
    (('ann', '(tagger)'), [0, 2, 4], [1, 0, 1, 2])
    """
    cells, J, P = encoded.cells, encoded.cells.n_labels, encoded.cells.n_previous
    outside = encoded.tagset.outside
    previous = np.concatenate([[0], path[:-1]]).astype(np.int64)
    previous[encoded.doc_start[:-1][np.diff(encoded.doc_start) > 0]] = J if outside is None else outside
    present, own_cell = np.unique(previous * J + path, return_inverse=True)
    more = Cells(
        np.concatenate([cells.annotator, np.full(len(present), cells.n_annotators)]),
        np.concatenate([cells.previous, present // J]),
        np.concatenate([cells.label, present % J]),
        cells.n_annotators + 1,
        J,
        P,
    )
    at = encoded.event_start[1:]  # behind the events that each token has
    return replace(
        encoded,
        annotators=(*encoded.annotators, name),
        cells=more,
        event_start=encoded.event_start + np.arange(len(encoded.event_start)),
        event_cell=np.insert(encoded.event_cell, at, (len(cells.label) + own_cell).astype(np.int32)),
        event_weight=None if encoded.event_weight is None else np.insert(encoded.event_weight, at, 1.0),
    )


def marked_spans(encoded: Encoded) -> Spans:
    """Every span that an annotator marked, by annotator and place."""
    tagset = encoded.tagset
    used = sure_events(encoded)
    if tagset.outside is not None:
        used &= (encoded.cells.label != tagset.outside)[encoded.event_cell]
    event = np.flatnonzero(used)
    token = np.searchsorted(encoded.event_start, event, side="right") - 1
    cell = encoded.event_cell[event]
    who, label = encoded.cells.annotator[cell], encoded.cells.label[cell]
    order = np.lexsort((token, who))
    token, who, label = token[order], who[order], label[order]
    alone = np.full(len(tagset.labels), tagset.outside is None)  # in the plain scheme every token is a span
    opens, closes, kind = tagset.opens | alone, tagset.closes | alone, tagset.type_of
    doc = document_of(encoded, token)
    goes_on = np.zeros(len(token), dtype=np.bool_)
    goes_on[1:] = (
        (who[1:] == who[:-1])
        & (token[1:] == token[:-1] + 1)
        & (doc[1:] == doc[:-1])
        & (kind[label[1:]] == kind[label[:-1]])
        & ~opens[label[1:]]
        & ~closes[label[:-1]]
    )
    first = np.flatnonzero(~goes_on)
    last = np.append(first[1:], len(token)) - 1
    return Spans(token[first], token[last[: len(first)]] + 1, kind[label[first]], who[first])


def count_as_one(encoded: Encoded, group: Integers) -> Encoded:
    """The same labels, of which those of a group in a document together weigh as one annotator's."""
    share = 1.0 / _members_here(encoded, group)
    weight = share if encoded.event_weight is None else encoded.event_weight * share
    return replace(encoded, event_weight=weight)


def _members_here(encoded: Encoded, group: Integers) -> Integers:
    """For every event, how many of its annotator's group labelled that token."""
    token = np.repeat(np.arange(encoded.n_tokens), np.diff(encoded.event_start))
    G, who = int(group.max()) + 1, encoded.cells.annotator[encoded.event_cell]
    _, place = np.unique(token * G + group[who], return_inverse=True)
    people = np.unique(place * len(group) + who) // len(group)
    return np.bincount(people)[place]


def as_one(encoded: Encoded, group: list[int]) -> Encoded:
    """With those who share a number in ``group`` counting as one; annotators after them stand for themselves."""
    if not group:
        return encoded
    top, strangers = max(group) + 1, len(encoded.annotators) - len(group)
    return count_as_one(encoded, np.array([*group, *range(top, top + strangers)]))
