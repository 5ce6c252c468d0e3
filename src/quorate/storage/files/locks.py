"""Locks on open files, which go when their process goes, however that ends."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quorate.errors import SettingsError

__all__ = ["locked_by_us", "only_here"]

_PLACE = 1 << 30  # the byte that is locked on Windows, where nobody could read what is: far behind the content
_LOOK = 0.1  # seconds until another look there


def locked_by_us(descriptor: int, *, wait: bool) -> bool:
    """Whether this process holds a file now; it waits until others let go, if asked to.

    Never where a disk has no locks.

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
    except OSError:
        return False
    return True


@contextmanager
def only_here(path: str | Path, *, wait: bool = False) -> Iterator[None]:
    """No other process that asks works on a file until this one has replaced it: another is refused, or waits.

    On Windows, which replaces nothing that is open, nobody is kept out.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     with only_here(file.name), only_here(file.name):
    ...         pass
    Traceback (most recent call last):
    quorate.errors.SettingsError: ...: another process works on this file (wait for it: --wait)
    """
    if sys.platform == "win32" or not Path(path).is_file():
        yield
        return
    descriptor = _held(path, wait)
    try:
        yield
    finally:
        os.close(descriptor)


def _held(path: str | Path, wait: bool) -> int:
    """The descriptor that holds the file which is at a path when it is ours."""
    while True:
        # A disk of the network locks only what may be written.
        descriptor = os.open(path, os.O_RDWR if os.access(path, os.W_OK) else os.O_RDONLY)
        if not locked_by_us(descriptor, wait=wait):
            os.close(descriptor)
            raise SettingsError(f"{path}: another process works on this file (wait for it: --wait)")
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor
        os.close(descriptor)  # it was replaced while we waited


def _locked_on_windows(descriptor: int, wait: bool) -> bool:
    import msvcrt

    while True:
        before = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, _PLACE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
            return True
        except OSError as error:
            if not wait or error.errno not in (errno.EACCES, errno.EDEADLK):  # others hold it; else there are no locks
                return False
        finally:
            os.lseek(descriptor, before, os.SEEK_SET)
        time.sleep(_LOOK)
