"""Where a consensus goes wrong, span by span: the thirteen kinds of Simpson and Gurevych (2019), Table 3.

The paper does not define its kinds; these definitions come close to its counts and leave no span uncounted.

Every gold span is of exactly one of four kinds, so that these add up to the number of gold spans:

* *exact*: a predicted span has its start, its end and its type (and its pieces, where it is discontinuous);
* *wrong type*: a predicted span has its start and its end, with another type;
* *partial*: neither, but a predicted span of its type shares a token with it;
* *missed*: none of these.

A partial gold span is compared with the predicted spans of its type that overlap it:

* *late start*, *early start*: the first of them begins after, before it;
* *late finish*, *early finish*: the last of them ends after, before it;
* *split*: there are two or more of them.

Predicted spans and tags are counted by themselves:

* *false positive*: a predicted span that shares no token with any gold span;
* *fused*: a predicted span that overlaps two or more gold spans of its type;
* *invalid*: a predicted ``I`` (or ``E``) after ``O`` or at the beginning; none in the IO scheme;
* *length error*: the mean length of predicted spans less that of gold spans, without its sign; 0 where a side has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from quorate.corpus.records import Tag
from quorate.corpus.spans import Span
from quorate.corpus.tags import OUTSIDE, Scheme, goes_on
from quorate.evaluate.metrics.reading import opens_at_orphans, span_pairs, tag_pairs


class ErrorKinds(NamedTuple):
    """Counts of spans of each kind, and the length error in tokens.

    >>> kinds = error_kinds([["B-X", "O"]], [["B-X", "I-X"]])
    >>> kinds.partial, kinds.early_finish, kinds.gold_spans
    (1, 1, 1)
    """

    exact: int
    wrong_type: int
    partial: int
    missed: int
    false_positive: int
    late_start: int
    early_start: int
    late_finish: int
    early_finish: int
    fused: int
    split: int
    invalid: int
    length_error: float

    @property
    def gold_spans(self) -> int:
        """The number of gold spans: exact + wrong type + partial + missed."""
        return self.exact + self.wrong_type + self.partial + self.missed


def error_kinds(
    predicted: Iterable[Sequence[Tag]],
    gold: Iterable[Sequence[Tag] | None],
    *,
    orphans: bool = True,
    scheme: Scheme | None = None,
) -> ErrorKinds:
    """Count every kind of error, as this module defines them.

    With ``orphans`` a predicted span may open at an ``I`` that continues nothing, so that a span whose ``B`` was lost
    is a late start; without, it is missed, and ``exact`` is the number of spans that the strict score calls right. A
    gold span opens only at ``B``, so that their number does not depend on it.

    >>> kinds = error_kinds([["B-X", "O", "B-X", "O", "B-Y"]], [["B-X", "I-X", "I-X", "O", "O"]])
    >>> kinds.partial, kinds.split, kinds.late_start, kinds.early_finish, kinds.false_positive
    (1, 1, 0, 0, 1)
    """
    given, truths = list(predicted), list(gold)
    kinds: Counter[str] = Counter()
    lengths: tuple[list[int], list[int]] = [], []
    for found, wanted in span_pairs(given, truths, orphans=orphans, gold_orphans=False, scheme=scheme):
        for spans, seen in zip((found, wanted), lengths, strict=True):
            seen.extend(len(span.tokens) for span in spans)
        kinds.update(kinds_of_gold(found, wanted))
        kinds.update(kinds_of_predicted(found, wanted))
    pairs = tag_pairs(given, truths)
    every_inside_opens = opens_at_orphans({tag for pair in pairs for tag in chain(*pair)}, orphans=False, scheme=scheme)
    if not every_inside_opens:
        kinds["invalid"] = sum(_n_invalid(pair.predicted) for pair in pairs)
    n_predicted, n_gold = (max(len(seen), 1) for seen in lengths)
    length_error = abs(sum(lengths[0]) / n_predicted - sum(lengths[1]) / n_gold) if all(lengths) else 0.0
    return ErrorKinds(**{name: kinds[name] for name in ErrorKinds._fields[:-1]}, length_error=length_error)


def kinds_of_gold(found: Sequence[Span], wanted: Sequence[Span]) -> Iterable[str]:
    """What became of the gold spans of one document: for each its kind, then how a partial one differs.

    >>> list(kinds_of_gold([Span(1, 2, "X")], [Span(0, 2, "X")]))
    ['partial', 'late_start']
    """
    exact, bounds = set(found), {span.parts for span in found}
    for span in wanted:
        if span in exact:
            yield "exact"
        elif span.parts in bounds:
            yield "wrong_type"
        elif over := [other for other in found if other.label == span.label and span.overlaps(other)]:
            yield "partial"
            first, last = over[0], over[-1]
            if first.start != span.start:
                yield "late_start" if first.start > span.start else "early_start"
            if last.end != span.end:
                yield "late_finish" if last.end > span.end else "early_finish"
            if len(over) > 1:
                yield "split"
        else:
            yield "missed"


def kinds_of_predicted(found: Sequence[Span], wanted: Sequence[Span]) -> Iterable[str]:
    """What is wrong with the predicted spans of one document, seen by themselves.

    >>> list(kinds_of_predicted([Span(1, 2, "X")], []))
    ['false_positive']
    """
    for span in found:
        over = [other for other in wanted if span.overlaps(other)]
        if not over:
            yield "false_positive"
        if sum(other.label == span.label for other in over) > 1:
            yield "fused"


def _n_invalid(tags: Sequence[Tag]) -> int:
    """How often ``I`` or ``E`` follows ``O`` or begins; what follows a missing tag is not known to be wrong."""
    return sum(
        tag is not None and goes_on(tag) and before == OUTSIDE
        for before, tag in zip(chain([OUTSIDE], tags), tags, strict=False)
    )
