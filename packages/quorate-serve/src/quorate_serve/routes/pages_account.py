"""One's own account: tokens for programs, password, and logging out everywhere."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from quorate.errors import QuorateError
from quorate_serve import passwords, people
from quorate_serve.passwords import has_password
from quorate_serve.problems import InvalidError, ReauthenticationError
from quorate_serve.routes import api_people
from quorate_serve.routes.api_people import TokenIn
from quorate_serve.routes.common import Service, ServiceOf, WhoAsks, show
from quorate_serve.routes.pages_session import logged_in
from quorate_serve.routes.reauthentication import FRESH, reauthenticated
from quorate_serve.sessions import Who

router = APIRouter(include_in_schema=False)


@router.get("/account")
def account_page(request: Request, service: ServiceOf, who: WhoAsks) -> HTMLResponse:
    """One's own account."""
    return _shown(request, service, who, {})


@router.post("/account/tokens")
async def make_token_from_page(
    request: Request,
    service: ServiceOf,
    who: WhoAsks,
    name: Annotated[str, Form(min_length=1, max_length=128)],
    days: Annotated[int | None, Form(ge=1)] = None,
    password: Annotated[str, Form(max_length=1_000)] = "",
) -> HTMLResponse:
    """A token for a program, shown once."""
    try:
        made = await api_people.make_token(service, who, TokenIn(name=name, days=days, password=password))
    except QuorateError as error:
        return await run_in_threadpool(_shown, request, service, who, {"message": str(error)}, 422)
    return await run_in_threadpool(_shown, request, service, who, {"token": made.token})


@router.post("/account/tokens/{id}/end")
def remove_token_from_page(service: ServiceOf, who: WhoAsks, id: str) -> Response:
    """End one of one's own tokens."""
    api_people.remove_token(service, who, id)
    return RedirectResponse("/account", 303)


@router.post("/account/password")
async def change_password(
    request: Request,
    service: ServiceOf,
    who: WhoAsks,
    before: Annotated[str, Form(max_length=1_000)],
    password: Annotated[str, Form(max_length=1_000)],
) -> Response:
    """Choose a new password; wherever else one is logged in, that ends, and so do one's tokens."""
    try:
        if not await run_in_threadpool(service.read, lambda connection: has_password(connection, who.person)):
            raise InvalidError("this account has no password (a manager can make you a link to choose one)")
        confirm = await reauthenticated(service, who, before)
        kept = await service.slow.run(passwords.hashed, password)
    except (InvalidError, ReauthenticationError) as error:
        return await run_in_threadpool(_shown, request, service, who, {"message": str(error)}, 422)

    def change(connection: Connection) -> None:
        confirm(connection)
        people.set_password(connection, who.person, kept)

    await service.changed(change)
    return await logged_in(request, service, who.person, "/account")


@router.post("/account/logout")
def log_out_everywhere(service: ServiceOf, who: WhoAsks) -> Response:
    """Log out in every browser, and end all tokens."""
    service.change(lambda connection: people.end_access(connection, who.person))
    answer = RedirectResponse("/login", 303)
    settings = service.settings
    answer.delete_cookie(settings.session_cookie, httponly=True, samesite="lax", secure=settings.is_https)
    return answer


def _shown(request: Request, service: Service, who: Who, content: dict[str, Any], status: int = 200) -> HTMLResponse:
    def look(connection: Connection) -> tuple[people.Person, bool]:
        return people.find_person(connection, who.person), has_password(connection, who.person)

    me, by_password = service.read(look)
    values = {"me": me, "tokens": api_people.list_tokens(service, who), "by_password": by_password}
    fresh = who.since is not None and who.since > time.time() - FRESH
    return show(
        request, "account.html", {**values, "fresh": fresh, "days": service.settings.token_days, **content}, status
    )
