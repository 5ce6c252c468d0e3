"""Output that is there whole or not at all: written beside its place, then renamed. Killed runs leave no litter."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from quorate.errors import OutputError
from quorate.storage.files.unfinished import beside


@contextmanager
def written_whole(path: str | Path, *, pack: bool = True) -> Iterator[IO[bytes]]:
    """A stream for a file's new content; ``-`` is standard output. On an error the old file stays as it was.

    A name that ends in ``.gz`` is packed, if ``pack``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_whole(f"{folder}/out.txt") as stream:
    ...         _ = stream.write(b"all of it")
    ...     Path(folder, "out.txt").read_text()
    'all of it'
    """
    try:
        if str(path) == "-":
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        elif Path(path).exists() and not Path(path).is_file():  # a device or a pipe cannot be renamed over
            with open(path, "wb") as device:
                yield device
        else:
            with _renamed(Path(path)) as stream, _zipped(stream, pack and str(path).endswith(".gz")) as content:
                yield content
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written: {error.strerror or error} (check the folder and the disk)"
        ) from None


@contextmanager
def folder_written_whole(path: str | Path, *, replace: bool = False) -> Iterator[Path]:
    """A folder to write into, which takes its place when it is whole.

    What is there already must be an empty folder, unless it is to be replaced.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with folder_written_whole(f"{place}/out") as folder:
    ...         _ = (folder / "a.txt").write_text("all of it")
    ...     sorted(file.name for file in Path(place, "out").iterdir())
    ['a.txt']
    """
    if str(path) == "-":
        raise OutputError("a folder cannot go to standard output (give a name)")
    target = place_of(path)
    if not replace:
        _check_vacant(path)
    try:
        with beside(target, folder=True) as made, beside(target, folder=True) as old:
            yield made
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(made, 0o777 & ~mask)
            if replace and target.exists():
                os.replace(target, old / target.name)
            os.replace(made, target)
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written: {error.strerror or error} (check the folder and the disk)"
        ) from None


@contextmanager
def _zipped(stream: IO[bytes], pack: bool) -> Iterator[IO[bytes]]:
    """The stream, packed or not."""
    if not pack:
        yield stream
        return
    with gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0) as packed:
        yield packed  # type: ignore[misc]


def place_of(path: str | Path) -> Path:
    """Where a path leads, through symbolic links; :class:`OutputError` if they lead in a circle.

    >>> place_of("/").name
    ''
    """
    place = Path(os.path.realpath(path))
    if place.is_symlink():
        raise OutputError(f"{path}: cannot be written: its symbolic links lead in a circle (give another name)")
    return place


def _check_vacant(path: str | Path) -> None:
    """:class:`OutputError` if a folder cannot take this place."""
    target = place_of(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise OutputError(f"{path}: there already, and not an empty folder (give another name)")


def check_can_write(path: str | Path, *, folder: bool = False) -> None:
    """Raise :class:`OutputError` now rather than after a long fit, if the place for a file (or folder) is not there.

    >>> check_can_write("no/such/folder/out.jsonl")
    Traceback (most recent call last):
    quorate.errors.OutputError: no/such/folder/out.jsonl: cannot be written: no such folder
    """
    if str(path) == "-":
        return
    parent = place_of(path).parent
    if not parent.is_dir():
        raise OutputError(f"{path}: cannot be written: no such folder")
    if folder:
        _check_vacant(path)
    elif Path(path).is_dir():
        raise OutputError(f"{path}: cannot be written: it is a folder")
    if not os.access(parent, os.W_OK):
        raise OutputError(f"{path}: cannot be written: the folder is read-only for you")


@contextmanager
def _renamed(path: Path) -> Iterator[IO[bytes]]:
    target = place_of(path)
    with beside(target) as made:
        with open(made, "wb", buffering=1 << 20) as stream:
            yield stream
        os.chmod(made, _mode_for(target))
        os.replace(made, target)


def _mode_for(target: Path) -> int:
    """The rights of the file that is replaced, or those that a new file would get."""
    with suppress(OSError):
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
