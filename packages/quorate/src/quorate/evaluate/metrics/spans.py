"""Precision, recall and F1 of spans. Sequences are lists of tags; tokens whose gold is ``None`` are not scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Tag
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme
from quorate.evaluate.metrics.reading import span_pairs

Floats = NDArray[np.float64]


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


class TypeScore(NamedTuple):
    """Precision, recall and F1 of one span type; ``support`` is the number of its gold spans.

    >>> TypeScore(1.0, 0.5, 0.6666666666666666, support=4).support
    4
    """

    precision: float
    recall: float
    f1: float
    support: int


class Tallies(NamedTuple):
    """``[D]`` What each document adds to precision and recall.

    ``predicted`` and ``gold`` count spans. ``right_predicted`` is how much of the predicted spans is right (strict: how
    many, relaxed: the sum of their shares), ``right_gold`` how much of the gold spans was found.

    >>> tallies = strict_tallies([["B-X", "B-X"], ["O", "O"]], [["B-X", "O"], ["O", "O"]])
    >>> tallies.total()
    PRF(precision=0.5, recall=1.0, f1=0.6666666666666666)
    >>> tallies.f1().round(3).tolist()
    [0.667, 1.0]
    """

    right_predicted: Floats
    predicted: Floats
    right_gold: Floats
    gold: Floats

    def total(self) -> PRF:
        """The score of all documents together."""
        found, n_predicted, reached, n_gold = (float(column.sum()) for column in self)
        return PRF.of(found / n_predicted if n_predicted else 0.0, reached / n_gold if n_gold else 0.0)

    def f1(self) -> Floats:
        """``[D]`` The F1 of each document; 1 where neither side has a span, 0 where only one has."""
        return np.where((self.predicted == 0) & (self.gold == 0), 1.0, f1_of(*self))


def f1_of(right_predicted: Floats, predicted: Floats, right_gold: Floats, gold: Floats) -> Floats:
    """F1 from tallies, element by element; 0 where there is nothing to divide by.

    >>> f1_of(np.array([1.0, 0.0]), np.array([2.0, 0.0]), np.array([1.0, 0.0]), np.array([1.0, 0.0])).round(3).tolist()
    [0.667, 0.0]
    """
    precision = right_predicted / np.maximum(predicted, 1)
    recall = right_gold / np.maximum(gold, 1)
    both = precision + recall
    return np.divide(2 * precision * recall, both, out=np.zeros_like(both), where=both > 0)


def strict_tallies(
    predicted: Iterable[Sequence[Tag]],
    gold: Iterable[Sequence[Tag] | None],
    *,
    orphans: bool = False,
    scheme: Scheme | None = None,
) -> Tallies:
    """What every document that has gold adds to the strict score, for tests of significance.

    >>> strict_tallies([["B-X"], ["O"]], [["B-X"], None]).gold.tolist()
    [1.0]
    """
    pairs = span_pairs(predicted, gold, orphans=orphans, scheme=scheme)
    rows = [(len(set(found).intersection(wanted)), len(found), len(wanted)) for found, wanted in pairs]
    right, n_predicted, n_gold = np.array(rows, np.float64).T
    return Tallies(right, n_predicted, right, n_gold)


def relaxed_tallies(
    predicted: Iterable[Sequence[Tag]],
    gold: Iterable[Sequence[Tag] | None],
    *,
    orphans: bool = True,
    scheme: Scheme | None = None,
) -> Tallies:
    """What every document that has gold adds to the relaxed score, for tests of significance.

    >>> relaxed_tallies([["B-X", "O"]], [["B-X", "I-X"]]).right_gold.tolist()
    [0.5]
    """
    pairs = span_pairs(predicted, gold, orphans=orphans, scheme=scheme)
    rows = [(_covered(found, wanted), len(found), _covered(wanted, found), len(wanted)) for found, wanted in pairs]
    return Tallies(*np.array(rows, np.float64).T)


def _covered(spans: Sequence[Span], others: Sequence[Span]) -> float:
    """The sum over spans of the share of tokens that the others cover with the same type."""
    if not spans or not others:
        return 0.0
    covered = {(position, other.label) for other in others for position in other.tokens}
    return sum(
        sum((position, span.label) in covered for position in tokens) / len(tokens)
        for span in spans
        for tokens in [span.tokens]
    )


def strict(
    predicted: Iterable[Sequence[Tag]],
    gold: Iterable[Sequence[Tag] | None],
    *,
    orphans: bool = False,
    scheme: Scheme | None = None,
) -> PRF:
    """Spans with the same start, end and type (CoNLL), over all documents; discontinuous ones with the same pieces.

    With ``orphans`` a span, predicted or gold, may also open at an ``I`` that continues nothing. In the IO scheme every
    ``I`` opens or continues a span; the scheme is inferred from the tags unless given.

    >>> strict([["B-PER", "O", "B-LOC"]], [["B-PER", "O", "O"]])
    PRF(precision=0.5, recall=1.0, f1=0.6666666666666666)
    >>> strict([["O", "I-PER"]], [["O", "B-PER"]]).f1, strict([["O", "I-PER"]], [["O", "B-PER"]], orphans=True).f1
    (0.0, 1.0)
    """
    return strict_tallies(predicted, gold, orphans=orphans, scheme=scheme).total()


def relaxed(
    predicted: Iterable[Sequence[Tag]],
    gold: Iterable[Sequence[Tag] | None],
    *,
    orphans: bool = True,
    scheme: Scheme | None = None,
) -> PRF:
    """Spans by the share of their tokens that the other side covers with the same type.

    Precision is the mean of that share over predicted spans, recall over gold spans. Without ``orphans`` a span opens
    only at ``B``.

    >>> relaxed([["B-P", "I-P", "O", "O"]], [["O", "B-P", "I-P", "I-P"]])
    PRF(precision=0.5, recall=0.3333333333333333, f1=0.4)
    """
    return relaxed_tallies(predicted, gold, orphans=orphans, scheme=scheme).total()


def strict_by_type(
    predicted: Iterable[Sequence[Tag]],
    gold: Iterable[Sequence[Tag] | None],
    *,
    orphans: bool = False,
    scheme: Scheme | None = None,
) -> dict[str, TypeScore]:
    """The strict score of every span type that gold or predictions use, by type in sorted order.

    >>> strict_by_type([["B-PER", "B-LOC"]], [["B-PER", "O"]])["PER"]
    TypeScore(precision=1.0, recall=1.0, f1=1.0, support=1)
    """
    right: Counter[str] = Counter()
    n_predicted: Counter[str] = Counter()
    n_gold: Counter[str] = Counter()
    for found, wanted in span_pairs(predicted, gold, orphans=orphans, scheme=scheme):
        right.update(span.label for span in set(found).intersection(wanted))
        n_predicted.update(span.label for span in found)
        n_gold.update(span.label for span in wanted)
    return {
        kind: TypeScore(
            *PRF.of(
                right[kind] / n_predicted[kind] if n_predicted[kind] else 0.0,
                right[kind] / n_gold[kind] if n_gold[kind] else 0.0,
            ),
            n_gold[kind],
        )
        for kind in sorted(n_predicted.keys() | n_gold.keys())
    }


def macro(by_type: Mapping[str, TypeScore]) -> PRF:
    """The plain mean over types of precision, of recall and of F1: a rare type counts as much as a common one.

    >>> macro(strict_by_type([["B-PER", "B-LOC"]], [["B-PER", "O"]]))
    PRF(precision=0.5, recall=0.5, f1=0.5)
    >>> macro({})
    PRF(precision=0.0, recall=0.0, f1=0.0)
    """
    n = max(len(by_type), 1)
    scores = by_type.values()
    return PRF(sum(s.precision for s in scores) / n, sum(s.recall for s in scores) / n, sum(s.f1 for s in scores) / n)
