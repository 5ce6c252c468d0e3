"""Files to read, opened: plain or gzipped, standard input, or every file of a folder."""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from quorate.corpus.profiles import Profile
from quorate.errors import InputError
from quorate.limits import MAX_SIZE, size_in_words, too_much, unpacks_to_too_much
from quorate.wording import in_words_and_numbers

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Line = TypeVar("Line", bytes, str)

_PIECE = 1 << 20

_SUFFIXES = (
    ".jsonl", ".json", ".ndjson", ".conll", ".bio", ".iob", ".tsv", ".txt", ".csv", ".parquet", ".zip", ".spacy",
    ".xmi", ".manifest", ".arrow",
)  # fmt: skip


class Content(io.BufferedReader):
    """What is in a file, as bytes; no line of it may be longer than ``max_size``."""

    def __init__(self, raw: IO[bytes], name: str, max_size: int = MAX_SIZE) -> None:
        super().__init__(raw, _PIECE)  # type: ignore[arg-type]
        self.file, self.max_size = name, max_size

    def __iter__(self) -> Iterator[bytes]:
        return _limited(self.readline, self.file, self.max_size)


def most_of(stream: IO[bytes]) -> int:
    """How long a record in a stream may be."""
    return stream.max_size if isinstance(stream, Content) else MAX_SIZE


def text_lines(text: io.TextIOWrapper, given: Input) -> Iterator[str]:
    """The lines of a text, none of which may be longer than a line of the input may be."""
    return _limited(text.readline, given.name, most_of(given.stream))


def _limited(readline: Callable[[int], Line], name: str, most: int) -> Iterator[Line]:
    number = 0
    while line := readline(most + 1):
        number += 1
        if len(line) > most:
            raise InputError(
                f"a line of more than {size_in_words(most)} (if that is right, raise --max-size)",
                where=f"{name}:{number}",
            )
        yield line


class _Unpacking(gzip.GzipFile):
    """A packed file, which may not unpack to far more than it is."""

    def __init__(self, raw: IO[bytes], name: str, max_size: int) -> None:
        super().__init__(fileobj=raw)
        self._packed, self._where, self._most = length_of(raw), name, max_size

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read some more, and look how much it is by now."""
        n = super().readinto(buffer)
        self._check()
        return n

    def read(self, size: int | None = -1) -> bytes:
        """Read so much, or all, piece by piece, and look after each how much it is by now."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(_PIECE), b""))
        piece = super().read(size)
        self._check()
        return piece

    def _check(self) -> None:
        check_unpacked(self.tell(), self._packed, self._where, self._most)


def length_of(stream: IO[bytes]) -> int:
    """How long a file is; it is at its beginning then."""
    length = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    return length


def check_unpacked(unpacked: int, packed: int, name: str, most: int) -> None:
    """:class:`InputError` if a small file unpacks to too much."""
    if unpacks_to_too_much(unpacked, packed, most):
        raise InputError(f"{too_much(most)} (if that is right, raise --max-size)", where=name)


class Samples(StrEnum):
    """What several samples of one prompt become.

    >>> Samples("group") is Samples.GROUP
    True
    """

    SOFT = "soft"
    GROUP = "group"


@dataclass
class Input:
    """What a reader is given: the content, the file's name for messages, the number of its first document.

    A document without an id is numbered by its reader, or has an empty one: then its place in the file counts, if the
    file is one annotator's. A reader that numbers one says so in ``numbered``: after another file it has another.

    ``predictions``: what models said counts as an annotator's word too. ``samples``: several answers of one model to
    one prompt are one annotator with their shares, or a group. A reader adds to ``profiles`` what the file itself says
    of its annotators. A format that is a folder finds its files under ``name``; its stream is empty.
    """

    stream: io.BufferedReader
    name: str
    first_number: int = 1
    predictions: bool = False
    samples: Samples = Samples.SOFT
    profiles: dict[str, Profile] = field(default_factory=dict)
    numbered: bool = False


def stem(name: str) -> str:
    """A file's name without folder and endings.

    >>> stem("exports/ann.jsonl.gz"), stem("-")
    ('ann', 'annotator')
    """
    base = Path(name).name.removesuffix(".gz")
    return "annotator" if name == "-" else base.rsplit(".", 1)[0] or base


def files_of(path: str) -> list[str]:
    """The file, or those of a folder in the order of their names, week-9 before week-10."""
    folder = Path(path)
    if path == "-" or not folder.is_dir():
        return [path]
    names = (
        str(file)
        for file in folder.iterdir()
        if file.is_file() and not file.name.startswith(".") and file.name.removesuffix(".gz").endswith(_SUFFIXES)
    )
    files = sorted(names, key=in_words_and_numbers)
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
def opened(name: str, max_size: int = MAX_SIZE) -> Iterator[tuple[Content, Callable[[], str]]]:
    """The file's content as a buffered stream of bytes, unzipped; and a function for the SHA-256 of the file."""
    try:
        with _seekable(name) as raw:

            def digest() -> str:
                raw.seek(0)
                return hashlib.file_digest(raw, "sha256").hexdigest()  # type: ignore[arg-type]

            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            unpacked: Any = _Unpacking(raw, name, max_size) if zipped else raw
            yield Content(unpacked, name, max_size), digest
    except FileNotFoundError:
        raise InputError("no such file", where=name) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"damaged gzip file: {error} (make or copy it again)", where=name) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=name) from None
