"""What every answer says to browsers, and requests that are refused before anything reads them.

These stand outside of the application (:func:`guarded`), so that they hold for its error pages too.
"""

from __future__ import annotations

import asyncio
import html
import json
from collections.abc import Collection, Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quorate.limits import size_in_words
from quorate_serve import patience
from quorate_serve.reach import is_address

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_ALWAYS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_A_YEAR = "max-age=31536000"
_PAGE = """<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>Not done – quorate</title>
</head>
<body>
  <main>
    <h1>Not done</h1>
    <p>{message}</p>
  </main>
</body>
</html>
"""


def guarded(
    app: ASGIApp,
    *,
    hosts: Collection[str],
    most: int,
    larger: Mapping[str, int] | None = None,
    https: bool = False,
    addresses: bool = False,
) -> ASGIApp:
    """An application behind all that is here."""
    limited = BodyLimit(app, most=most, larger=larger)
    return SecurityHeaders(AllowedHosts(limited, hosts=hosts, addresses=addresses), https=https)


class SecurityHeaders:
    """Sets the headers that browsers protect people by.

    ``https``: people reach this server by https, although what stands before it speaks http with it.
    """

    def __init__(self, app: ASGIApp, *, https: bool = False) -> None:
        self._app, self._https = app, https

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the application does, with the headers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _ALWAYS.items():
                    headers[name] = value
                if not scope["path"].startswith("/static/"):
                    headers["Cache-Control"] = "no-store"
                if self._https or scope["scheme"] == "https":
                    headers["Strict-Transport-Security"] = _A_YEAR
            await send(message)

        await self._app(scope, receive, send_with_headers)


class AllowedHosts:
    """Refuses requests for hosts by another name: links in mails and redirects are made of the name that was asked for.

    A name is allowed with any port. An IPv6 address is listed without its brackets. ``addresses``: any address will do,
    as only names can be had by somebody else and led here.
    """

    def __init__(self, app: ASGIApp, *, hosts: Collection[str], addresses: bool = False) -> None:
        self._app, self._hosts, self._addresses = app, {host.lower() for host in hosts}, addresses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse the host."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif not self._is_allowed([_name(host) for host in Headers(scope=scope).getlist("host")]):
            await _refuse(
                scope,
                send,
                400,
                "unknown-host",
                "this is not the address of the service (start it with --origin and the address that browsers use)",
            )
        else:
            await self._app(scope, receive, send)

    def _is_allowed(self, asked: list[str]) -> bool:
        return len(asked) == 1 and (asked[0] in self._hosts or (self._addresses and is_address(asked[0])))


class TooLargeError(Exception):
    """More has come than may; it is seen where an answer had begun by then, and cuts that off."""


class TooSlowError(Exception):
    """No more has come for too long; it is seen where an answer had begun by then, and cuts that off."""


class BodyLimit:
    """Refuses what is longer than ``most`` bytes as soon as that shows, by its header or while it comes in; and what
    does not come in.

    ``larger`` are limits of their own for paths that begin so, as those of uploads do.
    """

    def __init__(self, app: ASGIApp, *, most: int, larger: Mapping[str, int] | None = None) -> None:
        self._app, self._most, self._larger = app, most, dict(larger or {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse the body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = next((size for path, size in self._larger.items() if scope["path"].startswith(path)), self._most)
        too_large = (413, "too-large", f"more than {size_in_words(most)} (send less at once)")
        too_slow = (408, "too-slow", f"nothing more came for {patience.PATIENCE:g} s (send it again)")
        length = Headers(scope=scope).get("content-length", "")
        refusal = too_large if length.isdecimal() and int(length[:20]) > most else None
        started, whole, got = False, False, 0

        async def receive_up_to_the_limit() -> Message:
            nonlocal got, refusal, whole
            if whole:  # what comes now is that the other side has gone
                return await receive()
            try:
                async with asyncio.timeout(patience.PATIENCE):
                    message = await receive()
            except TimeoutError:
                refusal = too_slow
                raise TooSlowError from None
            got += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if got > most:
                refusal = too_large
                raise TooLargeError
            return message

        async def send_unless_refused(message: Message) -> None:
            nonlocal started
            if refusal is not None and not started:
                return  # what the application makes of a body that was cut off: ours to answer
            started = True
            await send(message)

        if refusal is None:
            try:
                await self._app(scope, receive_up_to_the_limit, send_unless_refused)
            except Exception:
                if refusal is None or started:
                    raise
        if refusal is not None and not started:
            await _refuse(scope, send, *refusal)


def _name(host: str) -> str:
    """A host without its port, as it is listed."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


async def _refuse(scope: Scope, send: Send, status: int, code: str, message: str) -> None:
    """Answer with an error in the one shape that errors have, or to a browser with a page."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    if "text/html" in Headers(scope=scope).get("accept", ""):  # a browser, in which a person looks
        kind, body = b"text/html; charset=utf-8", _PAGE.format(message=html.escape(message)).encode()
    else:
        kind, body = b"application/json", json.dumps({"error": {"code": code, "message": message}}).encode()
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})
