"""Named arrays and a text in one file that can be mapped into memory: the layout of *safetensors*.

Eight bytes with the length of a JSON header, the header, then the arrays end to end, those of the widest numbers first
so that all are aligned. The header holds a digest of each array and one of itself (CRC-32: against damage; what is put
in on purpose must be found by the checks of whoever reads it). Nothing in such a file is ever executed.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Annotated, Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from quorate.errors import InputError, OutputError
from quorate.storage.files.atomic import place_of, written_whole
from quorate.storage.files.unfinished import beside

_TYPES = {"F64": "<f8", "I64": "<i8", "I32": "<i4", "I16": "<i2", "U8": "|u1"}
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}
_OWN, _TEXT, _DIGESTS = "quorate digest", "quorate", "digests"
_ANY_VERSION = f'{{"__metadata__": {{"{_TEXT}'.encode()
_BEGINNING = f'{{"__metadata__": {{"{_OWN}": "'.encode()
_NO_DIGEST = "0" * 8
_AT_ONCE = 1 << 22

Arrays = dict[str, NDArray[Any]]


class Workspace:
    """A folder, beside a file's place, for arrays on their way into it; gone when it is left.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Workspace(f"{folder}/corpus.qr") as space:
    ...     grown = space.array_file("numbers", np.int32)
    ...     grown.add(np.array([1, 2]))
    ...     grown.add(np.array([3]))
    ...     grown.array().tolist()
    [1, 2, 3]
    """

    def __init__(self, path: str | Path) -> None:
        self._target = place_of(path)
        self._files: list[ArrayFile] = []
        self._open = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._folder = self._open.enter_context(beside(self._target, folder=True))
        except OSError as error:
            raise OutputError(f"{self._target.parent}: cannot be written: {error.strerror or error}") from None
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._files:
            file.close()
        self._open.close()

    def array_file(self, name: str, kind: Any) -> ArrayFile:
        """An empty array that will grow."""
        self._files.append(ArrayFile(self._folder / name, kind))
        return self._files[-1]


class ArrayFile:
    """An array that grows in a file of its own, so that it need not be held in memory: see :class:`Workspace`."""

    def __init__(self, path: Path, kind: Any) -> None:
        self.path, self.kind, self.length = path, np.dtype(kind), 0
        self._stream: IO[bytes] = open(path, "wb", buffering=1 << 16)  # noqa: SIM115

    def add(self, values: Any) -> None:
        """Append."""
        array = np.ascontiguousarray(values, self.kind)
        if array.size:
            self._stream.write(array.data.cast("B"))
        self.length += array.size

    def array(self) -> NDArray[Any]:
        """All of it, mapped; it cannot grow any more."""
        self.close()
        if not self.length:
            return np.zeros(0, self.kind)
        return np.memmap(self.path, self.kind, "r+").view(np.ndarray)

    def close(self) -> None:
        """No more is added."""
        self._stream.close()


def write(path: str | Path, arrays: Arrays, text: dict[str, Any]) -> None:
    """Write a file, whole or not at all; large arrays are copied in pieces."""
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    digests = {name: _digest(array) for name, array in ordered}
    metadata = {_OWN: _NO_DIGEST, _TEXT: json.dumps(text, ensure_ascii=False), _DIGESTS: json.dumps(digests)}
    header: dict[str, Any] = {"__metadata__": metadata}
    place = 0
    for name, array in ordered:
        end = place + array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [place, end]}
        place = end
    encoded = json.dumps(header, ensure_ascii=False).encode()
    encoded += b" " * (-len(encoded) % 8)
    head = len(encoded).to_bytes(8, "little") + encoded
    with written_whole(path, pack=False) as stream:
        stream.write(_with_own_digest(head, _own_digest(head)))
        for _, array in ordered:
            for piece in _pieces(array):
                stream.write(piece)


def is_container(path: str | Path) -> bool:
    """Whether a file is such a file, or was one before a byte or two of its beginning were damaged."""
    if not Path(path).is_file():  # of a pipe nothing may be read that is not kept
        return False
    try:
        with open(path, "rb") as stream:
            head = stream.read(8 + len(_ANY_VERSION))
    except OSError:
        return False
    alike = sum(ours == theirs for ours, theirs in zip(_ANY_VERSION, head[8:], strict=False))
    return alike >= len(_ANY_VERSION) - 2 or (bool(head) and str(path).endswith(".qr"))


class MappedArrays(dict[str, NDArray[Any]]):
    """The arrays of a file by name, each checked the first time that it is asked for.

    They are mapped: read when used, and private, so that the file stays as it is. ``check`` is what else must hold of
    an array, and says in a few words what does not. ``digest`` is that of the header, which holds those of all arrays.
    """

    def __init__(self, path: str, arrays: Arrays, digests: dict[str, str], digest: str) -> None:
        super().__init__()
        self.path, self.digest = path, digest
        self.check: Callable[[str, NDArray[Any]], str | None] = lambda name, array: None
        self._unchecked, self._digests = arrays, digests

    @property
    def names(self) -> set[str]:
        """Of all arrays in the file."""
        return set(self._unchecked)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, which may not have been checked yet."""
        return self._unchecked[name].shape

    def check_all(self) -> None:
        """Check every array now."""
        for name in self._unchecked:
            self[name]

    @property
    def nbytes(self) -> int:
        """How long the arrays are together."""
        return sum(array.nbytes for array in self._unchecked.values())

    def __missing__(self, name: str) -> NDArray[Any]:
        array = self._unchecked[name]
        if _digest(array) != self._digests.get(name):
            raise damaged(self.path, f"array {name!r} is not what was written")
        wrong = self.check(name, array)
        if wrong is not None:
            raise damaged(self.path, f"array {name!r}: {wrong}")
        self[name] = array
        return array


def damaged(path: str, what: str) -> InputError:
    """The error for a file that is not what it should be."""
    return InputError(
        f"not an encoded corpus, or a damaged one: {what} (make it again with: quorate encode)", where=path
    )


def mapped(path: str | Path) -> tuple[MappedArrays, Any]:
    """The arrays, and the text."""
    name = str(path)
    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            start = stream.read(8)
            length = int.from_bytes(start, "little")
            if length > size or length % 8:
                raise damaged(name, "its header is cut off")
            head = start + stream.read(length)
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
        return _unpacked(name, head, content)
    except FileNotFoundError:
        raise InputError("no such file", where=name) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=name) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, msgspec.MsgspecError) as error:
        raise damaged(name, str(error) or type(error).__name__) from None


class _Entry(msgspec.Struct):
    """An array's kind, shape and place."""

    dtype: str
    shape: list[Annotated[int, msgspec.Meta(ge=0)]]
    data_offsets: tuple[int, int]


def _unpacked(path: str, head: bytes, content: mmap.mmap) -> tuple[MappedArrays, Any]:
    header = msgspec.json.decode(head[8:])
    metadata = msgspec.convert(header.pop("__metadata__"), dict[str, str])
    if _OWN not in metadata:
        raise InputError("an encoded corpus of an earlier version, without digests (encode it again)", where=path)
    if metadata[_OWN] != _own_digest(head):
        raise damaged(path, "its header is not what was written")
    arrays, place = Arrays(), 0
    for name, entry in msgspec.convert(header, dict[str, _Entry]).items():
        kind, count = np.dtype(_TYPES[entry.dtype]), math.prod(entry.shape)
        first, last = entry.data_offsets
        if first != place or first % kind.itemsize or last - first != count * kind.itemsize:
            raise damaged(path, f"array {name!r} is not where it should be")
        if len(head) + last > len(content):
            raise damaged(path, f"array {name!r} is cut off")
        arrays[name] = np.frombuffer(content, kind, count, len(head) + first).reshape(entry.shape)
        place = last
    if len(head) + place != len(content):
        raise damaged(path, "something follows the last array")
    digests = msgspec.json.decode(metadata[_DIGESTS], type=dict[str, str])
    return MappedArrays(path, arrays, digests, metadata[_OWN]), msgspec.json.decode(metadata[_TEXT])


def _pieces(array: NDArray[Any]) -> Iterator[memoryview]:
    flat = array.reshape(-1)
    for first in range(0, len(flat), _AT_ONCE):
        yield np.ascontiguousarray(flat[first : first + _AT_ONCE]).data.cast("B")


def _digest(array: NDArray[Any]) -> str:
    total = 0
    for piece in _pieces(array):
        total = zlib.crc32(piece, total)
    return f"{total:08x}"


def _own_digest(head: bytes) -> str:
    """Of the header, as it is before its own digest is put in."""
    return f"{zlib.crc32(_with_own_digest(head, _NO_DIGEST)):08x}"


def _with_own_digest(head: bytes, digest: str) -> bytes:
    place = 8 + len(_BEGINNING)
    return head[:place] + digest.encode() + head[place + len(digest) :]
