"""Precision, recall and F1 of a whole consensus from a sample that was checked: with intervals by design, not by model.

A document that was drawn with probability π stands for 1/π documents. These weights are *calibrated* (Deville and
Särndal 1992, Journal of the American Statistical Association 87): moved as little as it takes for the sample to have
as many spans, and as many expected to be right, as all documents together. The scores are those of the weighted sample,

    precision = Σ w·right / Σ w·given,   recall = Σ w·right / Σ w·true,   F1 = 2·Σ w·right / Σ w·(given + true),

so that F1 is the harmonic mean of the two. The variance of such a share, above / below, is that of its residuals
above − share·below, of which a regression on the numbers of the calibration leaves a part; each is divided by one minus
its leverage (MacKinnon and White's HC2, 1985), and counts for 1 − π, as documents that were certain to be drawn are
known. The interval is Wilson's, for as many independent spans as that variance is worth, with Student's t, of fewer
degrees of freedom where a few residuals are large. Where fewer than five of the documents that were not certain have a
mistake it is for as many spans as there are documents, since spans of one document may err together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Reach = Callable[[float], float]
"""How many standard errors an interval reaches to either side, from the degrees of freedom of the error."""

_LEAST_FREEDOM = 5.0  # that of a sample with one or two mistakes, for which intervals are widened by other means
_LEAST_LEFT = 0.05  # of a residual, after a regression that follows one document
_FEW_MISTAKES = 5  # documents that have one; of fewer, the variance of a sample is not to be trusted
_TINY, _CERTAIN = 1e-300, 1e-12
_ALIKE = 1e-6  # of singular values: numbers that say the same


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


class Shares(NamedTuple):
    """Precision, recall and F1."""

    precision: Estimate
    recall: Estimate
    f1: Estimate


class Expected(NamedTuple):
    """Of every document ``[D]``, how many spans it was given, and how many of them should be right."""

    given: Floats
    right: Floats


class Seen(NamedTuple):
    """What a person found in the documents ``sample [n]``: how many spans are right, and how many true there.

    ``probability [n]`` is that of having been drawn.
    """

    sample: Integers
    probability: Floats
    right: Floats
    true: Floats


class _Weighted(NamedTuple):
    """Calibrated weights ``[n]``, and the regression on what they are calibrated to (``of`` is its pseudo-inverse)."""

    weight: Floats
    on: Floats
    of: Floats


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


def scores_of(expected: Expected, seen: Seen, reach: Reach) -> Shares:
    """Precision, recall and F1, each with its interval.

    >>> given = np.full(10, 2.0)
    >>> seen = Seen(np.arange(4), np.full(4, 0.4), np.array([2.0, 1, 2, 2]), np.array([2.0, 2, 2, 3]))
    >>> found = scores_of(Expected(given, 0.8 * given), seen, once(0.9))
    >>> [round(one.value, 3) for one in found]
    [0.875, 0.778, 0.824]
    """
    weighted = _calibrated(expected, seen)
    given, right, true = expected.given[seen.sample], seen.right, seen.true
    return Shares(
        _share(right, given, weighted, seen.probability, reach),
        _share(right, true, weighted, seen.probability, reach),
        _share(right, (given + true) / 2, weighted, seen.probability, reach),
    )


def _calibrated(expected: Expected, seen: Seen) -> _Weighted:
    """The weights of a sample, which give it the totals of all documents."""
    numbers = np.column_stack(expected)
    numbers = numbers / np.maximum(np.sqrt((numbers**2).sum(axis=0)), _TINY)
    root = np.sqrt(1 - seen.probability) / seen.probability
    on = root[:, np.newaxis] * numbers[seen.sample]
    of = np.linalg.pinv(on, rcond=_ALIKE)
    lacking = numbers.sum(axis=0) - (numbers[seen.sample] / seen.probability[:, np.newaxis]).sum(axis=0)
    weight = 1 / seen.probability + root * (of.T @ lacking)
    return _Weighted(np.maximum(weight, 1.0), on, of)  # a document stands for itself at least


def _share(right: Floats, below: Floats, weighted: _Weighted, probability: Floats, reach: Reach) -> Estimate:
    """The share of what stands below the line that is right, in units of spans."""
    total = float((weighted.weight * below).sum())
    if total <= _CERTAIN:
        return Estimate(math.nan, 0.0, 1.0)
    share = float((weighted.weight * right).sum()) / total
    uncertain = probability < 1 - _CERTAIN
    k = int(uncertain.sum())
    if not k:
        return Estimate(share, share, share)
    root = np.sqrt(1 - probability) / probability * (right - share * below)
    left = root - weighted.on @ (weighted.of @ root)
    leverage = (weighted.on * weighted.of.T).sum(axis=1)
    squares = (weighted.weight * probability * left) ** 2 / np.maximum(1 - leverage, _LEAST_LEFT)
    variance, freedom = _spread(squares, k)
    far = reach(max(min(freedom, k - len(weighted.of)), _LEAST_FREEDOM))
    inward = min(max(share, 0.5 / (len(right) + 1)), 1 - 0.5 / (len(right) + 1))  # of 0 or 1 there is no spread
    worth = inward * (1 - inward) * total**2 / max(variance, _CERTAIN)
    if _hardly_wrong(right[uncertain], below[uncertain]):
        # Where nothing stands below the line something may in documents like it: it counts as a span, if that is worse.
        worth = min(worth, *(_worth_of_uncertain(one, probability, far) for one in (below, np.maximum(below, 1.0))))
    middle = (share + far**2 / (2 * worth)) / (1 + far**2 / worth)
    half = far * math.sqrt(share * (1 - share) / worth + far**2 / (4 * worth**2)) / (1 + far**2 / worth)
    return Estimate(share, max(min(middle - half, share), 0.0), min(max(middle + half, share), 1.0))


def _spread(squares: Floats, k: int) -> tuple[float, float]:
    """The variance of a sum of ``k`` terms by their squares, and its degrees of freedom: few large ones tell less."""
    total = float(squares.sum())
    noise = float((squares**2).sum()) - total**2 / k  # the variance of the sum, by that of its terms
    return total * k / max(k - 1, 1), 2 * total**2 / noise if noise > 0 else float(k)


def _hardly_wrong(right: Floats, below: Floats) -> bool:
    return int((below > right).sum()) < _FEW_MISTAKES


def _worth_of_uncertain(spans: Floats, probability: Floats, far: float) -> float:
    """As many documents give the whole the low end that it has if those not certain to be drawn may be wrong.

    With the part φ of the whole, and worth m documents, they may lack φ·z² / (m + z²) of it though none has a mistake
    (Wilson); z is ``far``.
    """
    whole, uncertain = spans / probability, probability < 1 - _CERTAIN
    part = float(whole[uncertain].sum() / whole.sum())
    documents = max(_as_many_alike((1 / probability - 1) * spans), 1.0)
    return (documents + far**2) / max(part, _TINY) - far**2


def _as_many_alike(weight: Floats) -> float:
    """As many documents of one weight tell as much as these (Kish)."""
    return float(weight.sum()) ** 2 / max(float((weight**2).sum()), _TINY)


def lower_bound(right: Floats, below: Floats, probability: Floats, error: float) -> float:
    """A share is less than this with a probability of no more than ``error``: Clopper and Pearson's bound.

    It is for as many independent spans as the sample is worth, with the allowance for a variance that is estimated
    (Korn and Graubard 1998, Survey Methodology 24); for as many documents where fewer than five have a mistake. A
    bound by betting (Waudby-Smith and Ramdas 2024) needs no such rule, but 50 documents show hardly anything by it.

    >>> bool(np.isclose(lower_bound(np.ones(22), np.ones(22), np.full(22, 0.1), 0.1), 0.1 ** (1 / 22)))
    True
    """
    from scipy.stats import beta, norm, t

    inside = below > 0
    right, below, weight = right[inside], below[inside], 1 / probability[inside]
    if not right.any():
        return 0.0
    total, k = float((weight * below).sum()), len(below)
    share = float((weight * right).sum()) / total
    variance, freedom = _spread((weight * (right - share * below)) ** 2, k)
    student = float(norm.ppf(error) / t.ppf(error, max(min(freedom, k - 1), _LEAST_FREEDOM)))
    worth = share * (1 - share) * total**2 / max(variance, _CERTAIN) * student**2
    if _hardly_wrong(right, below):
        documents = _as_many_alike(weight * below)
        worth = min(worth, documents) if share < 1 else documents
    return float(beta.ppf(error, worth * share, worth * (1 - share) + 1))
