"""Who did what to a document, and when: the events, with names and notes as far as their keys are still there."""

from __future__ import annotations

from sqlalchemy import Connection

from quorate_serve.answers import HistoryEntry
from quorate_serve.documents import document_record
from quorate_serve.events import history
from quorate_serve.people import people_of, read_personal


def history_of(connection: Connection, document: int) -> list[HistoryEntry]:
    """All that happened to a document, the first thing first."""
    document_record(connection, document)
    events = list(history(connection, document))
    names = {one.id: one.name for one in people_of(connection, {event.person for event in events if event.person})}
    return [
        HistoryEntry(
            event.seq,
            event.kind.value,
            event.at,
            event.person,
            names.get(event.person or "", ""),
            event.seconds,
            read_personal(connection, event.person, event.personal),
            dict(event.body),
        )
        for event in events
    ]
