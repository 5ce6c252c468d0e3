"""Files and folders on their way to a place, written beside it under a name of their own.

While one is written its process holds a lock on it. The lock goes when the process goes, however it ends, and belongs
to no number that another process may get: so what nobody holds is litter of a run that was killed. The next run to the
same place removes it, and a service when it starts (:func:`sweep`). What other machines left on a shared disk stays, as
their locks may not be seen here; on Windows, which opens no folder to lock it, everything stays.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from quorate.storage.files.locks import locked_by_us

_SUFFIX = ".part"
_LOCKS = sys.platform != "win32"  # which opens no folder, and renames nothing that is open


@contextmanager
def beside(target: Path, *, folder: bool = False) -> Iterator[Path]:
    """An empty file or folder beside a place, to be renamed when it is whole; gone at the end if it was not.

    >>> with tempfile.TemporaryDirectory() as place:
    ...     with beside(Path(place, "out.txt")) as path:
    ...         _ = path.write_text("all of it")
    ...         _ = path.rename(Path(place, "out.txt"))
    ...     os.listdir(place)
    ['out.txt']
    """
    if _LOCKS:
        sweep(target.parent, target.name)
        path, lock = _held(target, folder)
    else:
        path, lock = _made(target, folder), None
    try:
        yield path
    finally:
        _remove(path)
        if lock is not None:
            os.close(lock)


def _held(target: Path, folder: bool) -> tuple[Path, int]:
    """A new file or folder, and the descriptor that holds it."""
    while True:
        path = _made(target, folder)
        try:
            lock = _opened(path)
        except FileNotFoundError:  # another run swept it away before it was open
            continue
        locked_by_us(lock, wait=True)
        if _is_at(lock, path):
            return path, lock
        os.close(lock)  # or before it was held


def _made(target: Path, folder: bool) -> Path:
    """A new file or folder beside a place."""
    prefix, place = _prefix(target), target.parent
    if folder:
        return Path(tempfile.mkdtemp(_SUFFIX, prefix, place))
    descriptor, name = tempfile.mkstemp(_SUFFIX, prefix, place)
    os.close(descriptor)
    return Path(name)


def _prefix(target: Path) -> str:
    """How names of this machine's unfinished files for a place begin."""
    return f".{target.name}.{_machine()}-"


def _machine() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"


def sweep(folder: Path, name: str | None = None) -> None:
    """Remove from a folder what killed runs left of the files and folders that were to be there, or of one of them.

    >>> with tempfile.TemporaryDirectory() as place:
    ...     litter = _made(Path(place, "out.txt"), folder=False)
    ...     sweep(Path(place))
    ...     os.listdir(place)
    []
    """
    if not _LOCKS:
        return
    begins = rf"\..+\.{_machine()}-" if name is None else re.escape(_prefix(folder / name))
    litter = re.compile(begins + r"\w{8}" + re.escape(_SUFFIX))
    with suppress(OSError):
        for found in os.listdir(folder):
            if litter.fullmatch(found):
                _remove_if_free(folder / found)


def _remove_if_free(path: Path) -> None:
    with suppress(OSError):
        lock = _opened(path)
        try:
            if locked_by_us(lock, wait=False) and _is_at(lock, path):
                _remove(path)
        finally:
            os.close(lock)


def _opened(path: Path) -> int:
    """A descriptor to hold a file or a folder by; not of what a link points to."""
    return os.open(path, os.O_NOFOLLOW | (os.O_RDONLY if path.is_dir() else os.O_RDWR))


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
