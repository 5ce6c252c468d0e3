"""Webhooks: what Standard Webhooks asks of a sender, and what a receiver can rely on."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from loopback import Reply, http_server
from quorate.errors import InputError
from quorate_serve.outgoing import Outgoing, Rules
from quorate_serve.webhooks import (
    Delivery,
    EventType,
    Fate,
    Outcome,
    SignatureError,
    deliver,
    new_delivery_id,
    new_secret,
    next_attempt,
    payload,
    signed,
    verify,
)

# The example that the libraries of Standard Webhooks test themselves with.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID, NOW, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
OTHER = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def test_the_example_of_the_specification_has_its_signature() -> None:
    headers = signed([SECRET], ID, NOW, BODY)
    assert headers == {"webhook-id": ID, "webhook-timestamp": str(NOW), "webhook-signature": SIGNATURE}
    assert verify(SECRET, headers, BODY, now=NOW) == {"test": 2432232314}


def test_a_signature_is_hmac_as_rfc_2104_writes_it_down() -> None:
    key, body = bytes(range(32)), '{"name":"Zoë 🦜"}'.encode()
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in key.ljust(64, b"\0")) + f"{ID}.{NOW}.".encode() + body).digest()
    outer = hashlib.sha256(bytes(b ^ 0x5C for b in key.ljust(64, b"\0")) + inner).digest()
    assert signed([OTHER], ID, NOW, body)["webhook-signature"] == "v1," + base64.b64encode(outer).decode()


def test_while_a_secret_is_replaced_both_verify() -> None:
    headers = signed([OTHER, SECRET], ID, NOW, BODY)
    assert headers["webhook-signature"].split()[1] == SIGNATURE
    for secrets in (SECRET, OTHER, [SECRET], [new_secret(), OTHER]):
        assert verify(secrets, headers, BODY, now=NOW)
    with pytest.raises(SignatureError):
        verify(new_secret(), headers, BODY, now=NOW)


def test_a_receiver_may_call_headers_as_it_likes_and_skips_schemes_it_does_not_know() -> None:
    headers = {"Webhook-Id": ID, "WEBHOOK-TIMESTAMP": str(NOW), "Webhook-Signature": f"v1a,abc v2,x {SIGNATURE} v1,x"}
    assert verify(SECRET, headers, BODY, now=NOW)


@pytest.mark.parametrize(
    "changed",
    [
        {"webhook-id": "msg_other"},
        {"webhook-id": ""},
        {"webhook-id": "Zoë"},
        {"webhook-id": "\udc80"},
        {"webhook-timestamp": str(NOW + 1)},
        {"webhook-timestamp": ""},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": f" {NOW}"},
        {"webhook-timestamp": f"-{NOW}"},
        {"webhook-timestamp": "1e9"},
        {"webhook-timestamp": "9" * 5000},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1"},
        {"webhook-signature": SIGNATURE.replace("v1,", "v1a,")},
        {"webhook-signature": SIGNATURE.removeprefix("v1,")},
        {"webhook-signature": SIGNATURE[:-2] + "A="},
        {"webhook-signature": "v1,é"},
    ],
)
def test_a_changed_header_does_not_verify(changed: Mapping[str, str]) -> None:
    headers = {**signed([SECRET], ID, NOW, BODY), **changed}
    with pytest.raises(SignatureError):
        verify(SECRET, headers, BODY, now=NOW)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_missing_header_is_named(name: str) -> None:
    headers = signed([SECRET], ID, NOW, BODY)
    del headers[name]
    with pytest.raises(SignatureError, match=f"the header {name} is missing"):
        verify(SECRET, headers, BODY, now=NOW)


def test_a_changed_body_does_not_verify() -> None:
    with pytest.raises(SignatureError):
        verify(SECRET, signed([SECRET], ID, NOW, BODY), BODY + b" ", now=NOW)


@pytest.mark.parametrize(("late", "fine"), [(300, True), (-300, True), (301, False), (-301, False)])
def test_what_was_sent_over_five_minutes_ago_or_ahead_does_not_verify(late: int, fine: bool) -> None:
    headers = signed([SECRET], ID, NOW, BODY)
    if fine:
        assert verify(SECRET, headers, BODY, now=NOW + late)
    else:
        with pytest.raises(SignatureError, match="clock"):
            verify(SECRET, headers, BODY, now=NOW + late)


def test_a_body_that_is_signed_and_not_json_is_refused() -> None:
    with pytest.raises(SignatureError, match="not JSON"):
        verify(SECRET, signed([SECRET], ID, NOW, b"hello"), b"hello", now=NOW)


def test_a_dot_cannot_move_from_the_id_into_the_time() -> None:
    with pytest.raises(InputError, match="not the id of a message"):
        signed([SECRET], "msg.1", NOW, BODY)


@pytest.mark.parametrize("given", ["", "dG9vIHNob3J0", "A" * 100, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa€w", "A" * 32 + "!"])
def test_what_is_no_secret_is_not_signed_with_and_not_repeated(given: str) -> None:
    with pytest.raises(InputError) as caught:
        signed([f"whsec_{given}"], ID, NOW, BODY)
    assert str(caught.value) == "not a webhook's secret (whsec_ and 24 to 64 bytes in base64)"


def test_secrets_and_ids_are_new_each_time() -> None:
    assert len({new_secret() for _ in range(100)} | {new_delivery_id() for _ in range(100)}) == 200
    assert len(base64.b64decode(new_secret().removeprefix("whsec_"))) == 32
    assert signed([new_secret()], new_delivery_id(), NOW, BODY)


def test_a_payload_says_what_happened_and_when_in_utc() -> None:
    at = datetime(2026, 5, 4, 14, 30, 1, 250000, tzinfo=timezone(timedelta(hours=2)))
    body = payload(EventType.CONSENSUS_CHANGED, at, {"document": 3, "id": "Zoë 🦜"})
    assert json.loads(body) == {
        "type": "consensus.changed",
        "timestamp": "2026-05-04T12:30:01.250000Z",
        "data": {"document": 3, "id": "Zoë 🦜"},
    }
    assert datetime.fromisoformat(json.loads(body)["timestamp"]) == at


def test_attempts_follow_the_schedule_of_the_specification() -> None:
    waits = [next_attempt(n, draw=lambda: 0.0) for n in range(1, 11)]
    assert waits[-1] is None
    passed = [sum(wait or 0 for wait in waits[:n]) for n in range(1, 10)]
    clock = "00:00:05 00:05:05 00:35:05 02:35:05 07:35:05 17:35:05 31:35:05 51:35:05 75:35:05"
    assert [f"{int(s) // 3600:02}:{int(s) // 60 % 60:02}:{int(s) % 60:02}" for s in passed] == clock.split()


def test_attempts_of_many_are_spread_by_chance_and_never_early() -> None:
    waits = [next_attempt(2) or 0.0 for _ in range(200)]
    assert 300 <= min(waits) < max(waits) <= 360
    assert len(set(waits)) > 150


def attempt(status: int, headers: Mapping[str, str] | None = None, attempts: int = 0) -> tuple[Outcome, list[Any]]:
    with http_server(lambda _: Reply(status, b"something private", headers or {})) as server:
        outgoing = Outgoing(Rules(plain_http=True, own_hosts=frozenset({f"127.0.0.1:{server.port}"})))
        delivery = Delivery(ID, f"http://127.0.0.1:{server.port}/hook", BODY, (SECRET, OTHER), attempts)
        outcome = deliver(delivery, outgoing, now=NOW + 0.9, draw=lambda: 0.5)
    return outcome, server.received


@pytest.mark.parametrize("status", [200, 201, 204])
def test_what_is_delivered_verifies_at_the_receiver(status: int) -> None:
    outcome, [got] = attempt(status)
    assert outcome == Outcome(Fate.DELIVERED, f"answered {status}")
    assert got.method == "POST"
    assert got.headers["content-type"] == "application/json"
    for secret in (SECRET, OTHER):
        assert verify(secret, got.headers, got.body, now=NOW) == {"test": 2432232314}


@pytest.mark.parametrize("status", [302, 400, 404, 429, 500, 502])
def test_every_other_answer_is_tried_again_and_its_body_not_told(status: int) -> None:
    outcome, received = attempt(status)
    assert outcome == Outcome(Fate.AGAIN, f"answered {status}", 5 * 1.1)
    assert len(received) == 1


def test_gone_turns_a_webhook_off() -> None:
    assert attempt(410)[0].fate is Fate.TURNED_OFF


@pytest.mark.parametrize(
    ("asked", "waits"), [("120", 120.0), ("1", 5.5), ("99999999", 86400.0), ("-5", 5.5), ("later", 5.5), ("1e9", 5.5)]
)
def test_a_receiver_may_ask_for_time_up_to_a_day(asked: str, waits: float) -> None:
    assert attempt(503, {"Retry-After": asked})[0].wait == pytest.approx(waits, rel=1e-12)


def test_after_ten_attempts_it_is_given_up() -> None:
    assert attempt(500, attempts=8)[0].fate is Fate.AGAIN
    assert attempt(500, attempts=9)[0] == Outcome(Fate.GIVEN_UP, "answered 500")


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1/", "http://169.254.169.254/latest/meta-data/", "https://localhost:5432/"]
)
def test_a_webhook_does_not_reach_into_the_servers_network(url: str) -> None:
    outcome = deliver(Delivery(ID, url, BODY, (SECRET,)), Outgoing(), now=NOW)
    assert outcome.fate is Fate.AGAIN
    assert "answered" not in outcome.message


def test_a_delivery_does_not_show_its_secrets() -> None:
    assert SECRET not in repr(Delivery(ID, "https://example.com/", BODY, (SECRET,)))


def test_a_message_of_now_verifies_by_the_clock() -> None:
    now = int(datetime.now(UTC).timestamp())
    assert verify(SECRET, signed([SECRET], ID, now, BODY), BODY)
