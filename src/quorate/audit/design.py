"""Which documents a person should check: drawn with probabilities that are known, more often where there is more doubt.

The estimate of an audit (:mod:`quorate.audit.estimate`) corrects what the consensus expects of itself by what was seen
in the sample, so its error comes from documents where the two may differ: those with many spans, and with doubt about
them. Document d is drawn with probability π_d proportional to the spread that its residual should have,

    x_d² = 4·Σ q(1 − q) + ½·missed_d + floor²,

over its spans, q the probability of a span drawn a little towards one half, as a consensus may be too sure of itself.
A plan for one look is drawn systematically over strata by confidence and number of spans. A sequential one is drawn in
the order of u_d / x_d with u_d uniform (sequential Poisson sampling): the first k of it are a sample of k documents,
whatever k is, so it can be added to; its probabilities are exact but for documents that should be certain.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.audit.claims import Claims

__all__ = ["doubt_of_spans", "drawing_order", "drawn_at_once", "inclusion", "sizes"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# How far a probability is drawn towards one half, and the least size as a share of the mean one. Any value is valid,
# and changes only how wide intervals are: from 0 to 0.2, and from 0.1 to 0.5, the standard error of F1 moves by less
# than 5 % on the dev and train splits of six crowds (NER, PICO, four sets of rules).
_HEDGE, _FLOOR = 0.05, 0.3
_MOST_SPANS = 4  # that make a stratum of their own


def doubt_of_spans(claims: Claims, weight: Floats | float = 1.0) -> Floats:
    """``[D]`` The variance of how many spans are right, Σ q(1 − q), of probabilities a little less sure than stated."""
    q = (1 - _HEDGE) * claims.sure + _HEDGE / 2
    return claims.summed(weight * q * (1 - q))


def sizes(claims: Claims) -> Floats:
    """``[D]`` x: how much each document may add to the error of an estimate.

    >>> import quorate
    >>> x = sizes(Claims.of(quorate.aggregate(quorate.sample(), "mv")))
    >>> bool((x > 0).all())
    True
    """
    spread = np.sqrt(4 * doubt_of_spans(claims) + claims.missed / 2)
    return np.asarray(np.sqrt(spread**2 + (_FLOOR * max(float(spread.mean()), 1e-6)) ** 2))


def inclusion(x: Floats, n: int) -> Floats:
    """``[D]`` The probability of being among ``n`` drawn, proportional to ``x`` where that is below one.

    >>> inclusion(np.array([8.0, 1.0, 1.0]), 2)
    array([1. , 0.5, 0.5])
    """
    certain = np.zeros(len(x), np.bool_)
    while True:
        rest = ~certain
        left = n - int(certain.sum())
        p = np.where(certain, 1.0, left * x / max(float(x[rest].sum()), 1e-300))
        over = rest & (p >= 1)
        if not over.any():
            return p
        certain |= over


def drawn_at_once(claims: Claims, n: int, seed: int) -> Integers:
    """``n`` documents, in the order to check them in: every stratum is met as often as its probabilities say.

    Documents stand by strata, in each by lot, and every one takes a stretch of a line as long as its probability; n
    points at equal distances, from a random start, fall on those that are drawn. The order in which they are checked is
    by lot.
    """
    rng, lot = _lots(claims, seed, n)
    order = np.lexsort((lot, *_strata(claims)))
    ends = np.cumsum(inclusion(sizes(claims), n)[order])
    points = (np.arange(n) + rng.random()) * ends[-1] / n
    drawn = order[np.minimum(np.searchsorted(ends, points, side="right"), len(order) - 1)]
    return np.asarray(drawn[np.argsort(lot[drawn], kind="stable")])


def drawing_order(claims: Claims, seed: int) -> Integers:
    """All documents, in the order in which a sequential plan draws them."""
    return np.argsort(_lots(claims, seed, 0)[1] / sizes(claims), kind="stable")


def _lots(claims: Claims, seed: int, n: int) -> tuple[np.random.Generator, Floats]:
    """A uniform number for every document, by ids, consensus, seed and size, whatever the order of a file.

    A new consensus is drawn from anew: otherwise documents that an audit has mended would be drawn again. And a larger
    plan for one look does not begin with a smaller one, to which it would be a second look.
    """
    rng = np.random.default_rng([seed, int(claims.digest, 16), n])
    lot = np.empty(len(claims))
    lot[np.argsort(np.array([document.id for document in claims.corpus]), kind="stable")] = rng.random(len(claims))
    return rng, lot


def _strata(claims: Claims) -> tuple[Integers, Integers]:
    """``[D]`` Fifths of how sure the consensus is of a document's spans; and how many there are, up to four."""
    mean = claims.mean_sure
    fifths = np.searchsorted(np.quantile(mean, [0.2, 0.4, 0.6, 0.8]), mean, side="right")
    return np.asarray(fifths), np.minimum(claims.given, _MOST_SPANS).astype(np.int64)
