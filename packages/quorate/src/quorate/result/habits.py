"""What each annotator does with the spans of a consensus: marks them exactly, shifted, in pieces, or not at all.

Kinds are those of the span model (:mod:`quorate.model.kernels.spans`). A span of the consensus counts as much as it is
probable, and only for those who saw all of its tokens. A mark that is not in the consensus counts as wrong.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.crowd import Crowd
from quorate.crowd.marked import counted, label_events
from quorate.model.consensus_spans import consensus_spans
from quorate.model.engines.protocol import Decoded
from quorate.model.kernels.marked import SureSpans, add_habits

Floats = NDArray[np.float64]

KINDS = ("exact", "shifted", "split", "wrong_type", "missed")
"""What becomes of a span of the consensus: one of these."""

BOUNDS = ("early_start", "late_start", "early_end", "late_end")
"""How a shifted span is off: one of the first two, one of the last two, or one of each."""

_SIDES = (0.025, 0.975)
_MOST = 0.5  # of the tokens of their documents; whoever labels fewer leaves out what they have nothing to say about


class SpanHabits(NamedTuple):
    """One annotator: how many spans of the consensus came out in which way, and how many of their own are invented.

    ``marks`` are their own spans, ``invented`` those of them that touch no span of the consensus. The others are spans
    of the consensus, each counted as much as it is probable: ``KINDS`` and, of the shifted ones, ``BOUNDS``. ``there``
    are all of the consensus's spans in their documents, also where they gave no label.

    Two more shares judge a source that speaks seldom: ``precision``, of their own marks those that are right in start,
    end and type, and ``coverage``, of all that is there what they marked with that type, in whatever bounds.

    >>> habits = SpanHabits(exact=12, shifted=4, missed=4, late_start=4, marks=20, invented=5, there=32)
    >>> habits.share("found"), habits.share("exact"), habits.share("invented")
    (0.8, 0.6, 0.25)
    >>> habits.share("precision"), habits.share("coverage")
    (0.6, 0.5)
    >>> [round(bound, 2) for bound in habits.interval("exact")]
    [0.38, 0.79]
    """

    exact: float = 0.0
    shifted: float = 0.0
    split: float = 0.0
    wrong_type: float = 0.0
    missed: float = 0.0
    early_start: float = 0.0
    late_start: float = 0.0
    early_end: float = 0.0
    late_end: float = 0.0
    marks: float = 0.0
    invented: float = 0.0
    there: float = 0.0

    @property
    def spans(self) -> float:
        """How many spans of the consensus they were shown."""
        return self.exact + self.shifted + self.split + self.wrong_type + self.missed

    @property
    def found(self) -> float:
        """How many of those they marked in some way."""
        return self.exact + self.shifted + self.split + self.wrong_type

    @property
    def covered(self) -> float:
        """How many they marked with its type, in whatever bounds."""
        return self.exact + self.shifted + self.split

    def of(self, what: str) -> float:
        """What a share is of: their own marks, all that is there, or the consensus's spans that they were shown."""
        if what in ("invented", "precision"):
            return self.marks
        return self.there if what == "coverage" else self.spans

    def number(self, what: str) -> float:
        """How many spans this holds for: ``precision``, ``coverage``, ``found``, or the name of a field."""
        return float(getattr(self, {"precision": "exact", "coverage": "covered"}.get(what, what)))

    def share(self, what: str) -> float:
        """The share of spans for which this holds; nan where there are none."""
        whole = self.of(what)
        return self.number(what) / whole if whole > 0 else math.nan

    def interval(self, what: str) -> tuple[float, float]:
        """Of a share, in between which it is with 95% (Jeffreys: quantiles of Beta(½ + x, ½ + n − x))."""
        from scipy.special import betaincinv

        n, x = self.of(what), self.number(what)
        low, high = (float(betaincinv(0.5 + x, 0.5 + max(n - x, 0.0), side)) for side in _SIDES)
        return (low if x > 0 else 0.0), (high if x < n else 1.0)


def count_habits(encoded: Crowd, decoded: Decoded, labels: Floats | None = None) -> Floats:
    """``[12, T, K]`` The :class:`SpanHabits` of everybody, by type: that of the consensus's span, or of their own.

    In the plain scheme, which has no spans, there are no types. ``labels [K]`` are how many each gave, if known.
    """
    T, K = len(encoded.tagset.span_types), len(encoded.annotators)
    shape = len(SpanHabits._fields), T, K
    if not T * K:
        return np.zeros(shape)
    spans = consensus_spans(decoded, encoded.tagset)
    sure = np.minimum(decoded.span_probability[spans.start], 1.0)
    first = np.searchsorted(spans.start, encoded.doc_start)
    events, truth = label_events(encoded), SureSpans(spans.start, spans.end, spans.kind, first, sure)
    found, tokens = counted(
        events, [(shape[0] * T, K), (K,)], lambda low, high, sums: add_habits(events, truth, low, high, *sums)
    )
    habits, labels = found.reshape(shape), encoded.annotator_weights() if labels is None else labels
    # Of those who leave tokens out, a document without any label is one that they had nothing to say about.
    anywhere = np.bincount(spans.kind, sure, minlength=T)
    habits[-1, :, (labels > 0) & (labels < _MOST * tokens)] = anywhere
    return habits
