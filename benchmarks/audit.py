"""How well audits keep their promise: ``python benchmarks/audit.py``.

Draws many audits from real crowds whose gold is known, and prints for each crowd: how often the interval of F1 holds
the truth, how wide it is, and how wide that of as many documents drawn evenly would be (their plain ratio); how often
documents accepted at a precision meet it, and how many are accepted; the same of spans; and how far the probabilities
of documents, spans and tokens are off before and after recalibration, on documents that were not checked. No gold is
read in fitting. Audits are of the documents with gold outside of the test splits; with --test of those in them. With a
word it prints something else:

- ``looks``: how often the intervals of a sequential audit hold at all looks together, from 20 documents on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

import options
import quorate
from common import real, scored
from quorate import Result, audit
from quorate.audit.claims import Claims, spans_of
from quorate.audit.estimate import once
from quorate.corpus.records import Tag
from quorate.evaluate.metrics import reliability

CROWDS = ("ner", "pico", "wikigold-rules", "laptop-rules", "bc5cdr-rules", "conll-rules")
PRECISIONS = (0.8, 0.9, 0.95)
CONFIDENCE = 0.9
FIRST_LOOK, EVERY, LOOKS = 20, 10, 9


class Truth(NamedTuple):
    """The gold of a crowd, for each document how many spans were given, right and true, and for each span if it is."""

    tags: Mapping[str, tuple[Tag, ...]]
    given: np.ndarray
    right: np.ndarray
    true: np.ndarray
    hit: np.ndarray

    @property
    def f1(self) -> float:
        """Of the whole consensus."""
        return float(2 * self.right.sum() / (self.given.sum() + self.true.sum()))


def main() -> None:
    parser = options.scores_splits(options.parser_of(__doc__))
    parser.add_argument("what", nargs="?", choices=["audits", "looks"], default="audits")
    parser.add_argument("--only", nargs="+", metavar="CROWD", choices=CROWDS, default=CROWDS)
    parser.add_argument("--audits", type=int, default=500, help="how many of each crowd")
    parser.add_argument("--documents", type=int, default=50, help="how many are checked in each")
    given = parser.parse_args()
    work: dict[str, Callable[..., None]] = {"audits": partial(audits, n=given.documents), "looks": looks}
    for name in given.only:
        claims, truth = claimed(name, test=given.test)
        where = "test" if given.test else "dev"
        print(f"{name} ({where}): {len(claims):,} documents, F1 {100 * truth.f1:.1f}", flush=True)
        work[given.what](claims, truth, times=given.audits)
    sys.stdout.flush()


def claimed(name: str, *, test: bool) -> tuple[Claims, Truth]:
    """What the default says of the documents that are scored, and what is true of them."""
    corpus = real(name)
    result: Result = quorate.aggregate(corpus).only(scored(corpus, test))
    claims = Claims.of(result)
    tags = {document.id: document.gold or () for document in result.corpus}
    true = [spans_of(tags[document.id], claims.scheme) for document in result.corpus]
    hit = np.array(
        [
            span.bare in gold
            for mine, theirs in zip(claims.spans, true, strict=True)
            for gold in [{span.bare for span in theirs}]
            for span in mine
        ],
        float,
    )
    return claims, Truth(tags, claims.given, claims.summed(hit), np.array(list(map(len, true)), float), hit)


def checked(claims: Claims, truth: Truth, n: int, seed: int, *, sequential: bool = False) -> audit.Audit:
    """One audit, in which a person finds what the gold says."""
    plan = audit.plan(claims, n, seed=seed, sequential=sequential)
    return audit.result(claims, {name: truth.tags[name] for name in plan.ids}, plan=plan, confidence=CONFIDENCE)


def audits(claims: Claims, truth: Truth, *, times: int, n: int) -> None:
    found = [checked(claims, truth, n, seed) for seed in range(times)]
    even = [evenly(truth, n, seed) for seed in range(times)]
    width, plain = (np.mean([high - low for low, high in those]) for those in ([one.f1[1:] for one in found], even))
    print(
        f"  90 % interval of F1: holds in {100 * share(truth.f1, [one.f1[1:] for one in found]):.1f} %, "
        f"width {100 * width:.1f}; drawn evenly {100 * share(truth.f1, even):.1f} %, {100 * plain:.1f}; "
        f"ratio {width / plain:.2f}"
    )
    count, empty = np.maximum(truth.given, 1), truth.given == 0
    right = np.where(empty, truth.true == 0, truth.right)
    for precision in PRECISIONS:
        sets = [one.accept(precision).documents for one in found]
        held = [not those or right[those].sum() >= precision * count[those].sum() for those in sets]
        some = np.mean([bool(those) for those in sets])
        print(
            f"  accepted at {precision:g}: holds in {100 * np.mean(held):.1f} %; some are in {100 * some:.0f} %, "
            f"{100 * np.mean([len(those) / len(claims) for those in sets]):.0f} % of documents on average"
        )
    for precision in PRECISIONS:
        chosen = [one.accept_spans(precision) for one in found]
        held = [not one.kept or truth.hit[claims.sure >= one.least].mean() >= precision for one in chosen]
        print(
            f"  spans kept at {precision:g}: holds in {100 * np.mean(held):.1f} %; some are in "
            f"{100 * np.mean([one.kept > 0 for one in chosen]):.0f} %, "
            f"{100 * np.mean([one.kept / one.given for one in chosen]):.0f} % of spans on average"
        )
    before, after = zip(*(errors(one, truth) for one in found[:: max(times // 20, 1)]), strict=True)
    print(
        "  calibration error of documents, spans, tokens: "
        + ", ".join(f"{b:.3f} → {a:.3f}" for b, a in zip(np.mean(before, axis=0), np.mean(after, axis=0), strict=True))
    )


def share(truth: float, intervals: Sequence[Sequence[float]]) -> float:
    """Of the intervals, how many hold the truth."""
    return float(np.mean([low <= truth <= high for low, high in intervals]))


def evenly(truth: Truth, n: int, seed: int) -> tuple[float, float]:
    """The plain interval of documents drawn evenly."""
    chosen = np.random.default_rng(seed).permutation(len(truth.given))[:n]
    above, below = 2 * truth.right[chosen], (truth.given + truth.true)[chosen]
    f1 = above.sum() / below.sum()
    left = 1 - n / len(truth.given)
    error = np.sqrt(left * n / (n - 1) * ((above - f1 * below) ** 2).sum()) / below.sum()
    return f1 - once(CONFIDENCE)(n - 1) * error, f1 + once(CONFIDENCE)(n - 1) * error


def errors(one: audit.Audit, truth: Truth) -> tuple[list[float], list[float]]:
    """Calibration errors on documents that were not checked, before and after what an audit corrects."""
    claims, seen = one.plan.claims, set(one.plan.ids)
    before: list[list[tuple[float, bool]]] = [[], [], []]
    after: list[list[tuple[float, bool]]] = [[], [], []]
    for d, line in enumerate(one.recalibrated_lines()):
        if line["id"] in seen:
            continue
        tags = truth.tags[line["id"]]
        gold = {span.bare for span in spans_of(tags, claims.scheme)}
        same = [mine == theirs for mine, theirs in zip(claims.tags[d], tags, strict=True)]
        hits = [span.bare in gold for span in claims.spans[d]]
        for rows, confidence, tokens, spans in (
            (before, claims.confidence[d], claims.token_confidence[d], [span.sure for span in claims.spans[d]]),
            (after, line["confidence"], line["token_confidence"], [span["confidence"] for span in line["spans"]]),
        ):
            rows[0].append((confidence, all(same)))
            rows[1] += zip(spans, hits, strict=True)
            rows[2] += zip(tokens, same, strict=True)
    return [ece(rows) for rows in before], [ece(rows) for rows in after]


def ece(rows: list[tuple[float, bool]]) -> float:
    """The expected calibration error, ten bins."""
    confidence, right = (np.array(column, float) for column in zip(*rows, strict=True))
    return reliability(confidence, right).error


def looks(claims: Claims, truth: Truth, *, times: int) -> None:
    """Look after 20 documents, then after every ten more."""
    most = min(FIRST_LOOK + EVERY * (LOOKS - 1), len(claims) - 1)
    sizes = range(FIRST_LOOK, most + 1, EVERY)
    held, naive = [], []
    for seed in range(times):
        every = [checked(claims, truth, n, seed, sequential=True) for n in sizes]
        held.append(all(one.f1.low <= truth.f1 <= one.f1.high for one in every))
        single = [replace(one, plan=replace(one.plan, sequential=False)).f1 for one in every]
        naive.append(all(one.low <= truth.f1 <= one.high for one in single))
    print(
        f"  {len(sizes)} looks, {FIRST_LOOK} to {most} documents: all hold in {100 * np.mean(held):.1f} % of audits "
        f"(with intervals for one look {100 * np.mean(naive):.1f} %)"
    )


if __name__ == "__main__":
    main()
