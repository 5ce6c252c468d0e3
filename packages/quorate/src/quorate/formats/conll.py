"""CoNLL columns: a line a token, a blank line between documents, a column of tags per annotator.

::

    # token ann bob gold
    Ada     B-PER B-PER B-PER
    sang    O     ?     O

The first column is the token, ``?`` means not annotated. An optional first line ``# token NAME NAME …`` names the
columns (the name ``gold`` is the gold); without it they are ``A1``, ``A2``, …. Columns are parted by tabs if the line
has one, else by blanks; so are their names. Of several such lines before the first row, the last that has as many
columns counts. Other lines that begin with ``#``, before a document, are comments, unless they have the columns of a
row; ``# id = NAME`` (or ``# sent_id = NAME``) names the document, which is otherwise numbered. Lines ``-DOCSTART-`` are
passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from quorate.corpus.records import Document, Source
from quorate.corpus.tags import OUTSIDE, marks_span
from quorate.errors import InputError
from quorate.formats.exports import Export, ExportDocument
from quorate.formats.notes import Notes
from quorate.formats.opened import Input
from quorate.storage.files.atomic import written_whole

NOT_SEEN = "?"
GOLD = "gold"
_TOKEN = "token"
_NO_TOKENS = "{} {document has|documents have} no tokens and {is|are} not written: CoNLL has a line for each token"
_ID = re.compile(r"# (?:id|sent_id) = (.*\S)\s*")


def read(given: Input, notes: Notes) -> Iterator[Document]:
    """The documents of a file in CoNLL columns."""
    name = given.name
    columns: list[str] | None = None
    headers: list[_Header] = []
    rows: list[list[str]] = []
    interned: dict[str, str] = {}
    number = given.first_number
    line_number = 0
    name_of_next = ""
    for line_number, raw in enumerate(given.stream, 1):
        where = f"{name}:{line_number}"
        try:
            line = raw.decode("utf-8-sig" if line_number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise InputError("not UTF-8 text (save the file as UTF-8)", where=where) from None
        fields = line.split("\t") if "\t" in line else line.split()
        if columns is None and (names := _header(line)):
            headers.append(_Header(names[1:], where))
        elif not rows and (own_id := _ID.fullmatch(line)):
            name_of_next = own_id[1]
        elif not rows and line.startswith("#") and not _is_row(fields, columns, headers):
            continue  # a comment
        elif not line.strip() or fields[0] == "-DOCSTART-":
            if rows:
                source = Source(name, line_number - len(rows), True)
                given.numbered |= not name_of_next
                yield _document(rows, columns or [], source, name_of_next or str(number))
                number += 1
                rows, name_of_next = [], ""
        else:
            if columns is None:
                columns = _named_columns(headers, len(fields) - 1)
            if len(fields) != len(columns) + 1 or "" in fields:
                raise InputError(
                    f"{len(fields)} columns where {len(columns) + 1} were expected (a token and a tag for each of "
                    f"{', '.join(columns) or 'no annotators'}; ? where not annotated)",
                    where=where,
                )
            rows.append([interned.setdefault(text, text) for text in fields])
    if rows:
        source = Source(name, line_number + 1 - len(rows), True)
        given.numbered |= not name_of_next
        yield _document(rows, columns or [], source, name_of_next or str(number))


class _Header(NamedTuple):
    """A line that names the columns after the token's, or a comment that begins like one."""

    columns: list[str]
    where: str


def _header(line: str) -> list[str]:
    """The names of the columns, the token's first, if a line names them: parted by tabs, or else by blanks."""
    if not line.startswith("#"):
        return []
    for names in ([name.strip() for name in line[1:].lstrip().split("\t")], line[1:].split()):
        if [name.casefold() for name in names[:1]] == [_TOKEN]:
            if not line[1].isspace() and _are_tags(names[1:]):
                return []  # the hashtag #token and its tags
            return [GOLD if name.casefold() == GOLD else name for name in names]
    return []


def _are_tags(fields: Sequence[str]) -> bool:
    return bool(fields) and all(field in (OUTSIDE, NOT_SEEN) or marks_span(field) for field in fields)


def _is_row(fields: Sequence[str], columns: Sequence[str] | None, headers: Sequence[_Header]) -> bool:
    """Whether a line that begins with # and comes before a document is its first row: it has the columns for that."""
    if columns is None and not headers:
        return _are_tags(fields[1:])
    expected = [header.columns for header in headers] if columns is None else [columns]
    return any(len(fields) == len(names) + 1 for names in expected)


def _named_columns(headers: Sequence[_Header], n: int) -> list[str]:
    """The names of n columns: those of the last header that has as many, if any has; a wrong one is not passed over."""
    if not headers:
        return [f"A{column}" for column in range(1, n + 1)]
    chosen = next((header for header in reversed(headers) if len(header.columns) == n), headers[-1])
    if len(set(chosen.columns)) < len(chosen.columns):
        raise InputError("two columns have the same name (name each annotator once)", where=chosen.where)
    return chosen.columns


def _document(rows: list[list[str]], columns: list[str], source: Source, name: str) -> Document:
    tokens, *tag_columns = zip(*rows, strict=True)
    sequences = {
        column: tuple(None if tag == NOT_SEEN else tag for tag in tags)
        for column, tags in zip(columns, tag_columns, strict=True)
        if any(tag != NOT_SEEN for tag in tags)
    }
    gold = sequences.pop(GOLD, None)
    return Document(name, tokens, sequences, gold, source=source)


def write(export: Export, path: str) -> None:
    """Columns parted by tabs: the token, then the consensus (one for each layer), or every annotator and the gold."""
    names = column_names(export)
    with written_whole(path) as stream:
        stream.write(
            "\t".join(["#", _TOKEN, *(_cell(name, "the name of a column") for name in names)]).encode() + b"\n"
        )
        for exported in export.documents():
            stream.write("".join(_lines(exported, names)).encode())
            export.notes.count(_NO_TOKENS, not exported.document.tokens)


def column_names(export: Export) -> list[str]:
    """The columns that all documents together take: of the consensus, or of annotators; then the gold's."""
    names: dict[str, None] = {}
    has_gold = False
    for exported in export.documents():
        names |= dict.fromkeys(column_tags(exported))
        has_gold |= exported.gold is not None
    return [*(name for name in names if name != GOLD), *([GOLD] if has_gold else [])]


def column_tags(exported: ExportDocument) -> dict[str, Sequence[Any]]:
    """The tags of each column."""
    found: dict[str, Sequence[Any]] = {}
    for annotation in exported.annotations():
        if annotation.name.casefold() == GOLD:
            raise InputError(
                f"annotator {annotation.name!r} cannot have a column: it would be gold (--map-annotators renames)",
                where=exported.document.where(),
            )
        for name, layer in (annotation.layers or {"": annotation}).items():
            found[f"{annotation.name} {name}".strip()] = layer.tags or ()
    if exported.gold is not None and exported.gold.tags is not None:
        found[GOLD] = exported.gold.tags
    return found


def _lines(exported: ExportDocument, names: Sequence[str]) -> Iterator[str]:
    document, sequences = exported.document, column_tags(exported)
    if not document.tokens:
        return
    where = document.where()
    yield f"# id = {_cell(document.id, where)}\n"
    for position, token in enumerate(document.tokens):
        tags = [sequences[name][position] if name in sequences else None for name in names]
        if NOT_SEEN in tags:
            raise InputError(
                f"a tag {NOT_SEEN!r} would be read as not annotated (--map-labels renames it)", where=where
            )
        cells = [NOT_SEEN if tag is None else _cell(tag, where) for tag in tags]
        yield "\t".join([_cell(token, where), *cells]) + "\n"
    yield "\n"


def _cell(value: Any, where: str) -> str:
    if isinstance(value, Mapping):
        raise InputError("CoNLL columns hold no probabilities (write jsonl)", where=where)
    if not value or any(character in value for character in "\t\r\n"):
        raise InputError(f"{value!r} cannot stand in a column (no tab, no line end, not empty)", where=where)
    return str(value)
