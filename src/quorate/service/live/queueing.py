"""What everybody should label next, as the worker works it out from the consensus."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, select

from quorate.corpus.records import Tag
from quorate.estimators.layered import LayeredModel
from quorate.formats.layers import Layers
from quorate.service.database import tables
from quorate.service.live.collected import Entry
from quorate.service.live.fitting import Row
from quorate.service.live.publish import Ranked
from quorate.service.people import PersonKind
from quorate.service.settings import QueueSettings

__all__ = ["Desk", "Staff", "queues_of", "staff_of"]

_LONGEST = 200  # documents in a queue: more than anybody does before it is made again


class Staff(NamedTuple):
    """Who labels, what a document of theirs costs, and which documents they have in hand."""

    costs: Mapping[str, float]
    in_hand: Mapping[int, frozenset[str]]


def staff_of(connection: Connection) -> Staff:
    """Who labels now."""
    people = tables.people.c
    query = select(people.id, people.cost).where(
        people.active, people.role.is_not(None), people.kind == PersonKind.PERSON.value
    )
    costs = {row.id: row.cost for row in connection.execute(query)}
    leases = tables.assignments.c
    held = select(leases.document, leases.person).where(leases.state == "leased", leases.until > time.time())
    in_hand: dict[int, frozenset[str]] = {}
    for row in connection.execute(held):
        in_hand[row.document] = in_hand.get(row.document, frozenset()) | {row.person}
    return Staff(costs, in_hand)


class Desk(NamedTuple):
    """All documents for work, as they are and as models take them, what is known, and what the model says of them."""

    entries: Sequence[Entry]
    layers: Layers
    known: Mapping[str, Mapping[str, Sequence[Tag]]]
    model: LayeredModel | None
    rows: Mapping[int, Row]


def queues_of(desk: Desk, staff: Staff, settings: QueueSettings) -> Ranked:
    """Of everybody the documents to label next: those with too few labels first, then the least certain."""
    ranked: list[tuple[bool, float, Entry, frozenset[str]]] = []
    for entry in desk.entries:
        holders = staff.in_hand.get(entry.number, frozenset())
        labels = len(holders.union(entry.document.annotations))
        if not entry.is_decided and labels < settings.per_document_max:
            confidence = desk.rows[entry.number].confidence if entry.number in desk.rows else 0.0
            ranked.append((labels >= settings.per_document_min, confidence, entry, holders))
    ranked.sort(key=lambda one: (one[0], one[1], one[2].number))
    found = {}
    for person, cost in staff.costs.items():
        own: list[tuple[int, float]] = []
        for _, confidence, entry, holders in ranked:
            if len(own) == _LONGEST:
                break
            if person not in entry.document.annotations and person not in holders:
                own.append((entry.number, round((1.0 - confidence) / max(cost, 1e-9), 4)))
        found[person] = (own, False)
    return found
