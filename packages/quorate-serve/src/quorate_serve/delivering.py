"""Webhooks of a service: what is to be told is written with what happened, and delivered until it is received.

A message is put into the table of deliveries in the transaction of what it tells, so that neither is there without the
other. Whoever delivers takes what is due for a minute before sending: killed in the middle, it is due again after that.
A receiver may so get a message twice (``webhook-id`` tells), but none is lost.
"""

from __future__ import annotations

import base64
import hmac
import json
import logging
import secrets as tokens
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from sqlalchemy import Connection, and_, delete, func, insert, select, update

from quorate_serve.database import tables
from quorate_serve.database.engine import Database
from quorate_serve.outgoing import Outgoing, Rules
from quorate_serve.problems import BusyError, InvalidError, NotFoundError
from quorate_serve.settings import ServiceSettings
from quorate_serve.webhooks import (
    Delivery,
    EventType,
    Fate,
    Outcome,
    deliver,
    new_delivery_id,
    new_secret,
    payload,
)

_MOST_WEBHOOKS = 50
_MOST_NAMED = 1_000  # documents in one message; of more it says that any may have changed
_TAKEN_FOR = 60.0  # seconds that a message is somebody's who sends it
_AT_ONCE = 4
_LOOK = 1.0  # seconds between two looks for what is due
_KEPT = 7 * 86_400.0  # seconds that a message is kept which is done with
_OLD_SIGNS_FOR = 86_400.0  # seconds in which the secret before signs too
_log = logging.getLogger("quorate_serve.webhooks")

ANY_WEBHOOK = select(tables.webhooks.c.id).where(tables.webhooks.c.active).limit(1)
"""Whether there is any webhook that is told."""


@dataclass(frozen=True)
class Webhook:
    """Somebody who is told: where, of what, and whether that goes on; without the secret."""

    id: str
    url: str
    types: list[str]
    active: bool
    created: float


_WEBHOOKS = select(*(tables.webhooks.c[field.name] for field in fields(Webhook)))


def outgoing_of(settings: ServiceSettings) -> Outgoing:
    """How webhooks are sent: to the internet, and to what the settings list of the own network."""
    return Outgoing(Rules(own_hosts=frozenset(settings.webhook_hosts)))


def _sealed(secret: bytes) -> Fernet:
    """What secrets of webhooks are kept under: a key of its own out of the service's."""
    return Fernet(base64.urlsafe_b64encode(hmac.digest(secret, b"quorate: secrets of webhooks", "sha256")))


def add_webhook(connection: Connection, secret: bytes, url: str, types: Sequence[EventType]) -> tuple[str, str]:
    """Tell somebody from now on: the id, and the secret that signs, which is shown once. The URL has been checked."""
    count = connection.execute(select(func.count()).select_from(tables.webhooks)).scalar_one()
    if count >= _MOST_WEBHOOKS:
        raise InvalidError(f"there are {count} webhooks (remove one first)")
    id, signs = f"wh_{tokens.token_hex(8)}", new_secret()
    row = {"id": id, "url": url, "types": [str(one) for one in types], "active": True, "created": time.time()}
    kept = _sealed(secret).encrypt(json.dumps([signs]).encode())
    connection.execute(insert(tables.webhooks).values(**row, secrets=kept))
    return id, signs


def rotate_secret(connection: Connection, secret: bytes, id: str) -> str:
    """A new secret, which is shown once; for a day the one before signs too."""
    sealed, table = _sealed(secret), tables.webhooks
    find_webhook(connection, id)
    kept = connection.execute(select(table.c.secrets).where(table.c.id == id)).scalar_one()
    signs = new_secret()
    both = json.dumps([signs, *json.loads(sealed.decrypt(kept))[:1]]).encode()
    values = {"secrets": sealed.encrypt(both), "rotated": time.time()}
    connection.execute(update(table).where(table.c.id == id).values(**values))
    return signs


def webhooks_of(connection: Connection) -> list[Webhook]:
    """All webhooks, the oldest first."""
    rows = connection.execute(_WEBHOOKS.order_by(tables.webhooks.c.created, tables.webhooks.c.id))
    return [Webhook(*row) for row in rows]


def find_webhook(connection: Connection, id: str) -> Webhook:
    """One webhook; :class:`NotFoundError` if there is none."""
    row = connection.execute(_WEBHOOKS.where(tables.webhooks.c.id == id)).one_or_none()
    if row is None:
        raise NotFoundError(f"no webhook {id}")
    return Webhook(*row)


def change_webhook(connection: Connection, id: str, values: Mapping[str, Any]) -> None:
    """Switch it on or off, or tell it of other things. What waits for one that is off waits until it is on."""
    find_webhook(connection, id)
    if values:
        connection.execute(update(tables.webhooks).where(tables.webhooks.c.id == id).values(**values))


def remove_webhook(connection: Connection, id: str) -> None:
    """Forget it, and what it was to be told."""
    find_webhook(connection, id)
    connection.execute(delete(tables.deliveries).where(tables.deliveries.c.webhook == id))
    connection.execute(delete(tables.webhooks).where(tables.webhooks.c.id == id))


def deliveries_of(connection: Connection, id: str, most: int) -> list[Mapping[str, Any]]:
    """What a webhook was told, or is to be, the newest first."""
    find_webhook(connection, id)
    table = tables.deliveries.c
    shown = (table.id, table.type, table.created, table.attempts, table.state, table.due, table.answer)
    query = select(*shown).where(table.webhook == id).order_by(table.created.desc(), table.id).limit(most)
    return [dict(row) for row in connection.execute(query).mappings()]


def enqueue(
    connection: Connection,
    type: EventType,
    data: Mapping[str, Any],
    *,
    about: str | None = None,
    webhook: str | None = None,
) -> None:
    """Have something told to those who want to know (or to one); of what has an ``about``, once."""
    now = time.time()
    body = payload(type, datetime.fromtimestamp(now, UTC), data).decode()
    for one in webhooks_of(connection):
        if one.id != webhook if webhook is not None else (not one.active or type not in one.types):
            continue
        if about is not None and _was_sent(connection, one.id, about):
            continue
        row = {"webhook": one.id, "type": str(type), "about": about, "created": now, "body": body}
        state = {"attempts": 0, "due": now, "state": "waiting"}
        connection.execute(insert(tables.deliveries).values(id=new_delivery_id(), **row, **state))


def _was_sent(connection: Connection, webhook: str, about: str) -> bool:
    table = tables.deliveries.c
    query = select(table.id).where(table.webhook == webhook, table.about == about)
    return connection.execute(query).first() is not None


def document_labelled(connection: Connection, document: int, least: int) -> None:
    """Tell that a document is completed, if it has as many annotators as it needs; in the transaction of a label.

    What is there for checks and training is never completed.
    """
    if connection.execute(ANY_WEBHOOK).first() is None:
        return
    labels, documents = tables.current_annotations, tables.documents.c
    count = connection.execute(
        select(func.count())
        .select_from(labels.join(tables.documents))
        .where(documents.number == document, documents.purpose == "work")
    ).scalar_one()
    if count >= least:
        data = {**_named(connection, document), "reason": "labels", "labels": count}
        enqueue(connection, EventType.DOCUMENT_COMPLETED, data, about=f"labels-{document}")


def document_decided(connection: Connection, document: int) -> None:
    """Tell that a document is completed, as reviewers have decided it; in the transaction of their decision."""
    data = {**_named(connection, document), "reason": "decided"}
    enqueue(connection, EventType.DOCUMENT_COMPLETED, data, about=f"decided-{document}")


def _named(connection: Connection, document: int) -> dict[str, Any]:
    id = connection.execute(select(tables.documents.c.id).where(tables.documents.c.number == document)).scalar()
    return {"document": document, "id": id}


def consensus_changed(connection: Connection, version: int, kind: str, documents: Sequence[int] | None) -> None:
    """Tell that a version was given out; what waits to be told of one before it is told with it.

    What waits for a webhook that is off stays, as nothing takes its place.
    """
    table = tables.deliveries
    waiting = and_(
        table.c.type == str(EventType.CONSENSUS_CHANGED),
        table.c.state == "waiting",
        table.c.attempts == 0,
        table.c.webhook.in_(select(tables.webhooks.c.id).where(tables.webhooks.c.active)),
    )
    together = None if documents is None else set(documents)
    for body in connection.execute(select(table.c.body).where(waiting)).scalars():
        before = json.loads(body)["data"]["documents"]
        together = None if together is None or before is None else together | set(before)
    connection.execute(delete(table).where(waiting))
    named = None if together is None or len(together) > _MOST_NAMED else sorted(together)
    enqueue(connection, EventType.CONSENSUS_CHANGED, {"version": version, "kind": kind, "documents": named})


class Courier:
    """Delivers what is due, a few at once and one at a time to each receiver; ``step`` does one round."""

    def __init__(
        self, database: Database, secret: bytes, outgoing: Outgoing, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._database, self._sealed, self._outgoing, self._clock = database, _sealed(secret), outgoing, clock
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="quorate-webhook")

    def start(self, stopping: threading.Event) -> None:
        """Deliver in a thread of its own until it is time to stop."""
        threading.Thread(target=self._run, args=(stopping,), name="quorate-courier", daemon=True).start()

    def _run(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            try:
                if self.step():
                    continue
            except BusyError as error:
                _log.warning("webhooks wait: %s", error)
            except Exception:  # whatever it was, others are still to be told
                _log.exception("webhooks wait")
            stopping.wait(_LOOK)

    def step(self) -> int:
        """Send what is due; how many there were."""
        now = self._clock()
        with self._database.read() as connection:
            if not _due(connection, now):
                return 0
        taken = self._database.change(lambda connection: self._take(connection, now))
        outcomes = list(self._threads.map(self._sent, taken))
        self._database.change(lambda connection: self._keep(connection, list(zip(taken, outcomes, strict=True))))
        return len(taken)

    def _take(self, connection: Connection, now: float) -> list[Delivery]:
        """What is due, which nobody else sends for a minute."""
        found, table = [], tables.deliveries
        for row in _due(connection, now):
            connection.execute(
                update(table).where(table.c.id == row.id).values(attempts=table.c.attempts + 1, due=now + _TAKEN_FOR)
            )
            found.append(Delivery(row.id, row.url, row.body.encode(), self._opened(row, now), row.attempts))
        return found

    def _opened(self, row: Any, now: float) -> tuple[str, ...]:
        try:
            both = json.loads(self._sealed.decrypt(row.secrets))
        except InvalidToken:  # the service has another key than when the webhook was made
            return ()
        is_recent = row.rotated is not None and now - row.rotated < _OLD_SIGNS_FOR
        return tuple(both if is_recent else both[:1])

    def _sent(self, delivery: Delivery) -> Outcome:
        if not delivery.secrets:
            return Outcome(Fate.GIVEN_UP, "its secret cannot be read (rotate it)")
        return deliver(delivery, self._outgoing, now=self._clock())

    def _keep(self, connection: Connection, sent: Sequence[tuple[Delivery, Outcome]]) -> None:
        """What became of each."""
        table, now = tables.deliveries, self._clock()
        for delivery, outcome in sent:
            state = {Fate.DELIVERED: "delivered", Fate.AGAIN: "waiting"}.get(outcome.fate, "given-up")
            values = {"state": state, "due": now + (outcome.wait or 0.0), "answer": outcome.message[:256]}
            connection.execute(update(table).where(table.c.id == delivery.id).values(**values))
            if outcome.fate is Fate.TURNED_OFF:
                webhook = select(table.c.webhook).where(table.c.id == delivery.id).scalar_subquery()
                connection.execute(update(tables.webhooks).where(tables.webhooks.c.id == webhook).values(active=False))
        done = (table.c.state != "waiting") & (table.c.about.is_(None)) & (table.c.created < now - _KEPT)
        connection.execute(delete(table).where(done))


def _due(connection: Connection, now: float) -> list[Any]:
    """What is due, the oldest of each receiver, a few at once."""
    table, hooks = tables.deliveries.c, tables.webhooks.c
    query = (
        select(table.id, table.webhook, table.body, table.attempts, hooks.url, hooks.secrets, hooks.rotated)
        .join(tables.webhooks, hooks.id == table.webhook)
        .where(table.state == "waiting", table.due <= now, hooks.active)
        .order_by(table.due)
        .limit(50)
    )
    first: dict[str, Any] = {}
    for row in connection.execute(query):
        first.setdefault(row.webhook, row)
    return list(first.values())[:_AT_ONCE]
