"""The texts of documents from a file of their own, for tables that do not have them."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from quorate.errors import InputError
from quorate.formats.opened import Input, opened
from quorate.formats.table import known_names, rows_in

Texts = Mapping[str, Mapping[str, Any]]
"""By document: its ``text``, and if known ``tokens``, ``annotators`` (who saw it) and ``split``."""

_NAMES = ("doc", "task", "id", "doc_id", "document_id")
_LISTS = (";", ",", "|")


def texts_in_table(path: str, most: int) -> Texts | None:
    """The rows of a CSV or TSV with columns for the document and the text, by document; ``None`` if it has others."""
    found: dict[str, dict[str, Any]] = {}
    with opened(path, most) as (stream, _), _long_cells(), closing(rows_in(Input(stream, path))) as rows:
        _, head = next(rows)
        names = known_names(head)
        column = next((names.index(name) for name in _NAMES if name in names), None)
        if column is None or "text" not in names:
            return None
        for line, cells in rows:
            if not any(cells):
                continue
            row = dict(zip(names, cells, strict=False))
            key = cells[column] if len(cells) > column else ""
            if not key or "text" not in row:
                raise InputError("a row without document or text", where=f"{path}:{line}")
            if key in found:
                raise InputError(f"document {key!r} is given twice (give a row a document)", where=f"{path}:{line}")
            found[key] = {"text": row["text"]}
            found[key] |= {"split": row["split"]} if row.get("split") else {}
            found[key] |= {"annotators": _list(row["annotators"])} if "annotators" in row else {}
    return found


def texts_of_folder(folder: Path) -> Texts | None:
    """Those of a folder of .txt files, by the file's name without its ending; ``None`` if there is none."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(folder.glob("*.txt")):
        try:
            found[file.stem] = {"text": file.read_bytes().decode("utf-8-sig")}
        except UnicodeDecodeError as error:
            raise InputError(
                f"not UTF-8 text, at byte {error.start} (save the file as UTF-8)", where=str(file)
            ) from None
    return found or None


def _list(cell: str) -> list[str]:
    mark = next((mark for mark in _LISTS if mark in cell), ";")
    return [name.strip() for name in cell.strip("[] ").split(mark) if name.strip()]


@contextmanager
def _long_cells() -> Iterator[None]:
    """A cell may hold a whole document."""
    before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(before)
