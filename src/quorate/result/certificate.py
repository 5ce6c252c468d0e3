"""What F1 to expect of a consensus without gold: tallies of spans, and the estimate from agreement made of them.

The estimate rests on probabilities that hidden annotators bear out. What they cannot show, spans that nobody marks and
mistakes that everybody shares, is taken off as it was on crowds with gold, and the interval leaves room for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import TagSet
from quorate.model.engines.protocol import Decoded
from quorate.result.calibration import Calibration
from quorate.result.spans import consensus_spans

__all__ = ["Certificate", "Check", "Expected", "SpanTallies", "certify", "expected_scores", "span_tallies"]


Floats = NDArray[np.float64]


# What is expected, less what is true, in units of the doubt √(F1·(1 − F1)): its mean over crowds, and its spread. What
# nobody marks and what all get wrong lies among what is doubtful, so crowds of any F1 are alike on this scale. On the
# dev splits of NER and PICO, also with three or five annotators left in a document, it was 0.05 to 0.26 (and
# 0.67 once, on a fifth of the documents), mean 0.2; on 35 simulated crowds, whose annotators share nothing, -0.21 to
# 0.24, mean -0.02. A crowd of which nothing is known may be of either sort: the mean is between the two, and the spread
# covers both (benchmarks/agreement.py).
_TOO_HIGH, _ELSEWHERE = 0.09, 0.11
_NINETY_PERCENT = 1.645
_TOO_WIDE = 0.15  # half-width from which on an interval tells next to nothing


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


class Expected(NamedTuple):
    """What a consensus expects of itself, by the probabilities that it gives out.

    These are the figures that a dial or a stopping rule goes by; :class:`Certificate` says how far F1 can be believed.

    >>> Expected(0.85, 0.8, 0.824).precision
    0.85
    """

    precision: float
    recall: float
    f1: float


class Check(NamedTuple):
    """What hidden annotators say of an estimate.

    ``noise`` is its relative standard error over documents and over who was hidden, ``explained`` how much of the
    disagreement the model explains (0 to 1, ``None`` where nobody disagrees). Where agreement can tell nothing,
    ``reason`` says why.

    >>> Check(0.02, 0.4).reason
    ''
    """

    noise: float = 0.0
    explained: float | None = None
    reason: str = ""


class Certificate(NamedTuple):
    """The F1 of a consensus as annotators' agreement lets one estimate it, without gold; all ``None`` if it cannot.

    ``low`` to ``high`` is a 90 % interval: chance in documents, chance in who was hidden, and how far such estimates
    were off on crowds with gold. ``explained`` is how much of the disagreement the model explains, 0 to 1; ``reason``
    why there is no estimate. Agreement cannot show mistakes that everybody shares; ``quorate audit`` can.

    >>> str(Certificate(0.82, 0.76, 0.88, 0.3))
    '82.0 (76.0 to 88.0)'
    >>> Certificate(0.82, 0.76, 0.88, 0.3)
    <Certificate: F1 82.0 (76.0 to 88.0)>
    >>> str(Certificate(reason="hardly any document has three annotators"))
    'none: hardly any document has three annotators'
    """

    f1: float | None = None
    low: float | None = None
    high: float | None = None
    explained: float | None = None
    reason: str = ""

    @property
    def in_words(self) -> str:
        """As every command says it, on the scale from 0 to 100.

        >>> Certificate(0.82, 0.76, 0.88).in_words
        'estimated F1 82.0 (76.0 to 88.0) from agreement'
        >>> Certificate(reason="too few spans to judge by").in_words
        'no estimate of F1: too few spans to judge by'
        """
        return f"estimated F1 {self} from agreement" if self.given else f"no estimate of F1: {self.reason}"

    @property
    def given(self) -> bool:
        """Whether there is an estimate."""
        return self.f1 is not None

    def holds(self, f1: float) -> bool:
        """Whether the interval holds an F1.

        >>> Certificate(0.82, 0.76, 0.88).holds(0.8), Certificate(reason="").holds(0.8)
        (True, False)
        """
        return self.low is not None and self.high is not None and self.low <= f1 <= self.high

    def __repr__(self) -> str:
        return f"<Certificate: F1 {self}>" if self.given else f"<Certificate: {self}>"

    def __str__(self) -> str:
        if self.f1 is None or self.low is None or self.high is None:
            return f"none: {self.reason}"
        return f"{100 * self.f1:.1f} ({100 * self.low:.1f} to {100 * self.high:.1f})"


def expected_scores(tallies: SpanTallies) -> Expected:
    """Expected scores from tallies of spans.

    >>> two = np.array([2.0])
    >>> expected_scores(SpanTallies(two, 0.8 * two, 0.8 * two, two, two)).precision
    0.8
    """
    precision, recall = _ratio(tallies.found, tallies.given)[0], min(_ratio(tallies.found, tallies.true)[0], 1.0)
    return Expected(precision, recall, _ratio(2 * tallies.found, tallies.given + tallies.true)[0])


def certify(tallies: SpanTallies, check: Check) -> Certificate:
    """The estimate from agreement: what is expected, less what such expectations have been too high by.

    >>> many = np.full(400, 2.0)
    >>> str(certify(SpanTallies(many, 0.8 * many, 0.8 * many, many, many), Check(0.01, 0.4)))
    '76.4 (69.0 to 83.8)'
    """
    if check.reason:
        return Certificate(explained=check.explained, reason=check.reason)
    expected, by_chance = _ratio(2 * tallies.found, tallies.given + tallies.true)
    if expected <= 0:
        return Certificate(explained=check.explained, reason="the consensus marks nothing")
    doubt = float(np.sqrt(expected * max(1 - expected, 0.0)))
    f1 = expected - _TOO_HIGH * doubt
    half = _NINETY_PERCENT * float(np.sqrt((_ELSEWHERE * doubt) ** 2 + (check.noise * expected) ** 2 + by_chance**2))
    if half > _TOO_WIDE:
        return Certificate(explained=check.explained, reason="too few spans to judge by")
    return Certificate(f1, max(f1 - half, 0.0), min(f1 + half, 1.0), check.explained)


def _ratio(above: Floats, below: Floats) -> tuple[float, float]:
    """Σ above / Σ below, and its standard error over documents."""
    total = max(float(below.sum()), 1e-9)
    value = float(above.sum()) / total
    return value, float(np.sqrt(((above - value * below) ** 2).sum())) / total
