"""What a consensus expects of its documents, and so the result of an audit before anybody has checked anything."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from quorate.audit.claims import Claims
from quorate.audit.estimate import Estimate, Expected, Reach, Seen, scores_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Of wrong spans: there is a true one in other bounds, or of another type. With a half, the width that is promised is
# 0.97 to 1.17 times that of results on four simulated crowds; with none it was down to 0.8, with all up to 1.25.
_IN_OTHER_BOUNDS = 0.5
_DRAWS = 50  # of what a person may find: the mean width of their intervals moves by a few per cent with others


def expected(claims: Claims, kind: str | None = None) -> Expected:
    """What the consensus expects of every document, of all spans or those of a ``kind``.

    >>> import quorate
    >>> claims = Claims.of(quorate.aggregate(quorate.sample(), "mv"))
    >>> of_kind = expected(claims, "PER")
    >>> bool(of_kind.given.sum() == (claims.kind == "PER").sum()), bool((of_kind.right <= of_kind.given).all())
    (True, True)
    """
    if kind is None:
        return Expected(claims.given, claims.summed(claims.sure))
    of_kind = (claims.kind == kind).astype(np.float64)
    return Expected(claims.summed(of_kind), claims.summed(of_kind * claims.sure))


def result_if_as_sure_as_stated(claims: Claims, sample: Integers, probability: Floats, reach: Reach) -> Estimate:
    """F1 with its interval as an audit of the ``sample`` should give it, if confidence is right.

    What a person will find is drawn from the probabilities of the consensus, again and again. The interval is computed
    as that of a result, and the mean of all is given (of F1, that of draws in which there is anything to compare). The
    draws are the same for every plan, whatever its seed: what two plans promise differs by their documents alone.

    >>> import quorate
    >>> from quorate.audit.estimate import once
    >>> claims = Claims.of(quorate.aggregate(quorate.sample(), "mv"))
    >>> sample, probability = np.arange(0, 320, 8), np.full(40, 1 / 8)
    >>> found = result_if_as_sure_as_stated(claims, sample, probability, once(0.9))
    >>> 0 < found.low < found.value < found.high < 1
    True
    """
    stated = expected(claims)
    place = np.full(len(claims), -1)
    place[sample] = np.arange(len(sample))
    checked = place[claims.document]  # of each span, the place of its document in the sample
    sure, checked = claims.sure[checked >= 0], checked[checked >= 0]
    rng = np.random.default_rng(0)
    found = []
    for _ in range(_DRAWS):
        right = np.bincount(checked, rng.random(len(sure)) < sure, minlength=len(sample)).astype(np.float64)
        wrong = (claims.given[sample] - right).astype(np.int64)
        true = right + rng.binomial(wrong, _IN_OTHER_BOUNDS) + rng.poisson(claims.missed[sample])
        found.append(scores_of(stated, Seen(sample, probability, right, true), reach).f1)
    values, low, high = np.array(found).T
    values = values[~np.isnan(values)]
    return Estimate(float(values.mean()) if len(values) else math.nan, float(low.mean()), float(high.mean()))


def result_without_mistakes(claims: Claims, sample: Integers, probability: Floats, reach: Reach) -> Estimate:
    """The same, if the person finds nothing to correct: few documents leave much open even then.

    >>> import quorate
    >>> from quorate.audit.estimate import once
    >>> claims = Claims.of(quorate.aggregate(quorate.sample(), "mv"))
    >>> sample, probability = np.arange(0, 320, 8), np.full(40, 1 / 8)
    >>> found = result_without_mistakes(claims, sample, probability, once(0.9))
    >>> found.low < 0.97 < found.value
    True
    """
    given = claims.given[sample]
    stated = expected(claims)
    return scores_of(stated, Seen(sample, probability, given, given), reach).f1
