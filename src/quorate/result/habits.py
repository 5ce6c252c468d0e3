"""What each annotator does with the spans of a consensus: marks them exactly, shifted, in pieces, or not at all.

Kinds are those of the span model (:mod:`quorate.infer.kernels.spans`). A span of the consensus counts as much as it is
probable, and only for those who saw all of its tokens. A mark that is not in the consensus counts as wrong.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.encode.algebra import Spans, marked_spans, only_documents, seen_pairs
from quorate.encode.encoded import Encoded
from quorate.infer.candidates import Answers, answers_to
from quorate.infer.engines.protocol import Decoded
from quorate.infer.kernels import spans as kernels
from quorate.result.calibration import Calibration
from quorate.result.spans import consensus_spans

__all__ = ["BOUNDS", "KINDS", "SpanHabits", "count_habits"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

KINDS = ("exact", "shifted", "split", "wrong_type", "missed")
"""What becomes of a span of the consensus: one of these."""

BOUNDS = ("early_start", "late_start", "early_end", "late_end")
"""How a shifted span is off: one of the first two, one of the last two, or one of each."""

_SIDES = (0.025, 0.975)
_MOST = 0.5  # of the tokens of their documents; whoever labels fewer leaves out what they have nothing to say about
_AT_ONCE = 1 << 25  # events


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


def count_habits(encoded: Encoded, decoded: Decoded, calibration: Calibration) -> Floats:
    """``[12, T, K]`` The :class:`SpanHabits` of everybody, by type: that of the consensus's span, or of their own.

    In the plain scheme, which has no spans, there are no types.
    """
    T, K = len(encoded.tagset.span_types), len(encoded.annotators)
    habits = np.zeros((len(SpanHabits._fields), T, K))
    if not habits.size:
        return habits
    truth = consensus_spans(decoded, encoded.tagset)
    sure = np.minimum(calibration.spans(decoded.span_probability[truth.start]), 1.0)
    anywhere = np.bincount(truth.kind, sure, minlength=T)
    tokens = np.zeros(K)  # in documents of which they labelled something
    events = encoded.event_start[encoded.doc_start]
    low = 0
    while low < encoded.n_docs:  # in pieces: the events may lie on disk
        high = max(int(np.searchsorted(events, events[low] + _AT_ONCE, side="right")) - 1, low + 1)
        whole = high - low == encoded.n_docs
        part = encoded if whole else only_documents(encoded, np.arange(low, high))
        token = encoded.doc_start[low]
        here = np.arange(*np.searchsorted(truth.start, [token, encoded.doc_start[high]]))
        spans = truth.where(here)
        spans = spans._replace(start=spans.start - token, end=spans.end - token)
        habits += _counted(part, spans, sure[here])
        document, who = seen_pairs(part)
        tokens += np.bincount(who, np.diff(part.doc_start)[document], minlength=K)
        low = high
    labels = encoded.annotator_weights()
    # Of those who leave tokens out, a document without any label is one that they had nothing to say about.
    habits[-1, :, (labels > 0) & (labels < _MOST * tokens)] = anywhere
    return habits


def _counted(encoded: Encoded, truth: Spans, sure: Floats) -> Floats:
    """``[12, T, K]`` The habits, with the spans of the consensus and how probable each is."""
    K, T = len(encoded.annotators), len(encoded.tagset.types)
    first = np.searchsorted(truth.start, encoded.doc_start)
    answers = answers_to(encoded, marked_spans(encoded), truth, first)
    kind_of = np.zeros(kernels.N_RESPONSES + 1, np.int64)
    for response, kind in (
        (kernels.EXACT, "exact"),
        (kernels.SHIFTED, "shifted"),
        (kernels.SPLIT, "split"),
        (kernels.OTHER_TYPE, "wrong_type"),
        (kernels.OTHER_TYPE_SHIFTED, "wrong_type"),
        (kernels.MISSED, "missed"),
    ):
        kind_of[response] = KINDS.index(kind)

    def by_type(kind: Integers, who: Integers, weight: Floats | NDArray[np.bool_] | None = None) -> Floats:
        return np.bincount(kind * K + who, weight, minlength=T * K).reshape(T, K).astype(np.float64)

    pair, span, seen = answers.pair(first), answers.span(first), answers.response != kernels.UNSEEN
    who, weight, true_type = answers.who[pair], sure[span], truth.kind[span]
    place = kind_of[answers.response]
    kinds = [by_type(true_type[one], who[one], weight[one]) for n in range(len(KINDS)) for one in [seen & (place == n)]]
    shifted = np.flatnonzero(answers.response == kernels.SHIFTED)
    off = truth.where(span[shifted])
    mark = _mark_of(answers, pair[shifted], off, encoded.n_tokens)
    bounds = [
        by_type(off.kind, who[shifted], weight[shifted] * is_off)
        for is_off in (mark.start < off.start, mark.start > off.start, mark.end < off.end, mark.end > off.end)
    ]
    marks = answers.marks
    inside = np.concatenate([[0], np.cumsum(truth.painted(encoded.n_tokens) >= 0)])
    invented = inside[marks.end] == inside[marks.start]
    own = [by_type(marks.kind, marks.who), by_type(marks.kind, marks.who, invented)]
    return np.stack([*kinds, *bounds, *own, by_type(true_type, who, weight)])


def _mark_of(answers: Answers, pair: Integers, span: Spans, n_tokens: int) -> Spans:
    """Of each span the mark of its type that overlaps it, where the pair has just one such."""
    marks = answers.marks
    owner = np.repeat(np.arange(len(answers.mark_start) - 1), np.diff(answers.mark_start))
    # A pair's marks do not overlap, so the first that may be meant is the first that ends behind the span's start.
    place = np.searchsorted(owner * (n_tokens + 1) + marks.end, pair * (n_tokens + 1) + span.start, side="right")
    while (other := marks.kind[place] != span.kind).any():
        place = place + other
    return marks.where(place)
