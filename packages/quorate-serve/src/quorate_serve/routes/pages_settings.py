"""The page for files in and out, and for how the service is set up."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import HTMLResponse

from quorate.errors import QuorateError
from quorate.formats.registry import FORMATS
from quorate_serve.authorising import UploadRoute
from quorate_serve.routes import api_documents
from quorate_serve.routes.common import Service, ServiceOf, WhoAsks, show

router = APIRouter(include_in_schema=False, route_class=UploadRoute)


@router.get("/settings")
def settings_page(request: Request, service: ServiceOf) -> HTMLResponse:
    """Files in and out, labels, and how documents are given out."""
    return _shown(request, service, {})


@router.post("/settings/import")
def import_from_page(
    request: Request,
    service: ServiceOf,
    who: WhoAsks,
    file: Annotated[UploadFile, File()],
    format: Annotated[str, Form(max_length=32)] = "",
    purpose: Annotated[Literal["work", "check", "training"], Form()] = "work",
) -> HTMLResponse:
    """Take in a file."""
    try:
        found = api_documents.import_file(service, who, file, format or None, purpose)
    except QuorateError as error:
        return _shown(request, service, {"message": str(error)}, 422)
    return _shown(request, service, {"imported": found, "source": file.filename})


def _shown(request: Request, service: Service, content: dict[str, Any], status: int = 200) -> HTMLResponse:
    values = {
        "settings": service.settings,
        "labels": service.labels,
        "read": {name: one.title for name, one in FORMATS.items() if one.reads and one.is_installed},
        "written": {name: one.title for name, one in FORMATS.items() if one.writes and one.is_installed},
        "missing": {one.title: one.extra for one in FORMATS.values() if not one.is_installed},
    }
    return show(request, "settings.html", {**values, **content}, status)
