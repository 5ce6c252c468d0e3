"""The estimate from agreement against the truth, crowd by crowd: ``python benchmarks/agreement.py``.

Prints the table of docs/accuracy.md: crowds of people, the same with fewer annotators a document, sources of which
nothing can be told, and the simulated crowds of the tests. Truth is strict F1 on dev (with --test, on test), on the
whole of simulated crowds; seconds are those of all processors together. ``--seed 1`` draws the simulated crowds anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

import options
import quorate
from accuracy import DATA, SHAPES, simulated
from quorate import Corpus, Result, score

_PICO_WITHOUT_GOLD = 1500  # documents beside those of the split, where annotators are left out


def main() -> None:
    parser = options.scores_splits(options.parser_of(__doc__))
    parser.add_argument("what", nargs="?", choices=["all", "people", "thinned", "sources", "simulated"], default="all")
    parser.add_argument("--tagger", default="auto", help="none: without one, which is faster")
    parser.add_argument("--seed", type=int, default=0, help="of simulated crowds and of whoever is left out")
    given = parser.parse_args()
    split = "test" if given.test else "dev"
    kinds: dict[str, Callable[[], Iterator[tuple[str, Corpus, str | None]]]] = {
        "people": partial(people, split),
        "thinned": partial(thinned, split, given.seed),
        "sources": partial(sources, split),
        "simulated": partial(shapes, given.seed),
    }
    print("| crowd | estimate | 90 % interval | truth | held | explained | s |")
    print("|---|---|---|---|---|---|---|")
    held, widths = [], []
    for kind, made in kinds.items():
        if given.what not in ("all", kind):
            continue
        for name, corpus, scored in made():
            began = time.process_time()
            found = quorate.aggregate(corpus, tagger=given.tagger)
            seconds = time.process_time() - began
            truth, certificate = strict(found, scored), found.certificate
            f1, low, high = certificate.f1, certificate.low, certificate.high
            share = "–" if certificate.explained is None else f"{100 * certificate.explained:.0f} %"
            if f1 is None or low is None or high is None:
                cells = f"none: {certificate.reason} | – | {100 * truth:.1f} | –"
            else:
                held.append(certificate.holds(truth))
                widths.append((high - low) / 2)
                yes = "yes" if held[-1] else "no"
                cells = f"{100 * f1:.1f} | {100 * low:.1f} to {100 * high:.1f} | {100 * truth:.1f} | {yes}"
            print(f"| {name} | {cells} | {share} | {seconds:.0f} |", flush=True)
    if held:
        print(f"\nheld on {sum(held)} of {len(held)}, mean half-width {100 * np.mean(widths):.1f} points")


def strict(result: Result, split: str | None) -> float:
    """On a split; every split but test is dev."""
    test = None if split is None else split == "test"
    chosen = [one for one in result if one.document.gold is not None and test in (None, one.document.split == "test")]
    return score.strict([one.tags for one in chosen], [one.document.gold for one in chosen]).f1


def people(split: str) -> Iterator[tuple[str, Corpus, str | None]]:
    for name in ("ner", "pico"):
        yield name.upper(), quorate.read(DATA / f"{name}.jsonl.gz"), split


def thinned(split: str, seed: int) -> Iterator[tuple[str, Corpus, str | None]]:
    """The split's documents with some of their annotators, who are drawn anew for each."""
    for name in ("ner", "pico"):
        corpus = quorate.read(DATA / f"{name}.jsonl.gz")
        with_gold = [document for document in corpus if document.gold is not None and document.split == split]
        others = [document for document in corpus if document.gold is None]
        for left in (3, 5):
            rng = np.random.default_rng([seed, left])
            documents = []
            for document in [*with_gold, *others[:_PICO_WITHOUT_GOLD]]:
                names = sorted(document.annotations)
                if len(names) >= left:
                    kept = sorted(rng.choice(names, left, replace=False).tolist())
                    documents.append(replace(document, annotations={k: document.annotations[k] for k in kept}))
            yield f"{name.upper()}, {left} a document", Corpus(documents), None


def sources(split: str) -> Iterator[tuple[str, Corpus, str | None]]:
    """Rules, and prompts of language models."""
    for name in ("wikigold-rules", "laptop-rules", "conll-rules", "bc5cdr-rules", "propaganda-llm"):
        if not name.startswith("propaganda") or split == "test":  # which has no other gold
            yield name, quorate.read(DATA / f"{name}.jsonl.gz"), split


def shapes(seed: int) -> Iterator[tuple[str, Corpus, str | None]]:
    for name in (*SHAPES, "every_kind"):
        with patch("numpy.random.default_rng", partial(_drawn_anew, np.random.default_rng, seed)):
            corpus = simulated(name)
        yield name.replace("_", " "), corpus, None


def _drawn_anew(default_rng: Callable[..., np.random.Generator], more: int, seed: Any = None) -> np.random.Generator:
    return default_rng(seed if not more else [seed, more])


if __name__ == "__main__":
    main()
