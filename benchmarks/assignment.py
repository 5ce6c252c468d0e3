"""The queue's choice of documents against a random one: the NER crowd, replayed by its 47 annotators, scored on dev.

At every step somebody asks for a document, drawn in proportion to how many they labelled in the crowd, and gives the
labels that they gave there; so they can be given only documents that they labelled there. By ``random`` that is any of
them, by ``queue`` the one that the queue ranks first for them, and by ``held`` the same, where those whose labels have
much less expected information than others' get nothing. Models are fitted again every 500 labels by the default method,
and updated with the labels of every batch, after which people are ranked anew; what was handed out since is in hand.

``python benchmarks/assignment.py --repeats 3`` prints a table of F1 by labels and policy. Runs are kept in the file
that --results names as they end, so that it can be interrupted and goes on. ``--crowd`` replays a simulated crowd.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

import options
import quorate
from quorate.active.assignment import HOLD_BACK, rankings
from quorate.active.simulation import Plan, Run, Simulation
from quorate.corpus.records import Corpus, Document
from quorate.corpus.simulate import Behaviour, crowd
from quorate.estimators.methods import estimator
from quorate.evaluate.compare import scored_positions
from quorate.result.result import Result
from quorate.storage.work_log import Store

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "ner.jsonl.gz"
BATCH = 100  # labels between two rankings
HELD = "held"


def main() -> None:
    parser = options.parser_of(__doc__)
    parser.add_argument("--crowd", choices=[*CROWDS], default="ner")
    parser.add_argument("--method", default="auto", help="by its name")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first repeat")
    parser.add_argument("--policies", default="random,queue,held")
    parser.add_argument("--hold-back", type=float, default=HOLD_BACK)
    parser.add_argument("--max-labels", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=500, help="labels between two fits")
    parser.add_argument("--results", metavar="FILE", help="where runs are kept")
    given = parser.parse_args()
    if given.every % BATCH:
        parser.error(f"--every must be a multiple of {BATCH}, after which people are ranked anew")
    read, split = CROWDS[given.crowd]
    corpus = read()
    plan = Plan(initial=given.every, batch=given.every, max_labels=given.max_labels)
    head = {"plan": asdict(plan), "crowd": given.crowd, "batch": BATCH}
    store = Store(given.results, head, "runs")
    runs = {run[:3]: run for run in (Run(**record) for record in store.records)}
    for repeat in range(given.first, given.first + given.repeats):
        for policy in given.policies.split(","):
            name = f"{policy} {given.hold_back:g}" if policy == HELD else policy
            if (given.method, name, repeat) not in runs:
                share = given.hold_back if policy == HELD else 0.0
                f1, seconds = replayed(corpus, split, plan, given.method, policy, share, repeat)
                run = Run(given.method, name, repeat, plan.sizes[: len(f1)], f1, [0.0] * len(f1), seconds)
                store.add(run._asdict())
                runs[run[:3]] = run
    show(Simulation(tuple(runs.values()), plan, split))


def replayed(
    corpus: Corpus, split: str | None, plan: Plan, method: str, policy: str, hold_back: float, repeat: int
) -> tuple[list[float], float]:
    """Strict F1 at every fit, and how many seconds it took."""
    began, rng = time.perf_counter(), np.random.default_rng([plan.seed, repeat])
    to_do = {name: [one.id for one in corpus if name in one.annotations] for name in corpus.annotators}
    people = list(to_do)
    often = np.array([len(documents) for documents in to_do.values()], np.float64)
    often /= often.sum()
    answers = {one.id: one for one in corpus}
    given: dict[str, set[str]] = {one.id: set() for one in corpus}
    model: quorate.BSC | None = None
    f1 = list[float]()
    for labels in range(BATCH, plan.max_labels + 1, BATCH):
        lists = to_do
        if policy != "random":
            found = rankings(labelled(corpus, given), model, people, allowed=to_do, hold_back=hold_back)
            lists = {name: [ranked.document for ranked in one.documents] for name, one in found.items()}
        fresh: dict[str, set[str]] = {}
        while sum(map(len, fresh.values())) < BATCH:
            name = people[rng.choice(len(people), p=often)]
            open_to = [
                one for one in lists[name] if name not in given[one] and (policy == "random" or one not in fresh)
            ]
            if open_to:
                one = open_to[int(rng.integers(len(open_to)))] if policy == "random" else open_to[0]
                given[one].add(name)
                fresh.setdefault(one, set()).add(name)
        if labels % plan.batch == 0:
            model = fitted(method, labelled(corpus, given))
            f1.append(f1_of(model.result_, split))
            print(
                f"{policy} {repeat}: {labels:6} labels, {100 * f1[-1]:.1f} ({time.perf_counter() - began:.0f} s)",
                flush=True,
            )
        elif model is not None and policy != "random":
            model.update(Corpus([only(answers[name], given[name]) for name in fresh]))
    return f1, time.perf_counter() - began


def fitted(method: str, corpus: Corpus) -> quorate.BSC:
    """A fit by a method's name."""
    made = estimator(method)
    assert isinstance(made, quorate.BSC), f"method {method!r} cannot be a queue's"
    return made.fit(corpus)


def only(document: Document, names: set[str]) -> Document:
    """A document with the labels of some people."""
    return replace(document, annotations={name: document.annotations[name] for name in sorted(names)})


def labelled(corpus: Corpus, given: dict[str, set[str]]) -> Corpus:
    """All documents, with the labels that were given."""
    return Corpus([only(one, given[one.id]) for one in corpus])


def f1_of(result: Result, split: str | None) -> float:
    """Strict F1 of the consensus on the documents of a split, labelled or not."""
    scored = result.only(scored_positions(result.corpus, split))
    return float(quorate.score.strict(scored.tags, [one.gold for one in scored.corpus]).f1)


def show(found: Simulation) -> None:
    """Curves as a table, and with how few labels the last F1 of random choice is reached."""
    curves = found.curves
    last = {curve.strategy: float(curve.f1[-1]) for curve in curves}
    shown = [place for place, labels in enumerate(found.plan.sizes) if (place + 1) % 4 == 0 or place == 0]
    heads = [f"{found.plan.sizes[place]:,}" for place in shown]
    print("| policy | runs |", " | ".join(heads), "| labels for random's last F1 |")
    print("|---|---:|" + "---:|" * (len(heads) + 1))
    for curve in curves:
        cells = [f"{100 * curve.f1[p]:.1f} ± {100 * curve.f1_spread[p]:.1f}" for p in shown if p < len(curve.f1)]
        reached = curve.labels[curve.f1 >= last.get("random", 1.0)]
        few = f"{int(reached[0]):,} ({reached[0] / found.plan.sizes[-1]:.0%})" if len(reached) else "–"
        print(f"| {curve.strategy} | {curve.repeats} |", " | ".join(cells), f"| {few} |")


def simulated() -> Corpus:
    """Forty people of all qualities on 900 sentences with three kinds of names, 8 labels for each."""
    rng = np.random.default_rng(8)
    people = {
        f"w{n:02}": Behaviour(
            miss=float(rng.beta(2, 4)), confuse=0.1, start_early=0.2, start_late=0.1, end_early=0.1, end_late=0.2,
            spam=float(n % 10 == 0),
        )
        for n in range(40)
    }  # fmt: skip
    return crowd(sentences(rng), people, per_document=8, seed=8)


def sentences(rng: np.random.Generator) -> Corpus:
    """Documents with names of three types among common words."""
    documents = []
    for number in range(900):
        tokens, tags = list[str](), list[str]()
        for _ in range(int(rng.integers(4, 12))):
            kind = str(rng.choice(["", "LOC", "ORG", "PER"], p=[0.7, 0.1, 0.1, 0.1]))
            length = int(rng.integers(1, 4))
            tokens += [f"{kind or 'w'}{int(300 * rng.random() ** 3)}" for _ in range(length)]
            tags += [f"B-{kind}", *[f"I-{kind}"] * (length - 1)] if kind else ["O"] * length
        documents.append(Document(str(number), tuple(tokens), gold=tuple(tags)))
    return Corpus(documents)


CROWDS: dict[str, tuple[Callable[[], Corpus], str | None]] = {
    "ner": (lambda: quorate.read(DATA), "dev"),
    "simulated": (simulated, None),
}


if __name__ == "__main__":
    main()
