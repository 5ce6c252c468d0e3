"""What people say of documents, through the API; everybody sees and changes only their own."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from quorate_serve import annotating
from quorate_serve.answers import AnnotatedDocument, Annotation, Revision, Saved, Span
from quorate_serve.documents import content_of, document_record
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


@router.post("/annotations", response_model_exclude_none=True)
async def save_annotation(given: Save, service: ServiceOf, who: WhoAsks) -> Saved:
    """Save what you say of a document, in place of what you said before; the same save twice is one."""
    spans = [span.model_dump() for span in given.spans]
    save = annotating.Given(given.id, given.document, spans, given.seconds, given.client)
    labels, least = service.settings.labels, service.settings.queue.per_document_min
    rule = service.settings.overlaps
    return await service.changed(
        lambda connection: annotating.save(connection, who.person, save, labels, rule=rule, least=least)
    )


@router.get("/annotations")
def list_annotations(service: ServiceOf, who: WhoAsks, after: After = 0, limit: Limit = 100) -> Page[Annotation]:
    """What you say of documents, in the order of their numbers."""
    rows = service.read(lambda connection: annotating.of_person(connection, who.person, after, limit + 1))
    return page_of(rows, limit, lambda one: one.document)


@router.get("/annotations/{document}")
def get_annotation(service: ServiceOf, who: WhoAsks, document: int) -> AnnotatedDocument:
    """What you say of a document now, with the document."""

    def work(connection: Connection) -> AnnotatedDocument:
        own = annotating.current(connection, document, who.person)
        if own is None:
            raise NotFoundError(f"nothing of yours is saved for document {document}")
        row = document_record(connection, document)
        given = {name: own[name] for name in ("revision", "at", "seconds")} | content_of(row)
        return AnnotatedDocument(given.pop("number"), spans=msgspec.convert(own["spans"], list[Span]), **given)

    return service.read(work)


@router.post("/annotations/{document}/withdraw", response_model_exclude_none=True)
def withdraw_annotation(service: ServiceOf, who: WhoAsks, document: int, given: Change) -> Saved:
    """Take back what you said of a document; it is yours to do again."""
    return service.change(lambda connection: annotating.withdraw(connection, who.person, document, given.id))


@router.post("/annotations/{document}/undo", response_model_exclude_none=True)
def undo_annotation(service: ServiceOf, who: WhoAsks, document: int, given: Change) -> Saved:
    """Go back to what you said of a document before, as a new revision."""
    rule = service.settings.overlaps
    return service.change(lambda connection: annotating.undo(connection, who.person, document, given.id, rule=rule))


@router.get("/annotations/{document}/history")
def annotation_history(service: ServiceOf, who: WhoAsks, document: int) -> list[Revision]:
    """All that you have said of a document, the first first."""
    past = service.read(lambda connection: annotating.revisions(connection, who.person, document))
    if not past:
        raise NotFoundError(f"nothing of yours is saved for document {document}")
    return [_revision(event) for event in past]


def _revision(event: Event) -> Revision:
    body = event.body if event.kind is not Kind.ANNOTATION_WITHDRAWN else {**event.body, "spans": None}
    revision, restores = body["revision"], body.get("restores")
    spans = msgspec.convert(body["spans"], list[Span] | None)
    return Revision(event.seq, revision, event.at, event.seconds, spans, restores)
