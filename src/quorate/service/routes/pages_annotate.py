"""The page to annotate on, and what somebody has saved."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from sqlalchemy import Connection, select

from quorate.service import annotating
from quorate.service.campaign import last_change
from quorate.service.database import tables
from quorate.service.documents import document_record
from quorate.service.guidelines import rendered
from quorate.service.problems import NotFoundError
from quorate.service.routes.common import ServiceOf, WhoAsks, show
from quorate.service.routes.moments import minute_of

router = APIRouter(include_in_schema=False)
_A_PAGE = 50
_BEGINNING = 80  # characters of a text


@router.get("/annotate")
def annotate_page(request: Request, service: ServiceOf) -> HTMLResponse:
    """One document after another."""
    given = service.marking | {"document": None, "campaign": service.read(last_change)}
    return show(request, "annotate.html", {"given": given, "guidelines": rendered(service.settings.guidelines)})


@router.get("/annotate/saved")
def saved_page(
    request: Request, service: ServiceOf, who: WhoAsks, before: Annotated[int | None, Query(ge=0)] = None
) -> HTMLResponse:
    """What somebody has saved, the last first."""
    kept, documents = tables.current_annotations.c, tables.documents.c
    query = (
        select(kept.document, kept.event, kept.at, kept.spans, documents.id, documents.text)
        .join(tables.documents, documents.number == kept.document)
        .where(kept.person == who.person)
        .order_by(kept.event.desc())
        .limit(_A_PAGE + 1)
    )
    if before is not None:
        query = query.where(kept.event < before)
    rows = service.read(lambda connection: connection.execute(query).all())
    saved = [
        {
            "document": row.document,
            "id": row.id,
            "text": row.text[:_BEGINNING],
            "spans": len(row.spans),
            "at": minute_of(row.at),
        }
        for row in rows[:_A_PAGE]
    ]
    more = rows[_A_PAGE - 1].event if len(rows) > _A_PAGE else None
    return show(request, "saved.html", {"saved": saved, "more": more})


@router.get("/annotate/{document}")
def annotate_again_page(request: Request, service: ServiceOf, who: WhoAsks, document: int) -> HTMLResponse:
    """A document that somebody has saved, to be changed."""

    def given(connection: Connection) -> dict[str, Any]:
        said = annotating.current(connection, document, who.person)
        if said is None:
            raise NotFoundError(f"nothing of yours is saved for document {document}")
        row = document_record(connection, document)
        place = {name: row[name] for name in ("number", "id", "text", "tokens")}
        return {**place, "spans": said["spans"], "training": False}

    found = service.read(given)
    shown = service.marking | {"document": found}
    return show(request, "annotate.html", {"given": shown, "guidelines": rendered(service.settings.guidelines)})
