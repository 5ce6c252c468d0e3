"""Commands that show: report, plot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorate.cli.common import (
    READING,
    Inputs,
    LayeredReading,
    Quiet,
    Threads,
    app,
    check_outputs,
    fit_progress,
    reads,
    say,
    say_notes,
    typed,
)
from quorate.cli.job import make_report
from quorate.cli.known import KnownLabels, KnownOption
from quorate.cli.layers import documents_for, loaded, of_layer
from quorate.cli.project_audits import tells_of_another_fit
from quorate.cli.project_run import Project, refuse_outputs_of_a_run
from quorate.cli.settings import settings_from_file
from quorate.errors import SettingsError
from quorate.limits import size_in_words

if TYPE_CHECKING:
    from quorate.estimators.bsc import BSC
    from quorate.estimators.crf_ma import CRFMA
    from quorate.estimators.voting import MajorityVote
    from quorate.formats.layers import Layers

LayerOption = Annotated[
    str | None, typer.Option("--layer", metavar="NAME", help="Of a model in layers, the one to draw.")
]

_OF_A_REPORT = {"output", "documents", "groups", "split", "title", "audit", "quiet", "threads"}  # whatever is combined

plot = typer.Typer(no_args_is_help=True, help="Draw figures for papers, as PDF, PNG or SVG.")
app.add_typer(plot, name="plot")


@app.command(
    epilog="Examples:\n\n"
    "quorate report crowd.jsonl -o report.html\n\n"
    "quorate report crowd.jsonl -o report.html --known review.jsonl\n\n"
    "quorate report crowd.jsonl -o report.html --audit audit.jsonl\n\n"
    "quorate report crowd.jsonl -o report.html --audit audit.jsonl --audit corrections.jsonl\n\n"
    "quorate report new.jsonl --model crowd.quorate -o report.html --documents all"
)
@reads
def report(
    context: typer.Context,
    inputs: Inputs,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The HTML file to write; - for standard output.")
    ] = "report.html",
    method: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What combines the annotations: see 'quorate methods' (default auto)."),
    ] = None,
    settings: Annotated[str | None, typer.Option(metavar="FILE", help="Settings that 'tune' wrote.")] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Apply a saved model instead of fitting one ('aggregate --save')."),
    ] = None,
    known: KnownOption = None,
    audit: Annotated[
        list[str] | None,
        typer.Option(
            "--audit",
            metavar="FILE",
            help="A plan of 'quorate audit plan', to check its documents in the report; or, with what was checked, "
            "to show the outcome; may be repeated.",
        ),
    ] = None,
    documents: Annotated[
        str, typer.Option(metavar="N|all", help="How many documents to show, the least certain first.")
    ] = "300",
    groups: Annotated[
        int | None, typer.Option(help="Into how many groups to put annotators; chosen if not given.")
    ] = None,
    split: Annotated[str | None, typer.Option(metavar="NAME", help="Compare with the gold of this split only.")] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The heading; the names of the inputs if not given.")
    ] = None,
    scheme: Annotated[
        str | None,
        typer.Option(metavar="SCHEME", help="How tags mark spans: bio, bioes, io or plain; inferred if not given."),
    ] = None,
    threads: Threads = None,
    quiet: Quiet = False,
    *,
    reading: LayeredReading,
) -> None:
    """Write a report that anyone can open: the consensus, its annotators and its doubtful documents in one HTML file.

    It contains everything it needs and loads nothing from the network. Corrections made in it can be exported and given
    back with --known. With --audit it has the documents of an audit to check, or what the audit found. Layers have a
    whole report each, in the same file.
    """
    from quorate.estimators.layered import LayeredModel
    from quorate.formats.registry import check_report_name

    shown = _how_many(documents)
    if groups is not None and groups < 1:
        raise SettingsError(f"--groups must be 1 or more, not {groups}")
    refuse_outputs_of_a_run(context, {"-o": output})
    known = known if model is None or typed(context, "known") else None
    certain = KnownLabels(context, known, inputs, reading.options["max_size"])
    fits_anew = typed(context, "method", "settings", "scheme") or certain.inline or certain.files
    if model is not None and fits_anew:
        raise SettingsError("--model brings its own method, settings, scheme and known labels (leave those out)")
    others = [name for name in (model, settings, *(audit or ())) if name is not None]
    check_outputs([*inputs, *others, *certain.files], [output])
    check_report_name(output)
    options: dict[str, Any] = {"documents": shown, "groups": groups, "split": split, "title": title}
    options |= {"audit": audit, "max_size": reading.options["max_size"]}
    if model is not None:
        fitted = loaded(model).set_params(n_jobs=threads)
        layers = documents_for(fitted, reading, inputs)
        _check_audit(audit, layers)
        make_report(fitted, fitted.combine(layers), output, inputs=inputs, quiet=quiet, **options)
    elif (own := _own_project(context)) is not None:
        layers = _report_as_a_run(own, output, threads, quiet, options)
    else:
        made = LayeredModel(_estimator(method, settings, {"scheme": scheme, "n_jobs": threads}))
        layers, labels = certain.of_layers(reading.layers(inputs), quiet=quiet)
        _check_audit(audit, layers)
        with fit_progress(quiet) as after_pass:
            made.fit(layers, known=labels, progress=after_pass)
        with tells_of_another_fit(None if (project := Project.around(context)) is None else project.store):
            make_report(made, None, output, inputs=inputs, known=labels, quiet=quiet, **options)
    if not quiet:
        _tell_of_report(layers, output)


def _tell_of_report(layers: Layers, output: str) -> None:
    say_notes(layers.corpus)
    if output != "-":
        say([f"{output} ({size_in_words(Path(output).stat().st_size)}): open it in a browser"])


def _estimator(method: str | None, settings: str | None, chosen: dict[str, Any]) -> BSC | CRFMA | MajorityVote:
    """What combines: with the settings of a file, and with those ``chosen`` that are not ``None``."""
    from quorate.estimators.methods import DEFAULT_METHOD, estimator

    method, tuned = settings_from_file(settings, method)
    given = {name: value for name, value in chosen.items() if value is not None}
    return estimator(method or DEFAULT_METHOD, **{**tuned, **given})


def _own_project(context: typer.Context) -> Project | None:
    """The project that a report is about; ``None`` if it is about other inputs, or if they are combined otherwise."""
    project = Project.around(context)
    if project is None or typed(context, "inputs", "method", "settings", "scheme", "known", "layers", *READING):
        return None
    return project if project.file.options.get("report", {}).keys() <= _OF_A_REPORT else None


def _report_as_a_run(
    project: Project, output: str, threads: int | None, quiet: bool, options: dict[str, Any]
) -> Layers:
    """Write the report on what 'quorate run' makes of a project; where nothing is new, that is the last version."""
    job = project.job()
    machine = replace(job.machine, n_jobs=threads)
    job = replace(job, machine=machine, telling=replace(job.telling, quiet=quiet), reports=True)
    layers, known = job.read()
    _check_audit(options["audit"], layers)
    done = job.fit((layers, known))
    latest = project.store.latest if project.is_of_last_version() else None
    chosen = options | {"known": known, "version": None if latest is None else latest.number, "quiet": quiet}
    with tells_of_another_fit(project.store):
        make_report(done.fitted, None, output, inputs=job.inputs, **chosen)
    return layers


def _check_audit(audit: list[str] | None, layers: Layers) -> None:
    """One clear error, before the fit, if there is no report of an audit."""
    if audit and layers.marked.single is None:
        raise SettingsError(
            "--audit is for a report without layers (quorate audit result has the scores of one in layers)"
        )


def _how_many(documents: str) -> int | None:
    if documents == "all":
        return None
    if not documents.isdecimal():
        raise SettingsError(f"--documents {documents!r} is not a number, nor 'all'")
    return int(documents)


@plot.command(
    epilog="Examples:\n\n"
    "quorate plot annotators crowd.quorate -o figure.pdf --groups 5\n\n"
    "quorate plot annotators crowd.quorate -o ana.png --annotator ana\n\n"
    "quorate plot annotators crowd.quorate -o bars.svg --bars --previous O,B-PER"
)
def annotators(
    context: typer.Context,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that 'aggregate --save' wrote.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="A name that ends in .pdf, .png or .svg.")
    ],
    groups: Annotated[
        int | None, typer.Option(help="Into how many groups to put annotators; chosen if not given.")
    ] = None,
    annotator: Annotated[str | None, typer.Option(metavar="NAME", help="Draw one annotator instead of groups.")] = None,
    previous: Annotated[
        str | None,
        typer.Option(metavar="LABELS", help="Previous labels to show, separated by commas; all if not given."),
    ] = None,
    bars: Annotated[bool, typer.Option("--bars", help="Bars in 3D instead of heat maps.")] = False,
    layer: LayerOption = None,
) -> None:
    """Draw what annotators say given the truth, a column per group, a row per previous label (the paper's Figure 1)."""
    from quorate.result import figures

    figures.kind_of(output)
    refuse_outputs_of_a_run(context, {"-o": output})
    check_outputs([model], [output])
    fitted = of_layer(loaded(model), layer)
    labels = None if previous is None else [label.strip() for label in previous.split(",") if label.strip()]
    figure = figures.annotators_figure(
        fitted.annotators_, fitted.tagset_, groups=groups, name=annotator, bars=bars, previous=labels
    )
    figures.save(figure, output)


@plot.command(epilog="Example: quorate plot trace crowd.quorate -o bound.pdf")
def trace(
    context: typer.Context,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that 'aggregate --save' wrote.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="A name that ends in .pdf, .png or .svg.")
    ],
    layer: LayerOption = None,
) -> None:
    """Draw the bound of a fit, pass by pass."""
    from quorate.result import figures

    figures.kind_of(output)
    refuse_outputs_of_a_run(context, {"-o": output})
    check_outputs([model], [output])
    figures.save(figures.trace_figure(of_layer(loaded(model), layer).trace_), output)
