"""Bringing the tables of a database up to date: seen to at every start, and mostly there is nothing to do."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from quorate.errors import SettingsError

__all__ = ["LOCK", "migrate", "newest"]

LOCK = 0x71756F72
"""Who changes things on PostgreSQL takes it, so that others wait: any number that nobody else has."""

_MIGRATIONS = Path(__file__).with_name("migrations")


def migrate(engine: Engine) -> None:
    """Make the tables, or change them to what this version needs."""
    with engine.connect() as connection:
        if _version(connection) == newest():
            return
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        if connection.dialect.name != "sqlite":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        _upgrade(connection)


def newest() -> str:
    """The version that the tables of this code have: a migration's file begins with its number."""
    return max(path.name[:4] for path in (_MIGRATIONS / "versions").glob("[0-9]*.py"))


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _upgrade(connection: Connection) -> None:
    # Loaded here, as it takes longer than all else that happens when a process of the service starts.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    current = _version(connection)
    if current == newest():  # another process was faster
        return
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if current is not None and current not in known:
        raise SettingsError("the database is of a newer version (upgrade quorate)")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
