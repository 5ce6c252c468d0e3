"""The same crowd through quorate and through other libraries: ``python benchmarks/tools.py``.

Prints a table: strict F1 of every library that is installed here, each used as its own documentation says, and the
seconds of fitting and tagging. No gold is read in fitting. It is scored where decisions are
made (train, valid, dev); with --test on the test splits alone. Reads ../shared/data. Libraries beside crowd-kit:
``pip install skweak snorkel``.

An annotator who has not seen a token abstains, in all libraries. Rules say O where they have nothing to say: Snorkel is
configured so (there a rule abstains, and a token that none marks is O); skweak gives little weight to an O by itself.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import options
import quorate
from common import real, scored
from quorate import Corpus, score
from quorate.corpus.records import hard_tags

CROWDS = ("ner", "wikigold-rules", "laptop-rules")
PASSES = 20
OUTSIDE = "O"

Tags = Sequence[Sequence[str]]


class Tool(NamedTuple):
    """A way to combine a crowd: the package it comes from, and what it makes of documents."""

    name: str
    package: str
    combine: Callable[[Corpus, bool], Tags]
    """Called with the corpus, and whether its annotators are rules."""


def main() -> None:
    parser = options.scores_splits(options.parser_of(__doc__))
    parser.add_argument("--only", nargs="+", choices=CROWDS, default=CROWDS, metavar="CROWD", help="leave others out")
    given = parser.parse_args()
    os.environ.setdefault("TQDM_DISABLE", "1")
    warnings.simplefilter("ignore")
    quorate.aggregate(quorate.sample())  # loads the kernels
    crowds = {name: real(name) for name in given.only}
    print(f"scored: documents of {'test' if given.test else 'all splits but test'}", file=sys.stderr)
    print(f"| method | {' | '.join(f'{name}: F1 | s' for name in crowds)} |")
    print(f"|---|{'---:|---:|' * len(crowds)}")
    for tool in TOOLS:
        try:
            label = f"{tool.package} {version(tool.package)}, {tool.name}"
        except PackageNotFoundError:
            print(f"{tool.package} is not installed: {tool.name} is left out", file=sys.stderr)
            continue
        cells = [measured(tool, crowd, name.endswith("-rules"), given.test) for name, crowd in crowds.items()]
        print(f"| {label} | {' | '.join(cells)} |", flush=True)


def measured(tool: Tool, corpus: Corpus, rules: bool, test: bool) -> str:
    """Strict F1 on the documents that are scored, and the time that all of them took."""
    began = time.perf_counter()
    with redirect_stdout(sys.stderr):  # skweak tells its progress
        tags = tool.combine(corpus, rules)
    seconds = time.perf_counter() - began
    places = scored(corpus, test)
    found = score.strict([list(tags[place]) for place in places], [corpus[place].gold for place in places])
    return f"{100 * found.f1:.1f} | {seconds:.0f}"


def ours(method: str) -> Callable[[Corpus, bool], Tags]:
    return lambda corpus, rules: quorate.aggregate(corpus, method).tags


def labels_of(corpus: Corpus) -> list[tuple[int, int, str, str]]:
    """Every label that was given: document, token, annotator, tag."""
    return [
        (number, token, who, tag)
        for number, document in enumerate(corpus)
        for who, tags in document.annotations.items()
        for token, tag in enumerate(hard_tags(tags))
        if tag is not None
    ]


def crowd_kit(make: Callable[[Any], Any]) -> Callable[[Corpus, bool], Tags]:
    """Every token is a task of its own, as crowd-kit has no sequences of tags."""

    def combine(corpus: Corpus, rules: bool) -> Tags:
        import pandas as pd
        from crowdkit import aggregation

        rows = [(f"{number}:{token}", who, tag) for number, token, who, tag in labels_of(corpus)]
        found = make(aggregation).fit_predict(pd.DataFrame(rows, columns=["task", "worker", "label"])).to_dict()
        return [
            [found.get(f"{number}:{token}", OUTSIDE) for token in range(len(document.tokens))]
            for number, document in enumerate(corpus)
        ]

    return combine


def snorkel(corpus: Corpus, rules: bool) -> Tags:
    """Every token is an item of its own, and every annotator a labelling function."""
    from snorkel.labeling.model import LabelModel

    given = [row for row in labels_of(corpus) if not rules or row[3] != OUTSIDE]
    starts = np.concatenate([[0], np.cumsum([len(document.tokens) for document in corpus])])
    names = sorted({who for _, _, who, _ in given})
    labels = sorted({tag for *_, tag in given})
    place = {name: number for number, name in enumerate(names)}
    code = {label: number for number, label in enumerate(labels)}
    votes = np.full((starts[-1], len(names)), -1)
    for number, token, who, tag in given:
        votes[starts[number] + token, place[who]] = code[tag]
    voted = (votes != -1).any(axis=1)
    model = LabelModel(cardinality=len(labels), verbose=False)
    model.fit(votes[voted], seed=0, progress_bar=False)
    tags = np.full(starts[-1], OUTSIDE, dtype=object)
    tags[voted] = np.array(labels, dtype=object)[model.predict(votes[voted], tie_break_policy="random")]
    return [list(tags[first:last]) for first, last in pairwise(starts)]


def skweak(make: Callable[[Any, list[str]], Any]) -> Callable[[Corpus, bool], Tags]:
    """Documents of spaCy, with a group of spans for everybody who saw them."""

    def combine(corpus: Corpus, rules: bool) -> Tags:
        import skweak as library
        import spacy
        from spacy.tokens import Doc, Span

        tagset, vocab = corpus.tagset(), spacy.blank("en").vocab
        documents = []
        for document in corpus:
            made: Any = Doc(vocab, words=list(document.tokens))
            for who, tags in document.annotations.items():
                told = [tag or OUTSIDE for tag in hard_tags(tags)]
                made.spans[who] = [Span(made, one.start, one.end, one.label) for one in tagset.spans(told)]
            documents.append(made)
        types = sorted({label.partition("-")[2] for label in tagset.labels} - {""})
        model = make(library, types)
        documents = model.fit_and_aggregate(documents)
        return [
            tagset.tags([quorate.Span(span.start, span.end, span.label_) for span in made.spans[model.name]], len(made))
            for made in documents
        ]

    return combine


TOOLS = (
    Tool("majority vote, by token", "crowd-kit", crowd_kit(lambda kit: kit.MajorityVote())),
    Tool("Dawid–Skene, by token", "crowd-kit", crowd_kit(lambda kit: kit.DawidSkene(n_iter=PASSES))),
    Tool(
        "MACE, by token, one start",
        "crowd-kit",
        crowd_kit(lambda kit: kit.MACE(n_restarts=1, n_iter=PASSES, random_state=0)),
    ),
    Tool("LabelModel, by token", "snorkel", snorkel),
    Tool(
        "majority vote, O counts little",
        "skweak",
        skweak(lambda library, types: library.voting.SequentialMajorityVoter("vote", labels=types)),
    ),
    Tool("HMM", "skweak", skweak(lambda library, types: library.generative.HMM("hmm", types))),
    Tool("majority vote (mv)", "quorate", ours("mv")),
    Tool("bsc-seq, the model of the paper", "quorate", ours("bsc-seq")),
    Tool("default", "quorate", ours("auto")),
)


if __name__ == "__main__":
    main()
