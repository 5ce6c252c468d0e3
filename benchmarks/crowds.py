"""The scale to weigh with: every crowd that has gold, one table. ``python benchmarks/crowds.py``.

Fits methods to all crowds beside the checkout, without gold, and prints strict and relaxed F1, cross entropy,
calibration errors of tokens and spans, and seconds. Then the mean; the standard error of a mean difference, in which
rows that share texts count as one family; and the rows more than a point below the better of two plain votes.

- ``--without NAME``: the default with one mechanism switched off, and the difference on every row.
- ``--vary NAME=VALUE,…``: the default with each value of a setting (several times: of all combinations).
- ``--leave-one-out`` beside it: on each family, the values that are best on all others.
- ``--known N``: what the default gains on the other documents where N of a row are known, in three draws.
- ``--keep FILE`` and ``--against FILE``: figures to compare with later, as those of another version.
- ``-o docs/crowds.md``: writes the page.

The test splits of ner and pico are shown with ``--test`` alone: to report what was decided, not to decide.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import options
import quorate
from quorate import score
from quorate.audit.claims import spans_of
from quorate.crowd import changes
from quorate.wording import counted

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
VOTES = ("mv", "span-vote")
DEFAULT = ("mv", "span-vote", "ds", "auto")
WITHOUT_ = "without "  # a mechanism, in the name of a variant
DRAWS = 3  # of known documents
SMALL = 600  # documents of a small crowd
BELOW = 1.0  # points below the better vote, from which on a row is named


class Row(NamedTuple):
    """A line of the table: documents of a ``split`` of one file. Rows of a ``family`` share texts."""

    name: str
    file: str
    split: str | None
    family: str
    kind: str

    @property
    def held_back(self) -> bool:
        """Whether it is shown only to report."""
        return self.name in ("ner test", "pico test")


def rows() -> list[Row]:
    """Every row, in the order of the table."""
    of_people = [
        ("ner dev", "ner", "dev", "ner"),
        ("ner test", "ner", "test", "ner"),
        ("pico dev", "pico", "dev", "pico"),
        ("pico test", "pico", "test", "pico"),
        ("oei dev", "oei", "dev", "oei"),
        ("oei test", "oei", "test", "oei"),
        *((name, name, None, family) for name, family in (
            ("tempeval-events", "tempeval"),
            ("neurotrial-r1", "neurotrial"),
            ("pico423-participants-baseline", "pico"),
            ("pico423-participants-senbase", "pico"),
            ("pico423-participants-sensupport", "pico"),
            ("btc-e-per", "btc"),
            ("btc-e-loc", "btc"),
            ("btc-e-org", "btc"),
        )),
    ]  # fmt: skip
    of_systems = [
        ("hipe-ajmc-en", "hipe"),
        ("hipe-ajmc-de", "hipe"),
        ("hipe-ajmc-fr", "hipe"),
        ("hipe2020c-en", "hipe"),
        ("hipe2020c-en-teams", "hipe"),
        ("noisebench-5", "ner"),
        ("ccner-llm24", "ccner"),
        ("ccner-llm4", "ccner"),
        ("mt-llm-untyped", "mt"),
    ]
    of_rules = [
        ("wikigold-rules test", "wikigold-rules", "test"),
        ("laptop-rules test", "laptop-rules", "test"),
        ("bc5cdr-rules test", "bc5cdr-rules", "test"),
        ("conll-rules test", "conll-rules", "test"),
        ("ncbi-rules", "ncbi-rules", None),
        ("ontonotes-rules valid", "ontonotes-rules", "valid"),
    ]
    return [
        *(Row(*row, "people") for row in of_people),
        *(Row(name, name, None, family, "systems") for name, family in of_systems),
        *(Row(name, file, split, file, "rules") for name, file, split in of_rules),
    ]


def rows_asked(given: Namespace) -> list[Row]:
    """The rows that a command line asks for, of crowds that are there."""
    return [
        row
        for row in rows()
        if (given.test or not row.held_back)
        and (given.rows in row.name or given.rows == row.kind)
        and (DATA / f"{row.file}.jsonl.gz").exists()
    ]


class Figures(NamedTuple):
    """One method on one row: points of F1, nats, errors of confidence, seconds of the whole fit on one core."""

    strict: float
    relaxed: float
    entropy: float
    calibration: float
    seconds: float
    of_spans: float = math.nan


class Gain(NamedTuple):
    """What one draw of known documents gives on the others: strict F1, error of spans' confidence, without and with it.

    ``held`` is whether F1 of the others is in the interval that the known documents give; nan if they give none.
    """

    strict: float
    strict_known: float
    of_spans: float
    of_spans_known: float
    held: float


class Variant(NamedTuple):
    """A method under a name of its own, with settings, and mechanisms switched off."""

    name: str
    method: str
    settings: Mapping[str, Any] = {}
    without: tuple[str, ...] = ()


Table = dict[str, dict[str, Figures]]
"""Figures by variant and row."""

WITHOUT: Mapping[str, Callable[[], Any]] = {
    "duplicates": lambda: _without_change("merge_duplicates"),
    "abstaining": lambda: _without_change("account_for_abstaining"),
    "correlated": lambda: _without_change("downweight_correlated"),
    "words": lambda: {"text": False},
    "shapes": lambda: {"shapes": False},
    "spans": lambda: {"spans": False},
    "calibration": lambda: {"calibrate": False},
}
"""The mechanisms that can be switched off, and how: settings of the default, or a change that is left out."""


def _without_change(name: str) -> Mapping[str, Any]:
    changes.CHANGES = tuple(change for change in changes.CHANGES if change.__name__ != name)
    return {}


def main() -> None:
    parser = options.scores_splits(options.parser_of(__doc__))
    parser.add_argument("methods", nargs="*", help=f"methods to compare (default: {' '.join(DEFAULT)})")
    parser.add_argument("--without", action="append", default=[], metavar="NAME", choices=[*WITHOUT, "each"])
    parser.add_argument("--vary", action="append", default=[], metavar="NAME=VALUES")
    parser.add_argument("--leave-one-out", action="store_true")
    parser.add_argument("--known", type=int, metavar="N", help="also the gain from N known documents of each row")
    parser.add_argument("--rows", default="", metavar="PART", help="only rows whose name or kind has this in it")
    parser.add_argument("--keep", metavar="FILE")
    parser.add_argument("--against", metavar="FILE")
    parser.add_argument("-o", "--output", metavar="PAGE")
    parser.add_argument("-j", "--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    wanted = rows_asked(given)
    table = measured(variants(given), wanted, given.processes)
    if given.against:
        earlier = json.loads(Path(given.against).read_text(encoding="utf-8"))
        table = {f"{name} before": {row: Figures(*f) for row, f in of.items()} for name, of in earlier.items()} | table
    if given.keep:
        Path(given.keep).write_text(json.dumps(table), encoding="utf-8")
    page = "\n".join(report(table, wanted, given))
    if given.known:
        gains = measured_gains(wanted, given.known, given.processes)
        page += "\n\n" + "\n".join(_gains(gains, table, wanted, given.known))
    if given.output:
        Path(given.output).write_text(_HEAD + page + "\n", encoding="utf-8")
    print(page)


_HEAD = """# Every crowd with gold

*Written by `make crowds` (`benchmarks/crowds.py`): figures of accuracy stand here alone. How audits hold is
[a page of its own](coverage.md).*

Each method is fitted to all documents of a crowd without gold; strict F1 is in points. The crowds are those of people,
of systems and language models, and of labelling rules that the tests use where they are beside the checkout.

`mv` is a vote on every token, `span-vote` one on whole spans, of which half of those who saw the document must have
marked each; `auto` is the default, and `without` … the default with one mechanism switched off. ± is the standard error
of a mean difference in which rows that share texts (as those of one `ner`, `pico`, `hipe`) count as one. *Rise / fall*:
in how many rows a method is above the default, and below it. Rules abstain from most tokens, where a vote finds
nothing: compare methods by the columns of people and of systems too.

"""


def variants(given: Namespace) -> list[Variant]:
    """What the command line asks for."""
    without = list(WITHOUT) if "each" in given.without else given.without
    if without:
        methods = [*given.methods, *([] if "auto" in given.methods else ["auto"])]
        switched_off = [Variant(f"{WITHOUT_}{name}", "auto", {}, (name,)) for name in without]
        return [*(Variant(name, name) for name in methods), *switched_off]
    if given.vary:
        names = [one.partition("=")[0] for one in given.vary]
        values = product(*([_value(v) for v in one.partition("=")[2].split(",")] for one in given.vary))
        chosen = [dict(zip(names, each, strict=True)) for each in values]
        method = given.methods[0] if given.methods else "auto"
        return [Variant(" ".join(f"{n}={v}" for n, v in each.items()), method, each) for each in chosen]
    return [Variant(name, name) for name in given.methods or DEFAULT]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def measured(all_variants: Sequence[Variant], wanted: Sequence[Row], processes: int) -> Table:
    """Every variant on every row; a crowd is read once, in a process of its own, the largest first."""
    files = sorted({row.file for row in wanted}, key=lambda name: -(DATA / f"{name}.jsonl.gz").stat().st_size)
    with ProcessPoolExecutor(processes) as pool:
        work = [(file, [row for row in wanted if row.file == file], list(all_variants)) for file in files]
        found = list(pool.map(_crowd, work))
    table: Table = {one.name: {} for one in all_variants}
    for part in found:
        for name, figures in part.items():
            table[name].update(figures)
    return table


def _crowd(work: tuple[str, list[Row], list[Variant]]) -> Table:
    file, wanted, all_variants = work
    corpus = quorate.read(DATA / f"{file}.jsonl.gz")
    return {one.name: _scored(corpus, one, wanted) for one in all_variants}


def _scored(corpus: quorate.Corpus, variant: Variant, wanted: Sequence[Row]) -> dict[str, Figures]:
    began = time.perf_counter()
    result = _fitted(corpus, variant)
    seconds = time.perf_counter() - began
    return {row.name: _figures(result, _chosen(result, row.split), round(seconds, 2)) for row in wanted}


def _fitted(corpus: quorate.Corpus, variant: Variant) -> quorate.Result:
    settings, before = dict(variant.settings), changes.CHANGES
    try:
        for name in variant.without:
            settings |= WITHOUT[name]()
        return quorate.aggregate(corpus, variant.method, n_jobs=1, **settings)
    finally:
        changes.CHANGES = before


def _chosen(result: quorate.Result, split: str | None) -> list[quorate.Consensus]:
    """The documents of a split that have gold."""
    return [one for one in result if one.document.gold is not None and (split is None or one.document.split == split)]


def _figures(result: quorate.Result, chosen: Sequence[quorate.Consensus], seconds: float) -> Figures:
    gold = [one.document.gold or () for one in chosen]
    tags = [one.tags for one in chosen]
    confidence = np.concatenate([one.token_confidence for one in chosen])
    right = [t == truth for mine, other in zip(tags, gold, strict=True) for t, truth in zip(mine, other, strict=True)]
    return Figures(
        round(_strict(chosen), 2),
        round(100 * score.relaxed(tags, gold).f1, 2),
        round(score.cross_entropy([one.probabilities for one in chosen], gold, result.labels).mean, 4),
        round(score.reliability(confidence.tolist(), right).error, 4),
        seconds,
        round(_error_of_spans(result, chosen), 4),
    )


def _strict(chosen: Sequence[quorate.Consensus]) -> float:
    return 100 * score.strict([one.tags for one in chosen], [one.document.gold or () for one in chosen]).f1


def _error_of_spans(result: quorate.Result, chosen: Sequence[quorate.Consensus]) -> float:
    """The expected calibration error of spans that are given out."""
    confidence, right = [], []
    for one in chosen:
        truth = {span.bare for span in spans_of(one.document.gold or (), result.tagset.scheme)}
        confidence += [span.sure for span in one.spans]
        right += [span.bare in truth for span in one.spans]
    return score.reliability(confidence, right).error


def measured_gains(wanted: Sequence[Row], n: int, processes: int) -> dict[str, list[Gain]]:
    """What so many known documents of each row give on its others, draw by draw."""
    files = sorted({row.file for row in wanted}, key=lambda name: -(DATA / f"{name}.jsonl.gz").stat().st_size)
    with ProcessPoolExecutor(processes) as pool:
        parts = pool.map(_gains_of, [(file, [row for row in wanted if row.file == file], n) for file in files])
        return {name: gains for part in parts for name, gains in part.items()}


def _gains_of(work: tuple[str, list[Row], int]) -> dict[str, list[Gain]]:
    file, wanted, n = work
    corpus = quorate.read(DATA / f"{file}.jsonl.gz")
    alone = quorate.aggregate(corpus, n_jobs=1)
    return {row.name: [_gain(corpus, alone, row, n, seed) for seed in range(DRAWS)] for row in wanted}


def _gain(corpus: quorate.Corpus, alone: quorate.Result, row: Row, n: int, seed: int) -> Gain:
    documents = [one.document for one in _chosen(alone, row.split)]
    drawn = np.random.default_rng(seed).permutation(len(documents))[:n]
    known = {documents[d].id: documents[d].gold or () for d in drawn.tolist()}
    model = quorate.BSC(n_jobs=1).fit(corpus, known=known)
    before, after = (
        [one for one in _chosen(each, row.split) if one.document.id not in known] for each in (alone, model.result_)
    )
    strict, correction = _strict(after), model.calibration_.correction
    held = math.nan if correction is None else float(correction.f1[1] <= strict / 100 <= correction.f1[2])
    errors = _error_of_spans(alone, before), _error_of_spans(model.result_, after)
    return Gain(_strict(before), strict, *errors, held)


def _gains(gains: Mapping[str, Sequence[Gain]], table: Table, wanted: Sequence[Row], n: int) -> Iterable[str]:
    """What known documents give, row by row, and in the mean over kinds of rows."""
    yield f"## What {n} known documents give"
    yield ""
    yield (
        f"Strict F1 of the other documents of each row, and the expected calibration error of their spans; means of "
        f"{DRAWS} draws. *Held*: how often F1 was in the interval, for nine in ten, that the known documents give."
    )
    yield ""
    yield "| crowd | strict F1 | with known | gain | error of spans | with known | held |"
    yield "|---" * 7 + "|"
    for row in wanted:
        mean = np.mean(gains[row.name], axis=0)
        cells = [f"{mean[0]:.1f}", f"{mean[1]:.1f}", f"{mean[1] - mean[0]:+.1f}", f"{mean[2]:.3f}", f"{mean[3]:.3f}"]
        yield f"| {row.name} | {' | '.join(cells)} | {sum(one.held == 1 for one in gains[row.name])} of {DRAWS} |"
    yield ""
    yield "| rows | how many | gain | error of spans | with known | held |"
    yield "|---" * 6 + "|"
    small = [row for row in wanted if _documents(row) <= SMALL]
    below = [row for row in wanted if set(VOTES) <= set(table) and _below(row, table) > 0]
    for name, some in (("all", wanted), (f"of at most {SMALL} documents", small), ("below the better vote", below)):
        if some:
            each = np.array([np.mean(gains[row.name], axis=0) for row in some])
            held = np.nanmean([one.held for row in some for one in gains[row.name]])
            gain, error = mean_and_error(each[:, 1] - each[:, 0], [row.family for row in some])
            means = each.mean(axis=0)
            cells = [f"{gain:+.2f} ± {error:.2f}", f"{means[2]:.3f}", f"{means[3]:.3f}", f"{held:.2f}"]
            yield f"| {name} | {len(some)} | {' | '.join(cells)} |"


def _documents(row: Row) -> int:
    with gzip.open(DATA / f"{row.file}.jsonl.gz") as lines:
        return sum(1 for _ in lines)


def _below(row: Row, table: Table) -> float:
    """By how much the default is below the better vote."""
    return max(table[vote][row.name].strict for vote in VOTES) - table["auto"][row.name].strict


def report(table: Table, wanted: Sequence[Row], given: Namespace) -> Iterable[str]:
    """The lines of the page."""
    names = list(table)
    reference = next((name for name in ("auto", "auto before", names[0]) if name in names), names[0])
    yield from _grid("Strict F1", table, wanted, lambda f: f"{f.strict:.1f}")
    yield ""
    yield from _means(table, wanted, reference)
    for name in names:
        if name not in VOTES and set(VOTES) <= set(names):
            yield ""
            yield _below_votes(name, table, wanted)
    if given.leave_one_out:
        yield ""
        yield from _left_out(table, wanted)
    switched_off = {name: of for name, of in table.items() if name.startswith(WITHOUT_) and "auto" in table}
    if switched_off:
        yield ""
        yield from _differences(table["auto"], switched_off, wanted)
    for title, shown in (
        ("Relaxed F1", lambda f: f"{f.relaxed:.1f}"),
        ("Cross entropy of tokens, in nats", lambda f: f"{f.entropy:.2f}"),
        ("Expected calibration error of tokens", lambda f: f"{f.calibration:.3f}"),
        ("Expected calibration error of spans that are given out", lambda f: f"{f.of_spans:.3f}"),
        (f"Seconds of a fit on one core, {counted(given.processes, 'fit')} at once", lambda f: f"{f.seconds:.1f}"),
    ):
        yield ""
        yield from _grid(title, table, wanted, shown)


def _grid(title: str, table: Table, wanted: Sequence[Row], shown: Callable[[Figures], str]) -> Iterable[str]:
    yield f"## {title}"
    yield ""
    yield f"| crowd | {' | '.join(table)} |"
    yield "|---" * (len(table) + 1) + "|"
    for row in wanted:
        cells = [shown(of[row.name]) if row.name in of else "" for of in table.values()]
        yield f"| {row.name} | {' | '.join(cells)} |"


def _differences(whole: Mapping[str, Figures], parts: Table, wanted: Sequence[Row]) -> Iterable[str]:
    """By how much every row changes without each mechanism."""
    yield "## Strict F1 without a mechanism, against auto"
    yield ""
    yield f"| crowd | {' | '.join(parts)} |"
    yield "|---" * (len(parts) + 1) + "|"
    for row in wanted:
        cells = [f"{of[row.name].strict - whole[row.name].strict:+.1f}" for of in parts.values()]
        yield f"| {row.name} | {' | '.join(cells)} |"


def _means(table: Table, wanted: Sequence[Row], reference: str) -> Iterable[str]:
    """Means by kind of crowd, and how each variant differs from the reference."""
    kinds = [kind for kind in ("people", "systems", "rules") if any(row.kind == kind for row in wanted)]
    heads = [
        "mean strict F1",
        "all",
        *kinds,
        f"against {reference}",
        "rise / fall",
        "cross entropy",
        "error of spans",
        "seconds",
    ]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for name, of in table.items():
        there = [row for row in wanted if row.name in of]
        every = [f"{np.mean([of[row.name].strict for row in there]):.2f}"]
        every += [
            f"{np.mean([of[row.name].strict for row in there if row.kind == kind] or [np.nan]):.2f}" for kind in kinds
        ]
        both = [row for row in there if row.name in table[reference]]
        gains = np.array([of[row.name].strict - table[reference][row.name].strict for row in both])
        mean, error = mean_and_error(gains, [row.family for row in both])
        cells = [
            *every,
            "" if name == reference else f"{mean:+.2f} ± {error:.2f}",
            "" if name == reference else f"{(gains > 0.05).sum()} / {(gains < -0.05).sum()}",
            f"{np.mean([of[row.name].entropy for row in there]):.3f}",
            f"{np.mean([of[row.name].of_spans for row in there]):.3f}",
            f"{sum({row.file: of[row.name].seconds for row in there}.values()):.0f}",
        ]
        yield f"| {name} | {' | '.join(cells)} |"


def mean_and_error(gains: np.ndarray[Any, Any], families: Sequence[str]) -> tuple[float, float]:
    """The mean over rows and its standard error, in which the rows of a family move together."""
    mean = float(gains.mean())
    sums = np.array([(gains - mean)[[f == family for f in families]].sum() for family in sorted(set(families))])
    correction = len(sums) / max(len(sums) - 1, 1)
    return mean, float(np.sqrt(correction * (sums**2).sum()) / len(gains))


def _below_votes(name: str, table: Table, wanted: Sequence[Row]) -> str:
    best = {row.name: max(table[vote][row.name].strict for vote in VOTES) for row in wanted}
    lost = {row.name: best[row.name] - table[name][row.name].strict for row in wanted if row.name in table[name]}
    named = sorted((row for row in lost if lost[row] > BELOW), key=lambda row: -lost[row])
    rows_lost = ", ".join(f"{row} {lost[row]:.1f}" for row in named)
    return f"{name}: {counted(len(named), 'row')} more than {BELOW:g} below the better vote" + (
        f" ({rows_lost})" if named else ""
    )


def _left_out(table: Table, wanted: Sequence[Row]) -> Iterable[str]:
    """On each family, the variant that is best on all others."""
    yield "| family left out | chosen by the others | strict F1 there | best there |"
    yield "|---|---|---|---|"
    found = []
    families = sorted({row.family for row in wanted})
    if len(families) < 2:
        return
    for family in families:
        mine = [row.name for row in wanted if row.family == family]
        others = [row.name for row in wanted if row.family != family]

        def mean(name: str, over: Sequence[str]) -> float:
            return float(np.mean([table[name][row].strict for row in over]))

        chosen = max(table, key=lambda name: mean(name, others))
        best = max(table, key=lambda name: mean(name, mine))
        found += [table[chosen][row].strict for row in mine]
        yield f"| {family} | {chosen} | {mean(chosen, mine):.2f} | {best}: {mean(best, mine):.2f} |"
    yield f"| mean of rows | | {np.mean(found):.2f} | |"


if __name__ == "__main__":
    main()
