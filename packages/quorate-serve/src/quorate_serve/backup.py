"""Everything that a service keeps in one file, for both databases: to be safe, or to move from one to the other.

A zip file with a table a member, a row a line, as of one moment; and the service's secret, without which nobody could
log in. Names can be read with it: whoever has the file has everything.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, insert, select, text
from sqlalchemy.exc import SQLAlchemyError

import quorate
from quorate.errors import InputError, OutputError
from quorate.storage.files.atomic import place_of
from quorate.storage.files.unfinished import beside
from quorate.wording import counted
from quorate_serve.database.engine import Database
from quorate_serve.database.migrating import knows, upgrade, version_of
from quorate_serve.database.tables import metadata
from quorate_serve.problems import InvalidError
from quorate_serve.settings import ServiceSettings

_FORMAT = 1
_ABOUT = "about.json"
_SECRET = "secret"
_LEFT_OUT = ("sessions",)  # whoever is logged in logs in again
_TOGETHER = 1_000
_BROKEN = "not a backup of a service, or damaged (write it again)"
_NEWER = "a backup of a newer version (upgrade quorate)"
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, EOFError, LookupError, ValueError, TypeError, AttributeError, RuntimeError,
    InvalidError, SQLAlchemyError,
)  # fmt: skip
"""What reading a file raises that holds anything at all, and so does a database that is to take what it holds."""


def write_backup(settings: ServiceSettings, path: Path) -> str:
    """Write it, whole or not at all, and say how much is in it; the service may be running."""
    if settings.database_url is None and not (settings.folder / "service.db").exists():
        raise InputError("no service has run here (go to its folder, or give --database)", where=str(settings.root))
    database = Database.open(settings.database)
    try:
        target = place_of(path)
        with beside(target) as unfinished:
            with (
                zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive,
                database.engine.connect().execution_options(**_of_one_moment(database)) as connection,
            ):
                rows = {table.name: _write_table(archive, connection, table) for table in _tables()}
                archive.writestr(_SECRET, settings.secret())
                revision = version_of(connection)
                about = {"format": _FORMAT, "quorate": quorate.__version__, "revision": revision, "rows": rows}
                archive.writestr(_ABOUT, json.dumps(about))
            os.replace(unfinished, target)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        database.close()
    return f"{path}: {_counted(rows)}"


def _counted(rows: dict[str, int]) -> str:
    people = counted(rows["people"], "person", "people")
    return f"{counted(rows['events'], 'event')}, {counted(rows['documents'], 'document')}, {people}"


def read_backup(settings: ServiceSettings, path: Path) -> str:
    """Put a backup into an empty database, all of it or nothing; one of an earlier version is brought up to date."""
    try:
        with zipfile.ZipFile(path) as archive:
            about, secret = json.loads(archive.read(_ABOUT)), archive.read(_SECRET)
            if about["format"] != _FORMAT or not knows(about["revision"]):
                raise InputError(_NEWER if _is_newer(about) else _BROKEN, where=str(path))
            settings.make_folder()
            database = Database.open(settings.database, about["revision"])
            try:
                database.change(lambda connection: _read_tables(archive, connection, about, str(path)))
            finally:
                database.close()
            _put_secret(settings, secret)
            return f"{_counted(about['rows'])} are back"
    except _DAMAGE:
        raise InputError(_BROKEN, where=str(path)) from None
    except OSError as error:
        if error.errno == errno.EINVAL:  # what it says leads to a place before its beginning
            raise InputError(_BROKEN, where=str(path)) from None
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from None


def _is_newer(about: dict[str, Any]) -> bool:
    return about["format"] > _FORMAT or str(about["revision"]).isdecimal()


def _tables() -> list[Table]:
    """Each after those that it refers to."""
    return [table for table in metadata.sorted_tables if table.name not in _LEFT_OUT]


def _of_one_moment(database: Database) -> dict[str, Any]:
    return {} if database.is_sqlite else {"isolation_level": "REPEATABLE READ"}


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
    """The rows of a backup, into tables of the version that it is of; the tables are brought up to date afterwards."""
    if version_of(connection) != about["revision"]:
        raise InputError(
            f"of quorate {about['quorate']}, and the database has newer tables (give another with --database, "
            "or move it away)",
            where=where,
        )
    kept = [table for table in _tables() if table.name in about["rows"]]
    for table in kept:
        if connection.execute(select(*table.primary_key.columns).limit(1)).first() is not None:
            raise InputError("the database is not empty (give another with --database, or move it away)", where=where)
    for table in kept:
        count = 0
        for rows in _lots(archive, table):
            connection.execute(insert(table), rows)
            count += len(rows)
        if count != about["rows"][table.name]:
            raise InputError(_BROKEN, where=where)
        if connection.dialect.name != "sqlite" and table.autoincrement_column is not None:
            name = table.autoincrement_column.name
            connection.execute(
                text(
                    f"SELECT setval(pg_get_serial_sequence('{table.name}', '{name}'), "
                    f"GREATEST((SELECT MAX({name}) FROM {table.name}), 1))"
                )
            )
    upgrade(connection)


def _lots(archive: zipfile.ZipFile, table: Table) -> Iterator[list[dict[str, Any]]]:
    binary = {column.name for column in table.columns if column.type.python_type is bytes}
    needed = {column.name for column in table.primary_key.columns}
    rows: list[dict[str, Any]] = []
    with archive.open(f"{table.name}.jsonl") as member:
        for line in member:
            row = json.loads(line)
            if not needed <= row.keys():
                raise ValueError("a row without its key")
            for name in binary & row.keys():
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
