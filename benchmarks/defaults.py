"""The neighbourhood of the default settings on the dev splits: ``python benchmarks/defaults.py``.

Prints the table of docs/settings.md. With --test it prints the defaults alone, on the test splits: settings are not to
be compared there. No gold is read in fitting.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import options
import quorate
from quorate import score

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
VARIANTS: list[dict[str, Any]] = [
    {},
    {"temper": 1.0},
    {"temper": 0.8},
    {"temper": 0.5},
    {"epsilon0": 10},
    {"epsilon0": 100},
    {"kappa0": 0.1},
    {"kappa0": 1.0},
    {"alpha0": 0.3},
    {"alpha0": 3},
    {"gamma0": 0.1},
    {"zeros": "dropped"},
    {"start": "prior"},
    {"max_iter": 5},
    {"max_iter": 40},
]


def main() -> None:
    given = options.scores_splits(options.parser_of(__doc__)).parse_args()
    crowds = {name: quorate.read(DATA / f"{name}.jsonl.gz") for name in ("ner", "pico")}
    print("| setting | NER strict F1 | NER CEE | PICO relaxed F1 | PICO strict F1 | PICO CEE |")
    print("|---|---|---|---|---|---|")
    split = "test" if given.test else "dev"
    for variant in VARIANTS if split == "dev" else [{}]:
        name = ", ".join(f"`{key}` {value}" for key, value in variant.items()) or "the defaults"
        ner, pico = (scores(corpus, variant, split) for corpus in crowds.values())
        print(f"| {name} | {ner[0]:.1f} | {ner[2]:.2f} | {pico[1]:.1f} | {pico[0]:.1f} | {pico[2]:.2f} |", flush=True)


def scores(corpus: quorate.Corpus, settings: dict[str, Any], split: str) -> tuple[float, float, float]:
    """Strict F1, relaxed F1 (both in points) and cross entropy on a split."""
    result = quorate.aggregate(corpus, "bsc-seq", **settings)
    chosen = [consensus for consensus in result if consensus.document.split == split]
    tags = [consensus.tags for consensus in chosen]
    gold = [consensus.document.gold or () for consensus in chosen]
    entropy = score.cross_entropy([consensus.probabilities for consensus in chosen], gold, result.labels)
    return 100 * score.strict(tags, gold).f1, 100 * score.relaxed(tags, gold).f1, entropy.mean


if __name__ == "__main__":
    main()
