"""The files inside a zip or tar archive, read into memory; a bad archive gives one line, not a traceback."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from quorate import formats
from quorate.errors import InputError
from quorate.formats.opened import check_unpacked
from quorate.limits import MAX_SIZE


def zip_files(archive: str | Path, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """The content of every file in a zip archive whose name is wanted."""
    with _errors_in_one_line(archive, "a zip archive"), zipfile.ZipFile(archive) as opened:
        found = [info for info in opened.infolist() if wanted(info.filename)]
        check_unpacked(sum(info.file_size for info in found), _size(archive), str(archive), MAX_SIZE)
        return {info.filename: opened.read(info) for info in found}


def tar_files(archive: str | Path, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """The content of every file in a tar archive, packed or not, whose name is wanted."""
    files: dict[str, bytes] = {}
    with _errors_in_one_line(archive, "a tar archive"), tarfile.open(archive, "r:*") as opened:
        for member in opened:
            content = opened.extractfile(member) if member.isfile() and wanted(member.name) else None
            check_unpacked(opened.offset, _size(archive), str(archive), MAX_SIZE)
            if content is not None:
                files[member.name] = content.read()
    return files


def _size(archive: str | Path) -> int:
    return Path(archive).stat().st_size


def text_of(content: bytes, where: str) -> str:
    """Decode a file as UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8 text: {error.reason} at byte {error.start} (get the archive again)", where=where
        ) from None


def digest_of(archive: str | Path) -> str:
    """The SHA-256 of a file."""
    with _errors_in_one_line(archive, "an archive"):
        return formats.digest_of(archive)


@contextmanager
def _errors_in_one_line(archive: str | Path, kind: str) -> Iterator[None]:
    where = str(archive)
    try:
        yield
    except FileNotFoundError:
        raise InputError("no such file (give the path of the archive)", where=where) from None
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, NotImplementedError, RuntimeError) as error:
        # RuntimeError: a member under a password; NotImplementedError: a way of packing that Python does not know.
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(":")  # tarfile lists all that it tried
        raise InputError(
            f"cannot be read as {kind}: {reason} (give the published archive, or get it again)", where=where
        ) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error} (check the file)", where=where) from None
