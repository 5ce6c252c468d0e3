"""The active-learning experiment of the paper on NER: every method by least confidence, then our strategies.

``python benchmarks/active.py runs.jsonl`` takes hours. Runs are kept in the file as they end, so that it can be
interrupted and goes on; ``quorate simulate-active … --results runs.jsonl --figure curves.svg`` draws what is there.
Repeats are added to all a few at a time, so that what there is at any time can be compared. Runs are scored on dev;
with --test on the test split.
"""

from __future__ import annotations

from pathlib import Path

import options
import quorate
from quorate.active.simulation import Plan, simulate_active

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "ner.jsonl.gz"
PLAN = Plan(initial=500, batch=500, max_labels=10_000)
PARTS = [
    (["mv", "ds", "ibcc", "hmm-crowd", "bsc-cv", "bsc-seq", "auto"], ["least-confidence"]),
    (["bsc-seq"], ["random", "information"]),
    (["auto"], ["random", "information"]),
    (["bsc-seq"], ["sequence-entropy", "token-entropy", "least-confidence-per-token"]),
]


def main() -> None:
    parser = options.scores_splits(options.parser_of(__doc__))
    parser.add_argument("results", metavar="FILE", help="where runs are kept: one file for dev, another for test")
    given = parser.parse_args()
    split = "test" if given.test else "dev"
    corpus = quorate.read(DATA)

    def told(done: int, total: int, note: str) -> None:
        print(f"{done}/{total} {note}", flush=True)

    for repeats in (2, 4, 6, 8, 10):
        for methods, strategies in PARTS:
            simulate_active(
                corpus,
                methods,
                strategies,
                repeats=repeats,
                plan=PLAN,
                split=split,
                results=given.results,
                progress=told,
            )


if __name__ == "__main__":
    main()
