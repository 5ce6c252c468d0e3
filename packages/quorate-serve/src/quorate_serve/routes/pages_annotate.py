"""The page to annotate on, and what somebody has saved."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from sqlalchemy import Connection

from quorate_serve import annotating
from quorate_serve.campaign import last_change
from quorate_serve.database import tables
from quorate_serve.documents import document_record
from quorate_serve.guidelines import rendered
from quorate_serve.problems import NotFoundError
from quorate_serve.routes.common import ServiceOf, WhoAsks, last_first, show

router = APIRouter(include_in_schema=False)


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
    saved, more = service.read(
        lambda connection: last_first(connection, tables.current_annotations, who.person, before)
    )
    return show(request, "saved.html", {"saved": saved, "more": more})


@router.get("/annotate/{document}")
def annotate_again_page(request: Request, service: ServiceOf, who: WhoAsks, document: int) -> HTMLResponse:
    """A document that somebody has saved, to be changed."""

    def given(connection: Connection) -> dict[str, Any]:
        own = annotating.current(connection, document, who.person)
        if own is None:
            raise NotFoundError(f"nothing of yours is saved for document {document}")
        row = document_record(connection, document)
        place = {name: row[name] for name in ("number", "id", "text", "tokens")}
        return {**place, "spans": own["spans"], "training": False}

    found = service.read(given)
    shown = service.marking | {"document": found}
    return show(request, "annotate.html", {"given": shown, "guidelines": rendered(service.settings.guidelines)})
