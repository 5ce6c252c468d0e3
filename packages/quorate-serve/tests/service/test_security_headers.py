"""What every answer says to browsers, and what is refused before anything reads it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quorate_serve.security_headers import CONTENT_SECURITY_POLICY, AllowedHosts, TooLargeError, guarded

MOST = 1000


class FaultError(Exception):
    """A fault of the application."""


class Saved(BaseModel):
    """A body as a route declares it."""

    text: str


def application() -> FastAPI:
    app = FastAPI()

    @app.get("/")
    def page() -> PlainTextResponse:
        headers = {"Cache-Control": "public", "Content-Security-Policy": "default-src *", "X-Own": "kept"}
        return PlainTextResponse("page", headers=headers)

    @app.get("/static/app.js")
    def script() -> PlainTextResponse:
        return PlainTextResponse("1", headers={"Cache-Control": "max-age=60"})

    @app.get("/fault")
    def fault() -> None:
        raise FaultError

    @app.post("/save")
    def save(saved: Saved) -> int:
        return len(saved.text)

    @app.post("/upload")
    async def upload(request: Request) -> int:
        return sum([len(part) async for part in request.stream()])

    return app


class Answered(NamedTuple):
    status: int
    headers: dict[str, list[str]]
    body: bytes

    @property
    def code(self) -> Any:
        return json.loads(self.body)["error"]["code"]


def ask(
    app: ASGIApp,
    path: str = "/",
    *,
    method: str = "GET",
    body: Iterable[bytes] = (),
    headers: dict[str, str] | None = None,
    hosts: tuple[str, ...] = ("quorate.test",),
    scheme: str = "http",
) -> Answered:
    """One request, whose body comes in parts; an error that the server would log is let pass."""
    parts, sent = list(body), []
    pairs = [("host", host) for host in hosts] + list((headers or {}).items())
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": scheme,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in pairs],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }

    async def receive() -> Message:
        ask.read += 1  # type: ignore[attr-defined]
        if parts:
            return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    ask.read = 0  # type: ignore[attr-defined]
    with suppress(FaultError):
        asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    starts = [message for message in sent if message["type"] == "http.response.start"]
    assert len(starts) == 1
    found: dict[str, list[str]] = {}
    for name, value in starts[0]["headers"]:
        found.setdefault(name.decode().lower(), []).append(value.decode())
    return Answered(starts[0]["status"], found, b"".join(message.get("body", b"") for message in sent))


@pytest.fixture(scope="module")
def app() -> ASGIApp:
    return guarded(application(), hosts=["Quorate.test", "::1"], most=MOST, larger={"/upload": 5 * MOST})


EXPECTED = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


@pytest.mark.parametrize(
    ("path", "options", "status"),
    [
        ("/", {}, 200),
        ("/nowhere", {}, 404),
        ("/save", {}, 405),
        ("/fault", {}, 500),
        ("/", {"hosts": ("evil.example",)}, 400),
        ("/save", {"method": "POST", "body": [b"x" * 2000]}, 413),
    ],
)
def test_every_answer_has_the_headers_once_errors_too(
    app: ASGIApp, path: str, options: dict[str, Any], status: int
) -> None:
    answered = ask(app, path, **options)
    assert answered.status == status
    assert {name: answered.headers.get(name) for name in EXPECTED} == {name: [one] for name, one in EXPECTED.items()}
    assert "geolocation=()" in answered.headers["permissions-policy"][0]
    assert "strict-transport-security" not in answered.headers


def test_a_route_keeps_its_other_headers_and_cannot_weaken_these(app: ASGIApp) -> None:
    answered = ask(app)
    assert answered.headers["x-own"] == ["kept"]
    assert answered.headers["content-security-policy"] == [CONTENT_SECURITY_POLICY]


def test_what_is_static_may_be_kept_by_browsers(app: ASGIApp) -> None:
    assert ask(app, "/static/app.js").headers["cache-control"] == ["max-age=60"]
    assert ask(app, "/static").headers["cache-control"] == ["no-store"]
    assert ask(app, "/staticky").headers["cache-control"] == ["no-store"]


def test_who_came_by_https_is_to_stay_there(app: ASGIApp) -> None:
    assert ask(app, scheme="https").headers["strict-transport-security"] == ["max-age=31536000"]
    behind_a_proxy = guarded(application(), hosts=["quorate.test"], most=MOST, https=True)
    assert ask(behind_a_proxy).headers["strict-transport-security"] == ["max-age=31536000"]


# --- hosts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["quorate.test", "QUORATE.test", "quorate.test:8000", "[::1]", "[::1]:8000"])
def test_a_listed_host_is_answered_at_any_port(app: ASGIApp, host: str) -> None:
    assert ask(app, hosts=(host,)).status == 200


@pytest.mark.parametrize(
    "hosts",
    [
        (),
        ("",),
        ("evil.example",),
        ("quorate.test.evil.example",),
        ("evil.quorate.test",),
        ("quorate.test@evil.example",),
        ("[::2]",),
        ("::1",),
        ("quorate.test", "evil.example"),
        ("quorate.test", "quorate.test"),
        ("quorate.tesé",),
    ],
)
def test_another_host_or_two_of_them_are_refused(app: ASGIApp, hosts: tuple[str, ...]) -> None:
    answered = ask(app, hosts=hosts)
    assert (answered.status, answered.code) == (400, "unknown-host")


def test_the_host_that_a_proxy_claims_is_not_looked_at(app: ASGIApp) -> None:
    assert ask(app, hosts=("evil.example",), headers={"X-Forwarded-Host": "quorate.test"}).status == 400


# --- bodies ----------------------------------------------------------------------------------------------------------


def in_parts(size: int, part: int = 100) -> list[bytes]:
    return [b"x" * min(part, size - at) for at in range(0, size, part)]


@pytest.mark.parametrize(("path", "most"), [("/save", MOST), ("/upload", 5 * MOST), ("/upload/more", 5 * MOST)])
def test_a_body_may_be_as_long_as_the_limit_and_no_longer(path: str, most: int) -> None:
    async def count(scope: Scope, receive: Receive, send: Send) -> None:
        got = 0
        while (message := await receive())["more_body"]:
            got += len(message["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": str(got + len(message["body"])).encode()})

    app = guarded(count, hosts=["quorate.test"], most=MOST, larger={"/upload": 5 * MOST})
    assert ask(app, path, method="POST", body=in_parts(most)).body == str(most).encode()
    answered = ask(app, path, method="POST", body=in_parts(most + 1))
    assert (answered.status, answered.code) == (413, "too-large")


@pytest.mark.parametrize("path", ["/save", "/upload"])
def test_a_body_that_turns_out_too_long_is_read_no_further(app: ASGIApp, path: str) -> None:
    answered = ask(app, path, method="POST", body=in_parts(100 * MOST), headers={"Content-Type": "application/json"})
    assert (answered.status, answered.code) == (413, "too-large")
    assert ask.read <= 52  # type: ignore[attr-defined]


def test_a_body_that_says_it_is_too_long_is_not_read_at_all(app: ASGIApp) -> None:
    for length in ("1001", "9" * 30, "9" * 5000):
        answered = ask(app, "/save", method="POST", body=in_parts(10), headers={"Content-Length": length})
        assert answered.status == 413
        assert ask.read == 0  # type: ignore[attr-defined]


def test_a_length_that_is_no_number_or_a_lie_does_not_help(app: ASGIApp) -> None:
    for length in ("", "ten", "-5", "10", "²"):
        answered = ask(app, "/upload", method="POST", body=in_parts(6 * MOST), headers={"Content-Length": length})
        assert answered.status == 413


def test_a_body_within_the_limit_arrives_whole(app: ASGIApp) -> None:
    body = json.dumps({"text": "Zoë 🦜"}).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    answered = ask(app, "/save", method="POST", body=[body[:5], body[5:]], headers=headers)
    assert (answered.status, answered.body) == (200, b"5")


def test_an_answer_that_has_begun_is_not_begun_again() -> None:
    async def eager(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await receive())["more_body"]:
            pass

    app = guarded(eager, hosts=["quorate.test"], most=MOST)
    with pytest.raises(TooLargeError):
        ask(app, method="POST", body=in_parts(2 * MOST))


def test_faults_of_the_application_stay_its_own() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask(guarded(broken, hosts=["quorate.test"], most=MOST))


def test_other_protocols_are_checked_for_their_host_and_passed_on() -> None:
    seen: list[str] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    app = guarded(inner, hosts=["quorate.test"], most=MOST)
    asyncio.run(app({"type": "lifespan"}, receive, send))  # type: ignore[arg-type]
    for host in (b"quorate.test", b"evil.example"):
        scope = {"type": "websocket", "path": "/", "headers": [(b"host", host)]}
        asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    assert seen == ["lifespan", "websocket"]
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_no_host_is_allowed_unless_it_is_listed() -> None:
    assert ask(AllowedHosts(application(), hosts=[])).status == 400
