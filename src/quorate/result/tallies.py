"""What a consensus expects of itself, by its own probabilities: tallies of spans, and scores made of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import TagSet
from quorate.infer.engines.protocol import Decoded
from quorate.result.calibration import Calibration
from quorate.result.spans import consensus_spans

__all__ = ["Expected", "SpanTallies", "expected_scores", "span_tallies"]


Floats = NDArray[np.float64]


class SpanTallies(NamedTuple):
    """Of every document ``[D]``: spans given, those expected to be right, as calibrated and as stated, and true spans.

    How many spans a document truly has is expected from where labels say that one begins: ``sharp`` by what the model
    states, ``blunt`` after calibration. The truth lies between, as a blunt probability is spread thinly over places
    where nothing is.

    >>> one = np.array([1.0])
    >>> SpanTallies(one, one, one, 2 * one, 3 * one).true
    array([2.5])
    """

    given: Floats
    found: Floats
    found_stated: Floats
    sharp: Floats
    blunt: Floats

    @property
    def true(self) -> Floats:
        """``[D]`` How many spans there truly are, as expected."""
        return (self.sharp + self.blunt) / 2


def span_tallies(
    decoded: Decoded,
    posterior: Floats,
    tagset: TagSet,
    doc_start: NDArray[np.int64],
    calibration: Calibration,
    sure: Floats,
) -> SpanTallies:
    """The tallies of a consensus whose spans are given out with probability ``sure``.

    ``posterior`` is ``[N, J]``. In the plain scheme every token is a span.
    """
    spans, D = consensus_spans(decoded, tagset), len(doc_start) - 1
    document = np.searchsorted(doc_start, spans.start, side="right") - 1
    plain = tagset.outside is None
    stated = posterior[spans.start, decoded.path] if plain else decoded.span_probability[spans.start]
    given, found, found_stated = (
        np.bincount(document, weights, minlength=D).astype(np.float64)
        for weights in (np.ones(len(document)), sure, stated)
    )
    if len(decoded.expected_spans):
        if len(decoded.stated_spans):
            found_stated = decoded.stated_spans
        return SpanTallies(given, found, found_stated, decoded.expected_spans, decoded.expected_spans)
    if plain or not tagset.opens.any():  # where no label says that a span begins, those that were missed are not seen
        return SpanTallies(given, found, found_stated, given, given)
    sharp = posterior ** (1 / calibration.sharpness)
    sharp /= sharp.sum(axis=1, keepdims=True)
    openings = (np.concatenate([[0.0], np.cumsum(p[:, tagset.opens].sum(axis=1))]) for p in (sharp, posterior))
    return SpanTallies(given, found, found_stated, *(np.diff(total[doc_start]) for total in openings))


class Expected(NamedTuple):
    """What a consensus expects of itself, by the probabilities that it gives out.

    A dial or a stopping rule goes by these figures, which are not checked against anything.

    >>> Expected(0.85, 0.8, 0.824).precision
    0.85
    """

    precision: float
    recall: float
    f1: float


def expected_scores(tallies: SpanTallies) -> Expected:
    """Expected scores from tallies of spans.

    >>> two = np.array([2.0])
    >>> expected_scores(SpanTallies(two, 0.8 * two, 0.8 * two, two, two)).precision
    0.8
    """
    precision, recall = _ratio(tallies.found, tallies.given), min(_ratio(tallies.found, tallies.true), 1.0)
    return Expected(precision, recall, _ratio(2 * tallies.found, tallies.given + tallies.true))


def _ratio(above: Floats, below: Floats) -> float:
    return float(above.sum()) / max(float(below.sum()), 1e-9)
