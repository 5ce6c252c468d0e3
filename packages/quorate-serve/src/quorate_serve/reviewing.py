"""Reviews: the least certain documents first, each for one reviewer, who looks before the consensus is shown.

A review decides on a document: the consensus as it is, or corrected. Where two reviewers differ, both words stand and
the document is in dispute (:mod:`quorate_serve.disputes`), until somebody else decides between them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from string import ascii_uppercase
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Select, and_, exists, func, or_, select

from quorate_serve.annotating import annotated
from quorate_serve.answers import Candidate, ConsensusSpan, Reviewed, ReviewTask, Span, Version
from quorate_serve.database import tables
from quorate_serve.disputes import Word, open_places, words_on
from quorate_serve.documents import SpanRecord, char_span, check_overlaps, check_spans, content_of, document_record
from quorate_serve.events import Event, Kind, find
from quorate_serve.people import Role, write_personal
from quorate_serve.problems import ConflictError, InvalidError, NotFoundError, RefusedError
from quorate_serve.sessions import Who
from quorate_serve.settings import ServiceSettings
from quorate_serve.state import record

_LOOKED_AT = 20  # documents, the least certain: more than the reviewers who ask at one moment

_documents, _reviews, _leases = tables.documents, tables.reviews, tables.review_leases
_labels, _consensus = tables.current_annotations, tables.consensus


class Given(NamedTuple):
    """A review as it comes in: ``id`` is made by the client; ``version`` is that of the consensus which they saw."""

    id: str
    document: int
    spans: Sequence[Mapping[str, Any]]
    accepted: bool
    adjudicates: bool = False
    version: int | None = None
    note: str = ""
    seconds: float | None = None
    client: str | None = None


def least_certain(connection: Connection, person: str, settings: ServiceSettings) -> list[int]:
    """Documents for a reviewer, the least certain first, of those with labels enough; what they let go comes last."""
    now = time.time()
    enough = func.coalesce(_consensus.c.labels, 0) >= settings.queue.per_document_min
    sure = func.coalesce(_consensus.c.confidence, 1.0)
    had = exists().where(_leases.c.document == _documents.c.number, _leases.c.person == person)
    for own in (False, True) if settings.reviews.own else (False,):
        query = _open(person, settings, now, own=own).order_by(had, enough.desc(), sure, _documents.c.number)
        found = list(connection.execute(query.limit(_LOOKED_AT)).scalars())
        if found:
            return found
    return []


def lease(connection: Connection, person: str, settings: ServiceSettings, looked: Sequence[int]) -> int | None:
    """Give a reviewer the first of the documents that is still free, or the one that they have."""
    now = time.time()
    connection.execute(select(tables.people.c.id).where(tables.people.c.id == person).with_for_update(key_share=True))
    in_hand = select(_leases.c.document).where(_leases.c.person == person, _leases.c.until > now)
    there: int | None = connection.execute(in_hand.order_by(_leases.c.at).limit(1)).scalar()
    if there is not None:
        return there
    for number in looked:
        row = select(_documents.c.number).where(_documents.c.number == number)
        connection.execute(row.with_for_update(key_share=True))
        free = _open(person, settings, now, own=settings.reviews.own).where(_documents.c.number == number)
        if connection.execute(free).first() is not None:
            until = now + 60 * settings.reviews.lease_minutes
            record(connection, Kind.REVIEW_LEASED, person=person, document=number, body={"until": until}, at=now)
            return number
    return None


def release(connection: Connection, person: str, document: int) -> None:
    """Leave a document to other reviewers."""
    query = select(_leases.c.until).where(_leases.c.document == document, _leases.c.person == person)
    until = connection.execute(query).scalar()
    if until is None:
        raise NotFoundError(f"document {document} was not given to you")
    if until > time.time():
        record(connection, Kind.REVIEW_RELEASED, person=person, document=document)


def _open(person: str, settings: ServiceSettings, now: float, *, own: bool) -> Select[Any]:
    """The documents that a reviewer can get; ``own``: also those that they annotated."""
    number = _documents.c.number
    reviews = select(func.count()).select_from(_reviews).where(_reviews.c.document == number).scalar_subquery()
    others = and_(_leases.c.document == number, _leases.c.until > now, _leases.c.person != person)
    leases = select(func.count()).select_from(_leases).where(others).scalar_subquery()
    query = (
        select(number)
        .outerjoin(_consensus, _consensus.c.document == number)
        .where(
            _documents.c.purpose == "work",
            exists().where(_labels.c.document == number),
            or_(_consensus.c.known.is_(None), ~_consensus.c.known, reviews > 0),
            reviews + leases < settings.reviews.per_document,
            ~exists().where(_reviews.c.document == number, _reviews.c.person == person),
        )
    )
    if own:
        return query
    return query.where(~exists().where(_labels.c.document == number, _labels.c.person == person))


def look(connection: Connection, person: str, document: int, settings: ServiceSettings, secret: bytes) -> ReviewTask:
    """A document with everybody's version; the consensus too, if it is not hidden from this reviewer any more."""
    row = document_record(connection, document)
    query = select(_labels.c.person, _labels.c.spans).where(_labels.c.document == document)
    spans_of = {one.person: one.spans for one in connection.execute(query)}
    names = letters(spans_of, document, secret)
    versions = [Version(name, msgspec.convert(spans_of[whose], list[Span])) for whose, name in names.items()]
    mine = and_(_leases.c.document == document, _leases.c.person == person)
    lent = connection.execute(select(_leases).where(mine)).one_or_none()
    own = connection.execute(
        select(_reviews.c.spans).where(_reviews.c.document == document, _reviews.c.person == person)
    ).scalar()
    seen = ReviewTask(
        **content_of(row),
        until=None if lent is None else lent.until,
        versions=versions,
        decided=msgspec.convert(own, list[Span] | None),
    )
    if settings.blind and own is None and (lent is None or lent.revealed is None):
        return seen
    found = connection.execute(select(_consensus).where(_consensus.c.document == document)).one_or_none()
    if found is None:
        return replace(seen, consensus=[], candidates=_candidates(versions, []))
    spans = msgspec.convert(found.spans, list[ConsensusSpan])
    return replace(
        seen,
        version=found.version,
        consensus=spans,
        confidence=found.confidence,
        candidates=_candidates(versions, spans),
    )


def reveal(connection: Connection, person: str, document: int) -> None:
    """Show a reviewer the consensus on a document that they were given; it is kept that they saw it."""
    query = select(_leases.c.revealed).where(_leases.c.document == document, _leases.c.person == person)
    lent = connection.execute(query).one_or_none()
    if lent is None:
        raise RefusedError(f"document {document} was not given to you (ask for the next one to review)")
    if lent.revealed is None:
        record(connection, Kind.REVIEW_REVEALED, person=person, document=document)


def letters(people: Mapping[str, Any] | Sequence[str], document: int, secret: bytes) -> dict[str, str]:
    """A letter for everybody who said something of a document, in an order that tells nothing, and is always the same.

    >>> sorted(letters(["p_1", "p_2"], 7, b"secret").values())
    ['A', 'B']
    """
    drawn = sorted(people, key=lambda person: blake2b(f"{document} {person}".encode(), key=secret[:64]).digest())
    count = len(ascii_uppercase)
    return {
        person: ascii_uppercase[number % count] + (str(number // count) if number >= count else "")
        for number, person in enumerate(drawn)
    }


def _candidates(versions: Sequence[Version], consensus: Sequence[ConsensusSpan]) -> list[Candidate]:
    """Every span that somebody marked or the consensus has, and who is for it: why it says what it says."""
    sure = {one.span: one.confidence for one in consensus}
    votes: dict[Span, list[str]] = {span: [] for span in sure}
    for version in versions:
        for span in version.spans:
            votes.setdefault(span, []).append(version.name)
    in_order = sorted(votes, key=lambda span: (span.start, span.end, span.label))
    return [Candidate(span.start, span.end, span.label, votes[span], sure.get(span)) for span in in_order]


def decide(connection: Connection, who: Who, given: Given, settings: ServiceSettings) -> Reviewed:
    """Keep what a reviewer decides, in place of what they decided before; others' words stand beside it."""
    before = _same(connection, who.person, given.id)
    if before is not None:
        return _decided(before)
    document = document_record(connection, given.document)
    spans = check_spans(given.spans, len(document["text"]), settings.labels)
    words = words_on(connection, given.document)
    _check_may(connection, who, given, document, words, settings)
    accepted = given.accepted and _is_consensus(connection, given, spans)
    if not accepted:  # layers of a consensus may cross
        check_overlaps(spans, settings.overlaps, lambda: document["tokens"])
    others = [word for word in words if word.person != who.person]
    disputed = bool(open_places(document, [*others, Word(who.person, spans, given.adjudicates)]))
    blind = settings.blind and not given.adjudicates and not _may_have_seen(connection, who.person, given.document)
    body = {
        "spans": spans,
        "accepted": accepted,
        "adjudicates": given.adjudicates,
        "version": given.version,
        "blind": blind,
        "disputed": disputed,
    }
    event = record(
        connection,
        Kind.REVIEW_DECIDED,
        person=who.person,
        document=given.document,
        id=given.id,
        seconds=given.seconds,
        client=given.client,
        body=body,
        personal=write_personal(connection, who.person, given.note),
    )
    return _decided(event)


def withdraw(connection: Connection, person: str, document: int, id: str) -> Reviewed:
    """Take back what a reviewer decided on a document."""
    before = _same(connection, person, id)
    if before is not None:
        return _decided(before)
    words = words_on(connection, document)
    left = [word for word in words if word.person != person]
    if len(left) == len(words):
        raise NotFoundError(f"you have not decided on document {document}")
    disputed = bool(open_places(document_record(connection, document), left)) if left else False
    body = {"disputed": disputed}
    return _decided(record(connection, Kind.REVIEW_WITHDRAWN, person=person, document=document, id=id, body=body))


def _check_may(
    connection: Connection,
    who: Who,
    given: Given,
    document: Mapping[str, Any],
    words: Sequence[Word],
    settings: ServiceSettings,
) -> None:
    """:class:`RefusedError` or :class:`ConflictError` unless somebody may decide on a document."""
    manages = who.role.may(Role.MANAGER)
    if given.adjudicates:
        others = [word for word in words if not (word.adjudicates and word.person == who.person)]
        if not open_places(document, others):
            raise ConflictError(f"nothing is in dispute in document {given.document} (review it, if it is wrong)")
        if not manages and any(word.person == who.person for word in others):
            raise RefusedError("you are one of those who differ (a manager or another reviewer decides)")
    elif any(word.person == who.person and word.adjudicates for word in words):
        raise ConflictError(f"you adjudicated document {given.document} (withdraw that first)")
    is_own = not settings.reviews.own and bool(annotated(connection, who.person, [given.document]))
    if is_own and not (given.adjudicates and manages):
        raise RefusedError(f"you annotated document {given.document} yourself (somebody else reviews it)")


def _may_have_seen(connection: Connection, person: str, document: int) -> bool:
    """Whether the consensus was shown to a reviewer: they asked for it, or decided before, since when it is."""
    events = tables.events.c
    revealed = exists().where(
        _leases.c.document == document, _leases.c.person == person, _leases.c.revealed.is_not(None)
    )
    decided = exists().where(
        events.document == document, events.person == person, events.kind == Kind.REVIEW_DECIDED.value
    )
    return bool(connection.execute(select(or_(revealed, decided))).scalar())


def _is_consensus(connection: Connection, given: Given, spans: Sequence[SpanRecord]) -> bool:
    """Whether what is accepted is what the consensus says; :class:`InvalidError` if it never can have been.

    What an earlier version said is not kept: spans that only it can have had are the reviewer's own word.
    """
    if given.version is None:
        raise InvalidError("only a consensus that was seen can be accepted (send its version, or correct it)")
    query = select(_consensus.c.version, _consensus.c.spans).where(_consensus.c.document == given.document)
    now = connection.execute(query).one_or_none()
    if now is not None and set(map(char_span, now.spans)) == set(map(char_span, spans)):
        return True
    if now is not None and given.version >= now.version:
        raise InvalidError("the spans are not those of the consensus that is accepted (send them as corrected)")
    return False


def _same(connection: Connection, person: str, id: str) -> Event | None:
    """The review that has been here before."""
    if not 8 <= len(id) <= 64:
        raise InvalidError("the id of a review has 8 to 64 characters (a random UUID does well)")
    event = find(connection, id)
    if event is None:
        return None
    if event.person != person or event.kind not in (Kind.REVIEW_DECIDED, Kind.REVIEW_WITHDRAWN):
        raise ConflictError("this id was taken by something else (make ids at random)")
    return event


def _decided(event: Event) -> Reviewed:
    assert event.document is not None  # a review is of a document
    return Reviewed(event.seq, event.document, bool(event.body["disputed"]))
