"""Which documents a person should check: drawn with probabilities that are known, more often where there is more doubt.

The estimate of an audit (:mod:`quorate.audit.estimate`) corrects what the consensus expects of itself by what was seen
in the sample, so its error comes from documents where the two may differ: those with many spans, and with doubt about
them. Document d is drawn with probability π_d proportional to the spread that its residual should have,

    x_d² = 4·Σ q(1 − q) + ½·missed_d + 0.1·words_d + floor²,

over its spans, q the probability of a span drawn a little towards one half, as a consensus may be too sure of itself;
missed_d are spans that the consensus expects to have missed, words_d words that it marks elsewhere and not here.
A plan for one look is balanced (:mod:`quorate.audit.balanced`): spans, by type and length, those that are expected to
be right and missed, and doubt are in the sample, each document for 1/π_d of them, as many as there are in all. A
sequential one is drawn in the order of u_d / x_d with u_d uniform (sequential Poisson sampling): the first k of it are
a sample of k documents, whatever k is, so it can be added to; its probabilities are exact but for documents that
should be certain.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.audit.balanced import balanced_draw
from quorate.audit.claims import Claims
from quorate.audit.estimate import EACH

__all__ = ["balance", "doubt_of_spans", "drawing_order", "drawn_at_once", "inclusion", "sizes", "spread"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# How far a probability is drawn towards one half, what a word counts that is marked elsewhere, and the least size as a
# share of the mean one. Any value is valid, and changes only how wide intervals are: from 0 to 0.2, from 0.05 to 0.2,
# and from 0.2 to 0.5, the standard error of F1 moves by less than 5 % on the dev and train splits of six crowds (NER,
# PICO, four sets of rules).
_HEDGE, _ELSEWHERE, _FLOOR = 0.05, 0.1, 0.3
_MOST_TYPES, _COMMON = 5, 0.05  # types whose spans are balanced, if each has this share of them


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
    return _with_floor(spread(claims) ** 2 + _ELSEWHERE * claims.marked_elsewhere)


def spread(claims: Claims) -> Floats:
    """``[D]`` The standard deviation of a document's error that the consensus itself expects."""
    return np.sqrt(4 * doubt_of_spans(claims) + claims.missed / 2)


def _with_floor(variance: Floats) -> Floats:
    floor = _FLOOR * max(float(np.sqrt(variance).mean()), 1e-6)
    return np.asarray(np.sqrt(variance + floor**2))


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


def balance(claims: Claims, n: int) -> Floats:
    """``[D, q]`` What a sample of ``n`` documents is balanced on, the most important first.

    >>> import quorate
    >>> balance(Claims.of(quorate.aggregate(quorate.sample(), "mv")), 50).shape
    (320, 9)
    """
    long = np.array([len(span.tokens) > 1 for spans in claims.spans for span in spans], np.float64)
    kinds, which = np.unique(claims.kind, return_inverse=True)
    times = np.bincount(which, minlength=len(kinds))
    common = [k for k in np.argsort(-times, kind="stable")[:_MOST_TYPES] if times[k] >= _COMMON * len(which)]
    columns = [
        claims.summed(claims.sure),
        claims.given,
        claims.missed,
        *(claims.summed((which == k).astype(np.float64)) for k in common[1:]),  # the rest are of the first
        claims.summed(long),
        claims.marked_elsewhere,
        doubt_of_spans(claims),
    ]
    return np.column_stack([column for column in columns if column.any()][: n // EACH] or [np.zeros((len(claims), 0))])


def drawn_at_once(claims: Claims, n: int, seed: int) -> Integers:
    """``n`` documents, in the order to check them in: together they are like all documents."""
    rng, lot = _lots(claims, seed, n)
    order = np.argsort(lot, kind="stable")
    by_lot = balanced_draw(inclusion(sizes(claims), n)[order], balance(claims, n)[order], rng.random(len(claims)))
    return order[by_lot]


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
