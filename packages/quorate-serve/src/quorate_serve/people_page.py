"""What there is to know of those who label: how much they did, how long it took, how right they are, and since when.

How far somebody can be trusted comes from the last fit (:mod:`quorate_serve.live.summary`). All else is counted here
from what stands: labels that were saved here, not those that were imported.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from quorate.corpus.spans import CharSpan
from quorate.result.habits import SpanHabits
from quorate_serve.database import tables
from quorate_serve.documents import SpanRecord, char_span
from quorate_serve.events import Kind

_LEAST_IN_LOT, _MOST_LOTS = 10, 12
IMPORTED = "import-%"  # the ids of labels that came from files


class Share(NamedTuple):
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float


class Trust(NamedTuple):
    """What somebody does with spans, of all types or of one: shares of the consensus, and of their own marks.

    ``spans`` of the consensus were shown to them. ``found`` were marked in some way, ``exact`` just so; of their own
    marks ``confirmed`` are in the consensus, and ``invented`` touch nothing in it.
    """

    name: str
    spans: float
    found: Share | None
    exact: Share | None
    confirmed: Share | None
    invented: Share | None


class Quartiles(NamedTuple):
    """The middle, and between which the middle half is."""

    low: float
    middle: float
    high: float


class Gold(NamedTuple):
    """Documents whose labels are known: how many were done, how many of them without a mistake, and F1 of the spans."""

    documents: int
    right: int
    f1: float | None


class Lot(NamedTuple):
    """Documents that somebody did one after another: when, how many, and how far the consensus says the same."""

    first: float
    last: float
    documents: int
    share: Share


class Figures(NamedTuple):
    """One person. ``labels`` are all documents labelled, ``saved`` those that were labelled here."""

    person: str
    labels: int
    saved: int
    last: float | None
    cost: float
    seconds: Quartiles | None
    checks: Gold
    training: Gold
    overall: tuple[Trust, ...]
    types: tuple[Trust, ...]
    accuracy: float | None
    lots: tuple[Lot, ...]


def figures_of(connection: Connection, person: str | None = None) -> dict[str, Figures]:
    """Everybody who has labelled something or is here to do so, by id; or one of them."""
    people = tables.people.c
    query = select(people.id, people.cost)
    costs = {
        row.id: row.cost for row in connection.execute(query if person is None else query.where(people.id == person))
    }
    labels, documents = tables.current_annotations.c, tables.documents.c
    saved = (
        select(
            labels.person,
            labels.spans,
            labels.at,
            documents.purpose,
            documents.gold,
            tables.consensus.c.spans.label("agreed"),
            tables.events.c.id.not_like(IMPORTED).label("here"),
        )
        .join(tables.documents, documents.number == labels.document)
        .join(tables.events, tables.events.c.seq == labels.event)
        .outerjoin(tables.consensus, tables.consensus.c.document == labels.document)
        .order_by(labels.at, labels.document)
    )
    if person is not None:
        saved = saved.where(labels.person == person)
    rows: dict[str, list[Any]] = defaultdict(list)
    for row in connection.execute(saved):
        rows[row.person].append(row)
    seconds, trust = _seconds(connection, person), _trust(connection)
    return {id: _figures(id, cost, rows[id], seconds[id], trust.get(id, [])) for id, cost in costs.items()}


def _figures(
    id: str, cost: float, rows: Sequence[Any], seconds: Sequence[float], figures: Sequence[Mapping[str, Any]]
) -> Figures:
    here = [row for row in rows if row.here]
    work = [(row.at, row.spans, row.agreed) for row in here if row.purpose == "work" and row.agreed is not None]
    accuracy = [one["accuracy"] for one in figures if one["accuracy"] is not None]
    return Figures(
        id,
        len(rows),
        len(here),
        max((row.at for row in here), default=None),
        cost * len(here),
        quartiles(seconds),
        _gold([row for row in rows if row.purpose == "check"]),
        _gold([row for row in rows if row.purpose == "training"]),
        tuple(_trusted(one["layer"], one) for one in figures),
        tuple(
            _trusted(kind, own) for one in figures for kind, own in one["types"].items() if own["spans"] or own["marks"]
        ),
        statistics.fmean(accuracy) if accuracy else None,
        lots_of(work),
    )


def quartiles(values: Sequence[float]) -> Quartiles | None:
    """The quartiles of values, as a person would read them off; ``None`` of none.

    >>> quartiles([1.0, 2.0, 3.0, 4.0, 5.0])
    Quartiles(low=2.0, middle=3.0, high=4.0)
    """
    if not values:
        return None
    if len(values) == 1:
        return Quartiles(values[0], values[0], values[0])
    return Quartiles(*statistics.quantiles(values, n=4, method="inclusive"))


def lots_of(work: Sequence[tuple[float, Sequence[SpanRecord], Sequence[SpanRecord]]]) -> tuple[Lot, ...]:
    """How far somebody's spans are those of the consensus, as time goes by; documents are (when, theirs, consensus).

    The share is F1 of the two, over lots of equal size; nothing of fewer documents than make two lots.
    """
    n = min(_MOST_LOTS, len(work) // _LEAST_IN_LOT)
    if n < 2:
        return ()
    found = []
    for number in range(n):
        lot = work[len(work) * number // n : len(work) * (number + 1) // n]
        same = sum(len(_keys(own) & _keys(agreed)) for _, own, agreed in lot)
        both = sum(len(_keys(own)) + len(_keys(agreed)) for _, own, agreed in lot)
        if both:
            found.append(Lot(lot[0][0], lot[-1][0], len(lot), _share(same, both / 2)))
    return tuple(found)


def _share(number: float, of: float) -> Share:
    habits = SpanHabits(exact=number, missed=max(of - number, 0.0))
    return Share(habits.share("exact"), *habits.interval("exact"))


def _gold(rows: Sequence[Any]) -> Gold:
    known = [(_keys(row.spans), _keys(row.gold)) for row in rows if row.gold is not None]
    both = sum(len(own) + len(gold) for own, gold in known)
    same = sum(len(own & gold) for own, gold in known)
    return Gold(len(known), sum(own == gold for own, gold in known), 2 * same / both if both else None)


def _keys(spans: Sequence[SpanRecord]) -> set[CharSpan]:
    return set(map(char_span, spans))


def _seconds(connection: Connection, person: str | None) -> dict[str, list[float]]:
    """How long each document took everybody, from the first save to the last revision."""
    table = tables.events.c
    saves = (Kind.ANNOTATION_SAVED.value, Kind.ANNOTATION_REVISED.value)
    query = (
        select(table.person, func.sum(table.seconds).label("seconds"))
        .where(table.kind.in_(saves), table.seconds.is_not(None))
        .group_by(table.person, table.document)
    )
    found: dict[str, list[float]] = defaultdict(list)
    for row in connection.execute(query if person is None else query.where(table.person == person)):
        found[row.person].append(float(row.seconds))
    return found


def _trust(connection: Connection) -> dict[str, list[Mapping[str, Any]]]:
    """What the last fit says of everybody, layer by layer."""
    table = tables.snapshots.c
    query = select(table.summary).where(table.kind == "refit").order_by(table.version.desc()).limit(1)
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for one in (connection.execute(query).scalar() or {}).get("annotators", ()):
        found[one["person"]].append(one)
    return found


def _trusted(name: str, figures: Mapping[str, Any]) -> Trust:
    if "confirmed" not in figures:  # a fit of an earlier version
        figures = {**figures, "confirmed": figures["precision"]}
    shares = (
        None if figures[what] is None else Share(*figures[what]) for what in ("found", "exact", "confirmed", "invented")
    )
    return Trust(name, figures["spans"], *shares)
