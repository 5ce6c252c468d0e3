"""What an offset counts: code points, UTF-16 units, or either with a Windows line end as one.

Python counts code points; browsers and Java count UTF-16 units, in which a character beyond the basic plane (an emoji,
say) is two; some tools turn ``\\r\\n`` into ``\\n`` before they count. Where a text holds none of these, all agree.
Inside this package offsets are code points; they are turned into them on the way in, and back on the way out.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache

from quorate.corpus.spans import CharSpan

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_LINE_END = re.compile("\r\n")


class Unit(StrEnum):
    """What an offset counts.

    >>> Unit("utf-16") is Unit.UTF16
    True
    """

    CODE_POINTS = "code-points"
    UTF16 = "utf-16"
    CODE_POINTS_LF = "code-points-lf"
    UTF16_LF = "utf-16-lf"


class Ruler:
    """Offsets of one text, from code points to a unit and back.

    >>> ruler = Ruler("👋 Ada", Unit.UTF16)
    >>> ruler.outward(2), ruler.inward(3), ruler.inward(1)
    (3, 2, None)
    """

    def __init__(self, text: str, unit: Unit) -> None:
        self._length = len(text)
        self._astral = [match.start() for match in _ASTRAL.finditer(text)] if unit in _WIDE else []
        self._line_ends = [match.start() for match in _LINE_END.finditer(text)] if unit in _JOINED else []
        self.is_identity = not self._astral and not self._line_ends
        self.length = self.outward(len(text))

    def measures_like(self, other: Ruler) -> bool:
        """Whether another ruler of the same text gives the same offsets."""
        return self._astral == other._astral and self._line_ends == other._line_ends

    def outward(self, position: int) -> int:
        """A number of code points, in the unit."""
        if self.is_identity:
            return position
        return position + bisect_left(self._astral, position) - bisect_left(self._line_ends, position)

    def inward(self, offset: int) -> int | None:
        """An offset in the unit, in code points; ``None`` if it is not in the text, or inside a character."""
        if not 0 <= offset <= self.length:
            return None
        if self.is_identity:
            return offset
        position = bisect_left(range(self._length + 1), offset, key=self.outward)
        return position if self.outward(position) == offset else None


_WIDE = (Unit.UTF16, Unit.UTF16_LF)
_JOINED = (Unit.CODE_POINTS_LF, Unit.UTF16_LF)


@lru_cache(maxsize=8)
def ruler(text: str, unit: Unit) -> Ruler:
    """The ruler of a text, kept for the spans that follow in the same text.

    >>> ruler("a\\r\\nb", Unit.CODE_POINTS_LF).outward(4)
    3
    """
    return Ruler(text, unit)


def find_units(text: str, spans: Iterable[CharSpan]) -> list[Unit]:
    """The units in which the most spans lie in the text and hold the words they say: several where those do not tell.

    >>> find_units("👋 Ada", [CharSpan(3, 6, "PER", "Ada")]), find_units("Ada 👋", [CharSpan(0, 3, "PER", "Ada")])
    ([<Unit.UTF16: 'utf-16'>], [<Unit.CODE_POINTS: 'code-points'>, <Unit.UTF16: 'utf-16'>])
    """
    candidates = _candidates(text)
    if len(candidates) == 1:
        return candidates
    given = list(spans)
    wrong = {unit: sum(not _holds(text, span, ruler(text, unit)) for span in given) for unit in candidates}
    least = min(wrong.values())
    return [unit for unit in candidates if wrong[unit] == least]


def needs_unit(text: str) -> bool:
    """Whether the units differ on this text.

    >>> needs_unit("Ada"), needs_unit("👋"), needs_unit("a\\r\\nb")
    (False, True, True)
    """
    return len(_candidates(text)) > 1


def are_alike(text: str, one: Unit, other: Unit) -> bool:
    """Whether two units measure this text the same.

    >>> are_alike("👋", Unit.UTF16, Unit.UTF16_LF), are_alike("👋", Unit.UTF16, Unit.CODE_POINTS)
    (True, False)
    """
    return ruler(text, one).measures_like(ruler(text, other))


def holds(text: str, span: CharSpan, unit: Unit) -> bool:
    """Whether a span lies in the text, and is of the words that it says.

    >>> holds("Ada sang", CharSpan(0, 3, "PER", "Ada"), Unit.CODE_POINTS)
    True
    >>> holds("Ada sang", CharSpan(0, 4, "PER", "Bob"), Unit.UTF16)
    False
    """
    return _holds(text, span, ruler(text, unit))


def _candidates(text: str) -> list[Unit]:
    """The units that differ on this text."""
    astral, joined = not text.isascii() and _ASTRAL.search(text) is not None, "\r\n" in text
    if not astral and not joined:
        return [Unit.CODE_POINTS]
    if not joined:
        return [Unit.CODE_POINTS, Unit.UTF16]
    return [Unit.CODE_POINTS, Unit.CODE_POINTS_LF] if not astral else list(Unit)


def _holds(text: str, span: CharSpan, measure: Ruler) -> bool:
    held = ""
    for piece in span.parts:
        start, end = map(measure.inward, piece)
        if start is None or end is None:
            return False
        held += text[start:end]
    return span.text is None or _bare(held) == _bare(span.text)


def _bare(text: str) -> str:
    """Without blanks, which tools rewrite: a line end as a blank, or as a backslash and an n."""
    return "".join(text.replace("\\n", " ").split())
