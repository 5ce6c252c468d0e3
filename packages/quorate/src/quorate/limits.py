"""How large what comes from elsewhere may be, before it is taken for a mistake or an attack: one setting, ``max_size``.

It bounds what a small compressed file may unpack to, one line or record, and one answer of a server. Files that are
read line by line or record by record may be of any size.
"""

from __future__ import annotations

import re

from quorate.errors import SettingsError

MAX_SIZE = 1 << 30
_UNPACKED = 100  # times its size is what annotations pack to at best; a bomb reaches ten times that
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def size_named(size: int | str | None, setting: str = "max-size") -> int:
    """A number of bytes, from a number, or a number with K, M, G or T; ``None`` is the usual one.

    >>> size_named("500M"), size_named(4096), size_named(None) == MAX_SIZE
    (524288000, 4096, True)
    """
    if size is None:
        return MAX_SIZE
    found = re.fullmatch(r"(\d{1,15})\s*([KMGT]?)(?:i?B)?", str(size).strip(), re.IGNORECASE)
    if found is None or isinstance(size, bool) or not int(found[1]):
        raise SettingsError(f"{setting} must be a number of bytes, or one with K, M, G or T (2G), not {size!r}")
    return int(found[1]) * _UNITS[found[2].upper()]


def unpacks_to_too_much(unpacked: int, packed: int, most: int) -> bool:
    """Whether so much out of so little is too much.

    >>> unpacks_to_too_much(3 << 30, 1 << 20, MAX_SIZE), unpacks_to_too_much(3 << 30, 1 << 28, MAX_SIZE)
    (True, False)
    """
    return unpacked > most and unpacked > _UNPACKED * packed


def too_much(most: int) -> str:
    """What to say of it."""
    return f"unpacks to more than {size_in_words(most)}, and to over {_UNPACKED} times its size"


def size_in_words(size: int) -> str:
    """A number of bytes as people write it, in the units of :func:`size_named`.

    >>> size_in_words(1 << 30), size_in_words(3_720_000_000), size_in_words(500)
    ('1 GB', '3.5 GB', '500 bytes')
    """
    for unit in "TGMK":
        if size >= _UNITS[unit]:
            return f"{f'{size / _UNITS[unit]:,.1f}'.removesuffix('.0')} {unit}B"
    return f"{size:,} bytes"
