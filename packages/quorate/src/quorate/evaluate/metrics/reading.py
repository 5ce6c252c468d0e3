"""Predicted and gold tags side by side: checked once, then read as spans. Every score begins here.

A document whose gold is ``None`` is not scored, nor is a token whose gold is ``None``: spans end there, on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quorate.corpus.records import Tag
from quorate.corpus.spans import Span
from quorate.corpus.tags import OUTSIDE, Scheme, find_spans, marks_span, scheme_of
from quorate.errors import InputError
from quorate.wording import counted


class TagPair(NamedTuple):
    """One document's predicted tags, ``None`` where gold is ``None``, and its gold tags.

    >>> TagPair(["O", None], ["O", None]).gold
    ['O', None]
    """

    predicted: Sequence[Tag]
    gold: Sequence[Tag]


class SpanPair(NamedTuple):
    """One document's predicted spans and its gold spans.

    >>> SpanPair([Span(0, 1, "PER")], []).gold
    []
    """

    predicted: list[Span]
    gold: list[Span]


def tag_pairs(predicted: Iterable[Sequence[Tag]], gold: Iterable[Sequence[Tag] | None]) -> list[TagPair]:
    """The documents that have gold, each with what was predicted.

    >>> tag_pairs([["O", "B-X"], ["O"]], [["O", None], None])
    [TagPair(predicted=['O', None], gold=['O', None])]
    >>> tag_pairs([["O"]], [None])
    Traceback (most recent call last):
    quorate.errors.InputError: no token has a gold tag, so there is nothing to score (choose documents that have gold)
    """
    given, wanted = list(predicted), list(gold)
    if len(given) != len(wanted):
        raise InputError(
            f"{counted(len(given), 'predicted document')} for {len(wanted)} of gold (give the same documents)"
        )
    pairs = []
    scored = False
    for number, (tags, truth) in enumerate(zip(given, wanted, strict=True), 1):
        if truth is None:
            continue
        if len(tags) != len(truth):
            raise InputError(
                f"{counted(len(tags), 'predicted tag')} for {counted(len(truth), 'gold tag')} (give one tag a token)",
                where=f"document {number}",
            )
        if None in truth:
            tags = [None if wish is None else tag for tag, wish in zip(tags, truth, strict=True)]
            scored = scored or any(wish is not None for wish in truth)
        else:
            scored = scored or len(truth) > 0
        pairs.append(TagPair(tags, truth))
    if not scored:
        raise InputError("no token has a gold tag, so there is nothing to score (choose documents that have gold)")
    return pairs


def span_pairs(
    predicted: Iterable[Sequence[Tag]],
    gold: Iterable[Sequence[Tag] | None],
    *,
    orphans: bool,
    gold_orphans: bool | None = None,
    scheme: Scheme | None = None,
) -> list[SpanPair]:
    """The spans of the documents that have gold, predicted and gold.

    With ``orphans`` a span may also open at an ``I`` (or ``E``) that continues nothing; ``gold_orphans`` says so of
    gold, where that is to differ. In the IO scheme every ``I`` may, whatever these say. Unless ``scheme`` is given,
    gold is IO when its spans hold nothing but ``I``, and predictions are when that is so of both together.

    >>> span_pairs([["I-X"]], [["I-X"]], orphans=False)
    [SpanPair(predicted=[Span(start=0, end=1, label='X')], gold=[Span(start=0, end=1, label='X')])]
    >>> span_pairs([["I-X"]], [["B-X"]], orphans=False)
    [SpanPair(predicted=[], gold=[Span(start=0, end=1, label='X')])]
    """
    pairs = tag_pairs(predicted, gold)
    used_gold: set[Tag] = set()
    used: set[Tag] = set()
    for tags, truth in pairs:
        used_gold.update(truth)
        used.update(tags)
    gold_opens = opens_at_orphans(used_gold, orphans=orphans if gold_orphans is None else gold_orphans, scheme=scheme)
    opens = opens_at_orphans(used | used_gold, orphans=orphans, scheme=scheme)
    return [SpanPair(find_spans(tags, orphans=opens), find_spans(truth, orphans=gold_opens)) for tags, truth in pairs]


def opens_at_orphans(used: Iterable[Tag], *, orphans: bool, scheme: Scheme | None = None) -> bool:
    """Whether a span may open at an orphan, given the tags in use: if asked for, and always in the IO scheme.

    >>> opens_at_orphans({"O", "I-X"}, orphans=False), opens_at_orphans({"B-X", "I-X"}, orphans=False)
    (True, False)
    >>> opens_at_orphans({"NOUN"}, orphans=False)
    Traceback (most recent call last):
    quorate.errors.InputError: tag 'NOUN' marks no span (spans are B-x, I-x, E-x, S-x; score other tags by token)
    """
    marks = {tag for tag in used if tag is not None and tag != OUTSIDE}
    stray = [tag for tag in marks if not marks_span(tag)]
    if stray:
        raise InputError(f"tag {min(stray)!r} marks no span (spans are B-x, I-x, E-x, S-x; score other tags by token)")
    return orphans or (scheme_of(marks) if scheme is None else scheme) is Scheme.IO
