"""The next document, through the API."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict
from sqlalchemy import Connection, select

from quorate.active.checks import Turn
from quorate.service import annotating, queue
from quorate.service.campaign import last_change
from quorate.service.database import tables
from quorate.service.documents import document_record
from quorate.service.queue import Assignment, Nothing
from quorate.service.routes.common import ServiceOf, SpanOut, WhoAsks

router = APIRouter(prefix="/api/v1/queue", tags=["queue"])


class Task(BaseModel):
    """A document to label: offsets are code points, ``tokens`` are ``[start, end]``, end excluded.

    It is yours until the time ``until`` (seconds since 1970). ``training``: what is right is told after the save.
    ``spans`` are those that you have saved, if any; ``suggestions`` is null unless the service shows any.
    """

    number: int
    id: str
    text: str
    tokens: list[tuple[int, int]]
    training: bool
    until: float
    spans: list[SpanOut] | None
    suggestions: list[SpanOut] | None


class Next(BaseModel):
    """The next document, or null and why: ``done``, ``enough`` or ``waits``, and the same in words.

    ``campaign`` is the number of the last change of labels and guidelines; 0 if they are as they were at the start.
    """

    document: Task | None
    campaign: int
    reason: Nothing | None = None
    message: str = ""


class Release(BaseModel):
    """A document to give back."""

    model_config = ConfigDict(extra="forbid")
    document: int


class Released(BaseModel):
    """It is given back."""

    document: int


@router.post("/next")
def next_document(service: ServiceOf, who: WhoAsks) -> Next:
    """Get the next document to label; the one that you have, if you have not saved it yet."""
    settings, secret = service.settings.queue, service.secret
    looked = service.read(lambda connection: queue.fewest_labels(connection, who.person, settings))
    found = service.change(
        lambda connection: queue.lease(connection, who.person, settings, secret=secret, looked=looked)
    )
    campaign = service.read(last_change)
    if isinstance(found, Nothing):
        return Next(document=None, campaign=campaign, reason=found, message=found.message)
    suggests = service.settings.suggestions
    task = service.read(lambda connection: _task(connection, who.person, found, suggests))
    return Next(document=task, campaign=campaign)


@router.post("/release")
def release_document(service: ServiceOf, who: WhoAsks, given: Release) -> Released:
    """Give a document back without labels; it goes to somebody else."""
    service.change(lambda connection: queue.release(connection, who.person, given.document))
    return Released(document=given.document)


def _task(connection: Connection, person: str, given: Assignment, suggests: bool) -> Task:
    row = document_record(connection, given.document)
    own = annotating.current(connection, given.document, person)
    consensus = select(tables.consensus.c.spans).where(tables.consensus.c.document == given.document)
    suggestions = connection.execute(consensus).scalar() or [] if suggests else None
    return Task(
        number=given.document,
        id=row["id"],
        text=row["text"],
        tokens=row["tokens"],
        training=given.purpose is Turn.TRAINING,
        until=given.until,
        spans=None if own is None else [SpanOut.model_validate(span) for span in own["spans"]],
        suggestions=None if suggestions is None else [SpanOut.model_validate(span) for span in suggestions],
    )
