"""The pages of reviewers: the least certain documents, and those on which reviewers differ."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from quorate_serve import reviewing
from quorate_serve.database import tables
from quorate_serve.people import Role
from quorate_serve.routes.common import ServiceOf, WhoAsks, last_first, show

router = APIRouter(include_in_schema=False)


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
    decided, more = service.read(lambda connection: last_first(connection, tables.reviews, who.person, before))
    return show(request, "decided.html", {"decided": decided, "more": more})


@router.post("/review/{document}/withdraw")
def withdraw_from_page(service: ServiceOf, who: WhoAsks, document: int) -> Response:
    """Take back what a reviewer decided on a document."""
    service.change(lambda connection: reviewing.withdraw(connection, who.person, document, uuid.uuid4().hex))
    return RedirectResponse("/review/decided", 303)
