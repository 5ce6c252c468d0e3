"""Precision, recall and F1 of a whole consensus from a sample that was checked: with intervals by design, not by model.

Each is a ratio of totals over all documents, Σ above / Σ below. With the share R the total of e = above − R·below is 0,
and it is estimated by the difference estimator: the total that the consensus expects of itself, ê, taken β times, and
what the sample shows beyond it, each document for 1/π_d of them,

    β·Σ ê_d + Σ_sample (e_d − β·ê_d) / π_d = 0,

which is linear in R. Its variance is that of the sample's residuals (Rosén's, for sampling with probabilities π), so an
expectation that is wrong makes the interval wider. Where the sample is balanced on some numbers, what follows them adds
no error, and the variance is that of what a regression on them leaves (Deville and Tillé, 2005). The interval is
Wilson's for as many independent spans as the variance is worth; where fewer than five documents have a mistake, for as
many as there are documents, since spans of one document may err together. Documents that were certain to be drawn are
known, so that this is asked of the others alone, and counts for the whole by their part of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "EACH",
    "F1",
    "PRECISION",
    "RECALL",
    "Estimate",
    "Predicted",
    "Ratio",
    "Reach",
    "Seen",
    "at_every_look",
    "err_together",
    "independent_spans",
    "once",
    "ratio_of",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Reach = Callable[[float], float]
"""How many standard errors an interval reaches to either side, from the degrees of freedom of the error."""

# How many documents the guess β = 1 is worth when β is estimated: with few checked, the consensus's own figures stand.
_GUESS_DOCUMENTS = 20
# The variance that the consensus expects counts as that of so many documents: a small sample without a mistake does not
# mean that there are none.
_STATED_DOCUMENTS = 2
EACH = 5
"""Documents for each number that a sample is balanced on: with fewer, too little would be left to see an error by."""
_LEAST_FOR_BETA = 3  # documents
_LEAST_FREEDOM = 5.0  # that of a sample with one or two mistakes, for which intervals are widened by other means
_TINY, _CERTAIN = 1e-300, 1e-12
_ALIKE = 1e-6  # of singular values: columns that say the same
_FEW_MISTAKES = 5  # documents that have one; of fewer, the variance of a sample is not to be trusted


class Estimate(NamedTuple):
    """A share, with the interval that holds it with the stated confidence.

    >>> str(Estimate(0.802, 0.751, 0.845))
    '80.2 (75.1 to 84.5)'
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "not known"
        return f"{100 * self.value:.1f} ({100 * self.low:.1f} to {100 * self.high:.1f})"

    @property
    def width(self) -> float:
        """From end to end."""
        return self.high - self.low


class Predicted(NamedTuple):
    """What a consensus expects of every document ``[D]``: spans given, right and missed; the variance of the right.

    ``balanced [D, q]`` are the numbers that the sample is balanced on, if it is.
    """

    given: Floats
    right: Floats
    missed: Floats
    variance: Floats
    balanced: Floats | None = None


class Seen(NamedTuple):
    """What a person found in the documents ``sample [n]``: how many spans are right, and how many true there.

    ``probability [n]`` is that of having been drawn.
    """

    sample: Integers
    probability: Floats
    right: Floats
    true: Floats


class Ratio(NamedTuple):
    """Which ratio: how often right spans count above, and given, right and missed ones below.

    >>> F1.above, RECALL.below_missed
    (2, 1)
    """

    above: int
    below_given: int
    below_right: int
    below_missed: int


PRECISION, RECALL, F1 = Ratio(1, 1, 0, 0), Ratio(1, 0, 1, 1), Ratio(2, 1, 1, 1)


class _Solved(NamedTuple):
    """The ratio, its variance, the degrees of freedom of that (0: all documents were checked)."""

    share: float
    variance: float
    freedom: float


def once(confidence: float) -> Reach:
    """The reach of an interval that is looked at once: Student's t.

    >>> round(once(0.9)(49), 2)
    1.68
    """
    from scipy.stats import t

    return lambda freedom: float(t.ppf((1 + confidence) / 2, max(freedom, 1.0)))


def at_every_look(confidence: float, n: int, planned: int) -> Reach:
    """The reach of intervals that hold at all looks together, while documents come: an asymptotic confidence sequence.

    Waudby-Smith and others, Time-uniform central limit theory (2024); narrowest when ``n`` is the ``planned`` size.

    >>> round(at_every_look(0.9, 50, 50)(10**6), 2)
    2.77
    """
    alpha, student = 1 - confidence, once(confidence)
    x = 8.0 * n / max(planned, 1)  # within 1 % of the best for any confidence from 0.8 to 0.99
    wider = math.sqrt((x + 1) / x * math.log((x + 1) / alpha**2)) / student(1e6)
    return lambda freedom: wider * student(freedom)


def ratio_of(ratio: Ratio, predicted: Predicted, seen: Seen, reach: Reach) -> Estimate:
    """The estimate of a ratio, with its interval.

    >>> given = np.full(10, 2.0)
    >>> predicted = Predicted(given, 0.8 * given, 0.3 * given, 0.3 * given)
    >>> seen = Seen(np.arange(4), np.full(4, 0.4), np.array([2.0, 1, 2, 2]), np.array([2.0, 2, 2, 3]))
    >>> round(ratio_of(PRECISION, predicted, seen, once(0.9)).value, 3)
    0.875
    """
    share, variance, freedom = _solved(ratio, predicted, seen)
    if math.isnan(share):
        return Estimate(math.nan, 0.0, 1.0)
    share = min(max(share, 0.0), 1.0)
    if not freedom:
        return Estimate(share, share, share)
    far = reach(freedom)
    worth = _worth(share, variance, ratio, predicted, seen, far)
    middle = (share + far**2 / (2 * worth)) / (1 + far**2 / worth)
    half = far * math.sqrt(share * (1 - share) / worth + far**2 / (4 * worth**2)) / (1 + far**2 / worth)
    return Estimate(share, max(min(middle - half, share), 0.0), min(max(middle + half, share), 1.0))


def _worth(share: float, variance: float, ratio: Ratio, predicted: Predicted, seen: Seen, far: float) -> float:
    """As many independent spans would have this variance; no more than documents where hardly one has a mistake."""
    below = _below(ratio, predicted.given[seen.sample], seen.right, seen.true - seen.right)
    units, n = below / ratio.above, len(below)
    inward = min(max(share, 0.5 / (n + 1)), 1 - 0.5 / (n + 1))  # a share of 0 or 1 has no spread of its own
    worth = inward * (1 - inward) / max(variance, _CERTAIN)
    if int((units > seen.right).sum()) >= _FEW_MISTAKES:
        return worth
    # Where nothing stands below the line, something may in documents like it: it counts as one span, if that is worse.
    whole, at_least_one = float((units / seen.probability).sum()), np.maximum(units, 1 / ratio.above)
    return min(worth, *(_worth_of_uncertain(one, seen.probability, whole, far) for one in (units, at_least_one)))


def _worth_of_uncertain(units: Floats, probability: Floats, whole: float, far: float) -> float:
    """As many documents give the ``whole`` the low end that it has if those not certain to be drawn may be wrong.

    With the part φ of the whole, and worth m documents, they may lack φ·z² / (m + z²) of it though none has a mistake
    (Wilson); z is ``far``.
    """
    is_certain = probability > 1 - _CERTAIN
    part = min(float((units / probability)[~is_certain].sum()) / whole, 1.0) if whole > 0 else 1.0
    documents = max(_documents_worth((1 / probability - 1) * units), 1.0)
    return (documents + far**2) / max(part, _TINY) - far**2


def _documents_worth(weight: Floats) -> float:
    """As many documents of one weight tell as much as these (Kish)."""
    return float(weight.sum()) ** 2 / max(float((weight**2).sum()), _TINY)


def independent_spans(weight: Floats, count: Floats) -> float:
    """As many spans of one weight tell as much as those of these documents, if each errs by itself (Kish).

    >>> independent_spans(np.ones(40), np.full(40, 3.0))
    120.0
    """
    return float((weight * count).sum()) ** 2 / max(float((weight**2 * count).sum()), _TINY)


def err_together(weight: Floats, count: Floats, right: Floats) -> float:
    """How many times fewer spans that err by themselves would tell as much: the design effect of documents.

    Where few documents have a mistake that cannot be seen, and each document counts as one.

    >>> round(err_together(np.ones(40), np.full(40, 3.0), np.full(40, 3.0)), 1)
    3.0
    """
    spans, n = independent_spans(weight, count), len(count)
    if int((right < count).sum()) < _FEW_MISTAKES:
        return spans / max(_documents_worth(weight * count), _TINY)
    total = float((weight * count).sum())
    share = float((weight * right).sum()) / total
    residual = weight * (right - share * count)
    variance = float((residual**2).sum()) * n / (n - 1) / total**2
    student = (once(0.9)(n - 1) / once(0.9)(1e6)) ** 2  # Korn and Graubard's allowance for a variance that is estimated
    return max(spans * variance * student / max(share * (1 - share), _CERTAIN), 1.0)


def _solved(ratio: Ratio, predicted: Predicted, seen: Seen) -> _Solved:
    free = 1 - seen.probability  # documents that were certain to be drawn add no variance
    k = int((free > _CERTAIN).sum())
    terms = _terms(ratio, predicted, seen)
    beta = 1.0
    for _ in range(2 if k >= _LEAST_FOR_BETA else 0):
        beta = _best_beta(terms, _share(terms, beta)[0], free)
    share, below = _share(terms, beta)
    if not k or math.isnan(share):
        return _Solved(share, 0.0, 0)
    residual = terms.above - share * terms.below - beta * (terms.above_hat - share * terms.below_hat)
    followed = np.zeros((len(free), 0)) if predicted.balanced is None else predicted.balanced[seen.sample]
    left, lost = _unexplained(terms.weight * residual, terms.weight[:, np.newaxis] * followed[:, : k // EACH], free)
    each = free * left**2
    own = float(each.sum()) * k / max(k - lost - 0.5, 0.5)  # half for a β that is half guessed
    by_right = (ratio.above - share * ratio.below_right) ** 2 * predicted.variance[seen.sample]
    by_missed = (share * ratio.below_missed) ** 2 * predicted.missed[seen.sample]
    stated = float((free * terms.weight**2 * (by_right + by_missed)).sum())
    variance = (own * (k - lost) + stated * _STATED_DOCUMENTS) / (k - lost + _STATED_DOCUMENTS)
    return _Solved(share, variance / below**2, max(min(_freedom(each, k), k - lost), _LEAST_FREEDOM))


def _freedom(each: Floats, k: int) -> float:
    """The degrees of freedom of a sum of squares: few large ones tell less of a variance than many alike."""
    total = float(each.sum())
    noise = float((each**2).sum()) - total**2 / k  # the variance of the sum, by that of its terms
    return 2 * total**2 / noise if noise > 0 else float(k)


def _unexplained(values: Floats, columns: Floats, weight: Floats) -> tuple[Floats, int]:
    """What a weighted regression on a constant and these columns leaves, and how many of them can be told apart."""
    root = np.sqrt(weight)
    table = root[:, np.newaxis] * np.column_stack([np.ones(len(values)), columns])
    table /= np.maximum(np.sqrt((table**2).sum(axis=0)), _TINY)
    coefficients, _, rank, _ = np.linalg.lstsq(table, root * values, rcond=_ALIKE)
    left = root * values - table @ coefficients
    return np.divide(left, root, out=np.zeros_like(left), where=root > 0), int(rank)


class _Terms(NamedTuple):
    """Above and below the line: in the sample, as expected there, and as expected of all documents together."""

    weight: Floats
    above: Floats
    below: Floats
    above_hat: Floats
    below_hat: Floats
    total_above: float
    total_below: float


def _terms(ratio: Ratio, predicted: Predicted, seen: Seen) -> _Terms:
    s = seen.sample
    above_hat = ratio.above * predicted.right
    below_hat = _below(ratio, predicted.given, predicted.right, predicted.missed)
    return _Terms(
        1 / seen.probability,
        ratio.above * seen.right,
        _below(ratio, predicted.given[s], seen.right, seen.true - seen.right),
        above_hat[s],
        below_hat[s],
        float(above_hat.sum()),
        float(below_hat.sum()),
    )


def _share(terms: _Terms, beta: float) -> tuple[float, float]:
    """The ratio, and what stands below its line; not a number where nothing does."""
    above = beta * terms.total_above + float((terms.weight * (terms.above - beta * terms.above_hat)).sum())
    below = beta * terms.total_below + float((terms.weight * (terms.below - beta * terms.below_hat)).sum())
    return (above / below, below) if below > _CERTAIN else (math.nan, below)


def _best_beta(terms: _Terms, share: float, free: Floats) -> float:
    """How far to follow what was expected: as far as the sample follows it, and a guess of all the way."""
    e = _centred(terms.weight * (terms.above - share * terms.below), free)
    e_hat = _centred(terms.weight * (terms.above_hat - share * terms.below_hat), free)
    known = float((free * e_hat**2).sum())
    guess = _GUESS_DOCUMENTS / len(free) * known
    return (float((free * e * e_hat).sum()) + guess) / (known + guess) if known > 0 else 1.0


def _below(ratio: Ratio, given: Floats, right: Floats, missed: Floats) -> Floats:
    return np.asarray(ratio.below_given * given + ratio.below_right * right + ratio.below_missed * missed)


def _centred(values: Floats, weight: Floats) -> Floats:
    total = float(weight.sum())
    return np.asarray(values - (weight * values).sum() / total) if total > 0 else values
