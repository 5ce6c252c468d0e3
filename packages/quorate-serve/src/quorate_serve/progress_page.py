"""How far the work is: what there is, what it has cost, how good it is, and whether to go on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from quorate.evaluate.describe import KnownF1, how_good
from quorate_serve.auditing import Audit, audits_of
from quorate_serve.database import tables
from quorate_serve.events import Kind
from quorate_serve.live.ticks import failure
from quorate_serve.people import people_of
from quorate_serve.people_page import IMPORTED

__all__ = ["Overlap", "Progress", "progress_of"]

_DAYS = 30
_DAY = 86_400


class Overlap(NamedTuple):
    """Spans of a person's in a document that must not overlap: what is said of them, as *LOC “Bath” overlaps …*."""

    document: str
    name: str
    told: str


class Progress(NamedTuple):
    """All that the page shows.

    ``agreement`` is that of the annotators at the last fit (Krippendorff's alpha), and ``how_good`` what is known of
    the consensus, in the words that the terminal has. ``by_labels`` says how many documents have so many labels;
    ``days`` how many labels were saved on each day; ``outlook`` what more labels should add, as it was last worked out
    (:mod:`quorate_serve.live.outlook`); ``failure`` why the last fit failed, if it did. In ``overlapping`` documents
    spans overlap although they must not; some of them are in ``overlaps``. In ``rare`` documents spans overlap as they
    hardly do elsewhere.
    """

    version: int
    documents: int
    labels: int
    spans: int
    decided: int
    leases: int
    cost: float
    by_labels: tuple[tuple[int, int], ...]
    days: tuple[tuple[date, int], ...]
    agreement: float | None
    outlook: Mapping[str, Any] | None
    audited: Audit | None
    how_good: str
    failure: str | None
    overlapping: int
    overlaps: tuple[Overlap, ...]
    rare: int
    rare_documents: tuple[str, ...]


def progress_of(connection: Connection, now: float | None = None) -> Progress:
    """How far the work is now."""
    now = time.time() if now is None else now
    documents, labels, held = tables.documents.c, tables.current_annotations.c, tables.consensus.c
    each = (
        select(documents.number, func.count(labels.person).label("n"))
        .outerjoin(tables.current_annotations, labels.document == documents.number)
        .where(documents.purpose == "work")
        .group_by(documents.number)
        .subquery()
    )
    by_labels = [
        (row.n, row.many)
        for row in connection.execute(
            select(each.c.n, func.count().label("many")).group_by(each.c.n).order_by(each.c.n)
        )
    ]
    spans = connection.execute(select(held.spans, held.known)).all()
    lent = tables.assignments.c
    leases = select(func.count()).select_from(tables.assignments).where(lent.state == "leased", lent.until > now)
    fit, told = _last(connection, "refit"), _last(connection, "refit", "update") or {}
    agreement = None if fit is None else fit.get("agreement")
    audited = next((one for one in audits_of(connection) if one.result is not None), None)
    overlaps, rare = (told.get(name, {"documents": 0, "some": []}) for name in ("overlaps", "rare"))
    return Progress(
        int(connection.execute(select(func.max(tables.snapshots.c.version))).scalar() or 0),
        sum(many for _, many in by_labels),
        sum(n * many for n, many in by_labels),
        sum(len(row.spans) for row in spans),
        sum(row.known for row in spans),
        connection.execute(leases).scalar_one(),
        _cost(connection),
        tuple(by_labels),
        _days(connection, now),
        agreement,
        _last(connection, "outlook"),
        audited,
        how_good(agreement, _f1_of(audited), "an audit measures it"),
        failure(connection),
        overlaps["documents"],
        _overlaps(connection, overlaps["some"]),
        rare["documents"],
        tuple(row.id for row in _documents(connection, rare["some"])),
    )


def _f1_of(audited: Audit | None) -> KnownF1 | None:
    found = None if audited is None else audited.result
    return None if found is None else KnownF1.of_audit(found["f1"], found["confidence"], found["n"])


def _overlaps(connection: Connection, told: Sequence[Mapping[str, Any]]) -> tuple[Overlap, ...]:
    documents = {row.number: row for row in _documents(connection, {one["document"] for one in told})}
    names = {person.id: person.name for person in people_of(connection, {one["person"] for one in told})}
    found = []
    for one in told:
        row = documents[one["document"]]
        span, other = (
            None if place is None else f"{place['label']} “{row.text[place['start'] : place['end']]}”"
            for place in (one["span"], one["other"])
        )
        what = f"{span} lies on too many others" if other is None else f"{span} overlaps {other}"
        found.append(Overlap(row.id, names.get(one["person"], one["person"]), what))
    return tuple(found)


def _documents(connection: Connection, numbers: Collection[int]) -> Sequence[Any]:
    table = tables.documents.c
    query = select(table.number, table.id, table.text).where(table.number.in_(numbers)).order_by(table.number)
    return connection.execute(query).all() if numbers else ()


def _last(connection: Connection, *kinds: str) -> Mapping[str, Any] | None:
    """What the last snapshot of these kinds tells."""
    table = tables.snapshots.c
    query = select(table.summary).where(table.kind.in_(kinds)).order_by(table.version.desc()).limit(1)
    found: Mapping[str, Any] | None = connection.execute(query).scalar()
    return found


def _cost(connection: Connection) -> float:
    """What the documents that were labelled here have cost."""
    labels, events = tables.current_annotations.c, tables.events.c
    query = (
        select(func.sum(tables.people.c.cost))
        .select_from(tables.current_annotations)
        .join(tables.people, tables.people.c.id == labels.person)
        .join(tables.events, events.seq == labels.event)
        .where(events.id.not_like(IMPORTED))
    )
    return float(connection.execute(query).scalar() or 0.0)


def _days(connection: Connection, now: float) -> tuple[tuple[date, int], ...]:
    """Labels that were saved here for the first time, on each of the last days (UTC), from the first that has any."""
    table, first = tables.events.c, (now // _DAY - _DAYS + 1) * _DAY
    query = select(table.at).where(
        table.kind == Kind.ANNOTATION_SAVED.value, table.at >= first, table.at <= now, table.id.not_like(IMPORTED)
    )
    counts = Counter(_day(at) for at in connection.execute(query).scalars())
    if not counts:
        return ()
    begin, today = min(counts), _day(now)
    return tuple((begin + timedelta(n), counts[begin + timedelta(n)]) for n in range((today - begin).days + 1))


def _day(at: float) -> date:
    return datetime.fromtimestamp(at, UTC).date()
