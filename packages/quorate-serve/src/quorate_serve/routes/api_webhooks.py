"""Webhooks, through the API: who is told of what, and what became of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from quorate_serve import delivering
from quorate_serve.delivering import Webhook
from quorate_serve.outgoing import Outgoing
from quorate_serve.routes.common import ServiceOf
from quorate_serve.webhooks import EventType

router = APIRouter(prefix="/api/v1/webhooks", tags=["webhooks"])
TypeName = Literal["document.completed", "consensus.changed"]
Types = Annotated[list[TypeName], Field(min_length=1, max_length=2)]


class WebhookIn(BaseModel):
    """Where to send what: an address that begins with https."""

    model_config = ConfigDict(extra="forbid")
    url: Annotated[str, Field(min_length=1, max_length=2_000)]
    types: Types = ["document.completed", "consensus.changed"]


class WebhookChange(BaseModel):
    """Switch it on or off, or tell it of other things."""

    model_config = ConfigDict(extra="forbid")
    active: bool = True
    types: Types | None = None


class WebhookMade(BaseModel):
    """The secret that signs what is sent (`quorate_serve.client.verify`). It is shown once."""

    id: str
    secret: str


class DeliveryOut(BaseModel):
    """What was sent, or is to be at the time `due`; `answer` says how the last attempt went."""

    id: str
    type: str
    created: float
    attempts: int
    state: Literal["waiting", "delivered", "given-up"]
    due: float
    answer: str | None


@router.get("")
def list_webhooks(service: ServiceOf) -> list[Webhook]:
    """All webhooks."""
    return service.read(delivering.webhooks_of)


@router.post("")
def create_webhook(request: Request, service: ServiceOf, given: WebhookIn) -> WebhookMade:
    """Have something told from now on, in the form of Standard Webhooks."""
    cast(Outgoing, request.app.state.outgoing).check(given.url)
    types = [EventType(one) for one in given.types]
    id, secret = service.change(lambda connection: delivering.add_webhook(connection, service.secret, given.url, types))
    return WebhookMade(id=id, secret=secret)


@router.patch("/{id}")
def change_webhook(service: ServiceOf, id: str, given: WebhookChange) -> Webhook:
    """Switch a webhook on or off, or have it told of other things."""

    def work(connection: Connection) -> Webhook:
        values: dict[str, Any] = given.model_dump(exclude_unset=True, exclude_none=True)
        delivering.change_webhook(connection, id, values)
        return delivering.find_webhook(connection, id)

    return service.change(work)


@router.post("/{id}/secret")
def rotate_webhook(service: ServiceOf, id: str) -> WebhookMade:
    """A new secret; for a day the one before signs too."""
    secret = service.change(lambda connection: delivering.rotate_secret(connection, service.secret, id))
    return WebhookMade(id=id, secret=secret)


@router.delete("/{id}", status_code=204)
def remove_webhook(service: ServiceOf, id: str) -> None:
    """Tell it nothing any more, and forget it."""
    service.change(lambda connection: delivering.remove_webhook(connection, id))


@router.get("/{id}/deliveries")
def list_deliveries(
    service: ServiceOf, id: str, limit: Annotated[int, Query(ge=1, le=1_000)] = 100
) -> list[DeliveryOut]:
    """What a webhook was told, or is to be, the newest first."""
    rows = service.read(lambda connection: delivering.deliveries_of(connection, id, limit))
    return [DeliveryOut(**row) for row in rows]


@router.post("/{id}/test", status_code=202)
def try_webhook(service: ServiceOf, id: str) -> None:
    """Send it a message, to see that it is received; the deliveries show what became of it."""

    def work(connection: Connection) -> None:
        delivering.find_webhook(connection, id)
        delivering.enqueue(connection, EventType.TEST, {"webhook": id}, webhook=id)

    service.change(work)
