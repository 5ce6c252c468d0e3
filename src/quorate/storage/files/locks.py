"""A lock on an open file, which goes when its process goes, however that ends."""

from __future__ import annotations

import errno
import os
import time

__all__ = ["locked_by_us"]

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
