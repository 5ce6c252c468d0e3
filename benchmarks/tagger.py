"""What a tagger in the loop adds, round by round: ``python benchmarks/tagger.py dev ner crf``.

The words are what is scored (dev; or test, which shows dev, test and both together), a crowd (ner, pico or
wikigold-rules) and a tagger (crf or context). Prints one row a round for docs/tagger.md. No gold is read in fitting.
Settings are decided on dev; test is for reporting.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, Self

import quorate
from quorate import score
from quorate.api import BSC, DEFAULT_METHOD, METHODS
from quorate.decode import Result
from quorate.teaching import ROUNDS

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SPLITS: dict[str, list[tuple[str, ...]]] = {"dev": [("dev",)], "test": [("dev",), ("test",), ("dev", "test")]}


def main() -> None:
    scored, crowd, tagger = sys.argv[1:4]
    splits = SPLITS[scored]
    print(f"{crowd}, {tagger}")
    heads = [f"{' and '.join(names)}: {what}" for names in splits for what in ("strict", "relaxed", "CEE")]
    print(f"| round | {' | '.join(heads)} | CPU s |")
    print("|---" * (len(heads) + 2) + "|")
    began, number = time.process_time(), 0

    class Shown(BSC):
        """Prints a row after every round."""

        def _fit_once(self, *given: Any) -> Self:
            nonlocal began, number
            super()._fit_once(*given)
            spent = time.process_time() - began
            label = str(number) if number <= ROUNDS else "calibrated"  # the last fit is that of the last round again
            print(f"| {label} | {' | '.join(row(self.result_, names) for names in splits)} | {spent:.0f} |", flush=True)
            number += 1
            began = time.process_time()
            return self

    Shown(**METHODS[DEFAULT_METHOD].settings, tagger=tagger).fit(quorate.read(DATA / f"{crowd}.jsonl.gz"))


def row(result: Result, splits: tuple[str, ...]) -> str:
    """Strict and relaxed F1 in points, and cross entropy."""
    chosen = [one for one in result if one.document.split in splits and one.document.gold is not None]
    tags, gold = [one.tags for one in chosen], [one.document.gold or () for one in chosen]
    entropy = score.cross_entropy([one.probabilities for one in chosen], gold, result.labels)
    strict, relaxed = score.strict(tags, gold), score.relaxed(tags, gold)
    return f"{100 * strict.f1:.1f} | {100 * relaxed.f1:.1f} | {entropy.mean:.2f}"


if __name__ == "__main__":
    main()
