"""What the commands share: the app, options that mean the same everywhere, progress, output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from quorate.estimators import ProgressCallback

__all__ = [
    "Cluster",
    "Engine",
    "Format",
    "Inputs",
    "Output",
    "Probabilities",
    "Quiet",
    "Threads",
    "app",
    "bar",
    "console",
    "fit_progress",
    "write_json",
]

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
        metavar="INPUT", help="JSONL, CoNLL or CSV files, plain or .gz, folders of them, or - for standard input."
    ),
]
Output = Annotated[
    str,
    typer.Option("--output", "-o", metavar="FILE", help="Where it goes, as JSONL; - for standard output."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No summary and no progress bar.")]
Format = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="FORMAT", help="jsonl, conll, table or parquet; seen from the content if not given."
    ),
]
Probabilities = Annotated[
    bool, typer.Option("--probabilities", help="Also write the probability of every label at every token.")
]
Threads = Annotated[int | None, typer.Option(help="How many threads; all cores if not given.")]
Engine = Annotated[
    str | None,
    typer.Option(metavar="ENGINE", help="Where passes run: threads (default), or jax for an accelerator."),
]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="A Dask scheduler whose workers run the passes: tcp://scheduler:8786."),
]


def console(*, stderr: bool = False) -> Console:
    """Where tables go: standard output, or standard error."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=False)


@contextmanager
def bar(what: str, quiet: bool) -> Iterator[Any]:
    """A progress bar on a terminal, as a function ``(done, total, note)``; ``None`` in a pipe."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"))
    with Progress(*columns, TimeRemainingColumn(), console=console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=None, note="")

        def report(done: int, total: int, note: str = "") -> None:
            shown.update(task, total=total, completed=done, note=note)

        yield report


@contextmanager
def fit_progress(quiet: bool) -> Iterator[ProgressCallback | None]:
    """A progress bar over the passes of a fit."""
    with bar("fitting", quiet) as report:
        if report is None:
            yield None
            return

        def after_pass(step: Any) -> None:
            done = step.max_passes * step.start + step.passes
            report(done, step.max_passes * step.n_starts, step.note or f"bound {step.bound:,.1f}")

        yield after_pass


def write_json(value: Any, path: str) -> None:
    """A JSON file, whole or not at all."""
    from quorate.files import written_whole

    with written_whole(path) as stream:
        stream.write(json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n")
