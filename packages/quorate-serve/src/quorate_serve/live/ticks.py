"""News of the consensus for those who listen: one look at the database for all of them in a process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import NamedTuple

from sqlalchemy import Connection, func, select
from starlette.concurrency import run_in_threadpool

from quorate_serve.database import tables
from quorate_serve.database.engine import Database
from quorate_serve.problems import BusyError

_LOOK = 0.2  # seconds between two looks
_MOST = 100  # ticks that somebody who does not listen, or was away, is told one by one


class Tick(NamedTuple):
    """A version was given out: of which kind, and which documents changed in it (``None``: too many to name)."""

    version: int
    kind: str
    changed: list[int] | None


def newest(connection: Connection) -> int:
    """The version that was given out last; 0 before the first."""
    return int(connection.execute(select(func.max(tables.snapshots.c.version))).scalar() or 0)


def failure(connection: Connection) -> str | None:
    """Why the last fit failed; ``None`` if it did not."""
    table = tables.snapshots.c
    query = select(table.kind, table.summary).where(table.kind.in_(("refit", "failed")))
    last = connection.execute(query.order_by(table.version.desc()).limit(1)).one_or_none()
    return None if last is None or last.kind == "refit" else str(last.summary["why"])


def ticks_after(connection: Connection, version: int) -> list[Tick]:
    """What was given out after a version; if that is much, or no longer known, that anything may have changed."""
    table = tables.snapshots.c
    query = select(table.version, table.kind, table.changed).where(table.version > version).order_by(table.version)
    found = [Tick(row.version, row.kind, row.changed) for row in connection.execute(query.limit(_MOST + 1))]
    if len(found) > _MOST:
        return [Tick(newest(connection), "refit", None)]
    return found


class Ticks:
    """Tells everybody in a process who listens. ``stop`` ends that for all of them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listeners: set[asyncio.Queue[Tick | None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._stopped = False

    def stop(self) -> None:
        """Let everybody go; within one look, they are told."""
        self._stopped = True

    async def listen(self, after: int | None, pause: float) -> AsyncIterator[Tick | None]:
        """Ticks as they come, first those after a version, if one is given; and ``None`` every ``pause`` seconds.

        It ends when the process stops, and for somebody who does not keep up: they ask again, and are told what they
        have missed.
        """
        own: asyncio.Queue[Tick | None] = asyncio.Queue(_MOST)
        self._listeners.add(own)
        try:
            last = await run_in_threadpool(self._newest)
            if after is not None:
                for tick in await run_in_threadpool(self._after, after):
                    last = tick.version
                    yield tick
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look(last))
            due = time.monotonic() + pause  # also where ticks come without a pause
            while own in self._listeners and not self._stopped:
                if time.monotonic() >= due:
                    yield None
                    due = time.monotonic() + pause
                try:
                    tick_or_end = await asyncio.wait_for(own.get(), max(0.0, due - time.monotonic()))
                except TimeoutError:
                    continue
                if tick_or_end is None:
                    return
                if tick_or_end.version > last:
                    yield tick_or_end
        finally:
            self._listeners.discard(own)

    def _newest(self) -> int:
        with self._database.read() as connection:
            return newest(connection)

    def _after(self, version: int) -> list[Tick]:
        with self._database.read() as connection:
            return ticks_after(connection, version)

    async def _look(self, last: int) -> None:
        """Look for news as long as anybody listens."""
        while self._listeners and not self._stopped:
            with suppress(BusyError):  # the next look may find it back
                for tick in await run_in_threadpool(self._after, last):
                    last = tick.version
                    for listener in tuple(self._listeners):
                        self._tell(listener, tick)
            await asyncio.sleep(_LOOK)
        for listener in tuple(self._listeners):
            self._tell(listener, None)

    def _tell(self, listener: asyncio.Queue[Tick | None], tick: Tick | None) -> None:
        try:
            listener.put_nowait(tick)
        except asyncio.QueueFull:
            self._listeners.discard(listener)
