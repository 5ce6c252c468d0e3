"""What each part of the span model is worth: ``python benchmarks/spans.py``.

Prints the tables of docs/spans.md, on the dev splits of the two crowds of the paper; no gold is read in fitting. With
--test it shows the test splits too. With a word it prints something else:

- ``reliability``: how far probabilities of documents, spans and tokens are off (expected calibration error, ten bins);
- ``crowds``: the simulated crowds of the tests, by what the consensus rests on.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

import options
import quorate
from quorate import Corpus, Result, score
from quorate.corpus.tags import find_spans
from quorate.model import spans as consensus
from quorate.model import spans as inference
from quorate.model.parts import responses

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
SPANS: dict[str, Any] = {"evidence": "spans", "tagger": None}
Changes = list[tuple[ModuleType, str, Any]]
"""Names in modules, with what stands there while a part is taken out."""

PARTS: dict[str, tuple[dict[str, Any], Changes]] = {
    "token model alone": (SPANS | {"evidence": "tokens"}, []),
    "token model, decoded for F1": (SPANS | {"evidence": "tokens", "decode": "f1"}, []),
    "votes for exact spans": (SPANS | {"evidence": "votes"}, []),
    "**spans, all parts**": (SPANS, []),
    "without words (b = 0)": (SPANS, [(inference, "_WORD_WEIGHT", 0.0)]),
    "without the token model's opinion (a = 0)": (SPANS, [(inference, "_TOKEN_WEIGHT", 0.0)]),
    "without both: annotators alone": (
        SPANS,
        [(inference, "_WORD_WEIGHT", 0.0), (inference, "_TOKEN_WEIGHT", 0.0)],
    ),
    "without the middle of bounds (e = 0)": (SPANS, [(inference, "_MIDDLE_WEIGHT", 0.0)]),
    "marked spans alone are candidates": (SPANS, [(consensus, "_LIKELY", 2.0)]),
    "without the token model's share (0 in place of 0.2)": (SPANS, [(consensus, "_TOKEN_SHARE", 0.0)]),
    "hardly pooled (s = 0.5)": (SPANS, [(responses, "_POOLED", 0.5)]),
    "all annotators alike (s = 1,000,000)": (SPANS, [(responses, "_POOLED", 1e6)]),
    "trust in full (β = 1)": (SPANS, [(consensus, "SpanModel", partial(inference.SpanModel, temper=1.0))]),
    "the likeliest set (`--decode sequence`)": (SPANS | {"decode": "sequence"}, []),
    "default (the evidence is chosen, and a tagger may join)": ({}, []),
}
EVIDENCE: dict[str, dict[str, Any]] = {
    "token vote": {"method": "mv"},
    "span vote": {"evidence": "votes"},
    "tokens": {"evidence": "tokens"},
    "spans": {"evidence": "spans"},
    "default": {},
}


def main() -> None:
    parser = options.scores_splits(options.parser_of(__doc__))
    parser.add_argument("what", nargs="?", choices=["parts", "reliability", "crowds"], default="parts")
    given = parser.parse_args()
    splits = ["dev", "test"] if given.test else ["dev"]
    work: dict[str, Callable[[], None]] = {
        "parts": partial(ablation, splits),
        "reliability": partial(reliability, splits),
        "crowds": simulations,
    }
    work[given.what]()


def real_crowds() -> dict[str, Corpus]:
    """The two crowds of the paper."""
    return {name: quorate.read(DATA / f"{name}.jsonl.gz") for name in ("ner", "pico")}


@contextmanager
def taken_out(changes: Changes) -> Iterator[None]:
    """Inside, those names of modules stand for something else."""
    with ExitStack() as stack:
        for module, name, value in changes:
            stack.enter_context(patch.object(module, name, value))
        yield


def ablation(splits: list[str]) -> None:
    """Strict and relaxed F1 and cross entropy with a part left out."""
    crowds = real_crowds()
    heads = [f"{name.upper()} {split} strict / relaxed / CEE" for name in crowds for split in splits]
    print(f"| | {' | '.join(heads)} |")
    print("|---" * (len(heads) + 1) + "|")
    for part, (settings, changes) in PARTS.items():
        cells = []
        for corpus in crowds.values():
            with taken_out(changes):
                result = quorate.aggregate(corpus, **settings)
            cells += [scores(result, split) for split in splits]
        print(f"| {part} | {' | '.join(cells)} |", flush=True)


def scores(result: Result, split: str) -> str:
    """Strict and relaxed F1 in points, and cross entropy."""
    chosen = [one for one in result if one.document.split == split]
    tags, gold = [one.tags for one in chosen], [one.document.gold or () for one in chosen]
    entropy = score.cross_entropy([one.probabilities for one in chosen], gold, result.labels).mean
    return f"{100 * score.strict(tags, gold).f1:.1f} / {100 * score.relaxed(tags, gold).f1:.1f} / {entropy:.2f}"


def reliability(splits: list[str]) -> None:
    """How far what is said of documents, spans and tokens is from how often they are right."""
    print("| crowd | split | evidence | documents | spans | tokens | surer than their least sure span |")
    print("|---|---|---|---|---|---|---|")
    for name, corpus in real_crowds().items():
        for evidence in ("default", "spans", "tokens"):
            result = quorate.aggregate(corpus, **EVIDENCE[evidence])
            told = f"default ({result.settings_['evidence']})" if evidence == "default" else evidence
            for split in splits:
                errors = " | ".join(f"{error:.3f}" for error in calibration_errors(result, split))
                surer = sum(one.confidence > min((span.sure for span in one.spans), default=1.0) for one in result)
                print(f"| {name.upper()} | {split} | {told} | {errors} | {surer:,} of {len(result):,} |", flush=True)


def calibration_errors(result: Result, split: str) -> tuple[float, float, float]:
    """Expected calibration errors of whole documents, of spans and of tokens."""
    chosen = [(one, one.document.gold) for one in result if one.document.split == split and one.document.gold]
    tokens = np.concatenate([np.array(one.tags) == np.array(gold) for one, gold in chosen])
    spans = [(span.sure, span.bare in set(find_spans(gold))) for one, gold in chosen for span in one.spans]
    return (
        score.reliability(
            [one.confidence for one, _ in chosen], [one.tags == list(gold) for one, gold in chosen]
        ).error,
        score.reliability([sure for sure, _ in spans], [right for _, right in spans]).error,
        score.reliability(np.concatenate([one.token_confidence for one, _ in chosen]), tokens).error,
    )


def simulations() -> None:
    """Strict F1 on every simulated crowd, by what the consensus rests on."""
    print(f"| crowd | {' | '.join(EVIDENCE)} | the default rests on |")
    print("|---" * (len(EVIDENCE) + 2) + "|")
    for name, made in simulated().items():
        corpus = made()
        gold = [document.gold or () for document in corpus]
        results = {evidence: quorate.aggregate(corpus, **settings) for evidence, settings in EVIDENCE.items()}
        cells = " | ".join(f"{100 * score.strict(result.tags, gold).f1:.1f}" for result in results.values())
        print(f"| {name.replace('_', ' ')} | {cells} | {results['default'].settings_['evidence']} |", flush=True)


def simulated() -> dict[str, Callable[[], Corpus]]:
    """The crowds of the tests: functions of tests/crowds.py that need nothing."""
    sys.path.insert(0, str(ROOT / "tests"))
    import simulated_crowds as crowds

    made = {name: function for name, function in vars(crowds).items() if inspect.isfunction(function)}
    return {
        name: function
        for name, function in made.items()
        if function.__module__ == crowds.__name__
        and not name.startswith("_")
        and all(each.default is not inspect.Parameter.empty for each in inspect.signature(function).parameters.values())
    }


if __name__ == "__main__":
    main()
