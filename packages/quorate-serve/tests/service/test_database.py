"""The store: migrations, the queue of writes, and a table that is only ever added to."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, delete, select, update
from sqlalchemy.exc import DBAPIError

from quorate.errors import SettingsError
from quorate_serve.database import tables
from quorate_serve.database.engine import Database
from quorate_serve.events import Event, Kind, append, events_after, find, last_event
from quorate_serve.problems import BusyError, InvalidError
from serving import Team


def test_migrations_make_the_tables_that_the_code_has(any_team: Team) -> None:
    with any_team.database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), tables.metadata) == []


def test_what_a_migration_made_is_opened_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/deep/down/a.db"
    for _ in range(2):
        database = Database.open(url)
        database.change(lambda connection: append(connection, Kind.EXPORTED, person=None))
        database.close()
    database = Database.open(url)
    with database.read() as connection:
        assert last_event(connection) == 2
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
    database.close()


@pytest.mark.parametrize("statement", [update(tables.events).values(kind="x"), delete(tables.events)])
def test_an_event_cannot_be_changed(any_team: Team, statement: object) -> None:
    any_team.database.change(lambda connection: append(connection, Kind.EXPORTED, person=None))
    with pytest.raises(DBAPIError, match="only ever added"):
        any_team.database.change(lambda connection: connection.execute(statement))  # type: ignore[call-overload]


def test_a_write_that_fails_is_undone_alone(any_team: Team) -> None:
    def fails(connection: Connection) -> None:
        append(connection, Kind.EXPORTED, person=None, id="of the one that fails")
        raise InvalidError("no")

    database, before = any_team.database, _last(any_team.database)
    gate = threading.Event()
    waits = database.write(lambda connection: gate.wait(10))  # so that the others are committed together
    good = database.write(lambda connection: append(connection, Kind.EXPORTED, person=None, id="the first one"))
    bad = database.write(fails)
    last = database.write(lambda connection: append(connection, Kind.EXPORTED, person=None, id="the last one"))
    gate.set()
    assert waits.result()
    good.result()
    with pytest.raises(InvalidError):
        bad.result()
    last.result()
    with database.read() as connection:
        assert [event.id for event in events_after(connection, before)] == ["the first one", "the last one"]


def test_events_of_many_threads_are_numbered_as_they_are_committed(any_team: Team) -> None:
    database = any_team.database

    def many() -> None:
        for _ in range(20):
            database.change(lambda connection: append(connection, Kind.EXPORTED, person=None))

    before = _last(database)
    seen: list[Event] = []
    threads = [threading.Thread(target=many) for _ in range(5)]
    for thread in threads:
        thread.start()
    last = before
    while any(thread.is_alive() for thread in threads) or len(seen) < 100:
        with database.read() as connection:
            new = events_after(connection, last)
        seen += new
        last = new[-1].seq if new else last
    assert len({event.seq for event in seen}) == 100


def test_a_save_that_nobody_waits_for_any_more_stops_nothing(any_team: Team) -> None:
    database, gate = any_team.database, threading.Event()
    waits = database.write(lambda connection: gate.wait(10))
    left = database.write(lambda connection: append(connection, Kind.EXPORTED, person=None, id="of nobody any more"))
    assert left.cancel()
    gate.set()
    assert waits.result()
    database.change(lambda connection: append(connection, Kind.EXPORTED, person=None, id="the next one"))
    with database.read() as connection:
        assert find(connection, "of nobody any more") is None


def test_a_closed_database_takes_nothing(tmp_path: Path) -> None:
    database = Database.open(f"sqlite:///{tmp_path}/a.db")
    database.close()
    with pytest.raises(BusyError):
        database.change(lambda connection: None)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("nonsense", "not the address of a database"),
        ("mysql://localhost/x", "SQLite or PostgreSQL"),
        ("postgresql+psycopg://nobody:secret@127.0.0.1:1/x", "cannot be opened"),
    ],
)
def test_a_database_that_is_none(url: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told) as caught:
        Database.open(url)
    assert "secret" not in str(caught.value)


def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    database = Database.open(f"sqlite:///{tmp_path}/a.db")
    database.change(lambda connection: connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'"))
    database.close()
    with pytest.raises(SettingsError, match="newer version"):
        Database.open(f"sqlite:///{tmp_path}/a.db")


def _last(database: Database) -> int:
    with database.read() as connection:
        assert connection.execute(select(tables.people.c.id)).first() is not None
        return last_event(connection)
