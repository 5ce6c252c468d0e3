"""Spans that meet without being equal: the *partial* and *type* scores of SemEval-2013 task 9, as nervaluate has them.

Each predicted span, from left to right, is paired with at most one gold span that it shares a token with and that is
not yet taken. nervaluate also asks that a hundredth of the gold span be shared; here one token is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quorate.corpus.records import Tag
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme
from quorate.evaluate.metrics.reading import span_pairs
from quorate.evaluate.metrics.spans import PRF


def partial(
    predicted: Iterable[Sequence[Tag]],
    gold: Iterable[Sequence[Tag] | None],
    *,
    orphans: bool = True,
    scheme: Scheme | None = None,
) -> PRF:
    """Boundaries alone, types ignored: equal boundaries count 1, an overlap counts a half.

    >>> partial([["B-PER", "O", "B-LOC"]], [["B-PER", "I-PER", "B-PER"]])
    PRF(precision=0.75, recall=0.75, f1=0.75)
    """
    credit, n_predicted, n_gold = 0.0, 0, 0
    for found, wanted in span_pairs(predicted, gold, orphans=orphans, scheme=scheme):
        free = list(wanted)
        for span in found:
            touched = [other for other in free if span.overlaps(other)]
            if touched:
                equal = [other for other in touched if other.parts == span.parts]
                credit += 1.0 if equal else 0.5
                free.remove((equal or touched)[0])
        n_predicted += len(found)
        n_gold += len(wanted)
    return PRF.of(credit / n_predicted if n_predicted else 0.0, credit / n_gold if n_gold else 0.0)


def typed(
    predicted: Iterable[Sequence[Tag]],
    gold: Iterable[Sequence[Tag] | None],
    *,
    orphans: bool = True,
    scheme: Scheme | None = None,
) -> PRF:
    """Types alone: a predicted span is right if it overlaps a gold span of its type, wherever it begins and ends.

    Of several such gold spans the one with the nearest boundaries is taken.

    >>> typed([["B-PER", "O", "B-LOC"]], [["B-PER", "I-PER", "B-PER"]])
    PRF(precision=0.5, recall=0.5, f1=0.5)
    """
    right = n_predicted = n_gold = 0
    for found, wanted in span_pairs(predicted, gold, orphans=orphans, scheme=scheme):
        free = list(wanted)
        for span in found:
            touched = [other for other in free if span.overlaps(other)]
            same = [other for other in touched if other.label == span.label]
            right += bool(same)
            if same:
                free.remove(min(same, key=lambda other: _distance(span, other)))
            elif touched:
                free.remove(touched[0])
        n_predicted += len(found)
        n_gold += len(wanted)
    return PRF.of(right / n_predicted if n_predicted else 0.0, right / n_gold if n_gold else 0.0)


def _distance(one: Span, other: Span) -> int:
    return abs(one.start - other.start) + abs(one.end - other.end)
