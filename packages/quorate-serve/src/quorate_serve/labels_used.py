"""The labels that have been used so far: what people choose from where none are given."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from threading import Lock

from sqlalchemy import Connection, select

from quorate_serve.database import tables
from quorate_serve.documents import SpanRecord
from quorate_serve.events import Kind

_PAUSE = 3.0  # seconds between two looks
_AT_ONCE = 100_000  # events or documents of one look
_KINDS = (Kind.ANNOTATION_SAVED.value, Kind.ANNOTATION_REVISED.value, Kind.REVIEW_DECIDED.value)


def labels_in_use(connection: Connection) -> set[str]:
    """All labels that have been used, as of this transaction."""
    return LabelsUsed().read_all(connection)


class LabelsUsed:
    """Labels of annotations that were imported or saved, of reviews and of gold, and so of any consensus on them.

    Each look reads what came since the one before; one is kept for all who ask in a process.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._labels: set[str] = set()
        self._due = self._clock()
        self._event = self._document = 0  # the last that were read

    def look(self, connection: Connection) -> tuple[str, ...]:
        """The labels, in their order; what was saved in the last seconds may be missing."""
        with self._lock:
            if self._clock() >= self._due:
                self._read(connection)
                self._due = self._clock() + _PAUSE
            return tuple(sorted(self._labels))

    def read_all(self, connection: Connection) -> set[str]:
        """The labels until now, none left out."""
        with self._lock:
            while self._read(connection):
                pass
            return set(self._labels)

    def _read(self, connection: Connection) -> bool:
        """Read some of what came; whether there was anything."""
        before = self._event, self._document
        events, documents = tables.events.c, tables.documents.c
        saved = select(events.seq, events.body).where(events.seq > self._event, events.kind.in_(_KINDS))
        for row in connection.execute(saved.order_by(events.seq).limit(_AT_ONCE)):
            self._event = row.seq
            self._add(row.body["spans"])
        known = select(documents.number, documents.gold).where(documents.number > self._document)
        for row in connection.execute(known.order_by(documents.number).limit(_AT_ONCE)):
            self._document = row.number
            self._add(row.gold or ())
        return before != (self._event, self._document)

    def _add(self, spans: Iterable[SpanRecord]) -> None:
        self._labels.update(span["label"] for span in spans)
