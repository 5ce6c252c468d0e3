"""A table of spans, a row each, for spreadsheets and statistics; written only.

``id, annotator, start, end, label, text, confidence, document_confidence``, and ``layer`` where there are several.
"""

from __future__ import annotations

import csv
import io

from quorate.files import written_whole
from quorate.formats.pages import Book, outward_spans

__all__ = ["write"]

_COLUMNS = ("id", "annotator", "start", "end", "label", "text", "confidence", "document_confidence")


def write(book: Book, path: str) -> None:
    """Every span of the consensus, or of every annotator."""
    book.check_spans("a table of spans")
    with written_whole(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        table = csv.writer(text)
        table.writerow([*_COLUMNS, *(["layer"] if book.layers else [])])
        for page in book.pages():
            for reading in page.readings():
                whole = "" if reading.confidence is None else f"{reading.confidence:.6g}"
                for span in outward_spans(page, reading):
                    sure = "" if span.confidence is None else f"{span.confidence:.6g}"
                    row = [page.document.id, reading.name, span.start, span.end, span.label, span.text, sure, whole]
                    table.writerow([*row, *([span.layer] if book.layers else [])])
        text.detach()
