"""Documents that meet a precision with confidence, by a sample that was checked.

Documents stand in the order of how sure the consensus is of them, and the sets that could be accepted are the first 5 %
of that order, the first 10 %, and so on. A set passes if a lower bound of its precision (Clopper and Pearson's, for as
many independent spans as the sample is worth) is as high as asked. Testing begins at three sets that are fixed
beforehand, each with a third of the error that is allowed, and goes on to larger ones until one fails (learn then test,
Angelopoulos and others, 2021): the chance that what is accepted falls short is no more than allowed.

Spans of one document may err together. How much that takes off is seen in the whole sample, if at least five documents
have a mistake, and taken for the same in every set; otherwise each document counts as one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.audit.estimate import Seen, err_together, independent_spans

__all__ = ["Guaranteed", "guaranteed", "least_documents"]

Floats = NDArray[np.float64]
_SETS = 20
_FIRST = (6, 12, 20)  # sets of 30, 60 and 100 %, where testing begins: small enough to pass, large enough to be seen


class Guaranteed(NamedTuple):
    """Positions of documents that together meet a precision, and of the others; and the bound that shows it.

    >>> Guaranteed([0, 2], [1], 0.953, 0.95, 0.9).review
    [1]
    """

    documents: list[int]
    review: list[int]
    bound: float
    precision: float
    confidence: float


def least_documents(precision: float, confidence: float) -> int:
    """How many documents without a mistake, all alike, it takes to show a precision.

    >>> least_documents(0.95, 0.9)
    67
    """
    return math.ceil(math.log((1 - confidence) / len(_FIRST)) / math.log(precision))


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
    together = err_together(1 / seen.probability, count[seen.sample], right)
    passed, bound = -1, math.nan
    for first in _FIRST:
        for which in range(first - 1, _SETS):
            inside = rank[seen.sample] < ends[which]
            low = _lower_bound(
                count[seen.sample][inside],
                right[inside],
                1 / seen.probability[inside],
                together,
                (1 - confidence) / len(_FIRST),
            )
            if low < precision:
                break
            if which > passed:
                passed, bound = which, low
    n = int(ends[passed]) if passed >= 0 else 0
    return Guaranteed(sorted(order[:n].tolist()), sorted(order[n:].tolist()), bound, precision, confidence)


def _ends(count: Floats, mean: Floats) -> NDArray[np.int64]:
    """Where each set ends, by shares of spans; of documents equally sure, all are in it or none."""
    last_alike = np.flatnonzero(np.append(np.diff(mean) != 0, True)) + 1
    total = np.cumsum(count)
    wanted = np.searchsorted(total, total[-1] * np.arange(1, _SETS + 1) / _SETS - 1e-9) + 1
    return np.asarray(last_alike[np.searchsorted(last_alike, np.minimum(wanted, len(count)))])


def _lower_bound(count: Floats, right: Floats, weight: Floats, together: float, error: float) -> float:
    """The least precision of the set that these documents were drawn from."""
    if not len(count):
        return 0.0
    from scipy.stats import beta

    share = float((weight * right).sum() / (weight * count).sum())
    worth = independent_spans(weight, count) / together
    return float(beta.ppf(error, worth * share, worth * (1 - share) + 1)) if share > 0 else 0.0
