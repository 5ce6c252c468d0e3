"""Which documents a person should check: drawn with probabilities that are known, more often where more may be wrong.

Document d is drawn with a probability π_d proportional to its size,

    x_d² = spans_d + missed_d + floor²,

its spans and those that the consensus expects to have missed: as if each added the same variance. The floor, half of
the mean size, makes sure that every document can be drawn. Documents come in the order of u_d / x_d with u_d uniform
(sequential Poisson sampling; Ohlsson 1998, Journal of Official Statistics 14): the first n of it are a sample of n
documents, whatever n is, so that a sequential plan can be added to. Documents that are certain to be drawn come first
where n is known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.audit.claims import Claims

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# As a share of the mean size. Any value is valid, and changes only how wide intervals are: from 0.5 to 1 by 4 %.
# With none, a crowd in which documents without a span are wrong has them in no sample.
_FLOOR = 0.5


def sizes(claims: Claims) -> Floats:
    """``[D]`` x: how much each document may add to the error of an estimate.

    >>> import quorate
    >>> x = sizes(Claims.of(quorate.aggregate(quorate.sample(), "mv")))
    >>> bool((x > 0).all())
    True
    """
    spans = claims.given + claims.missed
    floor = _FLOOR * max(float(np.sqrt(spans).mean()), 1e-6)
    return np.asarray(np.sqrt(spans + floor**2))


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


def drawing_order(claims: Claims, seed: int, n: int | None = None) -> Integers:
    """All documents, in the order in which a plan of ``n`` draws them; a sequential one has no ``n``.

    Their lots are by ids, consensus, seed and ``n``, whatever the order of a file. A new consensus is drawn from anew:
    otherwise documents that an audit has mended would be drawn again. And a larger plan for one look does not begin
    with a smaller one, to which it would be a second look.
    """
    lot = np.empty(len(claims))
    by_id = np.argsort(np.array([document.id for document in claims.corpus]), kind="stable")
    lot[by_id] = np.random.default_rng([seed, int(claims.digest, 16), n or 0]).random(len(claims))
    x = sizes(claims)
    if n is not None:
        lot[inclusion(x, n) >= 1] = 0
    return np.argsort(lot / x, kind="stable")
