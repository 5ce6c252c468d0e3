"""Commands about a Label Studio server."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from quorate.cli.common import Json, LayersOption, Quiet, app, console, fit_progress, say, tell, wants_layers
from quorate.cli.tables import print_json
from quorate.errors import InputError, SettingsError

if TYPE_CHECKING:
    from quorate.label_studio import Client, Synced
    from quorate.result.result import Result

_KEY = "LABEL_STUDIO_API_KEY"
_LONGEST_PAUSE = 300.0
_MOST_SHOWN = 10  # annotators in the table of a sync
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
    method: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What combines the annotations: see 'quorate methods' (default auto)."),
    ] = None,
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
        typer.Option(
            metavar="UNIT",
            help="What offsets count, if the project does not show it: code-points or utf-16.",
        ),
    ] = None,
    layers: LayersOption = "none",
    least_change: Annotated[
        float | None,
        typer.Option(
            metavar="SCORE", help="Leave a prediction of the same spans if its scores moved by less (default 0.005)."
        ),
    ] = None,
    watch: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Sync again whenever this time has passed; Ctrl-C ends it.")
    ] = None,
    attempts: Annotated[int, typer.Option(help="How often to try a request that fails.")] = 5,
    max_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="How large an answer or a task may be (default 1G).")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Pull a project's annotations, combine them, and write the consensus back as predictions with scores.

    Sort the Data Manager by prediction score to see which tasks need another label. A second run changes only what
    changed. Annotations marked as ground truth are taken as certain.
    """
    from quorate.estimators.methods import DEFAULT_METHOD
    from quorate.label_studio import sync as run
    from quorate.label_studio.sync import LEAST_CHANGE

    if watch is not None and not 0 < watch <= _LONGEST_WATCH:
        raise SettingsError(f"--watch must be a positive number of seconds, not {watch:g}")
    client = client_of(url, attempts=attempts, max_size=max_size)
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
                least_change=LEAST_CHANGE if least_change is None else least_change,
                seen=seen,
                progress=report,
            )
        if done is not None:
            seen = done.fingerprint
            if as_json:
                print_json(_record(project, done))
            elif not quiet:
                say([f"project {project}: {done.sentence()}", *(f"note: {note}" for note in done.notes)])
                _print_result(done)

    if watch is None:
        once()
    else:
        _again_and_again(once, watch, quiet)


@dataclass(frozen=True)
class Pushing:
    """Where to show what is to be labelled next."""

    push: Annotated[
        bool, typer.Option("--push", help="Also show them in Label Studio, as a tab of the project's Data Manager.")
    ] = False
    url: Annotated[str | None, typer.Option(metavar="URL", help="With --push: the address of the server.")] = None
    project: Annotated[int | None, typer.Option(metavar="NUMBER", help="With --push: the number of the project.")] = (
        None
    )

    def client(self) -> Client | None:
        """A client of the server, if there is something to push to; one clear error if it is not said where."""
        if not self.push:
            if self.url is not None or self.project is not None:
                raise SettingsError("--url and --project go with --push (nothing is sent without it)")
            return None
        if self.url is None or self.project is None:
            raise SettingsError(
                "--push needs --url and --project (the address of the server, the number of the project)"
            )
        return client_of(self.url)

    def push_tasks(self, client: Client, asked: Sequence[tuple[str, str]], *, by_annotator: bool, quiet: bool) -> None:
        """Show tasks, of which ``asked`` has the ids and whom to ask for each, and say where."""
        from quorate.label_studio import push

        assert self.project is not None
        done = push(client, self.project, asked, by_annotator=by_annotator)
        if quiet:
            return
        lines = [f"tab '{tab.title}', {tab.tasks:,} task{'s' * (tab.tasks != 1)}: {tab.url}" for tab in done.tabs]
        if not done.tabs:
            lines = [f"project {self.project}: no task to show; earlier tabs were removed"]
        elif done.assigned is not None:
            lines.append(f"{done.assigned:,} tasks were assigned")
        else:
            lines.append("open a tab and click a task to label it; those with the lowest prediction score come first")
            if by_annotator:
                lines.append("this server has no assignments (an Enterprise feature): tell everybody their tab")
        say([*lines, *(f"note: {note}" for note in done.notes)])


def client_of(url: str, **options: Any) -> Client:
    """A client of a server, with the key that the environment has."""
    from quorate.label_studio import client

    return client.client_of(url, **options)


def _print_result(done: Synced) -> None:
    """How far annotators agree, and whom to trust."""
    from quorate.cli.annotator_tables import tables_by_kind
    from quorate.estimators.comparison import compared_with_nobody, not_judged
    from quorate.evaluate.describe import agreement_in_words, agreement_of

    if done.result is None:
        return
    for name, result in done.result.layers.items():
        if name:
            tell(f"layer {name}")
        tell(agreement_in_words(agreement_of(result)))
        rows, alone = sorted(result.annotators, key=lambda row: -row.n_labels), compared_with_nobody(result.model)
        for heading, table in tables_by_kind(rows[:_MOST_SHOWN], result.sources, alone=alone):
            if heading:
                tell(heading)
            console().print(table)
        if len(rows) > _MOST_SHOWN:
            tell(f"and {len(rows) - _MOST_SHOWN:,} more, who gave fewer labels")
        if alone:
            tell(not_judged(alone))


def _record(project: int, done: Synced) -> dict[str, Any]:
    """A sync for a program."""
    record: dict[str, Any] = {"project": project}
    record |= {name: getattr(done, name) for name in ("tasks", "created", "changed", "kept", "deleted", "notes")}
    if done.result is None:
        return record
    by_layer = {name: _record_of(result) for name, result in done.result.layers.items()}
    return record | by_layer.get("", {"layers": by_layer})


def _record_of(result: Result) -> dict[str, Any]:
    """How far annotators agree, and how good each is."""
    from quorate.cli.annotator_tables import annotator_record
    from quorate.estimators.comparison import compared_with_nobody
    from quorate.evaluate.describe import agreement_of

    alone = compared_with_nobody(result.model)
    annotators = [annotator_record(row, result.sources, alone) for row in result.annotators]
    return {"agreement": agreement_of(result), "annotators": annotators}


def _again_and_again(
    once: Callable[[], None], seconds: float, quiet: bool, pause: Callable[[float], None] = time.sleep
) -> NoReturn:
    """Until it is interrupted; one line says that a server is away, which is asked again after longer pauses."""
    from quorate.label_studio import NoAnswerError

    wait, away = seconds, False
    while True:
        try:
            once()
        except NoAnswerError as error:
            if not away:
                say([f"{error}; trying again until it answers, after {wait:g} s and then longer and longer pauses"])
            pause(wait)
            wait, away = min(2 * wait, max(seconds, _LONGEST_PAUSE)), True
            continue
        except InputError as error:
            if not quiet:
                say([str(error)])  # nothing to combine yet: there may be next time
        if away:
            say(["the server answers again"])
        wait, away = seconds, False
        pause(wait)
