"""The service itself: whether it is well, and what it can be asked for."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.openapi.utils import get_openapi

from quorate.service.routes.common import ServiceOf

router = APIRouter(prefix="/api/v1", tags=["service"])


@router.get("/health")
def health(service: ServiceOf) -> dict[str, str]:
    """Whether the service and its database answer."""
    service.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar())
    return {"status": "ok"}


@router.get("/openapi.json", include_in_schema=False)
def openapi(request: Request) -> dict[str, Any]:
    """All that can be asked for, as OpenAPI 3.1."""
    app = request.app
    return get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
