"""The compiled kernels of the span model: what annotators did with each candidate, sums over sets of candidates.

Letters: D documents, C candidates, Q pairs of a document and an annotator who saw it, M marks, R responses (one for
each pair and candidate of a document, pair by pair), K annotators. Candidates of a document are sorted by end, then
start; those that overlap, directly or through others, are a *cluster*, and clusters stand side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.likely import SpanLabels
from quorate.model.kernels.native import native

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Codes = NDArray[np.int8]
Bools = NDArray[np.bool_]

# What an annotator did with a true span.
EXACT, SHIFTED, SPLIT, OTHER_TYPE, OTHER_TYPE_SHIFTED, MISSED = range(6)
N_RESPONSES = 6
UNSEEN = 6  # was not shown all of its tokens: says nothing


class Problem(NamedTuple):
    """Candidates, and what everybody did with each: what a pass goes over.

    Document d has the candidates ``first[d]`` to ``first[d + 1]``, the pairs ``pair_start[d]`` to ``pair_start[d + 1]``
    and responses from ``response_start[d]`` on. Annotator ``who[p]`` of a pair counts ``weight[p]``. ``spread`` is ln
    of the number of candidates among which a boundary that is off is chosen, ``prior`` the log odds of a candidate
    before anybody is asked. ``by_start`` are the candidates of each cluster sorted by start, counted from the cluster's
    first. ``apart`` is how many tokens must lie between two spans of one type.
    """

    start: Ints
    end: Ints
    kind: Ints
    cluster: Ints
    by_start: Ints
    first: Ints
    pair_start: Ints
    who: Ints
    weight: Floats
    response_start: Ints
    response: Codes
    spread: Floats
    prior: Floats
    apart: int


class SpanSums(NamedTuple):
    """What a pass over some documents brings back: Σ ln Z, and counts of responses and of marks ``[K, ...]``."""

    log_z: float
    responses: Floats
    marks: Floats


def cluster_of(start: Ints, end: Ints, first: Ints, apart: int) -> Ints:
    """``[C]`` The number of each candidate's cluster, ascending; candidates are sorted by end."""
    cluster = np.zeros(len(start), np.int64)
    fill_clusters(start, end, first, apart, cluster)
    return cluster


@native
def fill_clusters(start: Ints, end: Ints, first: Ints, apart: int, cluster: Ints) -> None:
    """What :func:`cluster_of` returns."""


def overlapping(start: Ints, end: Ints, kind: Ints, cluster: Ints) -> Ints:
    """``[C]`` How many other candidates of the same type overlap each."""
    count = np.zeros(len(start), np.int64)
    count_overlapping(start, end, kind, cluster, count)
    return count


@native
def count_overlapping(start: Ints, end: Ints, kind: Ints, cluster: Ints, count: Ints) -> None:
    """What :func:`overlapping` returns is added to ``count``."""


@native
def responses(
    start: Ints,
    end: Ints,
    kind: Ints,
    first: Ints,
    pair_start: Ints,
    response_start: Ints,
    mark_start: Ints,
    mark_from: Ints,
    mark_to: Ints,
    mark_kind: Ints,
    run_start: Ints,
    run_from: Ints,
    run_to: Ints,
    out: Codes,
) -> None:
    """What each annotator did with each candidate of the documents they saw.

    Pair p marked ``mark_start[p]`` to ``mark_start[p + 1]``, and saw the runs of tokens ``run_start[p]`` to
    ``run_start[p + 1]``. Of several marks on one candidate the one of its type that overlaps it most counts.
    """


def word_support(
    start: Ints, end: Ints, kind: Ints, word: Ints32, rows: Floats, labels: SpanLabels, outside: int
) -> Floats:
    """``[C]`` By how much the words of each candidate speak for its type, and not for ``O``, in nats.

    ``rows [V, J]`` is ln of each word's probability by label; ``labels`` are those that a span is written with.
    """
    support = np.empty(len(start))
    fill_word_support(start, end, kind, word, np.ascontiguousarray(rows), labels, outside, support)
    return support


@native
def fill_word_support(
    start: Ints, end: Ints, kind: Ints, word: Ints32, rows: Floats, labels: SpanLabels, outside: int, support: Floats
) -> None:
    """What :func:`word_support` returns."""


def span_pass(
    p: Problem,
    of_true: Floats,
    of_free: Floats,
    temper: float,
    sharpness: float,
    low: int,
    high: int,
    is_true: Floats,
    log_zs: Floats,
) -> SpanSums:
    """One pass over the documents ``low`` to ``high``.

    ``of_true [K, N_RESPONSES]`` and ``of_free [K, 2]`` (not marked, marked) are log probabilities of what annotators do
    with a true span, and with one that overlaps nothing true. Weights are raised to ``sharpness``. ``is_true [C]`` and
    ``log_zs [D]`` are filled in.
    """
    counted, marked = np.zeros((len(of_true), N_RESPONSES)), np.zeros((len(of_free), 2))
    total = sum_over_sets(p, of_true, of_free, temper, sharpness, low, high, is_true, log_zs, counted, marked)
    return SpanSums(total, counted, marked)


@native
def sum_over_sets(
    p: Problem,
    of_true: Floats,
    of_free: Floats,
    temper: float,
    sharpness: float,
    low: int,
    high: int,
    is_true: Floats,
    log_zs: Floats,
    counted: Floats,
    marked: Floats,
) -> float:
    """:func:`span_pass`, which makes room for the counts; returns Σ ln Z."""


@native
def best_set(start: Ints, end: Ints, kind: Ints, first: Ints, apart: int, gain: Floats, chosen: Bools) -> None:
    """Of every document the set of candidates that do not overlap with the highest sum of ``gain``, if above 0.

    Weighted interval scheduling over candidates sorted by end; of sets with the same sum, the one with fewer spans.
    """


@native
def likeliest_set(p: Problem, of_true: Floats, of_free: Floats, temper: float, chosen: Bools) -> None:
    """Of every document the set of candidates with the highest weight: as the sums, with the largest in their place."""


@native
def log_weight_of_set(
    p: Problem,
    of_true: Floats,
    of_free: Floats,
    temper: float,
    sharpness: float,
    chosen: Bools,
    out: Floats,
) -> None:
    """``out [D]``: ln of the weight of the chosen set of every document (less ln Z: of its probability)."""
