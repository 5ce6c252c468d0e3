"""Running commands as people do, in one process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from quorate.cli import answer
from running import Run


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run a command in a folder of its own; returns exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["quorate", *map(str, arguments)])
        code = 0
        try:
            answer()
        except SystemExit as stop:
            code = int(stop.code or 0)
        sys.stdout.flush()
        out, err = capfd.readouterr()
        return code, out, err

    return call
