"""The paper's three tables on the real crowds, beside its figures.

``python benchmarks/paper.py --test -o docs/paper.md`` makes the page of the docs; without --test it is dev that is
scored, though the paper's figures are of test.

Reads the crowds beside the checkout (../shared/data); ``quorate datasets convert`` makes such files from the published
archives. Every method is fitted on all documents, without gold.
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import Any

import numpy as np

import options
import quorate
from quorate import score
from quorate.corpus.tags import find_spans
from quorate.evaluate.compare import Answers, Scores, score_answers, scored_positions
from quorate.storage.files.atomic import written_whole

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
BY_TOKEN = {"decode": "token"}
METHODS: dict[str, dict[str, Any]] = {
    "best-worker": {"invalid": "keep", **BY_TOKEN},
    "worst-worker": {"invalid": "keep", **BY_TOKEN},
    "mv": {"invalid": "keep", **BY_TOKEN},
    "mace": BY_TOKEN,
    "ds": BY_TOKEN,
    "ibcc": BY_TOKEN,
    "hmm-crowd": {},
    "crf-ma": {},
    "bsc-acc": {},
    "bsc-spam": {},
    "bsc-cv": {},
    "bsc-cm": {},
    "bsc-seq": {},
    "bsc-cm-notext": {},
    "bsc-cm-notrans": BY_TOKEN,
    "bsc-seq-notext": {},
    "bsc-seq-notrans": BY_TOKEN,
}
UNTEMPERED: dict[str, Any] = {"temper": 1.0, "epsilon0": 10.0}
VARIANTS: dict[str, dict[str, Any]] = {"defaults": {}, "untempered": UNTEMPERED}

PAPER_SCORES = {
    "ner": {
        "best-worker": (76.4, 60.1, 67.3, 17.1),
        "worst-worker": (55.7, 26.5, 35.9, 31.9),
        "mv": (79.9, 55.3, 65.4, 6.24),
        "mace": (74.4, 66.0, 70.0, 1.01),
        "ds": (79.0, 70.4, 74.4, 2.80),
        "ibcc": (79.0, 70.4, 74.4, 0.49),
        "hmm-crowd": (80.1, 69.2, 74.2, 1.00),
        "bsc-acc": (83.4, 54.3, 65.7, 0.96),
        "bsc-spam": (67.9, 74.1, 70.9, 0.89),
        "bsc-cv": (83.0, 64.6, 72.6, 0.93),
        "bsc-cm": (79.9, 72.2, 75.8, 1.46),
        "bsc-seq": (80.3, 74.8, 77.4, 0.65),
        "bsc-cm-notext": (74.7, 69.7, 72.1, 1.48),
        "bsc-cm-notrans": (80.0, 73.0, 76.3, 0.99),
        "bsc-seq-notext": (81.3, 71.9, 76.3, 0.52),
        "bsc-seq-notrans": (64.2, 44.4, 52.5, 0.77),
    },
    "pico": {
        "best-worker": (64.8, 53.2, 58.5, 17.0),
        "worst-worker": (50.7, 52.9, 51.7, 41.0),
        "mv": (82.5, 52.8, 64.3, 2.55),
        "mace": (25.4, 84.1, 39.0, 58.2),
        "ds": (71.3, 66.3, 68.7, 0.44),
        "ibcc": (72.1, 66.0, 68.9, 0.27),
        "hmm-crowd": (75.9, 66.7, 71.0, 0.99),
        "bsc-acc": (89.4, 45.2, 60.0, 1.59),
        "bsc-spam": (46.7, 84.4, 60.1, 1.98),
        "bsc-cv": (74.9, 67.2, 71.1, 0.84),
        "bsc-cm": (60.1, 78.8, 68.2, 1.49),
        "bsc-seq": (70.4, 75.3, 72.8, 0.53),
        "bsc-cm-notext": (62.7, 74.8, 68.2, 1.32),
        "bsc-cm-notrans": (65.8, 66.7, 66.2, 0.28),
        "bsc-seq-notext": (81.2, 59.2, 68.5, 0.73),
        "bsc-seq-notrans": (51.2, 70.4, 59.8, 1.04),
    },
}
PAPER_ERRORS = {
    "ner": {
        "mv": (2869, 304, 196, 1775, 100, 96, 10, 15, 85, 17, 26, 81, 0.04),
        "ibcc": (3742, 386, 187, 829, 345, 107, 27, 43, 77, 47, 29, 74, 0.12),
        "hmm-crowd": (3650, 334, 115, 1045, 210, 109, 22, 33, 89, 37, 23, 0, 0.03),
        "bsc-cv": (3381, 284, 80, 1399, 121, 94, 17, 18, 90, 22, 8, 0, 0.00),
        "bsc-cm": (3856, 362, 63, 863, 315, 124, 25, 63, 77, 53, 13, 0, 0.14),
        "bsc-seq": (3995, 353, 110, 686, 357, 84, 29, 25, 88, 28, 26, 0, 0.09),
    },
    "pico": {
        "mv": (144, 0, 60, 145, 48, 9, 11, 1, 0, 3, 9, 40, 1.26),
        "ibcc": (193, 0, 53, 103, 100, 14, 10, 0, 2, 3, 10, 19, 0.45),
        "hmm-crowd": (189, 0, 54, 106, 84, 13, 21, 0, 0, 5, 8, 0, 1.99),
        "bsc-cv": (156, 0, 76, 117, 81, 10, 25, 0, 0, 11, 0, 0, 2.15),
        "bsc-cm": (216, 0, 50, 83, 157, 10, 19, 0, 0, 4, 17, 0, 2.42),
        "bsc-seq": (168, 0, 86, 95, 67, 17, 19, 5, 0, 4, 9, 0, 0.61),
    },
}
PAPER_DATA = {
    "ner": "6,056 / 2,800 / 3,256 / 47 / 4.9 / 21,612 / 1.51",
    "pico": "9,480 / 191 / 191 / 312 / 6.0 / 700 / 7.74",
}


def main() -> None:
    parser = options.scores_splits(options.parser_of(__doc__))
    parser.add_argument("-o", "--output", metavar="FILE", default="-", help="where the page goes")
    given = parser.parse_args()
    split = "test" if given.test else "dev"
    missing = [name for name in PAPER_SCORES if not (DATA / f"{name}.jsonl.gz").exists()]
    if missing:
        sys.exit(f"{DATA}: no {', '.join(missing)}.jsonl.gz (make them with: quorate datasets convert)")
    corpora = {name: quorate.read(DATA / f"{name}.jsonl.gz") for name in PAPER_SCORES}
    results: dict[tuple[str, str, str], quorate.Result] = {}
    command = f"python benchmarks/paper.py{' --test' if given.test else ''} -o docs/paper.md"
    head = HEAD.format(command=command, split=split, date=datetime.date.today(), version=quorate.__version__)
    text = [head, *data_table(corpora)]
    scores: dict[tuple[str, str, str], Scores] = {}
    for name, corpus in corpora.items():
        chosen = scored_positions(corpus, split)
        for method, settings in METHODS.items():
            for variant, extra in VARIANTS.items():
                if extra and not method.startswith("bsc"):  # only these are tempered
                    continue
                print(f"{name} {method} {variant}", file=sys.stderr)
                result = quorate.aggregate(corpus, method, **settings, **extra)
                scores[name, method, variant] = score_answers(Answers.of(result, chosen))
                if method == "bsc-seq" and variant == "defaults":
                    results[name, method, variant] = result
    text += score_tables(scores) + error_tables(scores) + calibration_tables(corpora, results, split)
    with written_whole(given.output) as stream:
        stream.write(("\n".join(text) + "\n").encode())


HEAD = """# The paper's tables

Simpson and Gurevych (2019), Tables 1 to 3, on the two of its three crowds that are published, next to the paper's own
figures. Made by `{command}` on {date}, quorate {version}, seed none, two cores.

The third set, ARG, is not published with its expert labels, so it cannot be scored here; if you have it, load
it as JSONL ([formats](formats.md)). All methods are fitted on every document without gold; the {split} split is scored.
Settings are those of the methods ([settings](settings.md)), chosen on the dev splits, but with some looks at test;
*untempered* is `temper` 1 and `epsilon0` 10, closer to the paper, which tuned its priors on dev for each method. As in
the paper, methods without transitions (`notrans` is its "\\T") take each token's most probable label (`--decode
token`), and the rivals among them see tags as given (`--invalid keep`)."""


def data_table(corpora: dict[str, quorate.Corpus]) -> list[str]:
    lines = [
        "",
        "## Table 1: the data",
        "",
        "| data | documents | dev | test | annotators | per document | gold spans | span length |",
    ]
    lines.append("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, corpus in corpora.items():
        splits = [sum(d.split == split for d in corpus) for split in ("dev", "test")]
        spans = [span for d in corpus if d.gold for span in find_spans(d.gold, orphans=False)]
        per_document = sum(len(d.annotations) for d in corpus) / len(corpus)
        length = sum(span.end - span.start for span in spans) / len(spans)
        lines.append(
            f"| {name} | {len(corpus):,} | {splits[0]:,} | {splits[1]:,} | {len(corpus.annotators)} "
            f"| {per_document:.1f} | {len(spans):,} | {length:.2f} |"
        )
        lines.append(f"| *paper* | {' | '.join(PAPER_DATA[name].split(' / '))} |")
    lines += [
        "",
        "The paper's 21,612 NER spans are not those of the 6,056 sentences with crowd labels, which hold fewer.",
    ]
    return lines


def score_tables(scores: dict[tuple[str, str, str], Scores]) -> list[str]:
    lines = ["", "## Table 2: precision / recall / F1 / cross entropy"]
    titles = {
        "ner": "NER, strict spans",
        "pico": "PICO, relaxed spans; in brackets strict F1, since relaxed alone can be gamed",
    }
    for name, title in titles.items():
        lines += ["", f"### {title}", "", "| method | defaults | untempered | paper |", "|---|---|---|---|"]
        for method in METHODS:
            ours = [_cell(scores.get((name, method, variant)), name) for variant in ("defaults", "untempered")]
            lines.append(f"| {method} | {' | '.join(ours)} | {_paper_cell(PAPER_SCORES[name].get(method))} |")
    return lines


def _paper_cell(figures: tuple[float, float, float, float] | None) -> str:
    if figures is None:
        return "not measured"
    p, r, f, entropy = figures
    return f"{p} / {r} / **{f}** / {entropy}"


def _cell(scores: Scores | None, name: str) -> str:
    if scores is None or scores.strict is None or scores.relaxed is None or scores.cross_entropy is None:
        return ""
    p, r, f = (100 * value for value in (scores.strict if name == "ner" else scores.relaxed))
    strict = "" if name == "ner" else f" ({100 * scores.strict.f1:.1f})"
    return f"{p:.1f} / {r:.1f} / **{f:.1f}** / {scores.cross_entropy.mean:.2f}{strict}"


def error_tables(scores: dict[tuple[str, str, str], Scores]) -> list[str]:
    lines = [
        "",
        "## Table 3: kinds of error",
        "",
        "The paper does not define its kinds exactly; ours are in [scores](scores.md).",
    ]
    names = [name.replace("_", " ") for name in score.ErrorKinds._fields]
    for name, rows in PAPER_ERRORS.items():
        lines += ["", f"### {name.upper()}", "", f"| method | {' | '.join(names)} |", "|---|" + "---:|" * len(names)]
        for method, paper in rows.items():
            kinds = scores[name, method, "defaults"].errors or ()
            lines.append(f"| {method} | {' | '.join(map(_count, kinds))} |")
            lines.append(f"| *paper* | {' | '.join(map(_count, paper))} |")
    return lines


def _count(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def calibration_tables(
    corpora: dict[str, quorate.Corpus], results: dict[tuple[str, str, str], quorate.Result], split: str
) -> list[str]:
    """How far the confidence of the default method can be trusted: by token, span and document."""
    lines = [
        "",
        "## How far to trust the confidence",
        "",
        f"`bsc-seq`, defaults, {split} split: mean confidence against the share that is right.",
        "",
        "| data | of | how many | mean confidence | share right | calibration error |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for name, corpus in corpora.items():
        result = results[name, "bsc-seq", "defaults"]
        chosen = [result[position] for position in scored_positions(corpus, split)]
        gold = [one.document.gold for one in chosen]
        kinds = {
            "tokens": score.token_reliability(
                [one.tags for one in chosen], [one.token_confidence for one in chosen], gold
            ),
            "spans": score.span_reliability([one.spans for one in chosen], gold),
            "documents": score.reliability(
                np.minimum([one.confidence for one in chosen], 1.0),
                [tuple(one.tags) == one.document.gold for one in chosen],
            ),
        }
        for kind, found in kinds.items():
            sure = sum(part.count * part.confidence for part in found.bins) / found.count
            right = sum(part.count * part.right for part in found.bins) / found.count
            lines.append(f"| {name} | {kind} | {found.count:,} | {sure:.3f} | {right:.3f} | {found.error:.3f} |")
    return lines


if __name__ == "__main__":
    main()
