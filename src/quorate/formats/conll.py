"""CoNLL columns: a line a token, a blank line between documents, a column of tags per annotator.

::

    # token ann bob gold
    Ada     B-PER B-PER B-PER
    sang    O     ?     O

The first column is the token, ``?`` means not annotated. An optional first line ``# token NAME NAME …`` names the
columns (the name ``gold`` is the gold); without it they are ``A1``, ``A2``, …. Columns are parted by tabs if the line
has one, else by blanks. Other lines that begin with ``#``, before a document, are comments. Lines ``-DOCSTART-`` are
passed over. Documents are numbered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from quorate.corpus import Document, Source
from quorate.errors import InputError
from quorate.formats.notes import Notes

__all__ = ["read"]

_NOT_SEEN = "?"
_GOLD = "gold"


def read(stream: IO[bytes], name: str, first_number: int, notes: Notes) -> Iterator[Document]:
    """The documents of a file in CoNLL columns."""
    columns: list[str] | None = None
    rows: list[list[str]] = []
    interned: dict[str, str] = {}
    number = first_number
    line_number = 0
    for line_number, raw in enumerate(stream, 1):
        where = f"{name}:{line_number}"
        try:
            line = raw.decode("utf-8-sig" if line_number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise InputError("not UTF-8 text (save the file as UTF-8)", where=where) from None
        fields = line.split("\t") if "\t" in line else line.split()
        if columns is None and fields[:2] == ["#", "token"]:
            columns = fields[2:]
            if len(set(columns)) < len(columns):
                raise InputError("two columns have the same name (name each annotator once)", where=where)
        elif not rows and line.startswith("#") and (columns is None or len(fields) != len(columns) + 1):
            continue  # a comment
        elif not line.strip() or fields[0] == "-DOCSTART-":
            if rows:
                yield _document(rows, columns or [], Source(name, line_number - len(rows), True), number)
                number += 1
                rows = []
        else:
            if columns is None:
                columns = [f"A{column}" for column in range(1, len(fields))]
            if len(fields) != len(columns) + 1 or "" in fields:
                raise InputError(
                    f"{len(fields)} columns where {len(columns) + 1} were expected (a token and a tag for each of "
                    f"{', '.join(columns) or 'no annotators'}; ? where not annotated)",
                    where=where,
                )
            rows.append([interned.setdefault(text, text) for text in fields])
    if rows:
        yield _document(rows, columns or [], Source(name, line_number + 1 - len(rows), True), number)


def _document(rows: list[list[str]], columns: list[str], source: Source, number: int) -> Document:
    tokens, *tag_columns = zip(*rows, strict=True)
    sequences = {
        column: tuple(None if tag == _NOT_SEEN else tag for tag in tags)
        for column, tags in zip(columns, tag_columns, strict=True)
        if any(tag != _NOT_SEEN for tag in tags)
    }
    gold = sequences.pop(_GOLD, None)
    return Document(str(number), tokens, sequences, gold, source=source)
