"""``docs/project.md`` from top to bottom: every block is run in a shell, and shows what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "project.md"
WITH_NOTHING_TO_DO = {"quorate status", "quorate reviews -o adjudicate.jsonl"}
"""Commands whose exit code says that there is something to do."""


def blocks() -> list[tuple[str, list[str]]]:
    """Every command of the page, with the lines that it shows; what follows ``<<'END'`` belongs to the command."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S):
        inside = False
        for line in block.splitlines():
            if inside or not line.startswith("$ "):
                command, shown = found[-1]
                if inside:
                    found[-1] = (f"{command}\n{line}", shown)
                    inside = line != "END"
                else:
                    shown.append(line)
            else:
                found.append((line.removeprefix("$ "), []))
                inside = line.endswith("<<'END'")
    return found


def pattern(shown: list[str]) -> str:
    """What the page shows; … stands for anything: for lines, or for the rest of one."""
    return "\n".join(".*" if line == "…" else re.escape(line).replace("…", "[^\n]*") for line in shown)


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    quorate = tmp_path / "bin" / "quorate"
    quorate.parent.mkdir()
    quorate.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m quorate "$@"\n')
    quorate.chmod(0o755)
    return {**os.environ, "PATH": f"{quorate.parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "200"}


@pytest.mark.skipif(os.name != "posix", reason="the page speaks to a shell")
def test_every_block_of_the_page_is_as_it_says(shell: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    commands = blocks()
    assert len(commands) > 20
    for command, shown in commands:
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=shell, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert done.returncode in ((0, 1) if command in WITH_NOTHING_TO_DO else (0,)), f"{command}\n{done.stdout}"
        printed = "\n".join(line.rstrip() for line in done.stdout.splitlines() if line.strip())
        wanted = pattern([line for line in shown if line.strip()])
        assert re.fullmatch(wanted, printed, flags=re.S), f"{command}\n{done.stdout}"
