"""A backup holds everything, and goes from one kind of database to the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

import quorate
from quorate.errors import InputError
from quorate.service.backup import read_backup, write_backup
from quorate.service.database import tables
from quorate.service.database.engine import Database
from quorate.service.database.tables import metadata
from quorate.service.events import Kind, append, last_event
from quorate.service.importing import import_corpus
from quorate.service.people import Role, find_person, write_personal
from quorate.service.settings import ServiceSettings
from serving import Team


def rows_of(database: Database) -> dict[str, list[tuple[object, ...]]]:
    with database.read() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key.columns))]
            for table in metadata.sorted_tables
            if table.name != "sessions"
        }


def test_a_backup_of_either_database_restores_into_sqlite(any_team: Team, tmp_path: Path) -> None:
    corpus = quorate.Corpus(quorate.sample().documents[:30])
    import_corpus(any_team.database, any_team.settings.secret(), corpus)
    ann = any_team.ids[Role.ANNOTATOR]

    def note(connection: object) -> None:
        personal = write_personal(connection, ann, "a word")  # type: ignore[arg-type]
        append(connection, Kind.EXPORTED, person=ann, personal=personal)  # type: ignore[arg-type]

    any_team.database.change(note)
    told = write_backup(any_team.settings, tmp_path / "all.zip")
    assert "30 documents" in told
    assert (tmp_path / "all.zip").stat().st_mode & 0o077 == 0
    other = ServiceSettings(tmp_path / "other")
    read_backup(other, tmp_path / "all.zip")
    database = Database.open(other.database)
    assert rows_of(database) == rows_of(any_team.database)
    with database.read() as connection:
        assert find_person(connection, ann).name == "annotator"
    assert other.secret() == any_team.settings.secret()
    first = database.change(lambda connection: append(connection, Kind.EXPORTED, person=None)).seq
    with any_team.database.read() as connection:
        assert first > last_event(connection)
    database.close()


def test_from_sqlite_to_postgresql(team: Team, tmp_path: Path, empty_postgres: str) -> None:
    import_corpus(team.database, team.settings.secret(), quorate.Corpus(quorate.sample().documents[:30]))
    write_backup(team.settings, tmp_path / "all.zip")
    other = ServiceSettings(tmp_path / "other", database_url=empty_postgres)
    read_backup(other, tmp_path / "all.zip")
    database = Database.open(other.database)
    assert rows_of(database) == rows_of(team.database)
    database.change(lambda connection: append(connection, Kind.EXPORTED, person=None))  # numbers go on after the last
    database.close()


def test_what_is_no_backup_or_not_for_here_is_refused(team: Team, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"no")
    with pytest.raises(InputError, match="not a backup"):
        read_backup(ServiceSettings(tmp_path / "a"), tmp_path / "x.zip")
    with pytest.raises(InputError, match="cannot be read"):
        read_backup(ServiceSettings(tmp_path / "a"), tmp_path / "none.zip")
    write_backup(team.settings, tmp_path / "all.zip")
    with pytest.raises(InputError, match="not empty"):
        read_backup(team.settings, tmp_path / "all.zip")
    with team.database.read() as connection:
        assert connection.execute(select(tables.people)).first() is not None


def test_where_no_service_has_run_nothing_is_backed_up(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no service has run here"):
        write_backup(ServiceSettings(tmp_path), tmp_path / "all.zip")
    assert not list(tmp_path.iterdir())
