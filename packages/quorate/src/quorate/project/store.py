"""What a project keeps in ``.quorate``: contents by their digest, and versions that name them.

A content is written before the version that names it, and a version before its outputs are put in their places. So
whenever a run ends, a version is there whole or not at all, and the next run puts right what is missing of its outputs.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from quorate.errors import InputError, OutputError, SettingsError
from quorate.storage.files.atomic import folder_written_whole, place_of, written_whole
from quorate.storage.files.locks import locked_by_us

_QUICK = 1  # of zlib: a third of the time for a tenth more room


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """One consensus of a project, and everything that decided it.

    ``decided`` has the options, maps and profiles, ``inputs`` and ``known`` the digest of every file; ``fingerprint``
    is the digest of all of that. ``outputs`` are the digests of what was written, by its path in the project;
    ``consensus``, ``model`` and ``annotators`` those of what is kept in any case. ``restored`` is the version that this
    one brought back. ``accepted`` tells how much of the consensus was sure enough, if that was asked for. ``agreement``
    is that of the annotators, Krippendorff's alpha.
    """

    number: int
    time: str
    quorate: str
    message: str
    changes: list[str]
    fingerprint: str
    decided: dict[str, Any]
    inputs: dict[str, str]
    known: dict[str, str]
    outputs: dict[str, str]
    consensus: str
    model: str | None
    annotators: str
    counts: dict[str, int]
    restored: int | None = None
    accepted: dict[str, Any] | None = None
    agreement: float | None = None


class Store:
    """The folder ``.quorate`` of a project.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder))
    ...     store.content(store.put(b"what was agreed"))
    b'what was agreed'
    """

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / ".quorate"

    @property
    def pulled(self) -> Path:
        """Where exports of servers are kept."""
        return self.folder / "pulled"

    @property
    def work(self) -> Path:
        """Where a run writes what is not finished."""
        return self.folder / "work"

    @contextmanager
    def locked(self, *, wait: bool = False) -> Iterator[None]:
        """The only run at a time; another is refused, or waited for. A run that was killed holds nothing."""
        self._make(self.folder)
        ignore = self.folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        with open(self.folder / "lock", "a+", encoding="utf-8") as lock:
            if locked_by_us(lock.fileno(), wait=wait) is False:
                lock.seek(0)
                who = lock.read().strip() or "another process"
                raise SettingsError(
                    f"{self.root}: another run is at work here ({who}); wait for it (--wait), or stop it"
                )
            lock.seek(0)
            lock.truncate()
            lock.write(f"process {os.getpid()}")
            lock.flush()
            yield

    def put(self, content: bytes) -> str:
        """Keep a content; its digest."""
        digest = hashlib.sha256(content).hexdigest()
        place = self._place(digest)
        if not self._holds(digest):
            self._make(place.parent)
            with written_whole(place, pack=False) as stream:
                stream.write(zlib.compress(content, _QUICK))
        return digest

    def _holds(self, digest: str) -> bool:
        """Whether a content is there, and is not damaged."""
        with suppress(InputError):
            self.content(digest)
            return True
        return False

    def put_path(self, path: Path) -> str:
        """Keep a file, or a folder as one content; its digest."""
        return self.put(_packed(path))

    def content(self, digest: str) -> bytes:
        """A content; :class:`InputError` if it is not there, or not what it was."""
        place = self._place(digest)
        try:
            content = zlib.decompress(place.read_bytes())
        except FileNotFoundError:
            raise InputError("this content is no longer kept (restore a later version)", where=str(place)) from None
        except (OSError, zlib.error) as error:
            raise InputError(f"damaged: {error} (run again with --fresh)", where=str(place)) from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise InputError("damaged: not what was written (run again with --fresh)", where=str(place))
        return content

    def put_in_place(self, name: str, digest: str, staged: Path | None = None) -> bool:
        """Write an output of a version where it belongs; whether it was not there just so already.

        ``staged`` is a file with that content, if there is one: it is moved there.
        """
        target = self.root / name
        if target.exists() and digest_of_path(target) == digest:
            return False
        self._make(target.parent)
        if staged is not None and staged.is_file():
            os.replace(staged, place_of(target))
            return True
        content = self.content(digest)
        if not content.startswith(_FOLDER):
            with written_whole(target, pack=False) as stream:
                stream.write(content)
            return True
        with (
            folder_written_whole(target, replace=True) as folder,
            tarfile.open(fileobj=io.BytesIO(content[len(_FOLDER) :])) as tar,
        ):
            tar.extractall(folder, filter="data")
        return True

    def versions(self) -> list[Version]:
        """All versions, from the first on."""
        numbers = sorted(int(path.stem) for path in (self.folder / "versions").glob("*.json") if path.stem.isdecimal())
        return [self.version(number) for number in numbers]

    def version(self, number: int) -> Version:
        """One version; :class:`InputError` if there is none of that number."""
        path = self.folder / "versions" / f"{number}.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=Version)
        except FileNotFoundError:
            raise InputError(f"there is no version {number} (quorate versions lists them)") from None
        except (msgspec.MsgspecError, OSError) as error:
            raise InputError(f"damaged: {error} (delete it)", where=str(path)) from None

    @property
    def latest(self) -> Version | None:
        """The last version; ``None`` before the first run."""
        found = self.versions()
        return found[-1] if found else None

    def add(self, version: Version) -> None:
        """Keep a version, whole or not at all."""
        self._make(self.folder / "versions")
        with written_whole(self.folder / "versions" / f"{version.number}.json") as stream:
            stream.write(msgspec.json.format(msgspec.json.encode(version), indent=1))

    def forget(self, keep: int) -> int:
        """Delete all but the last versions, and contents that only they name; how many versions were deleted."""
        versions = self.versions()
        old, kept = versions[: max(len(versions) - keep, 0)], versions[max(len(versions) - keep, 0) :]
        for version in old:
            (self.folder / "versions" / f"{version.number}.json").unlink()
        named = {digest for version in kept for digest in _contents(version)}
        for path in (self.folder / "contents").glob("*/*"):
            if path.parent.name + path.name not in named:
                path.unlink()
        return len(old)

    def size(self) -> int:
        """How many bytes all contents take."""
        return sum(path.stat().st_size for path in (self.folder / "contents").glob("*/*"))

    def _place(self, digest: str) -> Path:
        return self.folder / "contents" / digest[:2] / digest[2:]

    def _make(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{folder}: cannot be made: {error.strerror or error}") from None


_FOLDER = b"a folder, as tar\n"


def _contents(version: Version) -> list[str]:
    kept = [version.consensus, version.annotators, *version.outputs.values()]
    return kept if version.model is None else [*kept, version.model]


def _packed(path: Path) -> bytes:
    """A file's content, or that of a folder as one, the same for the same files."""
    if not path.is_dir():
        return path.read_bytes()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for file in sorted(each for each in path.rglob("*") if each.is_file()):
            content, info = file.read_bytes(), tarfile.TarInfo(file.relative_to(path).as_posix())
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return _FOLDER + packed.getvalue()


def digest_of_path(path: Path) -> str:
    """The digest of a file, or of a folder, as :meth:`Store.put_path` has it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a").write_bytes(b"content")
    ...     digest_of_path(Path(folder, "a")) == hashlib.sha256(b"content").hexdigest()
    True
    """
    if path.is_dir():
        return hashlib.sha256(_packed(path)).hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
