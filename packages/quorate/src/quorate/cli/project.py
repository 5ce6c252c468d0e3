"""Commands of a project that lasts: init, run, status, versions, diff, restore."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from quorate.cli.common import Json, Quiet, app, cell, console, say, tell
from quorate.cli.project_audits import tells_version_audited
from quorate.cli.project_run import Outcome, Project
from quorate.cli.summaries import Summary
from quorate.cli.tables import print_json
from quorate.corpus.overlaps import Overlaps
from quorate.errors import InputError, SettingsError
from quorate.limits import size_in_words
from quorate.project.diff import Difference, DocumentChange, difference
from quorate.project.settings_file import NAME
from quorate.project.store import Version, digest_of_path
from quorate.wording import counted, in_number, person

_MOST_CHANGES = 10  # changes of inputs and settings, in a summary
_ARROWS = {"added": "+", "removed": "-", "label": "~", "bounds": "~"}
_AUDIT_ANEW = f"or take 'checked' out of {NAME}, run, and draw a new plan: quorate audit plan"
_TO_SERVE: Any = {"rich_help_panel": "To have texts annotated", "show_default": False}
Wait = Annotated[bool, typer.Option("--wait", help="Wait for another run here to end.")]
Message = Annotated[str, typer.Option("--message", "-m", metavar="TEXT", help="A note on this version.")]


@app.command(
    epilog="Examples:\n\n"
    "quorate init exports/*.json\n\n"
    "quorate init crowd.jsonl && quorate run\n\n"
    "quorate init texts.txt --labels PER,LOC --guidelines guidelines.md && quorate serve"
)
def init(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="What to combine; by default, what is found in this folder."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help=f"Replace the {NAME} that is there.")] = False,
    labels: Annotated[
        str | None,
        typer.Option("--labels", help="Have texts annotated (quorate serve), with these labels: PER,LOC.", **_TO_SERVE),
    ] = None,
    guidelines: Annotated[
        Path | None, typer.Option("--guidelines", metavar="FILE", help="How to mark, in Markdown.", **_TO_SERVE)
    ] = None,
    per_document_min: Annotated[
        int | None, typer.Option("--per-document-min", min=1, help="Annotators of a document, at least.", **_TO_SERVE)
    ] = None,
    per_document_max: Annotated[
        int | None, typer.Option("--per-document-max", min=1, help="Annotators of a document, at most.", **_TO_SERVE)
    ] = None,
    overlaps: Annotated[
        Overlaps | None, typer.Option("--overlaps", help="Which spans of one annotator may overlap.", **_TO_SERVE)
    ] = None,
) -> None:
    """Begin a project: look at the files, and write a quorate.toml with comments, to start from."""
    from quorate.project.draft import draft_settings_file
    from quorate.project.texts import read_guidelines
    from quorate.storage.files.atomic import written_whole

    path = Path.cwd() / NAME
    if path.exists() and not force:
        raise SettingsError(f"{NAME} is here already (edit it, or replace it with --force)")
    if guidelines is not None:
        read_guidelines(guidelines)
    given = {
        "labels": labels,
        "guidelines": None if guidelines is None else os.path.relpath(guidelines),
        "per-document-min": per_document_min,
        "per-document-max": per_document_max,
        "overlaps": None if overlaps is None else overlaps.value,
    }
    serve = {name: value for name, value in given.items() if value is not None}
    found = draft_settings_file(Path.cwd(), files or [], serve or None)
    for name, content in {**found.texts, NAME: found.text.encode()}.items():
        with written_whole(Path.cwd() / name) as stream:
            stream.write(content)
    say([*found.seen, f"{NAME} is written: look at it, then: quorate {'serve' if serve else 'run'}"])


@app.command(
    epilog="Examples:\n\n"
    "quorate run\n\n"
    'quorate run -m "after the second review"\n\n'
    "quorate run --fresh   # fit everything again"
)
def run(
    message: Message = "",
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Fit everything again, and keep a version even if nothing is new."),
    ] = False,
    wait: Wait = False,
    offline: Annotated[bool, typer.Option("--offline", help="Use servers' exports as they were last fetched.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Do the whole job of the project, if anything has changed, and keep the outcome as a version."""
    project = Project.here()
    with project.store.locked(wait=wait), tells_version_audited(project.store, _AUDIT_ANEW):
        if not offline:
            project.pull()
        outcome = project.run(message=message, fresh=fresh, quiet=quiet or as_json)
    _tell(outcome, as_json=as_json, quiet=quiet)


def _tell(outcome: Outcome, *, as_json: bool, quiet: bool) -> None:
    version, written = outcome.version, outcome.written
    if as_json:
        record = _record(version) | {"new": outcome.is_new, "written": written}
        print_json(Summary([], outcome.notes, [], record).as_json())
        return
    if quiet:
        return
    if not outcome.is_new:
        lines = [f"nothing has changed since version {version.number}"]
    else:
        lines = [f"version {version.number}: {_in_short(version)}"]
        if version.number > 1:
            since = f"since version {version.number - 1}"
            lines += [f"{since}: {change}" for change in version.changes[:_MOST_CHANGES]]
            if len(version.changes) > _MOST_CHANGES:
                lines.append(
                    f"{since}: {counted(len(version.changes) - _MOST_CHANGES, 'more change')} (quorate versions --json)"
                )
    say([*lines, *([f"written: {', '.join(written)}"] if written else []), *outcome.notes])


def _in_short(version: Version) -> str:
    counts = version.counts
    known = f", {counted(counts['known'], 'token')} known" if counts["known"] else ""
    return f"{counted(counts['documents'], 'document')}, {counted(counts['spans'], 'span')}{known}"


def _record(version: Version) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(version)
    return plain


@app.command(epilog="Example: quorate status || quorate run")
def status(as_json: Json = False) -> None:
    """Say what is new since the last version, and what is stale; exit code 1 if a run would change something."""
    project = Project.here()
    job, latest = project.job(), project.store.latest
    places = project.outputs(job)
    changes = project.current_state(job).changes(latest, places)
    stale = [] if latest is None else [name for name in places if not _is_current(project, latest, name)]
    overlooked = project.overlooked()
    if as_json:
        number = None if latest is None else latest.number
        print_json({"version": number, "changes": changes, "stale": stale, "overlooked": overlooked})
    elif latest is None:
        tell("no version yet: quorate run makes the first")
    elif not changes and not stale:
        tell(f"version {latest.number} of {_day(latest)} is up to date: {_in_short(latest)}")
    else:
        tell(f"version {latest.number} of {_day(latest)} is not up to date: quorate run would bring it there")
        for change in changes:
            tell(f"  {change}")
        for name in (name for name in stale if name in latest.outputs):  # others are new, and among the changes
            tell(f"  output {name}: {'changed since the run' if (project.store.root / name).exists() else 'missing'}")
    if not as_json:
        say(project.overlooked_note(overlooked))
    if latest is None or changes or stale:
        raise typer.Exit(1)


def _is_current(project: Project, latest: Version, name: str) -> bool:
    path = project.store.root / name
    return path.exists() and latest.outputs.get(name) == digest_of_path(path)


def _day(version: Version) -> str:
    return version.time[:16].replace("T", " ")


@app.command(epilog="Examples:\n\nquorate versions\n\nquorate versions --keep 20   # and forget what came before")
def versions(
    keep: Annotated[
        int | None, typer.Option(metavar="N", help="Delete all but the last N versions, and what only they contain.")
    ] = None,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """List the versions of the project, the last first."""
    from rich.table import Table

    store = Project.here().store
    if keep is not None:
        if keep < 1:
            raise SettingsError(f"--keep must be 1 or more, not {keep}")
        with store.locked(wait=wait):
            say([f"{counted(store.forget(keep), 'version')} deleted"])
    found = store.versions()[::-1]
    if as_json:
        print_json([_record(version) for version in found])
        return
    if not found:
        tell("no version yet: quorate run makes the first")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("version", "time (UTC)", "documents", "agreement"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what changed", overflow="fold")
    for version in found:
        what = version.message or "; ".join(version.changes[:3]) + ("; …" if len(version.changes) > 3 else "")
        counts = f"{version.counts['documents']:,}"
        table.add_row(str(version.number), _day(version), counts, _alpha(version.agreement), cell(what))
    console().print(table)
    tell(f"agreement: Krippendorff's alpha; {size_in_words(store.size())} on disk")


@app.command(
    epilog="Examples:\n\n"
    "quorate diff          # the last version against the one before\n\n"
    "quorate diff 12 15 --documents 20\n\n"
    "quorate diff 12 --json"
)
def diff(
    before: Annotated[
        int | None, typer.Argument(metavar="FROM", help="A version; the one before TO if not given.")
    ] = None,
    after: Annotated[int | None, typer.Argument(metavar="TO", help="Another; the last if not given.")] = None,
    documents: Annotated[int, typer.Option(metavar="N", help="How many documents to show.")] = 10,
    as_json: Json = False,
) -> None:
    """Show what changed between two versions: documents, spans, annotators, agreement, and what decided it."""
    store = Project.here().store
    latest = store.latest
    if latest is None:
        raise InputError("no version yet (quorate run makes the first)")
    after = latest.number if after is None else after
    before = after - 1 if before is None else before
    if before < 1:
        raise InputError(f"version {after} has none before it to compare with (quorate versions lists them)")
    found = difference(store, store.version(before), store.version(after))
    if as_json:
        print_json(_plain(found))
        return
    _print_difference(found, documents)


def _plain(found: Difference) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(
        found._asdict()
        | {
            "documents": [one._asdict() | {"spans": [span._asdict() for span in one.spans]} for one in found.documents],
            "annotators": [one._asdict() for one in found.annotators],
        }
    )
    return plain


def _print_difference(found: Difference, most: int) -> None:
    spans = found.spans()
    tell(
        f"version {found.before} → {found.after}: {counted(found.count('changed'), 'document')} with other tags, "
        f"{found.count('added'):,} added, {found.count('removed'):,} removed, "
        f"{found.count('confidence'):,} only with another confidence"
    )
    tell(
        f"spans: {spans['added']:,} added, {spans['removed']:,} removed, {spans['label']:,} with another label, "
        f"{spans['bounds']:,} with other bounds"
    )
    old, new = found.agreement
    if (old, new) != (None, None):
        tell(f"agreement {_alpha(old)} → {_alpha(new)} (Krippendorff's alpha)")
    for line in found.decided:
        tell(f"because of {line}")
    more = [who for who in found.annotators if not who.is_otherwise]
    if more:
        tell(
            in_number(
                "{} {annotator has|annotators have} new or changed labels, and {is|are} judged as before", len(more)
            )
        )
    for who in found.annotators:
        if who.is_otherwise:
            name = person(who.name).removeprefix("annotator ")
            tell(f"annotator {name}: {_annotator(who.before)} → {_annotator(who.after)}")
    shown = [one for one in found.documents if one.kind != "confidence"]
    for one in shown[: max(most, 0)]:
        _print_document(one)
    if len(shown) > most:
        tell(f"({counted(len(shown) - most, 'more document')}: --documents, or --json for all)")


def _print_document(one: DocumentChange) -> None:
    sure = " → ".join("–" if value is None else f"{value:.2f}" for value in (one.before, one.after))
    tell(f"{one.id} ({one.kind}, confidence {sure})")
    for span in one.spans:
        ends = [f"{words} [{label}]" for words, label in (end for end in (span.before, span.after) if end is not None)]
        tell(f"  {_ARROWS[span.kind]} {' → '.join(ends)}")


def _alpha(agreement: float | None) -> str:
    return "–" if agreement is None else f"{agreement:.2f}"


def _annotator(figures: tuple[float, float] | None) -> str:
    return "–" if figures is None else f"{counted(round(figures[0]), 'label')}, {figures[1]:.2f} bits"


@app.command(epilog="Example: quorate restore 12, then quorate diff 12")
def restore(
    number: Annotated[int, typer.Argument(metavar="VERSION", help="The version to bring back.")],
    message: Message = "",
    wait: Wait = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Bring the outputs of a version back, as a new version: nothing that came after it is lost."""
    project = Project.here()
    with project.store.locked(wait=wait):
        outcome = project.restore(number, message)
    _tell(outcome, as_json=as_json, quiet=quiet)
