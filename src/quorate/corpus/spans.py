"""A span: in tokens, as everything in this package counts, and in the offsets of a file."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CharSpan", "Span"]


class Span(NamedTuple):
    """Tokens ``start`` to ``end`` (excluded) are one span with this label.

    ``confidence`` is the probability of exactly this span, ``None`` where none is stated; ``layer`` names the set of
    labels that it is of, where there are several.

    >>> Span(0, 2, "PER").confidence is None
    True
    >>> Span(0, 2, "PER", 0.97)
    Span(start=0, end=2, label='PER', confidence=0.97)
    """

    start: int
    end: int
    label: str
    confidence: float | None = None
    layer: str = ""

    @property
    def bare(self) -> Span:
        """The span alone, to be compared with others: two that differ in confidence are not equal.

        >>> Span(0, 2, "PER", 0.97).bare == Span(0, 2, "PER")
        True
        """
        return Span(self.start, self.end, self.label)

    @property
    def sure(self) -> float:
        """The confidence as a number; 1 where none is stated, as an annotator without scores is taken at their word.

        >>> Span(0, 2, "PER", 0.97).sure, Span(0, 2, "PER").sure
        (0.97, 1.0)
        """
        return 1.0 if self.confidence is None else self.confidence

    def __repr__(self) -> str:
        confidence = "" if self.confidence is None else f", confidence={self.confidence!r}"
        layer = f", layer={self.layer!r}" if self.layer else ""
        return f"Span(start={self.start}, end={self.end}, label={self.label!r}{confidence}{layer})"


class CharSpan(NamedTuple):
    """A span as a file gives it: offsets in the file's own unit (tokens, where it has no text), end excluded.

    ``text`` are the words that it holds, if the file says them; the others are those of :class:`Span`.

    >>> CharSpan(0, 3, "PER", "Ada").label
    'PER'
    """

    start: int
    end: int
    label: str
    text: str | None = None
    confidence: float | None = None
    layer: str = ""
