"""``docs/reviews.md`` from top to bottom: every block is run, and shows what the page shows."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from running import Run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reviews.md"


def written(before: str, block: str) -> str:
    """The file that a block is: the last one named before it."""
    name = str(re.findall(r"`(\w+\.jsonl)`", before)[-1])
    Path(name).write_text(block, encoding="utf-8")
    return name


def test_every_block_of_the_page_is_as_it_says(run: Run) -> None:
    parts = re.split(r"```(\w+)\n(.*?)```\n", PAGE.read_text(encoding="utf-8"), flags=re.S)
    files, commands = [], []
    for before, kind, block in zip(parts[::3], parts[1::3], parts[2::3], strict=False):
        if kind == "json":
            files.append(written(before, block))
        elif kind == "python":
            exec(compile(block, PAGE.name, "exec"), {})
        for command, shown in re.findall(r"^\$ quorate ([^\n]*)\n((?:[^$][^\n]*\n|\n)*)", block, flags=re.M):
            code, out, err = run(*shlex.split(command))
            commands.append((command.split()[0], code))
            printed = [line.rstrip() for line in (out + err).splitlines()]
            wanted = shown.partition("…")[0].rstrip("\n").splitlines()
            assert printed[: len(wanted)] == wanted, command
    assert files == ["crowd.jsonl", "ann.jsonl", "bob.jsonl", "adjudicate.jsonl"]
    assert commands == [
        ("reviews", 1),
        ("aggregate", 0),
        ("reviews", 0),
        ("aggregate", 0),
        ("next", 0),
        ("reviews", 0),
        ("agreement", 0),
    ]
    consensus = [json.loads(line) for line in Path("consensus.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line.get("known") for line in consensus] == [True, True, None]
    assert consensus[1]["tags"] == ["B-SHIP", "I-SHIP", "O"]
