"""Bringing the tables of a database up to date: seen to at every start, and mostly there is nothing to do."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from quorate.errors import SettingsError

LOCK = 0x71756F72
"""Who changes things on PostgreSQL takes it, so that others wait: any number that nobody else has."""

_MIGRATIONS = Path(__file__).with_name("migrations")


def migrate(engine: Engine, to: str | None = None) -> None:
    """Make the tables, or change them to what this version needs; for a backup, ``to`` what an earlier one needed."""
    with engine.connect() as connection:
        if version_of(connection) == (to or newest()):
            return
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        if connection.dialect.name != "sqlite":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        upgrade(connection, to)


def newest() -> str:
    """The version that the tables of this code have."""
    return max(_versions())


def knows(version: str) -> bool:
    """Whether there are tables of this version here."""
    return version in _versions()


def version_of(connection: Connection) -> str | None:
    """The version that the tables of a database have; ``None`` before there are any."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def upgrade(connection: Connection, to: str | None = None) -> None:
    """Change the tables within a transaction: to what this version needs, or to an earlier one."""
    # Loaded here, as it takes longer than all else that happens when a process of the service starts.
    from alembic import command
    from alembic.config import Config

    current, wanted = version_of(connection), to or newest()
    if current is not None and not knows(current):
        raise SettingsError("the database is of a newer version (upgrade quorate)")
    if current is not None and current >= wanted:  # another process was faster
        return
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, wanted)


def _versions() -> set[str]:
    """The versions that there are: a migration's file begins with its number."""
    return {path.name[:4] for path in (_MIGRATIONS / "versions").glob("[0-9]*.py")}
