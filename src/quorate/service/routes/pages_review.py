"""The pages of reviewers: the least certain documents, and those on which reviewers differ."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from quorate.service.people import Role
from quorate.service.routes.common import ServiceOf, WhoAsks, show

router = APIRouter(include_in_schema=False)


@router.get("/review")
def review_page(request: Request, service: ServiceOf) -> HTMLResponse:
    """One document after another, the least certain first."""
    words = {"go": "Show the consensus", "skip": "Leave it to others", "others": "What annotators say"}
    given = {"labels": service.labels, "blind": service.settings.blind}
    return show(request, "deciding.html", {"page": "Review", "given": given, **words})


@router.get("/adjudicate")
def adjudicate_page(request: Request, service: ServiceOf, who: WhoAsks) -> HTMLResponse:
    """Where reviewers differ; managers decide even if they are one of them."""
    given = {"labels": service.labels, "manages": who.role.may(Role.MANAGER)}
    words = {"go": "Decide", "skip": "Later", "others": "What reviewers say"}
    return show(request, "deciding.html", {"page": "Adjudicate", "given": given, **words})
