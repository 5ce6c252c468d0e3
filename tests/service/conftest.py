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


@pytest.fixture(params=["sqlite", "postgresql"])
def any_team(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Team]:
    """A team on SQLite, and one on PostgreSQL."""
    url = None
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_server")
        engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        with engine.begin() as connection:
            connection.execute(text("DROP SCHEMA public CASCADE"))
            connection.execute(text("CREATE SCHEMA public"))
        engine.dispose()
    made = Team(ServiceSettings(tmp_path, database_url=url, labels=("PER", "LOC", "ORG")))
    yield made
    made.close()
