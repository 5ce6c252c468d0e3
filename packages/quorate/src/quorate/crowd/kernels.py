"""Compiled kernels: events made of labels that lie sequence after sequence, some of them, and sums over them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.native import native

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Ints16 = NDArray[np.int16]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Hashes = NDArray[np.uint64]

# A table of all cells is made where it is not much larger than what was said.
_CELLS_PER_LABEL, _FEW_CELLS = 4, 1 << 20


class Sequences(NamedTuple):
    """Where each sequence of labels begins (and all end), whose each is, and where documents begin among them."""

    start: Ints
    annotator: Ints32
    of_document: Ints


def events_by_token(
    labels: Ints16, sequences: Sequences, doc_start: Ints, n_annotators: int, first: int, before: int, J: int
) -> tuple[Ints, Ints, Ints32]:
    """The keys of the cells that occur, where each token's events begin (and all end), and the cell of every event.

    A key is (annotator · ``before`` + label before) · ``J`` + label; before a sequence, and after a missing label,
    stands ``first``.
    """
    n_cells = n_annotators * before * J
    if n_cells > max(_CELLS_PER_LABEL * len(labels), _FEW_CELLS):
        event_start, key = keys_by_token(labels, sequences, doc_start, first, before, J)
        keys, place = np.unique(key, return_inverse=True)
        return keys, event_start, place.astype(np.int32)
    start, annotator, of_document = sequences
    occurs = np.zeros(n_cells, np.bool_)
    mark_cells(labels, start, annotator, first, before, J, occurs)
    rank = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    event_start, event_cell = np.empty(doc_start[-1] + 1, np.int64), np.empty(len(labels), np.int32)
    n = fill_events(
        labels, start, annotator, of_document, doc_start, first, before, J, rank, event_start, event_cell
    )  # fmt: skip
    return np.flatnonzero(occurs), event_start, event_cell[:n]


def keys_by_token(
    labels: Ints16, sequences: Sequences, doc_start: Ints, first: int, before: int, J: int
) -> tuple[Ints, Ints]:
    """The same, with the key of every event itself: where there is no room for a table of all cells."""
    event_start, key = np.empty(doc_start[-1] + 1, np.int64), np.empty(len(labels), np.int64)
    n = fill_keys(labels, *sequences, doc_start, first, before, J, event_start, key)
    return event_start, key[:n]


class PairedEvents(NamedTuple):
    """The events of a corpus, and its pairs of document and annotator.

    ``weight`` may be empty, ``annotator`` is of cells. Document d has the pairs ``first_pair[d]`` to
    ``first_pair[d + 1]``, of annotators ``who``.
    """

    doc_start: Ints
    event_start: Ints
    event_cell: Ints32
    weight: Floats
    annotator: Ints
    first_pair: Ints
    who: Ints
    n_annotators: int


def kept_of_pairs(events: PairedEvents, gone: Bools, left: int) -> tuple[Ints, Ints32, Floats]:
    """As :func:`without_events`, without those of some pairs; ``left`` are the events of the others."""
    start, cell = np.empty_like(events.event_start), np.empty(left, np.int32)
    kept = np.empty(left if len(events.weight) else 0)
    keep_pairs(events, gone, start, cell, kept)
    return start, cell, kept


def sure_events(events: PairedEvents, wanted: Bools) -> tuple[Ints, Ints32]:
    """Token and cell of what some pairs said; of someone's probabilities, those above a half."""
    found = find_pairs(events, wanted, np.zeros(0, np.int64), np.zeros(0, np.int32))
    token, cell = np.empty(found, np.int64), np.empty(found, np.int32)
    find_pairs(events, wanted, token, cell)
    return token, cell


def without_events(
    event_start: Ints, event_cell: Ints32, weight: Floats | None, gone: Bools
) -> tuple[Ints, Ints32, Floats | None]:
    """Where each token's events begin (and all end), their cells and weights, without those that are gone."""
    left = len(event_cell) - int(np.count_nonzero(gone))
    start, cell = np.empty_like(event_start), np.empty(left + 1, np.int32)  # what is gone is written over
    kept = np.empty(0 if weight is None else left + 1)
    keep_events(event_start, event_cell, np.zeros(0) if weight is None else weight, gone, start, cell, kept)
    return start, cell[:left], None if weight is None else kept[:left]


def events_of_cells(event_start: Ints, event_cell: Ints32, wanted: Bools) -> tuple[Ints, Ints32]:
    """Token and cell of the events of some cells."""
    found = find_events(event_start, event_cell, wanted, np.zeros(0, np.int64), np.zeros(0, np.int32))
    token, cell = np.empty(found, np.int64), np.empty(found, np.int32)
    find_events(event_start, event_cell, wanted, token, cell)
    return token, cell


@native
def mark_cells(labels: Ints16, start: Ints, annotator: Ints32, first: int, before: int, J: int, occurs: Bools) -> None:
    """Says which cells occur."""


@native
def fill_events(
    labels: Ints16,
    start: Ints,
    annotator: Ints32,
    first_sequence: Ints,
    doc_start: Ints,
    first: int,
    before: int,
    J: int,
    rank: Ints32,
    event_start: Ints,
    event_cell: Ints32,
) -> int:
    """The events, by token and sequence; returns how many there are."""


@native
def fill_keys(
    labels: Ints16,
    start: Ints,
    annotator: Ints32,
    first_sequence: Ints,
    doc_start: Ints,
    first: int,
    before: int,
    J: int,
    event_start: Ints,
    key: Ints,
) -> int:
    """The key of every event, by token and sequence; returns how many there are."""


@native
def add_hashes(events: PairedEvents, word: Ints32, label: Hashes, words: Hashes, labels: Hashes) -> None:
    """Adds hashes of each document's tokens to ``words [D]``, and to ``labels`` those of what each pair said of them.

    ``label``, a hash, is of cells.
    """


@native
def fill_pairs(events: PairedEvents, number: Ints32) -> None:
    """The number of every event's pair."""


@native
def weigh_pairs(events: PairedEvents, of_pair: Floats, weight: Floats) -> None:
    """The weight of every event, times that of its pair."""


@native
def keep_pairs(events: PairedEvents, gone: Bools, start: Ints, cell: Ints32, kept_weight: Floats) -> int:
    """:func:`kept_of_pairs`, into room that is given; returns how many events stay."""


@native
def find_pairs(events: PairedEvents, wanted: Bools, token: Ints, cell: Ints32) -> int:
    """:func:`sure_events`, while there is room; returns how many events there are."""


@native
def keep_events(
    event_start: Ints, event_cell: Ints32, weight: Floats, gone: Bools, start: Ints, cell: Ints32, kept_weight: Floats
) -> int:
    """:func:`without_events`, into room for one more than stay; returns how many do."""


@native
def find_events(event_start: Ints, event_cell: Ints32, wanted: Bools, token: Ints, cell: Ints32) -> int:
    """:func:`events_of_cells`, while there is room; returns how many there are."""


@native
def add_alike(
    event_start: Ints,
    event_cell: Ints32,
    weight: Floats,
    annotator: Ints,
    kind: Ints,
    there: Floats,
    marked: Floats,
) -> None:
    """Adds at how many tokens two others gave a type, and at how many of those each annotator gave it too.

    To ``there`` and ``marked``, both ``[K, T]``. ``annotator`` and ``kind``, below 0 for none, are of cells.
    """


class LabelEvents(NamedTuple):
    """Who said what: the events of a corpus, each of one label, and how labels make spans.

    ``annotator`` and ``label`` are those of every cell; ``in_span [J]``, ``continues [J, J]`` and ``type_of [J]`` are
    those of :class:`quorate.corpus.tags.TagSet`.
    """

    doc_start: Ints
    event_start: Ints
    event_cell: NDArray[np.int32]
    annotator: Ints
    label: Ints
    in_span: NDArray[np.bool_]
    continues: NDArray[np.bool_]
    type_of: Ints


@native
def add_coverage(events: LabelEvents, team: Ints, low: int, high: int, met: Floats, total: Floats, own: Floats) -> None:
    """Adds how much of what others marked in documents ``low`` to ``high`` each annotator marked too.

    To ``total [T, K]`` the marks of others, by type, in documents of which they labelled something, and to ``met``
    those that a mark of theirs overlaps. To ``own [3, K]`` how many marks are theirs, how long those are together, and
    how long the documents. Annotators who share a number in ``team [K]`` are not others to each other, and their marks
    count as those of one.
    """


class Marked(NamedTuple):
    """Who saw which document, and which spans each marked.

    Pair p is annotator ``who[p]`` in ``document[p]``, ascending, with ``marks[p]`` spans; those of document d begin at
    ``first_pair[d]``, and annotator k has the pairs ``pair`` from ``first_own_pair[k]`` on. Span s was marked by
    ``marker`` from ``first_marker[s]`` on, and annotator k marked ``span`` from ``first_own_span[k]`` on.
    """

    document: Ints
    who: Ints
    first_pair: Ints
    pair: Ints
    first_own_pair: Ints
    marks: Floats
    marker: Ints
    first_marker: Ints
    span: Ints
    first_own_span: Ints


def marked_together(events: Marked, least: float) -> tuple[Ints, Ints, Floats, Floats]:
    """Every two annotators with at least so many spans where both looked: the mean of those, and how many both marked.

    It is the geometric mean of what one marked there and what the other did.
    """
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    n = find_together(events, least, *nothing)
    found = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.empty(n)
    find_together(events, least, *found)
    return found


@native
def find_together(events: Marked, least: float, one: Ints, other: Ints, mean: Floats, both: Floats) -> int:
    """:func:`marked_together`, while there is room; returns how many pairs of annotators there are."""
