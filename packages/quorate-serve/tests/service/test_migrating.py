"""The database of an earlier version is brought up to date by opening it, on SQLite and PostgreSQL."""

from __future__ import annotations

import tarfile
import time
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine, insert, select

from quorate_serve import sessions
from quorate_serve.database.engine import Database
from quorate_serve.database.tables import metadata, people, tokens
from quorate_serve.settings import ServiceSettings

FORMATS = Path(__file__).parents[1] / "assets" / "formats"
DAYS = 86_400.0


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> ServiceSettings:
    """A service that 0.11 has served, which nothing of this version has opened yet."""
    with tarfile.open(FORMATS / "0.11" / "service.tar.gz") as packed:
        packed.extractall(tmp_path, filter="data")
    on_sqlite = ServiceSettings(tmp_path)
    if request.param == "sqlite":
        return on_sqlite
    settings = ServiceSettings(tmp_path, database_url=request.getfixturevalue("empty_postgres"))
    Database.open(settings.database, "0001").close()
    before, after = create_engine(on_sqlite.database), create_engine(settings.database)
    with before.connect() as given, after.begin() as taken:
        for table in metadata.sorted_tables:
            if table.name == "campaign":  # which is newer
                continue
            columns = [column for column in table.columns if column.name not in ("by", "sealed")]
            if rows := [dict(row) for row in given.execute(select(*columns)).mappings()]:
                taken.execute(insert(table), rows)
    before.dispose()
    after.dispose()
    return settings


def test_the_tables_are_those_of_this_version(settings: ServiceSettings) -> None:
    database = Database.open(settings.database)
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    database.close()


def test_every_token_ends_within_90_days_and_none_gains_time(settings: ServiceSettings) -> None:
    began = time.time()
    database = Database.open(settings.database)
    with database.read() as connection:
        ends = [(row.name, row.until) for row in connection.execute(select(tokens.c.name, tokens.c.until))]
    database.close()
    assert len(ends) == 12
    assert {until for name, until in ends if name == "past"} == {1e9}
    for name, until in ends:
        assert name == "past" or began + 90 * DAYS <= until <= time.time() + 90 * DAYS


def test_links_that_were_open_are_open(settings: ServiceSettings) -> None:
    database = Database.open(settings.database)

    def look(connection: Connection) -> list[str | None]:
        return [one.by for one in sessions.open_invitations(connection)]

    assert database.change(look) == [None] * 4
    with database.read() as connection:
        assert len(connection.execute(select(people.c.id)).all()) == 4
    database.close()
