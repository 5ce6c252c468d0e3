"""What F1 is expected of a consensus, from its own probabilities: tallies of spans, and the certificate made of them.

Mistakes that everybody shares stay unseen by a calibration: the certificate's interval leaves room for them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import TagSet
from quorate.infer.engines.protocol import Decoded
from quorate.result.calibration import Calibration
from quorate.result.spans import consensus_spans

__all__ = ["Certificate", "SpanTallies", "certify", "span_tallies"]


Floats = NDArray[np.float64]


# F1 beyond what the probabilities allow for, by the crowds in docs/accuracy.md: real ones share mistakes, simulated
# ones share fewer than the gain of habits assumes.
_UNSEEN_BELOW, _UNSEEN_ABOVE = 0.08, 0.04


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
    """The tallies of a consensus whose spans are told to be right with probability ``sure``.

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


def certify(tallies: SpanTallies, *, calibrated: bool) -> Certificate:
    """Expected scores from tallies of spans.

    >>> two = np.array([2.0])
    >>> certify(SpanTallies(two, 0.8 * two, 0.8 * two, two, two), calibrated=False).precision
    0.8
    """
    given, found, found_stated, sharp, blunt = tallies
    f1, error = _ratio(2 * found, given + tallies.true)
    others = [_ratio(2 * hits, given + count)[0] for hits in (found, found_stated) for count in (sharp, blunt)]
    low = min(f1, *others) - 1.96 * error - _UNSEEN_BELOW
    high = max(f1, *others) + 1.96 * error + _UNSEEN_ABOVE
    precision, recall = _ratio(found, given)[0], min(_ratio(found, tallies.true)[0], 1.0)
    return Certificate(precision, recall, f1, max(low, 0.0), min(high, 1.0), calibrated)


def _ratio(above: Floats, below: Floats) -> tuple[float, float]:
    """Σ above / Σ below, and its standard error over documents."""
    total = max(float(below.sum()), 1e-9)
    value = float(above.sum()) / total
    return value, float(np.sqrt(((above - value * below) ** 2).sum())) / total
