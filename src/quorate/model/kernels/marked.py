"""Compiled kernels that count what annotators marked, beside a consensus and beside what others marked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.native import native

__all__ = ["Said", "SureSpans", "add_coverage", "add_habits"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Said(NamedTuple):
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


class SureSpans(NamedTuple):
    """The spans of a consensus by place, and how probable each is; document d has ``first[d]`` to ``first[d + 1]``."""

    start: Ints
    end: Ints
    kind: Ints
    first: Ints
    sure: Floats


@native
def add_habits(said: Said, truth: SureSpans, low: int, high: int, habits: Floats, tokens: Floats) -> None:
    """Adds what everybody did with the spans of documents ``low`` to ``high`` to ``habits [12·T, K]``.

    The rows are :class:`quorate.result.habits.SpanHabits`, each by type. To ``tokens [K]`` it adds how long the
    documents are of which each annotator labelled something.
    """


@native
def add_coverage(said: Said, team: Ints, low: int, high: int, met: Floats, total: Floats, own: Floats) -> None:
    """Adds how much of what others marked in documents ``low`` to ``high`` each annotator marked too.

    To ``total [T, K]`` the marks of others, by type, in documents of which they labelled something, and to ``met``
    those that a mark of theirs overlaps. To ``own [3, K]`` how many marks are theirs, how long those are together, and
    how long the documents. Annotators who share a number in ``team [K]`` are not others to each other, and their marks
    count as those of one.
    """
