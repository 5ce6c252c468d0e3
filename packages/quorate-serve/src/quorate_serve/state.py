"""What stands now, as what happened says it.

One function says what an event does to the tables of what stands. It is called when the event happens, in the same
transaction, and again for every event when those tables are rebuilt: they cannot come to differ.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Executable, Table, bindparam, delete, insert, update

from quorate_serve.database import tables
from quorate_serve.database.engine import upsert
from quorate_serve.events import Event, Kind, append, events_after

STANDS = (tables.current_annotations, tables.assignments, tables.reviews, tables.review_leases, tables.campaign)
"""The tables of what stands now."""

_KEYS = ("document", "person")


def record(connection: Connection, kind: Kind, **fields: Any) -> Event:
    """Add an event (as :func:`quorate_serve.events.append` does), and let it have its effect."""
    event = append(connection, kind, **fields)
    apply(connection, event)
    return event


def apply(connection: Connection, event: Event) -> None:
    """What an event does to what stands."""
    effect = _EFFECTS.get(event.kind)
    if effect is not None:
        effect(connection, event)


def rebuild(connection: Connection) -> int:
    """Make the tables of what stands from events alone, in one pass; how many events there were.

    Nobody may save meanwhile: give it the connection of one write.
    """
    for table in STANDS:
        connection.execute(delete(table))
    count = last = 0
    while some := events_after(connection, last):
        for event in some:
            apply(connection, event)
        count, last = count + len(some), some[-1].seq
    return count


def _saved(connection: Connection, event: Event) -> None:
    row = {
        **_key(event),
        "event": event.seq,
        "revision": event.body["revision"],
        "at": event.at,
        "seconds": event.seconds,
        "spans": event.body["spans"],
        "tags": event.body.get("tags"),
    }
    upsert(connection, tables.current_annotations, row, _KEYS)
    _change(connection, tables.assignments, event, state="done")


def _withdrawn(connection: Connection, event: Event) -> None:
    _remove(connection, tables.current_annotations, event)
    _change(connection, tables.assignments, event, state="leased", until=event.body["until"])


def _leased(connection: Connection, event: Event) -> None:
    row = {
        **_key(event),
        "purpose": event.body["purpose"],
        "state": "leased",
        "at": event.at,
        "until": event.body["until"],
    }
    upsert(connection, tables.assignments, row, _KEYS)


def _released(connection: Connection, event: Event) -> None:
    _change(connection, tables.assignments, event, state="released", until=event.at)


def _review_leased(connection: Connection, event: Event) -> None:
    # what they were shown before, they have seen: ``revealed`` stays
    row = {**_key(event), "at": event.at, "until": event.body["until"]}
    upsert(connection, tables.review_leases, row, _KEYS)


def _review_released(connection: Connection, event: Event) -> None:
    _change(connection, tables.review_leases, event, until=event.at)


def _review_revealed(connection: Connection, event: Event) -> None:
    _change(connection, tables.review_leases, event, revealed=event.at)


def _review_decided(connection: Connection, event: Event) -> None:
    row = {
        **_key(event),
        "event": event.seq,
        "at": event.at,
        "spans": event.body["spans"],
        "accepted": event.body["accepted"],
        "adjudicates": event.body["adjudicates"],
        "version": event.body["version"],
    }
    upsert(connection, tables.reviews, row, _KEYS)
    _change(connection, tables.review_leases, event, until=event.at)


def _review_withdrawn(connection: Connection, event: Event) -> None:
    _remove(connection, tables.reviews, event)


def _campaign_changed(connection: Connection, event: Event) -> None:
    connection.execute(delete(tables.campaign))
    connection.execute(insert(tables.campaign).values(event=event.seq, body=dict(event.body)))


def _key(event: Event) -> dict[str, Any]:
    return {"document": event.document, "person": event.person}


def _change(connection: Connection, table: Table, event: Event, **values: Any) -> None:
    connection.execute(_changing(table, tuple(values)), {"of": event.document, "by": event.person, **values})


@lru_cache(maxsize=100)
def _changing(table: Table, columns: tuple[str, ...]) -> Executable:
    """The statement; to put one together takes longer than to execute it."""
    whose = (table.c.document == bindparam("of"), table.c.person == bindparam("by"))
    return update(table).where(*whose).values({name: bindparam(name) for name in columns})


def _remove(connection: Connection, table: Table, event: Event) -> None:
    connection.execute(delete(table).where(table.c.document == event.document, table.c.person == event.person))


_EFFECTS: dict[Kind, Callable[[Connection, Event], None]] = {
    Kind.ANNOTATION_SAVED: _saved,
    Kind.ANNOTATION_REVISED: _saved,
    Kind.ANNOTATION_WITHDRAWN: _withdrawn,
    Kind.ASSIGNMENT_LEASED: _leased,
    Kind.ASSIGNMENT_RELEASED: _released,
    Kind.REVIEW_LEASED: _review_leased,
    Kind.REVIEW_RELEASED: _review_released,
    Kind.REVIEW_REVEALED: _review_revealed,
    Kind.REVIEW_DECIDED: _review_decided,
    Kind.REVIEW_WITHDRAWN: _review_withdrawn,
    Kind.CAMPAIGN_CHANGED: _campaign_changed,
}
