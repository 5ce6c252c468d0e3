"""Holding annotators out: a crowd without some of its labels, and these labels, to compare a consensus with.

Habits say how often each annotator marks a span that two others marked alike, which tells how many of a consensus's
spans a held-out annotator would confirm if all were right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.algebra import (
    Spans,
    document_of,
    joined,
    marked_spans,
    paired,
    seen_pairs,
    without_pairs,
    worked_out_once,
)
from quorate.crowd.crowd import Crowd, Note
from quorate.crowd.kernels import add_alike, sure_events
from quorate.crowd.lots import lots_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_SHARE = 0.5  # of the documents that can spare an annotator
_ONE_OF = 5  # one in five of a document's annotators is held out, and at least one
_MOST_DOCUMENTS = 20_000  # beyond this, more held-out documents say nothing new
_ENOUGH_SPANS = 2_000  # held out over all folds: a share of so many is known to within a point
MOST_FOLDS = 4
"""How many folds a small crowd has at most."""
_HABIT_PRIOR = 3.0  # pseudo-count, in spans, of the crowd's mean habit in each annotator's


class Habits(NamedTuple):
    """``[K, types]`` How often each annotator marks a span, and a token, that two others marked alike."""

    spans: Floats
    tokens: Floats


class HeldOut(NamedTuple):
    """Labels that were held out of a crowd, in the documents ``documents`` of it.

    These are numbered from 0 on in all that follows, and so are their tokens. In ``document[u]`` annotator ``who[u]``
    was held out, once for each such pair u; ``spans`` is what they had marked, ``unit`` the pair of each; ``token`` and
    ``label`` are the same label by label, where a label is sure. ``doc_start`` is where the documents begin, ``habits``
    are the annotators', and ``others`` is how many of them are left where one was held out, on average.
    """

    documents: Integers
    doc_start: Integers
    document: Integers
    who: Integers
    spans: Spans
    unit: Integers
    token: Integers
    label: Integers
    habits: Habits
    others: float

    def confirmed(self, found: Spans) -> tuple[Spans, Integers, NDArray[np.bool_], Floats]:
        """Spans of a consensus on these documents, each beside every annotator who was held out there.

        These, the pair of each, whether its annotator marked just it, and how often they would if it is true.
        """
        D = len(self.documents)
        place, unit = joined(np.searchsorted(self.doc_start, found.start, side="right") - 1, self.document, D)
        found = found.where(place)._replace(who=self.who[unit])
        matched = np.isin(self._key(found, unit), self._key(self.spans, self.unit))
        return found, unit, matched, self.habits.spans[found.who, found.kind]

    def _key(self, spans: Spans, unit: Integers) -> Integers:
        """One integer for each different (pair, start, end, type): a start and a pair name the document."""
        longest, T = int(np.diff(self.doc_start).max()) + 1, self.habits.spans.shape[1]
        within = spans.start - self.doc_start[self.document[unit]]
        return np.asarray(((unit * longest + within) * longest + spans.end - spans.start) * T + spans.kind)


def folds(crowd: Crowd, *, seed: int = 0, notes: Sequence[Note] = ()) -> Iterator[tuple[Crowd, HeldOut]]:
    """As many folds of held-out annotators as a small crowd needs, one for a large one; empty if none can be spared.

    Each holds out others than those before. None depends on annotators' names or the order of documents.

    >>> import quorate
    >>> from quorate.crowd.encode import encode
    >>> corpus = quorate.sample()
    >>> len(list(folds(encode(corpus, corpus.tagset()))))
    4
    """
    first = hold_out(crowd, seed=seed, notes=notes)
    if first is None:
        return
    yield first
    held = first[1]
    documents, annotators = np.bincount(seen_pairs(crowd)[0])[held.documents], np.bincount(held.document)
    different = 2 * int((documents // annotators).max())  # folds until every annotator was held out once in either half
    wanted = -(-_ENOUGH_SPANS // max(len(held.spans.start), 1))
    for n in range(1, min(wanted, different, MOST_FOLDS)):
        further = hold_out(crowd, seed=seed, fold=n, notes=notes)
        if further is not None:
            yield further


def hold_out(crowd: Crowd, *, seed: int = 0, fold: int = 0, notes: Sequence[Note] = ()) -> tuple[Crowd, HeldOut] | None:
    """Hold out one annotator in five, at least one, in half of the documents that can spare one; ``None``: none can.

    A document can spare an annotator if it has three, or two where hardly any document has three. Documents with known
    labels stay whole. Whoever depends on a held-out annotator, by ``notes``, is left out of the document as well.
    ``fold`` takes the halves of the documents in turn, and then the next of their annotators.

    >>> import quorate
    >>> from quorate.crowd.encode import encode
    >>> corpus = quorate.sample()
    >>> crowd = encode(corpus, corpus.tagset())
    >>> rest, held_out = hold_out(crowd)
    >>> len(held_out.document), len(rest.event_cell) < len(crowd.event_cell)
    (160, True)
    """
    K = len(crowd.annotators)
    seen_doc, seen_by = seen_pairs(crowd)
    per_doc = np.bincount(seen_doc, minlength=crowd.n_docs)
    can_spare = per_doc >= 3
    if can_spare.sum() < 0.1 * (per_doc >= 2).sum():
        can_spare = per_doc >= 2
    if crowd.known is not None:
        can_spare[document_of(crowd, np.flatnonzero(crowd.known >= 0))] = False
    able = np.flatnonzero(can_spare)
    if not len(able):
        return None
    lots = lots_of(crowd, seed)
    size = min(max(1, int(_SHARE * len(able))), _MOST_DOCUMENTS)
    by_lot = able[np.argsort(lots.document[able], kind="stable")]
    chosen = np.sort(by_lot[-size:] if fold % 2 else by_lot[:size])
    _, in_chosen = joined(chosen, seen_doc, crowd.n_docs)
    order = in_chosen[np.lexsort((lots.pair[in_chosen], seen_doc[in_chosen]))]
    people = per_doc[chosen]
    how_many = np.maximum(people // _ONE_OF, 1)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(people) - people, people)
    turn = (rank - np.repeat(fold // 2 * how_many, people)) % np.repeat(people, people)
    drawn = np.sort(order[turn < np.repeat(how_many, people)])
    document, who = seen_doc[drawn], seen_by[drawn]
    dependent = _with_dependent(document, who, K, seen_doc * K + seen_by, notes)
    left = people - np.bincount(np.searchsorted(chosen, dependent // K), minlength=len(chosen))
    spared = left[np.searchsorted(chosen, document)] > 0  # nobody would be left to make a consensus of
    document, who = document[spared], who[spared]
    if not len(document):
        return None
    chosen = np.unique(document)
    dependent = _with_dependent(document, who, K, seen_doc * K + seen_by, notes)

    pair = document * K + who  # ascending
    gone, held = (np.isin(seen_doc * K + seen_by, those) for those in (dependent, pair))
    spans = marked_spans(crowd)
    span_pair = document_of(crowd, spans.start) * K + spans.who
    was_held = np.isin(span_pair, pair)
    token, cell = sure_events(paired(crowd, seen_doc, seen_by), held)
    rest = without_pairs(crowd, gone)
    doc_start = np.concatenate([[0], np.cumsum(np.diff(crowd.doc_start)[chosen])])
    shift = np.zeros(crowd.n_docs, np.int64)  # from tokens of the crowd to those of its chosen documents
    shift[chosen] = doc_start[:-1] - crowd.doc_start[chosen]
    moved = shift[span_pair[was_held] // K]
    own = spans.where(was_held)
    left_there = np.bincount(seen_pairs(rest)[0], minlength=crowd.n_docs)
    return rest, HeldOut(
        chosen,
        doc_start,
        np.searchsorted(chosen, document),
        who,
        own._replace(start=own.start + moved, end=own.end + moved),
        np.searchsorted(pair, span_pair[was_held]),
        token + shift[document_of(crowd, token)],
        crowd.cells.label[cell],
        _habits(crowd),
        float(left_there[document].mean()),
    )


def _with_dependent(document: Integers, who: Integers, K: int, seen: Integers, notes: Sequence[Note]) -> Integers:
    """These pairs (document·K + annotator), and those of ``seen`` that depend on one of them."""
    pairs = [document * K + who]
    for note in notes:
        there, other = note.dependent(document, who)
        pairs.append(there * K + other)
    return np.intersect1d(np.concatenate(pairs), seen)


@worked_out_once
def _habits(crowd: Crowd) -> Habits:
    return Habits(_span_habits(crowd), _token_habits(crowd))


def _span_habits(crowd: Crowd) -> Floats:
    """``[K, types]`` How often each annotator marks a span that two others (or, of two, the other) marked alike."""
    spans, (seen_doc, seen_by) = marked_spans(crowd), seen_pairs(crowd)
    K, T = len(crowd.annotators), len(crowd.tagset.types)
    key, place, times = np.unique(spans.key(crowd.n_tokens, T), return_inverse=True, return_counts=True)
    if not len(key):
        return np.ones((K, T))
    first = np.zeros(len(key), np.int64)
    first[place] = np.arange(len(place))
    kind, doc = spans.kind[first], document_of(crowd, spans.start[first])
    marked_by = np.unique(place * K + spans.who)
    enough = 2 if (np.bincount(seen_doc) >= 3).any() else 1

    # Everyone who saw the document of a span, side by side with the span.
    span, pair = joined(doc, seen_doc, crowd.n_docs)
    who = seen_by[pair]
    marked = np.isin(span * K + who, marked_by)
    counts = times[span] - marked >= enough
    cell = who[counts] * T + kind[span[counts]]
    there = np.bincount(cell, minlength=K * T).astype(np.float64).reshape(K, T)
    return _shares(there, np.bincount(cell, marked[counts], minlength=K * T).astype(np.float64).reshape(K, T))


def _token_habits(crowd: Crowd) -> Floats:
    """``[K, types]`` How often each annotator gives a token the type that two others gave it."""
    there, marked = np.zeros((2, len(crowd.annotators), len(crowd.tagset.types)))
    cells, weight = crowd.cells, np.zeros(0) if crowd.event_weight is None else crowd.event_weight
    kind = crowd.tagset.type_of[cells.label]
    add_alike(crowd.event_start, crowd.event_cell, weight, cells.annotator, kind, there, marked)
    return _shares(there, marked)


def _shares(there: Floats, marked: Floats) -> Floats:
    """``[K, T]`` The share marked of what was there, drawn towards everybody's."""
    everybody = (marked.sum(axis=0) + 1) / (there.sum(axis=0) + 2)
    return np.asarray((marked + _HABIT_PRIOR * everybody) / (there + _HABIT_PRIOR))
