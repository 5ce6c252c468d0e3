"""Two tokenisations of one text: the labels of each are carried over to the pieces into which both cut it.

Blanks do not count. A token is made of whole pieces in both, so that spans keep their characters, and two of them are
the same on the pieces if and only if they are the same in the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from quorate.corpus.records import Tag
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme, TagSet
from quorate.corpus.tokens import Offsets
from quorate.errors import InputError
from quorate.wording import counted

COMPARED_BY_CHARACTERS = (
    "spans were compared by characters, tags on the pieces that both are made of, and scores of tokens' probabilities "
    "were left out"
)
"""What becomes of the scores."""


class Cut(NamedTuple):
    """A text without blanks, and where tokens begin and end in it.

    >>> Cut.of(["Dr.", "Ng"]), Cut.of(["Dr.", "Ng"], "Dr. Ng", [(0, 3), (4, 6)]).places
    (Cut(text='Dr.Ng', places=[(0, 3), (3, 5)]), [(0, 3), (3, 5)])
    """

    text: str
    places: list[tuple[int, int]]

    @classmethod
    def of(cls, tokens: Sequence[str], text: str | None = None, offsets: Offsets | None = None) -> Cut:
        """From a text and its tokens' offsets, or from what the tokens spell."""
        if text is None or offsets is None:
            spelled = ["".join(token.split()) for token in tokens]
            ends = list(accumulate(map(len, spelled), initial=0))
            return cls("".join(spelled), list(pairwise(ends)))
        before = list(accumulate((not letter.isspace() for letter in text), initial=0))
        return cls("".join(text.split()), [(before[start], before[end]) for start, end in offsets])


class Pieces(NamedTuple):
    """Which pieces, ``first`` to ``last`` (excluded), each token is made of in both; and how many pieces there are.

    >>> found = pieces(Cut.of(["Dr.", "Ng"]), Cut.of(["Dr", ".", "Ng"]), where="")
    >>> found.one, found.other, found.n
    ([(0, 2), (2, 3)], [(0, 1), (1, 2), (2, 3)], 3)
    """

    one: list[tuple[int, int]]
    other: list[tuple[int, int]]
    n: int


def pieces(one: Cut, other: Cut, *, where: str) -> Pieces:
    """The pieces into which both cut a text; :class:`InputError` if the texts differ."""
    if one.text != other.text:
        at = next((n for n, (a, b) in enumerate(zip(one.text, other.text, strict=False)) if a != b), None)
        at = min(len(one.text), len(other.text)) if at is None else at
        seen, gold = (text[at : at + 12] for text in (one.text, other.text))
        raise InputError(
            f"{counted(len(one.places), 'tag')} for {counted(len(other.places), 'gold token')} of another text: "
            f"after {at} characters "
            f"(blanks aside) {seen!r} stands where the gold has {gold!r} (give consensus and gold of the same texts)",
            where=where,
        )
    bounds = sorted({0, *(bound for cut in (one, other) for place in cut.places for bound in place)})
    place = {bound: number for number, bound in enumerate(bounds)}
    laid = [[(place[start], place[end]) for start, end in cut.places] for cut in (one, other)]
    return Pieces(laid[0], laid[1], len(bounds) - 1)


def tags_on_pieces(tags: Sequence[Tag], places: Sequence[tuple[int, int]], n: int, tagset: TagSet) -> list[Tag]:
    """The tags of tokens on the pieces that these are made of; ``None`` where there is no label.

    >>> tags_on_pieces(["B-P", "O"], [(0, 2), (2, 3)], 3, TagSet.infer(["O", "B-P"]))
    ['B-P', 'I-P', 'O']
    """
    if tagset.scheme is Scheme.PLAIN:
        found: list[Tag] = [None] * n
        for tag, (first, last) in zip(tags, places, strict=True):
            found[first:last] = [tag] * (last - first)
        return found
    found = list(tagset.tags(spans_on_pieces(tagset.spans(tags), places), n))
    for tag, (first, last) in zip(tags, places, strict=True):
        if tag is None:
            found[first:last] = [None] * (last - first)
    return found


def spans_on_pieces(spans: Sequence[Span], places: Sequence[tuple[int, int]]) -> list[Span]:
    """Spans of tokens as spans of pieces.

    >>> spans_on_pieces([Span(1, 2, "P", 0.9)], [(0, 2), (2, 5)])
    [Span(start=2, end=5, label='P', confidence=0.9)]
    """
    laid = [[(places[start][0], places[end - 1][1]) for start, end in span.parts] for span in spans]
    return [
        Span.of_pieces(parts, span.label, span.confidence, span.layer)
        for span, parts in zip(spans, laid, strict=True)
        if parts[0][0] < parts[-1][1]
    ]
