"""The tokenizer for texts that come without tokens, and character spans ⇄ token spans.

A token is a run of letters, digits, underscores and the marks that combine with them, or any other single character
that is not a blank. Nothing depends on a language or a model, so that the same text is always cut in the same places.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quorate.errors import InputError
from quorate.tags import Span

__all__ = ["Offsets", "TokenSpans", "locate", "to_token_spans", "tokenize"]

Offsets = tuple[tuple[int, int], ...]
"""For every token its first character, and the one after its last."""

_PIECE = re.compile(r"\w+|[^\w\s]")
_JOINER = "\u200d"


def tokenize(text: str) -> Offsets:
    """Where the tokens of a text are.

    >>> text = "Dr. Ng's café, 2nd floor"
    >>> [text[start:end] for start, end in tokenize(text)]
    ['Dr', '.', 'Ng', "'", 's', 'café', ',', '2nd', 'floor']
    """
    offsets = [match.span() for match in _PIECE.finditer(text)]
    return tuple(offsets) if text.isascii() else tuple(_join_marks(text, offsets))


def _join_marks(text: str, offsets: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Glue combining marks (and what a zero-width joiner joins) to the token before them."""
    joined: list[tuple[int, int]] = []
    for start, end in offsets:
        touches = bool(joined) and joined[-1][1] == start
        last = text[start - 1] if touches else ""
        if touches and (
            _is_mark(text[start])
            or last == _JOINER
            or (_is_mark(last) and text[start].isalnum() and text[joined[-1][0]].isalnum())
        ):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _is_mark(character: str) -> bool:
    return character == _JOINER or unicodedata.category(character).startswith("M")


def locate(tokens: Sequence[str], text: str, *, where: str = "") -> Offsets:
    """Where given tokens stand in the text that they were cut from, in order.

    >>> locate(["Ada", "sang", "."], "Ada  sang.")
    ((0, 3), (5, 9), (9, 10))
    """
    offsets = []
    cursor = 0
    for number, token in enumerate(tokens, 1):
        start = text.find(token, cursor)
        if start < 0:
            raise InputError(
                f"token {number}, {token!r}, does not occur in the text after character {cursor} "
                "(give 'offsets', or leave 'tokens' out)",
                where=where,
            )
        cursor = start + len(token)
        offsets.append((start, cursor))
    return tuple(offsets)


class TokenSpans(NamedTuple):
    """Token spans, and how many of the given ones had to be changed for it."""

    spans: list[Span]
    widened: int
    dropped: int
    overlapping: int


def to_token_spans(spans: Iterable[Span], offsets: Sequence[tuple[int, int]]) -> TokenSpans:
    """Character spans as spans of the tokens that they touch.

    A span that begins or ends inside a token is widened to the whole token. One that touches no token (blanks only)
    is dropped. Where two overlap, the longer one stays (of equals, the first). All three are counted.

    >>> to_token_spans([Span(0, 8, "PER")], ((0, 3), (4, 12), (12, 13)))
    TokenSpans(spans=[Span(start=0, end=2, label='PER')], widened=1, dropped=0, overlapping=0)
    """
    starts = [start for start, _ in offsets]
    ends = [end for _, end in offsets]
    widened = dropped = overlapping = 0
    found: list[Span] = []
    for start, end, label in spans:
        first = bisect_right(ends, start)
        last = bisect_left(starts, end)
        if first >= last:
            dropped += 1
            continue
        widened += starts[first] < start or ends[last - 1] > end
        found.append(Span(first, last, label))
    kept: list[Span] = []
    for span in sorted(found, key=lambda span: span.start - span.end):
        if any(span.start < other.end and other.start < span.end for other in kept):
            overlapping += 1
        else:
            kept.append(span)
    return TokenSpans(sorted(kept), widened, dropped, overlapping)
