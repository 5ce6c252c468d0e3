"""The page for webhooks: who is told of what, and what became of it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from quorate.errors import QuorateError
from quorate_serve.routes import api_webhooks
from quorate_serve.routes.api_webhooks import TypeName, WebhookChange, WebhookIn
from quorate_serve.routes.common import Service, ServiceOf, show

router = APIRouter(include_in_schema=False)
_SHOWN = 5  # of what each was told last


@router.get("/webhooks")
def webhooks_page(request: Request, service: ServiceOf) -> HTMLResponse:
    """Everybody who is told."""
    return _shown(request, service, {})


@router.post("/webhooks")
def create_webhook_from_page(
    request: Request,
    service: ServiceOf,
    url: Annotated[str, Form(min_length=1, max_length=2_000)],
    types: Annotated[list[TypeName], Form()],
) -> HTMLResponse:
    """Tell somebody from now on; the secret is shown once."""
    try:
        made = api_webhooks.create_webhook(request, service, WebhookIn(url=url, types=types))
    except QuorateError as error:
        return _shown(request, service, {"message": str(error), "url": url}, 422)
    return _shown(request, service, {"secret": made.secret})


@router.post("/webhooks/{id}/switch")
def switch_webhook_from_page(service: ServiceOf, id: str, active: Annotated[bool, Form()]) -> Response:
    """Switch it on or off."""
    api_webhooks.change_webhook(service, id, WebhookChange(active=active))
    return RedirectResponse("/webhooks", 303)


@router.post("/webhooks/{id}/secret")
def rotate_webhook_from_page(request: Request, service: ServiceOf, id: str) -> HTMLResponse:
    """A new secret, shown once."""
    try:
        made = api_webhooks.rotate_webhook(service, id)
    except QuorateError as error:
        return _shown(request, service, {"message": str(error)}, 422)
    return _shown(request, service, {"secret": made.secret})


@router.post("/webhooks/{id}/try")
def try_webhook_from_page(service: ServiceOf, id: str) -> Response:
    """Send it a message, to see that it is received."""
    api_webhooks.try_webhook(service, id)
    return RedirectResponse("/webhooks", 303)


@router.post("/webhooks/{id}/remove")
def remove_webhook_from_page(service: ServiceOf, id: str) -> Response:
    """Tell it nothing any more, and forget it."""
    api_webhooks.remove_webhook(service, id)
    return RedirectResponse("/webhooks", 303)


def _shown(request: Request, service: Service, content: dict[str, Any], status: int = 200) -> HTMLResponse:
    webhooks = [
        (one, api_webhooks.list_deliveries(service, one.id, _SHOWN)) for one in api_webhooks.list_webhooks(service)
    ]
    return show(request, "webhooks.html", {"webhooks": webhooks, **content}, status)
