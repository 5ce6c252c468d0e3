"""A table of spans, a row each, for spreadsheets and statistics; written only.

``id, annotator, start, end, label, text, confidence, document_confidence, token_start, token_end``, ``layer`` where
there are several, and ``pieces`` (``0-5;10-12``) where spans may be discontinuous. ``start``, ``end`` and ``pieces``
count characters of the document's text, and tokens where it came without one.
Cells are parted by commas, and by tabs in a file whose name ends in ``.tsv``.
A text that a spreadsheet would take for a formula has an apostrophe before it.
"""

from __future__ import annotations

import csv
import io

from quorate.formats.cells import as_text
from quorate.formats.exports import Export, outward_spans
from quorate.formats.table import NO_WORD, delimiter_of
from quorate.storage.files.atomic import written_whole

_COLUMNS = (
    "id", "annotator", "start", "end", "label", "text", "confidence", "document_confidence", "token_start", "token_end",
)  # fmt: skip


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
                whole = "" if annotation.confidence is None else f"{annotation.confidence:.6g}"
                for span, in_tokens in zip(outward_spans(exported, annotation), annotation.spans, strict=True):
                    sure = "" if span.confidence is None else f"{span.confidence:.6g}"
                    who, label, words = map(as_text, (annotation.name, span.label, span.text or ""))
                    place = in_tokens if document.text is None else span
                    row = [as_text(document.id), who, place.start, place.end, label, words if has_words else ""]
                    row += [sure, whole, in_tokens.start, in_tokens.end]
                    pieces = ";".join(f"{start}-{end}" for start, end in place.pieces)
                    table.writerow([*row, *({"layer": as_text(span.layer), "pieces": pieces}[name] for name in more)])
        text.detach()
