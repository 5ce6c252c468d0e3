"""What a tagger in the loop adds, round by round: ``python benchmarks/tagger.py ner crf``.

Takes a crowd (ner, pico or wikigold-rules) and a tagger (crf or context). Prints one row a round for docs/tagger.md:
dev, or with --test dev, test and both together. No gold is read in fitting.
``python benchmarks/tagger.py disjoint_batches --hidden``: whether annotators who were hidden can tell what one round of
the tagger crf does to strict F1, on a real crowd (dev) or a simulated one. ``python benchmarks/tagger.py people
--hidden`` does so on NER, on random parts of NER and PICO with two annotators left or more, and on the simulated
crowds of 500 documents or more.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import accuracy
import options
import quorate
from quorate import score
from quorate.choose.joining import judged
from quorate.corpus.records import Corpus, Document
from quorate.corpus.tags import Invalid
from quorate.estimators.bsc import BSC
from quorate.estimators.methods import DEFAULT_METHOD, METHODS
from quorate.model.prepared import prepare
from quorate.result.result import Result
from quorate.taggers import make_tagger
from quorate.taggers.auto import worth_trying
from quorate.taggers.loop import FOLDS, TAGGER, best_path, cross_fitted, rounds_of
from spans import simulated

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
ENOUGH = 500  # documents


def main() -> None:
    parser = options.scores_splits(options.parser_of(__doc__))
    parser.add_argument(
        "crowd", help="ner, pico or wikigold-rules; with --hidden also a crowd of tests/crowds.py, or people"
    )
    parser.add_argument("tagger", nargs="?", choices=["crf", "context"], default="crf")
    parser.add_argument("--hidden", action="store_true", help="whether hidden annotators can tell what it does")
    given = parser.parse_args()
    if given.hidden:
        crowds_of = people() if given.crowd == "people" else [(given.crowd, crowd_called(given.crowd))]
        judged_by_hidden(crowds_of)
    else:
        rounds(given.crowd, given.tagger, [("dev",), ("test",), ("dev", "test")] if given.test else [("dev",)])


def rounds(crowd: str, tagger: str, splits: list[tuple[str, ...]]) -> None:
    """A row for each."""
    print(f"{crowd}, {tagger}")
    heads = [f"{' and '.join(names)}: {what}" for names in splits for what in ("strict", "relaxed", "CEE")]
    print(f"| round | {' | '.join(heads)} | CPU s |")
    print("|---" * (len(heads) + 2) + "|")
    corpus = quorate.read(DATA / f"{crowd}.jsonl.gz")
    in_all = rounds_of(make_tagger(tagger, corpus.tagset()))
    began, number = time.process_time(), 0

    class Shown(BSC):
        """Prints a row after every round."""

        def _conclude(self, *given: Any, fresh: bool = False) -> None:
            nonlocal began, number
            super()._conclude(*given, fresh=fresh)
            spent = time.process_time() - began
            label = str(number) if number <= in_all else "calibrated"  # the last round's fit, read anew
            print(f"| {label} | {' | '.join(row(self.result_, names) for names in splits)} | {spent:.0f} |", flush=True)
            number += 1
            began = time.process_time()

    Shown(**METHODS[DEFAULT_METHOD].settings, tagger=tagger).fit(corpus)


def crowd_called(name: str) -> Corpus:
    """A real crowd, or one of the tests."""
    path = DATA / f"{name}.jsonl.gz"
    return quorate.read(path) if path.exists() else accuracy.simulated(name)


def people() -> Iterator[tuple[str, Corpus]]:
    """Crowds of people large enough for a tagger: real ones and parts of them, and simulated ones."""
    ner, pico = crowd_called("ner"), crowd_called("pico")
    # Of PICO the documents with dev gold, by which it is scored, are always there.
    scored, rest = ([one for one in pico if (one.split == "dev") is is_dev] for is_dev in (True, False))
    yield "ner", ner
    for few in (2, 3, 4):
        yield f"ner, {few} left", part(ner.documents, len(ner), few, seed=0)
    for seed in (3, 4):
        for size in (600, 900, 1500):
            for left in (2, 3, None):
                yield f"ner, {size} documents, {left or 'all'} left, {seed}", part(ner.documents, size, left, seed)
        for size in (450, 900):
            for left in (2, 3, None):
                name = f"pico, {size} documents and dev, {left or 'all'} left, {seed}"
                yield name, part(rest, size, left, seed, always=scored)
    for name, make in simulated().items():
        corpus = make()
        if len(corpus) >= ENOUGH:
            yield name, corpus


def part(
    documents: Sequence[Document], size: int, left: int | None, seed: int, always: Sequence[Document] = ()
) -> Corpus:
    """So many random documents, with so many random annotators left in each; some are ``always`` there."""
    rng = np.random.default_rng(seed)
    drawn = [*always, *(documents[n] for n in np.sort(rng.permutation(len(documents))[:size]).tolist())]
    if left is None:
        return Corpus(drawn)
    kept = [rng.permutation(sorted(one.annotations))[:left].tolist() for one in drawn]
    return Corpus(
        replace(one, annotations={name: one.annotations[name] for name in sorted(names)})
        for one, names in zip(drawn, kept, strict=True)
    )


def judged_by_hidden(crowds_of: Iterable[tuple[str, Corpus]]) -> None:
    """What hidden annotators say of the tagger, and what gold says (dev, where there are splits)."""
    gains: dict[bool, list[float]] = {True: [], False: []}
    for name, corpus in crowds_of:
        prepared = prepare(corpus, None, Invalid.REPAIR)
        without, beside = (BSC(tagger=tagger).fit(corpus) for tagger in (None, "crf"))
        assert without.choice_ is not None
        if not worth_trying(prepared.encoded, without.choice_, without.choice_.settings)[0]:
            continue
        tagged = cross_fitted(
            corpus,
            prepared.encoded,
            make_tagger("crf", prepared.tagset),
            without.result_.posterior,
            folds=FOLDS,
            rng=np.random.default_rng(0),
            progress=lambda _: None,
        )
        said = best_path(prepared.tagset, tagged, prepared.encoded.doc_start)
        verdict = judged(prepared, without.choice_, TAGGER, said, engines=without.engines())
        scores = [strict_of(model.result_) for model in (without, beside)]
        gains[verdict.joins].append(scores[1] - scores[0])
        print(
            f"{name}: strict F1 {scores[0]:.1f}, {scores[1] - scores[0]:+.1f} with the tagger; {verdict}, "
            f"{verdict.gain / max(verdict.error, 1e-9):+.1f} errors, {verdict.alone:.2f} alone",
            flush=True,
        )
    for joins, found in gains.items():
        told = " ".join(f"{gain:+.1f}" for gain in sorted(found))
        median = f", median {np.median(found):+.1f}" if found else ""
        print(f"{'joins' if joins else 'left out'}, {len(found)} crowds{median}: {told}")


def strict_of(result: Result) -> float:
    """In points, on dev where there are splits."""
    chosen = [one for one in result if one.document.gold and one.document.split in (None, "dev", "valid", "train")]
    return 100 * score.strict([one.tags for one in chosen], [one.document.gold or () for one in chosen]).f1


def row(result: Result, splits: tuple[str, ...]) -> str:
    """Strict and relaxed F1 in points, and cross entropy."""
    chosen = [one for one in result if one.document.split in splits and one.document.gold is not None]
    tags, gold = [one.tags for one in chosen], [one.document.gold or () for one in chosen]
    entropy = score.cross_entropy([one.probabilities for one in chosen], gold, result.labels)
    strict, relaxed = score.strict(tags, gold), score.relaxed(tags, gold)
    return f"{100 * strict.f1:.1f} | {100 * relaxed.f1:.1f} | {entropy.mean:.2f}"


if __name__ == "__main__":
    main()
