"""Judging a consensus without gold: hide one annotator in some documents, combine the rest, compare.

A hidden annotator misses things, and a rule is silent about most, so plain agreement would favour whoever marks little.
Each annotator's habit of marking a true span is known well enough without gold: it is how often they mark what two
others marked alike. A consensus that is all right should thus match about Σ habit of the hidden spans, and the score is

    strict = 2·matched / (hidden spans + Σ habit over the consensus's spans),

an F1 in which a span that the hidden annotator would not have marked anyway costs little. The same with shares of spans
that overlap, and the habit of marking a token, is the relaxed score; a consensus is judged by the mean of the two. In
the plain scheme every label is a span of one token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.algebra import (
    Spans,
    document_of,
    joined,
    marked_spans,
    only_documents,
    paired,
    seen_pairs,
    without_pairs,
    worked_out_once,
)
from quorate.crowd.crowd import Crowd
from quorate.crowd.kernels import add_alike, said_for_sure
from quorate.crowd.lots import lots_of
from quorate.crowd.sharing import Sharing
from quorate.model.engines.protocol import Decoded, Paths
from quorate.result.sources import MUCH_IN_COMMON
from quorate.result.spans import consensus_spans

__all__ = [
    "TO_CALIBRATE",
    "TO_CHOOSE",
    "Agreement",
    "Enough",
    "Habits",
    "HiddenLabels",
    "agreement_over",
    "draws",
    "hide",
]


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_SHARE = 0.5  # of the documents that can spare an annotator
_ONE_OF = 5  # one in five of a document's annotators is hidden, and at least one
_MOST_DOCUMENTS = 20_000  # beyond this, more hidden documents say nothing new
_HABIT_PRIOR = 3.0  # pseudo-count, in spans, of the crowd's mean habit in each annotator's
_TINY = 1e-9
_DIGITS = 9  # decimals of a score; later ones are rounding error


class Enough(NamedTuple):
    """How many hidden spans are wanted, and how many draws are made for them at the most."""

    spans: int
    draws: int


TO_CHOOSE = Enough(2_000, 4)
"""A share of so many spans is known to within a point, and all candidates are fitted to every draw."""
TO_CALIBRATE = Enough(5_000, 10)
"""Confidence hangs on the few sure spans that hidden annotators did not mark, and only what is chosen is fitted."""


class HiddenLabels(NamedTuple):
    """A corpus without the labels that were hidden, and those labels.

    ``rest`` is what a fit may see, ``sample`` the part of it with the documents where someone was hidden, which are
    numbered as there in all that follows. In ``document[u]`` annotator ``who[u]`` was hidden, once for each such pair
    u; ``spans`` is what they had marked, ``unit`` the pair of each; ``token`` and ``label`` are the same label by
    label, where a label is sure. ``habits`` are the annotators' of marking what two others marked alike, ``n_hidden``
    is how much was hidden, in labels (or probabilities), ``documents`` the numbers of the sample's in the corpus, and
    ``draw`` the number of this draw. ``in_view`` says of every token of the sample whether spans there are looked at;
    all are, where it is ``None``.
    """

    rest: Crowd
    sample: Crowd
    document: Integers
    who: Integers
    spans: Spans
    unit: Integers
    token: Integers
    label: Integers
    habits: Habits
    n_hidden: int
    documents: Integers
    draw: int = 0
    in_view: NDArray[np.bool_] | None = None

    def where_somebody_marked(self) -> HiddenLabels:
        """The same, with a view of those spans alone of which somebody who is left marked a token."""
        before = marked_spans(self.sample).tokens_before(self.sample.n_tokens)
        shown = self._replace(in_view=np.diff(before) > 0)
        kept = shown._is_in_view(self.spans)
        return shown._replace(spans=self.spans.where(kept), unit=self.unit[kept])

    def _is_in_view(self, spans: Spans) -> NDArray[np.bool_]:
        if self.in_view is None:
            return np.ones(len(spans.start), np.bool_)
        return np.asarray(spans.share(np.concatenate([[0], np.cumsum(self.in_view)])) > 0)

    @property
    def share(self) -> float:
        """Of what was said in the sample, how much was hidden."""
        return self.n_hidden / max(self.n_hidden + len(self.sample.event_cell), 1)

    @property
    def others(self) -> float:
        """How many annotators are left where one was hidden, on average."""
        left = np.bincount(seen_pairs(self.sample)[0], minlength=self.sample.n_docs)
        return float(left[self.document].mean())

    def agreement(self, decoded: Decoded | Paths) -> Agreement:
        """How a consensus on the sample agrees with what was hidden, pair by pair."""
        found = consensus_spans(decoded, self.sample.tagset)
        found = found.where(self._is_in_view(found))
        doc = document_of(self.sample, found.start)
        place, unit = joined(doc, self.document, self.sample.n_docs)
        found = found.where(place)._replace(who=self.who[unit])
        matched, hidden_key = self._matched(found, unit)
        covering, covered = self._shares(found, unit)
        expected = self.habits.spans[found.who, found.kind]
        columns = (
            (unit, matched),
            (self.unit, np.ones(len(hidden_key))),
            (unit, expected),
            (unit, covering),
            (self.unit, covered),
            (unit, self.habits.tokens[found.who, found.kind]),
        )
        sums = [
            np.bincount(self.document[at], value, minlength=self.sample.n_docs).astype(np.float64)
            for at, value in columns
        ]
        return Agreement(np.stack(sums), found, matched, expected)

    def _matched(self, found: Spans, unit: Integers) -> tuple[NDArray[np.bool_], Integers]:
        """Whether each span was marked just so by the annotator of its pair."""
        hidden = self._key(self.spans, self.unit)
        return np.isin(self._key(found, unit), hidden), hidden

    def _key(self, spans: Spans, unit: Integers) -> Integers:
        """One integer for each different (pair, start, end, type): a start and a pair name the document."""
        longest = int(np.diff(self.sample.doc_start).max()) + 1
        within = spans.start - self.sample.doc_start[self.document[unit]]
        length = spans.end - spans.start
        return np.asarray(((unit * longest + within) * longest + length) * len(self.sample.tagset.types) + spans.kind)

    def _shares(self, found: Spans, unit: Integers) -> tuple[Floats, Floats]:
        """Of each consensus span the share that its pair's annotator gave the same type, and the other way round."""
        lengths = np.diff(self.sample.doc_start)[self.document]
        base = np.concatenate([[0], np.cumsum(lengths)])  # every pair's document laid out once more, end to end
        shift = base[:-1] - self.sample.doc_start[self.document]
        mine, theirs = (
            spans._replace(start=spans.start + shift[at], end=spans.end + shift[at])
            for spans, at in ((found, unit), (self.spans, self.unit))
        )
        one, other = mine.painted(int(base[-1])), theirs.painted(int(base[-1]))
        same = np.concatenate([[0], np.cumsum((one == other) & (one >= 0))])
        return mine.share(same), theirs.share(same)


class Habits(NamedTuple):
    """``[K, types]`` How often each annotator marks a span, and a token, that two others marked alike."""

    spans: Floats
    tokens: Floats


class Agreement(NamedTuple):
    """What a consensus and hidden annotators have in common.

    ``table [6, D]``: of each document of the sample (over several draws: of the corpus), spans matched, spans hidden,
    matches expected of a perfect consensus; then the shares of the consensus's spans and of the hidden ones that
    overlap, and the share expected. ``found`` are the consensus's spans in these documents, whether each ``matched``,
    and how likely a true one would (``expected``).
    """

    table: Floats
    found: Spans
    matched: NDArray[np.bool_]
    expected: Floats

    @property
    def f1(self) -> float:
        """The mean of the strict and the relaxed score, without the digits that hang on the order of adding up."""
        return round(float(_f1(self.table.sum(axis=1))), _DIGITS)

    @property
    def strict(self) -> float:
        """The score by whole spans alone."""
        return round(float(_strict(self.table.sum(axis=1))), _DIGITS)

    def gain_over(self, other: Agreement) -> tuple[float, float]:
        """How much more this one scores than another on the same documents, and the standard error of that."""
        return _gain(self.table, other.table, _f1)

    def strict_gain_over(self, other: Agreement) -> tuple[float, float]:
        """The same by whole spans alone: where one consensus is made of spans, and the other of tokens."""
        return _gain(self.table, other.table, _strict)


def agreement_over(hidden: Sequence[HiddenLabels], decoded: Sequence[Decoded | Paths]) -> Agreement:
    """The agreement of all draws together; a document that was drawn several times is one document."""
    n_docs = hidden[0].rest.n_docs
    table = np.zeros((6, n_docs))
    each = [one.agreement(path) for one, path in zip(hidden, decoded, strict=True)]
    for one, agreement in zip(hidden, each, strict=True):
        table[:, one.documents] += agreement.table
    found, matched, expected = zip(*((one.found, one.matched, one.expected) for one in each), strict=True)
    return Agreement(
        table,
        Spans(*(np.concatenate(column) for column in zip(*found, strict=True))),
        np.concatenate(matched),
        np.concatenate(expected),
    )


def _gain(table: Floats, other: Floats, score: Callable[[Floats], Floats]) -> tuple[float, float]:
    """By how much a table scores more than another, and the standard error of that over documents."""
    differences = _influence(table, score) - _influence(other, score)
    gain = float(score(table.sum(axis=1)) - score(other.sum(axis=1)))
    return round(gain, _DIGITS), round(float(np.sqrt((differences**2).sum())), _DIGITS)


def _influence(table: Floats, score: Callable[[Floats], Floats]) -> Floats:
    """``[D]`` How much each document moves the score: to first order its gradient, times what the document has."""
    sums = table.sum(axis=1)
    steps = np.diag(1e-4 * np.maximum(sums, 1.0))
    gradient = (score(sums[:, None] + steps) - score(sums[:, None] - steps)) / (2 * steps.diagonal())
    return np.asarray(gradient @ table)


def _strict(sums: Floats) -> Floats:
    matched, hidden, expected = sums[:3]
    return np.asarray(2 * matched / np.maximum(hidden + expected, _TINY))


def _f1(sums: Floats) -> Floats:
    _, hidden, _, covering, covered, expected_share = sums
    precision, recall = covering / np.maximum(expected_share, _TINY), covered / np.maximum(hidden, _TINY)
    relaxed = 2 * precision * recall / np.maximum(precision + recall, _TINY)
    return np.asarray((_strict(sums) + relaxed) / 2)


def draws(
    encoded: Crowd,
    *,
    known: NDArray[np.int32] | None = None,
    seed: int = 0,
    sharing: Sharing | None = None,
    enough: Enough = TO_CHOOSE,
    before: Sequence[HiddenLabels] = (),
) -> list[HiddenLabels]:
    """As many draws of hidden annotators as a small corpus needs, one for a large one; empty if none can be spared.

    Whoever has much in common with a hidden annotator (``sharing``) does not see the document either. Each draw hides
    others than those before, and none of them hangs on annotators' names or the order of documents. They end where
    there is ``enough``, or when all were hidden. Those that were made ``before`` are not made again.

    >>> import quorate
    >>> from quorate.crowd.encode import encode
    >>> corpus = quorate.sample()
    >>> len(draws(encode(corpus, corpus.tagset())))
    4
    """
    first = before[0] if before else hide(encoded, known=known, seed=seed, sharing=sharing)
    if first is None:
        return []
    before = before or [first]
    documents, annotators = np.bincount(seen_pairs(encoded)[0])[first.documents], np.bincount(first.document)
    different = 2 * int((documents // annotators).max())  # draws until every annotator was hidden once in either half
    wanted = -(-enough.spans // max(len(first.spans.start), 1))
    more = range(before[-1].draw + 1, min(wanted, different, enough.draws))
    further = (hide(encoded, known=known, seed=seed, draw=n, sharing=sharing) for n in more)
    return [*before, *(one for one in further if one is not None)]


def hide(
    encoded: Crowd,
    *,
    known: NDArray[np.int32] | None = None,
    seed: int = 0,
    draw: int = 0,
    sharing: Sharing | None = None,
) -> HiddenLabels | None:
    """Hide one annotator in five, at least one, in half of the documents that can spare one; ``None``: none can.

    A document can spare an annotator if it has three, or two where hardly any document has three. Documents with known
    labels stay whole. ``draw`` takes the halves of the documents in turn, and then the next of their annotators.

    >>> import quorate
    >>> from quorate.crowd.encode import encode
    >>> corpus = quorate.sample()
    >>> encoded = encode(corpus, corpus.tagset())
    >>> hidden = hide(encoded)
    >>> len(hidden.document), len(hidden.rest.event_cell) < len(encoded.event_cell)
    (160, True)
    """
    K = len(encoded.annotators)
    seen_doc, seen_by = seen_pairs(encoded)
    per_doc = np.bincount(seen_doc, minlength=encoded.n_docs)
    can_spare = per_doc >= 3
    if can_spare.sum() < 0.1 * (per_doc >= 2).sum():
        can_spare = per_doc >= 2
    if known is not None:
        can_spare[document_of(encoded, np.flatnonzero(known >= 0))] = False
    able = np.flatnonzero(can_spare)
    if not len(able):
        return None
    lots = lots_of(encoded, seed)
    size = min(max(1, int(_SHARE * len(able))), _MOST_DOCUMENTS)
    by_lot = able[np.argsort(lots.document[able], kind="stable")]
    chosen = np.sort(by_lot[-size:] if draw % 2 else by_lot[:size])
    _, in_chosen = joined(chosen, seen_doc, encoded.n_docs)
    order = in_chosen[np.lexsort((lots.pair[in_chosen], seen_doc[in_chosen]))]
    people = per_doc[chosen]
    how_many = np.maximum(people // _ONE_OF, 1)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(people) - people, people)
    turn = (rank - np.repeat(draw // 2 * how_many, people)) % np.repeat(people, people)
    drawn = np.sort(order[turn < np.repeat(how_many, people)])
    document, hidden_who = seen_doc[drawn], seen_by[drawn]
    partners = _partners(document, hidden_who, seen_doc, seen_by, K, sharing)
    left = people - np.bincount(np.searchsorted(chosen, partners // K), minlength=len(chosen))
    spared = left[np.searchsorted(chosen, document)] > 0  # nobody would be left to make a consensus of
    document, hidden_who = document[spared], hidden_who[spared]
    if not len(document):
        return None
    chosen = np.unique(document)
    partners = _partners(document, hidden_who, seen_doc, seen_by, K, sharing)

    pair = document * K + hidden_who  # ascending
    gone, judges = (np.isin(seen_doc * K + seen_by, those) for those in (partners, pair))
    spans = marked_spans(encoded)
    span_pair = document_of(encoded, spans.start) * K + spans.who
    was_hidden = np.isin(span_pair, pair)
    token, cell = said_for_sure(paired(encoded, seen_doc, seen_by), judges)
    rest = without_pairs(encoded, gone)
    sample = only_documents(rest, chosen)
    shift = np.zeros(encoded.n_docs, np.int64)  # from tokens of the corpus to those of the sample
    shift[chosen] = sample.doc_start[:-1] - encoded.doc_start[chosen]
    hidden_spans = spans.where(was_hidden)
    moved = shift[span_pair[was_hidden] // K]
    return HiddenLabels(
        rest,
        sample,
        np.searchsorted(chosen, document),
        hidden_who,
        hidden_spans._replace(start=hidden_spans.start + moved, end=hidden_spans.end + moved),
        np.searchsorted(pair, span_pair[was_hidden]),
        token + shift[document_of(encoded, token)],
        encoded.cells.label[cell],
        _habits(encoded),
        len(encoded.event_cell) - len(rest.event_cell),
        chosen,
        draw,
    )


def _partners(
    document: Integers, who: Integers, seen_doc: Integers, seen_by: Integers, K: int, sharing: Sharing | None
) -> Integers:
    """These pairs of document and annotator, and those of whoever has much in common with one of them there."""
    pair = document * K + who
    if not sharing:
        return pair
    there, partner = sharing.at_least(MUCH_IN_COMMON).partners(document, who)
    return np.intersect1d(np.concatenate([pair, there * K + partner]), seen_doc * K + seen_by)


@worked_out_once
def _habits(encoded: Crowd) -> Habits:
    return Habits(_span_habits(encoded), _token_habits(encoded))


def _span_habits(encoded: Crowd) -> Floats:
    """``[K, types]`` How often each annotator marks a span that two others (or, of two, the other) marked alike."""
    spans, (seen_doc, seen_by) = marked_spans(encoded), seen_pairs(encoded)
    K, T = len(encoded.annotators), len(encoded.tagset.types)
    key, place, times = np.unique(spans.key(encoded.n_tokens, T), return_inverse=True, return_counts=True)
    if not len(key):
        return np.ones((K, T))
    first = np.zeros(len(key), np.int64)
    first[place] = np.arange(len(place))
    kind, doc = spans.kind[first], document_of(encoded, spans.start[first])
    marked_by = np.unique(place * K + spans.who)
    enough = 2 if (np.bincount(seen_doc) >= 3).any() else 1

    # Everyone who saw the document of a span, side by side with the span.
    span, pair = joined(doc, seen_doc, encoded.n_docs)
    who = seen_by[pair]
    marked = np.isin(span * K + who, marked_by)
    counts = times[span] - marked >= enough
    cell = who[counts] * T + kind[span[counts]]
    there = np.bincount(cell, minlength=K * T).astype(np.float64).reshape(K, T)
    return _shares(there, np.bincount(cell, marked[counts], minlength=K * T).astype(np.float64).reshape(K, T))


def _token_habits(encoded: Crowd) -> Floats:
    """``[K, types]`` How often each annotator gives a token the type that two others gave it."""
    there, marked = np.zeros((2, len(encoded.annotators), len(encoded.tagset.types)))
    cells, weight = encoded.cells, np.zeros(0) if encoded.event_weight is None else encoded.event_weight
    kind = encoded.tagset.type_of[cells.label]
    add_alike(encoded.event_start, encoded.event_cell, weight, cells.annotator, kind, there, marked)
    return _shares(there, marked)


def _shares(there: Floats, marked: Floats) -> Floats:
    """``[K, T]`` The share marked of what was there, drawn towards everybody's."""
    everybody = (marked.sum(axis=0) + 1) / (there.sum(axis=0) + 2)
    return np.asarray((marked + _HABIT_PRIOR * everybody) / (there + _HABIT_PRIOR))
