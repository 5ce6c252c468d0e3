"""Whether audits keep their promise: ``python benchmarks/audit.py``.

Draws many audits of the default's consensus on every crowd with gold (the rows of ``crowds.py``), as ``quorate audit
plan`` draws them, with gold as the person who checks. No gold is read in fitting. Prints for each crowd how often the
90 % interval of F1 holds the truth and how wide it is, beside that of as many documents drawn evenly (the plain one:
their own ratio, with Student's t); the same where half of a small crowd is checked; and how often what is accepted at
a precision falls short of it. With a word it prints something else:

- ``looks``: how often all intervals of a sequential audit hold, which is looked at after every ten documents.
- ``calibration``: errors of probabilities before and after an audit corrects them, on documents not checked.

``--test -o docs/coverage.md`` writes the page. The test splits of ner and pico are shown with ``--test`` alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import options
import quorate
from crowds import DATA, Row, rows_asked
from quorate import audit
from quorate.audit.claims import Claims, spans_of
from quorate.audit.estimate import once
from quorate.corpus.records import Tag
from quorate.evaluate.metrics import reliability

SIZES = (30, 50)
PRECISIONS = (0.8, 0.9)
CONFIDENCE = 0.9
SMALL = 300  # documents: of fewer, half of them are an audit that a person may do
FIRST_LOOK, EVERY, LOOKS = 20, 10, 9

Interval = tuple[float, float]


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


class Held(NamedTuple):
    """Of many intervals, how many held the truth, and how wide they were on average; in per cent."""

    coverage: float
    width: float


class Accepted(NamedTuple):
    """Of many audits, in how many something was accepted, how much of all on average, and in how many it fell short."""

    some: float
    kept: float
    short: float


class Kept(NamedTuple):
    """How audits of one crowd kept their promise, by size, and at half of the documents if they are few."""

    documents: int
    f1: float
    ours: list[Held]
    plain: list[Held]
    half: Held | None
    of_documents: list[Accepted]
    of_spans: list[Accepted]


def main() -> None:
    parser = options.scores_splits(options.parser_of(__doc__))
    parser.add_argument("what", nargs="?", choices=["coverage", "looks", "calibration"], default="coverage")
    parser.add_argument("--rows", default="", metavar="PART", help="only rows whose name or kind has this in it")
    parser.add_argument("--audits", type=int, default=200, help="how many of each crowd")
    parser.add_argument("-o", "--output", metavar="PAGE")
    parser.add_argument("-j", "--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    wanted = rows_asked(given)
    work = {"coverage": coverage, "looks": looks, "calibration": calibration}[given.what]
    with ProcessPoolExecutor(given.processes) as pool:
        found = dict(zip(wanted, pool.map(partial(_of_row, work, given.audits), wanted), strict=True))
    page = "\n".join(report(found, given.audits) if given.what == "coverage" else plain_lines(found))
    if given.output:
        Path(given.output).write_text(_HEAD + page + "\n", encoding="utf-8")
    print(page)


_HEAD = """# How often audits hold

*Written by `python benchmarks/audit.py --test -o docs/coverage.md`.*
What the numbers mean is in [the promise](promise.md).

"""


def _of_row(work: Any, times: int, row: Row) -> Any:
    return work(*claimed(row), times)


def claimed(row: Row) -> tuple[Claims, Truth]:
    """What the default says of the documents of a row, and what is true of them."""
    result = quorate.aggregate(quorate.read(DATA / f"{row.file}.jsonl.gz"))
    scored = [
        place
        for place, document in enumerate(result.corpus)
        if document.gold is not None and row.split in (None, document.split)
    ]
    claims = Claims.of(result.only(scored))
    tags = {document.id: document.gold or () for document in map(result.corpus.__getitem__, scored)}
    true = [spans_of(tags[document.id], claims.scheme) for document in claims.corpus]
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


def coverage(claims: Claims, truth: Truth, times: int) -> Kept:
    """Audits of every size, and what they accept by the largest."""
    found = {n: [checked(claims, truth, n, seed) for seed in range(times)] for n in SIZES}
    half = [checked(claims, truth, len(claims) // 2, seed) for seed in range(times)] if len(claims) < SMALL else []
    count, empty = np.maximum(truth.given, 1), truth.given == 0
    right = np.where(empty, truth.true == 0, truth.right)
    largest, of_documents, of_spans = found[SIZES[-1]], [], []
    for precision in PRECISIONS:
        sets = [one.accept(precision).documents for one in largest]
        shown = [right[one].sum() / count[one].sum() if one else None for one in sets]
        of_documents.append(accepted(shown, [len(one) / len(claims) for one in sets], precision))
        spans = [one.accept_spans(precision) for one in largest]
        shown = [truth.hit[claims.sure >= one.least].mean() if one.kept else None for one in spans]
        of_spans.append(accepted(shown, [one.kept / one.given for one in spans], precision))
    return Kept(
        len(claims),
        truth.f1,
        [held(truth, [one.f1[1:] for one in found[n]]) for n in SIZES],
        [held(truth, [evenly(truth, n, seed) for seed in range(times)]) for n in SIZES],
        held(truth, [one.f1[1:] for one in half]) if half else None,
        of_documents,
        of_spans,
    )


def held(truth: Truth, intervals: Sequence[Interval]) -> Held:
    """How often intervals of F1 hold it."""
    low, high = np.array(intervals).T
    return Held(100 * float(((low <= truth.f1) & (truth.f1 <= high)).mean()), 100 * float((high - low).mean()))


def accepted(precision: Sequence[float | None], share: Sequence[float], asked: float) -> Accepted:
    """What audits accepted, by its true precision (none where nothing was)."""
    some = [one for one in precision if one is not None]
    short = sum(one < asked for one in some)
    times = len(precision) / 100
    return Accepted(len(some) / times, 100 * float(np.mean(share)), short / times)


def evenly(truth: Truth, n: int, seed: int) -> Interval:
    """The plain interval of documents drawn evenly."""
    drawn = np.random.default_rng(seed).permutation(len(truth.given))[:n]
    above, below = 2 * truth.right[drawn], (truth.given + truth.true)[drawn]
    f1 = above.sum() / max(below.sum(), 1)
    left = max(1 - n / len(truth.given), 0.0)
    error = np.sqrt(left * n / (n - 1) * ((above - f1 * below) ** 2).sum()) / max(below.sum(), 1)
    far = once(CONFIDENCE)(n - 1) * error
    return max(f1 - far, 0.0), min(f1 + far, 1.0)


def report(found: Mapping[Row, Kept], times: int) -> Iterable[str]:
    """The lines of the page."""
    every = list(found.values())
    yield f"Of every crowd {times} audits are drawn, with gold as the person who checks. With as many, a share of 90 %"
    yield f"is known to ± {100 * np.sqrt(0.09 / times):.0f} points (one standard error)."
    yield ""
    yield "## The 90 % interval of F1"
    yield ""
    yield "How often it holds the true F1, and its mean width in points; beside those of a plain audit, which draws as"
    yield "many documents evenly and takes their own F1, with Student's t."
    yield ""
    columns = [f"{what}, {n} documents" for n in SIZES for what in ("holds", "width", "plain holds", "plain width")]
    rows_of = [
        [value for ours, plain in zip(one.ours, one.plain, strict=True) for value in (*ours, *plain)] for one in every
    ]
    yield _line("crowd", "documents", "F1", *columns)
    yield _rule(3 + len(columns))
    for (row, one), values in zip(found.items(), rows_of, strict=True):
        yield _line(row.name, f"{one.documents:,}", f"{100 * one.f1:.1f}", *(f"{value:.1f}" for value in values))
    yield _line("**mean**", "", "", *(f"**{value:.1f}**" for value in np.mean(rows_of, axis=0)))
    yield _line("least", "", "", *(f"{value:.1f}" for value in np.min(rows_of, axis=0)))
    small = [(row.name, one.documents, one.half) for row, one in found.items() if one.half is not None]
    if small:
        yield ""
        yield "## Half of a small crowd"
        yield ""
        yield f"Crowds of fewer than {SMALL} documents, if half of them are checked. What is checked is known, so that"
        yield "the interval speaks of the rest alone; if all are checked it has no width."
        yield ""
        yield _line("crowd", "documents", "checked", "holds", "width")
        yield _rule(5)
        for name, documents, half in small:
            yield _line(name, str(documents), str(documents // 2), *(f"{value:.1f}" for value in half))
        mean = np.mean([half for _, _, half in small], axis=0)
        yield _line("**mean**", "", "", *(f"**{value:.1f}**" for value in mean))
    yield ""
    yield f"## What is accepted by {SIZES[-1]} documents"
    yield ""
    yield "In how many audits (%) something is accepted, and in how many what is accepted falls short of the precision"
    yield "asked. With 90 % confidence no more than 10 % of all audits may; one that accepts nothing does not. `kept`"
    yield "is the mean share of documents or spans, nothing where nothing is accepted."
    yield ""
    kinds = [f"{what} at {precision:g}" for what in ("documents", "spans") for precision in PRECISIONS]
    yield _line("crowd", *(f"{kind}: some, kept, short" for kind in kinds))
    yield _rule(1 + len(kinds))
    cells = [[*one.of_documents, *one.of_spans] for one in every]
    for row, own in zip(found, cells, strict=True):
        yield _line(row.name, *(f"{one.some:.1f}, {one.kept:.0f}, {one.short:.1f}" for one in own))
    means = [Accepted(*np.mean(column, axis=0)) for column in zip(*cells, strict=True)]
    yield _line("**mean**", *(f"**{one.some:.1f}, {one.kept:.0f}, {one.short:.1f}**" for one in means))
    of_accepted = [100 * one.short / one.some if one.some else 0.0 for one in means]
    yield _line("short, of audits that accept", *(f"{share:.1f}" for share in of_accepted))


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(columns: int) -> str:
    return "|---" * columns + "|"


def plain_lines(found: Mapping[Row, str]) -> Iterable[str]:
    return (f"{row.name}: {told}" for row, told in found.items())


def calibration(claims: Claims, truth: Truth, times: int) -> str:
    """Errors of confidence, of documents, spans and tokens."""
    audits = [checked(claims, truth, SIZES[-1], seed) for seed in range(max(times // 10, 1))]
    before, after = zip(*(errors(one, truth) for one in audits), strict=True)
    changes = zip(np.mean(before, axis=0), np.mean(after, axis=0), strict=True)
    return "calibration error of documents, spans, tokens " + ", ".join(f"{b:.3f} → {a:.3f}" for b, a in changes)


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
        for table, confidence, tokens, spans in (
            (before, claims.confidence[d], claims.token_confidence[d], [span.sure for span in claims.spans[d]]),
            (after, line["confidence"], line["token_confidence"], [span["confidence"] for span in line["spans"]]),
        ):
            table[0].append((confidence, all(same)))
            table[1] += zip(spans, hits, strict=True)
            table[2] += zip(tokens, same, strict=True)
    return [ece(table) for table in before], [ece(table) for table in after]


def ece(table: list[tuple[float, bool]]) -> float:
    """The expected calibration error, ten bins."""
    confidence, right = (np.array(column, float) for column in zip(*table, strict=True))
    return reliability(confidence, right).error


def looks(claims: Claims, truth: Truth, times: int) -> str:
    """Look after 20 documents, then after every ten more."""
    most = min(FIRST_LOOK + EVERY * (LOOKS - 1), len(claims) - 1)
    sizes = range(FIRST_LOOK, most + 1, EVERY)
    every_holds, naive = [], []
    for seed in range(times):
        every = [checked(claims, truth, n, seed, sequential=True) for n in sizes]
        every_holds.append(all(one.f1.low <= truth.f1 <= one.f1.high for one in every))
        single = [replace(one, plan=replace(one.plan, sequential=False)).f1 for one in every]
        naive.append(all(one.low <= truth.f1 <= one.high for one in single))
    return (
        f"{len(sizes)} looks, {FIRST_LOOK} to {most} documents: all hold in {100 * np.mean(every_holds):.1f} % of "
        f"audits (with intervals for one look {100 * np.mean(naive):.1f} %)"
    )


if __name__ == "__main__":
    main()
