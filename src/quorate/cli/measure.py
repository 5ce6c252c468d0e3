"""Commands that measure: check, agreement, evaluate, compare, tune."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

import quorate
from quorate.cli.common import (
    Inputs,
    MaxSize,
    Quiet,
    Reading,
    app,
    bar,
    cell,
    check_outputs,
    console,
    reads,
    say,
    say_notes,
    tell,
    write_json,
)
from quorate.cli.tables import comparison_table, error_table, number, plain, print_errors, print_scores, print_table
from quorate.errors import InputError, SettingsError

Json = Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")]
Split = Annotated[str | None, typer.Option(metavar="NAME", help="Score only documents of this split.")]
Scheme = Annotated[str | None, typer.Option(metavar="SCHEME", help="bio, bioes, io or plain; inferred if not given.")]


@app.command(epilog="Example: quorate check crowd.jsonl && quorate aggregate crowd.jsonl -o consensus.jsonl")
@reads
def check(inputs: Inputs, scheme: Scheme = None, *, reading: Reading) -> None:
    """Look at annotations before any fit; exit code 1 if something should be looked at."""
    from quorate.evaluate.check import check as look
    from quorate.models.settings import scheme_named

    found = look(reading.corpus(inputs), scheme=scheme_named(scheme))
    for sentence in found.counts:
        tell(sentence)
    for sentence in found.warnings:
        tell(f"warning: {sentence}")
    if found.warnings:
        raise typer.Exit(1)
    print("nothing odd was found")


@app.command(epilog="Example: quorate agreement crowd.jsonl --pairs 20")
@reads
def agreement(
    inputs: Inputs,
    pairs: Annotated[
        int, typer.Option(help="How many pairs of annotators to list; those with most tokens first.")
    ] = 10,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Show how far annotators agree, before any model: overall and two by two."""
    from rich.table import Table

    from quorate.evaluate.metrics import measure_agreement

    corpus = reading.corpus(inputs)
    say_notes(corpus)
    found = measure_agreement(corpus)
    if as_json:
        print(json.dumps(found._asdict() | {"pairs": [pair._asdict() for pair in found.pairs]}))
        return
    print(f"{found.documents:,} documents and {found.tokens:,} tokens have two annotators or more")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("measure")
    table.add_column("value", justify="right")
    rows = [
        ("share of pairs with the same label", found.observed),
        ("Krippendorff's alpha, tokens", found.alpha),
        ("Krippendorff's alpha, spans (unitizing)", found.unitizing_alpha),
        ("Fleiss' kappa", found.fleiss_kappa),
        ("Cohen's kappa, mean over pairs", found.mean_kappa),
        ("span F1 between annotators", found.span_f1),
    ]
    for name, value in rows:
        table.add_row(name, number(value))
    console().print(table)
    listed = sorted(found.pairs, key=lambda pair: (-pair.tokens, pair.first, pair.second))[: max(pairs, 0)]
    if listed:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("annotator", "and"):
            table.add_column(name, overflow="fold")
        for name in ("documents", "tokens", "same", "kappa", "span F1"):
            table.add_column(name, justify="right")
        for pair in listed:
            numbers = (number(pair.observed), number(pair.kappa), number(pair.span_f1))
            table.add_row(cell(pair.first), cell(pair.second), f"{pair.documents:,}", f"{pair.tokens:,}", *numbers)
        console().print()
        console().print(table)
        if len(listed) < len(found.pairs):
            print(f"({len(found.pairs) - len(listed):,} more pairs: --pairs, or --json for all)")


@app.command(epilog="Example: quorate evaluate consensus.jsonl --gold crowd.jsonl --split test --errors")
def evaluate(
    consensus: Annotated[str, typer.Argument(metavar="CONSENSUS", help="A file that 'aggregate' wrote.")],
    gold: Annotated[str, typer.Option(metavar="FILE", help="Documents with 'gold': the crowd's file, say.")],
    split: Split = None,
    scheme: Scheme = None,
    errors: Annotated[bool, typer.Option("--errors", help="Also count the kinds of error.")] = False,
    cee: Annotated[bool, typer.Option("--cee", help="Insist on the cross entropy.")] = False,
    max_size: MaxSize = None,
    as_json: Json = False,
) -> None:
    """Score a consensus against gold."""
    from quorate.evaluate.alignment import COMPARED_BY_CHARACTERS
    from quorate.evaluate.compare import read_answers, score_answers
    from quorate.models.settings import scheme_named

    truth, tags = quorate.read(gold, max_size=max_size), scheme_named(scheme)
    say_notes(truth)
    answers, missing = read_answers(consensus, truth, split=split, scheme=tags, max_size=max_size)
    if answers.aligned:
        say([f"{answers.aligned:,} documents have other tokens than the gold: {COMPARED_BY_CHARACTERS}"])
    if cee and answers.probabilities is None:
        raise InputError(
            "no probabilities in it, which the cross entropy needs (run aggregate with --probabilities)",
            where=consensus,
        )
    if missing:
        say([f"warning: {missing:,} documents with gold are not in the consensus"])
    scores = score_answers(answers)
    if as_json:
        print(json.dumps(plain(scores)))
        return
    print_scores(scores)
    if errors and scores.errors is not None:
        print_errors(scores.errors)


@app.command(epilog="Example: quorate compare crowd.jsonl --methods mv,bsc-cm,bsc-seq --split test")
@reads
def compare(
    inputs: Inputs,
    methods: Annotated[
        str, typer.Option(metavar="NAMES", help="Parted by commas; see 'quorate methods'.")
    ] = "mv,bsc-seq,auto",
    split: Split = None,
    against: Annotated[
        str | None, typer.Option(metavar="NAME", help="The method to test the others against; the last if not given.")
    ] = None,
    errors: Annotated[bool, typer.Option("--errors", help="Also count the kinds of error.")] = False,
    as_json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown tables.")] = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Fit several methods and score them against the gold in the input, side by side."""
    from quorate.evaluate.compare import compare as fit_all

    names = [name.strip() for name in methods.split(",") if name.strip()]
    corpus = reading.corpus(inputs)
    if not quiet:
        say_notes(corpus)
    with bar("comparing", quiet) as report:
        found = fit_all(corpus, names, split=split, reference=against or (names or [""])[-1], progress=report)
    if as_json:
        print(json.dumps(plain(found)))
        return
    print_table(*comparison_table(found), markdown=markdown)
    if errors:
        print()
        print_table(*error_table(found), markdown=markdown)
    where = f" of split {found.split}" if found.split else ""
    print()
    tell(f"{found.rows[0].scores.documents:,} documents{where}. The best is {'bold' if not markdown else '**bold**'}.")
    tell(f"F1 − {found.reference}: with 95% bootstrap interval; p: Wilcoxon signed-rank; over documents.")


@app.command(epilog="Example: quorate tune crowd.jsonl --split dev --results trials.jsonl -o best.json")
@reads
def tune(
    inputs: Inputs,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the best settings here."),
    ] = None,
    method: Annotated[str, typer.Option(metavar="NAME", help="See 'quorate methods'.")] = "bsc-seq",
    split: Annotated[str, typer.Option(metavar="NAME", help="Whose gold is used; all for all of it.")] = "dev",
    by: Annotated[str, typer.Option(metavar="GOAL", help="f1, relaxed-f1 or cee.")] = "f1",
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=A,B,…", help="Values of a setting to try; may be repeated; replaces the default grid."
        ),
    ] = None,
    results: Annotated[
        str | None, typer.Option(metavar="FILE", help="Keep trials here as they end, and go on from there.")
    ] = None,
    show: Annotated[int, typer.Option(help="How many of the best trials to show.")] = 10,
    jobs: Annotated[int | None, typer.Option(help="Fits at the same time; all cores if not given.")] = None,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Choose settings by the gold of a split: fit without gold at every point of a grid, score, rank."""
    from rich.table import Table

    from quorate.evaluate.tune import tune as search

    check_outputs(inputs, [output, results])
    chosen_split = None if split == "all" else split
    corpus = reading.corpus(inputs)
    if not quiet:
        say_notes(corpus)
    axes = None if not grid else dict(map(_axis, grid))
    with bar("tuning", quiet) as report:
        found = search(
            corpus, method, split=chosen_split, goal=by, grid=axes, results=results, jobs=jobs, progress=report
        )
    table = Table(box=None, pad_edge=False, header_style="bold")
    names = list(found.best.settings)
    for name in (*names, "F1", "relaxed F1", "cross entropy"):
        table.add_column(name, justify="right")
    for trial in found.trials[: max(show, 1)]:
        scores = (f"{100 * trial.f1:.2f}", f"{100 * trial.relaxed_f1:.2f}", f"{trial.cee:.3f}")
        table.add_row(*(f"{trial.settings[name]:g}" for name in names), *scores)
    console().print(table)
    whose = "all gold" if chosen_split is None else f"split {split}"
    tell(f"{len(found.trials):,} trials of {method} on {whose}, best first by {by}")
    if output is not None:
        chosen: dict[str, Any] = {"split": split, "by": by, "trials": len(found.trials), "inputs": corpus.digests}
        chosen |= {"f1": found.best.f1, "relaxed_f1": found.best.relaxed_f1, "cee": found.best.cee}
        write_json({"method": method, "settings": found.best.settings, "chosen_by": chosen}, output)


def _axis(text: str) -> tuple[str, list[float]]:
    name, _, values = text.partition("=")
    try:
        return name.strip().replace("-", "_"), [float(value) for value in values.split(",")]
    except ValueError:
        raise SettingsError(f"--grid {text!r} is not of the form NAME=NUMBER,NUMBER,…") from None
