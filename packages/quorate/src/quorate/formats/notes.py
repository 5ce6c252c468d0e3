"""What readers changed on the way in, counted, and said in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from quorate.wording import in_number, person


def some(names: Sequence[str], most: int = 3) -> str:
    """The first few names, and how many more there are.

    >>> some(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def people(names: Sequence[str], most: int = 3) -> str:
    """The same of annotators, for a sentence.

    >>> people(["ann", "7"])
    'ann, annotator “7”'
    """
    return some([person(name) for name in names], most)


class Notes:
    """Counts by sentence; a sentence has ``{}`` for its number, and ``{one|many}`` for words that depend on it.

    >>> notes = Notes()
    >>> notes.count("{} {span was|spans were} widened", 1)
    >>> notes.sentences()
    ['1 span was widened']
    >>> notes.count("{} {span was|spans were} widened", 2)
    >>> notes.sentences()
    ['3 spans were widened']
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self.doubtful: dict[str, None] = {}
        """Columns that may be no annotator's, to be told once it is known which ones were renamed or left out."""
        self.left_out: dict[str, None] = {}
        """Columns with no tags, to be told once it is known whether names are to be hidden: one may be a person's."""

    def count(self, sentence: str, times: int) -> None:
        """Add to the number of times that this happened."""
        if times:
            self._counts[sentence] += times

    def add(self, sentence: str) -> None:
        """A sentence without a number, said once.

        >>> notes = Notes()
        >>> notes.add("{} is an odd name")
        >>> notes.sentences()
        ['{} is an odd name']
        """
        self._counts[sentence.replace("{", "{{").replace("}", "}}")] = 1

    def __contains__(self, sentence: object) -> bool:
        """Whether this has happened.

        >>> "{} {span was|spans were} widened" in Notes()
        False
        """
        return sentence in self._counts

    def sentences(self) -> list[str]:
        """Everything that happened, in the order of its first time."""
        return [in_number(sentence, times) for sentence, times in self._counts.items()]
