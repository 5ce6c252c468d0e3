"""Pages of the docs, as somebody follows them: every block in its order, with what it shows.

A block that needs what no test has (a server, weights of a model, hours) has a line before it on the page that says so:
``*Not run by the tests: it needs …*``. All others are run, and show what the page shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["ROOT", "RUN", "Block", "Step", "blocks", "pages", "shows", "steps"]

ROOT = Path(__file__).resolve().parents[3]
BESIDE = ("CONTRIBUTING.md", "RELEASING.md", "SECURITY.md", "CHANGELOG.md")
"""Pages that are not in docs/, and on the site all the same."""

NOT_RUN = re.compile(r"\*Not run by the tests[^:*]*: (?P<why>[^*]+)\*\s*\Z")
BLOCK = re.compile(r"^(?P<indent> *)```(?P<kind>[\w{}-]*)\n(?P<text>.*?)^ *```$", re.S | re.M)
RUN = ("console", "python", "json")
"""Kinds of blocks that are run or written; others show text, drawings, or what other programs take."""


class Block(NamedTuple):
    """A block of code of a page."""

    kind: str
    text: str
    before: str
    why_not: str | None
    """Why the tests do not run it, as the page says."""


class Step(NamedTuple):
    """One thing to do: a command with what it shows, Python to run, or a file to write."""

    kind: str
    text: str
    shown: list[str]
    before: str


def pages() -> list[Path]:
    """Every page that people read."""
    return [ROOT / "README.md", *(ROOT / name for name in BESIDE), *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in their order."""
    text, found, end = page.read_text(encoding="utf-8"), [], 0
    for match in BLOCK.finditer(text):
        before = text[end : match.start()]
        excused = NOT_RUN.search(before)
        content = re.sub(rf"^{match['indent']}", "", match["text"], flags=re.M)
        found.append(Block(match["kind"], content, before, excused["why"] if excused else None))
        end = match.end()
    return found


def steps(page: Path) -> Iterator[Step]:
    """What a reader does who follows the page; what stands after ``<<'END'`` belongs to its command."""
    for block in blocks(page):
        if block.why_not is not None or block.kind not in RUN:
            continue
        if block.kind != "console":
            yield Step(block.kind, block.text, [], block.before)
            continue
        for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
            first, *lines = part.splitlines()
            end = lines.index("END") + 1 if first.endswith("<<'END'") else 0
            yield Step(block.kind, "\n".join([first, *lines[:end]]), lines[end:], block.before)


def shows(shown: list[str], printed: str) -> bool:
    """Whether a command printed what the page shows; … stands for any lines, or for anything in a line."""
    wanted = [line.rstrip() for line in shown if line.strip()]
    pattern = "\n".join(".*" if line == "…" else re.escape(line).replace("…", "[^\n]*") for line in wanted)
    return (
        re.fullmatch(pattern, "\n".join(line.rstrip() for line in printed.splitlines() if line.strip()), re.S)
        is not None
    )
