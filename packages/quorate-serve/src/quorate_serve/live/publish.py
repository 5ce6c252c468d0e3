"""What the worker gives out: the rows of the consensus that changed, a snapshot that says so, and everybody's queue.

Everything is written in small transactions, with a pause after each, so that a save never waits for long. The snapshot
comes last: whoever sees it sees all rows of its version. A worker that is killed between leaves rows of a version that
has no snapshot yet; the next one compares every row with what it finds, completes them, and adds it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select

from quorate_serve.database import tables
from quorate_serve.database.engine import Database, upsert_all
from quorate_serve.delivering import consensus_changed
from quorate_serve.live.fitting import Row
from quorate_serve.live.ticks import newest

_TOGETHER = 25  # rows in a transaction: whoever saves waits for it
_PAUSE = 2.0  # times as long as the transaction before took
_MOST_NAMED = 1_000  # documents that a snapshot names; of more it says that all may have changed
_KEPT = 1_000  # snapshots; of earlier ones, one a day
_PRUNED_EVERY = 100
_DAY = 86_400

Rows = Mapping[int, Row | None]
"""What is to be out, by the number of the document; ``None``: nothing any more."""

Ranked = Mapping[str, tuple[Sequence[tuple[int, float]], bool]]
"""Of everybody the documents to label next, with their worth, and whether they are to wait."""


class Publisher:
    """Knows what is out, and writes what is other.

    All rows that are written between two snapshots have the version of the second, which names them: whoever asks for
    what changed since a version that they were told of misses none.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        with database.read() as connection:
            there = connection.execute(select(tables.consensus)).all()
            self.version = newest(connection)
        self.rows = {
            row.document: Row(row.spans, row.confidence, row.labels, row.known, row.layers).shown for row in there
        }
        # What a worker wrote that was killed before it told of it is told with the next snapshot.
        self._untold = {row.document for row in there if row.version > self.version}

    def put(self, waiting: dict[int, Row | None]) -> None:
        """Write some of the rows that wait, and take them from there; those that are ``None`` are taken away.

        Rows that are out already are left as they are.
        """
        piece: dict[int, Row | None] = {}
        while waiting and len(piece) < _TOGETHER:
            number, row = waiting.popitem()
            if _shown(row) != self.rows.get(number):
                piece[number] = row
        if piece:
            began = time.perf_counter()
            self._write(lambda connection: _put(connection, self.version + 1, piece))
            self._are_out(piece)
            if waiting:
                time.sleep(_PAUSE * (time.perf_counter() - began))

    def tell(self, kind: str, event: int, summary: Mapping[str, Any], rows: Rows | None = None) -> int:
        """Add a snapshot, together with the last few rows; the version under which all of them are there."""
        version, left = self.version + 1, dict(rows or {})
        while len(left) > _TOGETHER:
            self.put(left)
        piece = {number: row for number, row in left.items() if _shown(row) != self.rows.get(number)}
        changed = sorted(self._untold.union(piece))
        named = changed if len(changed) <= _MOST_NAMED else None

        def work(connection: Connection) -> None:
            _put(connection, version, piece)
            _add_snapshot(connection, version, kind, event, named, summary)
            if changed:
                consensus_changed(connection, version, kind, named)

        self._write(work)
        self._are_out(piece)
        self._is_now(version)
        return version

    def queues(self, event: int, ranked: Ranked, summary: Mapping[str, Any]) -> int:
        """Give out what everybody should label next; those who are not named any more have no queue."""
        version, changed = self.version + 1, sorted(self._untold)

        def put(connection: Connection) -> None:
            rows = [
                {"person": person, "version": version, "documents": [list(one) for one in documents], "waits": waits}
                for person, (documents, waits) in ranked.items()
            ]
            upsert_all(connection, tables.queues, rows, ("person",))
            connection.execute(delete(tables.queues).where(tables.queues.c.version < version))
            _add_snapshot(connection, version, "queues", event, changed, summary)
            if changed:
                consensus_changed(connection, version, "update", changed)

        self._write(put)
        self._is_now(version)
        return version

    def _write(self, work: Callable[[Connection], None]) -> None:
        self._database.change(work)

    def _are_out(self, rows: Rows) -> None:
        for number, row in rows.items():
            self._untold.add(number)
            if row is None:
                self.rows.pop(number, None)
            else:
                self.rows[number] = row.shown

    def _is_now(self, version: int) -> None:
        self.version, self._untold = version, set()
        if version % _PRUNED_EVERY == 0:
            self._database.change(_prune)


def _shown(row: Row | None) -> Row | None:
    return None if row is None else row.shown


def _put(connection: Connection, version: int, rows: Rows) -> None:
    gone = [number for number, row in rows.items() if row is None]
    if gone:
        connection.execute(delete(tables.consensus).where(tables.consensus.c.document.in_(gone)))
    there = [(number, row) for number, row in rows.items() if row is not None]
    values = [{"document": number, "version": version, **row._asdict()} for number, row in there]
    upsert_all(connection, tables.consensus, values, ("document",))


def _add_snapshot(
    connection: Connection,
    version: int,
    kind: str,
    event: int,
    changed: Sequence[int] | None,
    summary: Mapping[str, Any],
) -> None:
    connection.execute(
        insert(tables.snapshots).values(
            version=version, kind=kind, at=time.time(), event=event, changed=changed, summary=dict(summary)
        )
    )


def _prune(connection: Connection) -> None:
    """Keep the last snapshots and, of each day before, the last; and of every kind the last."""
    table = tables.snapshots
    newest = int(connection.execute(select(func.max(table.c.version))).scalar() or 0)
    kept = {newest}
    for query in (
        select(func.max(table.c.version)).group_by(table.c.kind),
        select(func.max(table.c.version)).group_by(func.floor(table.c.at / _DAY)),
    ):
        kept |= {version for version in connection.execute(query).scalars() if version is not None}
    connection.execute(delete(table).where(table.c.version <= newest - _KEPT, table.c.version.not_in(kept)))
