"""Passwords: kept as argon2 makes them, tried slowly, and by whoever guesses more and more slowly.

An attempt is counted in the database before the password is looked at, so that many at once, in several processes or
around a restart, are as many. Names that nobody has are counted in the same way: what is answered tells nothing.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection, delete, func, select

from quorate_serve.database import tables
from quorate_serve.database.engine import upsert
from quorate_serve.people import digest
from quorate_serve.problems import BusyError, InvalidError, RefusedError, TooManyError

T = TypeVar("T")
_SHORTEST, _LONGEST = 10, 1_000
_FREE = 5  # attempts without a wait
_FIRST_WAIT, _LONGEST_WAIT = 15.0, 900.0  # seconds
_FORGOTTEN_AFTER = 86_400.0  # seconds
_MOST_COUNTED = 10_000  # names
_hasher = PasswordHasher()
_NOBODY = _hasher.hash(secrets.token_hex(16))  # so that an unknown name takes as long as a wrong password


class Attempt(NamedTuple):
    """Somebody who wants to log in: the digest of the name, whose it is if anybody's, and the password to compare."""

    login: str
    person: str | None
    kept: str


def hashed(password: str) -> str:
    """A password as it is kept; :class:`InvalidError` if it is too easy. It takes a while, and much memory."""
    if len(password) < _SHORTEST:
        raise InvalidError(f"a password has {_SHORTEST} characters or more (a few words do well)")
    if len(password) > _LONGEST:
        raise InvalidError(f"a password has {_LONGEST:,} characters at most")
    return _hasher.hash(password)


def wait_after(attempts: int) -> float:
    """Seconds from the last of so many wrong attempts until the next may be made.

    >>> [wait_after(attempts) for attempts in (4, 5, 6, 7, 100)]
    [0.0, 15.0, 30.0, 60.0, 900.0]
    """
    if attempts < _FREE:
        return 0.0
    return min(_FIRST_WAIT * 2.0 ** min(attempts - _FREE, 30), _LONGEST_WAIT)


def begin_attempt(connection: Connection, secret: bytes, name: str) -> Attempt:
    """Count an attempt to log in by name; :class:`TooManyError` if it comes too soon after others that were wrong."""
    login, now, table = digest(secret, name), time.time(), tables.login_attempts
    row = connection.execute(select(table.c.attempts, table.c.at).where(table.c.login == login)).one_or_none()
    attempts = 0 if row is None or row.at < now - _FORGOTTEN_AFTER else row.attempts
    wait = 0.0 if row is None else row.at + wait_after(attempts) - now
    if wait > 0:
        raise TooManyError("too many wrong passwords for this name (wait a while, or ask for a new one)", wait)
    if row is None:
        _forget(connection, now)
    upsert(connection, table, {"login": login, "attempts": attempts + 1, "at": now}, ["login"])
    found = connection.execute(
        select(tables.people.c.id, tables.people.c.password).where(
            tables.people.c.login == login, tables.people.c.active, tables.people.c.role.is_not(None)
        )
    ).one_or_none()
    if found is None or found.password is None:
        return Attempt(login, None, _NOBODY)
    return Attempt(login, found.id, found.password)


def is_right(attempt: Attempt, password: str) -> bool:
    """Whether this is the password; it takes as long where there is none."""
    try:
        _hasher.verify(attempt.kept, password[:_LONGEST].encode("utf-8", "surrogatepass"))
    except (VerificationError, InvalidHashError):
        return False
    return attempt.person is not None


def has_password(connection: Connection, person: str) -> bool:
    """Whether somebody logs in by a password, and not at a provider alone."""
    return _kept(connection, person) is not None


def end_attempt(connection: Connection, attempt: Attempt) -> None:
    """The password was right: nothing is counted any more; :class:`RefusedError` if it was changed meanwhile."""
    if attempt.person is None or _kept(connection, attempt.person) != attempt.kept:
        raise RefusedError("the password was changed a moment ago (use the new one)")
    connection.execute(delete(tables.login_attempts).where(tables.login_attempts.c.login == attempt.login))


def _kept(connection: Connection, person: str) -> str | None:
    return connection.execute(select(tables.people.c.password).where(tables.people.c.id == person)).scalar()


def _forget(connection: Connection, now: float) -> None:
    """Drop what is old; of too many, those with the fewest attempts, so that nobody can push out a count that waits."""
    table = tables.login_attempts
    connection.execute(delete(table).where(table.c.at < now - _FORGOTTEN_AFTER))
    many = connection.execute(select(func.count()).select_from(table)).scalar_one() - _MOST_COUNTED + 1
    if many > 0:
        oldest = select(table.c.login).order_by(table.c.attempts, table.c.at).limit(many)
        connection.execute(delete(table).where(table.c.login.in_(oldest.scalar_subquery())))


class SlowWork:
    """Runs what takes long a few at a time, in threads of its own, so that nothing else waits for it."""

    def __init__(self, at_once: int = 2, waiting: int = 100) -> None:
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="quorate-slow")
        self._most, self._now = at_once + waiting, 0

    async def run(self, work: Callable[..., T], *given: Any) -> T:
        """What it gives; :class:`BusyError` if too many are waiting."""
        if self._now >= self._most:
            raise BusyError("too many are logging in (try again in a moment)")
        self._now += 1
        try:
            return await asyncio.wrap_future(self._threads.submit(work, *given))
        finally:
            self._now -= 1

    def close(self) -> None:
        """Let the threads go."""
        self._threads.shutdown(wait=False, cancel_futures=True)
