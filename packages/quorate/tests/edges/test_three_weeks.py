"""Three weeks of a project in one go: exports, reviewers who differ, a run that is killed, two at once, and back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import quorate
from processes import started_here
from quorate.formats import write
from quorate.project.store import Store
from running import Run

IN_THE_MIDDLE = """
import sys
from quorate.cli import main
from quorate.project.store import Store

def wait(*_):
    print("here", flush=True)
    sys.stdin.readline()

Store.add = wait
sys.argv = ["quorate", "run", "--quiet"]
main()
"""


def export(place: Path, name: str, documents: slice) -> None:
    write(quorate.Corpus(quorate.sample().documents[documents]), place / "exports" / name)


def review(place: Path, reviewer: str, tags: list[str], **more: Any) -> None:
    line = {"id": "s003", "reviewer": reviewer, "time": "2026-11-10T09:00:00+01:00", "tags": tags, **more}
    (place / "reviews" / f"{reviewer}.jsonl").write_text(json.dumps(line))


def consensus(place: Path) -> dict[str, dict[str, Any]]:
    lines = map(json.loads, (place / "consensus.jsonl").read_text(encoding="utf-8").splitlines())
    return {line["id"]: line for line in lines}


def test_three_weeks(run: Run, tmp_path: Path) -> None:
    for folder in ("exports", "reviews"):
        (tmp_path / folder).mkdir()
    export(tmp_path, "monday.jsonl", slice(0, 60))
    assert run("init")[0] == 0
    assert run("run", "-m", "first week")[0] == 0
    first = (tmp_path / "consensus.jsonl").read_bytes()

    export(tmp_path, "tuesday.jsonl", slice(50, 64))  # ten documents are in both
    assert "new input exports/tuesday.jsonl" in run("status")[1]
    _kill_a_run_in_the_middle(run, tmp_path)
    assert (tmp_path / "consensus.jsonl").read_bytes() == first
    assert run("run", "-m", "second week")[0] == 0
    assert len(consensus(tmp_path)) == 64
    assert [version.number for version in Store(tmp_path).versions()] == [1, 2]

    gold = [str(tag) for tag in quorate.sample()["s003"].gold or ()]
    review(tmp_path, "rita", gold)
    review(tmp_path, "sam", ["B-LOC", *gold[1:]], note="a town")
    code, out, _ = run("reviews", "-o", "adjudicate.jsonl")
    assert (code, "documents in dispute: 1 of 1" in out) == (1, True)
    assert "known labels disagree (documents: 1)" in run("run")[2]
    disputed = consensus(tmp_path)["s003"]
    assert "known" not in disputed
    assert [span.get("known") for span in disputed["spans"] if span["start"] > 0] == [True]

    line = json.loads((tmp_path / "adjudicate.jsonl").read_text())
    line |= {"gold": gold, "checked": True, "reviewer": "lead"}
    (tmp_path / "reviews" / "settled.jsonl").write_text(json.dumps(line))
    assert run("reviews")[0] == 0
    assert run("run", "-m", "settled")[0] == 0
    settled = consensus(tmp_path)["s003"]
    assert (settled["tags"], settled["known"]) == (gold, True)
    asked = run("next", "-n", "100", "--as", "jsonl", "--quiet")[1]
    assert "s003" not in {json.loads(each)["document"] for each in asked.splitlines()}

    found = json.loads(run("diff", "2", "4", "--json")[1])
    decided = [each for each in found["decided"] if each.startswith("new review")]
    assert decided == [f"new review reviews/{name}.jsonl" for name in ("rita", "sam", "settled")]
    assert run("restore", "1")[0] == 0
    assert (tmp_path / "consensus.jsonl").read_bytes() == first
    assert run("status")[0] == 1
    assert run("run")[0] == 0
    assert consensus(tmp_path)["s003"]["tags"] == gold
    assert run("status")[0] == 0
    numbers = [version.number for version in Store(tmp_path).versions()]
    assert numbers == [1, 2, 3, 4, 5, 6]


def _kill_a_run_in_the_middle(run: Run, place: Path) -> None:
    """While it is at work, another is refused."""
    with started_here() as start:
        process = start(
            [sys.executable, "-c", IN_THE_MIDDLE], cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        code, _, said = run("run")
        assert (code, "another run is at work here" in said, len(said.splitlines())) == (2, True, 1)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
