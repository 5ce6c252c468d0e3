"""Documents, or spans, that meet a precision with confidence, by a sample that was checked.

They stand in the order of how sure the consensus is of them, and the sets that could be accepted are the first 5 % of
that order, the first 10 %, and so on. A set passes if a lower bound of its precision
(:func:`quorate.audit.estimate.lower_bound`) is as high as asked. Testing begins at the surest half, whatever is drawn
and found, and goes on to larger sets until one fails (fixed sequence; Angelopoulos and others, Learn then test, 2021):
of all audits, no more than allowed accept what falls short.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.audit.estimate import Seen, lower_bound

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_SETS = 20
# Where testing begins, a half: sets must be small enough to pass, and large enough to be seen. On the dev and train
# splits of six crowds more spans are kept so than from 40 or 60 % on, from three starts that share the error, or from
# the set that the consensus itself expects to pass most easily.
_FIRST = _SETS // 2 - 1


class Guaranteed(NamedTuple):
    """Positions of documents that together meet a precision, and of the others; and the bound that shows it.

    Where there are none, the bound is that of the surest half: the precision that is shown of them.

    >>> Guaranteed([0, 2], [1], 0.953, 0.95, 0.9).review
    [1]
    """

    documents: list[int]
    review: list[int]
    bound: float
    precision: float
    confidence: float


class GuaranteedSpans(NamedTuple):
    """Spans of at least this confidence together meet a precision: so many of them, of so many given; and the bound.

    Where there are none, the bound is that of the surest half: the precision that is shown of them.

    >>> GuaranteedSpans(0.8, 30, 40, 0.953, 0.95, 0.9).kept
    30
    """

    least: float
    kept: int
    given: int
    bound: float
    precision: float
    confidence: float


def least_documents(precision: float, confidence: float) -> int:
    """How many documents without a mistake, all alike, it takes to show a precision.

    >>> least_documents(0.95, 0.9)
    45
    """
    return math.ceil(math.log(1 - confidence) / math.log(precision))


def guaranteed(
    count: Floats, mean: Floats, seen: Seen, right: Floats, precision: float, confidence: float
) -> Guaranteed:
    """The largest set of documents that passes; empty if none does.

    ``count [D]`` are the spans of each document (one for a document without any, which is right if there is none) and
    ``mean [D]`` how sure the consensus is of them; ``right [n]`` how many were found right in the sample.

    >>> sure = np.linspace(0.99, 0.5, 100)
    >>> seen = Seen(np.arange(100), np.full(100, 0.999), np.zeros(0), np.zeros(0))
    >>> len(guaranteed(np.ones(100), sure, seen, np.ones(100), 0.9, 0.9).documents)
    100
    """
    order = np.argsort(-mean, kind="stable")
    ends = _ends(count[order], mean[order])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    inside = rank[seen.sample] < ends[:, np.newaxis]
    passed, bound = _largest(inside * right, inside * count[seen.sample], seen.probability, precision, 1 - confidence)
    n = int(ends[passed]) if passed >= 0 else 0
    return Guaranteed(sorted(order[:n].tolist()), sorted(order[n:].tolist()), bound, precision, confidence)


def guaranteed_spans(
    sure: Floats, seen: Seen, place: Integers, sure_seen: Floats, hit: Floats, precision: float, confidence: float
) -> GuaranteedSpans:
    """The largest set of spans, by confidence, that passes; empty if none does.

    ``sure [S]`` is that of all spans. Of those in the sample, ``place`` is the number of the document among those
    checked, ``sure_seen`` how sure the consensus is of each, and ``hit`` whether it was right.

    >>> sure = np.linspace(0.99, 0.5, 100)
    >>> seen = Seen(np.arange(100), np.full(100, 0.999), np.zeros(0), np.zeros(0))
    >>> guaranteed_spans(sure, seen, np.arange(100), sure, np.ones(100), 0.9, 0.9).kept
    100
    """
    if not len(sure):
        return GuaranteedSpans(math.inf, 0, 0, math.nan, precision, confidence)
    in_order = np.sort(sure)[::-1]
    ends = _ends(np.ones(len(sure)), in_order)
    least = in_order[ends - 1]
    n = len(seen.sample)

    def by_document(values: Floats) -> Floats:
        return np.bincount(place, values, minlength=n).astype(np.float64)

    inside = sure_seen >= least[:, np.newaxis]
    count = np.array([by_document(of_set) for of_set in inside.astype(np.float64)])
    right = np.array([by_document(of_set) for of_set in inside * hit])
    passed, bound = _largest(right, count, seen.probability, precision, 1 - confidence)
    if passed < 0:
        return GuaranteedSpans(math.inf, 0, len(sure), bound, precision, confidence)
    return GuaranteedSpans(float(least[passed]), int(ends[passed]), len(sure), bound, precision, confidence)


def _largest(right: Floats, count: Floats, probability: Floats, precision: float, error: float) -> tuple[int, float]:
    """Which of the sets passes, the largest (−1: none), and its bound: ``right``, ``count [sets, n]``, by document.

    Where none passes, the bound is that of the first. Nothing seen has chosen that set, so its bound holds by itself.
    """
    passed, bound = -1, math.nan
    for which in range(_FIRST, _SETS):
        low = lower_bound(right[which], count[which], probability, error)
        if low < precision:
            return passed, low if passed < 0 else bound
        passed, bound = which, low
    return passed, bound


def _ends(count: Floats, mean: Floats) -> Integers:
    """Where each set ends, by shares of spans; of documents equally sure, all are in it or none."""
    last_alike = np.flatnonzero(np.append(np.diff(mean) != 0, True)) + 1
    total = np.cumsum(count)
    wanted = np.searchsorted(total, total[-1] * np.arange(1, _SETS + 1) / _SETS - 1e-9) + 1
    return np.asarray(last_alike[np.searchsorted(last_alike, np.minimum(wanted, len(count)))])
