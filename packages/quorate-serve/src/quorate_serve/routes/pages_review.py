"""The pages of reviewers: the least certain documents, and those on which reviewers differ."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy import select

from quorate_serve import reviewing
from quorate_serve.database import tables
from quorate_serve.people import Role
from quorate_serve.routes.common import ServiceOf, WhoAsks, show
from quorate_serve.routes.moments import minute_of

router = APIRouter(include_in_schema=False)
_A_PAGE = 50
_BEGINNING = 80  # characters of a text


@router.get("/review")
def review_page(request: Request, service: ServiceOf) -> HTMLResponse:
    """One document after another, the least certain first."""
    words = {"go": "Show the consensus", "skip": "Leave it to others", "others": "What annotators say"}
    given = service.marking | {"blind": service.settings.blind}
    return show(request, "deciding.html", {"page": "Review", "given": given, **words})


@router.get("/adjudicate")
def adjudicate_page(request: Request, service: ServiceOf, who: WhoAsks) -> HTMLResponse:
    """Where reviewers differ; managers decide even if they are one of them."""
    given = service.marking | {"manages": who.role.may(Role.MANAGER)}
    words = {"go": "Decide", "skip": "Later", "others": "What reviewers say"}
    return show(request, "deciding.html", {"page": "Adjudicate", "given": given, **words})


@router.get("/review/decided")
def decided_page(
    request: Request, service: ServiceOf, who: WhoAsks, before: Annotated[int | None, Query(ge=0)] = None
) -> HTMLResponse:
    """What a reviewer has decided, the last first, to be taken back if it is wrong."""
    kept, documents = tables.reviews.c, tables.documents.c
    query = (
        select(kept.document, kept.event, kept.at, kept.spans, kept.accepted, kept.adjudicates)
        .add_columns(documents.id, documents.text)
        .join(tables.documents, documents.number == kept.document)
        .where(kept.person == who.person)
        .order_by(kept.event.desc())
        .limit(_A_PAGE + 1)
    )
    if before is not None:
        query = query.where(kept.event < before)
    rows = service.read(lambda connection: connection.execute(query).all())
    decided = [
        {**row._asdict(), "text": row.text[:_BEGINNING], "spans": len(row.spans), "at": minute_of(row.at)}
        for row in rows[:_A_PAGE]
    ]
    more = rows[_A_PAGE - 1].event if len(rows) > _A_PAGE else None
    return show(request, "decided.html", {"decided": decided, "more": more})


@router.post("/review/{document}/withdraw")
def withdraw_from_page(service: ServiceOf, who: WhoAsks, document: int) -> Response:
    """Take back what a reviewer decided on a document."""
    service.change(lambda connection: reviewing.withdraw(connection, who.person, document, uuid.uuid4().hex))
    return RedirectResponse("/review/decided", 303)
