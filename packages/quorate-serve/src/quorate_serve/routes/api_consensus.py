"""The consensus as it stands, and how far it is, through the API."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query
from pydantic import BaseModel
from sqlalchemy import ColumnElement, Connection, RowMapping, Select, select, tuple_

from quorate_serve.answers import Consensus, Overlaps, Progress
from quorate_serve.database import tables
from quorate_serve.people import Role
from quorate_serve.problems import InvalidError, NotFoundError
from quorate_serve.routes.common import Limit, ServiceOf, WhoAsks

_OF_PEOPLE = ("annotators", "sources")  # what a fit says of people
router = APIRouter(prefix="/api/v1", tags=["consensus"])


class ConsensusPage(BaseModel):
    """Some of many documents; `next` asks for those after them, and is null at the end."""

    items: list[Consensus]
    next: str | None


@router.get("/consensus")
def list_consensus(
    service: ServiceOf,
    order: Annotated[Literal["number", "least-certain"], Query(description="Which documents come first.")] = "number",
    changed_since: Annotated[int | None, Query(ge=0, description="Only what changed after this version.")] = None,
    after: Annotated[str | None, Query(max_length=64, description="The `next` of the page before.")] = None,
    limit: Limit = 100,
) -> ConsensusPage:
    """The consensus on all documents that have labels, a page at a time."""
    table = tables.consensus.c
    keys: tuple[ColumnElement[Any], ...] = (table.document,)
    if order == "least-certain":
        keys = (table.confidence, table.document)
    query = _query().order_by(*keys).limit(limit + 1)
    if changed_since is not None:
        query = query.where(table.version > changed_since)
    if after is not None:
        query = query.where(tuple_(*keys) > tuple_(*_cursor(after, len(keys))))
    rows = service.read(lambda connection: connection.execute(query).all())
    items = msgspec.convert(rows[:limit], list[Consensus], from_attributes=True)
    more = len(rows) > limit
    return ConsensusPage(items=items, next=_next(items[-1], order) if more else None)


@router.get("/consensus/{document}")
def get_consensus(service: ServiceOf, document: int) -> Consensus:
    """The consensus on a document."""
    query = _query().where(tables.consensus.c.document == document)
    row = service.read(lambda connection: connection.execute(query).first())
    if row is None:
        raise NotFoundError(f"there is no consensus on document {document} (nobody has labelled it, or only just now)")
    return msgspec.convert(row, Consensus, from_attributes=True)


@router.get("/progress")
def progress(service: ServiceOf, who: WhoAsks) -> Progress:
    """How far it is: how much there is, and how far annotators agree; for managers, whom to trust too."""

    def look(connection: Connection) -> Progress:
        last, fit = _last(connection, "update", "refit"), _last(connection, "refit")
        newest = _last(connection)
        counts = dict.fromkeys(("documents", "labels", "spans", "known"), 0)
        if last is not None:
            counts = {name: last["summary"][name] for name in counts}
        shown = None if fit is None else {"version": fit["version"], "at": fit["at"], **fit["summary"]}
        overlaps = Overlaps() if last is None else msgspec.convert(last["summary"].get("overlaps", {}), Overlaps)
        if shown is not None:
            shown = {name: value for name, value in shown.items() if name not in ("overlaps", "rare", "expected")}
        if not who.role.may(Role.MANAGER):
            shown = shown and {name: value for name, value in shown.items() if name not in _OF_PEOPLE}
            overlaps = replace(overlaps, some=[replace(one, person=None) for one in overlaps.some])
        return Progress(
            version=0 if newest is None else newest["version"],
            event=0 if last is None else last["event"],
            at=None if last is None else last["at"],
            fit=shown,
            overlaps=overlaps,
            **counts,
        )

    return service.read(look)


def _query() -> Select[Any]:
    table = tables.consensus
    return select(table, tables.documents.c.id).join(tables.documents, tables.documents.c.number == table.c.document)


def _cursor(after: str, length: int) -> list[float | int]:
    """What a page's ``next`` says: the place after which to go on."""
    try:
        parts = after.split(":")
        if len(parts) != length:
            raise ValueError(after)
        return [*map(float, parts[:-1]), int(parts[-1])]
    except ValueError:
        raise InvalidError(f"after: {after!r} is not the next of a page in this order") from None


def _next(last: Consensus, order: str) -> str:
    return str(last.document) if order == "number" else f"{last.confidence!r}:{last.document}"


def _last(connection: Connection, *kinds: str) -> RowMapping | None:
    """The last snapshot of some kinds, or of any."""
    table = tables.snapshots
    query = select(table).order_by(table.c.version.desc()).limit(1)
    if kinds:
        query = query.where(table.c.kind.in_(kinds))
    return connection.execute(query).mappings().first()
