"""The first minute of a service: what the project has is read, and a link is made for the first person."""

from __future__ import annotations

import os
from dataclasses import replace

from sqlalchemy import select

from quorate.corpus.sample import sample
from quorate.errors import InputError, SettingsError
from quorate.formats import read
from quorate.project.settings_file import SettingsFile
from quorate.project.store import Store
from quorate.service.database import tables
from quorate.service.database.engine import Database
from quorate.service.documents import count_documents
from quorate.service.importing import import_corpus
from quorate.service.people import Role
from quorate.service.sessions import invite
from quorate.service.settings import ServiceSettings

__all__ = ["begin", "invitation", "labels_of"]


def begin(
    settings: ServiceSettings, file: SettingsFile | None, *, demo: bool = False
) -> tuple[ServiceSettings, list[str]]:
    """Open the database, take in the project's files on the first start, and say where to go.

    The settings come back with the labels that are in use, where none were given.
    """
    settings.make_folder()
    database = Database.open(settings.database)
    try:
        told = []
        with database.read() as connection:
            empty = count_documents(connection) == 0
            is_admin = (tables.people.c.role == Role.ADMIN.value) & tables.people.c.active
            has_admin = connection.execute(select(tables.people.c.id).where(is_admin)).first() is not None
        if empty and (demo or file is not None):
            told.append(_take_in(settings, database, file))
        settings = labels_of(settings, database)
        if has_admin:
            return settings, [*told, f"open {settings.address}"]
        token = database.change(lambda connection: invite(connection, Role.ADMIN))
        where = f"open {settings.address}/invite/{token}"
        return settings, [*told, f"{where} (once, within a week: you will be the first admin)"]
    finally:
        database.close()


def invitation(settings: ServiceSettings, role: str) -> str:
    """A link to join with."""
    if role not in tuple(Role):
        raise SettingsError(f"role {role!r} is not known (one of: {', '.join(Role)})")
    database = Database.open(settings.database)
    try:
        token = database.change(lambda connection: invite(connection, Role(role)))
    finally:
        database.close()
    return f"{settings.address}/invite/{token} (once, within a week)"


def _take_in(settings: ServiceSettings, database: Database, file: SettingsFile | None) -> str:
    """Import the project's files, or without a project the sample."""
    if file is None:
        corpus, names = sample(), "the sample"
    else:
        paths = file.input_files(Store(file.root).pulled)
        try:
            corpus = read(*paths)
        except InputError as error:
            raise InputError(f"the project's files cannot be served: {error}") from None
        names = ", ".join(os.path.relpath(path, file.root) for path in paths)
    found = import_corpus(database, settings.secret(), corpus, source=names)
    return f"{found.documents:,} documents with {found.labels:,} labels of {found.annotators:,} annotators from {names}"


def labels_of(settings: ServiceSettings, database: Database) -> ServiceSettings:
    """The settings with the labels that annotators have used so far, where none are given."""
    if settings.labels:
        return settings
    with database.read() as connection:
        rows = connection.execute(select(tables.current_annotations.c.spans).limit(100_000)).scalars()
        used = {span["label"] for spans in rows for span in spans}
    return replace(settings, labels=tuple(sorted(used)))
