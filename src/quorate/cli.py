"""The command line: parse, call the API, print, exit code. 0 is success, 2 an error in what was given."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

import quorate
from quorate.errors import QuorateError, SettingsError

if TYPE_CHECKING:
    from rich.console import Console

    from quorate.api import BSC, Known, MajorityVote, ProgressCallback
    from quorate.decode import Result
    from quorate.summaries import AnnotatorSummaries

__all__ = ["app", "main"]

app = typer.Typer(
    name="quorate",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="One trustworthy sequence from the noisy span annotations of many people, models and rules.",
)

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT…", help="JSONL or CoNLL files, plain or .gz, folders of them, or - for standard input."
    ),
]
Output = Annotated[
    str,
    typer.Option("--output", "-o", metavar="FILE", help="Where the consensus goes, as JSONL; - for standard output."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No summary and no progress bar.")]
Format = Annotated[
    str | None, typer.Option("--from", metavar="FORMAT", help="jsonl or conll; seen from the content if not given.")
]
Probabilities = Annotated[
    bool, typer.Option("--probabilities", help="Also write the probability of every label at every token.")
]
Threads = Annotated[int | None, typer.Option(help="How many threads; all cores if not given.")]

_DATA = "What is read"
_MODEL = "The model"
_OUT = "What is written"


def main() -> None:
    """Run the command line; every error of this package becomes one line and exit code 2."""
    try:
        app()
    except QuorateError as error:
        print(f"quorate: {error}", file=sys.stderr)
        sys.exit(2)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"quorate {quorate.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """One trustworthy sequence from the noisy span annotations of many people, models and rules."""


@app.command(
    epilog="Examples:\n\n"
    "quorate aggregate crowd.jsonl -o consensus.jsonl\n\n"
    "quorate aggregate shards/ -o consensus.jsonl --save crowd.quorate --probabilities\n\n"
    "zcat crowd.jsonl.gz | quorate aggregate - --method mv > votes.jsonl"
)
def aggregate(
    inputs: Inputs,
    output: Output = "-",
    method: Annotated[
        str, typer.Option(metavar="NAME", help="See 'quorate methods'.", rich_help_panel=_MODEL)
    ] = "bsc-seq",
    from_format: Format = None,
    scheme: Annotated[
        str | None,
        typer.Option(metavar="SCHEME", help="bio, bioes, io or plain; inferred if not given.", rich_help_panel=_DATA),
    ] = None,
    invalid: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Tags that cannot follow the one before: repair (default), keep or error.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    known: Annotated[
        str,
        typer.Option(
            metavar="none|inline|FILE",
            help="Labels taken as certain: none, the gold in the input, or the gold in another file.",
            rich_help_panel=_DATA,
        ),
    ] = "none",
    max_passes: Annotated[
        int | None, typer.Option(help="Most passes of the fit [default: 20].", rich_help_panel=_MODEL)
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Relative gain of the bound at which to stop.", rich_help_panel=_MODEL)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Perturbs the start.", rich_help_panel=_MODEL)] = None,
    restarts: Annotated[
        int | None, typer.Option(help="Starts to try; the best bound is kept [default: 1].", rich_help_panel=_MODEL)
    ] = None,
    start: Annotated[
        str | None, typer.Option(metavar="START", help="votes (default) or prior.", rich_help_panel=_MODEL)
    ] = None,
    no_text: Annotated[bool, typer.Option("--no-text", help="Leave the words out.", rich_help_panel=_MODEL)] = False,
    truth: Annotated[
        str | None,
        typer.Option(metavar="TRUTH", help="markov (default), independent or uniform.", rich_help_panel=_MODEL),
    ] = None,
    alpha0: Annotated[
        float | None, typer.Option(help="Annotators: prior count of every label.", rich_help_panel=_MODEL)
    ] = None,
    epsilon0: Annotated[
        float | None, typer.Option(help="Annotators: prior count more for the right one.", rich_help_panel=_MODEL)
    ] = None,
    gamma0: Annotated[float | None, typer.Option(help="Transitions: prior count.", rich_help_panel=_MODEL)] = None,
    kappa0: Annotated[float | None, typer.Option(help="Words: prior count.", rich_help_panel=_MODEL)] = None,
    zeros: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="Prior mass of forbidden labels: moved or dropped.", rich_help_panel=_MODEL),
    ] = None,
    temper: Annotated[
        float | None, typer.Option(help="Trust in annotators' evidence, above 0 to 1.", rich_help_panel=_MODEL)
    ] = None,
    ties: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="For mv: entity-first (default) or outside-first.", rich_help_panel=_MODEL),
    ] = None,
    decode: Annotated[
        str | None,
        typer.Option(
            metavar="WAY", help="sequence (default): the best valid one; token: each by itself.", rich_help_panel=_OUT
        ),
    ] = None,
    probabilities: Probabilities = False,
    save: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Keep the fitted model in this file.", rich_help_panel=_OUT)
    ] = None,
    meta: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write version, settings and hashes of the input as JSON.", rich_help_panel=_OUT
        ),
    ] = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Combine annotations into one sequence per document, with confidence."""
    from quorate.api import BSC, estimator

    chosen: dict[str, Any] = {
        "scheme": scheme,
        "invalid": invalid,
        "max_passes": max_passes,
        "tolerance": tolerance,
        "seed": seed,
        "restarts": restarts,
        "start": start,
        "text": False if no_text else None,
        "truth": truth,
        "alpha0": alpha0,
        "epsilon0": epsilon0,
        "gamma0": gamma0,
        "kappa0": kappa0,
        "zeros": zeros,
        "temper": temper,
        "ties": ties,
        "decode": decode,
        "threads": threads,
    }
    model = estimator(method, **{name: value for name, value in chosen.items() if value is not None})
    if save is not None and not isinstance(model, BSC):
        raise SettingsError(f"method {method!r} has nothing to save (leave out --save)")
    corpus = quorate.read(*inputs, format=from_format)
    with _progress(quiet) as report:
        model.fit(corpus, known=_known(known), progress=report)
    if save is not None and isinstance(model, BSC):
        model.save(save)
    _write(model.result_, output, probabilities)
    if meta is not None:
        _write_meta(method, model, meta)
    if not quiet:
        _summary(model.result_, method, inputs, known)


@app.command(epilog="Example: quorate predict crowd.quorate new.jsonl -o consensus.jsonl")
def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that 'aggregate --save' wrote.")],
    inputs: Inputs,
    output: Output = "-",
    from_format: Format = None,
    probabilities: Probabilities = False,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Apply a saved model to new documents, from annotators old and new, or from none."""
    fitted = quorate.load(model).set_params(threads=threads)
    result = fitted.combine(quorate.read(*inputs, format=from_format))
    _write(result, output, probabilities)
    if not quiet:
        _summary(result, f"model {model}", inputs, "none")


@app.command(epilog="Example: quorate annotators crowd.quorate --sort accuracy")
def annotators(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that 'aggregate --save' wrote.")],
    sort: Annotated[
        str, typer.Option(metavar="COLUMN", help="name, labels, accuracy or informativeness.")
    ] = "informativeness",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object an annotator, with the matrices.")] = False,
) -> None:
    """Show whom to trust: the annotators of a saved model."""
    fitted = quorate.load(model)
    rows = _sorted(fitted.annotators_, sort)
    if as_json:
        for row in rows:
            record = {"name": row.name, "labels": row.labels, "accuracy": _finite(row.accuracy)}
            record |= {"informativeness": row.informativeness, "tags": fitted.tagset_.labels}
            print(json.dumps(record | {"matrix": row.matrix.round(6).tolist()}))
        return
    _print_annotators(rows)


@app.command()
def methods() -> None:
    """List the methods."""
    from quorate.api import METHODS

    width = max(map(len, METHODS))
    for name, method in METHODS.items():
        print(f"{name:<{width}}  {method.description}")


@app.command(epilog="Example: quorate demo --write crowd.jsonl, then quorate aggregate crowd.jsonl")
def demo(
    write: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write the sample crowd to this file, as JSONL.")
    ] = None,
) -> None:
    """Combine a small sample crowd (simulated) and compare the consensus with gold."""
    from quorate.demo import show
    from quorate.files import written_whole
    from quorate.formats import jsonl

    corpus = quorate.sample()
    if write is not None:
        with written_whole(write) as stream:
            jsonl.write_corpus(corpus, stream)
    show(corpus, _console())


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=False)


@contextmanager
def _progress(quiet: bool) -> Iterator[ProgressCallback | None]:
    """A progress bar on a terminal; nothing in a pipe."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("fitting"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[bound]}"))
    with Progress(*columns, TimeRemainingColumn(), console=_console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, bound="")

        def report(step: Any) -> None:
            total = step.max_passes * step.n_starts
            done = step.max_passes * step.start + step.passes
            bar.update(task, total=total, completed=done, bound=f"bound {step.bound:,.1f}")

        yield report


def _known(known: str) -> Known:
    if known == "none":
        return None
    if known == "inline":
        return "inline"
    tags = {document.id: document.gold for document in quorate.read(known) if document.gold is not None}
    if not tags:
        raise SettingsError(f"--known {known}: no document in it has 'gold'")
    return tags


def _write(result: Result, output: str, probabilities: bool) -> None:
    from quorate.files import written_whole
    from quorate.formats import jsonl

    with written_whole(output) as stream:
        jsonl.write(result, stream, probabilities=probabilities)


def _write_meta(method: str, model: BSC | MajorityVote, path: str) -> None:
    from quorate.files import written_whole

    with written_whole(path) as stream:
        stream.write(json.dumps({"method": method, **model.meta_}, indent=2, ensure_ascii=False).encode() + b"\n")


def _summary(result: Result, method: str, inputs: list[str], known: str) -> None:
    """A few plain lines on standard error."""
    tokens = sum(len(document.tokens) for document in result.corpus)
    idle = [row.name for row in result.annotators if not row.labels > 0]
    alone = sum(not document.annotations for document in result.corpus)
    lines = [f"{len(result):,} documents, {tokens:,} tokens, {len(result.annotators)} annotators, {method}"]
    if result.trace is not None:
        lines.append(
            f"{result.trace.passes} passes in {result.trace.seconds:.2f} s, bound {result.trace.bound:,.1f} "
            f"({result.trace.reason.value})"
        )
    if result.repaired:
        lines.append(f"{result.repaired:,} tags that could not follow the one before were repaired")
    lines += [f"note: {note}" for note in result.corpus.notes]
    if idle:
        lines.append(f"warning: no label by {_some(idle)}")
    if alone:
        lines.append(f"warning: {alone:,} documents have no annotator, and are tagged from the rest of the model")
    if known == "none" and result.corpus.has_gold:
        lines.append("note: the gold in the input was not used (--known inline uses it)")
    for line in lines:
        print(f"quorate: {line}", file=sys.stderr)


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _finite(value: float) -> float | None:
    return value if value == value else None


def _sorted(summaries: AnnotatorSummaries, column: str) -> list[Any]:
    if column not in ("name", "labels", "accuracy", "informativeness"):
        raise SettingsError(f"--sort {column!r} is not a column (one of: name, labels, accuracy, informativeness)")
    rows = list(summaries)
    if column == "name":
        return rows
    return sorted(rows, key=lambda row: -getattr(row, column) if getattr(row, column) == getattr(row, column) else 1.0)


def _print_annotators(rows: list[Any]) -> None:
    from quorate.demo import annotator_table

    _console().print(annotator_table(rows))
