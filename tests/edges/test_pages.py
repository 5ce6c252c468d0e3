"""Every page of the docs from top to bottom: its blocks are run, and show what the page shows."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pages
import quorate
from quorate import Corpus
from running import Run

EXAMPLES = pages.ROOT / "tests" / "examples"
ELSEWHERE = {"service.md"}
"""Pages with tests of their own, as they need a service that runs."""

TELL_BY_EXIT_CODE = ("check", "reviews", "status")
"""Commands that end with 1 where there is something to look at or to do."""

SHELL = re.compile(r"[|><&;*$]|<<")
FILE = re.compile(r"[\w./-]+")
SMALL = 60
"""Documents of the sample that a page gets which does not write the whole of it by itself."""


def crowd() -> Corpus:
    return Corpus(list(quorate.sample())[:SMALL])


def renamed(first: int, last: int) -> Corpus:
    """Documents of the sample as new ones, without gold."""
    return Corpus([replace(one, id=f"new-{one.id}", gold=None) for one in list(quorate.sample())[first:last]])


def example(name: str) -> Callable[[Path], object]:
    source = EXAMPLES / name
    return lambda path: shutil.copytree(source, path) if source.is_dir() else shutil.copy(source, path)


def written(make: Callable[[], Corpus]) -> Callable[[Path], object]:
    return lambda path: quorate.formats.write(make(), path)


def doccano_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted((EXAMPLES / "doccano").iterdir()):
            archive.write(file, file.name)


FILES: dict[str, Callable[[Path], object]] = {
    "crowd.jsonl": written(crowd),
    "new.jsonl": written(lambda: renamed(60, 80)),
    "today.jsonl": written(lambda: renamed(80, 90)),
    "export.json": example("label-studio.json"),
}
"""What a page may take for granted: files that it names and does not make."""


class Reader:
    """Somebody who follows a page."""

    def __init__(self, page: Path, run: Run, environment: dict[str, str]) -> None:
        self.page, self.quorate, self.environment = page, run, environment
        self.names: dict[str, Any] = {"quorate": quorate}

    def supply(self) -> None:
        """Put the files in place that the page names."""
        text = self.page.read_text(encoding="utf-8")
        for name, make in FILES.items():
            if re.search(rf"(?<![\w/.-]){re.escape(name)}(?![\w.])", text):
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                make(Path(name))

    def follow(self, step: pages.Step) -> None:
        if step.kind == "python":
            exec(compile(step.text, self.page.name, "exec"), self.names)
        elif step.kind == "json":
            self.write(step)
        else:
            code, printed = self.command(step.text)
            words = shlex.split(step.text, comments=True) if "<<" not in step.text else [""]
            tells = words[:1] == ["quorate"] and words[1] in TELL_BY_EXIT_CODE
            assert code in ((0, 1) if tells else (0,)), f"{step.text}\n{printed}"
            assert not step.shown or pages.shows(step.shown, printed), f"{step.text}\n{printed}"

    def command(self, command: str) -> tuple[int, str]:
        """Run a command: ours in this process, what needs a shell in one."""
        words = [] if SHELL.search(command.partition(" #")[0]) else shlex.split(command, comments=True)
        if words[:1] == ["quorate"]:
            code, out, err = self.quorate(*words[1:])
            return code, out + err
        done = subprocess.run(
            ["bash", "-c", command], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return done.returncode, done.stdout

    def write(self, step: pages.Step) -> None:
        """A block of JSON is the file that is named before it; without a name it is an example, which can be read."""
        named = re.findall(r"`(\w+\.jsonl?)`", step.before.rstrip().rpartition("\n\n")[2])
        path = Path(named[-1] if named else "example.jsonl")
        path.write_text(step.text, encoding="utf-8")
        for line in step.text.splitlines():
            json.loads(line)


@pytest.fixture
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A shell in which ``quorate`` is this checkout's."""
    program = tmp_path_factory.mktemp("bin") / "quorate"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m quorate "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80"}


PAGES = [page for page in pages.pages() if page.name not in ELSEWHERE and any(pages.steps(page))]


@pytest.mark.skipif(os.name != "posix", reason="pages speak to a shell")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_page_is_as_it_says(
    page: Path, run: Run, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    reader = Reader(page, run, environment)
    reader.supply()
    for step in pages.steps(page):
        reader.follow(step)
