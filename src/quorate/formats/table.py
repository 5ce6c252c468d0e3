"""Long tables, a row a label: ``task, worker, label`` (crowd-kit's columns), or ``doc, token, worker, label``.

The first is plain classification: every task becomes a document of one token. In the second ``token`` is the token's
number from 0, and ``word`` may hold the word. A column ``gold`` may hold the known label, ``split`` the split. Tables
come as CSV or TSV with a header, as Parquet (needs ``pyarrow``, the extra ``quorate[table]``), or as a DataFrame passed
to :func:`quorate.read`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from quorate.corpus import Document, Source, Tag
from quorate.errors import InputError
from quorate.formats.notes import Notes

__all__ = ["frame_documents", "is_header", "read", "read_parquet"]

_DOCUMENT = ("task", "doc")
_NEEDED = ("worker", "label")
_NO_WORD = "item"  # the same for all: a word of its own for each task would only explain itself


def is_header(line: bytes) -> bool:
    """Whether a first line names the columns of a long table.

    >>> is_header(b"task,worker,label"), is_header(b"Ada B-PER O")
    (True, False)
    """
    names = set(line.decode("utf-8", "replace").strip().lower().replace("\t", ",").replace('"', "").split(","))
    return names.issuperset(_NEEDED) and not names.isdisjoint(_DOCUMENT)


def read(stream: IO[bytes], name: str, first_number: int, notes: Notes) -> Iterator[Document]:
    """The documents of a CSV or TSV table."""
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    try:
        head = text.readline()
        columns = [column.strip().lower() for column in next(csv.reader([head], delimiter=_delimiter(head)))]
        rows = csv.DictReader(text, fieldnames=columns, delimiter=_delimiter(head), restval="")
        yield from _documents(rows, name, first_line=2)
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text (save the file as UTF-8)", where=name) from None
    except csv.Error as error:
        raise InputError(f"not a table: {error}", where=name) from None
    finally:
        text.detach()


def _delimiter(head: str) -> str:
    return "\t" if "\t" in head else ","


def read_parquet(stream: IO[bytes], name: str, first_number: int, notes: Notes) -> Iterator[Document]:
    """The documents of a Parquet table."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise InputError("Parquet needs pyarrow (pip install 'quorate[table]')", where=name) from None
    try:
        table = parquet.read_table(io.BytesIO(stream.read()))
    except (ArrowException, OSError) as error:
        raise InputError(f"not a Parquet file: {error}", where=name) from None
    yield from _documents(table.to_pylist(), name, first_line=1)


def frame_documents(frame: Any) -> Iterator[Document]:
    """The documents of a DataFrame (pandas, or anything with ``columns`` that gives rows as dictionaries)."""
    rows = frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict("records")
    yield from _documents(rows, "DataFrame", first_line=0)


def _documents(rows: Iterable[Mapping[str, Any]], name: str, *, first_line: int) -> Iterator[Document]:
    """Rows gathered by document, in the order of first appearance."""
    gathered: dict[str, _Gathered] = {}
    for line, row in enumerate(rows, first_line):
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
        self.length = 1

    def add(self, row: Mapping[str, Any], where: str) -> None:
        try:
            token = int(row.get("token") or 0)
        except ValueError:
            raise InputError(f"token {row['token']!r} is not a number (count tokens from 0)", where=where) from None
        if token < 0:
            raise InputError(f"token {token} is not a number from 0", where=where)
        given = self.labels.setdefault(str(row["worker"]), {})
        if token in given:
            raise InputError(
                f"worker {row['worker']!r} has labelled this already (give one label a worker and token)", where=where
            )
        given[token] = str(row["label"])
        self.length = max(self.length, token + 1)
        for column, store in (("word", self.words), ("gold", self.gold)):
            if row.get(column) not in (None, ""):
                store[token] = str(row[column])
        self.split = str(row["split"]) if row.get("split") not in (None, "") else self.split

    def document(self, key: str) -> Document:
        places = range(self.length)
        gold: tuple[Tag, ...] | None = tuple(self.gold.get(p) for p in places) if self.gold else None
        return Document(
            key,
            tuple(self.words.get(p, _NO_WORD) for p in places),
            {worker: tuple(given.get(p) for p in places) for worker, given in self.labels.items()},
            gold,
            self.split,
            source=self.source,
        )
