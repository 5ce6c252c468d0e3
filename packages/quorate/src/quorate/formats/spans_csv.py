"""A table of spans, a row each, for spreadsheets and statistics; the texts are read from a file of their own.

``id, annotator, start, end, label, text, confidence, document_confidence, token_start, token_end``, ``layer`` where
there are several, and ``pieces`` (``0-5;10-12``) where spans may be discontinuous. ``start``, ``end`` and ``pieces``
count characters of the document's text, and tokens where it came without one.
Cells are parted by commas, and by tabs in a file whose name ends in ``.tsv``.
A text that a spreadsheet would take for a formula has an apostrophe before it. An annotator who saw a document and
marked nothing has a row of it without a span.

Read are ``id`` (or ``document``), ``annotator``, ``start``, ``end``, ``label``, and if they are there ``text`` (the
words of the span; without a file of texts, the whole text of the document), ``confidence`` and ``pieces``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from quorate.corpus.records import Source
from quorate.errors import InputError
from quorate.formats import frames
from quorate.formats.cells import as_cell, from_cell
from quorate.formats.exports import Export, outward_spans
from quorate.formats.marked import Marked
from quorate.formats.notes import Notes
from quorate.formats.opened import Input
from quorate.formats.seen import NOTHING_SAID
from quorate.formats.table import NO_WORD, delimiter_of, rows_in
from quorate.storage.files.atomic import written_whole

_COLUMNS = (
    "id", "annotator", "start", "end", "label", "text", "confidence", "document_confidence", "token_start", "token_end",
)  # fmt: skip


_NAMES = {"doc": "document", "id": "document", "task": "document", "worker": "annotator", "tag": "label"}
_NEEDED = {"document", "annotator", "start", "end", "label"}
_NO_TEXTS = "a table of spans, which has no texts (give the file that has them: --texts FILE)"


def is_header(cells: Iterable[str]) -> bool:
    """Whether a first line names the columns of a table of spans.

    >>> is_header(["id", "annotator", "start", "end", "label"]), is_header(["start", "end"])
    (True, False)
    """
    return set(_known(list(cells))) >= _NEEDED


def _known(cells: Sequence[str]) -> list[str]:
    names = [cell.strip().lower() for cell in cells]
    return [name if _NAMES.get(name, name) in names else _NAMES[name] for name in names]


def read(given: Input, notes: Notes) -> Iterator[Marked]:
    """The documents of a table, with everybody's spans."""
    with closing(rows_in(given)) as lines:
        line, head = next(lines)
        names = _known(head)
        if missing := sorted(_NEEDED - {*names}):
            raise InputError(
                f"a table of spans without the column {missing[0]} (it has: {', '.join(head)})",
                where=f"{given.name}:{line}",
            )
        rows = [
            (Source(given.name, line), _row(dict(zip(names, map(from_cell, cells), strict=False)), given.name, line))
            for line, cells in lines
            if any(cells)
        ]
    yield from rows_to_spans(rows, given, notes)


def named_rows(rows: Iterable[Mapping[str, Any]], name: str) -> Iterator[tuple[Source, dict[str, Any]]]:
    """Rows of a table that has types, under the names of columns that are used here."""
    for number, row in enumerate(rows, 1):
        yield Source(name, number, record="row"), dict(zip(_known(list(row)), row.values(), strict=True))


def rows_to_spans(rows: Sequence[tuple[Source, Mapping[str, Any]]], given: Input, notes: Notes) -> Iterator[Marked]:
    """The same of rows from elsewhere."""
    texts = given.texts
    if texts is None and rows and not _have_texts([row for _, row in rows]):
        raise InputError(_NO_TEXTS, where=f"{given.name}:1")
    if texts is not None and rows and _count_tokens([row for _, row in rows]):
        if not all(row.get("tokens") for row in texts.values()):
            raise InputError(
                "its offsets count tokens, as its documents had no text (give their tokens: --texts with the file that "
                "it was made from)",
                where=f"{given.name}:1",
            )
        texts = {key: {**row, "text": None, "offsets": None} for key, row in texts.items()}
    if texts is not None:
        named = {str(row["annotator"]) for _, row in rows if row.get("annotator")}
        told = {name for row in texts.values() for name in row.get("seen_by") or ()}
        if named and named <= told:  # the texts are in a file that they annotated
            texts = {key: {**row, "annotators": row.get("seen_by")} for key, row in texts.items()}
    yield from frames.marked_rows(rows, texts, given.seen or NOTHING_SAID, notes, given.name, _document).values()


def _document(key: str, row: Mapping[str, Any], source: Source) -> Marked:
    """A document in which nobody has marked anything yet; of one without a text, spans count tokens."""
    return Marked(
        key,
        row.get("text"),
        {str(name): [] for name in row.get("annotators") or ()},
        source,
        split=row.get("split") or None,
        tokens=row.get("tokens"),
        offsets=row.get("offsets"),
    )


def _count_tokens(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether spans have the offsets of their tokens alone, as where they are written of documents without a text."""
    if "token_start" not in rows[0]:
        return False
    return all((row.get("start"), row.get("end")) == (row.get("token_start"), row.get("token_end")) for row in rows)


def _have_texts(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the column text has the whole text of every document, and not the words of spans."""
    if "token_start" in rows[0]:
        return False  # which is written here
    whole: dict[str, str] = {}
    for row in rows:
        text = row.get("text")
        if not text or whole.setdefault(str(row["document"]), str(text)) != text:
            return False
    ends = (int(row["end"] or 0) for row in rows)
    return all(end <= len(str(row["text"])) for end, row in zip(ends, rows, strict=True))


def _row(row: dict[str, str], name: str, line: int) -> dict[str, Any]:
    """Numbers as numbers, and empty cells as ``None``."""
    made: dict[str, Any] = {column: cell if cell != "" else None for column, cell in row.items()}
    for column, kind in (("start", int), ("end", int), ("token_start", int), ("token_end", int), ("confidence", float)):
        if made.get(column) is None:
            continue
        try:
            made[column] = kind(made[column])
        except ValueError:
            raise InputError(f"{column} {made[column]!r} is not a number", where=f"{name}:{line}") from None
    return made


def write(export: Export, path: str) -> None:
    """Every span of the consensus, or of every annotator."""
    export.check_spans("a table of spans")
    with written_whole(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        table = csv.writer(text, delimiter=delimiter_of(path))
        more = [*(["layer"] if export.layers else []), *(["pieces"] if export.discontinuous else [])]
        table.writerow([*_COLUMNS, *more])
        for exported in export.documents():
            document = exported.document
            has_words = document.text is not None or set(document.tokens) != {NO_WORD}
            for annotation in exported.annotations():
                if exported.consensus is None and not annotation.spans and len(document.tokens):
                    table.writerow([as_cell(document.id), as_cell(annotation.name), *[""] * (8 + len(more))])
                whole = "" if annotation.confidence is None else f"{annotation.confidence:.6g}"
                for span, in_tokens in zip(outward_spans(exported, annotation), annotation.spans, strict=True):
                    sure = "" if span.confidence is None else f"{span.confidence:.6g}"
                    who, label, words = map(as_cell, (annotation.name, span.label, span.text or ""))
                    place = in_tokens if document.text is None else span
                    row = [as_cell(document.id), who, place.start, place.end, label, words if has_words else ""]
                    row += [sure, whole, in_tokens.start, in_tokens.end]
                    pieces = ";".join(f"{start}-{end}" for start, end in place.pieces)
                    table.writerow([*row, *({"layer": as_cell(span.layer), "pieces": pieces}[name] for name in more)])
        text.detach()
