"""The calibration of confidence: exponents of the probabilities that are given out, and what checked documents say.

The exponents are fitted in :mod:`quorate.model.calibrate`, the correction in :mod:`quorate.model.checked`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from quorate.model.correction import Correction


class Calibration(NamedTuple):
    """Probabilities of the token model are raised to ``tokens``, those of sets of spans to ``spans``.

    Where documents were checked, their ``correction`` stands in place of the exponent of spans. ``matched`` describes
    the crowd: the share of consensus spans that held-out annotators marked just so; ``None`` if nobody was held out.

    >>> Calibration().tokens
    1.0
    """

    tokens: float = 1.0
    spans: float = 1.0
    correction: Correction | None = None
    matched: float | None = None

    @property
    def of_sets(self) -> float:
        """The power that probabilities of sets of spans are raised to."""
        return self.spans if self.correction is None else 1.0

    def plain(self) -> dict[str, Any]:
        """As values of JSON."""
        found = {"tokens": self.tokens, "spans": self.spans, "matched": self.matched}
        return found if self.correction is None else {**found, "correction": self.correction.plain()}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """From values of JSON; ``ValueError`` and its like if they are none of a calibration."""
        correction = plain.get("correction")
        tokens, spans, matched = float(plain["tokens"]), float(plain["spans"]), plain.get("matched")
        if not all(map(math.isfinite, (tokens, spans, matched or 0.0))):
            raise ValueError("the calibration holds what is no number")
        return cls(tokens, spans, None if correction is None else Correction.of(correction), matched)


AS_STATED = Calibration()
"""No calibration: probabilities as the model states them."""
