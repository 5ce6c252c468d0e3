"""What can be done with a crowd.

The token, document and annotator of each event; who labelled something in which document; fewer documents or labels,
one more annotator, other weights; the spans that were marked. A large corpus has many events: what is said of each is
kept in short numbers, and pairs of document and annotator are looked up, not sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import TagSet
from quorate.crowd.crowd import WORKED_OUT, Cells, Crowd
from quorate.crowd.kernels import PairedEvents, events_of_cells, fill_pairs, kept_of_pairs, without_events

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Columns = TypeVar("Columns", bound=tuple[NDArray[Any], ...])
_PIECE = 1 << 16  # events that are gone through at once
_LEAST_VOTE = 0.001  # of an O: where nobody marks anything, O must win
_SMOOTHING = 0.1  # votes that every label has beforehand
_SMOOTHING_OF_ABSTAINING = 0.02  # the same where a lone mark must not drown in them, times the votes for O of a token
_MOST_KEPT = 1 << 26  # bytes of what is worked out once: beyond this, room is dearer than time


def worked_out_once(work: Callable[[Crowd], Columns]) -> Callable[[Crowd], Columns]:
    """What ``work`` makes of a corpus is kept with it, read-only, and gone with it: many ask for the same.

    It is not pickled: elsewhere it is worked out again.

    >>> @worked_out_once
    ... def lengths(crowd):
    ...     return (np.diff(crowd.doc_start),)
    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.crowd.encode import encode
    >>> corpus = Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O")})])
    >>> crowd = encode(corpus, corpus.tagset())
    >>> lengths(crowd)[0] is lengths(crowd)[0]
    True
    """
    name = f"{work.__module__}.{work.__qualname__}"

    @wraps(work)
    def kept(crowd: Crowd) -> Columns:
        worked_out: dict[str, Columns] = vars(crowd).setdefault(WORKED_OUT, {})
        found = worked_out.get(name)
        if found is None:
            found = work(crowd)
            if sum(column.nbytes for column in found) <= _MOST_KEPT:
                for column in found:
                    column.flags.writeable = False
                worked_out[name] = found  # the arrays of a corpus never change
        return found

    return kept


class Spans(NamedTuple):
    """Spans as columns: first token, token after the last, type, and who marked it; tokens count through the corpus."""

    start: Integers
    end: Integers
    kind: Integers
    who: Integers

    def key(self, n_tokens: int, n_kinds: int) -> Integers:
        """One integer for each different (start, end, type)."""
        return (self.start * (n_tokens + 1) + self.end) * n_kinds + self.kind

    def where(self, chosen: NDArray[np.bool_] | Integers) -> Spans:
        """Those that were chosen."""
        return Spans(*(column[chosen] for column in self))


def token_of_events(crowd: Crowd) -> Integers:
    """``[E]`` The token of every event."""
    return np.repeat(np.arange(crowd.n_tokens), np.diff(crowd.event_start))


def token_of(crowd: Crowd, event: NDArray[np.integer]) -> Integers:
    """The token of each of some events."""
    if len(event) > crowd.n_tokens:
        of_event = np.repeat(np.arange(crowd.n_tokens, dtype=np.int32), np.diff(crowd.event_start))
        return np.asarray(of_event[event].astype(np.int64))
    return np.asarray(np.searchsorted(crowd.event_start, event, side="right") - 1)


def label_counts(crowd: Crowd) -> Floats:
    """``[N, J]`` How many annotators gave each token each label."""
    J = len(crowd.tagset.labels)
    key = token_of_events(crowd) * J + crowd.cells.label[crowd.event_cell]
    counts = np.bincount(key, crowd.event_weight, minlength=crowd.n_tokens * J)
    return counts.astype(np.float64).reshape(-1, J)


def sums_between(values: NDArray[Any], start: Integers) -> NDArray[Any]:
    """The sum of the values from each start to the next: how many tokens of each document are flagged, for example.

    >>> sums_between(np.array([True, False, True]), np.array([0, 1, 1, 3])).tolist()
    [1, 0, 1]
    """
    return np.diff(np.concatenate([[0], np.cumsum(values)])[start])


def document_of_events(crowd: Crowd) -> Integers:
    """``[E]`` The document of every event."""
    return np.repeat(np.arange(crowd.n_docs), np.diff(crowd.event_start[crowd.doc_start]))


def document_of(crowd: Crowd, token: NDArray[np.integer]) -> Integers:
    """The document of each token."""
    return np.asarray(np.searchsorted(crowd.doc_start, token, side="right") - 1)


def events_of_document(crowd: Crowd, d: int) -> tuple[slice, Integers]:
    """The events of one document, and the token of each, counted from the document's first."""
    first, last = int(crowd.doc_start[d]), int(crowd.doc_start[d + 1])
    start = crowd.event_start[first : last + 1]
    return slice(int(start[0]), int(start[-1])), np.repeat(np.arange(last - first), np.diff(start))


def laid_end_to_end(first: NDArray[np.integer], lengths: NDArray[np.integer]) -> tuple[Integers, Integers]:
    """Pieces of an array, one after another: where each begins (and the end of all), and the place of every entry.

    >>> laid_end_to_end(np.array([7, 2]), np.array([2, 3]))
    (array([0, 2, 5]), array([7, 8, 2, 3, 4]))
    """
    start = np.concatenate([[0], np.cumsum(lengths)])
    return start, np.arange(start[-1]) + np.repeat(first - start[:-1], lengths)


def labels_of_spans(
    start: Integers, end: Integers, kind: Integers, tagset: TagSet
) -> tuple[Integers, Integers, Integers]:
    """Where each span's tokens begin among those of all spans, the tokens, and the label that each of them has.

    >>> from quorate.corpus.tags import Scheme
    >>> tagset = TagSet.of_types(Scheme.BIO, ["PER"])
    >>> first, token, label = labels_of_spans(np.array([3, 7]), np.array([5, 8]), np.array([0, 0]), tagset)
    >>> first.tolist(), token.tolist(), [tagset.labels[each] for each in label]
    ([0, 2], [3, 4, 7], ['B-PER', 'I-PER', 'B-PER'])
    """
    length = end - start
    first, token = laid_end_to_end(start, length)
    single, begins, inside, ends = tagset.span_labels
    label = np.repeat(inside[kind], length)
    label[first[:-1]] = begins[kind]
    label[first[1:] - 1] = np.where(length > 1, ends[kind], single[kind])
    return first[:-1], token, label


def ranges_of(values: NDArray[Any], first: Integers, end: Integers) -> NDArray[Any]:
    """Pieces of an array, each from its ``first`` entry to before its ``end``, one after another.

    >>> ranges_of(np.array([5, 6, 7, 8]), np.array([2, 0]), np.array([4, 1]))
    array([7, 8, 5])
    """
    pieces = [values[a:b] for a, b in zip(first.tolist(), end.tolist(), strict=True)]
    return np.concatenate(pieces) if pieces else values[:0]


def seen_pairs(crowd: Crowd) -> tuple[Integers, Integers]:
    """Who labelled something in which document: documents, ascending, and annotators."""
    return count_pairs(crowd)[:2]


@worked_out_once
def count_pairs(crowd: Crowd) -> tuple[Integers, Integers, Integers]:
    """The same pairs, and how many events each has."""
    found, times = [], [np.zeros(0, np.int64)]
    for first, end, pair in _pairs_in_pieces(crowd):
        if _is_sparse(pair, end):
            present, counts = np.unique(pair, return_counts=True)
        else:
            counts = np.bincount(pair, minlength=end)
            present = np.flatnonzero(counts)
            counts = counts[present]
        found.append((first, present))
        times.append(counts)
    return *_documents_and_annotators(crowd, found), np.concatenate(times)


def number_pairs(crowd: Crowd) -> tuple[Integers, Integers, NDArray[np.int32]]:
    """The same pairs, and for every event the number of its pair among them."""
    document, who = seen_pairs(crowd)
    number = np.empty(len(crowd.event_cell), np.int32)
    fill_pairs(paired(crowd, document, who), number)
    return document, who, number


def paired(crowd: Crowd, document: Integers, who: Integers) -> PairedEvents:
    """The events of a corpus beside its pairs, which are those of :func:`seen_pairs`, as kernels take them."""
    return PairedEvents(
        crowd.doc_start,
        crowd.event_start,
        crowd.event_cell,
        np.zeros(0) if crowd.event_weight is None else crowd.event_weight,
        crowd.cells.annotator,
        np.searchsorted(document, np.arange(crowd.n_docs + 1)),
        who,
        len(crowd.annotators),
    )


def _pairs_in_pieces(crowd: Crowd) -> Iterator[tuple[int, int, Integers]]:
    """For every event document·K + annotator, where documents count from the first of a piece.

    Each piece with that document, and the number below which all of its own are. Pieces are whole documents, so that
    the pairs of one come before those of the next, and what is computed of each is small enough for a cache.
    """
    K, start = max(len(crowd.annotators), 1), crowd.event_start[crowd.doc_start]
    cuts = np.searchsorted(start, np.arange(0, start[-1], _PIECE))
    for first, last in pairwise(np.unique([*cuts, crowd.n_docs]).tolist()):
        pair = crowd.cells.annotator[crowd.event_cell[start[first] : start[last]]]
        pair += np.repeat(np.arange(last - first) * K, np.diff(start[first : last + 1]))
        yield first, (last - first) * K, pair


def _documents_and_annotators(crowd: Crowd, found: list[tuple[int, Integers]]) -> tuple[Integers, Integers]:
    """Pairs as two columns; each piece has the document from which its own count."""
    K = max(len(crowd.annotators), 1)
    pairs = [first * K + present for first, present in found]
    document, annotator = np.divmod(np.concatenate([np.zeros(0, np.int64), *pairs]), K)
    return document, annotator


def without(crowd: Crowd, gone: NDArray[np.bool_]) -> Crowd:
    """The corpus without some of its events."""
    start, cell, weight = without_events(crowd.event_start, crowd.event_cell, crowd.event_weight, gone)
    return replace(crowd, event_start=start, event_cell=cell, event_weight=weight)


def without_pairs(crowd: Crowd, gone: NDArray[np.bool_]) -> Crowd:
    """The corpus without what some of its pairs said; ``gone`` is of all of them, as :func:`seen_pairs` has them."""
    document, who, times = count_pairs(crowd)
    left = len(crowd.event_cell) - int(times[gone].sum())
    start, cell, weight = kept_of_pairs(paired(crowd, document, who), gone, left)
    return replace(
        crowd,
        event_start=start,
        event_cell=cell,
        event_weight=None if crowd.event_weight is None else weight,
    )


def only_documents(crowd: Crowd, documents: Integers) -> Crowd:
    """Some of the documents, with the same annotators, words and cells."""
    first, end = crowd.doc_start[documents], crowd.doc_start[documents + 1]
    events = crowd.event_start[first], crowd.event_start[end]
    times = ranges_of(np.diff(crowd.event_start), first, end)
    return replace(
        crowd,
        doc_start=np.concatenate([[0], np.cumsum(end - first)]),
        word=ranges_of(crowd.word, first, end),
        event_start=np.concatenate([[0], np.cumsum(times)]),
        event_cell=ranges_of(crowd.event_cell, *events),
        event_weight=None if crowd.event_weight is None else ranges_of(crowd.event_weight, *events),
        known=None if crowd.known is None else ranges_of(crowd.known, first, end),
        slices=None,
    )


def with_annotator(crowd: Crowd, name: str, path: NDArray[np.int32]) -> Crowd:
    """The crowd with labels of one more annotator, or one without labels: ``path [N]``, −1 where they gave none.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.crowd.encode import encode
    >>> corpus = Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O")})])
    >>> more = with_annotator(encode(corpus, corpus.tagset()), "(tagger)", np.array([1, -1], np.int32))
    >>> more.annotators, more.event_start.tolist(), more.cells.label.tolist()
    (('ann', '(tagger)'), [0, 2, 3], [1, 0, 1])
    """
    cells, J, P = crowd.cells, crowd.cells.n_labels, crowd.cells.n_previous
    names = crowd.annotators if name in crowd.annotators else (*crowd.annotators, name)
    start = J if crowd.tagset.outside is None else crowd.tagset.outside
    at, before = np.flatnonzero(path >= 0), np.concatenate([[-1], path])[:-1]
    before[crowd.doc_start[:-1][np.diff(crowd.doc_start) > 0]] = -1
    previous = np.where(before < 0, start, before)
    own = (names.index(name) * P + previous[at]) * J + path[at]
    keys = np.union1d(cells.keys, own)
    place = np.searchsorted(keys, cells.keys).astype(np.int32)
    behind = crowd.event_start[1:][at]  # the events that each token has
    return replace(
        crowd,
        annotators=names,
        cells=Cells.of_keys(keys, len(names), J, P),
        event_start=crowd.event_start + np.concatenate([[0], np.cumsum(path >= 0)]),
        event_cell=np.insert(place[crowd.event_cell], behind, np.searchsorted(keys, own).astype(np.int32)),
        event_weight=None if crowd.event_weight is None else np.insert(crowd.event_weight, behind, 1.0),
        slices=None,
    )


@worked_out_once
def marked_spans(crowd: Crowd) -> Spans:
    """Every span that an annotator marked, by annotator and place; in the plain scheme every token is one."""
    tagset = crowd.tagset
    in_span = np.ones(len(tagset.labels), np.bool_) if tagset.outside is None else tagset.in_span
    if not crowd.soft or crowd.event_weight is None:
        token, cell = events_of_cells(crowd.event_start, crowd.event_cell, in_span[crowd.cells.label])
        who, label = crowd.cells.annotator[cell], crowd.cells.label[cell]
    else:
        token, who, label = _likeliest_labels(crowd, crowd.event_weight)
        marked = in_span[label]
        token, who, label = token[marked], who[marked], label[marked]
    few = len(crowd.annotators) <= np.iinfo(np.uint16).max  # short numbers are sorted in one go
    order = np.argsort(who.astype(np.uint16) if few else who, kind="stable")  # tokens ascend already
    token, who, label = token[order], who[order], label[order]
    is_first = np.zeros(crowd.n_tokens + 1, np.bool_)
    is_first[crowd.doc_start] = True
    goes_on = np.zeros(len(token), dtype=np.bool_)
    goes_on[1:] = (
        (who[1:] == who[:-1])
        & (token[1:] == token[:-1] + 1)
        & ~is_first[token[1:]]
        & tagset.continues[label[:-1], label[1:]]
    )
    first = np.flatnonzero(~goes_on)
    last = np.append(first[1:], len(token)) - 1
    return Spans(token[first], token[last[: len(first)]] + 1, tagset.type_of[label[first]], who[first])


def spans_of_path(path: NDArray[np.integer], crowd: Crowd) -> Spans:
    """The spans of one valid label a token; nobody marked them."""
    tagset = crowd.tagset
    is_first = np.zeros(len(path) + 1, np.bool_)
    is_first[crowd.doc_start] = True
    goes_on = np.zeros(len(path) + 1, np.bool_)
    goes_on[1:-1] = tagset.continues[path[:-1], path[1:]] & ~is_first[1:-1]
    inside = tagset.in_span[path]
    start = np.flatnonzero(inside & ~goes_on[:-1])
    end = np.flatnonzero(inside & ~goes_on[1:]) + 1
    return Spans(start, end, tagset.type_of[path[start]], np.full(len(start), -1))


def _likeliest_labels(crowd: Crowd, event_weight: Floats) -> tuple[Integers, Integers, Integers]:
    """Token, annotator and label of all that was said: of someone's probabilities for a token, the likeliest label."""
    cells, J, K = crowd.cells, crowd.cells.n_labels, max(len(crowd.annotators), 1)
    pair = token_of_events(crowd) * K + cells.annotator[crowd.event_cell]
    each, place = np.unique(pair * J + cells.label[crowd.event_cell], return_inverse=True)
    weight = np.bincount(place, event_weight)  # over all labels that may have stood before
    pair, label = np.divmod(each, J)
    order = np.lexsort((-label, weight, pair))
    chosen = order[np.append(pair[order][1:] != pair[order][:-1], True)] if len(order) else order
    return *np.divmod(pair[chosen], K), label[chosen]


def with_likeliest_labels(crowd: Crowd) -> Crowd:
    """The corpus in which everybody says one label of a token: of their probabilities, the likeliest.

    Labels that stood before are not told apart in it.
    """
    if not crowd.soft or crowd.event_weight is None:
        return crowd
    token, who, label = _likeliest_labels(crowd, crowd.event_weight)
    J, K = crowd.cells.n_labels, len(crowd.annotators)
    annotator, every = np.divmod(np.arange(K * J), J)
    return replace(
        crowd,
        event_start=np.searchsorted(token, np.arange(crowd.n_tokens + 1)),
        event_cell=(who * J + label).astype(np.int32),
        event_weight=None,
        cells=Cells(annotator, np.zeros_like(every), every, K, J, 1),
        slices=None,
    )


def joined(one: Integers, other: Integers, n: int) -> tuple[Integers, Integers]:
    """All pairs of positions (in ``one``, in ``other``) that hold the same number below ``n``; ``other`` ascends."""
    times = np.bincount(other, minlength=n)
    first = np.cumsum(times) - times
    place = np.repeat(np.arange(len(one)), times[one])
    rank = np.arange(len(place)) - np.repeat(np.cumsum(times[one]) - times[one], times[one])
    return place, first[one[place]] + rank


def _is_sparse(numbers: NDArray[np.integer], end: int) -> bool:
    """Whether a table of all numbers below ``end`` would be far larger than the numbers themselves."""
    return end > max(4 * len(numbers), 1 << 20)


def first_votes(crowd: Crowd) -> tuple[Floats, float]:
    """``[G]`` How much a vote of each cell counts in the start of a fit, and how many every label has beforehand.

    An ``O`` of a source that abstains counts c / (2 − c), with its coverage c.
    """
    cells, outside = crowd.cells, crowd.tagset.outside
    if crowd.coverage is None or outside is None:
        return np.ones(len(cells.label)), _SMOOTHING
    c = crowd.priors.coverage_of(cells.n_annotators)[cells.annotator]
    weight = np.where(cells.label == outside, np.maximum(c / (2 - c), _LEAST_VOTE), 1.0)
    if not crowd.abstains:
        return weight, _SMOOTHING
    of_outside = float(crowd.cell_weights() @ (weight * (cells.label == outside))) / max(crowd.n_tokens, 1)
    return weight, _SMOOTHING_OF_ABSTAINING * min(of_outside, 1.0)
