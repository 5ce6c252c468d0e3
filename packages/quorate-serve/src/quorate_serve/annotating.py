"""What people say of documents: saved, revised, withdrawn, undone. A save that comes twice is one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, and_, bindparam, func, select

from quorate.active.checks import Turn
from quorate.corpus.overlaps import OverlapRule
from quorate_serve.answers import Annotation, Saved, Span
from quorate_serve.database import tables
from quorate_serve.delivering import ANY_WEBHOOK, document_labelled
from quorate_serve.documents import SpanRecord, check_overlaps, check_spans, tokens_of
from quorate_serve.events import Event, Kind, find, history
from quorate_serve.problems import ConflictError, InvalidError, NotFoundError, RefusedError
from quorate_serve.state import record

_OF_A_FILE = "import-"  # how ids of saves begin that came from files and other tools
_TO_DO_AGAIN = 86_400.0  # seconds that somebody has who took back what they said
_KINDS = (Kind.ANNOTATION_SAVED, Kind.ANNOTATION_REVISED, Kind.ANNOTATION_WITHDRAWN)


# What every save asks, put together once: that takes longer than to ask it.
_documents, _lent, _kept, _events = tables.documents, tables.assignments, tables.current_annotations, tables.events
_OF, _TO = bindparam("of", type_=_documents.c.number.type), bindparam("to", type_=_lent.c.person.type)
_PLACE = (
    select(
        func.length(_documents.c.text).label("length"),
        _lent.c.purpose,
        _kept.c.revision,
        select(_events.c.seq).where(_events.c.id == bindparam("id")).scalar_subquery().label("before"),
        ANY_WEBHOOK.exists().label("has_webhook"),
    )
    .outerjoin(_lent, and_(_lent.c.document == _documents.c.number, _lent.c.person == _TO))
    .outerjoin(_kept, and_(_kept.c.document == _documents.c.number, _kept.c.person == _TO))
    .where(_documents.c.number == _OF)
)
_RIGHT = (
    select(_documents.c.gold)
    .join(_lent, _lent.c.document == _documents.c.number)
    .where(_documents.c.number == _OF, _lent.c.person == _TO, _lent.c.purpose == "training")
)
_REVISION = select(_kept.c.revision).where(_kept.c.document == _OF, _kept.c.person == _TO)
_WITHDRAWN = (
    select(_events.c.body)
    .where(_events.c.document == _OF, _events.c.person == _TO, _events.c.kind == Kind.ANNOTATION_WITHDRAWN.value)
    .order_by(_events.c.seq.desc())
    .limit(1)
)
_LAST = (
    select(_events.c.id, _events.c.body)
    .where(_events.c.document == _OF, _events.c.person == _TO, _events.c.kind.in_([kind.value for kind in _KINDS]))
    .order_by(_events.c.seq.desc())
    .limit(1)
)


class Given(NamedTuple):
    """A save as it comes in: ``id`` is made by the client, and is the same when it is tried again."""

    id: str
    document: int
    spans: Sequence[Mapping[str, Any]]
    seconds: float | None = None
    client: str | None = None


def save(
    connection: Connection,
    person: str,
    given: Given,
    labels: Sequence[str] = (),
    *,
    rule: OverlapRule | None = None,
    least: int | None = None,
) -> Saved:
    """Keep what somebody says of a document they were given, in place of what they said before.

    ``rule`` says which spans may overlap; without it, all may. ``least`` is how many annotators complete a document,
    where webhooks are to be told.
    """
    _check_id(given.id)
    place = connection.execute(_PLACE, {"of": given.document, "to": person, "id": given.id}).one_or_none()
    if place is None or place.before is not None:
        before = _same(connection, person, given.id)
        if before is not None:
            return replace(before, gold=_right(connection, person, before.document))
        raise NotFoundError(f"no document {given.document}")
    spans = check_spans(given.spans, place.length, labels)
    if place.purpose is None:
        raise RefusedError(f"document {given.document} was not given to you (ask the queue for the next one)")
    check_overlaps(spans, rule, lambda: tokens_of(connection, given.document))
    enough = least if place.has_webhook else None
    saved = _keep(connection, person, given, {"spans": spans}, enough, revision=place.revision)
    if place.purpose == Turn.TRAINING.value:
        return replace(saved, gold=_right(connection, person, given.document))
    return saved


def annotated(connection: Connection, person: str, documents: Sequence[int]) -> set[int]:
    """Those of these documents that somebody annotated themselves."""
    query = select(_kept.c.document).where(_kept.c.person == person, _kept.c.document.in_(documents))
    return set(connection.execute(query).scalars())


def import_annotation(
    connection: Connection,
    person: str,
    document: int,
    spans: list[SpanRecord],
    tags: list[Any] | None,
    *,
    client: str | None = None,
    least: int | None = None,
) -> bool:
    """Keep what a file says that somebody said, or another tool (``client``); whether that is new.

    What people saved or withdrew here stands, whatever a file says: it may have been written before.
    """
    last = connection.execute(_LAST, {"of": document, "to": person}).one_or_none() if client is None else None
    if last is not None:
        made_here = not last.id.startswith(_OF_A_FILE)
        if made_here or (last.body["spans"] == spans and last.body.get("tags") == tags):
            return False
    given = Given(f"{_OF_A_FILE}{time.time_ns():x}-{person}-{document}", document, spans, client=client)
    _keep(connection, person, given, {"spans": spans} if tags is None else {"spans": spans, "tags": tags}, least)
    return True


def withdraw(connection: Connection, person: str, document: int, id: str, *, client: str | None = None) -> Saved:
    """Take back what somebody said of a document; it is theirs to do again."""
    before = _same(connection, person, id)
    if before is not None:
        return before
    there = current(connection, document, person)
    if there is None:
        raise NotFoundError(f"nothing of yours is saved for document {document}")
    body = {"revision": there["revision"] + 1, "until": time.time() + _TO_DO_AGAIN}
    event = record(
        connection, Kind.ANNOTATION_WITHDRAWN, person=person, document=document, id=id, body=body, client=client
    )
    return Saved(event.seq, document, body["revision"])


def undo(connection: Connection, person: str, document: int, id: str, *, rule: OverlapRule | None = None) -> Saved:
    """Go back to what somebody said before, as a new revision; again, and it goes back further."""
    before = _same(connection, person, id)
    if before is not None:
        return before
    past = revisions(connection, person, document)
    if not past:
        raise NotFoundError(f"nothing of yours is saved for document {document}")
    earlier = [event for event in past if "spans" in event.body and event.body["revision"] < _shown(past[-1])]
    if not earlier:
        raise ConflictError(f"this is the first that you said of document {document} (withdraw it, if it is wrong)")
    back = earlier[-1]
    check_overlaps(back.body["spans"], rule, lambda: tokens_of(connection, document))
    body = {name: back.body[name] for name in ("spans", "tags") if name in back.body}
    return _keep(connection, person, Given(id, document, ()), {**body, "restores": _shown(back)})


def _shown(event: Event) -> int:
    """The revision whose spans stand after an event: its own, or the one that it went back to."""
    return int(event.body.get("restores", event.body["revision"]))


def current(connection: Connection, document: int, person: str) -> Mapping[str, Any] | None:
    """What somebody says of a document now."""
    query = select(tables.current_annotations).where(
        tables.current_annotations.c.document == document, tables.current_annotations.c.person == person
    )
    row = connection.execute(query).mappings().first()
    return None if row is None else dict(row)


def of_person(connection: Connection, person: str, after: int, most: int) -> list[Annotation]:
    """What somebody says of documents, in the order of their numbers."""
    kept = tables.current_annotations
    query = select(kept).where(kept.c.person == person, kept.c.document > after).order_by(kept.c.document).limit(most)
    return msgspec.convert(connection.execute(query).all(), list[Annotation], from_attributes=True)


def revisions(connection: Connection, person: str, document: int) -> list[Event]:
    """All that somebody said of a document, the first first."""
    return [event for event in history(connection, document, person) if event.kind in _KINDS]


def _right(connection: Connection, person: str, document: int) -> list[Span] | None:
    """What is right in a document that somebody was given to learn from; ``None`` for any other."""
    return msgspec.convert(connection.execute(_RIGHT, {"of": document, "to": person}).scalar(), list[Span] | None)


def _check_id(id: str) -> None:
    if not 8 <= len(id) <= 64:
        raise InvalidError("the id of a save has 8 to 64 characters (a random UUID does well)")
    if id.startswith(_OF_A_FILE):
        raise InvalidError(f"the id of a save does not begin with {_OF_A_FILE!r} (a random UUID does well)")


def _same(connection: Connection, person: str, id: str) -> Saved | None:
    """The acknowledgement of a save that has been here before."""
    _check_id(id)
    event = find(connection, id)
    if event is None:
        return None
    if event.person != person or event.document is None or event.kind not in _KINDS:
        raise ConflictError("this id was taken by another save (make ids at random)")
    return Saved(event.seq, event.document, int(event.body["revision"]))


def _keep(
    connection: Connection,
    person: str,
    given: Given,
    body: Mapping[str, Any],
    least: int | None = None,
    *,
    revision: int | None = None,
) -> Saved:
    """Add a revision after the one that stands, which is asked for unless it is told."""
    revision = (_last_revision(connection, person, given.document) if revision is None else revision) + 1
    event = record(
        connection,
        Kind.ANNOTATION_SAVED if revision == 1 else Kind.ANNOTATION_REVISED,
        person=person,
        document=given.document,
        id=given.id,
        seconds=given.seconds,
        client=given.client,
        body={**body, "revision": revision},
    )
    if least is not None:
        document_labelled(connection, given.document, least)
    return Saved(event.seq, given.document, revision)


def _last_revision(connection: Connection, person: str, document: int) -> int:
    place = {"of": document, "to": person}
    there = connection.execute(_REVISION, place).scalar()
    if there is not None:
        return int(there)
    withdrawn = connection.execute(_WITHDRAWN, place).scalar()
    return 0 if withdrawn is None else int(withdrawn["revision"])
