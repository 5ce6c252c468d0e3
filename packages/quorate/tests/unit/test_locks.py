"""One holder at a time, also where there is no fcntl: on Windows, whose locks are tried here with a stand-in."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from quorate.errors import SettingsError
from quorate.project.store import Store
from quorate.storage.files.locks import locked_by_us, only_here

Locking = Callable[[int, int, int], None]


def as_on_windows(monkeypatch: pytest.MonkeyPatch, locking: Locking) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(LK_NBLCK=2, locking=locking))


def test_another_process_is_kept_out(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    asks = f"""
import os
from quorate.storage.files.locks import locked_by_us
print(locked_by_us(os.open({str(file)!r}, os.O_RDWR), wait=False))
"""
    other = [sys.executable, "-c", asks]
    with file.open("a+") as held:
        assert locked_by_us(held.fileno(), wait=False)
        assert subprocess.check_output(other, text=True) == "False\n"
    assert subprocess.check_output(other, text=True) == "True\n"


def test_without_fcntl_a_byte_behind_the_content_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = []

    def locking(descriptor: int, mode: int, count: int) -> None:
        places.append((os.lseek(descriptor, 0, os.SEEK_CUR), mode, count))

    as_on_windows(monkeypatch, locking)
    with Store(tmp_path).locked():
        assert (tmp_path / ".quorate" / "lock").read_text(encoding="utf-8") == f"process {os.getpid()}"
    assert places == [(1 << 30, 2, 1)]


def test_without_fcntl_a_run_is_refused_or_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = iter([True, True, True, False])

    def locking(descriptor: int, mode: int, count: int) -> None:
        if next(refused):
            raise PermissionError(13, "Permission denied")

    as_on_windows(monkeypatch, locking)
    monkeypatch.setattr("quorate.storage.files.locks._LOOK", 0.001)
    with pytest.raises(SettingsError, match="another run is at work here"), Store(tmp_path).locked():
        pass
    with Store(tmp_path).locked(wait=True):
        pass
    assert next(refused, "asked until free") == "asked until free"


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is locked there")
@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP])
def test_a_disk_without_locks_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def no_locks(descriptor: int, how: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", no_locks)
    file = tmp_path / "model"
    file.touch()
    with only_here(file), Store(tmp_path).locked():
        pass
    with file.open() as stream:
        assert not locked_by_us(stream.fileno(), wait=False)


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is locked there")
def test_a_file_that_is_removed_in_the_meantime_is_held_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model"
    file.touch()
    monkeypatch.setattr("fcntl.flock", lambda descriptor, how: file.unlink())
    with only_here(file, wait=True):
        assert not file.exists()
