"""The tests themselves: in CI nothing is skipped quietly, and no process outlives a test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from processes import Start, started_here

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    ("file", "test", "complaint"),
    [
        ("test_label_studio.py", "test_the_command", "no Label Studio server at "),
        ("test_report_in_browser.py", "test_every_section_is_there", "no Chromium on this machine"),
    ],
)
@pytest.mark.parametrize(("in_ci", "outcome"), [("", "1 skipped"), ("1", "1 error")])
def test_what_is_missing_fails_in_ci_and_is_skipped_elsewhere(
    tmp_path: Path, file: str, test: str, complaint: str, in_ci: str, outcome: str
) -> None:
    nowhere = {"PATH": str(tmp_path), "QUORATE_LABEL_STUDIO": str(tmp_path), "QUORATE_CI": in_ci}
    path = f"packages/quorate/tests/edges/{file}"
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", path, "-k", test]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | nowhere, capture_output=True, text=True, timeout=300, check=False
    )
    assert outcome in done.stdout.splitlines()[-1], done.stdout
    assert complaint in done.stdout
    assert done.returncode == (1 if in_ci else 0)


def test_ci_says_that_nothing_may_be_missing() -> None:
    assert "export QUORATE_CI=1\n" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
def test_the_server_of_ci_is_made_without_asking(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    programs = {
        "python": "exit 0",
        "label-studio": 'case "$*" in *--username*--password*) ;; *) read answer || exit 1 ;; esac\n'
        'echo made >"$LABEL_STUDIO_BASE_DATA_DIR/label_studio.sqlite3"',
    }
    (folder / "bin").mkdir(parents=True)
    for name, script in programs.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / "bin" / name).chmod(0o755)
    environment = os.environ | {"PYTHON": str(folder / "bin" / "python")}
    command = [str(ROOT / ".ci" / "label-studio"), str(folder)]
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, timeout=60, check=True)
    assert (folder / "template.sqlite3").read_text() == "made\n"


SLEEPER = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', {inner!r}]); import time; time.sleep(600)"


@pytest.mark.skipif(os.name != "posix", reason="process groups of POSIX")
def test_nothing_outlives_a_failing_test(tmp_path: Path) -> None:
    place = tmp_path / "alive"
    inner = f"import os, time; open({str(place)!r}, 'w').write(str(os.getpid())); time.sleep(600)"

    def failing() -> None:
        with started_here() as start:
            start([sys.executable, "-c", SLEEPER.format(inner=inner)])
            until = time.monotonic() + 60
            while not (place.exists() and place.read_text()) and time.monotonic() < until:
                time.sleep(0.05)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    grandchild = int(place.read_text())
    until = time.monotonic() + 10
    while time.monotonic() < until and is_running(grandchild):
        time.sleep(0.05)
    assert not is_running(grandchild)


def is_running(process: int) -> bool:
    """Whether it is there, and not only waited for by nobody."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/stat")
    try:
        return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_what_tests_start_can_be_interrupted_though_they_run_in_the_background(start: Start) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for what it starts with '&'
    try:
        code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
        out, _ = start([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True).communicate(timeout=60)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert out == "True\n"
