"""Which spans of one annotator may overlap, and those that do although they must not."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from quorate.corpus.spans import CharSpan

MOST_DEEP = 64
"""Spans of one annotator that may share a token, where nothing else is said: each needs a layer of its own."""
Offsets = Sequence[tuple[int, int]]


class Overlaps(StrEnum):
    """Spans that share no character; that may also lie inside one another; that may lie as they like."""

    NONE = "none"
    NESTED = "nested"
    ANY = "any"


class OverlapRule(NamedTuple):
    """What is allowed, and how many spans of one annotator may share a token."""

    allowed: Overlaps = Overlaps.NONE
    limit: int = 8


class Conflict(NamedTuple):
    """A span that must not overlap the ``other``, which is as long or longer; ``None``: too many share a token."""

    span: CharSpan
    other: CharSpan | None


def part(spans: Iterable[CharSpan], rule: OverlapRule, tokens: Offsets) -> tuple[list[CharSpan], list[CharSpan]]:
    """The spans of one annotator that may be there together, the longest first; and those left over.

    ``tokens`` are where the tokens of the text are; without overlaps they are not looked at.

    >>> ada, name = CharSpan(0, 3, "PER"), CharSpan(0, 12, "PER")
    >>> part([ada, name], OverlapRule(), []) == ([name], [ada])
    True
    >>> part([ada, name], OverlapRule(Overlaps.NESTED), [(0, 3), (4, 12)]) == ([name, ada], [])
    True
    """
    tokens = () if rule.allowed is Overlaps.NONE else tokens
    kept: list[CharSpan] = []
    left: list[CharSpan] = []
    in_order = sorted(spans, key=lambda span: (span.start - span.end, span.start, span.label))
    length = max((span.end for span in in_order), default=0)
    taken, edges = bytearray(length), bytearray(length + 1)
    depths, full = [0] * len(tokens), bytearray(len(tokens))
    starts, ends = [start for start, _ in tokens], [end for _, end in tokens]
    for span in in_order:
        first, last = bisect_right(ends, span.start), bisect_left(starts, span.end)
        if rule.allowed is Overlaps.NONE:
            may = taken.find(1, span.start, span.end) < 0
        else:
            # Of longer spans, only those that it crosses begin or end inside of it.
            crosses = rule.allowed is Overlaps.NESTED and edges.find(1, span.start + 1, span.end) >= 0
            may = not crosses and full.find(1, first, last) < 0
        if not may:
            left.append(span)
            continue
        kept.append(span)
        taken[span.start : span.end] = b"\1" * (span.end - span.start)
        edges[span.start] = edges[span.end] = 1
        for token in range(first, last):
            depths[token] += 1
            full[token] = depths[token] >= rule.limit
    return kept, left


def conflict(span: CharSpan, kept: Iterable[CharSpan], rule: OverlapRule) -> Conflict:
    """Why a span was left over by :func:`part`, from what that kept.

    >>> conflict(CharSpan(0, 3, "PER"), [CharSpan(0, 12, "PER")], OverlapRule()).other == CharSpan(0, 12, "PER")
    True
    """
    for other in kept:
        if other.end - other.start < span.end - span.start:
            break
        shares = span.start < other.end and other.start < span.end
        inside = other.start <= span.start and span.end <= other.end
        if shares and (rule.allowed is Overlaps.NONE or (rule.allowed is Overlaps.NESTED and not inside)):
            return Conflict(span, other)
    return Conflict(span, None)
