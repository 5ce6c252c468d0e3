"""Whether a request may do what it asks for: looked at before its body is read, and deny by default.

Who asks, whether they may, how often, and whether it is their own page that sends it. What can be seen only in the body
(the token of a form, text that no database takes) is looked at when it has been read.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Coroutine
from hmac import compare_digest
from typing import Any, cast
from urllib.parse import unquote_plus

from fastapi import Request, Response
from fastapi.routing import APIRoute
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from quorate_serve.campaign import LiveSettings
from quorate_serve.database.engine import Database
from quorate_serve.permissions import BROWSER_ONLY, EVERYBODY, ROUTES
from quorate_serve.problems import InvalidError, NotLoggedInError, RefusedError, StalePageError, TooManyError
from quorate_serve.rate_limits import Limit, RateLimits, network_of
from quorate_serve.sessions import Who, bearer_of, note_use, prolong_session, who_asks
from quorate_serve.settings import ServiceSettings

LIMITS = {
    # by address, or by the name that was typed
    "login": Limit(burst=60, every=4.0),  # a class behind one address begins together
    "join": Limit(burst=100, every=1.0),  # who has a link, which nobody can guess
    "login-name": Limit(burst=10, every=15.0),
    "open": Limit(burst=600, every=0.1),
    # by person: as much as a fast program needs that works for one
    "request": Limit(burst=3_000, every=0.01),
    "save": Limit(burst=3_000, every=0.01),
    # how often it is noted that a session or a token is in use
    "session-used": Limit(burst=1, every=60.0),
    "token-used": Limit(burst=1, every=3_600.0),
}
_SAVES = ("save_annotation", "withdraw_annotation", "undo_annotation", "save_review", "withdraw_review")
_SAFE = ("GET", "HEAD", "OPTIONS")
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_ODD_TEXT = re.compile("[\0\ud800-\udfff]")
_MAY_BE_ODD = re.compile(rb"\0|\\u(0000|[dD][89a-fA-F])")  # in JSON, as it comes


async def authorise(request: Request) -> AsyncIterator[None]:
    """What every route depends on: whoever asks may, and what they send is in order."""
    name = getattr(request.scope.get("route"), "name", "")
    try:
        if not hasattr(request.state, "who"):
            await _authorise(request, name)
        if request.method not in _SAFE:
            await _check_content(request, name)
        yield
    finally:
        await request.close()  # files of a form that the route itself did not ask for


class UploadRoute(APIRoute):
    """A route that takes large bodies: nothing is read of those that come from somebody who may not send them."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Answer, after a look at who asks."""
        answer, name = super().get_route_handler(), self.name

        async def answer_those_who_may(request: Request) -> Response:
            await _authorise(request, name)
            return await answer(request)

        return answer_those_who_may


async def _authorise(request: Request, name: str) -> None:
    if name not in ROUTES:
        raise RefusedError("this is not for anybody")
    _check_address(request)
    who = await run_in_threadpool(_who_asks, request)
    request.state.who = who
    _check_rate(request, name, who)
    _check_origin(request)
    least = ROUTES[name]
    if least is EVERYBODY:
        return
    if who is None:
        raise NotLoggedInError("log in first")
    if not who.role.may(least):
        raise RefusedError(f"this is for {least.value}s (you are logged in as {who.role.value})")
    if who.csrf is None and name in BROWSER_ONLY:
        raise RefusedError("a token is not enough for this (log in, and use the page Account)")
    if who.csrf is not None and request.method not in _SAFE and not _is_form(request):
        _check_csrf(request.headers.get("x-csrf-token", ""), who.csrf)


def _check_address(request: Request) -> None:
    """Nothing in the address is text that no database takes."""
    query = request.scope.get("query_string", b"").decode("latin-1")
    if _ODD_TEXT.search(request.url.path) or _ODD_TEXT.search(request.scope["path"]) or "\0" in unquote_plus(query):
        raise InvalidError("the address holds a character that no text has (take it out)")


def _who_asks(request: Request) -> Who | None:
    settings, database = settings_of(request), database_of(request)
    authorization, cookie = request.headers.get("authorization", ""), request.cookies.get(settings.session_cookie)
    with database.read() as connection:
        who = who_asks(connection, authorization, cookie)
        request.state.settings = cast(LiveSettings, request.app.state.live_settings).look(connection, settings)
    if who is not None:
        _note_use(request, bearer_of(authorization), cookie)
    return who


def _note_use(request: Request, token: str | None, cookie: str | None) -> None:
    """Keep that a session or a token is in use, now and then; nobody waits for it."""
    limits, hours = limits_of(request), settings_of(request).idle_hours

    def note(connection: Connection) -> None:
        if token is not None:
            note_use(connection, token)
        elif cookie is not None:
            prolong_session(connection, cookie, hours)

    kind = "session-used" if token is None else "token-used"
    if limits.take(kind, token or cookie or "") == 0:
        database_of(request).write(note)


def _check_rate(request: Request, name: str, who: Who | None) -> None:
    if who is None:
        take(request, "open", address_of(request))
    else:
        take(request, "save" if name in _SAVES else "request", who.person)


def take(request: Request, kind: str, whom: str) -> None:
    """Count a request of some kind; :class:`TooManyError` if there are too many."""
    wait = limits_of(request).take(kind, whom)
    if wait > 0:
        raise TooManyError("too many requests in a short time (wait a moment)", wait)


def address_of(request: Request) -> str:
    """Where a request comes from, as it is counted."""
    return network_of("" if request.client is None else request.client.host)


def _check_origin(request: Request) -> None:
    """What a browser sends to change something comes from a page of this service, logged in or not.

    A program with a token is no browser. The header with the token against forged requests is one that the page of
    another site cannot send, and is looked at by itself.
    """
    if request.method in _SAFE or bearer_of(request.headers.get("authorization", "")) is not None:
        return
    settings, origin = settings_of(request), request.headers.get("origin")
    if origin is None:
        if "x-csrf-token" not in request.headers:
            raise RefusedError("a browser says which page a request is from (this one did not)")
        return
    own = settings.origin or f"http://{request.headers.get('host', '')}"
    if origin.lower() != own.rstrip("/").lower():
        raise RefusedError("this was sent by the page of another site (open this service's own, by its --origin)")


def _is_form(request: Request) -> bool:
    return request.headers.get("content-type", "").lower().startswith(_FORMS)


def _check_csrf(given: str, expected: str) -> None:
    if not compare_digest(given.encode(), expected.encode()):
        raise StalePageError("this page is from before the last login (load it again)")


async def _check_content(request: Request, name: str) -> None:
    """What the body must be: with the token of the session if it is a form, and text that can be kept."""
    who: Who | None = request.state.who
    if _is_form(request):
        form = await request.form()
        if who is not None and who.csrf is not None and ROUTES[name] is not EVERYBODY:
            given = request.headers.get("x-csrf-token", "") or str(form.get("csrf", ""))
            _check_csrf(given, who.csrf)
        texts: Any = [(name, _name(value)) for name, value in form.multi_items()]
    else:
        body = await request.body()
        texts = await request.json() if _MAY_BE_ODD.search(body) else None
    if _is_odd(texts):
        raise InvalidError("a text holds a character that no text has, as NUL (take it out)")


def _name(value: str | UploadFile) -> str:
    return value if isinstance(value, str) else value.filename or ""


def _is_odd(content: Any) -> bool:
    """Whether there is text anywhere in it that no database takes."""
    if isinstance(content, str):
        return _ODD_TEXT.search(content) is not None
    if isinstance(content, dict):
        return any(_is_odd(name) or _is_odd(value) for name, value in content.items())
    return isinstance(content, list | tuple) and any(map(_is_odd, content))


def database_of(request: Request) -> Database:
    """The database of the application that a request came to."""
    return cast(Database, request.app.state.database)


def settings_of(request: Request) -> ServiceSettings:
    """The settings of the application that a request came to."""
    return cast(ServiceSettings, request.app.state.settings)


def limits_of(request: Request) -> RateLimits:
    """What the application counts."""
    return cast(RateLimits, request.app.state.limits)
