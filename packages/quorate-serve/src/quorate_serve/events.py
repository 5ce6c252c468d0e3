"""What happened, in one table that is only ever added to.

Everything else that the service knows follows from it: who said what now, what they said before, who decided, who
looked. A trigger in the database refuses to change or delete an event. What an event tells of a person beyond their id
is encrypted under their key, so that it can be made unreadable without touching the table.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, insert, select

from quorate_serve.database import tables


class Kind(StrEnum):
    """What can happen.

    >>> Kind("annotation.saved") is Kind.ANNOTATION_SAVED
    True
    """

    ANNOTATION_SAVED = "annotation.saved"
    ANNOTATION_REVISED = "annotation.revised"
    ANNOTATION_WITHDRAWN = "annotation.withdrawn"
    ASSIGNMENT_LEASED = "assignment.leased"
    ASSIGNMENT_RELEASED = "assignment.released"
    REVIEW_LEASED = "review.leased"
    REVIEW_RELEASED = "review.released"
    REVIEW_REVEALED = "review.revealed"
    REVIEW_DECIDED = "review.decided"
    REVIEW_WITHDRAWN = "review.withdrawn"
    IMPORTED = "import"
    EXPORTED = "export"
    AUDIT_PLANNED = "audit.planned"
    CAMPAIGN_CHANGED = "campaign.changed"
    PERSON_ADDED = "person.added"
    PERSON_CHANGED = "person.changed"
    PERSON_ERASED = "person.erased"


class Event(NamedTuple):
    """One thing that happened: what, when, who did it, to which document, and how long it took them."""

    seq: int
    id: str
    kind: Kind
    at: float
    person: str | None
    document: int | None
    seconds: float | None
    body: Mapping[str, Any]
    personal: bytes | None = None


_COLUMNS = (
    tables.events.c.seq,
    tables.events.c.id,
    tables.events.c.kind,
    tables.events.c.at,
    tables.events.c.person,
    tables.events.c.document,
    tables.events.c.seconds,
    tables.events.c.body,
    tables.events.c.personal,
)
_ADD = insert(tables.events)
_WITH_ID = select(*_COLUMNS).where(tables.events.c.id == bindparam("wanted"))


def append(
    connection: Connection,
    kind: Kind,
    *,
    person: str | None,
    document: int | None = None,
    body: Mapping[str, Any] | None = None,
    id: str | None = None,
    seconds: float | None = None,
    client: str | None = None,
    personal: bytes | None = None,
    at: float | None = None,
) -> Event:
    """Add an event, in the transaction of what it changes."""
    id, at = id or uuid.uuid4().hex, time.time() if at is None else at
    row = {
        "id": id,
        "kind": kind.value,
        "at": at,
        "person": person,
        "document": document,
        "seconds": seconds,
        "client": client,
        "body": dict(body or {}),
        "personal": personal,
    }
    seq = connection.execute(_ADD, row).inserted_primary_key
    assert seq is not None
    return Event(int(seq[0]), id, kind, at, person, document, seconds, body or {}, personal)


def find(connection: Connection, id: str) -> Event | None:
    """The event with an id that a client made, if it is here."""
    row = connection.execute(_WITH_ID, {"wanted": id}).one_or_none()
    return None if row is None else _event(row)


def events_after(connection: Connection, seq: int, most: int = 1_000) -> list[Event]:
    """The events after one, in their order."""
    query = select(*_COLUMNS).where(tables.events.c.seq > seq).order_by(tables.events.c.seq).limit(most)
    return [_event(row) for row in connection.execute(query)]


def history(connection: Connection, document: int, person: str | None = None) -> Iterator[Event]:
    """What happened to a document, the first thing first; of one person, or of all."""
    query = select(*_COLUMNS).where(tables.events.c.document == document).order_by(tables.events.c.seq)
    if person is not None:
        query = query.where(tables.events.c.person == person)
    return map(_event, connection.execute(query))


def last_event(connection: Connection) -> int:
    """The number of the last event; 0 before the first."""
    found = connection.execute(select(tables.events.c.seq).order_by(tables.events.c.seq.desc()).limit(1)).scalar()
    return int(found or 0)


def _event(row: Any) -> Event:
    return Event(row.seq, row.id, Kind(row.kind), row.at, row.person, row.document, row.seconds, row.body, row.personal)
