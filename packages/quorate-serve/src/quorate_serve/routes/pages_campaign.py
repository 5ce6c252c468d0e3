"""The page on which managers change a campaign while it runs, and the guidelines for everybody."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy import Connection, func, select

from quorate.errors import QuorateError
from quorate_serve import people
from quorate_serve.campaign import (
    NOT_ONE_CAMPAIGN,
    Campaign,
    SpanType,
    campaign_of,
    change_campaign,
    changes_of,
    last_change,
)
from quorate_serve.campaign_files import write_campaign
from quorate_serve.database import tables
from quorate_serve.guidelines import rendered
from quorate_serve.labels_used import labels_in_use
from quorate_serve.problems import ConflictError, RequestError
from quorate_serve.routes.common import Service, ServiceOf, WhoAsks, show
from quorate_serve.routes.moments import minute_of
from quorate_serve.routes.pages_setup import types_of_form
from quorate_serve.settings import COLOURS

router = APIRouter(include_in_schema=False)


@router.get("/guidelines")
def guidelines_page(request: Request, service: ServiceOf) -> HTMLResponse:
    """How to mark spans."""
    return show(request, "guidelines.html", {"guidelines": rendered(service.settings.guidelines)})


@router.get("/settings/campaign")
def campaign_page(request: Request, service: ServiceOf) -> HTMLResponse:
    """Types, guidelines, and how many annotators a document gets."""
    return _shown(request, service, campaign_of(service.settings), {})


@router.post("/settings/campaign")
def change_campaign_from_page(
    request: Request,
    service: ServiceOf,
    who: WhoAsks,
    since: Annotated[int, Form()],
    per_document_min: Annotated[int, Form()],
    per_document_max: Annotated[int, Form()],
    type: Annotated[list[str] | None, Form(max_length=1_000)] = None,
    key: Annotated[list[str] | None, Form(max_length=1_000)] = None,
    colour: Annotated[list[str] | None, Form(max_length=1_000)] = None,
    guidelines: Annotated[str, Form()] = "",
) -> Response:
    """Change them from now on."""
    text = guidelines.replace("\r\n", "\n").strip()
    settings = service.settings
    before = campaign_of(settings)
    if text == before.guidelines.strip():  # whatever a browser does to the ends of lines
        text = before.guidelines
    elif text:
        text += "\n"
    now = Campaign(types_of_form(type, key, colour), text, per_document_min, per_document_max, before.overlaps)

    def work(connection: Connection) -> None:
        if last_change(connection) != since:
            raise ConflictError(NOT_ONE_CAMPAIGN)
        _check_in_use(connection, before, now)
        if change_campaign(connection, before, now, by=who.person) is not None:
            write_campaign(settings, before, now)

    try:
        service.change(work)
    except QuorateError as error:
        status = error.status if isinstance(error, RequestError) else 422
        return _shown(request, service, now, {"message": str(error), "since": since}, status)
    return RedirectResponse("/settings/campaign?changed=1", 303)


def _check_in_use(connection: Connection, before: Campaign, now: Campaign) -> None:
    """:class:`ConflictError` if a type would go that is in use; where none were given, any that is used was one."""
    was, left = ({one.name for one in each.types} for each in (before, now))
    if was == left or (was and was < left):
        return
    used = labels_in_use(connection)
    if in_use := sorted(((was or used) - left) & used):
        named = ", ".join(in_use)
        raise ConflictError(f"{named}: spans of this type are marked already, so that it stays (add others beside it)")


def _shown(
    request: Request, service: Service, campaign: Campaign, content: dict[str, Any], status: int = 200
) -> HTMLResponse:
    def look(connection: Connection) -> dict[str, Any]:
        labels, documents = tables.current_annotations.c, tables.documents.c
        count = func.count(labels.person)
        work = select(documents.number).where(documents.purpose == "work")
        per_document = (
            select(labels.document, count.label("labels")).where(labels.document.in_(work)).group_by(labels.document)
        ).subquery()
        counts = [row.labels for row in connection.execute(select(per_document.c.labels))]
        names = {one.id: one.name for one in people.people_of(connection)}
        changes = [
            (minute_of(one.at), names.get(one.person or "", "quorate.toml, at a start"), one.what)
            for one in changes_of(connection)
        ]
        return {
            "documents": connection.execute(select(func.count()).select_from(work.subquery())).scalar_one(),
            "annotated": len(counts),
            "enough": sum(each >= service.settings.queue.per_document_min for each in counts),
            "changes": changes,
            "since": last_change(connection),
        }

    values, used = service.read(look), service.labels_used
    types = campaign.types or tuple(SpanType(name) for name in used)
    values |= {
        "campaign": campaign,
        "used": used,
        "rows": [*types, SpanType("")],
        "colours": COLOURS,
        "any_word": not service.settings.labels,
        "settings": service.settings,
        "changed": request.query_params.get("changed") == "1" and values["changes"],
    }
    return show(request, "campaign.html", {**values, **content}, status)
