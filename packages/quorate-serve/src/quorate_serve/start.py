"""The first minute of a service: what the project has is read, and a link is made for the first person."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, select

from quorate.corpus.records import Corpus
from quorate.corpus.sample import sample
from quorate.errors import InputError, SettingsError
from quorate.formats import read_layers
from quorate.formats.layers import Layers
from quorate.label_studio.client import client_of
from quorate.project.settings_file import SettingsFile
from quorate.project.store import Store
from quorate.storage.files.unfinished import sweep
from quorate.wording import counted
from quorate_serve.campaign import Campaign, campaign_of, change_campaign, read_campaign
from quorate_serve.database import tables
from quorate_serve.database.engine import Database
from quorate_serve.documents import count_documents
from quorate_serve.importing import import_corpus
from quorate_serve.people import Role, find_by_folded_names, knows_secret
from quorate_serve.reach import is_everywhere
from quorate_serve.sessions import invite, invite_by_name
from quorate_serve.settings import LabelStudioSettings, ServiceSettings

_SYNC = "label-studio sync"  # the command whose options hold here too

_DEMO_LABELS = 3  # of the five that each document of the sample has


def begin(
    settings: ServiceSettings,
    file: SettingsFile | None,
    *,
    demo: bool = False,
    reading: Mapping[str, Any] | None = None,
) -> tuple[ServiceSettings, list[str]]:
    """Open the database, take in the project's files on the first start, and say where to go.

    ``reading`` are the project's options of :func:`quorate.read_layers`. The settings come back with the projects of
    Label Studio that the project's file names.
    """
    settings.make_folder()
    _sweep(settings)
    database = Database.open(settings.database)
    try:
        settings, lines = _linked(settings, file)
        _check_secret(settings, database)
        lines += _fold_names(settings, database)
        settings = _settled(settings, database, file)
        with database.read() as connection:
            empty = count_documents(connection) == 0
            is_admin = (tables.people.c.role == Role.ADMIN.value) & tables.people.c.active
            has_admin = connection.execute(select(tables.people.c.id).where(is_admin)).first() is not None
        if file is not None and settings.label_studio.projects:  # they bring their tasks themselves
            file = replace(file, inputs=tuple(each for each in file.inputs if isinstance(each, str)))
        if empty and (demo or (file is not None and file.inputs)):
            lines += _take_in(settings, database, file, reading or {})
        lines += _where_from(settings)
        if has_admin:
            return settings, [*lines, f"open {settings.address}"]
        token = database.change(_first_link)
        where = f"open {settings.address}/invite/{token}"
        return settings, [*lines, f"{where} (once, within a week: you will be the first admin)"]
    finally:
        database.close()


def _settled(settings: ServiceSettings, database: Database, file: SettingsFile | None) -> ServiceSettings:
    """The settings, and the same campaign in the database: what is told at a start stands from then on.

    Where no project's file tells anything, what was told or changed before goes on.
    """

    def settle(connection: Connection) -> Campaign | None:
        given, there = campaign_of(settings), read_campaign(connection)
        if there is None:
            return None
        if file is None:
            given = given.completed(there)
        change_campaign(connection, there, given, by=None)
        return given

    campaign = database.change(settle)
    return settings if campaign is None else campaign.applied_to(settings)


def _where_from(settings: ServiceSettings) -> list[str]:
    """What there is to say of a service that others reach without a proxy."""
    if not is_everywhere(settings.host) or settings.origin is not None:
        return []
    return [
        f"everybody on this network can open it, on this machine also as http://localhost:{settings.port}",
        "what they send is not encrypted: beyond a network that you trust, use --origin and a proxy with TLS",
    ]


def _sweep(settings: ServiceSettings) -> None:
    """Remove what processes that were killed had begun to write: backups, exports, the project's files."""
    sweep(settings.root)
    for folder, _, _ in os.walk(Store(settings.root).folder):
        sweep(Path(folder))


def _check_secret(settings: ServiceSettings, database: Database) -> None:
    """:class:`SettingsError` if the database was made with another secret: nobody could log in."""
    with database.read() as connection:
        if not knows_secret(connection, settings.secret()):
            where = settings.folder / "secret"
            raise SettingsError(
                f"{where}: not the secret that this database was made with, so that nobody could log in "
                "(put the right one there, or into QUORATE_SECRET)"
            )


def _fold_names(settings: ServiceSettings, database: Database) -> list[str]:
    """Have everybody found by their name as it is folded now, and say of whom that cannot be."""
    without = database.change(lambda connection: find_by_folded_names(connection, settings.secret()))
    why = "looks like the name of another, so that nobody can log in by it (invite them again under another name)"
    return [f"{person.name!r} ({person.id}) {why}" for person in without]


def _first_link(connection: Connection) -> str:
    """The link for the first admin; those of starts before are good no more."""
    first = (tables.invitations.c.role == Role.ADMIN.value) & tables.invitations.c.person.is_(None)
    connection.execute(delete(tables.invitations).where(first, tables.invitations.c.used.is_(None)))
    return invite(connection, Role.ADMIN)


def _linked(settings: ServiceSettings, file: SettingsFile | None) -> tuple[ServiceSettings, list[str]]:
    """The settings with the projects of Label Studio that a project's file names, and what is to be said of them."""
    projects = () if file is None else tuple(file.servers())
    if file is None or not projects:
        return settings, []
    names = ", ".join(f"{each.url} (project {each.number})" for each in projects)
    try:
        for each in projects:
            client_of(each.url)
    except SettingsError as error:
        return settings, [f"not kept in step with {names}: {error}"]
    given = file.options.get(_SYNC, {})
    kept = LabelStudioSettings(
        projects,
        float(given.get("watch", LabelStudioSettings.seconds)),
        float(given.get("least-change", LabelStudioSettings.least_change)),
    )
    kept.check()
    return replace(settings, label_studio=kept), [f"kept in step with {names}, every {kept.seconds:g} s"]


def invitations(settings: ServiceSettings, role: str, names: Sequence[str] = ()) -> list[str]:
    """A link to join with; or one for each of several names."""
    if role not in tuple(Role):
        raise SettingsError(f"role {role!r} is not known (one of: {', '.join(Role)})")
    database = Database.open(settings.database)
    try:
        if not names:
            token = database.change(lambda connection: invite(connection, Role(role)))
            return [f"{settings.address}/invite/{token} (once, within a week)"]
        secret = settings.secret()
        made = database.change(lambda connection: invite_by_name(connection, secret, names, Role(role)))
    finally:
        database.close()
    return [f"{name}: {settings.address}/invite/{token} (once, within a week)" for name, token in made.items()]


def _take_in(
    settings: ServiceSettings, database: Database, file: SettingsFile | None, reading: Mapping[str, Any]
) -> list[str]:
    """Import the project's files, or without a project the sample; and what is to be said of them."""
    if file is None:
        layers, names = Layers.alone(_with_room(sample())), "the sample"
    else:
        paths = file.input_files(Store(file.root).pulled)
        try:
            layers = read_layers(*paths, **reading)
        except InputError as error:
            raise InputError(f"the project's files cannot be served: {error}") from None
        names = ", ".join(os.path.relpath(path, file.root) for path in paths)
    found = import_corpus(database, settings.secret(), layers, source=names, rule=settings.overlaps)
    came = (
        f"{counted(found.documents, 'document')} with {counted(found.labels, 'label')} of "
        f"{counted(found.annotators, 'annotator')} from {names}"
    )
    return [came, *found.notes]


def _with_room(corpus: Corpus) -> Corpus:
    """A corpus in which some labels are missing, so that whoever tries the service finds something to do."""
    documents = []
    for number, document in enumerate(corpus):
        first = number % 3  # not always of the same people
        some = dict(list(document.annotations.items())[first : first + _DEMO_LABELS])
        documents.append(replace(document, annotations=some))
    return Corpus(documents)
