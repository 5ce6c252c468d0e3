"""What a consensus expects of its documents, and so the result of an audit before anybody has checked anything."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from quorate.audit.claims import Claims
from quorate.audit.design import balance, doubt_of_spans
from quorate.audit.estimate import F1, Estimate, Predicted, Reach, Seen, ratio_of

__all__ = ["predicted", "result_if_as_sure_as_stated", "result_without_mistakes"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Of wrong spans: there is a true one in other bounds, or of another type. With a half, the width that is promised is
# 0.97 to 1.17 times that of results on four simulated crowds; with none it was down to 0.8, with all up to 1.25.
_IN_OTHER_BOUNDS = 0.5
_DRAWS = 50  # of what a person may find: the mean width of their intervals moves by a few per cent with others


def predicted(claims: Claims, n: int, *, kind: str | None = None, is_balanced: bool) -> Predicted:
    """What the consensus expects of every document, all spans or those of a ``kind``; ``n`` documents are checked.

    >>> import quorate
    >>> claims = Claims.of(quorate.aggregate(quorate.sample(), "mv"))
    >>> expected = predicted(claims, 40, kind="PER", is_balanced=False)
    >>> bool(expected.given.sum() == (claims.kind == "PER").sum()), bool((expected.right <= expected.given).all())
    (True, True)
    """
    of_kind = np.ones(len(claims.sure)) if kind is None else (claims.kind == kind).astype(np.float64)
    given = claims.summed(of_kind)
    share = 1.0 if kind is None else float(given.sum()) / max(float(claims.given.sum()), 1.0)
    right, doubt = claims.summed(of_kind * claims.sure), doubt_of_spans(claims, of_kind)
    return Predicted(given, right, share * claims.missed, doubt, balance(claims, n) if is_balanced else None)


def result_if_as_sure_as_stated(
    claims: Claims, sample: Integers, probability: Floats, reach: Reach, *, is_balanced: bool
) -> Estimate:
    """F1 with its interval as an audit of the ``sample`` should give it, if confidence is right.

    What a person will find is drawn from the probabilities of the consensus, again and again. The interval is computed
    as that of a result, and the mean of all is given (of F1, that of draws in which there is anything to compare). The
    draws are the same for every plan, whatever its seed: what two plans promise differs by their documents alone.

    >>> import quorate
    >>> from quorate.audit.estimate import once
    >>> claims = Claims.of(quorate.aggregate(quorate.sample(), "mv"))
    >>> sample, probability = np.arange(0, 320, 8), np.full(40, 1 / 8)
    >>> found = result_if_as_sure_as_stated(claims, sample, probability, once(0.9), is_balanced=False)
    >>> 0 < found.low < found.value < found.high < 1
    True
    """
    expected = predicted(claims, len(sample), is_balanced=is_balanced)
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
        found.append(ratio_of(F1, expected, Seen(sample, probability, right, true), reach))
    values, low, high = np.array(found).T
    values = values[~np.isnan(values)]
    return Estimate(float(values.mean()) if len(values) else math.nan, float(low.mean()), float(high.mean()))


def result_without_mistakes(
    claims: Claims, sample: Integers, probability: Floats, reach: Reach, *, is_balanced: bool
) -> Estimate:
    """The same, if the person finds nothing to correct: few documents leave much open even then.

    >>> import quorate
    >>> from quorate.audit.estimate import once
    >>> claims = Claims.of(quorate.aggregate(quorate.sample(), "mv"))
    >>> sample, probability = np.arange(0, 320, 8), np.full(40, 1 / 8)
    >>> found = result_without_mistakes(claims, sample, probability, once(0.9), is_balanced=False)
    >>> found.low < 0.97 < found.value
    True
    """
    given = claims.given[sample]
    expected = predicted(claims, len(sample), is_balanced=is_balanced)
    return ratio_of(F1, expected, Seen(sample, probability, given, given), reach)
