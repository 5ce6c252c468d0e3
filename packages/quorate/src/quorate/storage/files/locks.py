"""Locks on open files, which go when their process goes, however that ends."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from quorate.errors import SettingsError

_PLACE = 1 << 30  # the byte that is locked on Windows, where nobody could read what is: far behind the content
_LOOK = 0.1  # seconds until another look there
_OTHERS = (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)  # they hold it; else there are no locks


def locked_by_us(descriptor: int, *, wait: bool) -> bool | None:
    """Whether this process holds a file now; it waits until others let go, if asked to.

    ``None`` where a disk has no locks: nobody holds it, and nobody is kept out.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as stream:
    ...     locked_by_us(stream.fileno(), wait=False)
    True
    """
    try:
        import fcntl
    except ImportError:
        return _locked_on_windows(descriptor, wait)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return False if error.errno in _OTHERS else None
    return True


@contextmanager
def only_here(path: str | Path, *, wait: bool = False, hint: str = "wait for it") -> Iterator[None]:
    """No other process that asks works on a file until this one has replaced it: another is refused, or waits.

    ``hint`` tells who is refused what to do. On Windows, which replaces nothing that is open, and on a disk without
    locks nobody is kept out.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     with only_here(file.name), only_here(file.name):
    ...         pass
    Traceback (most recent call last):
    quorate.errors.SettingsError: ...: another process works on this file (wait for it)
    """
    if sys.platform == "win32" or not Path(path).is_file():
        yield
        return
    descriptor = _held(path, wait, hint)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _held(path: str | Path, wait: bool, hint: str) -> int | None:
    """The descriptor that holds the file which is at a path when it is ours; ``None`` if none is there any more."""
    while True:
        try:
            # A disk of the network locks only what may be written.
            descriptor = os.open(path, os.O_RDWR if os.access(path, os.W_OK) else os.O_RDONLY)
        except FileNotFoundError:
            return None
        if locked_by_us(descriptor, wait=wait) is False:
            os.close(descriptor)
            raise SettingsError(f"{path}: another process works on this file ({hint})")
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        os.close(descriptor)  # it was replaced or removed while we waited


def _locked_on_windows(descriptor: int, wait: bool) -> bool | None:
    import msvcrt

    while True:
        before = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, _PLACE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
            return True
        except OSError as error:
            if error.errno not in _OTHERS:
                return None
            if not wait:
                return False
        finally:
            os.lseek(descriptor, before, os.SEEK_SET)
        time.sleep(_LOOK)
