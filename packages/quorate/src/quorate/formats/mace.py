"""MACE's CSV: a row a token, a column an annotator, no header, an empty cell where not annotated, a blank line between
documents. There are no words in it. In a file whose name ends in ``.tsv`` tabs part the cells.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from quorate.corpus.records import Document, Source
from quorate.errors import InputError
from quorate.formats.notes import Notes
from quorate.formats.opened import Input, text_lines
from quorate.formats.sheet import names_document
from quorate.formats.table import COLUMNS, NO_WORD, SPAN_COLUMNS, delimiter_of


def read(given: Input, notes: Notes) -> Iterator[Document]:
    """The documents of a file."""
    text = io.TextIOWrapper(given.stream, encoding="utf-8-sig", newline="")
    rows: list[list[str]] = []
    number, width, first = given.first_number, 0, 1
    given.numbered = True
    try:
        for row in (reader := csv.reader(text_lines(text, given), delimiter=delimiter_of(given.name))):
            line = reader.line_num
            if not row:
                if rows:
                    yield _document(rows, Source(given.name, first, True), number)
                    number, rows = number + 1, []
                continue
            if not width and {cell.strip().lower() for cell in row} >= SPAN_COLUMNS:
                raise InputError(
                    "a table of spans, which has no texts (give the file that it was made from, or one with texts)",
                    where=f"{given.name}:{line}",
                )
            if not width and (names_document(row) or len({cell.strip().lower() for cell in row} & COLUMNS) > 1):
                raise InputError(
                    "its first line names columns, as in no file of MACE (a table has doc, token, worker and label; a "
                    "sheet has token and a column with the name of each annotator; --from sheet reads it as one)",
                    where=f"{given.name}:{line}",
                )
            width = width or len(row)
            if len(row) != width:
                raise InputError(
                    f"{len(row)} cells where {width} were expected (one an annotator, empty where not annotated)",
                    where=f"{given.name}:{line}",
                )
            first = first if rows else line
            rows.append([cell.strip() for cell in row])
        if rows:
            yield _document(rows, Source(given.name, first, True), number)
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text (save the file as UTF-8)", where=given.name) from None
    except csv.Error as error:
        raise InputError(f"not a table: {error}", where=given.name) from None
    finally:
        text.detach()


def _document(rows: list[list[str]], source: Source, number: int) -> Document:
    annotations = {
        f"A{column}": tuple(cell or None for cell in cells)
        for column, cells in enumerate(zip(*rows, strict=True), 1)
        if any(cells)
    }
    return Document(str(number), (NO_WORD,) * len(rows), annotations, source=source)
