"""The queue: who gets which document next, for how long.

A document is lent: until it is saved, given back or the time is up, it counts as if its labels were there, so that
never more people are at work on one than its labels may have. Nobody gets the same document twice; what they gave back,
or let go, may come again much later, when nothing else is left for them.

What is best for whom is worked out elsewhere (the table ``queues``, which the live worker writes); here the list is
walked. When it has nothing any more, the documents with the fewest labels come first.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, and_, exists, func, select

from quorate.active.checks import Mix, Turn, check_documents, turn
from quorate_serve.database import tables
from quorate_serve.events import Kind
from quorate_serve.problems import ConflictError, NotFoundError
from quorate_serve.settings import QueueSettings
from quorate_serve.state import record

_LOOKED_AT = 64  # documents with the fewest labels: more than the people who ask at one moment

_documents, _labels, _assignments = tables.documents, tables.current_annotations, tables.assignments


class Nothing(StrEnum):
    """Why somebody gets no document.

    >>> Nothing.DONE.message
    'nothing is left for you to label'
    """

    DONE = "done"
    ENOUGH = "enough"
    WAITS = "waits"

    @property
    def message(self) -> str:
        """The same for people."""
        return {
            Nothing.DONE: "nothing is left for you to label",
            Nothing.ENOUGH: "you have labelled as many documents as one person does",
            Nothing.WAITS: "nothing for you now (look again later)",
        }[self]


class Assignment(NamedTuple):
    """A document that somebody has on lease, and until when."""

    document: int
    purpose: Turn
    until: float


def lease(
    connection: Connection,
    person: str,
    queue: QueueSettings,
    *,
    secret: bytes = b"",
    looked: Sequence[int] | None = None,
) -> Assignment | Nothing:
    """Give somebody a document: the one that they have, if they have one, or the next.

    ``looked`` is what :func:`fewest_labels` found for them before the transaction began, which may take longer than
    others who write should wait; ``secret`` is what checks are drawn with.
    """
    now = time.time()
    person_row = select(tables.people.c.most).where(tables.people.c.id == person)
    most = connection.execute(person_row.with_for_update(key_share=True)).scalar_one()  # one request at a time
    in_hand = _in_hand(connection, person, now)
    if in_hand is not None:
        return in_hand
    done, checks = _done(connection, person)
    limit = queue.per_person_max if most is None else most
    if limit is not None and done >= limit:
        return Nothing.ENOUGH
    listed = connection.execute(select(tables.queues).where(tables.queues.c.person == person)).one_or_none()
    if listed is not None and listed.waits:
        return Nothing.WAITS
    mix = Mix(queue.training, queue.check_rate, secret=secret.hex())
    purpose = turn(person, done, checks, mix)
    number = None if purpose is Turn.WORK else _with_gold(connection, person, purpose, mix)
    if number is None:
        purpose = Turn.WORK
        best = [] if listed is None else [document for document, _ in listed.documents]
        number = _work(connection, person, queue, now, best, looked)
    if number is None:
        return Nothing.DONE
    until = now + 60 * queue.lease_minutes
    body = {"purpose": purpose.value, "until": until}
    record(connection, Kind.ASSIGNMENT_LEASED, person=person, document=number, body=body, at=now)
    return Assignment(number, purpose, until)


def release(connection: Connection, person: str, document: int) -> None:
    """Give a document back without labels; to give it back twice is to give it back."""
    mine = and_(_assignments.c.document == document, _assignments.c.person == person)
    state = connection.execute(select(_assignments.c.state).where(mine)).scalar()
    if state is None:
        raise NotFoundError(f"document {document} was not given to you")
    if state == "done":
        raise ConflictError(f"document {document} is labelled (withdraw what you said, if it is wrong)")
    if state == "leased":
        record(connection, Kind.ASSIGNMENT_RELEASED, person=person, document=document, body={"reason": "returned"})


def fewest_labels(connection: Connection, person: str, queue: QueueSettings) -> list[int] | None:
    """Documents for somebody, those first that have the fewest labels; ``None`` if they need not be looked for.

    That is who has a document in hand, or whose own list has some still.
    """
    now = time.time()
    in_hand = and_(_assignments.c.person == person, _assignments.c.state == "leased", _assignments.c.until > now)
    if connection.execute(select(_assignments.c.document).where(in_hand)).first() is not None:
        return None
    listed = connection.execute(select(tables.queues.c.documents).where(tables.queues.c.person == person)).scalar()
    if listed and _open_among(connection, person, queue, now, [number for number, _ in listed]):
        return None
    return _fewest(connection, person, queue, now)


def _in_hand(connection: Connection, person: str, now: float) -> Assignment | None:
    """The document that somebody has on lease; those whose time is up are taken back."""
    query = select(_assignments).where(_assignments.c.person == person, _assignments.c.state == "leased")
    found = None
    for row in connection.execute(query.order_by(_assignments.c.at, _assignments.c.document)).all():
        if row.until <= now:
            body = {"reason": "expired"}
            record(connection, Kind.ASSIGNMENT_RELEASED, person=person, document=row.document, body=body, at=now)
        elif found is None:
            found = Assignment(row.document, Turn(row.purpose), row.until)
    return found


def _done(connection: Connection, person: str) -> tuple[int, int]:
    """How many documents somebody has done, and how many of them were checks."""
    count = func.count().label("count")
    query = select(_assignments.c.purpose, count).where(_assignments.c.person == person, _assignments.c.state == "done")
    rows = connection.execute(query.group_by(_assignments.c.purpose))
    counts = {Turn(row["purpose"]): int(row["count"]) for row in rows.mappings()}
    return sum(counts.values()), counts.get(Turn.CHECK, 0)


def _with_gold(connection: Connection, person: str, purpose: Turn, mix: Mix) -> int | None:
    """A document whose labels are known."""
    mine = exists().where(_assignments.c.document == _documents.c.number, _assignments.c.person == person)
    query = select(_documents.c.number, _documents.c.gold).where(_documents.c.purpose == purpose.value, ~mine)
    numbers = [row.number for row in connection.execute(query) if row.gold is not None]
    return next(iter(check_documents(person, numbers, mix)), None)


def _work(
    connection: Connection,
    person: str,
    queue: QueueSettings,
    now: float,
    best: Sequence[int],
    looked: Sequence[int] | None,
) -> int | None:
    """The best document that is still to be had; it is nobody else's until the transaction ends."""
    busy = []
    for numbers in _lists(connection, person, queue, now, best, looked):
        for number in numbers:
            held = _hold(connection, person, queue, now, number)
            if held:
                return number
            if held is None:
                busy.append(number)
    # others are taking all that there is: one that they leave room on is worth waiting for
    return next((number for number in busy if _hold(connection, person, queue, now, number, wait=True)), None)


def _hold(
    connection: Connection, person: str, queue: QueueSettings, now: float, number: int, *, wait: bool = False
) -> bool | None:
    """Keep a document from others, if somebody can get it; ``None`` if another is just taking it."""
    attempt = connection.begin_nested()  # to let go of what cannot be had: who holds nothing blocks nobody
    row = select(_documents.c.number).where(_documents.c.number == number)
    free = connection.execute(row.with_for_update(key_share=True, skip_locked=not wait)).first() is not None
    # looked at once more: somebody else may have taken the last place before it was locked
    if free and _open_among(connection, person, queue, now, [number], again=True):
        attempt.commit()
        return True
    attempt.rollback()
    return False if free else None


def _lists(
    connection: Connection,
    person: str,
    queue: QueueSettings,
    now: float,
    best: Sequence[int],
    looked: Sequence[int] | None,
) -> Iterator[list[int]]:
    """Documents to try, list after list; a later one is made only when it is needed."""
    if best:
        there = _open_among(connection, person, queue, now, best)
        yield [number for number in best if number in there]
    if looked:
        there = _open_among(connection, person, queue, now, looked, again=True)
        yield sorted(there, key=lambda number: (there[number], number))
    if looked is None or looked:
        yield _fewest(connection, person, queue, now)


def _fewest(connection: Connection, person: str, queue: QueueSettings, now: float) -> list[int]:
    """The documents with the fewest labels and leases; what somebody once gave back only if there is nothing else."""
    for again in (False, True):
        query = _open(person, queue, now, again=again)
        load = query.selected_columns.load
        found = connection.execute(query.order_by(load, _documents.c.number).limit(_LOOKED_AT)).all()
        if found:
            return [row.number for row in found]
    return []


def _open_among(
    connection: Connection,
    person: str,
    queue: QueueSettings,
    now: float,
    numbers: Sequence[int],
    *,
    again: bool = False,
) -> dict[int, int]:
    """Which of these documents somebody can get, each with its labels and leases."""
    query = _open(person, queue, now, again=again).where(_documents.c.number.in_(numbers))
    return {row.number: row.load for row in connection.execute(query)}


def _open(person: str, queue: QueueSettings, now: float, *, again: bool) -> Select[Any]:
    """The documents that somebody can get, with their labels and leases; ``again``: also those given back long ago."""
    number = _documents.c.number
    labels = select(func.count()).select_from(_labels).where(_labels.c.document == number).scalar_subquery()
    live = and_(_assignments.c.document == number, _assignments.c.state == "leased", _assignments.c.until > now)
    leases = select(func.count()).select_from(_assignments).where(live).scalar_subquery()
    mine = and_(_assignments.c.document == number, _assignments.c.person == person)
    rested = and_(_assignments.c.state == "released", _assignments.c.until <= now - 60 * queue.lease_minutes)
    return select(number, (labels + leases).label("load")).where(
        _documents.c.purpose == Turn.WORK.value,
        _documents.c.text != "",
        labels + leases < queue.per_document_max,
        ~exists().where(mine, ~rested) if again else ~exists().where(mine),
        ~exists().where(_labels.c.document == number, _labels.c.person == person),
        ~exists().where(tables.reviews.c.document == number),
        ~exists().where(tables.consensus.c.document == number, tables.consensus.c.known),
    )
