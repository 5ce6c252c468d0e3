"""Texts that nobody has annotated yet: plain text, by lines, paragraphs or files, or a column of a table."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from quorate.corpus.tags import OUTSIDE, marks_span
from quorate.errors import InputError
from quorate.formats import sheet, table

_WINDOW = 1 << 16  # of a file, by which it is told what it is
_PLAIN_ENDINGS = (".txt", ".text", ".md")
_TABLE_ENDINGS = (".csv", ".tsv")
_COLUMNS = ("text", "sentence", "content", "document")
"""What a column of texts is called in a table that has no annotations."""


class Plain(StrEnum):
    """What is one document of plain text."""

    LINES = "lines"
    PARAGRAPHS = "paragraphs"
    FILES = "files"


class Text(NamedTuple):
    """A document that nobody has annotated.

    >>> Text("news-1", "Ada sang.").id
    'news-1'
    """

    id: str
    text: str


def plain_texts(content: bytes, name: str, how: Plain | None = None) -> list[Text] | None:
    """The texts in a file that has nothing but texts; ``None`` if it is one for the readers of annotations.

    Without ``how`` that is found out: a table needs a column of texts, and plain text has a name that says so, no tags
    at the ends of its lines, and paragraphs if there is an empty line between two others.

    >>> plain_texts(b"Ada sang.\\nBen slept.\\n", "news.txt")[1]
    Text(id='news-2', text='Ben slept.')
    """
    stem = re.sub(r"\W+", "-", Path(name).stem).strip("-") or "text"
    if how is None:
        if name.lower().endswith(_TABLE_ENDINGS):
            return _texts_in_table(content, name, stem)
        if not name.lower().endswith(_PLAIN_ENDINGS) or content.lstrip()[:1] in (b"{", b"["):
            return None
    text = _decoded(content, name)
    if how is None and _has_tags(text[:_WINDOW]):
        return None
    return _numbered(_divided(text, how), stem, name)


def read_guidelines(path: Path) -> str:
    """The guidelines in a file."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from None
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text (save it as UTF-8)", where=str(path)) from None


def as_jsonl(texts: Sequence[Text]) -> bytes:
    """Texts in quorate's own format."""
    return "".join(json.dumps(one._asdict(), ensure_ascii=False) + "\n" for one in texts).encode()


def _decoded(content: bytes, name: str) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text (save it as UTF-8)", where=name) from None
    if "\0" in text:
        raise InputError("not plain text: it has NUL characters in it (save it as text, in UTF-8)", where=name)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _divided(text: str, how: Plain | None) -> list[str]:
    if how is Plain.FILES:
        return [text.strip()]
    by_paragraphs = re.split(r"\n[^\S\n]*\n", text)
    if how is Plain.PARAGRAPHS or (how is None and sum(bool(one.strip()) for one in by_paragraphs) > 1):
        return [one.strip() for one in by_paragraphs]
    return [line.strip() for line in text.split("\n")]


def _numbered(texts: Sequence[str], stem: str, name: str) -> list[Text]:
    found = [one for one in texts if one]
    if not found:
        raise InputError("there is no text in it", where=name)
    if len(found) == 1:
        return [Text(stem, found[0])]
    return [Text(f"{stem}-{number}", one) for number, one in enumerate(found, 1)]


def _has_tags(text: str) -> bool:
    """Whether lines end in tags, as those of CoNLL do.

    >>> _has_tags("Ada B-PER\\nsang O\\n"), _has_tags("Ada sang.\\n")
    (True, False)
    """
    lines = [line.split() for line in text.split("\n")[:-1] or [text] if line.strip() and not line.startswith("#")]
    tagged = [line for line in lines if len(line) > 1 and (line[-1] == OUTSIDE or marks_span(line[-1]))]
    return bool(lines) and len(tagged) == len(lines)


def _texts_in_table(content: bytes, name: str, stem: str) -> list[Text] | None:
    opening = content.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")[:_WINDOW]
    first = opening.split(b"\n", 1)[0]
    if table.is_header(first.strip()) or sheet.begins_sheet(opening):
        return None
    rows = _rows(_decoded(content, name), name)
    heads = [cell.strip().lower() for cell in next(rows, [])]
    column = next((heads.index(one) for one in _COLUMNS if one in heads), None)
    if column is None or set(heads) >= table.SPAN_COLUMNS:
        return None
    number = heads.index("id") if "id" in heads else None
    texts: list[Text] = []
    for place, row in enumerate(rows, 1):
        text = row[column].strip() if column < len(row) else ""
        if text:
            own = row[number].strip() if number is not None and number < len(row) else ""
            texts.append(Text(own or f"{stem}-{place}", text))
    if not texts:
        raise InputError("there is no text in it", where=name)
    return texts


def _rows(text: str, name: str) -> Iterator[list[str]]:
    head = text.split("\n", 1)[0]
    delimiter = max("\t;,", key=head.count)
    try:
        yield from csv.reader(io.StringIO(text.lstrip("\n"), newline=""), delimiter=delimiter)
    except csv.Error as error:
        raise InputError(f"not a table that can be read: {error}", where=name) from None
