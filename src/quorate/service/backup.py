"""Everything that a service keeps in one file, for both databases: to be safe, or to move from one to the other.

A zip file with a table a member, a row a line, as of one moment; and the service's secret, without which nobody could
log in. Names can be read with it: whoever has the file has everything.
"""

from __future__ import annotations

import base64
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, insert, select, text

import quorate
from quorate.errors import InputError, OutputError
from quorate.service.database.engine import Database
from quorate.service.database.tables import metadata
from quorate.service.settings import ServiceSettings
from quorate.wording import counted

__all__ = ["read_backup", "write_backup"]

_FORMAT = 1
_ABOUT = "about.json"
_SECRET = "secret"
_LEFT_OUT = ("sessions",)  # whoever is logged in logs in again
_TOGETHER = 1_000


def write_backup(settings: ServiceSettings, path: Path) -> str:
    """Write it, whole or not at all, and say how much is in it; the service may be running."""
    if settings.database_url is None and not (settings.folder / "service.db").exists():
        raise InputError("no service has run here (go to its folder, or give --database)", where=str(settings.root))
    unfinished = path.with_name(f"{path.name}.unfinished")
    database = Database.open(settings.database)
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with (
            os.fdopen(descriptor, "wb") as stream,
            zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
            database.engine.connect().execution_options(**_of_one_moment(database)) as connection,
        ):
            rows = {table.name: _write_table(archive, connection, table) for table in _tables()}
            archive.writestr(_SECRET, settings.secret())
            about = {"format": _FORMAT, "quorate": quorate.__version__, "revision": _revision(connection), "rows": rows}
            archive.writestr(_ABOUT, json.dumps(about))
        os.replace(unfinished, path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        unfinished.unlink(missing_ok=True)
        database.close()
    return f"{path}: {_counted(rows)}"


def _counted(rows: dict[str, int]) -> str:
    people = counted(rows["people"], "person", "people")
    return f"{counted(rows['events'], 'event')}, {counted(rows['documents'], 'document')}, {people}"


def read_backup(settings: ServiceSettings, path: Path) -> str:
    """Put a backup into an empty database, all of it or nothing."""
    try:
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read(_ABOUT))
            if about["format"] != _FORMAT:
                raise InputError("a backup of a newer version (upgrade quorate)", where=str(path))
            settings.make_folder()
            database = Database.open(settings.database)
            try:
                database.change(lambda connection: _read_tables(archive, connection, about, str(path)))
            finally:
                database.close()
            _put_secret(settings, archive.read(_SECRET))
    except (zipfile.BadZipFile, KeyError, json.JSONDecodeError):
        raise InputError("not a backup of a service, or damaged (write it again)", where=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from None
    rows = about["rows"]
    return f"{_counted(rows)} are back"


def _tables() -> list[Table]:
    """Each after those that it refers to."""
    return [table for table in metadata.sorted_tables if table.name not in _LEFT_OUT]


def _of_one_moment(database: Database) -> dict[str, Any]:
    return {} if database.is_sqlite else {"isolation_level": "REPEATABLE READ"}


def _revision(connection: Connection) -> str:
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one())


def _write_table(archive: zipfile.ZipFile, connection: Connection, table: Table) -> int:
    count = 0
    order = list(table.primary_key.columns)
    with archive.open(f"{table.name}.jsonl", "w", force_zip64=True) as member:
        for row in connection.execute(select(table).order_by(*order)).mappings():
            plain = {name: _outward(value) for name, value in row.items()}
            member.write(json.dumps(plain, ensure_ascii=False).encode() + b"\n")
            count += 1
    return count


def _outward(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes | memoryview) else value


def _read_tables(archive: zipfile.ZipFile, connection: Connection, about: dict[str, Any], where: str) -> None:
    if about["revision"] != _revision(connection):
        raise InputError(
            f"of quorate {about['quorate']}, whose tables were others (restore it there, then upgrade)", where=where
        )
    for table in _tables():
        if connection.execute(select(table).limit(1)).first() is not None:
            raise InputError("the database is not empty (give another with --database, or move it away)", where=where)
    for table in _tables():
        for rows in _lots(archive, table):
            connection.execute(insert(table), rows)
        if connection.dialect.name != "sqlite" and table.autoincrement_column is not None:
            name = table.autoincrement_column.name
            connection.execute(
                text(
                    f"SELECT setval(pg_get_serial_sequence('{table.name}', '{name}'), "
                    f"GREATEST((SELECT MAX({name}) FROM {table.name}), 1))"
                )
            )


def _lots(archive: zipfile.ZipFile, table: Table) -> Iterator[list[dict[str, Any]]]:
    binary = {column.name for column in table.columns if column.type.python_type is bytes}
    rows: list[dict[str, Any]] = []
    with archive.open(f"{table.name}.jsonl") as member:
        for line in member:
            row = json.loads(line)
            for name in binary:
                if row[name] is not None:
                    row[name] = base64.b64decode(row[name]["base64"])
            rows.append(row)
            if len(rows) == _TOGETHER:
                yield rows
                rows = []
    if rows:
        yield rows


def _put_secret(settings: ServiceSettings, secret: bytes) -> None:
    path = settings.folder / _SECRET
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(secret)
