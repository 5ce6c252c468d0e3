"""Documents as tools give them, with character spans; and how spans come to lie on tokens.

A reader yields :class:`Marked` records. :func:`placed` finds out what the offsets count, cuts the text into tokens
(unless the file has its own) and lays the spans on them; :func:`tagged` writes them as tags. What is changed on the way
follows a rule and is counted: blanks at the ends of a span are trimmed off, a token that a span cuts is taken in whole,
a span that holds no token is left out, and of two spans of one annotator that overlap the longer is kept, unless
overlapping spans go to layers of their own. The same goes for each piece of a discontinuous span; pieces with no token
between them are one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from sys import intern
from typing import Any, NamedTuple

from quorate.corpus.discontinuous import in_pieces, joined
from quorate.corpus.offsets import Unit, are_alike, find_units, holds, needs_unit, ruler
from quorate.corpus.records import Document, SoftTag, Source, Tag
from quorate.corpus.spans import CharSpan, Span, merged
from quorate.corpus.tags import OUTSIDE
from quorate.corpus.tokens import Offsets, Places, TokenPlace, locate, place_span, tokenize
from quorate.errors import InputError
from quorate.formats.notes import Notes
from quorate.wording import counted


@dataclass(slots=True)
class Marked:
    """A document with spans. Without ``text``, spans count tokens.

    ``unit`` says what offsets count, where the format leaves no doubt. An annotator named ``""`` is one whom the file
    does not name; ``models`` are those who are no people.

    >>> Marked("1", "Ada sang", {"ann": [CharSpan(0, 3, "PER")]}, Source("crowd.json", 1)).gold is None
    True
    """

    id: str
    text: str | None
    annotations: dict[str, list[CharSpan]]
    source: Source
    gold: list[CharSpan] | None = None
    split: str | None = None
    tokens: Sequence[str] | None = None
    offsets: Offsets | None = None
    unit: Unit | None = None
    origin: Mapping[str, Any] | None = None
    models: frozenset[str] = frozenset()

    def where(self) -> str:
        """Where this document stands, for messages."""
        return f"{self.source.at()}: document {self.id!r}"

    def marks(self) -> Iterator[CharSpan]:
        """Everybody's spans, and those of the gold."""
        for marks in self.annotations.values():
            yield from marks
        yield from self.gold or ()


class Placed(NamedTuple):
    """A document whose spans lie on tokens, and may yet overlap."""

    document: Document
    annotations: dict[str, list[Span]]
    gold: list[Span] | None


class Words(dict[str, str]):
    """One string object for each word, so that millions of tokens cost a pointer each.

    >>> Words().all(["a", "b"])
    ('a', 'b')
    """

    def all(self, words: Iterable[str]) -> tuple[str, ...]:
        """The same words, shared."""
        given = list(words)
        return tuple(map(self.setdefault, given, given))


_SPANS_TRIMMED = "{} {span|spans} began or ended in blanks, which were trimmed off"
_SPANS_WIDENED = "{} {span was|spans were} widened to whole tokens"
_PIECES_OVERLAPPING = "{} discontinuous {span|spans} had pieces that overlapped, which were made one"
PIECES_DROPPED = "{} discontinuous {span|spans} had pieces that held no token, which were left out"
SPANS_DROPPED = "{} {span|spans} that held no token {was|were} left out"
SPANS_OVERLAPPING = (
    "{} {span|spans} overlapped a longer one of the same annotator and {was|were} left out (aggregate --layers "
    "auto keeps them)"
)
GOLD_OVERLAPPING = "{} gold {span|spans} overlapped a longer one and {was|were} left out (a token has one tag)"
_SPANS_TWICE = "{} {span was|spans were} given twice by the same annotator"
SPANS_OTHER_WORDS = (
    "{} {span does|spans do} not hold the words that the file gives with {it|them}, and {was taken by its|were "
    "taken by their} offsets"
)
_UNIT_FOUND = {
    Unit.UTF16: "{} {document counts|documents count} offsets in UTF-16 units, and {is|are} answered in them",
    Unit.CODE_POINTS_LF: (
        "{} {document counts|documents count} a Windows line end as one character, and {is|are} answered so"
    ),
    Unit.UTF16_LF: (
        "{} {document counts|documents count} UTF-16 units, a Windows line end as one, and {is|are} answered so"
    ),
}


def find_units_of(marked: Marked) -> list[Unit]:
    """What a document's offsets count; several units where its spans do not tell them apart."""
    if marked.unit is not None:
        return [marked.unit]
    if marked.text is None:
        return [Unit.CODE_POINTS]
    return find_units(marked.text, marked.marks())


class UnitVotes:
    """What offsets count in a file's documents that tell it, for those that do not.

    >>> votes = UnitVotes()
    >>> votes.count(Marked("1", "👋 Ada", {}, Source("a.jsonl", 1)), Unit.UTF16)
    >>> votes.choose(Marked("2", "👋 a b", {"ann": [CharSpan(3, 4, "X")]}, Source("a.jsonl", 2)), list(Unit)[:2])
    (<Unit.UTF16: 'utf-16'>, True)
    """

    def __init__(self) -> None:
        self._counts: Counter[Unit] = Counter()

    def count(self, marked: Marked, unit: Unit) -> None:
        """Take in a document whose unit is told, if its text depends on it."""
        self._counts[unit] += marked.text is not None and needs_unit(marked.text)

    def choose(self, marked: Marked, units: Sequence[Unit]) -> tuple[Unit, bool]:
        """Of the units that suit a document the one that most others count like; and whether anything tells it."""
        votes = [
            sum(times for other, times in self._counts.items() if are_alike(marked.text or "", unit, other))
            for unit in units
        ]
        return units[votes.index(max(votes))], any(votes) or not _units_matter(marked, units)


def _units_matter(marked: Marked, units: Sequence[Unit]) -> bool:
    """Whether some span lies elsewhere in another of these units."""
    text = marked.text or ""
    return any(
        len({ruler(text, unit).inward(offset) for unit in units}) > 1
        for mark in marked.marks()
        for piece in mark.parts
        for offset in piece
    )


def placed(marked: Marked, unit: Unit, words: Words, notes: Notes) -> Placed:
    """Lay a document's spans on its tokens.

    >>> marked = Marked("1", "👋 Ada sang", {"ann": [CharSpan(3, 7, "PER")]}, Source("crowd.json", 1))
    >>> placed(marked, Unit.UTF16, Words(), Notes()).annotations
    {'ann': [Span(start=1, end=2, label='PER')]}
    """
    text, offsets = marked.text, _offsets(marked)
    if text is None:
        tokens, length = words.all(marked.tokens or ()), len(marked.tokens or ())
        starts: Sequence[int] = range(length)
        ends: Sequence[int] = range(1, length + 1)
    else:
        tokens = words.all(marked.tokens if marked.tokens is not None else [text[start:end] for start, end in offsets])
        starts, ends = offsets.starts, offsets.ends
    if unit is not Unit.CODE_POINTS:
        notes.count(_UNIT_FOUND[unit], 1)
    document = Document(
        marked.id,
        tokens,
        split=marked.split,
        text=text,
        offsets=None if text is None else offsets,
        source=marked.source,
        unit=unit,
        origin=marked.origin,
    )
    lay = _Layer(marked, unit, starts, ends, notes)
    return Placed(
        document,
        {name: lay.spans(marks) for name, marks in marked.annotations.items()},
        None if marked.gold is None else lay.spans(marked.gold),
    )


def _offsets(marked: Marked) -> Places:
    """Where the tokens are: as the file says, found in the text, or cut by the tokenizer."""
    if marked.text is None:
        return Places(())
    if marked.offsets is not None:
        return _checked(marked.offsets, marked.text, marked)
    if marked.tokens is not None:
        return locate(marked.tokens, marked.text, where=marked.where())
    return tokenize(marked.text)


def _checked(offsets: Offsets, text: str, marked: Marked) -> Places:
    """The offsets, if each is a piece of the text after the one before."""
    cursor = 0
    for number, (start, end) in enumerate(offsets, 1):
        if not cursor <= start < end <= len(text):
            raise InputError(
                f"offsets {start}–{end} of token {number} are not a piece of the text after {cursor} "
                f"(its length is {len(text)})",
                where=marked.where(),
            )
        cursor = end
    if marked.tokens is not None and len(marked.tokens) != len(offsets):
        raise InputError(
            f"{counted(len(offsets), 'offset')} for {counted(len(marked.tokens), 'token')} "
            "(give one [start, end] a token)",
            where=marked.where(),
        )
    return Places(offsets)


class _Layer:
    """Lays spans on the tokens of one document."""

    def __init__(self, marked: Marked, unit: Unit, starts: Sequence[int], ends: Sequence[int], notes: Notes) -> None:
        self.marked, self.unit, self.starts, self.ends, self.notes = marked, unit, starts, ends, notes
        self.text = marked.text
        self.ruler = None if self.text is None else ruler(self.text, unit)

    def spans(self, marks: Sequence[CharSpan]) -> list[Span]:
        found: dict[Span, None] = {}
        for mark in marks:
            span = self._in_pieces(mark) if mark.pieces else self._whole(mark)
            if mark.confidence is not None and not 0 <= mark.confidence <= 1:
                raise self._error(
                    f"span {mark.start}–{mark.end} {mark.label!r} has the score {mark.confidence!r} "
                    "(a number from 0 to 1)"
                )
            if mark.text is not None and self.text is not None:
                self.notes.count(SPANS_OTHER_WORDS, not holds(self.text, mark, self.unit))
            if span is None:
                self.notes.count(SPANS_DROPPED, 1)
                continue
            self.notes.count(_SPANS_TWICE, span in found)
            found[span] = None
        return joined(list(found))

    def _whole(self, mark: CharSpan) -> Span | None:
        """A continuous span on tokens; ``None`` if it holds none."""
        place = self._place(mark.start, mark.end, mark.label)
        if place is None:
            return None
        self.notes.count(_SPANS_TRIMMED, place.trimmed)
        self.notes.count(_SPANS_WIDENED, place.widened)
        return Span(place.first, place.last, mark.label, mark.confidence, mark.layer)

    def _in_pieces(self, mark: CharSpan) -> Span | None:
        """A discontinuous span on tokens, without the pieces that hold none; ``None`` if none does."""
        for start, end in mark.pieces:
            self._check(start, end, mark.label)
        pieces = merged(mark.pieces)
        if (mark.start, mark.end) != (pieces[0][0], pieces[-1][1]):
            what = f"{mark.start}–{mark.end} {mark.label!r}"
            raise self._error(f"span {what} does not go from the start of its first piece to the end of its last")
        overlap = any(end > start for (_, end), (start, _) in pairwise(sorted(mark.pieces)))
        self.notes.count(_PIECES_OVERLAPPING, overlap)
        places = [self._place(start, end, mark.label) for start, end in pieces]
        held = [place for place in places if place is not None]
        if not held:
            return None
        self.notes.count(PIECES_DROPPED, len(held) < len(places))
        self.notes.count(_SPANS_TRIMMED, any(place.trimmed for place in held))
        self.notes.count(_SPANS_WIDENED, any(place.widened for place in held))
        return Span.of_pieces([(place.first, place.last) for place in held], mark.label, mark.confidence, mark.layer)

    def _place(self, start: int, end: int, label: str) -> TokenPlace | None:
        """The tokens of a span, or of a piece."""
        self._check(start, end, label)
        if self.ruler is None:
            return place_span(start, end, self.starts, self.ends)
        inner_start, inner_end = self.ruler.inward(start), self.ruler.inward(end)
        if inner_start is None or inner_end is None:
            raise self._error(f"span {start}–{end} {label!r} cuts a character in two (check what offsets count)")
        return place_span(inner_start, inner_end, self.starts, self.ends)

    def _check(self, start: int, end: int, label: str) -> None:
        if not 0 <= start <= end or not label:
            raise self._error(f"span {start}–{end} {label!r} is not a span (0 ≤ start < end, and a label)")
        length = len(self.starts) if self.ruler is None else self.ruler.length
        if end > length:
            raise self._error(
                f"span {start}–{end} {label!r} ends after the text, which ends at {length} (is the text the one that "
                "was annotated?)"
            )

    def _error(self, what: str) -> InputError:
        return InputError(what, where=self.marked.where())


def tagged(
    spans: Sequence[Span], length: int, notes: Notes, left_out: str = SPANS_OVERLAPPING
) -> tuple[Tag | SoftTag, ...]:
    """Spans as BIO tags; of two that overlap the longer stays (of equals, the first), and the other is counted.

    So it is with two of one label that are woven into each other, which tags cannot tell apart (see
    :func:`quorate.corpus.discontinuous.clash`). ``left_out`` is the sentence that counts them. A span with a
    confidence is written as probabilities: that for it, the rest for ``O``.

    >>> tagged([Span(0, 2, "PER"), Span(2, 3, "LOC", 0.9)], 3, Notes())
    ('B-PER', 'I-PER', {'B-LOC': 0.9, 'O': 0.09999999999999998})
    >>> tagged([Span(0, 3, "ADR", pieces=((0, 1), (2, 3)))], 3, Notes())
    ('B-ADR', 'O', 'B-ADR…')
    """
    tags: list[Tag | SoftTag] = [OUTSIDE] * length
    taken = bytearray(length)
    between: defaultdict[str, bytearray] = defaultdict(lambda: bytearray(length))
    woven = any(span.pieces for span in spans)  # only then can one stand between the pieces of another
    for span in sorted(spans, key=lambda span: span.start - span.end):
        pieces = in_pieces([span]) if span.pieces else [span]
        clashes = woven and between[span.label].find(1, span.start, span.end) >= 0
        if clashes or any(taken.find(1, piece.start, piece.end) >= 0 for piece in pieces):
            notes.count(left_out, 1)
            continue
        if woven:
            between[span.label][span.start : span.end] = b"\1" * (span.end - span.start)
        sure = span.sure
        for piece in pieces:
            for position in range(piece.start, piece.end):
                taken[position] = 1
                tag = intern(f"{'B' if position == piece.start else 'I'}-{piece.label}")
                tags[position] = tag if sure == 1 else _soft(tag, sure)
    return tuple(tags)


def _soft(tag: str, sure: float) -> Tag | SoftTag:
    return {tag: sure, OUTSIDE: 1.0 - sure} if sure > 0 else OUTSIDE
