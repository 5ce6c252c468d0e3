"""Coming in and going out: login, invitations, the first page."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from quorate_serve import passwords, people, sessions
from quorate_serve.authorising import address_of, take
from quorate_serve.guard import local_path
from quorate_serve.people import Role
from quorate_serve.problems import ConflictError, InvalidError, NotFoundError, RefusedError
from quorate_serve.routes.common import Service, ServiceOf, WhoAsks, show
from quorate_serve.sessions import Invitation
from quorate_serve.setting_up import is_to_be_set_up

router = APIRouter(include_in_schema=False)


@router.get("/")
def home(request: Request, service: ServiceOf, who: WhoAsks) -> Response:
    """The first page of whoever is logged in; for managers, as long as there is no campaign, the one to begin it."""
    if who.role.may(Role.MANAGER) and service.read(lambda connection: is_to_be_set_up(connection, service.settings)):
        return RedirectResponse("/setup", 303)
    return show(request, "home.html", {})


@router.get("/login")
def login_page(request: Request, next: Annotated[str, Query(max_length=1_000)] = "/") -> Response:
    """Where to log in."""
    return show(request, "login.html", {"next": local_path(next)})


@router.post("/login")
async def login(
    request: Request,
    service: ServiceOf,
    name: Annotated[str, Form(max_length=1_000)],
    password: Annotated[str, Form(max_length=1_000)],
    next: Annotated[str, Form(max_length=1_000)] = "/",
) -> Response:
    """Log in by name and password."""
    take(request, "login", address_of(request))
    take(request, "login-name", people.digest(service.secret, name))
    attempt = await service.changed(lambda connection: passwords.begin_attempt(connection, service.secret, name))
    person = attempt.person
    if not await service.slow.run(passwords.is_right, attempt, password) or person is None:
        values = {"message": "name or password is not right", "name": name, "next": local_path(next)}
        return show(request, "login.html", values, RefusedError.status)
    await service.changed(lambda connection: passwords.end_attempt(connection, attempt))
    return await logged_in(request, service, person, next)


@router.post("/logout")
def logout(request: Request, service: ServiceOf) -> Response:
    """Log out."""
    cookie = service.settings.session_cookie
    token = request.cookies.get(cookie, "")
    service.change(lambda connection: sessions.end_session(connection, token))
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(cookie, httponly=True, samesite="lax", secure=service.settings.is_https)
    return answer


@router.get("/invite/{token}")
def invitation_page(request: Request, service: ServiceOf, token: str) -> HTMLResponse:
    """What an invitation leads to: choose a name and a password."""
    invitation = service.read(lambda connection: sessions.find_invitation(connection, token, service.secret))
    return show(request, "invitation.html", {"invitation": invitation, "token": token, "name": invitation.name})


@router.post("/invite/{token}")
async def invitation(
    request: Request,
    service: ServiceOf,
    token: str,
    password: Annotated[str, Form(max_length=1_000)],
    name: Annotated[str, Form(max_length=1_000)] = "",
) -> Response:
    """Join, or choose a new password."""

    def look() -> Invitation:
        return service.read(lambda connection: sessions.find_invitation(connection, token))

    try:
        found = await run_in_threadpool(look)
    except NotFoundError:  # by somebody who guesses, say
        take(request, "login", address_of(request))
        raise
    take(request, "join", address_of(request))
    try:
        kept = await service.slow.run(passwords.hashed, password)

        def join(connection: Connection) -> str:
            sessions.use_invitation(connection, token)
            if found.person is not None:
                people.set_password(connection, found.person, kept)
                return found.person
            return people.add_person(connection, service.secret, name, role=found.role, password_hash=kept)

        person = await service.changed(join)
    except (InvalidError, ConflictError) as error:
        values = {"invitation": found, "token": token, "message": str(error), "name": name}
        return show(request, "invitation.html", values, error.status)
    return await logged_in(request, service, person)


async def logged_in(request: Request, service: Service, person: str, then: str = "/") -> Response:
    """A browser that has a session from now on, under a secret that it has not had before."""
    settings = service.settings
    before = request.cookies.get(settings.session_cookie)

    def begin(connection: Connection) -> tuple[str, str]:
        if before is not None:
            sessions.end_session(connection, before)
        return sessions.begin_session(connection, person, settings.session_hours, settings.idle_hours)

    token, csrf = await service.changed(begin)
    answer = RedirectResponse(local_path(then), 303, {"X-CSRF-Token": csrf})  # for programs, which look at no page
    answer.set_cookie(
        settings.session_cookie,
        token,
        max_age=int(3_600 * settings.session_hours),
        httponly=True,
        samesite="lax",
        secure=settings.is_https,
    )
    return answer
