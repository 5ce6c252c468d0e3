"""The files inside a zip archive, with bounds on what a small archive may unpack to."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from quorate.errors import InputError
from quorate.formats.opened import check_unpacked, length_of, most_of

if TYPE_CHECKING:
    from quorate.formats.opened import Input


def member_names(stream: IO[bytes], name: str) -> list[str]:
    """What is in an archive, in order of the names."""
    try:
        with zipfile.ZipFile(stream) as archive:
            return sorted(info.filename for info in archive.infolist() if not info.is_dir())
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"damaged zip file: {error} (export or copy it again)", where=name) from None


def members(given: Input, suffixes: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file in an archive that has one of the endings, in the order of their names."""
    total, packed, most = 0, length_of(given.stream), most_of(given.stream)
    try:
        with zipfile.ZipFile(given.stream) as archive:
            chosen = [info for info in archive.infolist() if info.filename.endswith(suffixes) and not _hidden(info)]
            for info in sorted(chosen, key=lambda info: info.filename):
                total += info.file_size
                check_unpacked(total, packed, given.name, most)
                yield info.filename, archive.read(info)
    except (
        zipfile.BadZipFile, zlib.error, NotImplementedError, ValueError, OSError, EOFError, RuntimeError,
    ) as error:  # fmt: skip
        raise InputError(f"damaged zip file: {error} (export or copy it again)", where=given.name) from None


def _hidden(info: Any) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in info.filename.split("/"))
