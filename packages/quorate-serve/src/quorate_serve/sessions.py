"""Who is asking: sessions of browsers, tokens of programs, invitations. Only digests of them are kept."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Sequence
from typing import NamedTuple

from cryptography.fernet import Fernet, InvalidToken
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from quorate_serve.database import tables
from quorate_serve.people import Role, called, digest
from quorate_serve.problems import ConflictError, InvalidError, NotFoundError

_TOKEN = "qt_"
_INVITATION_DAYS = 7
_ID = 16  # characters of the digest of a link, by which it is spoken of


# Asked with every request, and so put together once.
_OF_BROWSER = (
    select(tables.people.c.id, tables.people.c.role, tables.sessions.c.csrf, tables.sessions.c.created)
    .join(tables.people, tables.people.c.id == tables.sessions.c.person)
    .where(
        tables.sessions.c.digest == bindparam("secret"),
        tables.sessions.c.until > bindparam("now"),
        tables.sessions.c.idle_until > bindparam("now"),
        tables.people.c.active,
    )
)


class Who(NamedTuple):
    """Somebody who is logged in: by an API token, or in a browser.

    A browser has a token against forged requests, and is logged in ``since`` a time.
    """

    person: str
    role: Role
    csrf: str | None
    since: float | None = None


class Invitation(NamedTuple):
    """What an invitation is for: a new account with a role, or a new password of somebody who is here.

    ``name`` is that of whom it was made for, if it was made for anybody by name.
    """

    role: Role
    person: str | None
    name: str = ""


class OpenInvitation(NamedTuple):
    """A link that nobody has used yet: what it is for, who made it, until when; its ``id`` is not what opens it.

    ``token`` is what opens it, where that may be shown again.
    """

    id: str
    role: Role
    person: str | None
    by: str | None
    created: float
    until: float
    name: str = ""
    token: str = ""


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def begin_session(
    connection: Connection, person: str, hours: float, idle_hours: float | None = None
) -> tuple[str, str]:
    """Log somebody in: the secret of their browser, and the token against forged requests.

    It ends after ``hours``, and before that when it was not used for ``idle_hours``.
    """
    token, csrf, now = secrets.token_urlsafe(32), secrets.token_urlsafe(32), time.time()
    over = (tables.sessions.c.until < now) | (tables.sessions.c.idle_until < now)
    connection.execute(delete(tables.sessions).where(over))
    connection.execute(
        insert(tables.sessions).values(
            digest=_digest(token),
            person=person,
            csrf=csrf,
            created=now,
            until=now + 3_600 * hours,
            idle_until=now + 3_600 * (hours if idle_hours is None else idle_hours),
        )
    )
    return token, csrf


def prolong_session(connection: Connection, token: str, idle_hours: float) -> None:
    """A session was used; one that is over stays over."""
    table, now = tables.sessions, time.time()
    goes_on = (table.c.digest == _digest(token)) & (table.c.until > now) & (table.c.idle_until > now)
    connection.execute(update(table).where(goes_on).values(idle_until=now + 3_600 * idle_hours))


def end_session(connection: Connection, token: str) -> None:
    """Log out."""
    connection.execute(delete(tables.sessions).where(tables.sessions.c.digest == _digest(token)))


def who_has_session(connection: Connection, token: str) -> Who | None:
    """Whose browser this is, if its session goes on."""
    row = connection.execute(_OF_BROWSER, {"secret": _digest(token), "now": time.time()}).one_or_none()
    return None if row is None or row.role is None else Who(row.id, Role(row.role), row.csrf, row.created)


def make_token(connection: Connection, person: str, name: str, days: float) -> tuple[str, str]:
    """An API token: its id, and the token, which is shown once."""
    if not name.strip() or len(name) > 128:
        raise InvalidError("a token needs a name of 1 to 128 characters, to know it again")
    token, id, now = _TOKEN + secrets.token_urlsafe(32), secrets.token_hex(8), time.time()
    row = {"id": id, "digest": _digest(token), "person": person, "name": name.strip(), "created": now}
    connection.execute(insert(tables.tokens).values(**row, until=now + 86_400 * days))
    return id, token


def remove_token(connection: Connection, person: str, id: str) -> None:
    """End a token of one's own."""
    found = connection.execute(delete(tables.tokens).where(tables.tokens.c.id == id, tables.tokens.c.person == person))
    if not found.rowcount:
        raise NotFoundError(f"no token {id}")


def who_has_token(connection: Connection, token: str) -> Who | None:
    """Whose program this is, if its token is good."""
    query = (
        select(tables.people.c.id, tables.people.c.role)
        .join(tables.people, tables.people.c.id == tables.tokens.c.person)
        .where(tables.tokens.c.digest == _digest(token), tables.tokens.c.until > time.time(), tables.people.c.active)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None or row.role is None else Who(row.id, Role(row.role), None)


def who_asks(connection: Connection, authorization: str, cookie: str | None) -> Who | None:
    """Who sends a request with this header and this cookie; a token comes before a session."""
    token = bearer_of(authorization)
    if token is not None:
        return who_has_token(connection, token)
    return None if cookie is None else who_has_session(connection, cookie)


def bearer_of(authorization: str) -> str | None:
    """The token in a header, if it has one.

    >>> bearer_of("Bearer qt_x"), bearer_of("Basic eDp5")
    ('qt_x', None)
    """
    return authorization[7:].strip() if authorization.lower().startswith("bearer ") else None


def note_use(connection: Connection, token: str) -> None:
    """Keep when a token was last used."""
    connection.execute(update(tables.tokens).where(tables.tokens.c.digest == _digest(token)).values(used=time.time()))


def invite(
    connection: Connection,
    role: Role,
    person: str | None = None,
    *,
    by: str | None = None,
    name: str = "",
    secret: bytes = b"",
) -> str:
    """A secret for a link, good once within a week, as long as whoever made it is here in the role that they have.

    One by ``name`` is kept under the service's ``secret``, so that it can be shown again; but for managers and admins,
    whose links take a password to make, and so are shown once.
    """
    token, now = secrets.token_urlsafe(24), time.time()
    table = tables.invitations
    connection.execute(update(table).where(table.c.until < now).values(sealed=None))  # nobody needs their names now
    kept = {"name": name, "token": "" if role.may(Role.MANAGER) else token}
    connection.execute(
        insert(table).values(
            digest=_digest(token),
            role=role.value,
            person=person,
            by=by,
            created=now,
            until=now + 86_400 * _INVITATION_DAYS,
            sealed=_sealing(secret).encrypt(json.dumps(kept).encode()) if name else None,
        )
    )
    return token


def invite_by_name(
    connection: Connection, secret: bytes, names: Sequence[str], role: Role, *, by: str | None = None
) -> dict[str, str]:
    """Secrets for links, one for each name; :class:`ConflictError` if somebody is here, or invited, by one of them."""
    invited = {digest(secret, one.name) for one in open_invitations(connection, secret) if one.name}
    found: dict[str, str] = {}
    for given in names:
        name = called(given)
        login = digest(secret, name)
        if login in invited:
            raise ConflictError(f"{name!r} is invited already, or is in the list twice (take another name)")
        if connection.execute(select(tables.people.c.id).where(tables.people.c.login == login)).first():
            raise ConflictError(f"there is a {name!r} already (take another name)")
        invited.add(login)
        found[name] = invite(connection, role, by=by, name=name, secret=secret)
    return found


def _sealing(secret: bytes) -> Fernet:
    """What names in invitations are kept under: a key of its own out of the service's."""
    return Fernet(base64.urlsafe_b64encode(hmac.digest(secret, b"quorate: names in invitations", "sha256")))


def _unsealed(secret: bytes, sealed: bytes | None) -> dict[str, str]:
    if sealed is None or not secret:
        return {"name": "", "token": ""}
    try:
        kept: dict[str, str] = json.loads(_sealing(secret).decrypt(sealed))
    except InvalidToken:  # of a service that had another secret
        return {"name": "", "token": ""}
    return kept


def find_invitation(connection: Connection, token: str, secret: bytes = b"") -> Invitation:
    """What a link is for; :class:`NotFoundError` if it is not, or no longer, good."""
    row = connection.execute(
        select(tables.invitations).where(
            tables.invitations.c.digest == _digest(token),
            tables.invitations.c.used.is_(None),
            tables.invitations.c.until > time.time(),
        )
    ).one_or_none()
    if row is None:
        raise NotFoundError("this link has been used, or is too old (ask for another)")
    return Invitation(Role(row.role), row.person, _unsealed(secret, row.sealed)["name"])


def use_invitation(connection: Connection, token: str) -> None:
    """Let a link be good no more; :class:`NotFoundError` if somebody was faster."""
    found = connection.execute(
        update(tables.invitations)
        .where(tables.invitations.c.digest == _digest(token), tables.invitations.c.used.is_(None))
        .values(used=time.time(), sealed=None)
    )
    if not found.rowcount:
        raise NotFoundError("this link has been used (ask for another)")


def open_invitations(connection: Connection, secret: bytes = b"") -> list[OpenInvitation]:
    """The links that are good still, the newest first; by name with the service's ``secret``."""
    table = tables.invitations.c
    columns = (table.digest, table.role, table.person, table.by, table.created, table.until, table.sealed)
    query = select(*columns).where(table.used.is_(None), table.until > time.time())
    rows = connection.execute(query.order_by(table.created.desc(), table.digest))
    return [
        OpenInvitation(
            row.digest[:_ID],
            Role(row.role),
            row.person,
            row.by,
            row.created,
            row.until,
            **_unsealed(secret, row.sealed),
        )
        for row in rows
    ]


def revoke_invitation(connection: Connection, id: str) -> None:
    """Let a link be good no more that nobody has used; :class:`NotFoundError` if there is none."""
    table = tables.invitations
    wanted = (func.substr(table.c.digest, 1, _ID) == id) & table.c.used.is_(None)
    if not connection.execute(delete(table).where(wanted)).rowcount:
        raise NotFoundError("no such link is open (it was used, or is too old)")
