"""What stands, made again from what happened: should it ever be doubted, or have been changed by hand."""

from __future__ import annotations

from sqlalchemy import Connection, select

from quorate.errors import InputError
from quorate_serve.database.engine import Database
from quorate_serve.settings import ServiceSettings
from quorate_serve.state import STANDS, rebuild


def mend(settings: ServiceSettings) -> str:
    """Make the tables of what stands from events alone, while those who save wait; say what was other."""
    if settings.database_url is None and not (settings.folder / "service.db").exists():
        raise InputError("no service has run here (go to its folder, or give --database)", where=str(settings.root))
    database = Database.open(settings.database)
    try:
        events, other = database.change(_rebuilt)
    finally:
        database.close()
    outcome = "all was as they say" if not other else f"{other:,} rows were not as they say, and are now"
    return f"{events:,} events gone through: {outcome}"


def _rebuilt(connection: Connection) -> tuple[int, int]:
    """How many events there were, and how many rows were other before."""
    before = _rows(connection)
    events = rebuild(connection)
    return events, len(before.symmetric_difference(_rows(connection)))


def _rows(connection: Connection) -> set[str]:
    return {f"{table.name} {tuple(row)!r}" for table in STANDS for row in connection.execute(select(table))}
