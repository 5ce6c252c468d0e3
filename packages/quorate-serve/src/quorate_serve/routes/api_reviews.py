"""Reviews and disputes, through the API."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, select

from quorate_serve import disputes, reviewing
from quorate_serve.answers import Dispute, Opinion, Review, Reviewed, ReviewTask, Span
from quorate_serve.database import tables
from quorate_serve.delivering import document_decided
from quorate_serve.documents import content_of
from quorate_serve.people import read_personal
from quorate_serve.routes.common import (
    After,
    Change,
    ClientId,
    Limit,
    Page,
    Service,
    ServiceOf,
    SpanIn,
    WhoAsks,
    page_of,
)

router = APIRouter(prefix="/api/v1", tags=["reviews"])
_TRIES = 5  # to get a document that others are getting too


class NextReview(BaseModel):
    """The next document to review; null: there is none for you now."""

    document: ReviewTask | None


class ReviewIn(BaseModel):
    """A decision on a document: its spans, as the consensus has them (``accepted``) or corrected.

    ``consensus`` is the version of it that was seen. ``adjudicates``: it decides between reviewers who differ.
    """

    model_config = ConfigDict(extra="forbid")
    id: ClientId
    document: int
    spans: Annotated[list[SpanIn], Field(max_length=20_000)]
    accepted: bool
    adjudicates: bool = False
    note: Annotated[str, Field(max_length=10_000)] = ""
    seconds: Annotated[float | None, Field(ge=0, le=86_400)] = None
    consensus: int | None = None
    client: Annotated[str | None, Field(max_length=64)] = None


@router.get("/reviews/next")
def next_review(service: ServiceOf, who: WhoAsks) -> NextReview:
    """Get the next document to review, the least certain first; the one that you have, if you have not decided yet."""
    settings, number = service.settings, None
    for _ in range(_TRIES):
        looked = service.read(lambda connection: reviewing.least_certain(connection, who.person, settings))
        number = service.change(lambda connection: reviewing.lease(connection, who.person, settings, looked))  # noqa: B023
        if number is not None or not looked:
            break  # otherwise others were faster
    return NextReview(document=None if number is None else _task(service, who.person, number))


@router.get("/reviews/{document}")
def get_review(service: ServiceOf, who: WhoAsks, document: int) -> ReviewTask:
    """A document as a reviewer sees it, with everybody's version."""
    return _task(service, who.person, document)


@router.post("/reviews/{document}/reveal")
def reveal_consensus(service: ServiceOf, who: WhoAsks, document: int) -> ReviewTask:
    """See what the consensus says, and why, of a document that you were given and have looked at."""
    service.change(lambda connection: reviewing.reveal(connection, who.person, document))
    return _task(service, who.person, document)


@router.post("/reviews/{document}/release")
def release_review(service: ServiceOf, who: WhoAsks, document: int) -> None:
    """Leave a document to other reviewers."""
    service.change(lambda connection: reviewing.release(connection, who.person, document))


@router.post("/reviews")
async def save_review(given: ReviewIn, service: ServiceOf, who: WhoAsks) -> Reviewed:
    """Decide on a document, in place of what you decided before; the same review twice is one."""
    spans = [span.model_dump() for span in given.spans]
    review = reviewing.Given(
        given.id,
        given.document,
        spans,
        given.accepted,
        given.adjudicates,
        given.consensus,
        given.note,
        given.seconds,
        given.client,
    )

    def work(connection: Connection) -> Reviewed:
        saved = reviewing.decide(connection, who, review, service.settings)
        if not saved.disputed:
            document_decided(connection, saved.document)
        return saved

    return await service.changed(work)


@router.post("/reviews/{document}/withdraw")
def withdraw_review(service: ServiceOf, who: WhoAsks, document: int, given: Change) -> Reviewed:
    """Take back what you decided on a document."""
    return service.change(lambda connection: reviewing.withdraw(connection, who.person, document, given.id))


@router.get("/reviews")
def list_reviews(service: ServiceOf, who: WhoAsks, after: After = 0, limit: Limit = 100) -> Page[Review]:
    """What you decided, in the order of the documents' numbers."""
    kept = tables.reviews
    query = select(kept).where(kept.c.person == who.person, kept.c.document > after).order_by(kept.c.document)
    rows = service.read(lambda connection: connection.execute(query.limit(limit + 1)).all())
    return page_of(msgspec.convert(rows, list[Review], from_attributes=True), limit, lambda one: one.document)


@router.get("/disputes")
def list_disputes(service: ServiceOf, who: WhoAsks, after: After = 0, limit: Limit = 100) -> Page[Dispute]:
    """The documents on which reviewers differ; ``mine``: you are one of them."""

    def work(connection: Connection) -> list[Dispute]:
        found = disputes.in_dispute(connection, after, limit + 1)
        return [_dispute(connection, service, who.person, one) for one in found]

    return page_of(service.read(work), limit, lambda one: one.number)


def _task(service: Service, person: str, number: int) -> ReviewTask:
    settings, secret = service.settings, service.secret
    return service.read(lambda connection: reviewing.look(connection, person, number, settings, secret))


def _dispute(connection: Connection, service: Service, person: str, found: disputes.Dispute) -> Dispute:
    people, document = [word.person for word in found.words], found.document
    names = reviewing.letters(people, document["number"], service.secret)
    events = tables.events.c
    query = select(events.seq, events.personal).where(events.seq.in_([word.event for word in found.words]))
    notes = {row.seq: row.personal for row in connection.execute(query)}
    opinions = [
        Opinion(
            names[word.person],
            msgspec.convert(word.spans, list[Span]),
            word.adjudicates,
            read_personal(connection, word.person, notes[word.event]),
        )
        for word in found.words
    ]
    return Dispute(
        **content_of(document),
        opinions=sorted(opinions, key=lambda opinion: opinion.name),
        places=list(found.places),
        mine=person in people,
    )
