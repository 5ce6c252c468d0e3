"""Files in and out: one module a format, each with ``read(lines, source)`` and/or ``write(result, stream)``.

:func:`read` picks the format by its name, or by looking at the content.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from quorate.corpus import Corpus, Document, Tag
from quorate.errors import InputError, SettingsError
from quorate.formats import conll, jsonl, table
from quorate.formats.notes import Notes

__all__ = ["READERS", "digest_of", "documents", "read", "read_consensus", "read_known"]

Reader = Callable[[IO[bytes], str, int, Notes], Iterator[Document]]
"""Stream, name of the file for messages, number of the first document, notes to add to."""

READERS: dict[str, Reader] = {
    "jsonl": jsonl.read,
    "conll": conll.read,
    "table": table.read,
    "parquet": table.read_parquet,
}
_SUFFIXES = (".jsonl", ".json", ".ndjson", ".conll", ".bio", ".iob", ".tsv", ".txt", ".csv", ".parquet")


def read(*paths: str | Path | Sequence[str | Path] | Any, format: str | None = None) -> Corpus:
    """Read annotations from files into one :class:`Corpus`.

    A path may be a file, plain or gzipped, a folder of such files (read in the order of their names), or ``-`` for
    standard input; or a DataFrame with columns ``task, worker, label``. Formats are ``jsonl``, ``conll``, ``table``
    (CSV) and ``parquet``; which one a file is in is seen from its content.

    >>> import tempfile
    >>> line = '{"id": "1", "tokens": ["Ada", "sang"], "annotations": {"ann": ["B-PER", "O"]}}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "crowd.jsonl").write_text(line)
    ...     read(f"{folder}/crowd.jsonl")
    <Corpus: 1 documents, 2 tokens, 1 annotators>
    """
    notes = Notes()
    digests: dict[str, str] = {}
    if len(paths) == 1 and hasattr(paths[0], "columns"):
        return Corpus(table.frame_documents(paths[0]))
    found = list(documents(*paths, format=format, notes=notes, digests=digests))
    return Corpus(found, notes=notes.sentences(), digests=digests)


def documents(
    *paths: str | Path | Sequence[str | Path], format: str | None = None, notes: Notes, digests: dict[str, str]
) -> Iterator[Document]:
    """The documents of files, one after the other; adds to ``notes``, and the SHA-256 of each file to ``digests``."""
    if format is not None and format not in READERS:
        raise SettingsError(f"unknown format {format!r} (one of: {', '.join(READERS)})")
    if not paths:
        raise SettingsError("no file to read was given")
    number = 0
    given = [path for each in paths for path in (each if isinstance(each, list | tuple) else [each])]
    for name in [file for path in given for file in _files(str(path))]:
        with _opened(name) as (stream, digest):
            read_one = READERS[format or _sniff(stream, name)]
            for document in read_one(stream, name, number + 1, notes):
                number += 1
                yield document
            digests[name] = digest()
    if not number:
        raise InputError("no document in it (one JSON object a line, or CoNLL columns)", where=str(paths[0]))


def read_known(path: str | Path, corpus: Corpus) -> dict[str, tuple[Tag, ...]]:
    """Known tags for documents of a corpus, by id, from a file with ``gold``, or with corrected ``tags``."""
    known: dict[str, tuple[Tag, ...]] = {}
    ids = {document.id for document in corpus}
    for name in _files(str(path)):
        with _opened(name) as (stream, _):
            if _sniff(stream, name) != "jsonl":
                raise InputError("known labels are read from JSONL only", where=name)
            for record in jsonl.read_known(stream, name, Notes()):
                where = f"{record.source.at()}: document {record.id!r}"
                if record.id not in ids:
                    raise InputError("this document is not in the input (leave it out)", where=where)
                tokens = corpus[record.id].tokens
                if record.tokens is not None and record.tokens != tokens:
                    raise InputError(
                        "other tokens than in the input (known labels must be of the same text)", where=where
                    )
                if len(record.tags) != len(tokens):
                    raise InputError(
                        f"{len(record.tags)} known tags for {len(tokens)} tokens (null where not known)", where=where
                    )
                known[record.id] = record.tags
    if not known:
        raise InputError("no document in it has 'gold' or 'tags'", where=str(path))
    return known


def read_consensus(path: str | Path) -> list[jsonl.ConsensusRecord]:
    """Read back a consensus that was written as JSONL."""
    records: list[jsonl.ConsensusRecord] = []
    for name in _files(str(path)):
        with _opened(name) as (stream, _):
            records.extend(jsonl.read_consensus(stream, name))
    if not records:
        raise InputError("no document in it", where=str(path))
    return records


def digest_of(path: str | Path) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _files(path: str) -> list[str]:
    folder = Path(path)
    if path == "-" or not folder.is_dir():
        return [path]
    files = sorted(
        str(file)
        for file in folder.iterdir()
        if file.is_file() and not file.name.startswith(".") and file.name.removesuffix(".gz").endswith(_SUFFIXES)
    )
    if not files:
        raise InputError(f"no file to read in this folder (looked for {', '.join(_SUFFIXES)}, or with .gz)", where=path)
    return files


@contextmanager
def _opened(name: str) -> Iterator[tuple[io.BufferedReader, Callable[[], str]]]:
    """The file's content as a buffered stream of bytes, unzipped; and a function for the SHA-256 of the file."""
    try:
        raw: IO[bytes] = io.BytesIO(sys.stdin.buffer.read()) if name == "-" else open(name, "rb")  # noqa: SIM115
        with raw:

            def digest() -> str:
                raw.seek(0)
                return hashlib.file_digest(raw, "sha256").hexdigest()  # type: ignore[arg-type]

            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = gzip.GzipFile(fileobj=raw) if zipped else raw
            yield io.BufferedReader(stream, 1 << 20), digest  # type: ignore[arg-type]
    except FileNotFoundError:
        raise InputError("no such file", where=name) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"damaged gzip file: {error} (make or copy it again)", where=name) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=name) from None


def _sniff(stream: io.BufferedReader, name: str) -> str:
    head = stream.peek(4096)[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head:
        raise InputError("the file is empty", where=name)
    if head.startswith(b"["):
        raise InputError("a JSON array is not one of the formats read (one JSON object a line is)", where=name)
    if head.startswith(b"PAR1"):
        return "parquet"
    if table.is_header(head.split(b"\n", 1)[0]):
        return "table"
    return "jsonl" if head.startswith(b"{") else "conll"
