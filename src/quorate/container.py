"""Named arrays and a text in one file that can be mapped into memory: the layout of *safetensors*.

Eight bytes with the length of a JSON header, the header, then the arrays end to end, those of the widest numbers first
so that all are aligned. Nothing in such a file is ever executed.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from quorate.errors import InputError, OutputError
from quorate.files import written_whole
from quorate.unfinished import beside

__all__ = ["ArrayFile", "Arrays", "Workspace", "is_container", "mapped", "write"]

_TYPES = {"F64": "<f8", "I64": "<i8", "I32": "<i4", "I16": "<i2", "U8": "|u1"}
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}
_TEXT = "quorate"

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
        self._target = Path(path).resolve()
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
    header: dict[str, Any] = {"__metadata__": {_TEXT: json.dumps(text, ensure_ascii=False)}}
    place = 0
    for name, array in ordered:
        end = place + array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [place, end]}
        place = end
    encoded = json.dumps(header, ensure_ascii=False).encode()
    encoded += b" " * (-len(encoded) % 8)
    with written_whole(path, pack=False) as stream:
        stream.write(len(encoded).to_bytes(8, "little"))
        stream.write(encoded)
        for _, array in ordered:
            flat = array.reshape(-1)
            for first in range(0, len(flat), 1 << 22):
                stream.write(np.ascontiguousarray(flat[first : first + (1 << 22)]).data.cast("B"))


def is_container(path: str | Path) -> bool:
    """Whether a file begins as such a file does."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(8 + 64)
    except OSError:
        return False
    return len(head) > 16 and head[8:].startswith(b'{"__metadata__": {"' + _TEXT.encode())


def mapped(path: str | Path) -> tuple[Arrays, dict[str, Any]]:
    """The arrays, mapped (read when used; private: the file stays as it is), and the text."""
    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            length = int.from_bytes(stream.read(8), "little")
            if length > size:
                raise ValueError("its header is cut off")
            header = json.loads(stream.read(length))
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
        text = json.loads(header.pop("__metadata__")[_TEXT])
        arrays = {}
        for name, entry in header.items():
            first, last = (8 + length + offset for offset in entry["data_offsets"])
            kind, count = np.dtype(_TYPES[entry["dtype"]]), math.prod(entry["shape"])
            if last > size or last - first != count * kind.itemsize or first < 0:
                raise ValueError(f"array {name!r} is cut off")
            arrays[name] = np.frombuffer(content, kind, count, first).reshape(entry["shape"])
    except FileNotFoundError:
        raise InputError("no such file", where=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"not an encoded corpus, or a damaged one: {error} (make it again with: quorate encode)", where=str(path)
        ) from None
    return arrays, text
