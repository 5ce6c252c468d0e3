"""What a tagger in the loop adds, round by round: ``python benchmarks/tagger.py dev ner crf``.

The words are what is scored (dev; or test, which shows dev, test and both together), a crowd (ner, pico or
wikigold-rules) and a tagger (crf or context). Prints one row a round for docs/tagger.md. No gold is read in fitting.
Settings are decided on dev; test is for reporting.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import quorate
from quorate import score
from quorate.api import BSC, prepare
from quorate.decode import Result
from quorate.encode import Encoded
from quorate.taggers import make_tagger
from quorate.tags import Invalid
from quorate.teaching import teach

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SPLITS = {"dev": [("dev",)], "test": [("dev",), ("test",), ("dev", "test")]}


def main() -> None:
    split, crowd, tagger = sys.argv[1:4]
    prepared = prepare(quorate.read(DATA / f"{crowd}.jsonl.gz"), None, Invalid.REPAIR)
    made = make_tagger(tagger, prepared.tagset)
    print(f"{crowd}, {tagger}, {split}")
    heads = [f"{' and '.join(splits)}: {name}" for splits in SPLITS[split] for name in ("strict", "relaxed", "CEE")]
    print(f"| round | {' | '.join(heads)} | CPU s |")
    print("|---" * (len(heads) + 2) + "|")
    began, number = time.process_time(), 0

    def consensus(encoded: Encoded) -> NDArray[np.float64]:
        nonlocal began, number
        result = BSC().fit_prepared(prepared._replace(encoded=encoded)).result_
        spent, began = time.process_time() - began, time.process_time()
        print(f"| {number} | {' | '.join(row(result, splits) for splits in SPLITS[split])} | {spent:.0f} |", flush=True)
        number += 1
        began = time.process_time()
        return result.posterior

    teach(prepared.corpus, prepared.encoded, made, consensus)


def row(result: Result, splits: tuple[str, ...]) -> str:
    """Strict and relaxed F1 in points, and cross entropy."""
    chosen = [one for one in result if one.document.split in splits and one.document.gold is not None]
    tags, gold = [one.tags for one in chosen], [one.document.gold or () for one in chosen]
    entropy = score.cross_entropy([one.probabilities for one in chosen], gold, result.labels)
    strict, relaxed = score.strict(tags, gold), score.relaxed(tags, gold)
    return f"{100 * strict.f1:.1f} | {100 * relaxed.f1:.1f} | {entropy.mean:.2f}"


if __name__ == "__main__":
    main()
