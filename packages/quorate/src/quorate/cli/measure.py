"""Commands that measure: check, agreement, ambiguous, evaluate, compare, tune."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorate.cli.common import (
    Inputs,
    Json,
    LayeredReading,
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
from quorate.cli.layers import by_layer
from quorate.cli.project_run import consensus_meant, refuse_outputs_of_a_run
from quorate.cli.tables import (
    comparison_table,
    error_table,
    number,
    plain,
    points,
    print_errors,
    print_json,
    print_scores,
    print_table,
    table_of,
)
from quorate.errors import InputError, SettingsError
from quorate.wording import counted, in_number

if TYPE_CHECKING:
    from quorate.evaluate.check import Checked
    from quorate.evaluate.compare import Scores
    from quorate.evaluate.metrics import Agreement
    from quorate.evaluate.tune import Tuned
    from quorate.result.readings import AmbiguousDocument

Split = Annotated[str | None, typer.Option(metavar="NAME", help="Score only documents of this split.")]
_MOST_WORDS = 5  # of a document, in the list of ambiguous ones
Scheme = Annotated[
    str | None,
    typer.Option(metavar="SCHEME", help="How tags mark spans: bio, bioes, io or plain; inferred if not given."),
]


@app.command(epilog="Example: quorate check crowd.jsonl && quorate aggregate crowd.jsonl -o consensus.jsonl")
@reads
def check(inputs: Inputs, scheme: Scheme = None, as_json: Json = False, *, reading: LayeredReading) -> None:
    """Look at annotations before any fit; exit code 1 if something should be looked at."""
    from quorate.evaluate.check import check as look
    from quorate.model.settings import scheme_named

    layers = reading.layers(inputs).marked
    found = {name: look(corpus, scheme=scheme_named(scheme)) for name, corpus in layers.items()}
    everywhere = [
        sentence for sentence in layers.corpus.notes if all(sentence in each.warnings for each in found.values())
    ]
    if as_json:
        print_json(_check_record(found, everywhere))
    else:
        _print_check(found, everywhere)
    if any(each.warnings for each in found.values()):
        raise typer.Exit(1)


def _print_check(found: dict[str, Checked], everywhere: list[str]) -> None:
    """How many things there are to look at, what they are, and what was counted."""
    own = {name: [one for one in each.warnings if one not in everywhere] for name, each in found.items()}
    odd = len(everywhere) + sum(map(len, own.values()))
    tell(f"{counted(odd, 'thing')} to look at:" if odd else "nothing odd was found")
    for sentence in everywhere:
        tell(f"warning: {sentence}")
    for line in by_layer({name: [f"warning: {one}" for one in its] for name, its in own.items()}):
        tell(line)
    for line in by_layer({name: each.counts for name, each in found.items()}):
        tell(line)


def _check_record(found: dict[str, Checked], everywhere: list[str]) -> dict[str, Any]:
    records = {name: {**each.numbers._asdict(), "warnings": each.warnings} for name, each in found.items()}
    return records[""] if list(records) == [""] else {"warnings": everywhere, "layers": records}


@app.command(epilog="Example: quorate agreement crowd.jsonl --pairs 20")
@reads
def agreement(
    inputs: Inputs,
    pairs: Annotated[
        int, typer.Option(help="How many pairs of annotators to list; those with most tokens first.")
    ] = 10,
    as_json: Json = False,
    *,
    reading: LayeredReading,
) -> None:
    """Show how far annotators agree, before any model: overall and in pairs."""
    from quorate.evaluate.layers import laid_end_to_end
    from quorate.evaluate.metrics import measure_agreement

    layers = reading.layers(inputs).marked
    say_notes(layers.corpus)
    found = {name: measure_agreement(corpus) for name, corpus in layers.items()}
    if layers.single is not None:
        (only,) = found.values()
        print_json(only) if as_json else _print_agreement(only, pairs)
        return
    together = measure_agreement(laid_end_to_end(layers)).spans_matched
    if as_json:
        print_json({"spans_matched": together, "layers": found})
        return
    for name, one in found.items():
        tell(f"layer {name}")
        _print_agreement(one, pairs)
        print()
    print(f"all layers: spans matched between annotators, %: {points(together)}")


def _print_agreement(found: Agreement, pairs: int) -> None:
    print(f"{counted(found.documents, 'document')} and {counted(found.tokens, 'token')} have two annotators or more")
    table = table_of(["measure"], ["value"])
    rows = [
        ("share of pairs with the same label", found.observed),
        ("Krippendorff's alpha, tokens", found.alpha),
        ("Krippendorff's alpha, spans (unitizing)", found.unitizing_alpha),
        ("Fleiss' kappa", found.fleiss_kappa),
        ("Cohen's kappa, mean over pairs", found.mean_kappa),
    ]
    for name, value in rows:
        table.add_row(name, number(value))
    table.add_row("spans matched between annotators, %", points(found.spans_matched))
    console().print(table)
    listed = sorted(found.pairs, key=lambda pair: (-pair.tokens, pair.first, pair.second))[: max(pairs, 0)]
    if listed:
        table = table_of(["annotator", "and"], ["documents", "tokens", "same", "kappa", "matched"])
        for pair in listed:
            numbers = (number(pair.observed), number(pair.kappa), points(pair.spans_matched))
            table.add_row(cell(pair.first), cell(pair.second), f"{pair.documents:,}", f"{pair.tokens:,}", *numbers)
        console().print()
        console().print(table)
        if len(listed) < len(found.pairs):
            print(f"({counted(len(found.pairs) - len(listed), 'more pair')}: --pairs, or --json for all)")


@app.command(epilog="Example: quorate ambiguous crowd.jsonl -n 50")
@reads
def ambiguous(
    inputs: Inputs,
    n: Annotated[int, typer.Option("-n", "--documents", help="How many documents to list.")] = 20,
    as_json: Json = False,
    *,
    reading: LayeredReading,
) -> None:
    """List documents that good annotators read in two ways, the most ambiguous first: what guidelines could settle."""
    from quorate.result.readings import most_ambiguous

    if n < 1:
        raise SettingsError(f"-n must be 1 or more, not {n}")
    layers = reading.layers(inputs)
    say_notes(layers.corpus)
    found = {name: most_ambiguous(corpus, n) for name, corpus in layers.items()}
    if as_json:
        print_json([{"layer": name, **plain(one)} if name else one for name, own in found.items() for one in own])
        return
    for name, own in found.items():
        _print_ambiguous(name, own)


def _print_ambiguous(layer: str, found: list[AmbiguousDocument]) -> None:
    if layer:
        tell(f"layer {layer}")
    if not found:
        tell("no document seems to allow two readings")
        return
    table = table_of(["document", "words that allow two readings"], ["tokens"])
    for one in found:
        words = "; ".join(
            f"{word.word}: " + ", ".join(f"{label} {times:,}" for label, times in word.given.items())
            for word in one.words[:_MOST_WORDS]
        )
        more = len(one.words) - _MOST_WORDS
        table.add_row(cell(one.id), cell(words + (f"; {more:,} more" if more > 0 else "")), f"{one.tokens:.1f}")
    console().print(table)


@app.command(epilog="Example: quorate evaluate consensus.jsonl --gold crowd.jsonl --split test --errors")
@reads
def evaluate(
    context: typer.Context,
    consensus: Annotated[
        str | None,
        typer.Argument(
            metavar="CONSENSUS", help="A file that 'aggregate' wrote; in a project, that of the last version."
        ),
    ] = None,
    gold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Documents with 'gold', such as the crowd's file; in a project, its inputs; may be repeated.",
        ),
    ] = None,
    split: Split = None,
    scheme: Scheme = None,
    errors: Annotated[bool, typer.Option("--errors", help="Also count the kinds of error.")] = False,
    cee: Annotated[
        bool, typer.Option("--cee", help="Fail if there are no probabilities to compute the cross entropy from.")
    ] = False,
    as_json: Json = False,
    *,
    reading: LayeredReading,
) -> None:
    """Score a consensus against gold: precision, recall and F1 of spans, tokens and probabilities.

    A consensus in layers, or one with --layers auto, is scored by layer and over all spans.
    """
    if not gold:
        raise SettingsError("no gold to compare with (give it: --gold FILE)")
    with consensus_meant(context, consensus) as path:
        scored = _scored(path, gold, split, scheme, reading, cee=cee)
    _show_scores(*scored, errors=errors, as_json=as_json)


def _scored(
    consensus: str, gold: list[str], split: str | None, scheme: str | None, reading: LayeredReading, *, cee: bool
) -> tuple[Scores, dict[str, Scores]]:
    """All scores of a consensus, and those of every layer where there are several."""
    from quorate.evaluate.alignment import COMPARED_BY_CHARACTERS
    from quorate.evaluate.compare import read_answers, score_answers
    from quorate.evaluate.layers import read_layered_answers, score_layers
    from quorate.formats.consensus_export import is_layered
    from quorate.model.settings import scheme_named

    layered = is_layered(consensus)
    reading.in_layers |= layered
    truth = reading.layers(gold)
    say_notes(truth.corpus)
    options: dict[str, Any] = {"split": split, "scheme": scheme_named(scheme)}
    options["max_size"] = reading.options["max_size"]
    if truth.single is not None and not layered and (consensus != "-" or not truth.named):
        answers, missing = read_answers(consensus, truth.single, **options)
        by_name = {"": answers}
        if answers.aligned:
            which = counted(answers.aligned, "document has", "documents have")
            say([f"{which} other tokens than the gold: {COMPARED_BY_CHARACTERS}"])
    else:
        by_name, missing = read_layered_answers(consensus, truth, **options)
    if cee and all(answers.probabilities is None for answers in by_name.values()):
        raise InputError(
            "no probabilities in it, which the cross entropy needs (run aggregate with --probabilities)",
            where=consensus,
        )
    if missing:
        say([in_number("warning: {} {document|documents} with gold {is|are} not in the consensus", missing)])
    if "" in by_name:
        return score_answers(by_name[""]), {}
    found = score_layers(by_name)
    return found.together, found.layers


def _show_scores(scores: Scores, layers: dict[str, Scores], *, errors: bool, as_json: bool) -> None:
    """All scores; those of every layer first, where there are several."""
    if as_json:
        print_json(plain(scores) | ({"layers": layers} if layers else {}))
        return
    for name, own in layers.items():
        tell(f"layer {name}")
        print_scores(own)
        print()
    if layers:
        print("all layers")
    print_scores(scores)
    if errors and scores.errors is not None:
        print_errors(scores.errors)


@app.command(epilog="Example: quorate compare crowd.jsonl --methods mv,bsc-cm,bsc-seq --split test")
@reads
def compare(
    inputs: Inputs,
    methods: Annotated[
        str, typer.Option(metavar="NAMES", help="Methods to compare, separated by commas: see 'quorate methods'.")
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
    reading: LayeredReading,
) -> None:
    """Fit several methods and score them against the gold in the input, side by side."""
    from quorate.evaluate.compare import compare as fit_all
    from quorate.evaluate.layers import compare_layers

    names = [name.strip() for name in methods.split(",") if name.strip()]
    layers = reading.layers(inputs)
    if not quiet:
        say_notes(layers.corpus)
    options: dict[str, Any] = {"split": split, "reference": against or (names or [""])[-1]}
    with bar("comparing", quiet) as report:
        if layers.single is None:
            found = compare_layers(layers, names, progress=report, **options)
        else:
            found = fit_all(layers.single, names, progress=report, **options)
    if as_json:
        print_json(found)
        return
    print_table(*comparison_table(found), markdown=markdown)
    if errors:
        print()
        print_table(*error_table(found), markdown=markdown)
    where = f" of split {found.split}" if found.split else ""
    print()
    documents = counted(found.rows[0].scores.documents, "document")
    tell(f"{documents}{where}. The best is {'bold' if not markdown else '**bold**'}.")
    tell("relaxed: F1 by the share of tokens.")
    tell("CEE, cal.: cross entropy and calibration error of tokens; less is better.")
    tell(f"F1 − {found.reference}: with a 95% bootstrap interval over documents.")
    tell("p: of a Wilcoxon signed-rank test over documents. s, MB: time and memory.")


@app.command(epilog="Example: quorate tune crowd.jsonl --split dev --results trials.jsonl -o best.json")
@reads
def tune(
    context: typer.Context,
    inputs: Inputs,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the best settings here."),
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="NAME", help="The method whose settings to choose: see 'quorate methods'.")
    ] = "bsc-seq",
    split: Annotated[str, typer.Option(metavar="NAME", help="The split whose gold is used, or all.")] = "dev",
    by: Annotated[
        str,
        typer.Option(metavar="GOAL", help="The score to choose by: f1, relaxed-f1 or cee (the cross entropy)."),
    ] = "f1",
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=A,B,…", help="Values of a setting to try; may be repeated; replaces the default grid."
        ),
    ] = None,
    results: Annotated[
        str | None, typer.Option(metavar="FILE", help="Save trials here as they end, and continue from there.")
    ] = None,
    show: Annotated[int, typer.Option(help="How many of the best trials to show.")] = 10,
    jobs: Annotated[int | None, typer.Option(help="Fits at the same time; all cores if not given.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Choose settings by the gold of a split: fit without gold at every point of a grid, score, rank."""
    from quorate.evaluate.tune import tune as search

    refuse_outputs_of_a_run(context, {"-o": output, "--results": results})
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
    if as_json:
        print_json(found)
    else:
        _print_trials(found, show)
    if output is not None:
        chosen: dict[str, Any] = {"split": split, "by": by, "trials": len(found.trials), "inputs": corpus.digests}
        chosen |= {"f1": found.best.f1, "relaxed_f1": found.best.relaxed_f1, "cee": found.best.cee}
        write_json({"method": method, "settings": found.best.settings, "chosen_by": chosen}, output)


def _print_trials(found: Tuned, show: int) -> None:
    """The best trials, a line each."""
    whose, names = "all gold" if found.split is None else f"split {found.split}", list(found.best.settings)
    tell(f"{counted(len(found.trials), 'trial')} of {found.method} on {whose}, best first by {found.goal}")
    table = table_of([], [*names, "F1", "relaxed F1", "cross entropy"])
    for trial in found.trials[: max(show, 1)]:
        scores = (f"{100 * trial.f1:.2f}", f"{100 * trial.relaxed_f1:.2f}", f"{trial.cee:.3f}")
        table.add_row(*(f"{trial.settings[name]:g}" for name in names), *scores)
    console().print(table)


def _axis(text: str) -> tuple[str, list[float]]:
    name, _, values = text.partition("=")
    try:
        return name.strip().replace("-", "_"), [float(value) for value in values.split(",")]
    except ValueError:
        raise SettingsError(f"--grid {text!r} is not of the form NAME=NUMBER,NUMBER,…") from None
