"""The page on which a campaign begins."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from quorate.corpus.overlaps import Overlaps
from quorate.errors import QuorateError
from quorate.formats.registry import FORMATS
from quorate_serve.authorising import UploadRoute
from quorate_serve.campaign import Campaign, SpanType, campaign_of
from quorate_serve.people import Role
from quorate_serve.problems import RequestError
from quorate_serve.routes.common import Service, ServiceOf, WhoAsks, show
from quorate_serve.setting_up import Plans, Upload, begin_campaign, is_to_be_set_up
from quorate_serve.settings import COLOURS

router = APIRouter(include_in_schema=False, route_class=UploadRoute)
Names = Annotated[str, Form(max_length=100_000)]
_ROWS = 3  # for types, at first


@router.get("/setup")
def setup_page(request: Request, service: ServiceOf) -> Response:
    """What a campaign needs."""
    if not service.read(lambda connection: is_to_be_set_up(connection, service.settings)):
        return RedirectResponse("/settings/campaign", 303)
    return _shown(request, service, campaign_of(service.settings), {})


@router.post("/setup")
def set_up_from_page(
    request: Request,
    service: ServiceOf,
    who: WhoAsks,
    files: Annotated[list[UploadFile] | None, File()] = None,
    texts: Annotated[str, Form()] = "",
    how: Annotated[str, Form(max_length=32)] = "",
    type: Annotated[list[str] | None, Form(max_length=1_000)] = None,
    key: Annotated[list[str] | None, Form(max_length=1_000)] = None,
    colour: Annotated[list[str] | None, Form(max_length=1_000)] = None,
    overlaps: Annotated[Overlaps, Form()] = Overlaps.NONE,
    guidelines: Annotated[str, Form()] = "",
    per_document_min: Annotated[int, Form()] = 2,
    per_document_max: Annotated[int, Form()] = 5,
    annotators: Names = "",
    reviewers: Names = "",
) -> HTMLResponse:
    """Begin."""
    text = guidelines.replace("\r\n", "\n").strip()
    campaign = Campaign(
        types_of_form(type, key, colour), f"{text}\n" if text else "", per_document_min, per_document_max, overlaps
    )
    given = {"texts": texts, "how": how, "annotators": annotators, "reviewers": reviewers}
    try:
        uploads = [Upload(each.filename, each.file.read()) for each in files or [] if each.filename]
        people = {Role.ANNOTATOR: _names(annotators), Role.REVIEWER: _names(reviewers)}
        plans = Plans(uploads, texts.replace("\r\n", "\n"), how, campaign, people)
        begun = begin_campaign(service.database, service.settings, plans, by=who.person)
    except QuorateError as error:
        again = " (choose the files again, too)" if any(each.filename for each in files or []) else ""
        status = error.status if isinstance(error, RequestError) else 422
        return _shown(request, service, campaign, {**given, "message": f"{error}{again}"}, status)
    address = service.settings.address
    links = {
        role: {name: f"{address}/invite/{token}" for name, token in own.items()} for role, own in begun.invited.items()
    }
    return show(request, "begun.html", {"begun": begun, "links": links})


def types_of_form(names: list[str] | None, keys: list[str] | None, colours: list[str] | None) -> tuple[SpanType, ...]:
    """The types of a form's rows; those without a name are left out."""
    rows = zip(names or [], keys or [], colours or [], strict=False)
    return tuple(SpanType(name.strip(), key.strip().lower(), colour) for name, key, colour in rows if name.strip())


def _names(given: str) -> list[str]:
    return [name.strip() for name in given.splitlines() if name.strip()]


def _shown(
    request: Request, service: Service, campaign: Campaign, content: dict[str, Any], status: int = 200
) -> HTMLResponse:
    blank = [SpanType("")] * max(_ROWS - len(campaign.types), 0)
    values = {
        "campaign": campaign,
        "rows": [*campaign.types, *blank],
        "colours": COLOURS,
        "allowed": list(Overlaps),
        "read": {name: one.title for name, one in FORMATS.items() if one.reads and one.is_installed},
        "settings": service.settings,
    }
    return show(request, "setup.html", {**values, **content}, status)
