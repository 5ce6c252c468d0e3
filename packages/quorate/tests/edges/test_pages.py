"""Every page of the docs from top to bottom: its blocks are run, and show what the page shows."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import pages
import quorate
from page_files import FILES, OF_ONE_PAGE, SAMPLE, crowd
from quorate import Corpus
from running import Run

ELSEWHERE = {"service.md"}
"""Pages with a test of their own, as they need a service that runs."""

TELL_BY_EXIT_CODE = ("check", "reviews", "status")
"""Commands that end with 1 where there is something to look at or to do."""

NEEDS_A_SHELL = re.compile(r"[|><&;*$]")


class Outcome(NamedTuple):
    """What a command gave."""

    code: int
    printed: str
    files: dict[Path, bytes]


DONE: dict[tuple[str, frozenset[tuple[str, bytes]]], Outcome] = {}
"""Commands that a page has had: another page with the same one, on the same files, is spared the fit."""


class Reader:
    """Somebody who follows a page. Our commands run in this process: to start one takes longer than most of them."""

    def __init__(self, page: Path, run: Run, environment: dict[str, str]) -> None:
        self.page, self.quorate, self.environment = page, run, environment
        self.names: dict[str, Any] = {"quorate": quorate}

    def supply(self) -> None:
        """Put the files in place that the page names, except for those that it makes itself."""
        text = self.page.read_text(encoding="utf-8")
        made = re.findall(r"^\$ quorate demo --write (\S+)", text, re.M)
        named = [name for name in FILES if re.search(rf"(?<![\w/.-]){re.escape(name)}(?![\w.])", text)]
        named = [name for name in named if name not in made]
        for name, make in ({name: FILES[name] for name in named} | OF_ONE_PAGE.get(self.page.stem, {})).items():
            path = Path(name)
            (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
            make(path)

    def follow(self, step: pages.Step) -> None:
        """Do what the page says next, and see that it is as the page shows it."""
        if step.kind == "python":
            exec(compile(step.text, self.page.name, "exec"), self.names)
        elif step.kind == "json":
            self.write(step)
        else:
            done = self.command(step.text)
            assert done.code in self.codes(step), f"{step.text}\n{done.printed}"
            assert not step.shown or pages.shows(step.shown, done.printed), f"{step.text}\n{done.printed}"

    def codes(self, step: pages.Step) -> tuple[int, ...]:
        """The exit codes that a command may end with."""
        if step.shown and "exit code is 2" in step.before:
            return (2,)
        return (0, 1) if re.match(rf"quorate ({'|'.join(TELL_BY_EXIT_CODE)})\b", step.text) else (0,)

    def command(self, command: str) -> Outcome:
        """Run a command: ours without a shell, unless it needs one."""
        words = [] if NEEDS_A_SHELL.search(command.partition(" #")[0]) else shlex.split(command, comments=True)
        if words[:1] == ["quorate"]:
            return self.once(words[1:])
        done = subprocess.run(
            ["bash", "-c", command], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return Outcome(done.returncode, done.stdout, {})

    def once(self, words: list[str]) -> Outcome:
        """Run a command of ours, or repeat what it gave on the same files; a project has more than those it names."""
        given = frozenset((word, Path(word).read_bytes()) for word in words if Path(word).is_file())
        key = (shlex.join([*words, str(len(quorate.sample()))]), given)
        if key not in DONE or Path("quorate.toml").exists():
            before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
            code, out, err = self.quorate(*words)
            new = [path for path in Path().rglob("*") if path.is_file() and path.stat().st_mtime_ns != before.get(path)]
            DONE[key] = Outcome(code, out + err, {path: path.read_bytes() for path in new})
        for path, content in DONE[key].files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return DONE[key]

    def write(self, step: pages.Step) -> None:
        """A block of JSON is the file that is named before it; one without a name is an example."""
        named = re.findall(r"`(\w+\.jsonl?)`", step.before.rstrip().rpartition("\n\n")[2])
        for line in step.text.splitlines():
            json.loads(line)
        if named:
            Path(named[-1]).write_text(step.text, encoding="utf-8")


@pytest.fixture
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A shell in which ``quorate`` is this checkout's."""
    program = tmp_path_factory.mktemp("bin") / "quorate"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m quorate "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80"}


@pytest.fixture
def small_unless_shown(monkeypatch: pytest.MonkeyPatch, page: Path) -> None:
    """A page that shows no figures of the sample does with a part of it."""
    steps = list(pages.steps(page))
    shown = any("demo --write" in step.text for step in steps) and any(set(step.shown) - {"…"} for step in steps)
    sample = Corpus(SAMPLE) if shown else crowd()
    monkeypatch.setattr("quorate.corpus.sample.sample", lambda: sample)
    monkeypatch.setattr(quorate, "sample", lambda: sample, raising=False)


PAGES = [page for page in pages.pages() if page.name not in ELSEWHERE and any(pages.steps(page))]


@pytest.mark.skipif(os.name != "posix", reason="pages speak to a shell")
@pytest.mark.usefixtures("small_unless_shown")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_page_is_as_it_says(page: Path, run: Run, environment: dict[str, str]) -> None:
    reader = Reader(page, run, environment)
    reader.supply()
    for step in pages.steps(page):
        reader.follow(step)


def test_every_page_with_blocks_is_followed() -> None:
    left = [page.name for page in pages.pages() if page not in PAGES and any(pages.steps(page))]
    assert set(left) == ELSEWHERE
    assert len(PAGES) > 25


def test_few_blocks_are_excused_and_each_says_why() -> None:
    ours = [block for page in pages.pages() for block in pages.blocks(page) if block.kind in pages.RUN]
    excused = [block for block in ours if block.why_not is not None]
    assert len(excused) < len(ours) / 4
    assert all(len(block.why_not or "") > 8 for block in excused)


LINK = re.compile(r"\]\((?!https?:|#)(?P<file>[^)#\s]+)")


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: page.stem)
def test_links_of_a_page_lead_to_files_of_the_repository(page: Path) -> None:
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []
