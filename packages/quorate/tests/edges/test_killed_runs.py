"""Runs that are killed leave nothing for long, and a run that goes on is left in peace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import quorate
from quorate.storage.corpora import store
from quorate.storage.files import unfinished
from quorate.storage.files.atomic import folder_written_whole, written_whole

BEGINNINGS = {
    "file": 'with atomic.written_whole("out") as stream: stream.write(b"half"); stream.flush(); wait()',
    "folder": 'with atomic.folder_written_whole("out") as made: (made / "a").write_text("half"); wait()',
    "corpus": "corpora.store(documents(), 'out')",
}
SCRIPT = """
import sys
import quorate
from quorate.storage import corpora
from quorate.storage.files import atomic

def wait():
    print("writing", flush=True)
    sys.stdin.readline()

def documents():
    yield quorate.Document("1", ("a",), {"x": ("B-X",)})
    wait()

"""


def write_file(path: Path) -> None:
    with written_whole(path) as stream:
        stream.write(b"whole")


def write_folder(path: Path) -> None:
    with folder_written_whole(path) as made:
        (made / "a").write_text("whole")


def write_corpus(path: Path) -> None:
    store(quorate.sample(), path)


WRITERS = {"file": write_file, "folder": write_folder, "corpus": write_corpus}


@contextmanager
def writing(kind: str, place: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has begun to write, and waits for a line to go on."""
    command = [sys.executable, "-c", SCRIPT + BEGINNINGS[kind]]
    with subprocess.Popen(command, cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "writing\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("kind", WRITERS)
def test_the_next_run_removes_what_a_killed_one_left(kind: str, tmp_path: Path) -> None:
    for _ in range(2):
        with writing(kind, tmp_path) as process:
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert [name for name in os.listdir(tmp_path) if name.endswith(".part")]
    WRITERS[kind](tmp_path / "out")
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("kind", WRITERS)
def test_a_run_that_is_still_writing_is_left_in_peace(kind: str, tmp_path: Path) -> None:
    with writing(kind, tmp_path) as process:
        for other in (write_file, write_corpus):  # to the same place, at the same time
            other(tmp_path / "out")
        if kind == "folder":  # which does not take the place of a file
            (tmp_path / "out").unlink()
        process.communicate("go on\n", timeout=60)
        assert process.returncode == 0
    assert os.listdir(tmp_path) == ["out"]
    assert (tmp_path / "out").is_dir() == (kind == "folder")


def test_only_our_own_unfinished_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: "elsewhere")  # on a shared disk
    with written_whole(tmp_path / "out") as stream:
        stream.write(b"whole")
        theirs = [name for name in os.listdir(tmp_path) if name.endswith(".part")]
    monkeypatch.undo()
    others = [*theirs, ".out.abcdefgh.part", ".out.part", ".outer.00000000-abcdefgh.part", "out.part"]
    for name in others:
        (tmp_path / name).write_text("not ours")
    write_file(tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "out"])


def test_an_error_while_writing_leaves_the_old_file_alone(tmp_path: Path) -> None:
    write_file(tmp_path / "out")

    def fail(write: Callable[[Path], object]) -> None:
        with pytest.raises(ZeroDivisionError):
            write(tmp_path / "out")
        assert os.listdir(tmp_path) == ["out"]

    def half_a_file(path: Path) -> None:
        with written_whole(path) as stream:
            stream.write(b"half")
            raise ZeroDivisionError

    fail(half_a_file)
    assert (tmp_path / "out").read_bytes() == b"whole"


@pytest.mark.parametrize("kind", WRITERS)
def test_a_run_that_another_sweeps_as_it_begins_begins_again(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[str] = []

    def swept_at_once(make: Callable[..., Any]) -> Callable[..., Any]:
        """What makes a file or folder, which the first time is gone before it can be held."""

        def made(*given: Any) -> Any:
            new = make(*given)
            if not swept:
                swept.extend(os.listdir(tmp_path))
                unfinished.sweep(tmp_path, "out")
                assert not os.listdir(tmp_path)
            return new

        return made

    monkeypatch.setattr(tempfile, "mkstemp", swept_at_once(tempfile.mkstemp))
    monkeypatch.setattr(tempfile, "mkdtemp", swept_at_once(tempfile.mkdtemp))
    WRITERS[kind](tmp_path / "out")
    assert len(swept) == 1
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("kind", WRITERS)
def test_where_there_are_no_locks_nothing_is_kept_open_or_removed(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows, where a folder cannot be opened, nor what is open be renamed."""

    def refused(path: object, *_: object) -> int:
        raise PermissionError(f"{path} cannot be opened")

    left = tmp_path / f"{unfinished._prefix(tmp_path / 'out')}abcdefgh.part"
    left.write_text("perhaps of a run that goes on")
    monkeypatch.setattr(unfinished, "_LOCKS", False)
    monkeypatch.setattr(unfinished, "_opened", refused)
    WRITERS[kind](tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == [left.name, "out"]
