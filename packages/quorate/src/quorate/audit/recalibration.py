"""Probabilities corrected by an audit: of spans, of tokens in and outside of spans, and of whole documents.

Each kind p becomes σ(shift + slope·logit p). The two numbers maximise the likelihood of what was seen in the sample,
every document for 1/π of them, with a prior that leaves things as they are: with few documents little changes. Doubt
outside of spans is what may have been missed, so recall is corrected too. Whether anything was off beyond chance is a
test of its own, of the line that changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.spans import Span
from quorate.formats.json_lines import DIGITS

Floats = NDArray[np.float64]
EDGE = 1e-6  # probabilities are kept this far from 0 and 1
# Of the prior: odds change by a factor of 1.6, the slope by one of 1.3. With twice as much, 50 documents make what was
# right before (NER, dev) worse than they found it; with less, what was wrong (rules of CoNLL, dev) is hardly mended.
_SHIFT_SPREAD, _SLOPE_SPREAD = 0.5, 0.25
_EDGE = 1e-6  # probabilities are kept this far from 0 and 1


def log_odds(probability: Floats) -> Floats:
    """ln p / (1 − p), of probabilities that are not quite 0 or 1."""
    p = np.clip(probability, EDGE, 1 - EDGE)
    return np.asarray(np.log(p) - np.log1p(-p))


def probability_of(log_odds: Floats) -> Floats:
    """The probability with these log odds."""
    return np.asarray(1.0 / (1.0 + np.exp(np.minimum(-log_odds, 700.0))))  # beyond that, exp overflows


class Line(NamedTuple):
    """A line in log odds.

    >>> Line(-1.0, 1.0).of(np.array([0.5])).round(2)
    array([0.27])
    """

    shift: float = 0.0
    slope: float = 1.0

    def of(self, probability: Floats) -> Floats:
        """The corrected probability; a consensus that is audited holds nothing that was known."""
        return _probability_of(self.shift + self.slope * _log_odds(probability))


class OffBeyondChance(NamedTuple):
    """Of each kind of probability, whether it was off by more than chance.

    >>> OffBeyondChance(spans=True).names
    ['spans']
    """

    spans: bool = False
    inside: bool = False
    outside: bool = False
    documents: bool = False

    @property
    def names(self) -> list[str]:
        """Of which kinds, in words."""
        words = {"inside": "tokens in spans", "outside": "tokens outside of spans"}
        return [words.get(name, name) for name, off in self._asdict().items() if off]


class Recalibration(NamedTuple):
    """The line of each kind of probability.

    >>> Recalibration().spans.of(np.array([0.25]))
    array([0.25])
    """

    spans: Line = Line()
    inside: Line = Line()
    outside: Line = Line()
    documents: Line = Line()


def fit_line(probability: Floats, right: NDArray[np.bool_], weight: Floats) -> Line:
    """The line that the outcomes bear out, drawn towards none."""
    from scipy.optimize import minimize

    x = _log_odds(probability)

    def loss(line: Floats) -> float:
        p = np.clip(_probability_of(line[0] + np.exp(line[1]) * x), _EDGE, 1 - _EDGE)
        prior = (line[0] / _SHIFT_SPREAD) ** 2 + (line[1] / _SLOPE_SPREAD) ** 2
        return float(prior / 2 - (weight * np.where(right, np.log(p), np.log1p(-p))).sum())

    found = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-4})
    return Line(float(found.x[0]), float(np.exp(found.x[1])))


def beyond_chance(
    probability: Floats, right: NDArray[np.bool_], weight: Floats, document: NDArray[np.int64], confidence: float = 0.9
) -> bool:
    """Whether outcomes differ from their probabilities by more than chance: a score test that allows for documents.

    Each outcome adds weight·(right − p)·(1, logit p). If nothing is off the sum is nought but for chance; its variance
    is that of outcomes that come true as often as stated, each by itself, and as many times larger as those of a
    document err together, by how far the sums of documents spread.

    >>> p, document = np.full(200, 0.9), np.arange(200)
    >>> [beyond_chance(p, np.arange(200) < right, np.ones(200), document) for right in (178, 140)]
    [False, True]
    """
    from scipy.stats import f

    names, place = np.unique(document, return_inverse=True)
    n, directions = len(names), np.column_stack([np.ones(len(probability)), _log_odds(probability)])
    each = (weight * (right - probability))[:, np.newaxis] * directions
    stated = (weight**2 * probability * (1 - probability))[:, np.newaxis] * directions
    stated_inverse = np.linalg.pinv(directions.T @ stated, rcond=1e-9, hermitian=True)
    k = int(np.linalg.matrix_rank(stated_inverse))  # one where all are equally sure
    if not k or n <= k:
        return False
    sums = np.column_stack([np.bincount(place, column, minlength=n) for column in each.T])
    together = max(float(np.trace(stated_inverse @ (sums.T @ sums))) / k, 1.0)
    total = sums.sum(axis=0)
    return float(total @ stated_inverse @ total) / together / k > float(f.ppf(confidence, k, n - k))


def recalibrated(
    lines: Recalibration, confidence: float, tokens: Floats, spans: Sequence[Span]
) -> tuple[float, Floats, list[Span]]:
    """A document's probabilities, corrected and coherent: nothing is surer than what it contains."""
    inside = np.zeros(len(tokens), np.bool_)
    for span in spans:
        inside[span.tokens] = True
    sure = np.where(inside, lines.inside.of(tokens), lines.outside.of(tokens))
    mapped = lines.spans.of(np.array([span.sure for span in spans], np.float64))
    least: Callable[[Span], float] = lambda span: float(sure[span.tokens].min(initial=1.0))  # noqa: E731
    mapped_spans = [span._replace(confidence=min(float(p), least(span))) for span, p in zip(spans, mapped, strict=True)]
    whole = float(lines.documents.of(np.array([confidence]))[0])
    return min([whole, float(sure.min(initial=1.0)), *(span.sure for span in mapped_spans)]), sure, mapped_spans


def recalibrated_layers(lines: Recalibration, line: dict[str, Any], spans: Sequence[Span]) -> dict[str, Any]:
    """A line of a consensus in layers with corrected probabilities: those of each layer are coherent, and multiply."""
    layers, mapped_spans, whole = {}, [dict[str, Any]()] * len(spans), 1.0
    for name, layer in line["layers"].items():
        own = [number for number, span in enumerate(spans) if span.layer == name]
        tokens = np.asarray(layer["token_confidence"], np.float64)
        sure, by_token, found = recalibrated(lines, layer["confidence"], tokens, [spans[number] for number in own])
        kept = {
            key: value
            for key, value in layer.items()
            if key != "probabilities" and (key != "labels" or "shares" in layer)
        }
        layers[name] = kept | {"confidence": sure, "token_confidence": np.round(by_token, DIGITS).tolist()}
        for number, span in zip(own, found, strict=True):
            mapped_spans[number] = line["spans"][number] | {"confidence": span.sure}
        whole *= sure
    return line | {"confidence": whole, "layers": layers, "spans": mapped_spans}


def _log_odds(probability: Floats) -> Floats:
    p = np.clip(probability, _EDGE, 1 - _EDGE)
    return np.asarray(np.log(p) - np.log1p(-p))


def _probability_of(log_odds: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(np.minimum(-log_odds, 700.0))))  # beyond that, exp overflows
