"""What everybody should label next, as the worker works it out from the consensus."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, select

from quorate.active.assignment import HOLD_BACK, rankings
from quorate.corpus.records import Tag
from quorate.estimators.layered import LayeredModel
from quorate.formats.layers import Layers
from quorate_serve.database import tables
from quorate_serve.live.collected import Entry
from quorate_serve.live.publish import Ranked
from quorate_serve.people import PersonKind
from quorate_serve.settings import QueueSettings

_LONGEST = 200  # documents in a queue: more than anybody does before it is made again


class Staff(NamedTuple):
    """Who labels, what a document of theirs costs, and which documents they have in hand."""

    costs: Mapping[str, float]
    in_hand: Mapping[int, frozenset[str]]


def staff_of(connection: Connection) -> Staff:
    """Who labels now."""
    people = tables.people.c
    query = select(people.id, people.cost).where(
        people.active, people.role.is_not(None), people.kind.in_([PersonKind.PERSON.value, PersonKind.EXPERT.value])
    )
    costs = {row.id: row.cost for row in connection.execute(query)}
    leases = tables.assignments.c
    held = select(leases.document, leases.person).where(leases.state == "leased", leases.until > time.time())
    in_hand: dict[int, frozenset[str]] = {}
    for row in connection.execute(held):
        in_hand[row.document] = in_hand.get(row.document, frozenset()) | {row.person}
    return Staff(costs, in_hand)


class Desk(NamedTuple):
    """All documents for work, as they are and as models take them, what is known of them, and the model as it is."""

    entries: Sequence[Entry]
    layers: Layers
    known: Mapping[str, Mapping[str, Sequence[Tag]]]
    model: LayeredModel | None


def queues_of(desk: Desk, staff: Staff, settings: QueueSettings) -> Ranked:
    """Of everybody the documents whose labels by them should tell most for their cost, in bits."""
    ids = {entry.document.id: entry.number for entry in desk.entries}
    waiting = {
        entry.document.id: staff.in_hand[entry.number] for entry in desk.entries if entry.number in staff.in_hand
    }
    found = rankings(
        desk.layers,
        desk.model,
        staff.costs,
        n=_LONGEST,
        cost=staff.costs,
        waiting=waiting,
        known=desk.known,
        per_document_min=settings.per_document_min,
        per_document_max=settings.per_document_max,
        per_person_max=settings.per_person_max,
        hold_back=HOLD_BACK if settings.hold_back else 0.0,
    )
    return {
        person: ([(ids[one.document], round(one.gain, 6)) for one in ranking.documents], ranking.held_back)
        for person, ranking in found.items()
    }
