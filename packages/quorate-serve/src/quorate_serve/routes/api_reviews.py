"""Reviews and disputes, through the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, select

from quorate_serve import disputes, reviewing
from quorate_serve.database import tables
from quorate_serve.delivering import document_decided
from quorate_serve.disputes import Dispute
from quorate_serve.people import read_personal
from quorate_serve.reviewing import Candidate, Look
from quorate_serve.routes.api_consensus import ConsensusSpan
from quorate_serve.routes.common import (
    After,
    Change,
    ClientId,
    Limit,
    Page,
    Service,
    ServiceOf,
    SpanIn,
    SpanOut,
    WhoAsks,
    page_of,
)

router = APIRouter(prefix="/api/v1", tags=["reviews"])
_TRIES = 5  # to get a document that others are getting too


class VersionOut(BaseModel):
    """What somebody says, under a letter that tells nothing of who it is."""

    name: str
    spans: list[SpanOut]


class CandidateOut(SpanOut):
    """A span that somebody marked: under which letters, and how sure the consensus is (null: it does not have it)."""

    votes: list[str]
    confidence: float | None


class ReviewTask(BaseModel):
    """A document to review, yours until the time ``until``.

    ``consensus``, its ``version``, ``confidence`` and ``candidates`` (who is for which span) are null until you have
    looked: ask for ``reveal``. ``decided`` is what you decided before.
    """

    number: int
    id: str
    text: str
    tokens: list[tuple[int, int]]
    until: float | None
    versions: list[VersionOut]
    decided: list[SpanOut] | None
    version: int | None
    consensus: list[ConsensusSpan] | None
    confidence: float | None
    candidates: list[CandidateOut] | None


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


class ReviewSaved(BaseModel):
    """It is on the disk: the number of the event, and whether reviewers differ on the document since."""

    event: int
    document: int
    disputed: bool


class ReviewOut(BaseModel):
    """What you decided on a document."""

    document: int
    at: float
    spans: list[SpanOut]
    accepted: bool
    adjudicates: bool
    version: int | None


class OpinionOut(VersionOut):
    """What a reviewer says of a document in dispute, and what they noted."""

    adjudicates: bool
    note: str


class PlaceOut(BaseModel):
    """A part of the text, in code points, end excluded."""

    start: int
    end: int


class DisputeOut(BaseModel):
    """A document on which reviewers differ: what each says, and in which places that is open."""

    number: int
    id: str
    text: str
    tokens: list[tuple[int, int]]
    opinions: list[OpinionOut]
    places: list[PlaceOut]
    mine: bool


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
async def save_review(given: ReviewIn, service: ServiceOf, who: WhoAsks) -> ReviewSaved:
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

    def work(connection: Connection) -> reviewing.Decided:
        saved = reviewing.decide(connection, who, review, service.settings)
        if not saved.disputed:
            document_decided(connection, saved.document)
        return saved

    saved = await service.changed(work)
    return ReviewSaved(**saved._asdict())


@router.post("/reviews/{document}/withdraw")
def withdraw_review(service: ServiceOf, who: WhoAsks, document: int, given: Change) -> ReviewSaved:
    """Take back what you decided on a document."""
    saved = service.change(lambda connection: reviewing.withdraw(connection, who.person, document, given.id))
    return ReviewSaved(**saved._asdict())


@router.get("/reviews")
def list_reviews(service: ServiceOf, who: WhoAsks, after: After = 0, limit: Limit = 100) -> Page[ReviewOut]:
    """What you decided, in the order of the documents' numbers."""
    kept = tables.reviews
    query = select(kept).where(kept.c.person == who.person, kept.c.document > after).order_by(kept.c.document)
    rows = service.read(lambda connection: connection.execute(query.limit(limit + 1)).mappings().all())
    return page_of([ReviewOut.model_validate(dict(row)) for row in rows], limit, lambda one: one.document)


@router.get("/disputes")
def list_disputes(service: ServiceOf, who: WhoAsks, after: After = 0, limit: Limit = 100) -> Page[DisputeOut]:
    """The documents on which reviewers differ; ``mine``: you are one of them."""

    def work(connection: Connection) -> list[DisputeOut]:
        found = disputes.in_dispute(connection, after, limit + 1)
        return [_dispute(connection, service, who.person, one) for one in found]

    return page_of(service.read(work), limit, lambda one: one.number)


def _task(service: Service, person: str, number: int) -> ReviewTask:
    settings, secret = service.settings, service.secret
    seen = service.read(lambda connection: reviewing.look(connection, person, number, settings, secret))
    return _shown(seen)


def _shown(seen: Look) -> ReviewTask:
    consensus, candidates = seen.consensus, seen.candidates
    return ReviewTask(
        **_document(seen.document),
        until=seen.until,
        versions=[VersionOut.model_validate(version._asdict()) for version in seen.versions],
        decided=None if seen.own is None else [SpanOut.model_validate(span) for span in seen.own],
        version=seen.version,
        consensus=None if consensus is None else [ConsensusSpan.model_validate(span) for span in consensus],
        confidence=seen.confidence,
        candidates=None if candidates is None else [_candidate(one) for one in candidates],
    )


def _candidate(one: Candidate) -> CandidateOut:
    start, end, label = one.span.start, one.span.end, one.span.label
    return CandidateOut(start=start, end=end, label=label, votes=list(one.votes), confidence=one.confidence)


def _document(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("number", "id", "text", "tokens")}


def _dispute(connection: Connection, service: Service, person: str, found: Dispute) -> DisputeOut:
    people = [word.person for word in found.words]
    names = reviewing.letters(people, found.document["number"], service.secret)
    events = tables.events.c
    query = select(events.seq, events.personal).where(events.seq.in_([word.event for word in found.words]))
    notes = {row.seq: row.personal for row in connection.execute(query)}
    opinions = [
        OpinionOut(
            name=names[word.person],
            spans=[SpanOut.model_validate(span) for span in word.spans],
            adjudicates=word.adjudicates,
            note=read_personal(connection, word.person, notes[word.event]),
        )
        for word in found.words
    ]
    return DisputeOut(
        **_document(found.document),
        opinions=sorted(opinions, key=lambda opinion: opinion.name),
        places=[PlaceOut(**place._asdict()) for place in found.places],
        mine=person in people,
    )
