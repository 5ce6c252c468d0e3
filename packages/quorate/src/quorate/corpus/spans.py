"""A span: in tokens, as everything in this package counts, and in the offsets of a file.

A *discontinuous* span ("muscle … pain" in "muscle and joint pain") is one entity of several pieces. Its ``start`` and
``end`` are those of its first and last piece, so that whatever needs no more than its bounds need not know of pieces.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

Pieces = tuple[tuple[int, int], ...]
"""The pieces of a discontinuous span in their order, each with its start and its end (excluded)."""


def merged(pieces: Iterable[tuple[int, int]]) -> Pieces:
    """Pieces in their order, those that touch or overlap made one.

    >>> merged([(4, 5), (0, 2), (2, 3)])
    ((0, 3), (4, 5))
    """
    found: list[tuple[int, int]] = []
    for start, end in sorted(pieces):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)


class Span(NamedTuple):
    """Tokens ``start`` to ``end`` (excluded) are one span with this label.

    ``confidence`` is the probability of exactly this span, ``None`` where none is stated; ``layer`` names the set of
    labels that it is of, where there are several. ``pieces`` are those of a discontinuous span, from ``start`` to
    ``end``; a continuous one has none.

    >>> Span(0, 2, "PER").confidence is None
    True
    >>> Span(0, 2, "PER", 0.97)
    Span(start=0, end=2, label='PER', confidence=0.97)
    >>> Span(0, 4, "ADR", pieces=((0, 1), (3, 4)))
    Span(start=0, end=4, label='ADR', pieces=((0, 1), (3, 4)))
    """

    start: int
    end: int
    label: str
    confidence: float | None = None
    layer: str = ""
    pieces: Pieces = ()

    @classmethod
    def of_pieces(
        cls, pieces: Iterable[tuple[int, int]], label: str, confidence: float | None = None, layer: str = ""
    ) -> Span:
        """The span of these pieces, a continuous one if none is left after those that touch are made one.

        >>> Span.of_pieces([(0, 1), (3, 4)], "ADR"), Span.of_pieces([(0, 1), (1, 4)], "ADR")
        (Span(start=0, end=4, label='ADR', pieces=((0, 1), (3, 4))), Span(start=0, end=4, label='ADR'))
        """
        apart = merged(pieces)
        return cls(apart[0][0], apart[-1][1], label, confidence, layer, apart if len(apart) > 1 else ())

    @property
    def bare(self) -> Span:
        """The span alone, to be compared with others: two that differ in confidence are not equal.

        >>> Span(0, 2, "PER", 0.97).bare == Span(0, 2, "PER")
        True
        """
        return Span(self.start, self.end, self.label, pieces=self.pieces)

    @property
    def parts(self) -> Pieces:
        """Its pieces; of a continuous span, the whole.

        >>> Span(0, 2, "PER").parts, Span(0, 4, "ADR", pieces=((0, 1), (3, 4))).parts
        (((0, 2),), ((0, 1), (3, 4)))
        """
        return self.pieces or ((self.start, self.end),)

    @property
    def tokens(self) -> list[int]:
        """The positions of its tokens.

        >>> Span(0, 4, "ADR", pieces=((0, 1), (2, 4))).tokens
        [0, 2, 3]
        """
        return [position for start, end in self.parts for position in range(start, end)]

    def overlaps(self, other: Span) -> bool:
        """Whether they share a token.

        >>> apart = Span(0, 4, "ADR", pieces=((0, 1), (3, 4)))
        >>> apart.overlaps(Span(1, 3, "ADR")), apart.overlaps(Span(2, 4, "ADR"))
        (False, True)
        """
        if not (self.start < other.end and other.start < self.end):
            return False
        if not self.pieces and not other.pieces:
            return True
        return any(start < end and begin < stop for start, stop in self.parts for begin, end in other.parts)

    @property
    def sure(self) -> float:
        """The confidence as a number; 1 where none is stated, as an annotator without scores is taken at their word.

        >>> Span(0, 2, "PER", 0.97).sure, Span(0, 2, "PER").sure
        (0.97, 1.0)
        """
        return 1.0 if self.confidence is None else self.confidence

    def __repr__(self) -> str:
        confidence = "" if self.confidence is None else f", confidence={self.confidence:.4g}"
        layer = f", layer={self.layer!r}" if self.layer else ""
        pieces = f", pieces={self.pieces!r}" if self.pieces else ""
        return f"Span(start={self.start}, end={self.end}, label={self.label!r}{confidence}{layer}{pieces})"


class CharSpan(NamedTuple):
    """A span as a file gives it: offsets in the file's own unit (tokens, where it has no text), end excluded.

    ``text`` are the words that it holds, if the file says them (those of pieces with a blank between); the others are
    those of :class:`Span`.

    >>> CharSpan(0, 3, "PER", "Ada").label
    'PER'
    """

    start: int
    end: int
    label: str
    text: str | None = None
    confidence: float | None = None
    layer: str = ""
    pieces: Pieces = ()

    @property
    def parts(self) -> Pieces:
        """Its pieces; of a continuous span, the whole.

        >>> CharSpan(0, 3, "PER").parts
        ((0, 3),)
        """
        return self.pieces or ((self.start, self.end),)

    def __repr__(self) -> str:
        pieces = f", pieces={self.pieces!r}" if self.pieces else ""
        return (
            f"CharSpan(start={self.start}, end={self.end}, label={self.label!r}, text={self.text!r}, "
            f"confidence={self.confidence!r}, layer={self.layer!r}{pieces})"
        )
