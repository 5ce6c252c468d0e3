"""Files to read, opened: plain or gzipped, standard input, or every file of a folder."""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from quorate.errors import InputError

__all__ = ["Input", "files_of", "opened", "stem"]

_SUFFIXES = (
    ".jsonl", ".json", ".ndjson", ".conll", ".bio", ".iob", ".tsv", ".txt", ".csv", ".parquet", ".zip", ".spacy",
    ".xmi", ".manifest", ".arrow",
)  # fmt: skip


@dataclass(frozen=True)
class Input:
    """What a reader is given: the content, the file's name for messages, the number of its first document.

    A document without an id is numbered by its reader, or has an empty one: then its place in the file counts, if the
    file is one annotator's.

    ``predictions``: what models said counts as an annotator's word too. A format that is a folder finds its files under
    ``name``; its stream is empty.
    """

    stream: io.BufferedReader
    name: str
    first_number: int = 1
    predictions: bool = False


def stem(name: str) -> str:
    """A file's name without folder and endings.

    >>> stem("exports/ann.jsonl.gz"), stem("-")
    ('ann', 'annotator')
    """
    base = Path(name).name.removesuffix(".gz")
    return "annotator" if name == "-" else base.rsplit(".", 1)[0] or base


def files_of(path: str) -> list[str]:
    """The file, or those of a folder in the order of their names."""
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


def _seekable(name: str) -> IO[bytes]:
    """The file's bytes; those of a pipe are taken in whole, as it is read once and readers look twice."""
    if name == "-":
        return io.BytesIO(sys.stdin.buffer.read())
    file = open(name, "rb")  # noqa: SIM115
    if file.seekable():
        return file
    with file:
        return io.BytesIO(file.read())


@contextmanager
def opened(name: str) -> Iterator[tuple[io.BufferedReader, Callable[[], str]]]:
    """The file's content as a buffered stream of bytes, unzipped; and a function for the SHA-256 of the file."""
    try:
        with _seekable(name) as raw:

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
