"""What checked documents say about the confidence of spans, beyond what agreement can: a correction with few weights.

Annotators share mistakes, and no agreement shows those. Where the truth of some documents is known, the probability p
that a fit without it states for each candidate is corrected by a logistic regression,

    logit p' = logit p + Σ_f w_f · x_f,   w_f ~ N(0, 1),

with features x that tell how the candidate came about (:func:`features`). It is learned in
:mod:`quorate.model.checked`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from quorate.model.candidates import Candidates

Floats = NDArray[np.float64]
FEATURES = ("all", "confidence", "votes", "alone", "long")
"""The features by name: all spans, the confidence stated, the share of votes, one annotator alone, several tokens."""
LEVEL = 0.9
"""How often the interval of F1 holds it, for documents drawn alike."""
_SUREST = 1 - 1e-4  # of a probability that is corrected


def features(candidates: Candidates, stated: Floats) -> Floats:
    """``[C, F]`` The features, scaled for one common prior.

    ``all``: 1. ``confidence``: half of logit p. ``votes``: twice the share of votes for just this span, from −1 to 1.
    ``alone``: whether one annotator at most marked it, of several who saw it. ``long``: 2 if it has several tokens.
    """
    alone = (candidates.marked <= 1) & (candidates.seen >= 2)
    long = candidates.end - candidates.start > 1
    columns = [np.ones(len(stated)), _log_odds(stated) / 2, 2 * candidates.votes() - 1, alone, 2.0 * long]
    return np.stack(columns, axis=1).astype(np.float64)


def _log_odds(probability: Floats) -> Floats:
    p = np.clip(probability, 1 - _SUREST, _SUREST)
    return np.asarray(np.log(p) - np.log1p(-p))


class KindOfSpan(NamedTuple):
    """How likely spans of a ``kind`` are to be right, in the mean: as ``stated`` without a check, and ``corrected``.

    Kinds are ``alone`` (marked by one annotator of several), ``majority``, ``single`` (one token) and ``several``.
    """

    kind: str
    stated: float
    corrected: float


class Correction(NamedTuple):
    """A correction learned from ``documents``: ``weights [F]`` of the features, and how much no candidate covers.

    ``missed`` is how many true spans a token has that are no candidates. Spans are given out by corrected
    probabilities if that ``chooses`` better. ``f1`` is that of the checked documents, each predicted from the others,
    with its interval for documents drawn alike. ``kinds`` are what the correction does to some kinds of spans.
    """

    documents: int
    weights: tuple[float, ...]
    missed: float
    chooses: bool
    f1: tuple[float, float, float]
    kinds: tuple[KindOfSpan, ...] = ()

    def log_odds(self, candidates: Candidates, stated: Floats) -> Floats:
        """``[C]`` What is added to the log odds of each candidate."""
        return np.asarray(features(candidates, stated) @ np.array(self.weights))

    def plain(self) -> dict[str, Any]:
        """As values of JSON."""
        kinds = [one._asdict() for one in self.kinds]
        weights = dict(zip(FEATURES, self.weights, strict=True))
        return {**self._asdict(), "weights": weights, "f1": list(self.f1), "kinds": kinds}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """From values of JSON; ``ValueError`` and its like if they are none of a correction."""
        weights = tuple(float(plain["weights"][name]) for name in FEATURES)
        value, low, high = map(float, plain["f1"])
        made = cls(
            int(plain["documents"]),
            weights,
            float(plain["missed"]),
            bool(plain["chooses"]),
            (value, low, high),
            tuple(KindOfSpan(**one) for one in plain["kinds"]),
        )
        if not np.isfinite([*weights, made.missed, *made.f1]).all():
            raise ValueError("the correction by checked documents holds what is no number")
        return made


def corrected(probability: Floats, log_odds: Floats) -> Floats:
    """Probabilities with so much added to their log odds."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -_log_odds(probability) - log_odds)))
