"""What a consensus expects of itself, by its own probabilities: tallies of spans, and scores made of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import TagSet
from quorate.model.consensus_spans import consensus_spans
from quorate.model.engines.protocol import Decoded

Floats = NDArray[np.float64]


class SpanTallies(NamedTuple):
    """Of every document ``[D]`` as expected: spans given, those of them that are right, and true spans.

    >>> SpanTallies(*np.ones((3, 1))).true
    array([1.])
    """

    given: Floats
    found: Floats
    true: Floats


def span_tallies(
    decoded: Decoded, posterior: Floats, tagset: TagSet, doc_start: NDArray[np.int64], sure: Floats
) -> SpanTallies:
    """The tallies of a consensus whose spans are right with probability ``sure``.

    How many spans a document truly has is expected by the span model or, without one, from labels that open a span in
    the ``posterior`` ``[N, J]``. In the plain scheme every token is a span.
    """
    spans, D = consensus_spans(decoded, tagset), len(doc_start) - 1
    document = np.searchsorted(doc_start, spans.start, side="right") - 1
    given, found = (
        np.bincount(document, weights, minlength=D).astype(np.float64) for weights in (np.ones(len(document)), sure)
    )
    if len(decoded.expected_spans):
        return SpanTallies(given, found, decoded.expected_spans)
    if tagset.outside is None or not tagset.opens.any():  # then spans that were missed are not seen
        return SpanTallies(given, found, given)
    opening = np.concatenate([[0.0], np.cumsum(posterior[:, tagset.opens].sum(axis=1))])
    return SpanTallies(given, found, np.diff(opening[doc_start]))


class Expected(NamedTuple):
    """What a consensus expects of itself, by the probabilities that it gives out.

    A dial or a stopping rule goes by these figures, which nobody has checked.

    >>> Expected(0.85, 0.8, 0.824).precision
    0.85
    """

    precision: float
    recall: float
    f1: float


def expected_scores(tallies: SpanTallies) -> Expected:
    """Expected scores from tallies of spans.

    >>> two = np.array([2.0])
    >>> expected_scores(SpanTallies(two, 0.8 * two, two)).precision
    0.8
    """
    precision, recall = _ratio(tallies.found, tallies.given), min(_ratio(tallies.found, tallies.true), 1.0)
    return Expected(precision, recall, _ratio(2 * tallies.found, tallies.given + tallies.true))


def _ratio(above: Floats, below: Floats) -> float:
    return float(above.sum()) / max(float(below.sum()), 1e-9)
