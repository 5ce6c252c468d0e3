"""What people say of documents, through the API; everybody sees and changes only their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from quorate_serve import annotating
from quorate_serve.documents import document_record
from quorate_serve.events import Event, Kind
from quorate_serve.problems import NotFoundError
from quorate_serve.routes.common import (
    After,
    Change,
    ClientId,
    Limit,
    Page,
    ServiceOf,
    SpanIn,
    SpanOut,
    WhoAsks,
    page_of,
)

router = APIRouter(prefix="/api/v1", tags=["annotations"])


class Save(BaseModel):
    """What somebody says of a document; ``id`` is made by the client and is the same when the save is tried again."""

    model_config = ConfigDict(extra="forbid")
    id: ClientId
    document: int
    spans: Annotated[list[SpanIn], Field(max_length=20_000)]
    seconds: Annotated[float | None, Field(ge=0, le=86_400)] = None
    client: Annotated[str | None, Field(max_length=64)] = None


class Acknowledged(BaseModel):
    """It is on the disk: the number of the event, and which revision of this document by this person it is.

    ``gold`` is what is right, of a document to learn from.
    """

    event: int
    document: int
    revision: int
    gold: list[SpanOut] | None = None


class Annotation(BaseModel):
    """What you say of a document now."""

    document: int
    revision: int
    at: float
    seconds: float | None
    spans: list[SpanOut]


class AnnotatedDocument(Annotation):
    """The same, with the document."""

    id: str
    text: str
    tokens: list[tuple[int, int]]


class Revision(BaseModel):
    """Something that you once said of a document; ``spans`` is null where you took it back."""

    event: int
    revision: int
    at: float
    seconds: float | None
    spans: list[SpanOut] | None
    restores: int | None


@router.post("/annotations", response_model_exclude_none=True)
async def save_annotation(given: Save, service: ServiceOf, who: WhoAsks) -> Acknowledged:
    """Save what you say of a document, in place of what you said before; the same save twice is one."""
    spans = [span.model_dump() for span in given.spans]
    save = annotating.Given(given.id, given.document, spans, given.seconds, given.client)
    labels, least = service.settings.labels, service.settings.queue.per_document_min
    rule = service.settings.overlaps
    saved = await service.changed(
        lambda connection: annotating.save(connection, who.person, save, labels, rule=rule, least=least)
    )
    return Acknowledged.model_validate(saved._asdict())


@router.get("/annotations")
def list_annotations(service: ServiceOf, who: WhoAsks, after: After = 0, limit: Limit = 100) -> Page[Annotation]:
    """What you say of documents, in the order of their numbers."""
    rows = service.read(lambda connection: annotating.of_person(connection, who.person, after, limit + 1))
    return page_of([Annotation.model_validate(row) for row in rows], limit, lambda one: one.document)


@router.get("/annotations/{document}")
def get_annotation(service: ServiceOf, who: WhoAsks, document: int) -> AnnotatedDocument:
    """What you say of a document now, with the document."""

    def work(connection: Connection) -> Mapping[str, Any]:
        own = annotating.current(connection, document, who.person)
        if own is None:
            raise NotFoundError(f"nothing of yours is saved for document {document}")
        row = document_record(connection, document)
        return {**own, "id": row["id"], "text": row["text"], "tokens": row["tokens"]}

    return AnnotatedDocument.model_validate(service.read(work))


@router.post("/annotations/{document}/withdraw", response_model_exclude_none=True)
def withdraw_annotation(service: ServiceOf, who: WhoAsks, document: int, given: Change) -> Acknowledged:
    """Take back what you said of a document; it is yours to do again."""
    saved = service.change(lambda connection: annotating.withdraw(connection, who.person, document, given.id))
    return Acknowledged.model_validate(saved._asdict())


@router.post("/annotations/{document}/undo", response_model_exclude_none=True)
def undo_annotation(service: ServiceOf, who: WhoAsks, document: int, given: Change) -> Acknowledged:
    """Go back to what you said of a document before, as a new revision."""
    rule = service.settings.overlaps
    saved = service.change(lambda connection: annotating.undo(connection, who.person, document, given.id, rule=rule))
    return Acknowledged.model_validate(saved._asdict())


@router.get("/annotations/{document}/history")
def annotation_history(service: ServiceOf, who: WhoAsks, document: int) -> list[Revision]:
    """All that you have said of a document, the first first."""
    past = service.read(lambda connection: annotating.revisions(connection, who.person, document))
    if not past:
        raise NotFoundError(f"nothing of yours is saved for document {document}")
    return [_revision(event) for event in past]


def _revision(event: Event) -> Revision:
    withdrawn = event.kind is Kind.ANNOTATION_WITHDRAWN
    return Revision(
        event=event.seq,
        revision=event.body["revision"],
        at=event.at,
        seconds=event.seconds,
        spans=None if withdrawn else [SpanOut.model_validate(span) for span in event.body["spans"]],
        restores=event.body.get("restores"),
    )
