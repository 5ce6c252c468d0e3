"""The calibration of confidence: exponents of the probabilities that are given out.

They are fitted in :mod:`quorate.model.calibrate`.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["AS_STATED", "Calibration"]


class Calibration(NamedTuple):
    """Probabilities of the token model are raised to ``tokens``, those of sets of spans to ``spans``.

    >>> Calibration().tokens
    1.0
    """

    tokens: float = 1.0
    spans: float = 1.0


AS_STATED = Calibration()
"""No calibration: probabilities as the model states them."""
