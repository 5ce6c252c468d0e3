"""Who is here: accounts, roles, and who they are, which only their key can tell.

A name or an e-mail address is encrypted under a key of that person. To erase somebody is to delete that key, and what
they could log in with: their labels stay, under an id that says nothing, and so does the consensus that rests on them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from cryptography.fernet import Fernet
from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from quorate.corpus.profiles import Kind as PersonKind
from quorate.corpus.profiles import Profile
from quorate_serve.database import tables
from quorate_serve.events import Kind, append
from quorate_serve.problems import ConflictError, InvalidError, NotFoundError

__all__ = [
    "Person",
    "PersonKind",
    "Role",
    "add_person",
    "called",
    "change_person",
    "check_not_erased",
    "digest",
    "end_access",
    "erase",
    "find_by_folded_names",
    "find_person",
    "find_subject",
    "knows_secret",
    "named",
    "people_of",
    "read_personal",
    "set_password",
    "set_subject",
    "write_personal",
]

_TRIED = 20  # people: one of them may have come from elsewhere
_LONGEST_NAME = 200
# What is shown as nothing, joins, or turns text round: what Unicode calls default ignorable, and a few like it.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


class Role(StrEnum):
    """What somebody may do; each may do what those before may.

    >>> Role.MANAGER.may(Role.REVIEWER), Role.ANNOTATOR.may(Role.REVIEWER)
    (True, False)
    """

    ANNOTATOR = "annotator"
    REVIEWER = "reviewer"
    MANAGER = "manager"
    ADMIN = "admin"

    def may(self, least: Role) -> bool:
        """Whether this role may do what is for ``least`` and above."""
        order = list(Role)
        return order.index(self) >= order.index(least)


class Person(NamedTuple):
    """Somebody who labels, or whose labels were imported. ``name`` is what they are called, if it can be read."""

    id: str
    name: str
    email: str
    kind: PersonKind
    role: Role | None
    active: bool
    created: float
    cost: float
    most: int | None


def digest(secret: bytes, what: str) -> str:
    """What a name is found by, however it is written: it cannot be turned back, nor guessed without the secret."""
    return _digest_of_folded(secret, " ".join(_INVISIBLE.sub("", what).split()))


def _digest_of_folded(secret: bytes, what: str) -> str:
    """What a name is found by with its blanks and all that nobody sees, as versions up to 0.11 kept it."""
    folded = unicodedata.normalize("NFKC", what).casefold().strip()
    return hmac.new(secret, folded.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _subject_digest(secret: bytes, subject: str) -> str:
    """What somebody is found by who logs in at a provider: there every letter counts."""
    return hmac.new(secret, b"subject " + subject.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _digest_as_written(secret: bytes, name: str) -> str:
    """What a name is found by with its case and width; no folded name has this digest, as none has a NUL in it."""
    written = b"\0" + name.strip().encode("utf-8", "surrogatepass")
    return hmac.new(secret, written, hashlib.sha256).hexdigest()


def knows_secret(connection: Connection, secret: bytes) -> bool:
    """Whether people were added with this secret: with another, nobody would be found by their name any more."""
    query = select(tables.people.c.id, tables.people.c.login).where(tables.people.c.login.is_not(None))
    logins = {row.id: row.login for row in connection.execute(query.order_by(tables.people.c.created).limit(_TRIED))}
    names = [(one.name, logins[one.id]) for one in people_of(connection) if one.id in logins and one.name]
    made = (digest, _digest_as_written, _digest_of_folded)
    return not names or any(login == make(secret, name) for name, login in names for make in made)


def find_by_folded_names(connection: Connection, secret: bytes) -> list[Person]:
    """Have people found by their names who were added when blanks and what nobody sees counted in them.

    Those whose name is taken then cannot log in by it any more: it was made to look like another's.
    """
    table = tables.people
    there = {row.login: row.id for row in connection.execute(select(table.c.login, table.c.id))}
    without: list[Person] = []
    for person in people_of(connection):
        before, login = _digest_of_folded(secret, person.name), digest(secret, person.name)
        if before == login or there.get(before) != person.id:
            continue
        if login in there and person.role is not None:
            without.append(person)
            continue
        login = _digest_as_written(secret, person.name) if login in there else login
        connection.execute(update(table).where(table.c.id == person.id).values(login=login))
        there[login] = person.id
    return without


def add_person(
    connection: Connection,
    secret: bytes,
    name: str,
    *,
    role: Role | None,
    profile: Profile | None = None,
    login: str | None = None,
    password_hash: str | None = None,
    email: str = "",
    subject: str | None = None,
    by: str | None = None,
) -> str:
    """Add somebody, and say under which id; :class:`ConflictError` if the name is taken.

    A ``profile`` says what they are, how far they are trusted, and with whom they err. ``login`` is what they are
    found by, if not by their name however it is written. Whoever logs in has a name without anything that nobody sees;
    others are called what files call them.
    """
    kind = PersonKind.PERSON if profile is None else profile.kind
    name = called(name, logs_in=role is not None)
    login = login or digest(secret, name)
    if connection.execute(select(tables.people.c.id).where(tables.people.c.login == login)).first():
        raise ConflictError(f"there is a {name!r} already (take another name)")
    person, key = f"p_{secrets.token_hex(8)}", Fernet.generate_key()
    personal = Fernet(key).encrypt(json.dumps({"name": name, "email": email}).encode())
    connection.execute(
        insert(tables.people).values(
            id=person,
            kind=kind.value,
            profile=None if profile is None else profile.plain(),
            role=None if role is None else role.value,
            active=True,
            created=time.time(),
            login=login,
            subject=None if subject is None else _subject_digest(secret, subject),
            password=password_hash,
            cost=1.0,
            personal=personal,
        )
    )
    connection.execute(insert(tables.personal_keys).values(person=person, key=key))
    body = {"person": person, "role": None if role is None else role.value, "kind": kind.value}
    append(connection, Kind.PERSON_ADDED, person=by or person, body=body)
    return person


def called(name: str, *, logs_in: bool = True) -> str:
    """A name as it is kept; :class:`InvalidError` if it is none. Whoever logs in has one that shows all that it has.

    >>> called("Ada   Lovelace ")
    'Ada Lovelace'
    """
    name = name.strip()
    has_control = any(unicodedata.category(each) == "Cc" for each in name)
    if logs_in:
        name = unicodedata.normalize("NFC", " ".join(_INVISIBLE.sub("", name).split()))
    if not name or len(name) > _LONGEST_NAME or has_control:
        raise InvalidError(f"a name has 1 to {_LONGEST_NAME} characters, and no control characters")
    return name


def set_password(connection: Connection, person: str, password_hash: str) -> None:
    """Give somebody a new password (as :mod:`quorate_serve.passwords` keeps it); what the old one opened ends."""
    connection.execute(update(tables.people).where(tables.people.c.id == person).values(password=password_hash))
    end_access(connection, person)
    _end_links(connection, tables.invitations.c.person == person)


def set_subject(connection: Connection, secret: bytes, person: str, subject: str) -> None:
    """Let somebody log in by a provider of logins from now on, as who they are there, instead of by a password."""
    value = _subject_digest(secret, subject)
    table = tables.people
    if connection.execute(select(table.c.id).where(table.c.subject == value, table.c.id != person)).first():
        raise ConflictError("somebody else here logs in with this account (use another)")
    connection.execute(update(table).where(table.c.id == person).values(subject=value, password=None))
    end_access(connection, person)
    _end_links(connection, tables.invitations.c.person == person)


def end_access(connection: Connection, person: str) -> None:
    """Log somebody out in every browser, and end their tokens."""
    for table in (tables.sessions, tables.tokens):
        connection.execute(delete(table).where(table.c.person == person))


def _end_links(connection: Connection, which: ColumnElement[bool]) -> None:
    """Let links be good no more that were made for who somebody was then, or by who they were."""
    connection.execute(delete(tables.invitations).where(which))


def find_subject(connection: Connection, secret: bytes, subject: str) -> Person | None:
    """Who logs in by a provider of logins as this, if anybody does."""
    query = select(tables.people.c.id).where(tables.people.c.subject == _subject_digest(secret, subject))
    found = connection.execute(query).scalar()
    return None if found is None else find_person(connection, found)


def find_person(connection: Connection, person: str) -> Person:
    """Somebody by id; :class:`NotFoundError` if there is nobody."""
    found = people_of(connection, [person])
    if not found:
        raise NotFoundError(f"nobody is called {person}")
    return found[0]


def people_of(connection: Connection, ids: Iterable[str] | None = None) -> list[Person]:
    """These people, or all, in the order in which they came."""
    query = select(tables.people, tables.personal_keys.c.key).outerjoin(tables.personal_keys)
    if ids is not None:
        query = query.where(tables.people.c.id.in_(list(ids)))
    return [_person(row) for row in connection.execute(query.order_by(tables.people.c.created, tables.people.c.id))]


def _person(row: Any) -> Person:
    personal = {} if row.key is None or row.personal is None else json.loads(Fernet(row.key).decrypt(row.personal))
    return Person(
        row.id,
        personal.get("name") or f"erased {row.id}",
        personal.get("email", ""),
        PersonKind(row.kind),
        None if row.role is None else Role(row.role),
        row.active,
        row.created,
        row.cost,
        row.most,
    )


def named(
    connection: Connection,
    secret: bytes,
    names: Sequence[str],
    *,
    profiles: Mapping[str, Profile] | None = None,
    by: str | None = None,
) -> dict[str, str]:
    """The ids of annotators whose labels come from files, by name; who is not here yet is added, without a login.

    Whoever logs in is found by their name however it is written. Of others, files may well mean two by names that
    differ only in case or width: the later goes by their name as it is written.
    """
    table, profile_of = tables.people.c, profiles or {}
    called = {person.id: person.name for person in people_of(connection)}
    logs_in = {row.id for row in connection.execute(select(table.id).where(table.role.is_not(None)))}
    there = {row.login: str(row.id) for row in connection.execute(select(table.login, table.id))}
    found: dict[str, str] = {}
    for name in names:
        login, written = digest(secret, name), _digest_as_written(secret, name)
        if login in there and there[login] not in logs_in and called[there[login]] != name.strip():
            login = written
        if login not in there:
            profile = profile_of.get(name)
            there[login] = add_person(connection, secret, name, role=None, profile=profile, login=login, by=by)
            called[there[login]] = name.strip()
        found[name] = there[login]
    return found


def change_person(connection: Connection, person: str, changes: Mapping[str, Any], *, by: str) -> None:
    """Change role, cost, how many documents they do, or whether they may log in."""
    before = find_person(connection, person)
    check_not_erased(connection, person)
    values = {name: changes[name] for name in ("role", "cost", "most", "active", "kind") if name in changes}
    missing = [name for name, value in values.items() if value is None and name != "most"]
    if missing:
        raise InvalidError(f"{missing[0]} needs a value (leave it out to keep it)")
    if before.role is Role.ADMIN and (values.get("role", Role.ADMIN) != Role.ADMIN or values.get("active") is False):
        _check_not_last_admin(connection, person)
    if not values:
        return
    connection.execute(update(tables.people).where(tables.people.c.id == person).values(**values))
    if values.get("active") is False or values.get("role", before.role) != before.role:
        end_access(connection, person)
        _end_links(connection, (tables.invitations.c.person == person) | (tables.invitations.c.by == person))
    append(connection, Kind.PERSON_CHANGED, person=by, body={"person": person, **values})


def check_not_erased(connection: Connection, person: str) -> None:
    """:class:`ConflictError` if somebody was erased."""
    key = select(tables.personal_keys.c.person).where(tables.personal_keys.c.person == person)
    if connection.execute(key).first() is None:
        raise ConflictError("this person was erased, which cannot be undone")


def erase(connection: Connection, person: str, *, by: str) -> None:
    """Make it impossible to tell who somebody was. What they labelled stays, under an id that says nothing."""
    if find_person(connection, person).role is Role.ADMIN:
        _check_not_last_admin(connection, person)
    connection.execute(delete(tables.personal_keys).where(tables.personal_keys.c.person == person))
    end_access(connection, person)
    _end_links(connection, (tables.invitations.c.person == person) | (tables.invitations.c.by == person))
    login = select(tables.people.c.login).where(tables.people.c.id == person).scalar_subquery()
    connection.execute(delete(tables.login_attempts).where(tables.login_attempts.c.login == login))
    gone = {"login": None, "subject": None, "password": None, "personal": None, "active": False, "role": None}
    connection.execute(update(tables.people).where(tables.people.c.id == person).values(**gone))
    append(connection, Kind.PERSON_ERASED, person=by, body={"person": person})


def _check_not_last_admin(connection: Connection, person: str) -> None:
    others = select(tables.people.c.id).where(
        tables.people.c.role == Role.ADMIN.value, tables.people.c.active, tables.people.c.id != person
    )
    if connection.execute(others).first() is None:
        raise ConflictError("this is the only admin (make somebody else one first)")


def write_personal(connection: Connection, person: str, note: str) -> bytes | None:
    """A text of a person's, under their key, as events keep it; ``None`` if there is nothing to keep."""
    if not note:
        return None
    key = connection.execute(select(tables.personal_keys.c.key).where(tables.personal_keys.c.person == person)).scalar()
    return None if key is None else Fernet(key).encrypt(note.encode())


def read_personal(connection: Connection, person: str | None, kept: bytes | None) -> str:
    """What :func:`write_personal` kept; an empty text once the person is erased."""
    if not kept or person is None:
        return ""
    key = connection.execute(select(tables.personal_keys.c.key).where(tables.personal_keys.c.person == person)).scalar()
    return "" if key is None else Fernet(key).decrypt(kept).decode()
