"""Who did what to a document, and when: the events, with names and notes as far as their keys are still there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection

from quorate_serve.documents import document_record
from quorate_serve.events import history
from quorate_serve.people import people_of, read_personal

__all__ = ["Entry", "history_of"]


class Entry(NamedTuple):
    """One thing that happened to a document; ``name`` and ``note`` can be read until the person is erased."""

    event: int
    kind: str
    at: float
    person: str | None
    name: str
    seconds: float | None
    note: str
    body: Mapping[str, Any]


def history_of(connection: Connection, document: int) -> list[Entry]:
    """All that happened to a document, the first thing first."""
    document_record(connection, document)
    events = list(history(connection, document))
    names = {one.id: one.name for one in people_of(connection, {event.person for event in events if event.person})}
    return [
        Entry(
            event.seq,
            event.kind.value,
            event.at,
            event.person,
            names.get(event.person or "", ""),
            event.seconds,
            read_personal(connection, event.person, event.personal),
            event.body,
        )
        for event in events
    ]
