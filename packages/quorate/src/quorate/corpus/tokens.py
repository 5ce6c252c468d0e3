"""The tokenizer for texts that come without tokens, and character spans ⇄ token spans.

A token is a run of letters, digits, underscores and the marks that combine with them, or any other single character
that is not a blank. Nothing depends on a language or a model, so that the same text is always cut in the same places.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, overload

from quorate.errors import InputError

Offsets = Sequence[tuple[int, int]]
"""For every token its first character, and the one after its last."""


class Places(Sequence[tuple[int, int]]):
    """Offsets that take eight bytes a token: a large corpus has many.

    >>> places = Places([(0, 3), (4, 8)])
    >>> places[1], len(places), places == ((0, 3), (4, 8))
    ((4, 8), 2, True)
    """

    __slots__ = ("_flat",)

    def __init__(self, pairs: Iterable[tuple[int, int]]) -> None:
        self._flat = array("i", chain.from_iterable(pairs))

    @property
    def starts(self) -> Sequence[int]:
        """Where each token begins."""
        return self._flat[::2]

    @property
    def ends(self) -> Sequence[int]:
        """Where each token ends."""
        return self._flat[1::2]

    def __len__(self) -> int:
        return len(self._flat) // 2

    @overload
    def __getitem__(self, index: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[tuple[int, int], ...]: ...
    def __getitem__(self, index: int | slice) -> tuple[int, int] | tuple[tuple[int, int], ...]:
        if isinstance(index, slice):
            return tuple(self[place] for place in range(len(self))[index])
        place = range(len(self))[index]
        return self._flat[2 * place], self._flat[2 * place + 1]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        flat = iter(self._flat)
        return zip(flat, flat, strict=True)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Places):
            return self._flat == other._flat
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))


_PIECE = re.compile(r"\w+|[^\w\s]")
_JOINER = "\u200d"


def tokenize(text: str) -> Places:
    """Where the tokens of a text are.

    >>> text = "Dr. Ng's café, 2nd floor"
    >>> [text[start:end] for start, end in tokenize(text)]
    ['Dr', '.', 'Ng', "'", 's', 'café', ',', '2nd', 'floor']
    """
    offsets = [match.span() for match in _PIECE.finditer(text)]
    return Places(offsets if text.isascii() else _join_marks(text, offsets))


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


def locate(tokens: Sequence[str], text: str, *, where: str = "") -> Places:
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
    return Places(offsets)


class TokenPlace(NamedTuple):
    """The tokens ``first`` to ``last`` (excluded) that a character span stands for, and what was changed for it."""

    first: int
    last: int
    trimmed: bool
    widened: bool


def place_span(start: int, end: int, starts: Sequence[int], ends: Sequence[int]) -> TokenPlace | None:
    """The tokens that a character span touches; ``None`` if it touches none.

    Blanks before and after are trimmed off; a token that the span cuts belongs to it whole.

    >>> place_span(1, 4, (0, 4), (3, 8))
    TokenPlace(first=0, last=1, trimmed=True, widened=True)
    """
    first = bisect_right(ends, start)
    last = bisect_left(starts, end)
    if first >= last or start >= end:
        return None
    begins, stops = starts[first], ends[last - 1]
    return TokenPlace(first, last, start < begins or end > stops, start > begins or end < stops)
