"""The next document, through the API."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict
from sqlalchemy import Connection, select

from quorate.active.checks import Turn
from quorate_serve import annotating, queue
from quorate_serve.answers import Span, Task
from quorate_serve.campaign import last_change
from quorate_serve.database import tables
from quorate_serve.documents import content_of, document_record
from quorate_serve.queue import Assignment, Nothing
from quorate_serve.routes.common import ServiceOf, WhoAsks

router = APIRouter(prefix="/api/v1/queue", tags=["queue"])


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
        **content_of(row),
        training=given.purpose is Turn.TRAINING,
        until=given.until,
        spans=None if own is None else msgspec.convert(own["spans"], list[Span]),
        suggestions=msgspec.convert(suggestions, list[Span] | None),
    )
