"""The command that serves a team, ``quorate serve``, and those that look after what it keeps, ``quorate service``."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from quorate.cli.common import READING, say
from quorate.cli.common import app as quorate_app
from quorate.cli.options import takes_groups
from quorate.cli.project_options import options_of
from quorate.corpus.overlaps import MOST_DEEP, OverlapRule, Overlaps
from quorate.corpus.profiles import read_map
from quorate.errors import SettingsError
from quorate.limits import size_named
from quorate.project.settings_file import SettingsFile, find
from quorate_serve.settings import COLOURS, FitSettings, QueueSettings, ReviewSettings, ServiceSettings

app = typer.Typer()
service = typer.Typer(no_args_is_help=True, help="Look after what 'quorate serve' keeps: backups, links, rebuilding.")
app.add_typer(service, name="service")

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        envvar="QUORATE_DATABASE",
        show_envvar=True,
        help="postgresql://…, for teams; unless given, a file of SQLite in the project.",
    ),
]
Host = Annotated[str, typer.Option("--host", help="Where to listen; 0.0.0.0 is everywhere.")]
Port = Annotated[int, typer.Option("--port", min=1, max=65535, help="The port to listen on.")]
Origin = Annotated[
    str | None,
    typer.Option("--origin", metavar="URL", help="The address that browsers use, if a proxy is in front of it."),
]
_OVERLAPS, _LIMITS = "Spans that overlap", "Limits of a fit"
_LOGIN = "Login by OpenID Connect"
BackupFile = Annotated[Path, typer.Argument(metavar="FILE", help="The backup, one file.")]


@dataclass(frozen=True)
class _Queue:
    """How documents are given out."""

    per_document_min: Annotated[
        int, typer.Option("--per-document-min", min=1, help="Annotators that each document gets at least.")
    ] = 2
    per_document_max: Annotated[
        int, typer.Option("--per-document-max", min=1, help="Annotators that a document gets at most.")
    ] = 5
    per_person_max: Annotated[
        int | None, typer.Option("--per-person-max", min=1, help="Documents that one person does at most.")
    ] = None
    lease_minutes: Annotated[
        float, typer.Option("--lease-minutes", help="How long a document is kept for whoever was given it.")
    ] = 60.0
    check_rate: Annotated[
        float, typer.Option("--check-rate", help="How often a document with a known answer comes, from 0 to 0.5.")
    ] = 0.05
    training: Annotated[
        int, typer.Option("--training", min=0, help="Training documents that everybody does first, with the answers.")
    ] = 0
    hold_back: Annotated[
        bool,
        typer.Option("--hold-back", help="Hold back people whose labels would tell much less than those of others."),
    ] = False

    def settings(self) -> QueueSettings:
        """Checked."""
        queue = QueueSettings(**asdict(self))
        queue.check()
        return queue


@dataclass(frozen=True)
class _Marking:
    """What people mark, and how."""

    labels: Annotated[
        str | None, typer.Option("--labels", help="The labels to choose from (PER,LOC); by default, those used so far.")
    ] = None
    keys: Annotated[
        str | None, typer.Option("--keys", metavar="LABEL=KEY,…", help="Keys that mark labels, where not 1, 2, 3.")
    ] = None
    colours: Annotated[
        str | None,
        typer.Option("--colours", metavar="LABEL=COLOUR,…", help=f"Colours of labels: {', '.join(COLOURS)}."),
    ] = None
    guidelines: Annotated[
        Path | None, typer.Option("--guidelines", metavar="FILE", help="How to mark, in Markdown, for annotators.")
    ] = None

    def settings(self, root: Path) -> dict[str, Any]:
        """These, as the settings of a service in the folder have them."""
        found = {
            "labels": labels_in(self.labels or ""),
            "keys": _by_label(self.keys),
            "colours": _by_label(self.colours),
        }
        if self.guidelines is None:
            return found
        from quorate.project.texts import read_guidelines

        where = os.path.relpath(self.guidelines, root)  # as the project's file names it
        return {**found, "guidelines": read_guidelines(self.guidelines), "guidelines_file": where}


def labels_in(given: str) -> tuple[str, ...]:
    """The labels of a list with commas.

    >>> labels_in("PER, LOC")
    ('PER', 'LOC')
    """
    return tuple(label.strip() for label in given.split(",") if label.strip())


def _by_label(given: str | None) -> dict[str, str]:
    return {} if given is None else {name: value for name, value in read_map(given).items() if value is not None}


@dataclass(frozen=True)
class _Overlapping:
    """Which spans may overlap."""

    overlaps: Annotated[
        Overlaps | None,
        typer.Option(
            "--overlaps",
            help="Which spans of one annotator may overlap: none, nested (one inside another) or any. Unless given, "
            "none, or any if the project's runs have layers.",
            rich_help_panel=_OVERLAPS,
            show_default=False,
        ),
    ] = None
    overlap_limit: Annotated[
        int,
        typer.Option(
            "--overlap-limit",
            min=1,
            max=MOST_DEEP,
            help="Spans of one annotator that may share a word.",
            rich_help_panel=_OVERLAPS,
        ),
    ] = OverlapRule().limit

    def rule(self, file: SettingsFile | None) -> OverlapRule:
        """The rule; spans that the runs of a project combine in layers may overlap, unless it is said."""
        layers = None if file is None else file.options.get("aggregate", {}).get("layers")
        unless_given = Overlaps.ANY if layers == "auto" else Overlaps.NONE
        return OverlapRule(self.overlaps or unless_given, self.overlap_limit)


@dataclass(frozen=True)
class _Fits:
    """When a fit is stopped."""

    fit_seconds: Annotated[
        float,
        typer.Option("--fit-seconds", help="A fit that takes longer is stopped.", rich_help_panel=_LIMITS),
    ] = 600.0
    fit_memory: Annotated[
        str | None,
        typer.Option(
            "--fit-memory",
            metavar="SIZE",
            help="A fit that takes more memory (4G) is stopped; by default, more than four fifths of what is free.",
            rich_help_panel=_LIMITS,
        ),
    ] = None

    def settings(self) -> FitSettings:
        """Checked."""
        memory = None if self.fit_memory is None else size_named(self.fit_memory, "fit-memory")
        fits = FitSettings(self.fit_seconds, memory)
        fits.check()
        return fits


@dataclass(frozen=True)
class _Login:
    """Login by a provider."""

    oidc_issuer: Annotated[
        str | None,
        typer.Option("--oidc-issuer", metavar="URL", help="Log in at this provider.", rich_help_panel=_LOGIN),
    ] = None
    oidc_client: Annotated[
        str,
        typer.Option(
            "--oidc-client",
            metavar="ID",
            help="This service's id there; its secret is QUORATE_OIDC_SECRET.",
            rich_help_panel=_LOGIN,
            show_default=False,
        ),
    ] = ""
    oidc_domain: Annotated[
        list[str] | None,
        typer.Option(
            "--oidc-domain",
            metavar="DOMAIN",
            help="Anyone with a verified e-mail address of this domain joins by logging in.",
            rich_help_panel=_LOGIN,
        ),
    ] = None
    oidc_role: Annotated[
        list[str] | None,
        typer.Option(
            "--oidc-role",
            metavar="VALUE=ROLE",
            help="Anyone who has VALUE at the provider joins in this role.",
            rich_help_panel=_LOGIN,
        ),
    ] = None
    oidc_role_claim: Annotated[
        str,
        typer.Option(
            "--oidc-role-claim",
            metavar="CLAIM",
            help="The claim in which the provider gives VALUE.",
            rich_help_panel=_LOGIN,
        ),
    ] = "groups"

    def settings(self) -> dict[str, str]:
        """The options of the provider, if there is one."""
        if not self.oidc_issuer:
            return {}
        return {
            "issuer": self.oidc_issuer,
            "client": self.oidc_client,
            "domains": ",".join(self.oidc_domain or ()),
            "roles": ",".join(self.oidc_role or ()),
            "role-claim": self.oidc_role_claim,
        }


@app.command(
    epilog="Examples:\n\n"
    "quorate serve --demo\n\n"
    "quorate serve --labels PER,LOC,ORG\n\n"
    "quorate serve --database postgresql://quorate@localhost/quorate --host 0.0.0.0 --origin https://labels.example.org"
)
@takes_groups
def serve(
    database: DatabaseUrl = None,
    host: Host = "127.0.0.1",
    port: Port = 8787,
    origin: Origin = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve a sample project, which is gone afterwards.")] = False,
    suggestions: Annotated[
        bool,
        typer.Option("--suggestions", help="Show annotators the consensus first, which influences them."),
    ] = False,
    blind: Annotated[
        bool, typer.Option("--blind/--not-blind", help="Reviewers see the consensus only after a first look.")
    ] = True,
    reviewers: Annotated[int, typer.Option("--reviewers", min=1, help="Reviewers that decide on each document.")] = 1,
    webhook_host: Annotated[
        list[str] | None,
        typer.Option("--webhook-host", metavar="HOST", help="A host in your own network that webhooks may go to."),
    ] = None,
    token_days: Annotated[
        int, typer.Option("--token-days", min=1, max=365, help="Days that a token for a program is good for, at most.")
    ] = 90,
    *,
    marking: _Marking,
    queue: _Queue,
    overlapping: _Overlapping,
    fits: _Fits,
    login: _Login,
) -> None:
    """Let a team annotate and review in the browser, with a consensus that follows."""
    if origin is not None and not origin.startswith(("http://", "https://")):
        raise SettingsError(f"origin {origin!r} is not an address (https://labels.example.org)")
    with _root(demo) as (root, file):
        settings = ServiceSettings(
            root,
            None if demo else database,  # what is gone afterwards stays apart from what is kept
            host,
            port,
            origin,
            **marking.settings(root),
            suggestions=suggestions,
            blind=blind,
            queue=queue.settings(),
            reviews=ReviewSettings(per_document=reviewers),
            token_days=token_days,
            overlaps=overlapping.rule(file),
            fits=fits.settings(),
            webhook_hosts=tuple(webhook_host or ()),
            oidc=login.settings(),
        )
        from quorate_serve.campaign import campaign_of
        from quorate_serve.start import begin
        from quorate_serve.supervisor import listen, supervise

        if settings.labels:
            campaign_of(settings).check()
        taken = listen(settings)
        settings, lines = begin(settings, file, demo=demo, reading=_reading(file))
        say([*lines, "Ctrl-C stops it"])
        supervise(settings, taken)


@service.command(epilog="Example: quorate service backup monday.zip")
def backup(file: BackupFile, database: DatabaseUrl = None) -> None:
    """Write everything that the service keeps into one file, while it runs. Names can be read in it: keep it safe."""
    from quorate_serve.backup import write_backup

    with _root(demo=False) as (root, _):
        say([write_backup(ServiceSettings(root, database), file)])


@service.command(epilog="Example: quorate service restore monday.zip --database postgresql://quorate@localhost/quorate")
def restore(file: BackupFile, database: DatabaseUrl = None) -> None:
    """Put a backup into a database that is empty, of the same kind or of the other."""
    from quorate_serve.backup import read_backup

    with _root(demo=False) as (root, _):
        say([read_backup(ServiceSettings(root, database), file)])


@service.command(
    epilog="Examples:\n\nquorate service invite --role admin\n\nquorate service invite Ann Ben --role reviewer"
)
def invite(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="For whom, a link each; by default, one for anybody.")
    ] = None,
    role: Annotated[str, typer.Option("--role", help="annotator, reviewer, manager or admin.")] = "annotator",
    host: Host = "127.0.0.1",
    port: Port = 8787,
    origin: Origin = None,
    database: DatabaseUrl = None,
) -> None:
    """Make a link with which somebody can join, once and within a week; also when no admin can log in any more."""
    from quorate_serve.start import invitations

    with _root(demo=False) as (root, _):
        say(invitations(ServiceSettings(root, database, host, port, origin), role, names or []))


@service.command(epilog="Example: quorate service rebuild")
def rebuild(database: DatabaseUrl = None) -> None:
    """Build the present state (labels, reviews, leases) again from all events, and say whether it was different."""
    from quorate_serve.mending import mend

    with _root(demo=False) as (root, _):
        say([mend(ServiceSettings(root, database))])


def _reading(file: SettingsFile | None) -> dict[str, Any]:
    """How the project's files are read: as a run reads them."""
    commands: Any = typer.main.get_command(quorate_app)
    return {} if file is None else options_of(file, commands.commands["aggregate"], READING)


@contextmanager
def _root(demo: bool) -> Iterator[tuple[Path, SettingsFile | None]]:
    """The folder to serve, and its project's file if it has one; of a demo, a folder that is gone afterwards."""
    if demo:
        with tempfile.TemporaryDirectory(prefix="quorate-demo-") as folder:
            yield Path(folder), None
        return
    path = find(Path.cwd())
    yield (Path.cwd(), None) if path is None else (path.parent, SettingsFile.read(path))
