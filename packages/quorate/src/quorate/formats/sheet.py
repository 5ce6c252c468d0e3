"""Spreadsheets with a row a token and a column an annotator, as CSV or TSV with a header.

::

    doc,token,ann,ben,gold
    d1,Ada,B-PER,B-PER,B-PER
    d1,sang,O,,O

An empty cell, or ``?``, means not annotated. Words are in ``word``, or else in ``token``, which otherwise counts them.
A document's name may stand in its first row alone; without a column for it, an empty row ends a document. Without
words, ``task`` or ``doc`` and a column an annotator are plain classification, a row a document. Where there are tags of
spans, columns that hold something else are left out.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, groupby, islice, pairwise
from typing import Any, NamedTuple

from quorate.corpus.records import Document, Source, Tag
from quorate.corpus.tags import OUTSIDE, marks_span
from quorate.errors import InputError, OutputError
from quorate.formats.cells import as_cell, from_cell
from quorate.formats.conll import GOLD, NOT_SEEN, column_names, column_tags
from quorate.formats.exports import Export
from quorate.formats.notes import Notes, some
from quorate.formats.opened import Input
from quorate.formats.table import NO_WORD, cells_in, delimiter_in, delimiter_of, known_names, rows_in
from quorate.storage.files.atomic import written_whole

_DOCUMENT = ("doc", "task", "doc_id", "document_id", "sentence", "sentence_id", "sent_id", "sentence #", "id")
_MAY_BE_WORDS = {"sentence", "id"}  # the first of a text in columns, as the other names hardly are
_WORDS = ("word", "token")  # where both are there, the second one counts
_OF_OTHER_TABLES = {"worker", "label", "tag"}
_NOT_READ = {
    "text", "start", "end", "index", "position", "number", "no", "row", "#", "comment", "comments", "note", "notes",
    "confidence", "time", "duration", "date", "timestamp",
}  # fmt: skip
NOBODYS = {*_DOCUMENT, *_WORDS, *_OF_OTHER_TABLES, *_NOT_READ, GOLD, "annotator", "document", "split", ""}
"""Names of columns that are no annotator's."""
ROWS = 100
"""Rows by which a sheet is told."""
_DIGITS = 10  # of a number at most
_EMPTY = ("", NOT_SEEN)
_PARTLY_EMPTY = (
    "{} {annotation of a document is|annotations of documents are} empty at some tokens, which count as not annotated "
    "(write O where nothing is marked)"
)
_NO_TOKENS = "{} {document has|documents have} no tokens and {is|are} not written: a sheet has a row for each token"


def begins_sheet(opening: bytes) -> bool:
    """Whether a file that begins so is a sheet.

    >>> begins_sheet(b"token;ann;ben\\nAda;B-PER;O"), begins_sheet(b"token,B-PER\\nAda,B-PER")
    (True, False)
    """
    lines = io.StringIO(opening.decode("utf-8", "replace").lstrip("\r\n"), newline="")
    head = next(lines, "")
    if head.startswith("#") and head[1:].lstrip().lower().startswith("token"):
        return False  # as CoNLL names its columns
    reader = csv.reader(lines, delimiter=delimiter_in(head), skipinitialspace=True)
    try:
        return is_sheet(cells_in(head), list(islice(filter(any, reader), ROWS)))
    except csv.Error:
        return False


def is_sheet(head: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether there are columns of a sheet, with tags, or labels that several gave, below the names of annotators.

    >>> is_sheet(["task", "ann", "ben"], [["1", "cat", "cat"]]), is_sheet(["word", "count"], [["a", "3"]])
    (True, False)
    """
    names = known_names(head)
    if any(map(_is_tag, head)) or not _OF_OTHER_TABLES.isdisjoint(names):
        return False
    documents, has_words = set(_DOCUMENT).intersection(names), not set(_WORDS).isdisjoint(names)
    if not documents and not has_words:
        return False
    columns = [{row[place].strip() for row in rows if place < len(row)} for place in range(len(names))]
    named = list(zip(head, names, columns, strict=True))
    if any(given in cells for given, name, cells in named if given and (name in _DOCUMENT or name not in NOBODYS)):
        return False  # the first line is one of labels, as the others are
    own = [given for given, name, _ in named if name not in NOBODYS]
    contents = [cells - set(_EMPTY) for _, name, cells in named if name not in NOBODYS]
    used = set().union(*contents)
    is_sure = not documents <= _MAY_BE_WORDS
    if not is_sure and not has_words and (len(set(own)) < len(own) or not used.isdisjoint(own)):
        return False
    if any(map(_are_tags, contents)) or len(used) < sum(map(len, contents)):
        return True
    # Beside a column alone nobody can have given the same labels; but what has blanks in it may be a text.
    return is_sure and len(list(filter(None, contents))) == 1 and not any(" " in cell for cell in used)


def names_document(cells: Iterable[str]) -> bool:
    """Whether one of the cells names a column that tells which document a row belongs to.

    >>> names_document(["Doc_ID", "ann"]), names_document(["cat", "dog"])
    (True, False)
    """
    return not set(_DOCUMENT).isdisjoint(known_names(cell.strip() for cell in cells))


def _is_tag(cell: str) -> bool:
    return cell == OUTSIDE or marks_span(cell)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _are_tags(cells: Iterable[str]) -> bool:
    """Whether at least half of what is filled are tags of spans: anything else among them is a mistake, to be told."""
    filled = [cell for cell in cells if cell not in _EMPTY]
    return bool(filled) and 2 * sum(map(_is_tag, filled)) >= len(filled)


def read(given: Input, notes: Notes) -> Iterator[Document]:
    """The documents of a sheet."""
    with closing(rows_in(given)) as lines:
        line, head = next(lines)
        sheet = Sheet(head, given.name, line)
        for line, cells in lines:
            sheet.add(line, cells)
    yield from sheet.documents(notes)


class _Row(NamedTuple):
    line: int
    block: int  # another one after an empty row
    cells: list[str]


class Sheet:
    """The rows of a sheet, gathered under the names of its columns.

    >>> sheet = Sheet(["doc", "token", "Ann"], "crowd.csv", 1)
    >>> sheet.add(2, ["d1", "Ada", "B-PER"])
    >>> [(document.id, document.annotations) for document in sheet.documents(Notes())]
    [('d1', {'Ann': ('B-PER',)})]
    """

    def __init__(self, head: Sequence[str], file: str, line: int) -> None:
        self._file, self._line = file, line
        self._head = list(map(from_cell, head))
        self._names = known_names(self._head)
        own = [name if name in NOBODYS else given for name, given in zip(self._names, self._head, strict=True)]
        twice = next((name for place, name in enumerate(own) if name and name in own[:place]), None)
        if twice is not None:
            written = self._head[own.index(twice)]
            raise self._error(f"two columns are called {written!r} (name each annotator once)", line)
        other = next((given for name, given in zip(own, self._head, strict=True) if name in _OF_OTHER_TABLES), None)
        if other is not None:
            raise self._error(f"a column {other!r}, where a sheet has one with the name of each annotator", line)
        self._words = self._place(*_WORDS)
        if self._words is None and self._place(*_DOCUMENT) is None:
            raise self._error("no column is called token or word (the first line must name the columns)", line)
        self._rows: list[_Row] = []
        self._block = 0
        self._same: dict[str, str] = {}  # a text that comes often is kept once

    def add(self, line: int, cells: Sequence[str]) -> None:
        """Take in a row."""
        width = len(self._names)
        if not any(cell.strip() for cell in cells):
            self._block += 1
            return
        if len(cells) < width or any(cells[width:]):
            columns = ", ".join(filter(None, self._head))
            raise self._error(f"{len(cells)} cells where {width} were expected (one for each of {columns})", line)
        taken = [cell if place == self._words else cell.strip() for place, cell in enumerate(cells[:width])]
        if self._words is not None and not taken[self._words]:
            raise self._error(f"no {self._head[self._words]} in this row (leave a row between documents empty)", line)
        self._rows.append(_Row(line, self._block, [self._same.setdefault(cell, cell) for cell in taken]))

    def documents(self, notes: Notes) -> Iterator[Document]:
        """The documents, in the order of their first rows; without an id where no column has it."""
        found = self._divided()
        columns = self._annotators(notes)
        for place in columns:
            self._tell_partly_empty(place, found, notes)
        words = None if self._words is None or self._counts_only(found) else self._words
        gold, split = self._place(GOLD), self._place("split")
        for name, rows in found:
            self._check_order(rows)
            lines = [row.line for row in rows]
            tags = {self._head[place]: _tags(rows, place) for place in columns}
            known = () if gold is None else _tags(rows, gold)
            yield Document(
                name,
                tuple(NO_WORD if words is None else from_cell(row.cells[words]) for row in rows),
                {annotator: contents for annotator, contents in tags.items() if any(contents)},
                known if any(known) else None,
                None if split is None else next((row.cells[split] for row in reversed(rows) if row.cells[split]), None),
                source=Source(self._file, lines[0], lines == list(range(lines[0], lines[0] + len(lines)))),
            )

    def _error(self, what: str, line: int) -> InputError:
        return InputError(what, where=f"{self._file}:{line}")

    def _place(self, *names: str) -> int | None:
        """Where the column is that has the first of these names."""
        return next((self._names.index(name) for name in names if name in self._names), None)

    def _divided(self) -> list[tuple[str, list[_Row]]]:
        """The rows of each document, and its name."""
        place = self._place(*_DOCUMENT)
        if place is not None and self._names[place] == "id" and self._words is not None:
            ids = [row.cells[place] for row in self._rows]
            if len(ids) > 1 and all(after and after != before for before, after in pairwise(ids)):
                place = None  # the rows have ids, not the documents
        if place is None:
            return [("", list(rows)) for _, rows in groupby(self._rows, lambda row: row.block)]
        gathered: dict[str, list[_Row]] = {}
        name, block = "", 0
        for row in self._rows:
            # Beside words, a name in the first row alone is that of all rows to the next name, or to an empty row:
            # what follows one may be a document whose name was forgotten.
            name = row.cells[place] or (name if self._words is not None and row.block == block else "")
            block = row.block
            if not name:
                raise self._error(f"no {self._head[place]} in this row", row.line)
            rows = gathered.setdefault(from_cell(name), [])
            if rows and self._words is None:
                what = f"{self._head[place]} {name!r} has a row already, {self._file}:{rows[0].line}"
                raise self._error(f"{what} (without a column token or word, each row is a document)", row.line)
            rows.append(row)
        return list(gathered.items())

    def _annotators(self, notes: Notes) -> list[int]:
        """The columns of annotators; where there are tags of spans, only those that have such."""
        columns = [[row.cells[place] for row in self._rows] for place in range(len(self._names))]
        tagged = [place for place, cells in enumerate(columns) if _are_tags(cells)]
        if any(not self._names[place] for place in tagged):
            raise self._error("a column of tags has no name (give it that of its annotator)", self._line)
        own = [place for place, name in enumerate(self._names) if name not in NOBODYS]
        self._tell_reserved(own, columns, notes)
        if not any(marks_span(cell) for place in tagged if place in own for cell in set(columns[place])):
            self._tell_used_by_nobody_else(own, columns, notes)
            return own
        other = [place for place in own if place not in tagged and set(columns[place]) - set(_EMPTY)]
        notes.left_out.update((self._head[place], None) for place in other)
        for place in tagged:
            strange = {cell for cell in columns[place] if cell not in _EMPTY and not _is_tag(cell)}
            if strange and (place in own or self._names[place] == GOLD):
                row = next(row for row in self._rows if row.cells[place] in strange)
                what = f"{row.cells[place]!r} in column {self._head[place]!r} is not a tag"
                raise self._error(f"{what} (O, or B-x, I-x …; empty where not annotated)", row.line)
        return [place for place in own if place in tagged]

    def _tell_reserved(self, own: Sequence[int], columns: Sequence[list[str]], notes: Notes) -> None:
        """Note columns that hold what annotators say, and are not read because of their names."""
        used = set().union(*(columns[place] for place in own))
        labels = {cell for cell in used if cell not in _EMPTY and not _is_number(cell)}  # a number may be a row's
        held = []
        for name, cells in zip(self._names, columns, strict=True):
            filled = [cell for cell in cells if cell not in _EMPTY]
            if name in _NOT_READ and (_are_tags(filled) or 2 * sum(cell in labels for cell in filled) > len(filled)):
                held.append(name)
        if held:
            notes.add(
                f"columns that hold tags are not read, because of their names: {some(held)} (rename one that is an "
                "annotator's)"
            )

    def _tell_used_by_nobody_else(self, own: Sequence[int], columns: Sequence[list[str]], notes: Notes) -> None:
        """Note columns that share no label with any other: among plain labels, nothing else tells who is nobody."""
        contents = {place: set(columns[place]) - set(_EMPTY) for place in own}
        gold = self._place(GOLD)
        users = Counter(chain(*contents.values(), () if gold is None else set(columns[gold])))
        alone = [place for place, used in contents.items() if used and all(users[label] == 1 for label in used)]
        if len(list(filter(None, contents.values()))) > 1:
            notes.doubtful.update((self._head[place], None) for place in alone)

    def _tell_partly_empty(self, place: int, documents: Sequence[tuple[str, list[_Row]]], notes: Notes) -> None:
        """Note how often a column is empty at some tokens; refuse it if it never says O, which may be what is meant."""
        contents = [{row.cells[place] for row in rows} for _, rows in documents]
        partly = [
            rows
            for (_, rows), cells in zip(documents, contents, strict=True)
            if "" in cells and any(cells - {NOT_SEEN})
        ]
        used = set().union(*contents)
        if partly and OUTSIDE not in used:
            raise self._error(
                f"column {self._head[place]!r} is empty here though not in the whole document, and never says O "
                "(write O where nothing is marked, ? where not annotated, or take out a column that is no annotator's)",
                next(row.line for row in partly[0] if not row.cells[place]),
            )
        notes.count(_PARTLY_EMPTY, len(partly))

    def _counts_only(self, documents: Iterable[tuple[str, list[_Row]]]) -> bool:
        """Whether the column token has no words, but counts: from 0, or from 1, in every document."""
        place = self._place("token")
        if place is None or place != self._words:
            return False
        columns_of = [[row.cells[place] for row in rows] for _, rows in documents]
        return any(all(own == list(map(str, range(first, first + len(own)))) for own in columns_of) for first in (0, 1))

    def _check_order(self, rows: Sequence[_Row]) -> None:
        """Refuse rows that were sorted or left out, where the column token counts them beside the words."""
        place = self._place("token")
        if place is None or place == self._words:
            return
        first = rows[0].cells[place]
        for number, row in enumerate(rows, int(first) if first.isdecimal() and len(first) < _DIGITS else 0):
            if row.cells[place] != str(number):
                raise self._error(
                    f"token {row.cells[place]!r} where {number} was expected (beside words, it counts them in order)",
                    row.line,
                )


def _tags(rows: Iterable[_Row], place: int) -> tuple[Tag, ...]:
    return tuple(None if row.cells[place] in _EMPTY else from_cell(row.cells[place]) for row in rows)


def write(export: Export, path: str) -> None:
    """A row for each token, a column for each annotator or for the consensus: ``doc, token, word, ann, ben, gold``.

    Cells are parted by commas, and by tabs in a file whose name ends in ``.tsv``. What a spreadsheet would take for a
    formula has an apostrophe before it, which is taken off again where a sheet is read.
    """
    names = column_names(export)
    for name in names:
        if name != GOLD and name.lower() in NOBODYS:
            raise OutputError(f"{path}: a column {name!r} would be no annotator's (--map-annotators renames)")
    with written_whole(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        table = csv.writer(text, delimiter=delimiter_of(path))
        table.writerow(["doc", "token", "word", *(_cell(name, path) for name in names)])
        for exported in export.documents():
            document, tags = exported.document, column_tags(exported)
            unseen = {name: NOT_SEEN if any(tags.get(name, ())) else "" for name in names}
            for token, word in enumerate(document.tokens):
                contents = {name: tags[name][token] if name in tags else None for name in names}
                cells = [unseen[name] if tag is None else _cell(tag, path) for name, tag in contents.items()]
                if not word:
                    raise OutputError(f"{path}: a word of document {document.id!r} is empty (use jsonl)")
                table.writerow([_cell(document.id, path), token, as_cell(word), *cells])
            export.notes.count(_NO_TOKENS, not document.tokens)
        text.detach()


def _cell(value: Any, path: str) -> str:
    if isinstance(value, Mapping):
        raise OutputError(f"{path}: a sheet holds no probabilities (use jsonl)")
    if value in _EMPTY or value != value.strip() or any(character in value for character in "\t\r\n"):
        raise OutputError(f"{path}: {value!r} cannot stand in a cell (no blanks around it, no line end, no ? alone)")
    return as_cell(value)
