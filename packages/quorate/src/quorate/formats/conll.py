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
from typing import Any

from quorate.corpus.records import Document, Source, Tag
from quorate.errors import InputError
from quorate.formats.conll_columns import (
    GOLD,
    NOT_SEEN,
    TOKEN,
    WORDS,
    Counted,
    Header,
    Layout,
    are_tags,
    is_tag,
    layout_of,
)
from quorate.formats.exports import Export, ExportDocument
from quorate.formats.notes import Notes
from quorate.formats.opened import Input
from quorate.storage.files.atomic import written_whole

_NO_TOKENS = "{} {document has|documents have} no tokens and {is|are} not written: CoNLL has a line for each token"
_ENOUGH = 50_000  # rows, by which the columns are told
_ID = re.compile(r"# (?:id|sent_id) = (.*\S)\s*|# id (\S+)\s+domain=.*")


def read(given: Input, notes: Notes) -> Iterator[Document]:
    """The documents of a file in CoNLL columns, after a look at its beginning to find what they are."""
    name = given.name
    first_row, layout = _surveyed(given, notes)
    given.stream.seek(0)
    given.unnamed = bool(layout.names) and not layout.is_named
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
        if not rows and (own_id := _ID.fullmatch(line)):
            name_of_next = own_id[1] or own_id[2]
            continue
        if line_number < first_row:
            continue
        fields = line.split("\t") if "\t" in line else line.split(" ")
        if "" in fields:
            fields = _cells(line)
        if not rows and line.startswith("#") and not _is_row(fields, layout):
            continue  # a comment
        if not fields or fields[0] == "-DOCSTART-" or not line.strip():
            if rows:
                source = Source(name, line_number - len(rows), True)
                given.numbered |= not name_of_next
                yield _document(rows, layout, source, name_of_next or str(number))
                number += 1
                rows, name_of_next = [], ""
        else:
            if len(fields) != layout.width or not fields[layout.word]:
                raise InputError(
                    f"{len(fields)} columns where {layout.width} were expected ({layout.expected()})", where=where
                )
            rows.append([interned.setdefault(text, text) for text in fields])
            if not all(rows[-1][place] for place in layout.places):
                raise InputError(f"an empty column ({layout.expected()})", where=where)
    if rows:
        source = Source(name, line_number + 1 - len(rows), True)
        given.numbered |= not name_of_next
        yield _document(rows, layout, source, name_of_next or str(number))


def _cells(line: str) -> list[str]:
    """The cells of a line: parted by tabs if it has one, else by blanks; none if it is blank."""
    if not line.strip():
        return []
    if "\t" in line:
        return line.removesuffix("\t").split("\t")
    return [cell for cell in line.split(" ") if cell]


def _surveyed(given: Input, notes: Notes) -> tuple[int, Layout]:
    """The line of the first row, and where in a row what stands."""
    counted: Counted | None = None
    headers: list[Header] = []
    first_row, line_number = 1, 0
    plain: Header | None = None
    is_first = True  # of a document
    for line_number, raw in enumerate(given.stream, 1):
        line = (raw.removeprefix(b"\xef\xbb\xbf") if line_number == 1 else raw).rstrip(b"\r\n")
        cells = line.split(b"\t") if b"\t" in line else line.split(b" ")
        if b"" in cells:
            decoded = _cells(line.decode("utf-8", "surrogateescape"))
            cells = [cell.encode("utf-8", "surrogateescape") for cell in decoded]
        if not cells or cells[0] == b"-DOCSTART-" or (len(cells) == 1 and not line.decode("utf-8", "replace").strip()):
            is_first = True
            if counted is not None:
                counted.end_document()
            continue
        if counted is None:
            text = line.decode("utf-8", "replace")
            if names := _header(text):
                headers.append(Header(names[1:], f"{given.name}:{line_number}"))
                continue
            if _ID.fullmatch(text):
                continue
            fields = _cells(text)
            if text.startswith("#") and not _is_first_row(fields, headers):
                continue  # a comment
            first_row = line_number
            counted = Counted(len(cells))
            if not headers and _names_columns(fields):
                plain = Header([_own_name(field) for field in fields[1:]], f"{given.name}:{line_number}")
                first_row += 1
                continue
        elif is_first and cells[0].startswith(b"#") and not are_tags([cells[-1].decode("utf-8", "replace")]):
            continue
        if len(cells) == counted.width:
            counted.add(cells)
        is_first = False
        if counted.rows == _ENOUGH:
            break
    if counted is None:
        return first_row, Layout(1, 0, [], [])
    if plain is not None and any(name in counted.values(column) for column, name in enumerate(plain.columns, 1)):
        first_row, plain = first_row - 1, None  # it has a label like others
    header = plain if plain is not None else _header_of(headers, counted.width - 1)
    if header is not None and len(header.columns) != counted.width - 1:
        return first_row, Layout(len(header.columns) + 1, 0, header.columns, list(range(1, len(header.columns) + 1)))
    return first_row, layout_of(counted, header, given.tag_column, given.name, notes)


def _header(line: str) -> list[str]:
    """The names of the columns, the token's first, if a line names them: parted by tabs, or else by blanks."""
    if not line.startswith("#"):
        return []
    for names in ([name.strip() for name in line[1:].lstrip().split("\t")], line[1:].split()):
        if [name.casefold() for name in names[:1]] == [TOKEN]:
            if not line[1].isspace() and are_tags(names[1:]):
                return []  # the hashtag #token and its tags
            return list(map(_own_name, names))
    return []


def _own_name(name: str) -> str:
    return GOLD if name.casefold() == GOLD else name


def _names_columns(fields: Sequence[str]) -> bool:
    """Whether a first row names the columns, as in ``word pos ner``."""
    names = [field.casefold() for field in fields]
    has_words = names[0] in WORDS or (names[0] in ("id", "index", "#") and not WORDS.isdisjoint(names[1:2]))
    return has_words and len(set(names)) == len(names) > 1 and not any(map(is_tag, fields))


def _is_first_row(fields: Sequence[str], headers: Sequence[Header]) -> bool:
    """Whether a line that begins with # and comes before all documents is a row: it has the columns for that."""
    if not headers:
        return are_tags(fields[1:])
    return any(len(fields) == len(header.columns) + 1 for header in headers)


def _is_row(fields: Sequence[str], layout: Layout) -> bool:
    """Whether a line that begins with # and comes before a document is its first row."""
    return len(fields) == layout.width and (
        not layout.has_tags or layout.width == len(layout.places) + 1 or are_tags([fields[at] for at in layout.places])
    )


def _header_of(headers: Sequence[Header], n: int) -> Header | None:
    """The last header that names n columns, or else the last; a wrong one is not passed over."""
    if not headers:
        return None
    chosen = next((header for header in reversed(headers) if len(header.columns) == n), headers[-1])
    if len(set(chosen.columns)) < len(chosen.columns):
        raise InputError("two columns have the same name (name each annotator once)", where=chosen.where)
    return chosen


def _document(rows: list[list[str]], layout: Layout, source: Source, name: str) -> Document:
    columns = list(zip(*rows, strict=True))
    sequences: dict[str, tuple[Tag, ...]] = {}
    for annotator, place in zip(layout.names, layout.places, strict=True):
        tags = columns[place] if layout.rewritten is None else layout.rewritten(columns[place])
        if any(tag != NOT_SEEN for tag in tags):
            sequences[annotator] = tuple(None if tag == NOT_SEEN else tag for tag in tags)
    gold = sequences.pop(GOLD, None)
    return Document(name, columns[layout.word], sequences, gold, source=source)


def write(export: Export, path: str) -> None:
    """Columns parted by tabs: the token, then the consensus (one for each layer), or every annotator and the gold."""
    names = column_names(export)
    with written_whole(path) as stream:
        stream.write("\t".join(["#", TOKEN, *(_cell(name, "the name of a column") for name in names)]).encode() + b"\n")
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
