"""A project folder for tests: exports of the sample, week by week, and a file that says what to do with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import quorate
from quorate.formats import write

WEEKS = (slice(0, 60), slice(60, 64), slice(64, 90))
QUICK = 'method = "bsc-cm"\nmax-passes = 4\n'


def export(place: Path, week: int) -> None:
    path = place / "exports" / f"week-{week}.jsonl"
    path.parent.mkdir(exist_ok=True)
    write(quorate.Corpus(quorate.sample().documents[WEEKS[week - 1]]), path)


def project(place: Path, options: str = QUICK, head: str = 'inputs = ["exports/*.jsonl"]') -> None:
    export(place, 1)
    (place / "quorate.toml").write_text(f"{head}\n[aggregate]\n{options}")


def never(*_: Any, **__: Any) -> None:
    """In place of what must not be done again."""
    raise AssertionError("it was done again")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
