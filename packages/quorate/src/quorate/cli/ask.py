"""Commands that say what to have labelled next: next, simulate-active."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorate.cli.common import (
    Inputs,
    Json,
    LayeredReading,
    Quiet,
    Reading,
    Threads,
    app,
    bar,
    cell,
    check_outputs,
    console,
    reads,
    say,
    say_notes,
    tell,
)
from quorate.cli.known import KnownLabels, KnownOption
from quorate.cli.label_studio import Pushing
from quorate.cli.layers import documents_for, loaded
from quorate.cli.options import takes_groups
from quorate.cli.project_run import refuse_outputs_of_a_run
from quorate.cli.tables import print_json, print_table, table_of
from quorate.errors import InputError, SettingsError
from quorate.wording import counted, in_number

if TYPE_CHECKING:
    from quorate.active.simulation import Curve, Simulation
    from quorate.active.suggest import Advice

_NO_OTHERS = "the others are decided, left out, or labelled by everybody who may be asked"
_COLUMNS = ("document", "annotator", "gain", "cost", "score", "confidence", "labels")


@dataclass(frozen=True)
class Listing:
    """How the list is given out."""

    shape: Annotated[
        str | None,
        typer.Option("--as", metavar="SHAPE", help="table, jsonl or csv; a file is CSV, or JSONL by its name."),
    ] = None
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write the list; - for standard output.")
    ] = "-"
    as_json: Json = False
    quiet: Quiet = False

    def checked_shape(self) -> str:
        """The shape of the list; one clear error, before any work, if it cannot be given out so."""
        if self.as_json and self.shape is not None and self.output == "-":
            raise SettingsError(
                "--json and --as cannot both go to standard output (leave one out, or give a file with -o)"
            )
        by_name = "table" if self.output == "-" else "jsonl" if ".jsonl" in self.output else "csv"
        shape = self.shape or by_name
        if shape not in ("table", "jsonl", "csv"):
            raise SettingsError(f"--as {shape!r} is not known (one of: table, jsonl, csv)")
        if shape == "table" and self.output != "-":
            raise SettingsError("a table is for the terminal (give --as csv or --as jsonl for a file)")
        return shape

    def give_out(self, advice: Advice, n: int) -> None:
        """The verdict, and the list."""
        if self.as_json:
            print_json(_record(advice))
        elif not self.quiet:
            say(_verdict(advice))
            if 0 < len(advice.suggestions) < n:
                listed = in_number("{} {document is|documents are} listed", len(advice.suggestions))
                say([f"note: {listed}, not {n:,}: {_NO_OTHERS}"])
        if not self.as_json or self.output != "-":
            _write_advice(advice, self.checked_shape(), self.output)


@app.command(
    "next",
    epilog="Examples:\n\n"
    "quorate next crowd.jsonl -n 20\n\n"
    "quorate next crowd.jsonl --model crowd.quorate --annotators ann,bob --cost prices.csv --as csv -o tomorrow.csv\n\n"
    "quorate next crowd.jsonl --strategy least-confidence --per-document-max 5 --exclude done.txt",
)
@reads
@takes_groups
def next_(
    context: typer.Context,
    inputs: Inputs,
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="A file that 'aggregate --save' wrote; fitted to the input if not given."),
    ] = None,
    n: Annotated[int, typer.Option("-n", "--number", help="How many documents to ask for.")] = 20,
    strategy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="information, least-confidence, least-confidence-per-token, token-entropy, sequence-entropy, random.",
        ),
    ] = "information",
    annotators: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES|FILE",
            help="Whom to ask, separated by commas (default: everyone). Or, as elsewhere, JSON with kinds and trust.",
        ),
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="What a document costs with each: CSV or TSV with columns annotator, cost."),
    ] = None,
    per_document_max: Annotated[
        int | None, typer.Option(help="Leave out documents that have this many annotators.")
    ] = None,
    exclude: Annotated[
        str | None, typer.Option(metavar="FILE", help="Documents not to ask for: their ids, one per line.")
    ] = None,
    known: KnownOption = None,
    diversity: Annotated[
        float, typer.Option(help="How strongly to avoid documents like those already chosen, 0 to 1.")
    ] = 0.5,
    enough: Annotated[
        float,
        typer.Option(help="Stop if one more label of every document should add fewer points to the expected score."),
    ] = 0.5,
    seed: Annotated[int, typer.Option(help="The seed of the random strategy, and of random draws.")] = 0,
    threads: Threads = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler whose workers run the passes.")
    ] = None,
    *,
    listing: Listing,
    pushing: Pushing,
    reading: LayeredReading,
) -> None:
    """Say which documents to have labelled next, and by whom; or that it is time to stop."""
    from quorate.active.suggest import next_labels
    from quorate.estimators.capabilities import Advises

    listing.checked_shape()
    client = pushing.client()
    certain = KnownLabels(context, known, inputs, reading.options["max_size"])
    others = [name for name in (model, annotators, cost, exclude) if name is not None]
    refuse_outputs_of_a_run(context, {"-o": listing.output})
    check_outputs([*inputs, *certain.files, *others], [listing.output])
    fitted = None if model is None else loaded(model).set_params(n_jobs=threads)
    if fitted is not None and not all(isinstance(one, Advises) for one in fitted.models_.values()):
        raise SettingsError(f"{model}: a model of this kind cannot say what to ask for (fit one by another method)")
    if fitted is not None and cluster is not None:
        fitted.set_params(cluster=cluster)
    if annotators is not None and (annotators.startswith("{") or Path(annotators).is_file()):
        reading.options["annotators"], annotators = annotators, None
    found = reading.layers(inputs) if fitted is None else documents_for(fitted, reading, inputs)
    layers, labels = certain.of_layers(found, quiet=listing.quiet)
    if not listing.quiet:
        say_notes(layers.corpus)
    advice = next_labels(
        layers,
        fitted,
        n=n,
        strategy=strategy,
        annotators=None if annotators is None else _names(annotators),
        cost=None if cost is None else _read_costs(cost),
        per_document_max=per_document_max,
        exclude=() if exclude is None else _read_ids(exclude),
        known=labels,
        diversity=diversity,
        enough=enough / 100,
        seed=seed,
        cluster=cluster,
    )
    listing.give_out(advice, n)
    if client is not None:
        asked = [(one.document, one.annotator or "") for one in advice.suggestions]
        pushing.push_tasks(client, asked, by_annotator=annotators is not None, quiet=listing.quiet)


@dataclass(frozen=True)
class CurveFiles:
    """Where runs and their curves go."""

    results: Annotated[
        str | None, typer.Option(metavar="FILE", help="Save runs here as they end, and continue from there.")
    ] = None
    figure: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw the curves: .png, .svg or .pdf (needs the extra plot).")
    ] = None
    table: Annotated[str | None, typer.Option(metavar="FILE", help="Write all points of the curves as CSV.")] = None

    def check(self, context: typer.Context, inputs: list[str]) -> None:
        """One clear error, before any work, if one of them cannot be written."""
        refuse_outputs_of_a_run(context, {f"--{name}": path for name, path in asdict(self).items()})
        check_outputs(inputs, [self.figure, self.table, self.results])
        if self.figure is not None:
            from quorate.result.figures import empty_figure, kind_of

            kind_of(self.figure)
            empty_figure(1, 1)  # says now, not after a long run, if matplotlib is missing

    def write(self, found: Simulation) -> None:
        """The points and the figure; runs were saved as they ended."""
        from quorate.storage.files.atomic import written_whole

        if self.table is not None:
            with written_whole(self.table) as stream:
                stream.write(_points(found, self.table).encode())
        if self.figure is not None:
            from quorate.active.curves import curves_figure
            from quorate.result.figures import save

            save(curves_figure(found), self.figure)


@app.command(
    epilog="Examples:\n\n"
    "quorate simulate-active crowd.jsonl --methods mv,bsc-seq,auto --results runs.jsonl --figure curves.svg\n\n"
    "quorate simulate-active crowd.jsonl --methods bsc-seq --strategies random,information --batch 100"
)
@reads
@takes_groups
def simulate_active(
    context: typer.Context,
    inputs: Inputs,
    methods: Annotated[str, typer.Option(metavar="NAMES", help="Separated by commas; see 'quorate methods'.")] = (
        "mv,bsc-seq,auto"
    ),
    strategies: Annotated[
        str, typer.Option(metavar="NAMES", help="Separated by commas; those of 'quorate next'.")
    ] = "least-confidence",
    repeats: Annotated[int, typer.Option(help="Runs of each, with other initial labels.")] = 10,
    initial: Annotated[int, typer.Option(help="Labels to begin with.")] = 500,
    batch: Annotated[int, typer.Option(help="Documents asked for between two fits.")] = 500,
    max_labels: Annotated[int, typer.Option(help="Labels to end with.")] = 10_000,
    passes: Annotated[int, typer.Option(help="Passes of each fit.")] = 5,
    split: Annotated[str | None, typer.Option(metavar="NAME", help="Score only documents of this split.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of the choice of initial labels.")] = 0,
    *,
    files: CurveFiles,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    jobs: Annotated[int | None, typer.Option(help="Runs at the same time; all cores if not given.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    reading: Reading,
) -> None:
    """Replay a crowd with all labels known: how good is each method when labels are asked for one batch at a time?"""
    from quorate.active.simulation import Plan
    from quorate.active.simulation import simulate_active as run_all

    files.check(context, inputs)
    plan = Plan(initial, batch, max_labels, passes, seed)
    corpus = reading.corpus(inputs)
    if not quiet:
        say_notes(corpus)
    with bar("simulating", quiet) as report:
        found = run_all(
            corpus,
            _names(methods),
            _names(strategies),
            repeats=repeats,
            plan=plan,
            split=split,
            results=files.results,
            jobs=jobs,
            progress=report,
        )
    files.write(found)
    if as_json:
        print_json({"split": split, "plan": plan, "curves": found.curves})
        return
    print_table(*_curve_table(found.curves), markdown=markdown, names=2)
    where = f" of split {split}" if split else ""
    print()
    tell(f"F1 of documents{where}, mean of {repeats} runs ± standard deviation, by number of labels; CEE at the end.")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8-sig") as stream:
            return stream.read().splitlines()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=path) from None
    except UnicodeDecodeError:
        raise InputError("is not a text file in UTF-8", where=path) from None


def _read_ids(path: str) -> list[str]:
    return [line.strip() for line in _lines(path) if line.strip()]


def _read_costs(path: str) -> dict[str, float]:
    from quorate.formats.table import delimiter_in

    lines = _lines(path)
    reader = csv.DictReader(lines, delimiter=delimiter_in(lines[0] if lines else ""))
    if not {"annotator", "cost"} <= set(reader.fieldnames or ()):
        raise InputError("has no columns 'annotator' and 'cost' in its first line", where=path)
    costs: dict[str, float] = {}
    for row in reader:
        name = (row["annotator"] or "").strip()
        try:
            costs[name] = float(row["cost"] or "")
        except ValueError:
            raise InputError(
                f"the cost of {name!r} is not a number: {row['cost']!r}", where=f"{path}:{reader.line_num}"
            ) from None
    return costs


def _write_advice(advice: Advice, shape: str, output: str) -> None:
    from quorate.formats.cells import as_text
    from quorate.storage.files.atomic import written_whole

    if shape == "table":
        if advice.suggestions:
            _print_suggestions(advice)
        return
    records = [suggestion._asdict() for suggestion in advice.suggestions]
    with written_whole(output) as stream:
        if shape == "jsonl":
            for record in records:
                stream.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
        else:
            rows = [
                [as_text(record["document"]), as_text(record["annotator"] or ""), *list(record.values())[2:]]
                for record in records
            ]
            stream.write(_as_csv(_COLUMNS, rows, output).encode())


def _print_suggestions(advice: Advice) -> None:
    from quorate.active.stopping import somebody_else

    new = somebody_else(advice.not_judged)  # suggested only to somebody who is alone, and so among these
    table = table_of(["document", "annotator"], ["bits", "cost", "score", "sure", "labels"])
    for document, annotator, gain, cost, score, confidence, labels in advice.suggestions:
        numbers = (f"{gain:.2f}", f"{cost:g}", f"{score:.3g}", f"{confidence:.3f}", str(labels))
        table.add_row(cell(document), cell(new if annotator is None else annotator), *numbers)
    console().print(table)


def _as_csv(columns: tuple[str, ...], rows: list[list[Any]], path: str) -> str:
    """A table for a file of this name."""
    from quorate.formats.table import delimiter_of

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", delimiter=delimiter_of(path))
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _record(advice: Advice) -> dict[str, Any]:
    """The advice for a program: what the labels should change is an estimate of the model, and says so."""
    change = advice.change
    expected = {"labels": change.labels, "expected_gain": change.mean, "share": change.share}
    return advice._asdict() | {"change": expected}


def _verdict(advice: Advice) -> list[str]:
    """The answer, and the figures that it rests on."""
    from quorate.estimators.comparison import not_judged
    from quorate.evaluate.describe import agreement_in_words

    change = advice.change
    # Where nobody is left to ask that is no advice to stop: the consensus may be good, or not.
    verdict = "" if advice.nobody_left else "stop: " if advice.stop else "go on: "
    lines = [f"{verdict}{advice.reason}", agreement_in_words(advice.agreement)]
    alone = not_judged(advice.not_judged)
    if advice.reason == alone:
        return lines
    if change.labels:
        lines.append(
            f"{counted(change.labels, 'label')} should add {round(100 * change.mean, 2) + 0.0:.2f} points to it"
        )
    return [*lines, f"note: {alone}"] if advice.not_judged else lines


def _curve_table(curves: list[Curve]) -> tuple[list[str], list[list[str]]]:
    """At most eight points of each curve."""
    longest = max(curves, key=lambda curve: len(curve.labels))
    step = max(1, -(-len(longest.labels) // 7))
    places = sorted({*range(0, len(longest.labels), step), len(longest.labels) - 1})
    rows = []
    for curve in curves:
        shown = [
            f"{100 * curve.f1[place]:.1f} ± {100 * curve.f1_spread[place]:.1f}" if place < len(curve.labels) else "–"
            for place in places
        ]
        rows.append([curve.method, curve.strategy, *shown, f"{curve.cee[-1]:.2f}"])
    return ["method", "strategy", *(f"{longest.labels[place]:,}" for place in places), "CEE"], rows


def _points(found: Simulation, path: str) -> str:
    columns = ("method", "strategy", "repeats", "labels", "f1", "f1_sd", "cee", "cee_sd")
    rows = [
        [curve.method, curve.strategy, curve.repeats, int(labels), *(f"{value:.6f}" for value in values)]
        for curve in found.curves
        for labels, *values in zip(curve.labels, curve.f1, curve.f1_spread, curve.cee, curve.cee_spread, strict=True)
    ]
    return _as_csv(columns, rows, path)
