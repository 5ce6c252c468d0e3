"""What each part of the automatic settings is worth: ``python benchmarks/accuracy.py --test``.

Prints the tables of docs/accuracy.md; no gold is read in fitting. Without --test it shows dev alone. With a word it
prints something else:

- ``shapes``: the simulated crowds of the tests;
- ``groups``: what is expected against what is right, by groups of documents; with a tagger: ``groups crf``;
- ``judge``: how hidden annotators rank settings, against how gold does;
- ``cost``: the choice of settings against one fit of 20 passes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import options
import quorate
from quorate import Corpus, Result, score
from quorate.choose.choice import CHOSEN, choose
from quorate.corpus.tags import Invalid, find_spans
from quorate.model.prepared import prepare
from quorate.model.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
AUTO: dict[str, Any] = {"method": "auto"}
PARTS: dict[str, dict[str, Any]] = {
    "majority vote": {"method": "mv"},
    "fixed settings (bsc-seq)": {"method": "bsc-seq"},
    "all automatic (the default)": AUTO,
    "without a tagger": AUTO | {"tagger": None},
    "annotator model fixed: seq": AUTO | {"annotator": "seq"},
    "annotator model fixed: cm": AUTO | {"annotator": "cm"},
    "prior fixed: epsilon0 10": AUTO | {"epsilon0": 10.0},
    "trust fixed: temper 0.7": AUTO | {"temper": 0.7},
    "trust fixed: temper 1": AUTO | {"temper": 1.0},
    "passes fixed: 20": AUTO | {"max_iter": 20},
    "evidence fixed: tokens": AUTO | {"evidence": "tokens"},
    "without words": AUTO | {"text": False},
    "with a tagger (crf)": AUTO | {"tagger": "crf"},
}


SHAPES = (
    "careful_three",
    "sparse",
    "rules",
    "spammer_majority",
    "one_expert",
    "disjoint_batches",
    "copies",
    "colluders",
    "vague_boundaries",
    "long_spans",
    "splitters_and_joiners",
    "vague_names",
    "vague_and_sparse",
)


def main() -> None:
    parser = options.scores_splits(options.parser_of(__doc__))
    parser.add_argument("what", nargs="?", choices=["parts", "shapes", "groups", "judge", "cost"], default="parts")
    parser.add_argument("tagger", nargs="?", choices=["crf", "context"], help="for groups")
    given = parser.parse_args()
    splits = ["dev", "test"] if given.test else ["dev"]
    work: dict[str, Callable[[], None]] = {
        "parts": partial(ablation, splits),
        "shapes": shapes,
        "groups": partial(groups, splits, given.tagger),
        "judge": judge,
        "cost": cost,
    }
    work[given.what]()


def simulated(name: str) -> Corpus:
    """One of the crowds of the tests."""
    sys.path.insert(0, str(ROOT / "tests"))
    import simulated_crowds as crowds

    made: Corpus = getattr(crowds, name)()
    return made


def ablation(splits: list[str]) -> None:
    f1s = {"NER": "strict", "PICO": "relaxed / strict"}
    heads = [
        f"{crowd} {split} {f1} / CEE" + (" / ECE" if split == "test" else "")
        for crowd, f1 in f1s.items()
        for split in splits
    ]
    print(f"| | {' | '.join(heads)} | s |")
    print("|---" * (len(heads) + 2) + "|")
    crowds = {name: quorate.read(DATA / f"{name}.jsonl.gz") for name in ("ner", "pico")}
    for name, settings in PARTS.items():
        cells = []
        seconds = []
        for crowd, corpus in crowds.items():
            began = time.perf_counter()
            result = quorate.aggregate(corpus, **settings)
            seconds.append(f"{time.perf_counter() - began:.0f}")
            for split in splits:
                strict, relaxed, entropy, calibration = scores(result, split)
                f1 = f"{strict:.1f}" if crowd == "ner" else f"{relaxed:.1f} / {strict:.1f}"
                cells.append(f"{f1} / {entropy:.2f}" + (f" / {calibration:.3f}" if split == "test" else ""))
        print(f"| {name} | {' | '.join(cells)} | {' + '.join(seconds)} |", flush=True)


def scores(result: Result, split: str | None) -> tuple[float, float, float, float]:
    """Strict and relaxed F1 in points, cross entropy, calibration error of tokens."""
    chosen = [one for one in result if split is None or one.document.split == split]
    gold = [one.document.gold or () for one in chosen]
    tags = [one.tags for one in chosen]
    probabilities = [one.probabilities for one in chosen]
    confidence = np.concatenate([one.token_confidence for one in chosen])
    right = [
        tag == truth for mine, other in zip(tags, gold, strict=True) for tag, truth in zip(mine, other, strict=True)
    ]
    return (
        100 * score.strict(tags, gold).f1,
        100 * score.relaxed(tags, gold).f1,
        score.cross_entropy(probabilities, gold, result.labels).mean,
        score.reliability(confidence.tolist(), right).error,
    )


def shapes() -> None:
    print("| crowd | vote | span vote | best fixed setting of BSC | default | chosen | with temper 0.7 |")
    print("|---|---|---|---|---|---|---|")
    for name in SHAPES:
        corpus = simulated(name)
        result = quorate.aggregate(corpus)
        fixed = {
            f"{model}, {strength:g}, {temper:g}": scores(
                quorate.aggregate(corpus, f"bsc-{model}", epsilon0=strength, temper=temper), None
            )[0]
            for model in ("cm", "seq", "cv")
            for strength in (1.0, 30.0)
            for temper in (0.5, 0.7, 1.0)
        }
        best = max(fixed, key=lambda one: fixed[one])
        vote, span_vote = (scores(quorate.aggregate(corpus, method), None)[0] for method in ("mv", "span-vote"))
        chosen = result.settings_
        what = f"{chosen['annotator']}, {chosen['epsilon0']:g}, {chosen['temper']:g}, {chosen['max_iter']} passes"
        what += f", {chosen['evidence']}"
        less = scores(quorate.aggregate(corpus, temper=0.7), None)[0]
        print(
            f"| {name.replace('_', ' ')} | {vote:.1f} | {span_vote:.1f} | {fixed[best]:.1f} ({best}) | "
            f"{scores(result, None)[0]:.1f} | {what} | {less:.1f} |",
            flush=True,
        )


def judge() -> None:
    """Rank correlation, over all that was tried on a crowd, of the score by hidden annotators with strict F1."""
    for name in (*SHAPES, "ner", "pico", "wikigold-rules"):
        corpus = simulated(name) if name in SHAPES else quorate.read(DATA / f"{name}.jsonl.gz")
        choice = quorate.aggregate(corpus).choice
        assert choice is not None
        true = []
        for trial in choice.trials:
            wanted = {key: getattr(trial.settings, key) for key in ("epsilon0", "temper")}
            method = f"bsc-{trial.settings.annotator.value}"
            result = quorate.aggregate(corpus, method, max_iter=trial.passes, **wanted)
            true.append(scores(result, "dev" if name in ("ner", "pico") else None)[0])
        correlation = spearmanr([trial.f1 for trial in choice.trials], true).statistic
        print(f"{name}: {len(true)} settings, rank correlation {correlation:.2f}", flush=True)


def cost() -> None:
    """Seconds of all cores together: what else the machine does is not counted."""
    for name in ("ner", "pico"):
        prepared = prepare(quorate.read(DATA / f"{name}.jsonl.gz"), None, Invalid.REPAIR)
        model = quorate.BSC("seq", epsilon0=30.0, temper=0.6, max_iter=20, tol=0.0)
        seconds = []
        for work in (partial(choose, prepared, Settings(), CHOSEN), partial(model.fit, prepared.corpus)):
            work()
            runs = []
            for _ in range(3):
                began = time.process_time()
                work()
                runs.append(time.process_time() - began)
            seconds.append(min(runs))
        print(
            f"{name}: choosing {seconds[0]:.2f} s of CPU, one fit of 20 passes {seconds[1]:.2f} s: "
            f"{seconds[0] / seconds[1]:.1f} times",
            flush=True,
        )


def groups(splits: list[str], tagger: str | None) -> None:
    """Documents in four groups by the confidence of their spans: expected and actual precision."""
    for name in ("ner", "pico"):
        corpus = quorate.read(DATA / f"{name}.jsonl.gz")
        result = quorate.aggregate(corpus, tagger=tagger)
        print(f"\n{name.upper()}\n")
        print(
            "| split | F1 | precision expected / actual, least sure quarter of documents | 2nd | 3rd | surest | all |"
        )
        print("|---|---|---|---|---|---|---|")
        for split in splits:
            print(f"| {split} | {group_row(result, corpus, split)} |", flush=True)
        for level in (0.8, 0.9, 0.95):
            accepted = result.accept(level)
            scored = [d for d in accepted.documents if corpus[d].split in splits and corpus[d].gold is not None]
            rows = [span_rows(result, d) for d in scored]
            right = [hit for row in rows for _, hit in row]
            share = len(accepted.documents) / len(corpus)
            actual = f"{np.mean(right):.3f} on {' and '.join(splits)}" if right else "–"
            print(f"\n`--accept {level}`: {100 * share:.0f} % of documents, precision {actual}")


def span_rows(result: Result, d: int) -> list[tuple[float, bool]]:
    """Confidence of each span of a document, and whether it is right."""
    gold = set(find_spans(result.corpus[d].gold or ()))
    return [(span.sure, span.bare in gold) for span in result[d].spans]


def group_row(result: Result, corpus: Corpus, split: str) -> str:
    chosen = [d for d, document in enumerate(corpus) if document.split == split and document.gold is not None]
    f1 = scores(result, split)[0]
    rows = sorted((span_rows(result, d) for d in chosen), key=lambda row: np.mean([c for c, _ in row]) if row else 2.0)
    rows = [row for row in rows if row]
    quarters = np.array_split(np.arange(len(rows)), 4)
    cells = []
    for quarter in [*quarters, np.arange(len(rows))]:
        spans = [span for place in quarter for span in rows[place]]
        cells.append(f"{np.mean([c for c, _ in spans]):.2f} / {np.mean([hit for _, hit in spans]):.2f}")
    return f"{f1:.1f} | {' | '.join(cells)}"


if __name__ == "__main__":
    main()
