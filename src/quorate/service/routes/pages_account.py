"""One's own account: tokens for programs, password, and logging out everywhere."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from quorate.errors import QuorateError
from quorate.service import passwords, people, sessions
from quorate.service.passwords import Attempt
from quorate.service.problems import InvalidError
from quorate.service.routes import api_people
from quorate.service.routes.api_people import TokenIn
from quorate.service.routes.common import Service, ServiceOf, WhoAsks, show
from quorate.service.routes.pages_session import logged_in
from quorate.service.sessions import Who

router = APIRouter(include_in_schema=False)


@router.get("/account")
def account_page(request: Request, service: ServiceOf, who: WhoAsks) -> HTMLResponse:
    """One's own account."""
    return _shown(request, service, who, {})


@router.post("/account/tokens")
def make_token_from_page(
    request: Request,
    service: ServiceOf,
    who: WhoAsks,
    name: Annotated[str, Form(min_length=1, max_length=128)],
    days: Annotated[int, Form(ge=1, le=3_650)] = 365,
) -> HTMLResponse:
    """A token for a program, shown once."""
    try:
        made = api_people.make_token(service, who, TokenIn(name=name, days=days))
    except QuorateError as error:
        return _shown(request, service, who, {"message": str(error)}, 422)
    return _shown(request, service, who, {"token": made.token})


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
    """Choose a new password; wherever else one is logged in, that ends."""

    def begin(connection: Connection) -> Attempt:
        me = people.find_person(connection, who.person)
        return passwords.begin_attempt(connection, service.secret, me.name)

    attempt = await service.changed(begin)
    if not await service.slow.run(passwords.is_right, attempt, before):
        told = {"message": "the old password is not right"}
        return await run_in_threadpool(_shown, request, service, who, told, 422)
    try:
        kept = await service.slow.run(passwords.hashed, password)
    except InvalidError as error:
        return await run_in_threadpool(_shown, request, service, who, {"message": str(error)}, 422)

    def change(connection: Connection) -> None:
        passwords.end_attempt(connection, attempt)
        people.set_password(connection, who.person, kept)

    await service.changed(change)
    return await logged_in(request, service, who.person, "/account")


@router.post("/account/logout")
def log_out_everywhere(service: ServiceOf, who: WhoAsks) -> Response:
    """Log out in every browser."""
    service.change(lambda connection: sessions.end_sessions(connection, who.person))
    answer = RedirectResponse("/login", 303)
    settings = service.settings
    answer.delete_cookie(settings.session_cookie, httponly=True, samesite="lax", secure=settings.is_https)
    return answer


def _shown(request: Request, service: Service, who: Who, content: dict[str, Any], status: int = 200) -> HTMLResponse:
    me = service.read(lambda connection: people.find_person(connection, who.person))
    told = {"me": me, "tokens": api_people.list_tokens(service, who)}
    return show(request, "account.html", {**told, **content}, status)
