"""Rules and language models beside people: ``python benchmarks/sources.py``.

Prints the table of docs/sources.md: strict F1 of votes, Dawid and Skene, the best single source and the default on
every set of rules and language models in ../shared/data, then on crowds of people, then on simulated ones whose sources
are of several kinds. No gold is read in fitting. It is scored where decisions are made (train, valid, dev, or no split
at all); with --test on the test splits alone. Simulated crowds have no splits. With a word it prints something else:

- ``copies``: the default without and with five noisy copies of one source, a weak one and a good one;
- ``hidden``: how the default and votes agree with models of a jury that were hidden, with all of their family;
- ``juries``: the default beside votes on simulated juries of language models, of several shapes;
- ``parts``: the default beside votes on random parts of sets of rules, with few of the rules and few documents;
- ``tagger``: the default without a tagger that reads the text, as it decides by itself, and always with it (crf).
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import options
import quorate
from quorate import Corpus, Result, score
from quorate.corpus.records import Document, Tag, hard_tags
from quorate.corpus.simulate import with_copies
from quorate.corpus.tags import find_spans
from spans import simulated

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SOURCES = ("wikigold-rules", "laptop-rules", "bc5cdr-rules", "conll-rules", "conll-rules-16", "propaganda-llm")
RULES = SOURCES[:4]
PEOPLE = ("ner", "pico")
OF_SEVERAL_KINDS = ("rules", "copies", "colluders", "one_expert", "spammer_majority", "jury", "passages")
ANY_TYPE = ("propaganda-llm", "jury", "passages")
"""Where types are so many, and bounds so vague, that tokens in any span are looked at too."""

METHODS = ("silent-vote", "mv", "span-vote", "ds")
PUBLISHED = "-16"
"""Ends the name of a set of rules of which the published subset alone is taken."""

ENOUGH, MOST_SPANS = 100, 10  # spans of a source that is ranked by gold; where nobody has as many, how many have most
TIMES, JITTER = 5, 0.1
PARTS = ((100, 4), (100, 8), (300, 3), (300, 6), (300, 12), (1000, 5), (1000, 10), (2000, 7))  # documents, sources
DRAWS = 4
JURIES: dict[str, dict[str, Any]] = {
    "8 models, 12 types": {},
    "10 models": {"seed": 1, "models": 10},
    "5 models": {"seed": 2, "models": 5},
    "who dispute few types": {"seed": 3, "confuse": 0.2},
    "who dispute most types": {"seed": 4, "confuse": 0.6},
    "4 types": {"seed": 5, "types": 4},
    "4 models": {"seed": 6, "models": 4},
    "300 documents": {"seed": 7, "how_many": 300},
}

Make = Callable[[], Corpus]


def main() -> None:
    parser = options.scores_splits(options.parser_of(__doc__))
    parser.add_argument(
        "what", nargs="?", choices=["sources", "copies", "hidden", "juries", "parts", "tagger"], default="sources"
    )
    parser.add_argument("--only", nargs="+", metavar="CROWD", help="leave all other crowds out")
    given = parser.parse_args()
    work: dict[str, Callable[[dict[str, Make], bool], None]] = {
        "sources": sources,
        "copies": copies,
        "hidden": hidden,
        "juries": juries,
        "parts": parts,
        "tagger": tagger,
    }
    made = {name: partial(real, name) for name in (*SOURCES, *PEOPLE)} | {
        name: make for name, make in simulated().items() if given.what != "sources" or name in OF_SEVERAL_KINDS
    }
    if given.what == "parts":
        made = {name: make for name, make in made.items() if name in (*RULES, "rules")}
    if given.what == "hidden":
        if given.test:
            parser.error("no gold is read with `hidden`, of no split")
        made = {"propaganda-llm": made["propaganda-llm"]}
    if given.what == "juries":
        made = {name: partial(passages, **shape) for name, shape in JURIES.items()}
    unknown = sorted(set(given.only or ()) - set(made))
    if unknown:
        sys.exit(f"no crowd {unknown[0]!r} (one of: {', '.join(made)})")
    quorate.aggregate(quorate.sample())  # loads the kernels
    work[given.what]({name: make for name, make in made.items() if not given.only or name in given.only}, given.test)


def real(name: str) -> Corpus:
    """A crowd from ../shared/data; of rules perhaps the published ones alone."""
    path = DATA / f"{name.removesuffix(PUBLISHED)}.jsonl.gz"
    if not path.exists():
        sys.exit(f"{path}: not found")
    corpus = quorate.read(path)
    if not name.endswith(PUBLISHED):
        return corpus
    return only(corpus, json.loads((DATA / "rules-published-subsets.json").read_text())[name.removesuffix(PUBLISHED)])


def only(documents: Iterable[Document], kept: Collection[str]) -> Corpus:
    """What some of the sources say of documents."""
    return Corpus(
        replace(one, annotations={who: tags for who, tags in one.annotations.items() if who in kept})
        for one in documents
    )


def scored(corpus: Corpus, test: bool) -> list[int]:
    """The documents with gold to score: of the test split or of all others; all of them where there are no splits."""
    no_splits = all(document.split is None for document in corpus)
    return [
        place
        for place, document in enumerate(corpus)
        if document.gold is not None and (no_splits or (document.split == "test") is test)
    ]


class F1(NamedTuple):
    """Strict, and that of tokens in spans of any type, in points."""

    strict: float
    any_type: float

    def told(self, crowd: str) -> str:
        """As a cell of a table."""
        return f"{self.strict:.1f} / {self.any_type:.1f}" if crowd in ANY_TYPE else f"{self.strict:.1f}"


def f1_of(tags: Sequence[Sequence[Tag]], gold: Sequence[Sequence[Tag]]) -> F1:
    """Of tags against gold; what a source was not shown it did not mark."""
    given = [[tag or "O" for tag in mine] for mine in tags]
    pairs = [pair for mine, truth in zip(given, gold, strict=True) for pair in zip(mine, truth, strict=True)]
    marked = [(tag != "O", true != "O") for tag, true in pairs if true is not None]
    both = sum(tag and true for tag, true in marked)
    either = sum(tag + true for tag, true in marked)
    return F1(100 * score.strict(given, gold).f1, 200 * both / max(either, 1))


def f1_at(result: Result, places: Sequence[int]) -> F1:
    """Of a consensus, on some documents."""
    return f1_of([result[place].tags for place in places], [result.corpus[place].gold or () for place in places])


def ranked(corpus: Corpus, places: Sequence[int]) -> list[tuple[F1, str]]:
    """Sources from the weakest to the best by gold, each on the documents that it saw.

    Those who marked at least so many spans there; where fewer than two did, those who marked most.
    """
    said: dict[str, list[int]] = {}
    n_spans: dict[str, int] = {}
    for place in places:
        for name, tags in corpus[place].annotations.items():
            said.setdefault(name, []).append(place)
            n_spans[name] = n_spans.get(name, 0) + len(find_spans(hard_tags(tags)))
    enough = [name for name in sorted(said) if n_spans[name] >= ENOUGH]
    if len(enough) < 2:
        enough = sorted(said, key=lambda name: (-n_spans[name], name))[:MOST_SPANS]
    scores = []
    for name in enough:
        seen = [corpus[place] for place in said[name]]
        scores.append(
            (f1_of([hard_tags(one.annotations[name]) for one in seen], [one.gold or () for one in seen]), name)
        )
    return sorted(scores)


def timed(corpus: Corpus, tagger: str | None = "auto") -> tuple[Result, float]:
    """The default, unless another tagger is asked for, and how many seconds it takes."""
    began = time.perf_counter()
    result = quorate.aggregate(corpus, tagger=tagger)
    return result, time.perf_counter() - began


def head(*columns: str) -> None:
    print(f"| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|", flush=True)


def row(crowd: str, *cells: str) -> None:
    print(f"| {crowd.replace('_', ' ')} | {' | '.join(cells)} |", flush=True)


def sources(made: dict[str, Make], test: bool) -> None:
    """Every method on every crowd."""
    counts = ("documents scored", "annotators a document", "are worth", "silent")
    head("crowd", *counts, *METHODS, "best single source (by gold)", "default", "s")
    for name, make in made.items():
        corpus = make()
        places = scored(corpus, test)
        if not places:
            continue
        result, seconds = timed(corpus)
        cells = [f1_at(quorate.aggregate(corpus, method), places) for method in METHODS]
        best, who = ranked(corpus, places)[-1]
        assert result.choice is not None
        given, worth = result.choice.votes
        row(
            name,
            f"{len(places):,}",
            f"{given:.1f}",
            f"{worth:.1f}",
            f"{len(result.choice.silent)} of {len(result.choice.annotators)}",
            *(cell.told(name) for cell in cells),
            f"{best.told(name)} ({who})",
            f"**{f1_at(result, places).told(name)}**",
            f"{seconds:.0f}",
        )


def copies(made: dict[str, Make], test: bool) -> None:
    """What five noisy copies of one source do to the default."""
    worth = "annotators a document, worth"
    with_five = [(f"a {kind} source alone", "with five copies of it", worth) for kind in ("weak", "good")]
    head("crowd", "default", worth, *with_five[0], *with_five[1])
    for name, make in made.items():
        corpus = make()
        places = scored(corpus, test)
        if not places:
            continue
        result = quorate.aggregate(corpus)
        cells = [f1_at(result, places).told(name), votes_of(result)]
        order = ranked(corpus, places)
        for alone, who in (order[0], order[-1]):
            result = quorate.aggregate(with_copies(corpus, who, TIMES, jitter=JITTER))
            cells += [f"{alone.told(name)} ({who})", f1_at(result, places).told(name), votes_of(result)]
        row(name, *cells)


def passages(**shape: Any) -> Corpus:
    """A simulated jury (``tests/crowds.py``)."""
    import simulated_crowds as crowds

    made: Corpus = crowds.passages(**shape)
    return made


def juries(made: dict[str, Make], test: bool) -> None:
    """Every method on juries of several shapes; and the default if spans with their types are the evidence, or if
    places are given out as whole spans are.
    """
    head("jury", *METHODS, "evidence spans", "decode f1", "default", "rests on", "best single model (by gold)")
    found: list[list[F1]] = []
    bests: list[float] = []
    for name, make in made.items():
        corpus = make()
        places = scored(corpus, test)
        result = quorate.aggregate(corpus)
        others = [partial(quorate.aggregate, corpus, method) for method in METHODS]
        others += [
            partial(quorate.aggregate, corpus, evidence="spans"),
            partial(quorate.aggregate, corpus, decode="f1"),
        ]
        scores = [f1_at(one, places) for one in (*(make_other() for make_other in others), result)]
        best = max(one.any_type for one, _ in ranked(corpus, places))
        found.append(scores)
        bests.append(best)
        told = [f"{one.strict:.1f} / {one.any_type:.1f}" for one in scores]
        row(name, *told[:-1], f"**{told[-1]}**", str(result.settings_["evidence"]), f"{best:.1f}")
    means = [mean_of(column) for column in zip(*found, strict=True)]
    row("mean", *(f"{one.strict:.1f} / {one.any_type:.1f}" for one in means), "", f"{sum(bests) / len(bests):.1f}")


def mean_of(scores: Sequence[F1]) -> F1:
    """Of each of their figures."""
    return F1(*(sum(column) / len(scores) for column in zip(*scores, strict=True)))


def hidden(made: dict[str, Make], test: bool) -> None:
    """What each model says of a consensus of those that are not of its family; no gold is read.

    A name says how the model was asked, and which family it is of: ``5shot-llama3-3``.
    """
    head("jury", *METHODS, "default")
    for name, make in made.items():
        corpus = make()
        families: dict[str, list[str]] = {}
        for model in corpus.annotators:
            families.setdefault(model.split("-")[1], []).append(model)
        found: dict[str, list[F1]] = {method: [] for method in (*METHODS, "auto")}
        for family in families.values():
            rest = only(corpus, set(corpus.annotators) - set(family))
            for method, scores in found.items():
                result = quorate.aggregate(rest, method)
                for model in family:
                    seen = [place for place, one in enumerate(corpus) if model in one.annotations]
                    said = [[tag or "O" for tag in hard_tags(corpus[place].annotations[model])] for place in seen]
                    scores.append(f1_of([result[place].tags for place in seen], said))
        row(name, *(mean_of(scores).told(name) for scores in found.values()))


def votes_of(result: Result) -> str:
    """How many annotators a document has, and how many independent ones they are worth."""
    assert result.choice is not None
    given, worth = result.choice.votes
    return f"{given:.1f}, {worth:.1f}"


def parts(made: dict[str, Make], test: bool) -> None:
    """What is left of the default where few sources are, or few documents: means over parts, and how far it falls."""
    against = ("silent-vote", "mv", "ds")
    head("crowd", "parts", *against, "default", "more than 0.5 below the best of these", "most below it")
    for name, make in made.items():
        corpus = make()
        places = scored(corpus, test)
        found = []
        for number, size in enumerate(PARTS * DRAWS if places else ()):
            part = part_of(corpus, places, *size, random.Random(number))
            if part is not None:
                results = [quorate.aggregate(part, method) for method in (*against, "auto")]
                found.append([f1_at(result, range(len(part))).strict for result in results])
        if found:
            means = [f"{sum(column) / len(found):.1f}" for column in zip(*found, strict=True)]
            below = [max(0.0, max(scores[:-1]) - scores[-1]) for scores in found]
            row(name, f"{len(found)}", *means, f"{sum(each > 0.5 for each in below)}", f"{max(below):.1f}")


def part_of(
    corpus: Corpus, places: Sequence[int], n_documents: int, n_sources: int, draw: random.Random
) -> Corpus | None:
    """As many of these documents and of the sources, drawn by chance; ``None`` if none of those marked anything."""
    kept = set(draw.sample(corpus.annotators, min(n_sources, len(corpus.annotators))))
    some = [corpus[place] for place in draw.sample(places, min(n_documents, len(places)))]
    part = only(some, kept)
    marks = any(tag not in (None, "O") for one in part for tags in one.annotations.values() for tag in hard_tags(tags))
    return part if marks else None


def tagger(made: dict[str, Make], test: bool) -> None:
    """What a tagger in the loop does."""
    head("crowd", "none", "s", "auto (the default)", "s", "crf", "s")
    for name, make in made.items():
        corpus = make()
        places = scored(corpus, test)
        if not places:
            continue
        cells = []
        for reads in (None, "auto", "crf"):
            result, seconds = timed(corpus, reads)
            cells += [f1_at(result, places).told(name), f"{seconds:.0f}"]
        row(name, *cells)


if __name__ == "__main__":
    main()
