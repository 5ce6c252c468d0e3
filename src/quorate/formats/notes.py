"""What readers changed on the way in, counted, and said in sentences."""

from __future__ import annotations

from collections import Counter

__all__ = ["Notes"]


class Notes:
    """Counts by sentence; a sentence has one ``{}`` for its number.

    >>> notes = Notes()
    >>> notes.count("{} spans were widened", 2)
    >>> notes.count("{} spans were widened", 1)
    >>> notes.sentences()
    ['3 spans were widened']
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def count(self, sentence: str, times: int) -> None:
        """Add to the number of times that this happened."""
        if times:
            self._counts[sentence] += times

    def sentences(self) -> list[str]:
        """Everything that happened, in the order of its first time."""
        return [sentence.format(times) for sentence, times in self._counts.items()]
