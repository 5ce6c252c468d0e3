"""The database of a service: many readers, one queue for all that is written.

SQLite takes one writer at a time. All writes of a process go through one thread, which commits whatever is waiting
together: an acknowledged write is on the disk (``synchronous=FULL``), and under load one flush serves many. A write
that fails is undone alone. On PostgreSQL the same thread serves, so that events are numbered in the order in which they
are committed; other processes of the service wait for each other there by an advisory lock.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, Engine, Table, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    InterfaceError,
    OperationalError,
    PendingRollbackError,
    SQLAlchemyError,
    TimeoutError,
)

from quorate.errors import SettingsError
from quorate_serve.database.migrating import LOCK, migrate
from quorate_serve.database.tables import metadata
from quorate_serve.problems import BusyError, InvalidError

T = TypeVar("T")
_log = logging.getLogger(__name__)
_MOST_TOGETHER = 64  # writes in one transaction: one that waits for all of them still waits for milliseconds
_READERS = 40  # connections that are kept, as many as there are threads: to make one takes longer than to ask
_PATIENCE = 5  # seconds that a connection to PostgreSQL may take
_LOOK = 0.001  # seconds between two looks whether another process still writes
_WAIT_FOR_OTHERS = 30_000  # milliseconds that SQLite waits for another process that writes


class _Job(NamedTuple):
    work: Callable[[Connection], Any]
    future: Future[Any]


class Database:
    """A database that is open. Make one for each process, with :meth:`open`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.is_sqlite = engine.dialect.name == "sqlite"
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._warned = False  # that the database is away

    @classmethod
    def at(cls, url: str, *, derived: bool = False) -> Database:
        """A database that was opened when the service began: a process of it may start while it is away.

        ``derived``: all that is written can be worked out again, so that SQLite need not flush it to the disk.
        """
        return cls(_engine(url, derived=derived))

    @classmethod
    def open(cls, url: str, version: str | None = None) -> Database:
        """Open a database, make it if it is a file that is not there, and bring its tables up to date.

        ``version``: no further than this, for what an earlier version of the service wrote.
        """
        try:
            address = make_url(url)
        except ArgumentError:
            raise SettingsError(f"{url!r} is not the address of a database (postgresql://user@host/name)") from None
        if address.get_backend_name() not in ("sqlite", "postgresql"):
            raise SettingsError(f"{address.get_backend_name()} is not a database for this (SQLite or PostgreSQL is)")
        if address.get_backend_name() == "sqlite" and address.database:
            folder = Path(address.database).parent
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SettingsError(f"{folder}: cannot be made: {error.strerror} (may it be written?)") from None
        database = cls.at(url)
        try:
            migrate(database.engine, version)
        except DBAPIError as error:
            database.close()
            shown = address.render_as_string(hide_password=True)
            why = f"cannot be opened: {_why(error)} (is it there, and may it be written?)"
            raise SettingsError(f"{shown}: {why}") from None
        return database

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection to look things up with; all that is read through it is of one moment."""
        try:
            with self._reader() as connection:
                yield connection
        except SQLAlchemyError as error:
            if _is_away(error):
                raise self._away(error) from error
            raise _error_of(error) from error
        except OverflowError as error:
            raise _error_of(error) from error
        self._is_back()

    def _reader(self) -> Connection:
        """A connection that sees one moment: SQLite's always do."""
        connection = self.engine.connect()
        return connection if self.is_sqlite else connection.execution_options(isolation_level="REPEATABLE READ")

    def write(self, work: Callable[[Connection], T]) -> Future[T]:
        """Have something written; the future is there when it is committed."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise BusyError("the service is stopping (try again)")
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_all, name="quorate-writer", daemon=True)
                self._writer.start()
            self._jobs.put(_Job(work, future))
        return future

    def change(self, work: Callable[[Connection], T]) -> T:
        """Have something written, and wait for it."""
        return self.write(work).result()

    def shred(self, *names: str) -> None:
        """Let nothing stay on the disk of what was deleted from these tables.

        SQLite overwrites what is deleted, and here empties the log that may still hold it; PostgreSQL writes the
        tables anew. (The log of PostgreSQL, and backups, keep it until they are gone themselves.)
        """
        if self.is_sqlite:
            plain = self.engine.raw_connection()  # outside of any transaction
            try:
                plain.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                plain.close()
            return
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for name in names:
                connection.execute(text(f"VACUUM (FULL) {metadata.tables[name].name}"))

    def close(self) -> None:
        """Write what is waiting, and let go."""
        with self._lock:
            self._closed = True
            writer = self._writer
        if writer is not None:
            self._jobs.put(None)
            writer.join()
        self.engine.dispose()

    def _write_all(self) -> None:
        ended = False
        while not ended:
            waiting, ended = self._waiting()
            jobs = [job for job in waiting if job.future.set_running_or_notify_cancel()]
            if jobs:
                _settle(jobs, self._commit(jobs))

    def _waiting(self) -> tuple[list[_Job], bool]:
        """The jobs that are waiting now, at least one; and whether it is over."""
        jobs: list[_Job] = []
        job = self._jobs.get()
        while job is not None:
            jobs.append(job)
            if len(jobs) == _MOST_TOGETHER:
                return jobs, False
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return jobs, False
        return jobs, True

    def _commit(self, jobs: Sequence[_Job]) -> list[Any]:
        """What each job gave, or the exception that it raised; all of them are on the disk, or none is."""
        try:
            with self.engine.connect().execution_options(writes=True) as connection, connection.begin():
                if not self.is_sqlite:
                    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
                outcomes = [_tried(job.work, connection) for job in jobs]
        except SQLAlchemyError as error:
            return [self._away(error) for _ in jobs]
        self._is_back()
        return outcomes

    def _away(self, error: SQLAlchemyError) -> BusyError:
        """What is said to whoever asks while the database does not answer; why is said once, to whoever serves."""
        if not self._warned:
            self._warned = True
            _log.warning("the database does not answer: %s (whoever asks now is told to try again)", _why(error))
        return BusyError("the database is away for the moment (try again)")

    def _is_back(self) -> None:
        if self._warned:
            self._warned = False
            _log.warning("the database answers again")


def _tried(work: Callable[[Connection], Any], connection: Connection) -> Any:
    """What a job gives or raises; what it has written when it raises is undone."""
    connection.exec_driver_sql("SAVEPOINT job")  # begin_nested() would put the statement together every time
    try:
        given = work(connection)
    except Exception as error:
        if isinstance(error, SQLAlchemyError) and _is_away(error):
            raise
        connection.exec_driver_sql("ROLLBACK TO SAVEPOINT job")
        given = _error_of(error)
    connection.exec_driver_sql("RELEASE SAVEPOINT job")
    return given


def _settle(jobs: Sequence[_Job], outcomes: Sequence[Any]) -> None:
    for job, outcome in zip(jobs, outcomes, strict=True):
        if isinstance(outcome, BaseException):
            job.future.set_exception(outcome)
        else:
            job.future.set_result(outcome)


def _error_of(error: Exception) -> Exception:
    """What a fault is: one of whoever asked, if they gave a number or a text that no column holds."""
    if isinstance(error, OverflowError | DataError):
        return InvalidError("a number or a text is beyond what can be kept (give a smaller one)")
    return error


def _is_away(error: SQLAlchemyError) -> bool:
    """Whether it is the database that failed (gone, its disk full, all connections taken), not what was asked."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)
    return isinstance(error, PendingRollbackError | TimeoutError)


def _why(error: SQLAlchemyError) -> str:
    """What the database said, in one line."""
    lines = str(error.orig if isinstance(error, DBAPIError) else error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _engine(url: str, *, derived: bool = False) -> Engine:
    if url.startswith("sqlite"):
        arguments = {"timeout": _WAIT_FOR_OTHERS / 1000, "check_same_thread": False}
        engine = create_engine(url, pool_size=_READERS, connect_args=arguments)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        if derived:
            event.listen(engine, "connect", _leave_unflushed)
        return engine
    arguments = {"connect_timeout": _PATIENCE}
    return create_engine(
        url, pool_pre_ping=True, pool_size=10, max_overflow=20, pool_timeout=_PATIENCE, connect_args=arguments
    )


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where they are begun, not at the first change
    wait = f"busy_timeout={_WAIT_FOR_OTHERS}"
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON", wait):
        connection.execute(f"PRAGMA {pragma}").close()


def _leave_unflushed(connection: Any, _: object) -> None:
    connection.execute("PRAGMA synchronous=NORMAL").close()


def _begin_sqlite(connection: Connection) -> None:
    # One that will write takes its turn at once: to become a writer half way would fail if somebody else was faster.
    if connection.get_execution_options().get("writes"):
        _take_turn(connection)
    else:
        connection.exec_driver_sql("BEGIN")


def _take_turn(connection: Connection) -> None:
    """Begin to write as soon as no other process does.

    SQLite's own way of waiting sleeps longer and longer, up to a tenth of a second at a time, for a lock that is free
    again after a few milliseconds.
    """
    until = time.monotonic() + _WAIT_FOR_OTHERS / 1000
    plain = connection.connection.driver_connection
    assert isinstance(plain, sqlite3.Connection)
    plain.execute("PRAGMA busy_timeout=0").close()
    try:
        while True:
            try:
                plain.execute("BEGIN IMMEDIATE").close()
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > until:
                    raise OperationalError("BEGIN IMMEDIATE", None, error) from error
                time.sleep(_LOOK)
    finally:
        plain.execute(f"PRAGMA busy_timeout={_WAIT_FOR_OTHERS}").close()


def upsert(connection: Connection, table: Table, values: Mapping[str, Any], keys: Sequence[str]) -> None:
    """Insert a row, or replace the one with the same keys."""
    upsert_all(connection, table, [values], keys)


def upsert_all(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> None:
    """Insert rows, which have the same columns, each in place of the one with the same keys."""
    if not rows:
        return
    statement = _upsert(connection.dialect.name, table, tuple(rows[0]), tuple(keys))
    connection.execute(statement, [dict(row) for row in rows])


@lru_cache(maxsize=100)
def _upsert(dialect: str, table: Table, columns: tuple[str, ...], keys: tuple[str, ...]) -> Any:
    """The statement; to put one together takes longer than to execute it."""
    statement = (sqlite if dialect == "sqlite" else postgresql).insert(table)
    changed = {name: statement.excluded[name] for name in columns if name not in keys}
    return statement.on_conflict_do_update(index_elements=list(keys), set_=changed)
