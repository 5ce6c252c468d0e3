"""How much memory is free, and an error in time where something would need more."""

from __future__ import annotations

import os
from pathlib import Path

from quorate.errors import SettingsError
from quorate.limits import size_in_words

_MEMINFO = Path("/proc/meminfo")
_CONTAINER = Path("/sys/fs/cgroup")


def free_memory() -> int | None:
    """Bytes that can still be had, also within the limit of a container; ``None`` where that cannot be known.

    >>> (free_memory() or 1) > 0
    True
    """
    known = [size for size in (_free_in_machine(), _free_in_container()) if size is not None]
    return min(known) if known else None


def check_room(needed: int, what: str, instead: str) -> None:
    """:class:`SettingsError` if ``what`` needs more bytes than are free; ``instead`` says what to do.

    >>> check_room(1, "one byte", "use none")
    """
    free = free_memory()
    if free is not None and needed > free:
        raise too_large(needed, free, what, instead)


def too_large(needed: int, free: int, what: str, instead: str) -> SettingsError:
    """The error for something that needs more bytes than are free.

    >>> str(too_large(1 << 40, 1 << 30, "a matrix of everything", "look at less"))
    'a matrix of everything would need 1 TB of memory, and 1 GB are free (look at less)'
    """
    return SettingsError(
        f"{what} would need {size_in_words(needed)} of memory, and {size_in_words(free)} are free ({instead})"
    )


def _free_in_machine() -> int | None:
    available = _number_after("MemAvailable:", _MEMINFO)
    if available is not None:
        return available * 1024
    for name in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):  # the second, all there is, where the first is not known
        try:
            return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, ValueError, OSError):
            continue
    return None


def _free_in_container() -> int | None:
    """What the limit of a container leaves beside what its processes hold; files in the cache make room."""
    limit = _number_after("", _CONTAINER / "memory.max")
    held = _number_after("anon ", _CONTAINER / "memory.stat")
    return None if limit is None or held is None else max(limit - held, 0)


def _number_after(start: str, path: Path) -> int | None:
    """The number in the line of a file that starts so."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return None
    for line in lines:
        number = line.removeprefix(start).split()[:1]
        if line.startswith(start) and number and number[0].isdecimal():
            return int(number[0])
    return None
