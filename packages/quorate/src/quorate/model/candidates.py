"""The spans that may be true, and what every annotator did with each: what the span model looks at.

Candidates are all spans that somebody marked, those that the token model thinks likely, and those that a vote on every
token gives: where people put bounds a little apart, the middle is better than either, and nobody may have marked it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import Scheme
from quorate.crowd.algebra import (
    Spans,
    count_pairs,
    document_of,
    marked_spans,
    number_pairs,
    ranges_of,
    token_of,
    token_of_events,
    worked_out_once,
)
from quorate.crowd.crowd import Crowd
from quorate.model.engines.protocol import Likely
from quorate.model.kernels import spans as kernels
from quorate.model.kernels.tallies import votes

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_LEAST_RANK = 0.25  # of a bound that lies outside of all marks
_MOST_IN_CLUSTER = 500  # a pass takes the square of this many steps


class Candidates(NamedTuple):
    """Candidates of every document as columns, by document, end, start and type; tokens count through the corpus.

    ``likely`` is the probability by the token model (0: too small to tell), ``marked`` how many annotators marked just
    this span, ``touched`` how many marked something of its type that overlaps it. Both leave out who was not shown all
    of its tokens. For the others see :class:`quorate.model.kernels.spans.Problem`.
    """

    start: Integers
    end: Integers
    kind: Integers
    first: Integers
    cluster: Integers
    by_start: Integers
    spread: Floats
    likely: Floats
    marked: Floats
    touched: Floats
    seen: Floats
    pair_start: Integers
    who: Integers
    weight: Floats
    response_start: Integers
    response: NDArray[np.int8]
    apart: int

    @property
    def document(self) -> Integers:
        """``[C]`` The document of each."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def only(self, documents: Integers, shift: Integers) -> Candidates:
        """Those of some documents, whose tokens are counted ``shift [D]`` further there."""

        def of_documents(start: Integers) -> tuple[Integers, Callable[[NDArray[Any]], NDArray[Any]]]:
            """Where what each document has begins, and that of any column."""
            first, end = start[documents], start[documents + 1]
            return np.concatenate([[0], np.cumsum(end - first)]), lambda column: ranges_of(column, first, end)

        first, chosen = of_documents(self.first)
        pair_start, of_pairs = of_documents(self.pair_start)
        response_start, of_responses = of_documents(self.response_start)
        moved = np.repeat(shift, np.diff(first))
        names = ("kind", "cluster", "by_start", "spread", "likely", "marked", "touched", "seen")
        others: dict[str, Any] = {name: chosen(getattr(self, name)) for name in names}
        return self._replace(
            start=chosen(self.start) + moved,
            end=chosen(self.end) + moved,
            **others,
            first=first,
            pair_start=pair_start,
            who=of_pairs(self.who),
            weight=of_pairs(self.weight),
            response_start=response_start,
            response=of_responses(self.response),
        )

    def votes(self) -> Floats:
        """``[C]`` Of the annotators who were shown all of a span, the share that marked just this one."""
        return np.asarray(self.marked / np.maximum(self.seen, 1))

    def middle(self) -> Floats:
        """``[C]`` Whether the bounds of each lie in the middle of those that overlapping marks of its type have.

        Of n annotators with such marks, r begin no later than it or no earlier, whichever are fewer: ln 2r/n, and the
        same for ends. That is 0 where both bounds are medians, ln 4 where all agree on both, and less than 0 near the
        edge; 0 where nobody marked anything.
        """
        n, N = self.touched, int(self.end.max(initial=0)) + 1
        from_start = self._marks_until(self.start, N), self._marks_until(self.end, N)
        (begun_before, begun), (_, ended_before) = (until(self.start) for until in from_start)
        (begun_inside, _), (ended_inside, ended) = (until(self.end) for until in from_start)
        first = np.minimum(begun - ended_before, n - (begun_before - ended_before))
        last = np.minimum(begun_inside - ended_inside, n - (begun_inside - ended))
        ranks = np.clip(np.stack([first, last]), _LEAST_RANK, np.maximum(n, _LEAST_RANK))
        return np.where(n > 0, np.log(2 * ranks / np.maximum(n, _LEAST_RANK)).sum(axis=0), 0.0)

    def _marks_until(self, bound: Integers, N: int) -> Callable[[Integers], tuple[Floats, Floats]]:
        """How many marks of each candidate's type have this bound before a place, and how many before it or there.

        Marks of the types before it are counted too: all of them have begun and ended, so differences are right.
        """
        key = self.kind * N + bound
        order = np.argsort(key, kind="stable")
        total = np.concatenate([[0.0], np.cumsum(self.marked[order])])

        def until(place: Integers) -> tuple[Floats, Floats]:
            wanted = self.kind * N + place
            before, there = (np.searchsorted(key, wanted, side, sorter=order) for side in ("left", "right"))
            return total[before], total[there]

        return until


class Answers(NamedTuple):
    """What the annotators of each document did with each of its spans: pair by pair, and in a pair span by span.

    Pair p is annotator ``who[p]`` in the document whose pairs begin at ``pair_start``; those of document d have their
    responses from ``response_start[d]`` on. Pair p marked ``marks`` from ``mark_start[p]`` to ``mark_start[p + 1]``.
    """

    pair_start: Integers
    who: Integers
    response_start: Integers
    response: NDArray[np.int8]
    mark_start: Integers
    marks: Spans

    def span(self, first: Integers) -> Integers:
        """``[R]`` The span that each response is to; those of document d begin at ``first[d]``."""
        start, size, within = self._places(first)
        return np.asarray(start + within % size)

    def pair(self, first: Integers) -> Integers:
        """``[R]`` The pair of each response."""
        _, size, within = self._places(first)
        return np.asarray(np.repeat(self.pair_start[:-1], np.diff(self.response_start)) + within // size)

    def _places(self, first: Integers) -> tuple[Integers, Integers, Integers]:
        """Of each response the first span of its document, how many that has, and its place there."""
        times = np.diff(self.response_start)
        within = np.arange(self.response_start[-1]) - np.repeat(self.response_start[:-1], times)
        return np.repeat(first[:-1], times), np.repeat(np.diff(first), times), within


def answers_to(crowd: Crowd, marks: Spans, span: Spans, first: Integers) -> Answers:
    """What everybody did with each span; those of document d are ``first[d]`` to ``first[d + 1]``."""
    pair_doc, who, labelled = count_pairs(crowd)
    pair_start = np.searchsorted(pair_doc, np.arange(crowd.n_docs + 1))
    mark_start, marks = _by_pair(crowd, marks, pair_doc, who)
    run_start, run_from, run_to = _runs(crowd, pair_doc, labelled)
    response_start = np.concatenate([[0], np.cumsum(np.diff(first) * np.diff(pair_start))])
    response = np.empty(response_start[-1], np.int8)
    kernels.responses(
        span.start, span.end, span.kind, first, pair_start, response_start,
        mark_start, marks.start, marks.end, marks.kind, run_start, run_from, run_to, response,
    )  # fmt: skip
    return Answers(pair_start, who, response_start, response, mark_start, marks)


@worked_out_once
def voted_spans(crowd: Crowd) -> Likely:
    """Runs of tokens to each of which more than half of a document's annotators gave the same type.

    Where more than half begin a span, another run begins.
    As probability, the mean share of those who did; the others may have begun, or ended, elsewhere.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.crowd.encode import encode
    >>> said = {"ann": ("B-X", "I-X", "I-X", "O"), "bob": ("O", "B-X", "I-X", "O"), "cem": ("O", "O", "B-X", "I-X")}
    >>> corpus = Corpus([Document("1", ("a", "b", "c", "d"), said)])
    >>> voted = voted_spans(encode(corpus, corpus.tagset()))
    >>> voted.start.tolist(), voted.end.tolist(), voted.probability.round(2).tolist()
    ([1], [3], [0.83])
    """
    label, weight = crowd.cells.label, crowd.event_weight
    everybody, opening, of_type = votes(
        crowd.event_start,
        crowd.event_cell,
        np.zeros(0) if weight is None else weight,
        crowd.tagset.type_of[label],
        crowd.tagset.opens[label],
        len(crowd.tagset.types),
    )
    opens = np.concatenate([2 * opening > everybody, [False]])
    opens[crowd.doc_start] = True
    found = []
    for number in range(len(crowd.tagset.types)):
        mine = of_type[number]
        inside = np.concatenate([[False], 2 * mine > everybody, [False]])
        start = np.flatnonzero(inside[1:-1] & (~inside[:-2] | opens[:-1]))
        end = np.flatnonzero(inside[1:-1] & (~inside[2:] | opens[1:])) + 1
        so_far = np.concatenate([[0.0], np.cumsum(mine / np.maximum(everybody, 1e-9))])
        found.append(Likely(start, end, np.full(len(start), number), (so_far[end] - so_far[start]) / (end - start)))
    return Likely(*(np.concatenate(column) for column in zip(*found, strict=True)))


def find_candidates(crowd: Crowd, likely: Likely, least: float, *others: Likely) -> Candidates:
    """The candidates of a crowd: what was marked, what has a probability of at least ``least``, and ``others``.

    Each annotator counts in a document as much as their labels there.
    """
    marks = marked_spans(crowd)
    apart = 1 if crowd.tagset.scheme is Scheme.IO else 0  # spans of one type that touch are one there
    span, first = _columns(crowd, [marks, likely.at_least(least), *others])
    probability = looked_up(span, likely, crowd)
    cluster = kernels.cluster_of(span.start, span.end, first, apart)
    kept = _not_too_many(span, cluster, marks, probability, crowd)
    if kept is not None:
        span, probability = span.where(kept), probability[kept]
        first = np.searchsorted(span.end, crowd.doc_start, side="right")
        cluster = kernels.cluster_of(span.start, span.end, first, apart)
    answers = answers_to(crowd, marks, span, first)
    response, candidate = answers.response, answers.span(first)
    pair_doc = np.repeat(np.arange(crowd.n_docs), np.diff(answers.pair_start))
    weight = _weights(crowd, len(pair_doc))
    of_response = None if crowd.event_weight is None else weight[answers.pair(first)]

    def how_many(those: NDArray[np.bool_]) -> Floats:
        """``[C]`` How many annotators gave some of the responses, each as much as they weigh there."""
        each = None if of_response is None else of_response[those]
        return np.bincount(candidate[those], each, minlength=len(span.start)).astype(np.float64)

    order = np.lexsort((span.start, cluster))
    cluster_first = np.searchsorted(cluster, cluster)
    return Candidates(
        span.start,
        span.end,
        span.kind,
        first,
        cluster,
        order - cluster_first[order],
        np.log(np.maximum(kernels.overlapping(span.start, span.end, span.kind, cluster), 1)),
        probability,
        how_many(response == kernels.EXACT),
        how_many(response < kernels.OTHER_TYPE),
        how_many(response != kernels.UNSEEN),
        answers.pair_start,
        answers.who,
        weight,
        answers.response_start,
        response,
        apart,
    )


def _weights(crowd: Crowd, n_pairs: int) -> Floats:
    """``[pairs]`` How much the labels of each annotator count in each document: the mean over tokens they labelled."""
    if crowd.event_weight is None:
        return np.ones(n_pairs)
    number = number_pairs(crowd)[2]
    return np.bincount(number, crowd.event_weight, n_pairs) / np.maximum(_tokens_of_pairs(crowd, n_pairs), 1)


def _tokens_of_pairs(crowd: Crowd, n_pairs: int) -> Integers:
    """How many tokens each pair labelled: who gave probabilities has several events at a token."""
    if not crowd.soft:
        return count_pairs(crowd)[2]
    number, token = number_pairs(crowd)[2], token_of_events(crowd)
    order = np.lexsort((token, number))
    again = np.zeros(len(order), np.bool_)
    again[1:] = (token[order][1:] == token[order][:-1]) & (number[order][1:] == number[order][:-1])
    return np.bincount(number[order][~again], minlength=n_pairs)


def _columns(crowd: Crowd, sources: Sequence[Spans | Likely]) -> tuple[Spans, Integers]:
    """Different spans by document, end, start and type; and where documents begin among them."""
    start, end, kind = (
        np.concatenate([getattr(source, column) for source in sources]) for column in ("start", "end", "kind")
    )
    order = np.lexsort((kind, start, end))
    start, end, kind = start[order], end[order], kind[order]
    other = np.ones(len(start), np.bool_)
    other[1:] = (start[1:] != start[:-1]) | (end[1:] != end[:-1]) | (kind[1:] != kind[:-1])
    span = Spans(start[other], end[other], kind[other], np.full(int(other.sum()), -1))
    first = np.searchsorted(span.end, crowd.doc_start, side="right")  # ends lie behind the first token
    return span, first


def looked_up(span: Spans | Candidates, likely: Likely, crowd: Crowd) -> Floats:
    """The probability of each span, 0 where it is not among the likely ones."""
    probability = np.zeros(len(span.start))
    if not len(likely.start):
        return probability
    longest = int(np.diff(crowd.doc_start).max(initial=0)) + 1
    T = len(crowd.tagset.types)

    def key(start: Integers, end: Integers, kind: Integers) -> Integers:
        return (start * longest + (end - start)) * T + kind

    known = key(likely.start, likely.end, likely.kind)
    order = np.argsort(known)
    wanted = key(span.start, span.end, span.kind)
    place = np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)
    found = known[order[place]] == wanted
    probability[found] = likely.probability[order[place[found]]]
    return probability


def _not_too_many(span: Spans, cluster: Integers, marks: Spans, probability: Floats, crowd: Crowd) -> Integers | None:
    """Where a cluster has too many candidates, those to keep: the ones that most people marked. ``None``: all."""
    size = np.bincount(cluster, minlength=1)
    if size.max(initial=0) <= _MOST_IN_CLUSTER:
        return None
    longest, T = int(np.diff(crowd.doc_start).max(initial=0)) + 1, len(crowd.tagset.types)
    keys = [(one.start * longest + (one.end - one.start)) * T + one.kind for one in (marks, span)]
    marked, times = np.unique(keys[0], return_counts=True)
    place = np.minimum(np.searchsorted(marked, keys[1]), max(len(marked) - 1, 0))
    votes = np.where(marked[place] == keys[1], times[place], 0) if len(marked) else np.zeros(len(keys[1]))
    order = np.lexsort((-probability, -votes, cluster))
    rank = np.arange(len(order)) - np.searchsorted(cluster[order], cluster[order])
    return np.sort(order[rank < _MOST_IN_CLUSTER])


def _by_pair(crowd: Crowd, marks: Spans, pair_doc: Integers, who: Integers) -> tuple[Integers, Spans]:
    """The marks by pair of document and annotator, and where those of each pair begin."""
    K = max(len(crowd.annotators), 1)
    pair = document_of(crowd, marks.start) * K + marks.who
    order = np.lexsort((marks.start, pair))
    return np.searchsorted(pair[order], np.append(pair_doc * K + who, np.iinfo(np.int64).max)), marks.where(order)


def _runs(crowd: Crowd, pair_doc: Integers, labelled: Integers) -> tuple[Integers, Integers, Integers]:
    """The runs of tokens that each pair has labels for: mostly one, the whole document. ``labelled`` are its events."""
    P, length = len(pair_doc), np.diff(crowd.doc_start)[pair_doc]
    if crowd.soft:
        labelled = _tokens_of_pairs(crowd, P)
    whole = labelled == length
    begin, end = crowd.doc_start[pair_doc], crowd.doc_start[pair_doc + 1]
    if whole.all():
        return np.arange(P + 1), begin, end
    number = number_pairs(crowd)[2]
    partly = np.flatnonzero(~whole[number])
    pair, at = number[partly].astype(np.int64), token_of(crowd, partly)
    order = np.lexsort((at, pair))
    pair, at = pair[order], at[order]
    fresh = np.ones(len(pair), np.bool_)
    fresh[1:] = (pair[1:] != pair[:-1]) | (at[1:] > at[:-1] + 1)
    opening = np.flatnonzero(fresh)
    closing = np.append(opening[1:], len(pair)) - 1
    owner = np.concatenate([np.flatnonzero(whole), pair[opening]])
    run_from = np.concatenate([begin[whole], at[opening]])
    run_to = np.concatenate([end[whole], at[closing] + 1])
    order = np.lexsort((run_from, owner))
    return np.searchsorted(owner[order], np.arange(P + 1)), run_from[order], run_to[order]
