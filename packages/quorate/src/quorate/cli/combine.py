"""Commands that combine annotations: aggregate, predict, annotators, methods, demo."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import quorate
from quorate.cli.common import (
    Inputs,
    Json,
    LayeredReading,
    Threads,
    app,
    check_json,
    check_outputs,
    console,
    reads,
    tell,
)
from quorate.cli.job import Job, takes_a_job
from quorate.cli.layers import documents_for, loaded, of_layer
from quorate.cli.options import Telling, Writing, takes_groups
from quorate.cli.project_audits import tells_of_another_fit
from quorate.cli.project_run import Project, model_meant, refuse_outputs_of_a_run
from quorate.cli.settings import Given, takes_output_settings
from quorate.cli.summaries import predict_summary
from quorate.cli.tables import print_json
from quorate.errors import SettingsError

if TYPE_CHECKING:
    from quorate.result.annotators import AnnotatorSummaries, AnnotatorSummary
    from quorate.result.sources import Sources

_SHARES = ("found", "exact", "shifted", "type", "missed", "invented", "confirmed", "coverage")
_COLUMNS = ("name", "labels", "accuracy", "informativeness", *_SHARES)
_WIDE = 120  # columns of a terminal that has room for every interval


@app.command(
    epilog="Examples:\n\n"
    "quorate aggregate crowd.jsonl -o consensus.jsonl\n\n"
    "quorate aggregate shards/ -o consensus.jsonl --save crowd.quorate --probabilities\n\n"
    "quorate aggregate crowd.jsonl -o sure.jsonl --accept 0.95 --review unsure.jsonl\n\n"
    "quorate aggregate crowd.jsonl -o sure.jsonl --precision 0.9 --checked audit.jsonl\n\n"
    "quorate aggregate crowd.jsonl -o consensus.jsonl --tagger crf\n\n"
    "zcat crowd.jsonl.gz | quorate aggregate - --method mv > votes.jsonl"
)
@takes_a_job
def aggregate(context: typer.Context, job: Job) -> None:
    """Combine annotations into one sequence per document, with confidence."""
    refuse_outputs_of_a_run(context, job.outputs)
    job.check()
    project = Project.around(context)
    done = job.fit()
    with tells_of_another_fit(None if project is None else project.store):
        job.write(done)
    if job.telling.tells:
        job.telling.tell(done.summary(job))


@app.command(
    epilog="Examples:\n\n"
    "quorate predict crowd.quorate new.jsonl -o consensus.jsonl\n\n"
    "quorate predict crowd.quorate new.jsonl -o sure.jsonl --precision 0.95"
)
@reads
@takes_output_settings
@takes_groups
def predict(
    context: typer.Context,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that 'aggregate --save' wrote.")],
    inputs: Inputs,
    writing: Writing,
    telling: Telling,
    threads: Threads = None,
    *,
    given: Given,
    reading: LayeredReading,
) -> None:
    """Apply a saved model to new documents, from annotators old and new, or from none.

    A model in layers divides their spans into the same layers.
    """
    refuse_outputs_of_a_run(context, {"-o": writing.output})
    writing.check()
    check_json(telling.as_json, writing.output)
    check_outputs([model, *inputs], [writing.output], writing.to)
    fitted = loaded(model).set_params(n_jobs=threads).set_params(**given.anew())
    result = fitted.combine(documents_for(fitted, reading, inputs))
    not_written = writing.write(result if result.single is None else result.single, quiet=telling.quiet)
    if telling.tells:
        summary = predict_summary(result, model, {"consensus": writing.output})
        telling.tell(summary._replace(notes=[*summary.notes, *not_written]))


@app.command(epilog="Example: quorate annotators crowd.quorate --sort accuracy")
def annotators(
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL", help="A file that 'aggregate --save' wrote; in a project, that of the last version."
        ),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help=f"{', '.join(_COLUMNS)}; by default informativeness, and for rules confirmed."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show whom to trust among the annotators of a saved model, and who makes the same mistakes."""
    from quorate.cli.annotator_tables import annotator_record
    from quorate.estimators.comparison import compared_with_nobody, too_little_overlap

    with model_meant(context, model) as path:
        layers = loaded(path)
    for name in layers.models_:
        fitted = of_layer(layers, name)
        alone, apart = compared_with_nobody(fitted), too_little_overlap(fitted)
        rows = _sorted(fitted.annotators_, sort, fitted.sources_)
        if sort not in ("name", "labels"):  # what the others are sorted by is not known of them
            rows.sort(key=lambda row: row.name in alone or row.name in apart)
        if not as_json:
            if name:
                tell(f"layer {name}")
            _print_annotators(rows, fitted.sources_, alone, apart)
            continue
        for row in rows:
            tags = {"tags": fitted.tagset_.labels, "matrix": row.matrix}
            print_json(
                ({"layer": name} if name else {}) | annotator_record(row, fitted.sources_, (*alone, *apart)) | tags
            )


@app.command()
def methods(as_json: Json = False) -> None:
    """List the methods."""
    from quorate.estimators.methods import METHODS

    if as_json:
        print_json([{"name": name, "description": method.description} for name, method in METHODS.items()])
        return
    width = max(map(len, METHODS)) + 2
    for name, method in METHODS.items():
        tell(f"{name:<{width}}{method.description}", indent=width)


@app.command(epilog="Example: quorate demo --write crowd.jsonl, then quorate aggregate crowd.jsonl")
def demo(
    write: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write the sample crowd to this file, as JSONL.")
    ] = None,
) -> None:
    """Combine a small sample crowd (simulated) and compare the consensus with gold."""
    from quorate.cli.demo import show, write_sample

    corpus = quorate.sample()
    if write is not None:
        write_sample(corpus, Path(write))
    show(corpus, console(), written=write)


def _sorted(summaries: AnnotatorSummaries, column: str | None, sources: Sources) -> list[AnnotatorSummary]:
    """By a column, the most first; without one by what they tell, and rules by what of theirs is surely right."""
    from quorate.result.sources import SourceKind

    if column is not None and column not in _COLUMNS:
        raise SettingsError(f"--sort {column!r} is not a column (one of: {', '.join(_COLUMNS)})")
    rows = list(summaries)
    if column == "name":
        return rows
    if column is None:
        is_rule = {row.name: sources.kind(row.name) is SourceKind.RULES for row in rows}
        others = sorted((row for row in rows if not is_rule[row.name]), key=lambda row: -row.informativeness)
        rules = (row for row in rows if is_rule[row.name])
        return [*others, *sorted(rules, key=lambda row: -row.habits.interval("precision")[0])]
    column = {"labels": "n_labels", "type": "wrong_type", "confirmed": "precision"}.get(column, column)
    return sorted(rows, key=lambda row: -getattr(row, column) if getattr(row, column) == getattr(row, column) else 1.0)


def _print_annotators(
    rows: list[AnnotatorSummary], sources: Sources, alone: Sequence[str], apart: Sequence[str]
) -> None:
    from quorate.cli.annotator_tables import tables_by_kind
    from quorate.estimators.comparison import hardly_overlap, not_judged

    shown = console()
    for n, (heading, table) in enumerate(
        tables_by_kind(rows, sources, wide=shown.width >= _WIDE, alone={*alone, *apart})
    ):
        if n:
            print()
        if heading:
            print(heading)
        shown.print(table)
    lines = [str(together) for together in sources.together]
    if alone:
        lines.append(not_judged(alone))
    if apart:
        lines.append(hardly_overlap(apart))
    if lines:
        print()
    for line in lines:
        tell(line)
