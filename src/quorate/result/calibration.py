"""How far the numbers given out can be trusted: the calibration of confidence, and a certificate for a consensus.

Calibrations are fitted in :mod:`quorate.choose.calibrate`. Mistakes that everybody shares stay unseen there: the
certificate's interval leaves room for them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["AS_STATED", "EDGE", "Calibration", "Certificate", "certify", "log_odds", "probability_of"]


Floats = NDArray[np.float64]
EDGE = 1e-6  # probabilities are kept this far from 0 and 1


# By how much F1 may lie outside the interval that the probabilities give, measured on the crowds in docs/accuracy.md:
# below, as real annotators share mistakes; above, as simulated ones share fewer than the calibration assumes.
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
        return self.ceiling * probability_of(self.shift + self.slope * log_odds(probability))


def log_odds(probability: Floats) -> Floats:
    """ln p / (1 − p), of probabilities that are not quite 0 or 1."""
    p = np.clip(probability, EDGE, 1 - EDGE)
    return np.asarray(np.log(p) - np.log1p(-p))


def probability_of(log_odds: Floats) -> Floats:
    """The probability with these log odds."""
    return np.asarray(1.0 / (1.0 + np.exp(np.minimum(-log_odds, 700.0))))  # beyond that, exp overflows


AS_STATED = Calibration()
"""No calibration: probabilities as the model states them."""


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
