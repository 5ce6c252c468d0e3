"""The calibration of confidence: how far the probabilities given out can be trusted.

Calibrations are fitted in :mod:`quorate.choose.calibrate`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["AS_STATED", "EDGE", "Calibration", "log_odds", "probability_of"]


Floats = NDArray[np.float64]
EDGE = 1e-6  # probabilities are kept this far from 0 and 1


class Calibration(NamedTuple):
    """Probabilities of sequences are raised to ``sharpness``; those of spans become ceiling·σ(shift + slope·logit p).

    Where the evidence is spans there is one power, ``span_sharpness``, for everything, and nothing else.

    >>> Calibration(shift=-1.0).spans(np.array([0.5])).round(2)
    array([0.27])
    """

    sharpness: float = 1.0
    shift: float = 0.0
    slope: float = 1.0
    ceiling: float = 1.0
    span_sharpness: float = 1.0

    def spans(self, probability: Floats) -> Floats:
        """The probability that a span is right, from the one that the model states."""
        if (self.shift, self.slope, self.ceiling) == (0.0, 1.0, 1.0):
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
