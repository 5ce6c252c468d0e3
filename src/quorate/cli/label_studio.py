"""Commands about a Label Studio server."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer

from quorate.cli.common import LayersOption, Quiet, app, fit_progress, say, wants_layers
from quorate.errors import InputError, SettingsError

_KEY = "LABEL_STUDIO_API_KEY"
_LONGEST_PAUSE = 300.0
_LONGEST_WATCH = 1e9  # thirty years: what a clock can wait for has an end

label_studio = typer.Typer(
    no_args_is_help=True, help="Label Studio, live: the consensus of a project as predictions in it."
)
app.add_typer(label_studio, name="label-studio")


@label_studio.callback()
def _group() -> None:
    """Label Studio, live: the consensus of a project as predictions in it."""


@label_studio.command(
    epilog=f"The key is read from the environment variable {_KEY}, never from the command line.\n\n"
    "Examples:\n\n"
    "quorate label-studio sync --url http://localhost:8080 --project 3\n\n"
    "quorate label-studio sync --url https://labels.example.com --project 3 --watch 300"
)
def sync(
    url: Annotated[str, typer.Option("--url", metavar="URL", help="The address of the server.")],
    project: Annotated[int, typer.Option("--project", metavar="NUMBER", help="The number of the project.")],
    method: Annotated[str | None, typer.Option(metavar="NAME", help="See 'quorate methods' (default auto).")] = None,
    model_version: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the predictions; 'quorate METHOD' if not given.")
    ] = None,
    all_tasks: Annotated[
        bool, typer.Option("--all-tasks", help="Also predict tasks that nobody has annotated, from their words.")
    ] = False,
    with_predictions: Annotated[
        bool, typer.Option("--with-predictions", help="Other models' predictions are annotators too.")
    ] = False,
    map_labels: Annotated[
        str | None, typer.Option(metavar="OLD=NEW,…|FILE", help="Rename, merge or drop labels.")
    ] = None,
    map_annotators: Annotated[
        str | None, typer.Option(metavar="OLD=NEW,…|FILE", help="Make two accounts one; names are users' numbers.")
    ] = None,
    annotators: Annotated[
        str | None, typer.Option(metavar="FILE", help="JSON: kind, trust, abstention, group of some annotators.")
    ] = None,
    offsets: Annotated[
        str | None,
        typer.Option(metavar="UNIT", help="code-points or utf-16, where the project's own words cannot tell."),
    ] = None,
    layers: LayersOption = "none",
    watch: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Sync again whenever this time has passed; Ctrl-C ends it.")
    ] = None,
    attempts: Annotated[int, typer.Option(help="How often to try a request that fails.")] = 5,
    max_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Most that an answer or a task may hold (default 1G).")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Pull a project's annotations, combine them, and write the consensus back as predictions with scores.

    Sort the Data Manager by prediction score to see which tasks need another label. A second run changes only what
    changed. Annotations marked as ground truth are taken as certain.
    """
    from quorate.estimators.methods import DEFAULT_METHOD
    from quorate.label_studio import Client
    from quorate.label_studio import sync as run

    key = os.environ.get(_KEY, "")
    if not key:
        raise SettingsError(f"no key (export {_KEY}=… with the access token from Account & Settings in Label Studio)")
    if watch is not None and not 0 < watch <= _LONGEST_WATCH:
        raise SettingsError(f"--watch must be a positive number of seconds, not {watch:g}")
    client = Client(url, key, attempts=attempts, max_size=max_size)
    reading: dict[str, Any] = {"predictions": with_predictions, "map_labels": map_labels}
    reading |= {"map_annotators": map_annotators, "annotators": annotators, "offsets": offsets, "max_size": max_size}
    seen, in_layers = "", wants_layers(layers)

    def once() -> None:
        nonlocal seen
        with fit_progress(quiet) as report:
            done = run(
                client,
                project,
                method=method or DEFAULT_METHOD,
                reading=reading,
                model_version=model_version,
                all_tasks=all_tasks,
                layers=in_layers,
                seen=seen,
                progress=report,
            )
        if done is not None:
            seen = done.fingerprint
            if not quiet:
                say([f"project {project}: {done.sentence()}", *(f"note: {note}" for note in done.notes)])

    if watch is None:
        once()
    else:
        _again_and_again(once, watch, quiet)


def _again_and_again(once: Callable[[], None], seconds: float, quiet: bool) -> NoReturn:
    """Until it is interrupted; a server that is away is asked again after longer and longer pauses."""
    from quorate.label_studio import NoAnswerError

    wait, away = seconds, False
    while True:
        try:
            once()
        except NoAnswerError as error:
            say([f"{error}; trying again in {wait:g} s"])
            time.sleep(wait)
            wait, away = min(2 * wait, max(seconds, _LONGEST_PAUSE)), True
            continue
        except InputError as error:
            if not quiet:
                say([str(error)])  # nothing to combine yet: there may be next time
        if away:
            say(["the server answers again"])
        wait, away = seconds, False
        time.sleep(wait)
