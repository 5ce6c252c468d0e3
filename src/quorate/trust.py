"""How far the numbers given out can be trusted: calibration by hidden annotators, and a certificate for a consensus.

Two things are fitted, without gold. The *sharpness* of all probabilities: the power at which the consensus of the rest
best predicts what hidden annotators said, token by token, through one confusion matrix for everybody. And the *span
map*: hidden annotators mark a true span as often as their habit says, so how often they confirm a consensus span of
some stated probability says how often such a span is right. Mistakes that everybody shares stay unseen: what is usual
of them on crowds with gold is taken off, and the certificate's interval leaves room for more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.heldout import Agreement, Hidden
from quorate.infer.engine import Decoded

__all__ = ["AS_STATED", "Calibration", "Certificate", "certify", "fit_sharpness", "fit_span_map"]

Floats = NDArray[np.float64]

_EDGE = 1e-6  # probabilities nearer to 0 or 1 than this are told no further apart
_LEAST_SHARP, _MOST_SHARP = 0.2, 1.0
_EM_PASSES = 8
# Habits are measured on spans that two others marked, and some of those are wrong together: true spans are confirmed
# more often. How much more cannot be told apart from how sure to be; this (on a log scale) is so on crowds with gold.
_HABIT_GAIN, _HABIT_SPREAD = 0.24, 0.05
# Of the spans that hidden annotators would confirm, this share is wrong all the same: 6 and -1 points on the dev splits
# of two real crowds. F1 beyond what the probabilities allow for, by the crowds in docs/accuracy.md: real ones share
# mistakes, simulated ones share fewer than the gain of habits assumes.
_SHARED_MISTAKES = 0.03
_UNSEEN_BELOW, _UNSEEN_ABOVE = 0.08, 0.04


class Calibration(NamedTuple):
    """Probabilities of sequences are raised to ``sharpness``; those of spans become ceiling·σ(shift + slope·logit p).

    >>> Calibration(shift=-1.0).spans(np.array([0.5])).round(2)
    array([0.27])
    """

    sharpness: float = 1.0
    shift: float = 0.0
    slope: float = 1.0
    ceiling: float = 1.0

    def spans(self, probability: Floats) -> Floats:
        """The probability that a span is right, from the one that the model states."""
        if self == AS_STATED:
            return probability
        return self.ceiling * _probability(self.shift + self.slope * _log_odds(probability))


def _log_odds(probability: Floats) -> Floats:
    p = np.clip(probability, _EDGE, 1 - _EDGE)
    return np.asarray(np.log(p) - np.log1p(-p))


def _probability(log_odds: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(np.minimum(-log_odds, 700.0))))  # beyond that, exp overflows


AS_STATED = Calibration()
"""No calibration: probabilities as the model states them."""


def fit_sharpness(hidden: Sequence[Hidden], decode: Callable[[float], Sequence[Decoded]]) -> float:
    """The power at which a consensus on the rest predicts the hidden labels best; ``decode`` gives it for a power.

    There may be several draws of hidden annotators, and then a consensus for each.
    """

    from scipy.optimize import minimize_scalar  # slow to load, and needed only where settings are chosen

    labels = range(len(hidden[0].sample.tagset.labels))
    tokens = [[one.token[one.label == label] for one in hidden] for label in labels]

    def loss(log_power: float) -> float:
        posteriors = [decoded.posterior for decoded in decode(float(np.exp(log_power)))]
        given = [[posterior[at] for posterior, at in zip(posteriors, here, strict=True)] for here in tokens]
        return -_log_likelihood([np.ascontiguousarray(np.concatenate(here).T) for here in given])

    found = minimize_scalar(
        loss,
        bounds=(np.log(_LEAST_SHARP), np.log(_MOST_SHARP)),
        method="bounded",
        options={"maxiter": 7, "xatol": 0.03},
    )
    return float(np.exp(found.x))


def _log_likelihood(posteriors: Sequence[Floats]) -> float:
    """Mean of ln Σ_j p_j·M[j, label], with the confusion matrix M that makes it greatest (by EM).

    For each label there are ``[J, n]`` the posteriors of the n tokens that were given it.
    """
    share = np.stack([here.sum(axis=1) for here in posteriors], axis=1)
    totals: list[Floats] = []
    for _ in range(_EM_PASSES):
        matrix = share + 0.1
        matrix /= matrix.sum(axis=1, keepdims=True)
        totals = [np.einsum("j,jn->n", column, here) for column, here in zip(matrix.T, posteriors, strict=True)]
        right = [np.einsum("jn,n->j", here, 1.0 / total) for here, total in zip(posteriors, totals, strict=True)]
        share = matrix * np.stack(right, axis=1)
    return float(np.log(np.concatenate(totals)).mean())


def fit_span_map(agreement: Agreement, probability: Floats) -> tuple[float, float, float]:
    """Shift, slope and ceiling of the span map: ``probability`` is what the model states of ``agreement.found``.

    A span is confirmed with probability q·habit·r: q of the map, one r for all. The likelihood has a weak prior for the
    map (do nothing) and a strong one for r, which only confident spans can tell from q.
    """
    from scipy.optimize import minimize

    x = _log_odds(probability)
    hit = agreement.matched

    def loss(parameters: Floats) -> float:
        shift, log_slope, log_gain = parameters
        right = _probability(shift + np.exp(log_slope) * x) * agreement.expected * np.exp(log_gain)
        confirmed = np.clip(right, _EDGE, 1 - _EDGE)
        prior = (shift / 2) ** 2 + log_slope**2 + ((log_gain - _HABIT_GAIN) / _HABIT_SPREAD) ** 2
        return float(prior / 2 - np.where(hit, np.log(confirmed), np.log1p(-confirmed)).sum())

    begin = np.array([0.0, 0.0, _HABIT_GAIN])
    simplex = begin + np.vstack([np.zeros(3), np.diag([0.5, 0.5, _HABIT_SPREAD])])
    found = minimize(
        loss, begin, method="Nelder-Mead", options={"initial_simplex": simplex, "maxiter": 400, "fatol": 0.01}
    )
    return float(found.x[0]), float(np.exp(found.x[1])), 1 - _SHARED_MISTAKES


class Certificate(NamedTuple):
    """What is expected of a consensus, from its own probabilities: no gold is used.

    ``low`` to ``high`` holds what follows from probabilities as stated and as calibrated, with chance in the documents
    and room for what annotations cannot show. ``calibrated`` says whether hidden annotators were asked.

    >>> Certificate(0.85, 0.8, 0.82, 0.78, 0.86, True).f1
    0.82
    """

    precision: float
    recall: float
    f1: float
    low: float
    high: float
    calibrated: bool

    def __str__(self) -> str:
        return f"{100 * self.f1:.1f} ({100 * self.low:.1f} to {100 * self.high:.1f})"


def certify(
    document: NDArray[np.int64], stated: Floats, calibration: Calibration, sharp: Floats, blunt: Floats
) -> Certificate:
    """Expected scores from spans: the ``document`` of each, and its probability as ``stated``.

    How many spans a document truly has is expected from where labels say that one begins: ``sharp [D]`` by what the
    model states, ``blunt [D]`` after calibration. The truth lies between, as a blunt probability is spread thinly over
    places where nothing is.

    >>> certify(np.array([0, 0]), np.array([0.9, 0.7]), AS_STATED, np.array([2.0]), np.array([2.0])).precision
    0.8
    """
    D = len(sharp)
    given, found, found_stated = (
        np.bincount(document, weights, minlength=D).astype(np.float64)
        for weights in (np.ones(len(document)), calibration.spans(stated), stated)
    )
    true = (sharp + blunt) / 2
    f1, error = _ratio(2 * found, given + true)
    others = [_ratio(2 * hits, given + count)[0] for hits in (found, found_stated) for count in (sharp, blunt)]
    low = min(f1, *others) - 1.96 * error - _UNSEEN_BELOW
    high = max(f1, *others) + 1.96 * error + _UNSEEN_ABOVE
    precision, recall = _ratio(found, given)[0], min(_ratio(found, true)[0], 1.0)
    return Certificate(precision, recall, f1, max(low, 0.0), min(high, 1.0), calibration != AS_STATED)


def _ratio(above: Floats, below: Floats) -> tuple[float, float]:
    """Σ above / Σ below, and its standard error over documents."""
    total = max(float(below.sum()), 1e-9)
    value = float(above.sum()) / total
    return value, float(np.sqrt(((above - value * below) ** 2).sum())) / total
