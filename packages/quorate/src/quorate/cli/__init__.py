"""The command line: parse, call the API, print, exit code. 0 is success, 2 an error in what was given."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer

import quorate
from quorate.cli import ask, audit, combine, convert, data, label_studio, measure, project, reviews, show, update
from quorate.cli.common import app, say
from quorate.cli.project_options import take_project_defaults
from quorate.cli.settings import in_options
from quorate.errors import QuorateError, RenamedWarning, SettingsError

__all__ = [
    "answer",
    "app",
    "ask",
    "audit",
    "combine",
    "convert",
    "data",
    "label_studio",
    "main",
    "measure",
    "project",
    "reviews",
    "show",
    "update",
]


_INTERRUPTED = 130  # what a shell expects of a command that was stopped with Ctrl-C
_GONE = (OSError, ValueError, AttributeError)  # of a stream: nobody reads it, it was closed, there was none


def main() -> None:
    """The process of a command."""
    # A corpus is many objects that stay: looking through them again and again for garbage finds none, and once more
    # at the end takes longer than a small fit.
    gc.set_threshold(200_000, 20, 100)
    atexit.register(gc.freeze)
    try:
        answer()
    except SystemExit as end:
        if end.code != _INTERRUPTED:
            raise
        _say_stopped()
        # Compiled code may still run on threads, and need not be waited for; to take the interpreter down around it
        # can crash.
        os._exit(_INTERRUPTED)


def _say_stopped() -> None:
    """Send off what was printed, and say that it was stopped, as far as there is anybody to hear it.

    All files that were open are closed by now: what was not complete is gone, and those of before are as they were.
    Only a file or a pipe behind standard output may have got a part of what was to go there.
    """
    message = "stopped"
    with suppress(*_GONE):
        sys.stdout.flush()
        if sys.stdout.isatty():
            message += "; no file is left half-written"
    with suppress(*_GONE):
        say([message])
        sys.stderr.flush()


def answer() -> None:
    """Run the command line; what goes wrong becomes one line and exit code 2."""
    try:
        with _noted():
            app()
    except QuorateError as error:
        say([in_options(str(error)) if isinstance(error, SettingsError) else str(error)])
        sys.exit(2)
    except MemoryError as error:
        what = f": {str(error)[:200]}" if str(error) else ""
        print(f"quorate: not enough memory{what} (give less at once, or see docs/speed.md)", file=sys.stderr)
        sys.exit(2)
    except RecursionError:
        print("quorate: something in the input is nested too deeply (look for brackets without end)", file=sys.stderr)
        sys.exit(2)
    except OSError as error:  # standard output on a full disk, say
        say([f"cannot be written: {error.strerror or error}"])
        sys.exit(2)


@contextmanager
def _noted() -> Iterator[None]:
    """Warnings about names of before become notes on standard error; others are shown as they always are."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", RenamedWarning)
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, RenamedWarning):
                say([f"note: {message}"])
            else:
                shown(message, category, *where, **more)

        warnings.showwarning = show
        yield


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"quorate {quorate.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    in_project: Annotated[
        bool,
        typer.Option(
            "--project/--no-project",
            show_default=False,
            help="Use, or ignore, the quorate.toml in this folder or above.",
        ),
    ] = True,
) -> None:
    """Combine the span annotations of many people, models and rules, who disagree, into one consensus per document."""
    if in_project:
        take_project_defaults(context)
