"""What a session alone is not enough for: the password again, or a login at the provider a moment ago."""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy import Connection

from quorate_serve import passwords, people
from quorate_serve.passwords import Attempt
from quorate_serve.problems import ReauthenticationError
from quorate_serve.routes.common import Service
from quorate_serve.sessions import Who

FRESH = 600.0
"""Seconds after a login in which somebody without a password here need not log in again."""


async def reauthenticated(service: Service, who: Who, password: str) -> Callable[[Connection], None]:
    """Make sure that it is the person whose session it is; :class:`ReauthenticationError` if it is not.

    What it gives is to be called in the transaction of what they want to do: it refuses if the password was changed
    meanwhile.
    """

    def begin(connection: Connection) -> Attempt | None:
        if not passwords.has_password(connection, who.person):
            return None
        if not password:
            raise ReauthenticationError("this needs your password again")
        me = people.find_person(connection, who.person)
        return passwords.begin_attempt(connection, service.secret, me.name)

    attempt = await service.changed(begin)
    if attempt is None:
        if who.since is None or who.since < time.time() - FRESH:
            minutes = f"{FRESH / 60:.0f} minutes"
            raise ReauthenticationError(f"log in again first: this needs a login of the last {minutes}")
        return lambda connection: None
    if not await service.slow.run(passwords.is_right, attempt, password):
        raise ReauthenticationError("the password is not right")
    return lambda connection: passwords.end_attempt(connection, attempt)
