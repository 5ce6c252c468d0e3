"""Every figure that the docs show, drawn anew: ``python benchmarks/figures.py``, or ``make figures``.

- ``growth``: the time of a pass against tokens, labels and annotators (docs/speed-growth.svg), measured for minutes;
- ``active``: F1 by number of labels (docs/figures/active-*.svg), from the runs of benchmarks/active.py. Those take
  hours; they are kept in build/runs-test.jsonl (or -dev), and what is there is not run again.

The figures of active learning in docs/ are of the test split: they are written with --test alone. Without it, runs are
scored on dev, and the figures go to build/. Reads ../shared/data/ner.jsonl.gz.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import active
import options
import quorate
from quorate.active.curves import curves_figure
from quorate.active.simulation import simulate_active
from quorate.result.figures import save

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
REPEATS = 10
CURVES = {
    "active-methods.svg": (["mv", "ds", "ibcc", "hmm-crowd", "bsc-cv", "bsc-seq", "auto"], ["least-confidence"]),
    "active-strategies.svg": (["bsc-seq"], ["random", "least-confidence", "information"]),
}


def main() -> None:
    parser = options.scores_splits(options.parser_of(__doc__))
    parser.add_argument("figures", nargs="*", choices=["growth", "active"], default=["growth", "active"])
    given = parser.parse_args()
    BUILD.mkdir(exist_ok=True)
    if "growth" in given.figures:
        growth = [sys.executable, str(ROOT / "benchmarks" / "speed.py"), "growth"]
        subprocess.run([*growth, "--plot", str(ROOT / "docs" / "speed-growth.svg")], check=True)
    if "active" in given.figures:
        curves("test" if given.test else "dev", ROOT / "docs" / "figures" if given.test else BUILD)


def curves(split: str, folder: Path) -> None:
    """Learning curves from the runs that are kept, and from those that are still missing."""
    if not active.DATA.exists():
        sys.exit(f"{active.DATA}: not found")
    corpus = quorate.read(active.DATA)
    for name, (methods, strategies) in CURVES.items():
        found = simulate_active(
            corpus,
            methods,
            strategies,
            repeats=REPEATS,
            plan=active.PLAN,
            split=split,
            results=BUILD / f"runs-{split}.jsonl",
        )
        save(curves_figure(found), folder / name)
        print(folder / name)


if __name__ == "__main__":
    main()
