"""Long tables, a row a label: ``task, worker, label`` (crowd-kit's columns), or ``doc, token, worker, label``.

The first is plain classification: every task becomes a document of one token. In the second ``token`` is the token's
number from 0, and ``word`` may hold the word. A column ``gold`` may hold the known label, ``split`` the split. Tables
come as CSV or TSV with a header, as Parquet (needs ``pyarrow``, the extra ``quorate[table]``), or from memory
(:mod:`quorate.formats.frames`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import zip_longest
from math import isnan
from typing import Any

from quorate.corpus.records import Document, Source, Tag
from quorate.errors import InputError, OutputError
from quorate.formats.cells import as_cell, from_cell
from quorate.formats.exports import Export
from quorate.formats.notes import Notes
from quorate.formats.opened import Input, text_lines
from quorate.storage.files.atomic import written_whole

_DOCUMENT = ("task", "doc")
_NEEDED = ("worker", "label")
_OTHER_NAMES = {"annotator": "worker", "document": "doc"}
SPAN_COLUMNS = {"start", "end", "label"}
"""Columns that together mark a table of spans, which has no texts."""
COLUMNS = {*_DOCUMENT, *_NEEDED, *_OTHER_NAMES, "token", "word", "gold", "split", "sentence", "tag", "text", "id"}
"""Names that columns have in tables of annotations, here or elsewhere."""
_LONGEST = 1_000_000  # tokens of a document: a slip of the pen must not fill the memory
_SEVERAL = 5  # documents; of fewer, the first token may happen to have no label in any
_NO_LABELS = "{} {document has|documents have} no labels and {is|are} not written: a table has a row for each label"
NO_WORD = "item"  # the same for all: a word of its own for each task would only explain itself


def is_header(line: bytes) -> bool:
    """Whether a first line names the columns of a long table.

    >>> is_header(b"task,worker,label"), is_header(b"Ada B-PER O")
    (True, False)
    """
    names = set(names_in(line.decode("utf-8", "replace").strip()))
    return names.issuperset(_NEEDED) and not names.isdisjoint(_DOCUMENT) and not names >= SPAN_COLUMNS


def names_in(head: str) -> list[str]:
    """The names of columns in a first line, as they are looked for; none where it cannot be one of a table.

    >>> names_in('"Doc"; "Annotator"; "Label"')
    ['doc', 'worker', 'label']
    """
    return known_names(cells_in(head))


def cells_in(head: str) -> list[str]:
    """The cells of a first line, without the blanks around them; none where it cannot be one of a table.

    >>> cells_in('"Doc"; "Ann"')
    ['Doc', 'Ann']
    """
    try:
        cells = next(csv.reader([head], delimiter=delimiter_in(head), skipinitialspace=True), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in cells]


def known_names(cells: Iterable[str]) -> list[str]:
    """The names of columns as they are looked for: in small letters, and by one name where a column has several.

    >>> known_names(["Document", "Annotator"])
    ['doc', 'worker']
    """
    names = [name.lower() for name in cells]
    return [name if _OTHER_NAMES.get(name, name) in names else _OTHER_NAMES[name] for name in names]


def read(given: Input, notes: Notes) -> Iterator[Document]:
    """The documents of a CSV or TSV table."""
    with closing(rows_in(given)) as lines:
        _, head = next(lines)
        yield from rows_to_documents(_rows(known_names(head), lines), given.name)


def rows_in(given: Input) -> Generator[tuple[int, list[str]]]:
    """The line that each row begins at and its cells, the names of the columns first; an empty line has no cells."""
    name = given.name
    text = io.TextIOWrapper(given.stream, encoding="utf-8-sig", newline="")
    lines = text_lines(text, given)
    try:
        line, head = next(((line, text) for line, text in enumerate(lines, 1) if text.strip()), (1, ""))
        delimiter = delimiter_in(head)
        named = next(csv.reader([head.strip()], delimiter=delimiter), [])
        blank = any(name != name.strip(" ") for name in named)  # as in "doc, token, label"
        yield line, cells_in(head)
        reader, before = csv.reader(lines, delimiter=delimiter, skipinitialspace=blank), 0
        for cells in reader:
            yield line + before + 1, [cell.strip(" ") for cell in cells] if blank else cells
            before = reader.line_num
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text (save the file as UTF-8)", where=name) from None
    except csv.Error as error:
        raise InputError(f"not a table: {error}", where=name) from None
    finally:
        text.detach()


def _rows(columns: list[str], lines: Iterable[tuple[int, list[str]]]) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows by column; a cell that is not there is empty, one of no column is left out, and so are empty lines."""
    for line, cells in lines:
        if cells:
            yield line, dict(zip_longest(columns, map(from_cell, cells[: len(columns)]), fillvalue=""))


def delimiter_of(path: str) -> str:
    """What parts the cells of a table that is written: tabs, if its name ends as that of such a table.

    >>> delimiter_of("crowd.tsv.gz"), delimiter_of("crowd.csv")
    ('\\t', ',')
    """
    return "\t" if path.removesuffix(".gz").endswith(".tsv") else ","


def delimiter_in(head: str) -> str:
    """What parts the cells of a table that is read, by its first line: tabs, commas, or semicolons.

    >>> delimiter_in("task,worker,label"), delimiter_in("task;worker;label")
    (',', ';')
    """
    return next((mark for mark in "\t," if mark in head), ";" if ";" in head else ",")


def whole_numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with whole numbers as such: pandas has those of a column with gaps as floats, and 1.0 is no label but 1.

    >>> whole_numbers({"ann": 1.0, "ben": float("nan"), "confidence": 0.5})
    {'ann': 1, 'ben': None, 'confidence': 0.5}
    """
    return {name: _whole(value) if isinstance(value, float) else value for name, value in row.items()}


def _whole(value: float) -> float | int | None:
    return int(value) if value.is_integer() else None if isnan(value) else value


def rows_to_documents(rows: Iterable[tuple[int, Mapping[str, Any]]], name: str) -> Iterator[Document]:
    """Rows, each with its line, gathered by document, in the order of first appearance."""
    gathered: dict[str, _Gathered] = {}
    for line, row in rows:
        where = f"{name}:{line}"
        key = next((column for column in _DOCUMENT if column in row), None)
        missing = [column for column in _NEEDED if row.get(column) in (None, "")]
        if key is None or row[key] in (None, "") or missing:
            wanted = "task or doc" if key is None or row[key] in (None, "") else missing[0]
            raise InputError(
                f"no {wanted} in this row (columns: task, worker, label, or doc, token, worker, label)", where=where
            )
        document = gathered.setdefault(str(row[key]), _Gathered(Source(name, line)))
        document.add(row, where)
    if len(gathered) >= _SEVERAL and all(document.first == 1 for document in gathered.values()):
        raise InputError("token 1 is the first one of every document (count tokens from 0)", where=name)
    for key, document in gathered.items():
        yield document.document(key)


class _Gathered:
    """What the rows say about one document."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.labels: dict[str, dict[int, str]] = {}
        self.words: dict[int, str] = {}
        self.gold: dict[int, str] = {}
        self.split: str | None = None
        self.first, self.length = _LONGEST, 1

    def add(self, row: Mapping[str, Any], where: str) -> None:
        try:
            token = int(row.get("token") or 0)
        except ValueError:
            raise InputError(f"token {row['token']!r} is not a number (count tokens from 0)", where=where) from None
        if not 0 <= token < _LONGEST:
            raise InputError(f"token {token} is not a number from 0 to {_LONGEST - 1:,}", where=where)
        given = self.labels.setdefault(str(row["worker"]), {})
        if token in given:
            raise InputError(
                f"worker {row['worker']!r} has labelled this already (give one label a worker and token)", where=where
            )
        given[token] = str(row["label"])
        self.first, self.length = min(self.first, token), max(self.length, token + 1)
        for column, store in (("word", self.words), ("gold", self.gold)):
            if row.get(column) not in (None, ""):
                store[token] = str(row[column])
        self.split = str(row["split"]) if row.get("split") not in (None, "") else self.split

    def document(self, key: str) -> Document:
        places = range(self.length)
        gold: tuple[Tag, ...] | None = tuple(self.gold.get(p) for p in places) if self.gold else None
        return Document(
            key,
            tuple(self.words.get(p, NO_WORD) for p in places),
            {worker: tuple(given.get(p) for p in places) for worker, given in self.labels.items()},
            gold,
            self.split,
            source=self.source,
        )


def write(export: Export, path: str) -> None:
    """A row for each label of each annotator, or of the consensus: ``doc, token, worker, label, word, gold``.

    Cells are parted by commas, and by tabs in a file whose name ends in ``.tsv``. What a spreadsheet would take for a
    formula has an apostrophe before it, which is taken off again where a table is read.
    """
    with written_whole(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        table = csv.writer(text, delimiter=delimiter_of(path))
        table.writerow(("doc", "token", "worker", "label", "word", "gold"))
        for exported in export.documents():
            document = exported.document
            gold = document.gold or (None,) * len(document.tokens)
            rows = 0
            for annotation in exported.annotations():
                for name, layer in (annotation.layers or {"": annotation}).items():
                    worker = f"{annotation.name} {name}".strip()
                    for token, label in enumerate(layer.tags or ()):
                        if isinstance(label, Mapping):
                            raise OutputError(
                                f"{path}: a table holds no probabilities, which {worker!r} gives (use jsonl)"
                            )
                        if label is not None:
                            texts = (worker, label, document.tokens[token], gold[token] or "")
                            table.writerow((as_cell(document.id), token, *map(as_cell, texts)))
                            rows += 1
            export.notes.count(_NO_LABELS, not rows)
        text.detach()
