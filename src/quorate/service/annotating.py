"""What people say of documents: saved, revised, withdrawn. A save that comes twice is one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, select, update

from quorate.service.database import tables
from quorate.service.database.engine import upsert
from quorate.service.documents import check_spans, document_record
from quorate.service.events import Event, Kind, append, find
from quorate.service.problems import ConflictError, InvalidError, NotFoundError, RefusedError

__all__ = ["Saved", "current", "import_annotation", "save", "withdraw"]


class Saved(NamedTuple):
    """The acknowledgement of a save: the number of its event, and which revision of the document by this person."""

    event: int
    document: int
    revision: int


class Given(NamedTuple):
    """A save as it comes in: ``id`` is made by the client, and is the same when it is tried again."""

    id: str
    document: int
    spans: Sequence[Mapping[str, Any]]
    seconds: float | None = None
    client: str | None = None


def save(connection: Connection, person: str, given: Given, labels: Sequence[str] = ()) -> Saved:
    """Keep what somebody says of a document they were given, in place of what they said before."""
    before = _same(connection, person, given.id)
    if before is not None:
        return before
    document = document_record(connection, given.document)
    spans = check_spans(given.spans, len(document["text"]), labels)
    state = connection.execute(
        select(tables.assignments.c.state).where(
            tables.assignments.c.document == given.document, tables.assignments.c.person == person
        )
    ).scalar()
    if state is None:
        raise RefusedError(f"document {given.document} was not given to you (ask the queue for the next one)")
    saved = _keep(connection, person, given, spans)
    if state != "done":
        connection.execute(
            update(tables.assignments)
            .where(tables.assignments.c.document == given.document, tables.assignments.c.person == person)
            .values(state="done")
        )
    return saved


def import_annotation(
    connection: Connection, person: str, document: int, spans: list[dict[str, Any]], tags: list[Any] | None
) -> bool:
    """Keep what a file says that somebody said; whether that is new."""
    there = current(connection, document, person)
    if there is not None and there["spans"] == spans and there["tags"] == tags:
        return False
    _keep(connection, person, Given(f"import-{time.time_ns():x}-{person}-{document}", document, spans), spans, tags)
    return True


def withdraw(connection: Connection, person: str, document: int, id: str) -> Saved:
    """Take back what somebody said of a document; it is theirs to do again."""
    before = _same(connection, person, id)
    if before is not None:
        return before
    there = current(connection, document, person)
    if there is None:
        raise NotFoundError(f"nothing of yours is saved for document {document}")
    revision = there["revision"] + 1
    event = append(
        connection, Kind.ANNOTATION_WITHDRAWN, person=person, document=document, id=id, body={"revision": revision}
    )
    table = tables.current_annotations
    connection.execute(delete(table).where(table.c.document == document, table.c.person == person))
    connection.execute(
        update(tables.assignments)
        .where(tables.assignments.c.document == document, tables.assignments.c.person == person)
        .values(state="leased", until=time.time() + 86_400)
    )
    return Saved(event.seq, document, revision)


def current(connection: Connection, document: int, person: str) -> Mapping[str, Any] | None:
    """What somebody says of a document now."""
    query = select(tables.current_annotations).where(
        tables.current_annotations.c.document == document, tables.current_annotations.c.person == person
    )
    row = connection.execute(query).mappings().first()
    return None if row is None else dict(row)


def _same(connection: Connection, person: str, id: str) -> Saved | None:
    """The acknowledgement of a save that has been here before."""
    if not 8 <= len(id) <= 64:
        raise InvalidError("the id of a save has 8 to 64 characters (a random UUID does well)")
    event = find(connection, id)
    if event is None:
        return None
    if event.person != person or event.document is None:
        raise ConflictError("this id was taken by another save (make ids at random)")
    return Saved(event.seq, event.document, int(event.body.get("revision", 1)))


def _keep(
    connection: Connection,
    person: str,
    given: Given,
    spans: list[dict[str, Any]],
    tags: list[Any] | None = None,
) -> Saved:
    """The event, and what stands after it."""
    revision = _last_revision(connection, person, given.document) + 1
    kind = Kind.ANNOTATION_SAVED if revision == 1 else Kind.ANNOTATION_REVISED
    body = {"spans": spans, "revision": revision, **({} if tags is None else {"tags": tags})}
    event = append(
        connection,
        kind,
        person=person,
        document=given.document,
        id=given.id,
        seconds=given.seconds,
        client=given.client,
        body=body,
    )
    upsert(connection, tables.current_annotations, row_of(event), ("document", "person"))
    return Saved(event.seq, given.document, revision)


def row_of(event: Event) -> dict[str, Any]:
    """What stands after somebody saved: the row that an event makes, now or when the table is rebuilt."""
    return {
        "document": event.document,
        "person": event.person,
        "event": event.seq,
        "revision": event.body["revision"],
        "at": event.at,
        "seconds": event.seconds,
        "spans": event.body["spans"],
        "tags": event.body.get("tags"),
    }


def _last_revision(connection: Connection, person: str, document: int) -> int:
    there = current(connection, document, person)
    if there is not None:
        return int(there["revision"])
    withdrawn = connection.execute(
        select(tables.events.c.body)
        .where(
            tables.events.c.document == document,
            tables.events.c.person == person,
            tables.events.c.kind == Kind.ANNOTATION_WITHDRAWN.value,
        )
        .order_by(tables.events.c.seq.desc())
        .limit(1)
    ).scalar()
    return 0 if withdrawn is None else int(withdrawn["revision"])
