"""Is method A better than B, or lucky? Two answers over documents: a signed-rank test, and bootstrap intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.errors import InputError, SettingsError
from quorate.evaluate.metrics.spans import Tallies, f1_of

Floats = NDArray[np.float64]

_DIGITS = 12  # scores that differ by less are equal: the same F1 may come from other counts, rounded otherwise
_BLOCK = 1 << 20  # documents drawn at once, which bounds memory


class Wilcoxon(NamedTuple):
    """A two-tailed signed-rank test: ``n`` documents differ, ``ties`` do not.

    ``statistic`` is the smaller of the two rank sums; ``mean_difference`` is over all documents, ties included.

    >>> Wilcoxon(0.0, 0.03, 6, 2, 0.1).n
    6
    """

    statistic: float
    p_value: float
    n: int
    ties: int
    mean_difference: float


class Interval(NamedTuple):
    """An estimate, and the interval that holds the middle ``level`` of the bootstrap's values.

    >>> Interval(0.7, 0.65, 0.75, 0.95).low
    0.65
    """

    estimate: float
    low: float
    high: float
    level: float


def wilcoxon(first: ArrayLike, second: ArrayLike) -> Wilcoxon:
    """Test whether two methods' scores of the same documents differ (Wilcoxon, 1945), two-tailed.

    Documents with equal scores are dropped; where all are equal, p is 1. :meth:`Tallies.f1` gives such scores, 1 for a
    document where neither side has a span. For up to 50 documents p is exact if no two differences are of the same
    size, and else from the normal approximation, corrected for ties.

    >>> wilcoxon([0.9, 0.8, 0.7, 0.9, 0.6, 1.0], [0.8, 0.6, 0.4, 0.5, 0.1, 1.0])
    Wilcoxon(statistic=0.0, p_value=0.0625, n=5, ties=1, mean_difference=0.25)
    """
    one, other = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if one.shape != other.shape or one.ndim != 1:
        raise InputError(f"{one.size} scores against {other.size} (give both methods' scores of the same documents)")
    if not one.size:
        raise InputError("no document to compare (choose documents that have gold)")
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise InputError("a score is not a number, so the methods cannot be compared")
    from scipy import stats  # slow to load, and no other score needs it

    difference = np.round(one - other, _DIGITS)
    mean = float(difference.mean())
    differing = difference[difference != 0]
    ties = one.size - differing.size
    if not differing.size:
        return Wilcoxon(0.0, 1.0, 0, ties, 0.0)
    exact = differing.size <= 50 and len(np.unique(np.abs(differing))) == differing.size
    test = stats.wilcoxon(differing, method="exact" if exact else "approx")
    return Wilcoxon(float(test.statistic), float(test.pvalue), differing.size, ties, mean)


def bootstrap_f1(
    tallies: Tallies, *, level: float = 0.95, resamples: int = 2000, rng: np.random.Generator | None = None
) -> Interval:
    """A percentile interval of F1, by drawing documents with replacement (Efron, 1979).

    Without ``rng`` a fixed seed is used, so that the same call gives the same interval.

    >>> from quorate.evaluate.metrics.spans import strict_tallies
    >>> bootstrap_f1(strict_tallies([["B-X"]] * 3, [["B-X"]] * 3))
    Interval(estimate=1.0, low=1.0, high=1.0, level=0.95)
    """
    values = _resampled(np.stack(tallies, axis=1), resamples, rng)
    return _interval(tallies.total().f1, f1_of(*values.T), level)


def bootstrap_difference(
    first: Tallies,
    second: Tallies,
    *,
    level: float = 0.95,
    resamples: int = 2000,
    rng: np.random.Generator | None = None,
) -> Interval:
    """A percentile interval of the first method's F1 less the second's, on the same drawn documents.

    >>> from quorate.evaluate.metrics.spans import strict_tallies
    >>> gold = [["B-X"]] * 3
    >>> bootstrap_difference(strict_tallies(gold, gold), strict_tallies([["O"]] * 3, gold)).low
    1.0
    """
    if len(first.gold) != len(second.gold) or not np.array_equal(first.gold, second.gold):
        raise InputError("the two methods were not scored on the same documents (give both the same gold)")
    values = _resampled(np.stack([*first, *second], axis=1), resamples, rng)
    return _interval(first.total().f1 - second.total().f1, f1_of(*values[:, :4].T) - f1_of(*values[:, 4:].T), level)


def _resampled(rows: Floats, resamples: int, rng: np.random.Generator | None) -> Floats:
    """``[R, C]`` Column sums of rows ``[D, C]`` drawn with replacement, D of them each time."""
    if resamples < 1:
        raise SettingsError(f"resamples must be 1 or more, not {resamples}")
    generator = rng or np.random.default_rng(0)
    D = len(rows)
    step = max(1, _BLOCK // max(D, 1))
    sums = []
    for done in range(0, resamples, step):
        n = min(step, resamples - done)
        drawn = generator.integers(D, size=(n, D)) + D * np.arange(n)[:, None]
        times = np.bincount(drawn.ravel(), minlength=n * D).reshape(n, D)
        sums.append(times @ rows)
    return np.concatenate(sums)


def _interval(estimate: float, values: Floats, level: float) -> Interval:
    if not 0 < level < 1:
        raise SettingsError(f"level must lie between 0 and 1, not {level}")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(estimate, float(low), float(high), level)
