"""A team at work, in a database of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from quorate.service.settings import ServiceSettings
from serving import Team, postgres


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    """A team on SQLite."""
    made = Team(ServiceSettings(tmp_path, labels=("PER", "LOC", "ORG")))
    yield made
    made.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """One PostgreSQL server for all tests of a process."""
    with postgres() as address:
        yield address


@pytest.fixture
def empty_postgres(postgres_server: str) -> str:
    """The address of a PostgreSQL database with nothing in it."""
    engine = create_engine(postgres_server.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return postgres_server


@pytest.fixture(params=["sqlite", "postgresql"])
def any_team(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Team]:
    """A team on SQLite, and one on PostgreSQL."""
    url = request.getfixturevalue("empty_postgres") if request.param == "postgresql" else None
    made = Team(ServiceSettings(tmp_path, database_url=url, labels=("PER", "LOC", "ORG")))
    yield made
    made.close()
