"""Precision, recall and F1 of spans. Sequences are lists of tags; tokens whose gold is ``None`` are not scored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quorate.corpus import Tag
from quorate.tags import Span, find_spans

__all__ = ["PRF", "relaxed", "strict"]


class PRF(NamedTuple):
    """Precision, recall and their harmonic mean, each from 0 to 1; 0 where there is nothing to divide by.

    >>> PRF.of(0.5, 1.0).f1
    0.6666666666666666
    """

    precision: float
    recall: float
    f1: float

    @classmethod
    def of(cls, precision: float, recall: float) -> PRF:
        """With the F1 that follows from the other two."""
        both = precision + recall
        return cls(precision, recall, 2 * precision * recall / both if both else 0.0)


def _spans(tags: Sequence[Tag], gold: Sequence[Tag], orphans: bool) -> list[Span]:
    scored = [None if truth is None else tag for tag, truth in zip(tags, gold, strict=True)]
    return find_spans(scored, orphans=orphans)


def strict(predicted: Iterable[Sequence[Tag]], gold: Iterable[Sequence[Tag]], *, orphans: bool = False) -> PRF:
    """Spans with the same start, end and type (CoNLL), over all documents.

    With ``orphans`` a span, predicted or gold, may also open at an ``I`` that continues nothing.

    >>> strict([["B-PER", "O", "B-LOC"]], [["B-PER", "O", "O"]])
    PRF(precision=0.5, recall=1.0, f1=0.6666666666666666)
    """
    right = n_predicted = n_gold = 0
    for tags, truth in zip(predicted, gold, strict=True):
        found, wanted = set(_spans(tags, truth, orphans)), set(_spans(truth, truth, orphans))
        right += len(found & wanted)
        n_predicted += len(found)
        n_gold += len(wanted)
    return PRF.of(right / n_predicted if n_predicted else 0.0, right / n_gold if n_gold else 0.0)


def relaxed(predicted: Iterable[Sequence[Tag]], gold: Iterable[Sequence[Tag]], *, orphans: bool = True) -> PRF:
    """Spans by the share of their tokens that the other side covers with the same type.

    Precision is the mean of that share over predicted spans, recall over gold spans.

    >>> relaxed([["B-P", "I-P", "O", "O"]], [["O", "B-P", "I-P", "I-P"]])
    PRF(precision=0.5, recall=0.3333333333333333, f1=0.4)
    """
    covered_predicted, covered_gold = [], []
    for tags, truth in zip(predicted, gold, strict=True):
        found, wanted = _spans(tags, truth, orphans), _spans(truth, truth, orphans)
        covered_predicted += _coverage(found, wanted)
        covered_gold += _coverage(wanted, found)
    return PRF.of(
        sum(covered_predicted) / len(covered_predicted) if covered_predicted else 0.0,
        sum(covered_gold) / len(covered_gold) if covered_gold else 0.0,
    )


def _coverage(spans: Sequence[Span], others: Sequence[Span]) -> list[float]:
    tokens = {(position, other.label) for other in others for position in range(other.start, other.end)}
    return [
        sum((position, span.label) in tokens for position in range(span.start, span.end)) / (span.end - span.start)
        for span in spans
    ]
