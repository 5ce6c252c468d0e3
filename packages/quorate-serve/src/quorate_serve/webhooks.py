"""Webhooks in the form of https://www.standardwebhooks.com: what is sent, how it is signed, when it is tried again.

A receiver needs one secret and :func:`verify`; any library for Standard Webhooks does as well.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import random
import re
import secrets as tokens
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import Any, NamedTuple

from quorate.errors import InputError, ServerError
from quorate_serve.outgoing import Outgoing, RefusedUrlError

_PREFIX = "whsec_"
_SHORTEST_KEY, _LONGEST_KEY = 24, 64
_TOLERANCE = 300
_MINUTE, _HOUR = 60, 3600
_WAITS = (5, 5 * _MINUTE, 30 * _MINUTE, *(hours * _HOUR for hours in (2, 5, 10, 14, 20, 24)))
_LONGEST_WAIT = _WAITS[-1]
_JITTER = 0.2


class EventType(StrEnum):
    """What a webhook can tell.

    >>> str(EventType.DOCUMENT_COMPLETED)
    'document.completed'
    """

    DOCUMENT_COMPLETED = "document.completed"
    CONSENSUS_CHANGED = "consensus.changed"
    TEST = "webhook.test"


class SignatureError(InputError):
    """A request that says it is a webhook and is not: not signed with the secret, or not of now.

    >>> verify("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", {}, b"{}")
    Traceback (most recent call last):
    quorate_serve.webhooks.SignatureError: the header webhook-id is missing
    """


def new_secret() -> str:
    """A secret for one receiver.

    >>> len(new_secret())
    50
    """
    return _PREFIX + base64.b64encode(tokens.token_bytes(32)).decode()


def new_delivery_id() -> str:
    """The name of one message, the same at every attempt, so that a receiver can tell that it has it.

    >>> new_delivery_id()[:4]
    'msg_'
    """
    return f"msg_{tokens.token_hex(16)}"


def payload(event: EventType, happened: datetime, data: Mapping[str, Any]) -> bytes:
    """The body of a message: what happened, when (not when it is sent), and to what.

    >>> payload(EventType.DOCUMENT_COMPLETED, datetime(2026, 5, 4, 12, tzinfo=UTC), {"document": 12})
    b'{"type":"document.completed","timestamp":"2026-05-04T12:00:00Z","data":{"document":12}}'
    """
    at = happened.astimezone(UTC).isoformat().replace("+00:00", "Z")
    content = {"type": event, "timestamp": at, "data": data}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def signed(secrets: Sequence[str], delivery: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of one attempt. While a secret is being replaced, both sign.

    >>> signed(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"], "msg_1", 1614265330, b"{}")["webhook-timestamp"]
    '1614265330'
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]+", delivery):  # with a dot in it, two messages could have one signature
        raise InputError(f"{delivery!r} is not the id of a message (letters, digits, - and _)")
    return {
        "webhook-id": delivery,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(
            f"v1,{_signature(_key(secret), delivery, str(timestamp), body)}" for secret in secrets
        ),
    }


def verify(
    secrets: str | Sequence[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: float | None = None,
    tolerance: float = _TOLERANCE,
) -> Any:
    """The content of a message that is signed with the secret (or one of several) and was sent just now.

    ``body`` is what came, byte by byte: JSON that was read and written again has another signature. A message that was
    let through may still come twice; ``webhook-id`` tells.

    >>> secret, body = new_secret(), payload(EventType.CONSENSUS_CHANGED, datetime.now(UTC), {"version": 3})
    >>> verify(secret, signed([secret], "msg_1", int(time.time()), body), body)["data"]
    {'version': 3}
    """
    found = {name.lower(): value for name, value in headers.items()}
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        if not found.get(name, "") or not found[name].isascii():
            raise SignatureError(f"the header {name} is missing")
    sent = found["webhook-timestamp"]
    if not re.fullmatch(r"[0-9]{1,15}", sent):
        raise SignatureError("the header webhook-timestamp is not a number of seconds")
    if abs((time.time() if now is None else now) - int(sent)) > tolerance:
        raise SignatureError(f"sent more than {tolerance:g} seconds ago or ahead (is the clock right?)")
    given = [one.removeprefix("v1,").encode() for one in found["webhook-signature"].split() if one.startswith("v1,")]
    keys = [_key(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    expected = [_signature(key, found["webhook-id"], sent, body).encode() for key in keys]
    if not any(hmac.compare_digest(one, other) for one in expected for other in given):
        raise SignatureError("not signed with this secret (is it the one of this webhook?)")
    try:
        return json.loads(body)
    except ValueError:
        raise SignatureError("the body is not JSON") from None


def next_attempt(attempts: int, draw: Callable[[], float] = random.random) -> float | None:
    """Seconds to wait after so many attempts that failed, up to a fifth more by chance; ``None``: give it up.

    >>> [next_attempt(n, draw=lambda: 0.0) for n in (1, 2, 9, 10)]
    [5.0, 300.0, 86400.0, None]
    """
    if attempts > len(_WAITS):
        return None
    return _WAITS[max(attempts, 1) - 1] * (1 + _JITTER * draw())


@dataclass(frozen=True)
class Delivery:
    """One message to one receiver. ``attempts`` were made before; ``secrets`` are the current one, then older."""

    id: str
    url: str
    body: bytes
    secrets: tuple[str, ...] = field(repr=False)
    attempts: int = 0


class Fate(Enum):
    """What becomes of a message after an attempt."""

    DELIVERED = "delivered"
    AGAIN = "again"
    GIVEN_UP = "given up"
    TURNED_OFF = "turned off"  # the receiver wants no more of this webhook, now or later


class Outcome(NamedTuple):
    """How an attempt went: ``message`` is a line for whoever owns the webhook, with nothing of the answer's body."""

    fate: Fate
    message: str
    wait: float | None = None


def deliver(
    delivery: Delivery, outgoing: Outgoing, *, now: float | None = None, draw: Callable[[], float] = random.random
) -> Outcome:
    """Send a message once. Whatever is not a success is tried again when ``wait`` seconds have passed, ten times."""
    at = int(time.time() if now is None else now)
    headers = {"Content-Type": "application/json", **signed(delivery.secrets, delivery.id, at, delivery.body)}
    asked = 0.0
    try:
        answer = outgoing.request("POST", delivery.url, headers, delivery.body)
    except (RefusedUrlError, ServerError) as error:  # a name that is not public today may be tomorrow
        message = str(error)
    else:
        message = f"answered {answer.status}"
        if 200 <= answer.status < 300:
            return Outcome(Fate.DELIVERED, message)
        if answer.status == 410:
            return Outcome(Fate.TURNED_OFF, f"{message}: it wants no more of these")
        asked = _retry_after(answer.headers.get("retry-after", ""))
    wait = next_attempt(delivery.attempts + 1, draw)
    return Outcome(Fate.GIVEN_UP, message) if wait is None else Outcome(Fate.AGAIN, message, max(wait, asked))


def _retry_after(value: str) -> float:
    """The seconds that a receiver asks for, up to a day."""
    return min(float(value), _LONGEST_WAIT) if re.fullmatch(r"[0-9]{1,9}", value) else 0.0


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not _SHORTEST_KEY <= len(key) <= _LONGEST_KEY:
        raise InputError(f"not a webhook's secret ({_PREFIX} and {_SHORTEST_KEY} to {_LONGEST_KEY} bytes in base64)")
    return key


def _signature(key: bytes, delivery: str, timestamp: str, body: bytes) -> str:
    content = f"{delivery}.{timestamp}.".encode() + body
    return base64.b64encode(hmac.digest(key, content, "sha256")).decode()
