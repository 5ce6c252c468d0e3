"""What the worker gives out: the rows of the consensus that changed, a snapshot that says so, and everybody's queue.

Everything is written in small transactions, with a pause after each, so that a save never waits for long. The snapshot
comes last: whoever sees it sees all rows of its version. A worker that is killed between leaves rows of a version that
has no snapshot; the next one takes a later version, compares every row with what it finds, and completes them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select

from quorate.service.database import tables
from quorate.service.database.engine import Database, upsert_all
from quorate.service.live.fitting import Chosen, Row

__all__ = ["Publisher", "Ranked", "last_choice"]

_TOGETHER = 200  # rows in a transaction
_PAUSE = 2.0  # times as long as the transaction before took
_MOST_TOLD = 1_000  # documents that a snapshot names; of more it says that all may have changed
_KEPT = 1_000  # snapshots; of earlier ones, one a day
_PRUNED_EVERY = 100
_DAY = 86_400

Ranked = Mapping[str, tuple[Sequence[tuple[int, float]], bool]]
"""Of everybody the documents to label next, with their worth, and whether they are to wait."""


class Publisher:
    """Knows what is out, and writes what is other."""

    def __init__(self, database: Database) -> None:
        self._database = database
        with database.read() as connection:
            self.rows = {
                row.document: Row(row.spans, row.confidence, row.labels, row.known, row.layers).shown
                for row in connection.execute(select(tables.consensus))
            }
            newest = (select(func.max(table.c.version)) for table in (tables.snapshots, tables.consensus))
            self.version = max(int(connection.execute(query).scalar() or 0) for query in newest)

    def consensus(
        self,
        kind: str,
        event: int,
        rows: Mapping[int, Row | None],
        summary: Mapping[str, Any],
        chosen: Chosen | None = None,
    ) -> int:
        """Give out rows, of which those that are ``None`` are taken away; the version under which they are there."""
        version = self.version + 1
        changed = [number for number in sorted(rows) if _shown(rows[number]) != self.rows.get(number)]
        pieces = [changed[first : first + _TOGETHER] for first in range(0, len(changed), _TOGETHER)] or [[]]
        for piece in pieces[:-1]:
            self._write(lambda connection, piece=piece: _put(connection, version, piece, rows))
        told = changed if len(changed) <= _MOST_TOLD else None

        def last(connection: Connection) -> None:
            _put(connection, version, pieces[-1], rows)
            _add_snapshot(connection, version, kind, event, told, summary, chosen)

        self._write(last, pause=False)
        for number in changed:
            row = rows[number]
            if row is None:
                self.rows.pop(number, None)
            else:
                self.rows[number] = row.shown
        self._is_now(version)
        return version

    def queues(self, event: int, ranked: Ranked, summary: Mapping[str, Any]) -> int:
        """Give out what everybody should label next; those who are not named any more have no queue."""
        version = self.version + 1

        def put(connection: Connection) -> None:
            rows = [
                {"person": person, "version": version, "documents": [list(one) for one in documents], "waits": waits}
                for person, (documents, waits) in ranked.items()
            ]
            upsert_all(connection, tables.queues, rows, ("person",))
            connection.execute(delete(tables.queues).where(tables.queues.c.version < version))
            _add_snapshot(connection, version, "queues", event, [], summary, None)

        self._write(put, pause=False)
        self._is_now(version)
        return version

    def _write(self, work: Any, *, pause: bool = True) -> None:
        began = time.perf_counter()
        self._database.change(work)
        if pause:
            time.sleep(_PAUSE * (time.perf_counter() - began))

    def _is_now(self, version: int) -> None:
        self.version = version
        if version % _PRUNED_EVERY == 0:
            self._database.change(_prune)


def last_choice(connection: Connection) -> Chosen | None:
    """The settings that were chosen last."""
    table = tables.snapshots
    query = select(table.c.choice).where(table.c.choice.is_not(None)).order_by(table.c.version.desc()).limit(1)
    found = connection.execute(query).scalar()
    return None if found is None else Chosen.from_plain(found)


def _shown(row: Row | None) -> Row | None:
    return None if row is None else row.shown


def _put(connection: Connection, version: int, numbers: Iterable[int], rows: Mapping[int, Row | None]) -> None:
    gone = [number for number in numbers if rows[number] is None]
    if gone:
        connection.execute(delete(tables.consensus).where(tables.consensus.c.document.in_(gone)))
    there = [(number, row) for number in numbers if (row := rows[number]) is not None]
    values = [{"document": number, "version": version, **row._asdict()} for number, row in there]
    upsert_all(connection, tables.consensus, values, ("document",))


def _add_snapshot(
    connection: Connection,
    version: int,
    kind: str,
    event: int,
    changed: Sequence[int] | None,
    summary: Mapping[str, Any],
    chosen: Chosen | None,
) -> None:
    connection.execute(
        insert(tables.snapshots).values(
            version=version,
            kind=kind,
            at=time.time(),
            event=event,
            changed=changed,
            summary=dict(summary),
            choice=None if chosen is None else chosen.plain(),
        )
    )


def _prune(connection: Connection) -> None:
    """Keep the last snapshots and, of each day before, the last; and of every kind the last, and the last choice."""
    table = tables.snapshots
    newest = int(connection.execute(select(func.max(table.c.version))).scalar() or 0)
    kept = {newest}
    for query in (
        select(func.max(table.c.version)).group_by(table.c.kind),
        select(func.max(table.c.version)).where(table.c.choice.is_not(None)),
        select(func.max(table.c.version)).group_by(func.floor(table.c.at / _DAY)),
    ):
        kept |= {version for version in connection.execute(query).scalars() if version is not None}
    connection.execute(delete(table).where(table.c.version <= newest - _KEPT, table.c.version.not_in(kept)))
