"""Which columns of a file in CoNLL columns hold the words and the tags, and in which way the tags mark spans.

Files have what their makers needed: a number, part of speech, chunks, fillers (``-X-``, ``_``). If some columns are of
tags and others are not, the last one of tags counts, or those that are named; if all are of tags, each is an
annotator's. Tags are rewritten as BIO or BIOES where a file is in another way of writing them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

from quorate.corpus.tags import OUTSIDE, Scheme, marks_span, opening, split_tag
from quorate.errors import InputError
from quorate.formats.notes import Notes

NOT_SEEN = "?"
GOLD = "gold"
TOKEN = "token"
WORDS = {TOKEN, "tokens", "word", "words", "form"}
"""Names of the column of words, in a header."""
_OF_GRAMMAR = {
    "id", "index", "lemma", "pos", "pos_tag", "pos_tags", "upos", "xpos", "chunk", "chunks", "chunk_tag", "chunk_tags",
    "feats", "head", "deprel", "deps", "misc",
}  # fmt: skip
_NOBODYS_NAME = {
    "tag",
    "tags",
    "label",
    "labels",
    "ner",
    "ner_tag",
    "ner_tags",
    "ner-tag",
    "ne",
    "bio",
    "iob",
    "entity",
}
_FILLERS = {"_", "-", "--", "-X-", "*"}
_PREFIXES = "BIESLUMW"
_AS_BIOES = {"L": "E", "U": "S", "M": "I", "W": "S"}  # of BILOU, and of BMES and BMEWO
_SURELY_APART = 3  # columns without any label in common, which are not three annotators'
_OTHER_SCHEME = "{} {file marks|files mark} spans as {what}, which was read as {as_what}"


class Header(NamedTuple):
    """A line that names the columns after the first, or a comment that begins like one."""

    columns: list[str]
    where: str


class Layout(NamedTuple):
    """Of a row: how many cells it has, where the word stands, and of every annotator the name, and where the tag is.

    ``rewritten`` makes the tags of a document BIO or BIOES, if they are not.
    """

    width: int
    word: int
    names: list[str]
    places: list[int]
    rewritten: Callable[[Sequence[str]], Sequence[str]] | None = None
    has_tags: bool = True
    is_named: bool = True

    def expected(self) -> str:
        """What a row of a token should hold, in words."""
        if self.width == len(self.places) + 1:
            return f"a token and a tag for each of {', '.join(self.names) or 'no annotators'}; ? where not annotated"
        return f"as in the first row; tags are in column {', '.join(str(place + 1) for place in self.places)}"


class Counted:
    """What stands in each column, and what stands before it in the same document.

    >>> counted = Counted(2)
    >>> counted.add([b"Ada", b"B-PER"]), counted.add([b"Ng", b"I-PER"])
    (None, None)
    >>> dict(counted.pairs(1))
    {('', 'B-PER'): 1, ('B-PER', 'I-PER'): 1}
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._pairs: list[Counter[tuple[bytes, bytes]]] = [Counter() for _ in range(width)]
        self._before: Sequence[bytes] = [b""] * width
        self.rows = 0
        self._counts_up = [True, True]  # whether the first column counts the tokens, from 0 or from 1
        self._number = 0

    def add(self, cells: Sequence[bytes]) -> None:
        """Take in a row."""
        self.rows += 1
        for first in (0, 1):
            self._counts_up[first] &= cells[0] == b"%d" % (self._number + first)
        self._number += 1
        for pairs, before, cell in zip(self._pairs, self._before, cells, strict=True):
            pairs[before, cell] += 1
        self._before = cells

    def end_document(self) -> None:
        """What comes now follows nothing."""
        self._before, self._number = [b""] * self.width, 0

    def pairs(self, column: int) -> Counter[tuple[str, str]]:
        """How often what follows what in a column."""
        return Counter(
            {
                (before.decode("utf-8", "replace"), cell.decode("utf-8", "replace")): times
                for (before, cell), times in self._pairs[column].items()
            }
        )

    def values(self, column: int) -> Counter[str]:
        """How often what stands in a column."""
        found: Counter[str] = Counter()
        for (_, cell), times in self.pairs(column).items():
            found[cell] += times
        return found

    @property
    def is_numbered(self) -> bool:
        """Whether the first column counts the tokens of every document."""
        return self.rows > 0 and any(self._counts_up)


def is_tag(cell: str) -> bool:
    """Whether a cell is a tag of a span scheme, whichever it is.

    >>> [is_tag(cell) for cell in ("O", "U-PER", "NNP", "-X-")]
    [True, True, False, False]
    """
    return cell == OUTSIDE or (len(cell) > 2 and cell[1] == "-" and cell[0] in _PREFIXES)


def are_tags(cells: Sequence[str]) -> bool:
    """Whether all cells are tags, or say that nobody annotated."""
    return bool(cells) and all(cell == NOT_SEEN or is_tag(cell) for cell in cells)


def layout_of(counted: Counted, header: Header | None, wanted: str | None, file: str, notes: Notes) -> Layout:
    """Where the words and tags are: in the columns that are wanted, or in those that read so."""
    values = [counted.values(column) for column in range(counted.width)]
    word = _place_of_words(counted, values, header)
    columns = [column for column in range(counted.width) if column != word]
    names = {} if header is None else dict(enumerate(header.columns, 1))
    tags = [column for column in columns if _reads_as_tags(values[column])]
    if wanted is not None:
        chosen = _wanted(wanted, names, word, counted.width, file)
    elif len(tags) == len(columns):
        chosen = columns
        _tell_doubtful(chosen, values, names, notes)
    elif not tags:
        chosen = _of_plain_labels(columns, values, header, file)
    else:
        chosen = _last_of_tags(tags, names)
    if wanted is None and chosen != columns and tags:
        _tell_chosen(chosen, columns, tags, names, notes)
    pairs = sum((counted.pairs(column) for column in chosen), Counter())
    called = [GOLD if names.get(column) == GOLD else names.get(column, "") for column in chosen]
    if len(called) == 1 and called[0].casefold() in _NOBODYS_NAME and len(columns) > 1:
        called = [""]
    return Layout(
        counted.width,
        word,
        [name or f"A{number}" for number, name in enumerate(called, 1)],
        chosen,
        _rewriting(pairs, notes),
        has_tags=bool(tags),
        is_named=any(called),
    )


def _place_of_words(counted: Counted, values: Sequence[Counter[str]], header: Header | None) -> int:
    """The first column; the next one if the first counts tokens."""
    if header is not None:
        named = [column for column, name in enumerate(header.columns, 1) if name.casefold() in WORDS]
        return named[0] if named and counted.is_numbered else 0
    return int(counted.width > 2 and counted.is_numbered and not _reads_as_tags(values[1]))


def _reads_as_tags(values: Counter[str]) -> bool:
    """Whether at least half of what is filled are tags: anything else among them is a mistake, to be told."""
    filled = {cell: times for cell, times in values.items() if cell != NOT_SEEN}
    return 2 * sum(times for cell, times in filled.items() if is_tag(cell)) >= sum(filled.values())


def _wanted(wanted: str, names: dict[int, str], word: int, width: int, file: str) -> list[int]:
    """The columns that are named, by their number from 1 or by the header."""
    chosen: list[int] = []
    for one in (name.strip() for name in wanted.split(",")):
        named = [column for column, name in names.items() if name == one]
        number = int(one) if one.isdecimal() else 0
        if not named and not 1 <= number <= width:
            called = f", called {', '.join(names.values())} after the first" if names else ""
            raise InputError(f"no column {one!r} (it has {width}{called}; --tag-column takes a number)", where=file)
        column = named[0] if named else number - 1
        if column == word:
            raise InputError(f"column {one} has the words (--tag-column names one of tags)", where=file)
        chosen += [] if column in chosen else [column]
    return chosen


def _of_plain_labels(
    columns: Sequence[int], values: Sequence[Counter[str]], header: Header | None, file: str
) -> list[int]:
    """All columns but those with fillers, if they can be annotators' labels."""
    filled = [column for column in columns if not _FILLERS.issuperset(values[column])] or list(columns)
    users = Counter(chain.from_iterable(values[column].keys() - {NOT_SEEN, *_FILLERS} for column in filled))
    if header is None and len(filled) >= _SURELY_APART and all(times == 1 for times in users.values()):
        raise InputError(
            f"none of {len(columns)} columns beside the token reads as tags (O, B-x, I-x), and they share no label "
            "(say which has the labels: --tag-column 4)",
            where=file,
        )
    return filled


def _last_of_tags(tags: Sequence[int], names: dict[int, str]) -> list[int]:
    """The last column of tags; where a header names them, all that are not of grammar."""
    if not names:
        return [tags[-1]]
    return [column for column in tags if names[column].casefold() not in _OF_GRAMMAR] or [tags[-1]]


def _tell_chosen(
    chosen: Sequence[int], columns: Sequence[int], tags: Sequence[int], names: dict[int, str], notes: Notes
) -> None:
    """Note which columns were not read, and whether there are tags in them."""

    def listed(places: Sequence[int]) -> str:
        called = [names.get(place) or str(place + 1) for place in places]
        return f"column{'s' if len(called) > 1 else ''} {', '.join(called)}"

    rest = [column for column in columns if column not in chosen]
    passed = [column for column in rest if column in tags]
    instead = ",".join(names.get(place) or str(place + 1) for place in sorted([*passed, *chosen]))
    too = f"; {listed(passed)} would read as tags too: --tag-column {instead} takes all of them" if passed else ""
    change = "" if passed else "; --tag-column takes another"
    notes.add(
        f"tags are in {listed(chosen)}, and {listed(rest)} {'are' if len(rest) > 1 else 'is'} not read{too}{change}"
    )


def _tell_doubtful(chosen: Sequence[int], values: Sequence[Counter[str]], names: dict[int, str], notes: Notes) -> None:
    """Note columns that share no type with any other, as chunks and names do not: they may not be annotators'."""
    types = {column: {cell[2:] for cell in values[column] if len(cell) > 2} for column in chosen}
    marked = [column for column in chosen if types[column]]
    for number, column in enumerate(chosen, 1):
        others = set().union(*(types[other] for other in marked if other != column))
        if len(marked) > 1 and types[column] and types[column].isdisjoint(others):
            notes.doubtful[names.get(column) or f"A{number}"] = None


def _rewriting(pairs: Counter[tuple[str, str]], notes: Notes) -> Callable[[Sequence[str]], Sequence[str]] | None:
    """How tags become BIO or BIOES, if they are neither, by what follows what in the file."""
    found: Counter[str] = Counter()  # by prefix
    begins: Counter[str] = Counter()  # the same of tags that cannot continue what is before them
    for (before, tag), times in pairs.items():
        if tag not in (OUTSIDE, NOT_SEEN):
            if not is_tag(tag):
                return None  # of which whoever knows the scheme will say it
            found[tag[0]] += times
            continues = _same_type(before, tag)
            begins[tag[0]] += 0 if continues else times
    if found["B"] and set(found) <= {"B", "I", "E", *_AS_BIOES, "S"} and any(found[letter] for letter in _AS_BIOES):
        is_bilou = bool(found["L"] or found["U"])
        what = "BILOU" if is_bilou else "BMES"
        notes.count(_OTHER_SCHEME.replace("{what}", what).replace("{as_what}", Scheme.BIOES.upper()), 1)
        return _as_bioes
    if set(found) == {"B", "I"} and not begins["B"] and begins["I"] > found["B"]:
        notes.count(_OTHER_SCHEME.replace("{what}", "IOB1").replace("{as_what}", Scheme.BIO.upper()), 1)
        return _as_bio
    return None


def _same_type(before: str, tag: str) -> bool:
    """Whether a tag may go on with the span of the one before it, or nobody knows."""
    return before == NOT_SEEN or (marks_span(before) and split_tag(before)[1] == split_tag(tag)[1])


def _as_bioes(tags: Sequence[str]) -> Sequence[str]:
    return [_AS_BIOES.get(tag[0], tag[0]) + tag[1:] if "-" in tag else tag for tag in tags]


def _as_bio(tags: Sequence[str]) -> Sequence[str]:
    """IOB1 as BIO: what begins a span is ``B-x``.

    >>> _as_bio(["I-PER", "I-PER", "B-PER", "O", "I-LOC"])
    ['B-PER', 'I-PER', 'B-PER', 'O', 'B-LOC']
    """
    made, before = [], OUTSIDE
    for tag in tags:
        made.append(tag if _same_type(before, tag) else opening(tag))
        before = tag
    return made
