"""What held-out people say, predicted from three annotators of each document; and how ambiguous crowds are.

    python benchmarks/ambiguity.py [--draws 1] [--floor]

Three annotators of each document with four or more are kept, by lot, and the others held out. Mean cross entropy, in
nats, of the label that a held-out person gave a token:

* smoothed: the shares of the three, (count + a·prior)/(3 + a), with a and prior the best for those held out;
* consensus: the posterior of ``quorate.aggregate`` on the three;
* shares: ``result.shares``, what anybody would say, learned from the three;
* by name: ``result.shares_of(name)``, what that person would say, from habits seen where they were among the three;
* others, all: smoothed shares of everybody else in the document. What a prediction for anybody can reach with ten
  annotators or more in place of three;
* floor: the entropy of the true shares, below which no prediction that is the same for everybody can be; estimated from
  all annotators of each token by the jackknife.

With --floor only smoothed shares and the floor are printed, which takes no fit.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

import quorate
from quorate.corpus.records import Corpus, Document

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CROWDS = {"hallucination-en": None, "hallucination-zh": None, "ner": 1500, "pico": 200}  # documents at most
Floats = NDArray[np.float64]
Labels = dict[str, tuple[Any, ...]]  # labels of each annotator


def parted(corpus: Corpus, n: int, seed: int) -> tuple[Corpus, list[Labels]]:
    """Documents with ``n`` of their annotators, and those of the others."""
    rng = np.random.default_rng(seed)
    kept, held = [], []
    for document in corpus:
        names = sorted(document.annotations)
        if len(names) <= n:
            continue
        chosen = set(rng.choice(len(names), n, replace=False).tolist())
        parts: tuple[Labels, Labels] = ({}, {})
        for number, name in enumerate(names):
            parts[number not in chosen][name] = document.annotations[name]
        kept.append(Document(document.id, document.tokens, parts[0]))
        held.append(parts[1])
    return Corpus(kept), held


def counted(sequences: list[Labels], corpus: Corpus, labels: tuple[str, ...]) -> Floats:
    """``[N, J]`` How many gave each token each label."""
    number = {label: j for j, label in enumerate(labels)}
    rows = []
    for document, said in zip(corpus, sequences, strict=True):
        counts = np.zeros((len(document.tokens), len(labels)))
        for tags in said.values():
            for t, tag in enumerate(tags):
                if tag is not None:
                    counts[t, number[tag]] += 1
        rows.append(counts)
    return np.concatenate(rows)


def cross_entropy(p: Floats, counts: Floats) -> float:
    return float(-(counts * np.log(np.maximum(p, 1e-9))).sum() / counts.sum())


def best_smoothed(counts: Floats, held: Floats) -> float:
    """With the constant and the prior that suit those held out best."""

    def loss(x: Floats) -> float:
        prior = np.exp(np.append(x[1:], 0.0))
        prior /= prior.sum()
        a = np.exp(x[0])
        return cross_entropy((counts + a * prior) / (counts.sum(axis=1, keepdims=True) + a), held)

    frequency = np.log((counts.sum(axis=0) + 1)[:-1] / (counts.sum(axis=0) + 1)[-1])
    start = minimize_scalar(lambda a: loss(np.append(a, frequency)), bounds=(-4, 4), method="bounded")
    steps = 1500 if len(frequency) < 5 else 300
    found = minimize(loss, np.append(start.x, frequency), method="Nelder-Mead", options={"maxiter": steps})
    return float(min(start.fun, found.fun))


def of_all_others(everyone: Floats, held: Floats) -> float:
    """Smoothed shares of everybody else in the document, with the best constant and the crowd's prior."""
    prior, n = everyone.sum(axis=0) / everyone.sum(), everyone.sum(axis=1, keepdims=True)

    def loss(log_a: float) -> float:
        a = np.exp(log_a)
        return cross_entropy((np.maximum(everyone - 1, 0) + a * prior) / (n - 1 + a), held)

    return float(minimize_scalar(loss, bounds=(-4, 4), method="bounded").fun)


def entropy(counts: Floats) -> Floats:
    """``[N]`` Of the shares of counts, in nats."""
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return np.asarray(-(share * np.log(np.maximum(share, 1e-300))).sum(axis=1))


def floor(everyone: Floats, held: Floats) -> float:
    """The entropy of the shares that all people would give, by the jackknife, over the labels of those held out.

    The plain entropy of n labels is too low by about (labels in use − 1) / 2n, and the jackknife takes off what falls
    with 1/n: n·H − (n − 1)·(the mean of H without one label).
    """
    n = everyone.sum(axis=1)
    without = np.zeros(len(n))
    for j in range(everyone.shape[1]):
        one_less = everyone.copy()
        one_less[:, j] = np.maximum(one_less[:, j] - 1, 0)
        without += everyone[:, j] / np.maximum(n, 1) * entropy(one_less)
    weight = held.sum(axis=1)
    return float((weight * (n * entropy(everyone) - (n - 1) * without)).sum() / weight.sum())


def by_name(result: quorate.Result, held: list[Labels]) -> float:
    """Each held-out person by their own name."""
    number = {label: j for j, label in enumerate(result.labels)}
    lost, n = 0.0, 0
    for name in sorted({name for one in held for name in one}):
        expected = result.shares_of(name)
        for d, one in enumerate(held):
            said = [(t, number[tag]) for t, tag in enumerate(one.get(name, ())) if tag is not None]
            if said:
                lost -= np.log(np.maximum(expected[d][tuple(np.transpose(said))], 1e-9)).sum()
                n += len(said)
    return float(lost / n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1, help="times that three are drawn")
    parser.add_argument("--floor", action="store_true", help="only what nothing that is the same for all can be below")
    given = parser.parse_args()
    if given.floor:
        print(f"{'crowd':18} draw smoothed    floor | floor/smoothed")
    else:
        print(
            f"{'crowd':18} draw smoothed consensus  shares  by name  others, all   floor | "
            "shares/smoothed by name/smoothed floor/smoothed |  s"
        )
    for crowd, most in CROWDS.items():
        path = DATA / f"{crowd}.jsonl.gz"
        if not path.exists():
            print(f"{crowd:18} is not in {DATA}")
            continue
        corpus = quorate.read(path)
        if most is not None:
            corpus = Corpus([document for document in corpus if len(document.annotations) > 3][:most])
        for draw in range(given.draws):
            predicted(crowd, draw, corpus, only_floor=given.floor)
    if not given.floor:
        ambiguous()


def predicted(crowd: str, draw: int, corpus: Corpus, *, only_floor: bool) -> None:
    """A line of the table."""
    began = time.perf_counter()
    three, held = parted(corpus, 3, draw)
    labels = corpus.tagset().labels
    counts = counted([dict(one.annotations) for one in three], three, labels)
    theirs = counted(held, three, labels)
    smoothed, least = best_smoothed(counts, theirs), floor(counts + theirs, theirs)
    if only_floor:
        print(f"{crowd:18} {draw:4} {smoothed:8.3f} {least:8.3f} | {least / smoothed:14.3f}", flush=True)
        return
    result = quorate.aggregate(three)
    counts, theirs = (counted(each, three, result.labels) for each in ([dict(one.annotations) for one in three], held))
    consensus = cross_entropy(result.posterior, theirs)
    anybody = cross_entropy(np.concatenate(result.shares), theirs)
    named = by_name(result, held)
    everyone = of_all_others(counts + theirs, theirs)
    took = time.perf_counter() - began
    print(
        f"{crowd:18} {draw:4} {smoothed:8.3f} {consensus:9.3f} {anybody:7.3f} {named:8.3f} {everyone:12.3f} "
        f"{least:7.3f} | {anybody / smoothed:15.3f} {named / smoothed:16.3f} {least / smoothed:14.3f} | {took:3.0f}",
        flush=True,
    )


def ambiguous() -> None:
    """How much of each crowd allows two readings."""
    print()
    print(f"{'crowd':18} ambiguous tokens, by type of what someone marked")
    for crowd, most in CROWDS.items():
        if (DATA / f"{crowd}.jsonl.gz").exists():
            corpus = quorate.read(DATA / f"{crowd}.jsonl.gz")
            corpus = corpus if most is None else Corpus(list(corpus)[:most])
            told = quorate.aggregate(corpus, "mv").ambiguity
            types = ", ".join(f"{name} {100 * share:.1f} %" for name, share in told.by_type.items())
            print(f"{crowd:18} {100 * told.share:5.1f} %, {types}")


if __name__ == "__main__":
    main()
