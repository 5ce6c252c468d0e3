"""The service itself: whether it is well, and what it can be asked for."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from quorate_serve.live.ticks import failure
from quorate_serve.routes.common import ServiceOf

_ERROR_AT = "#/components/schemas/Error"
_ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}
router = APIRouter(prefix="/api/v1", tags=["service"])


class Health(BaseModel):
    """Whether the service and its database answer, and whether the consensus follows.

    ``failing``: the last fit failed, and is tried again; the page *Progress* says why. What is saved is safe.
    """

    status: Literal["ok"] = "ok"
    consensus: Literal["ok", "failing"]


@router.get("/health")
def health(service: ServiceOf) -> Health:
    """Whether the service is well."""
    return Health(consensus="ok" if service.read(failure) is None else "failing")


@router.get("/openapi.json", include_in_schema=False)
def openapi(request: Request) -> dict[str, Any]:
    """All that can be asked for, as OpenAPI 3.1."""
    app = request.app
    made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    settings = app.state.settings
    made.setdefault("components", {})["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "An API token (`qt_…`) of a person."},
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": settings.session_cookie,
            "description": "A browser's session; what changes something also sends `X-CSRF-Token`.",
        },
    }
    made["components"]["schemas"]["Error"] = _ERROR
    refused = {"description": "Not done", "content": {"application/json": {"schema": {"$ref": _ERROR_AT}}}}
    for operations in made["paths"].values():
        for operation in operations.values():
            is_open = operation["operationId"].startswith("health")
            operation["security"] = [] if is_open else [{"token": []}, {"session": []}]
            operation["responses"].pop("422", None)  # it has the same shape as everything that is refused
            operation["responses"]["4XX"] = refused
    for unused in ("HTTPValidationError", "ValidationError"):
        made["components"]["schemas"].pop(unused, None)
    return made
