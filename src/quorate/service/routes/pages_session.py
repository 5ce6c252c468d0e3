"""Coming in and going out: login, invitations, the first page."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy import Connection

from quorate.service import people, sessions
from quorate.service.problems import RefusedError, RequestError
from quorate.service.routes.common import Service, ServiceOf, show
from quorate.service.sessions import COOKIE

router = APIRouter(include_in_schema=False)


@router.get("/")
def home(request: Request) -> Response:
    """The first page of whoever is logged in."""
    return show(request, "home.html", {})


@router.get("/login")
def login_page(request: Request, next: str = "/") -> Response:
    """Where to log in; ``next`` is where to go from there."""
    return show(request, "login.html", {"next": _within(next)})


@router.post("/login")
def login(
    request: Request,
    service: ServiceOf,
    name: Annotated[str, Form()],
    password: Annotated[str, Form()],
    next: Annotated[str, Form()] = "/",
) -> Response:
    """Log in by name and password."""
    try:
        person = service.read(lambda connection: people.log_in(connection, service.secret, name, password))
    except RefusedError as error:
        told = {"message": str(error), "name": name, "next": _within(next)}
        return show(request, "login.html", told, error.status)
    return logged_in(service, person, _within(next))


@router.post("/logout")
def logout(request: Request, service: ServiceOf) -> Response:
    """Log out."""
    token = request.cookies.get(COOKIE, "")
    service.change(lambda connection: sessions.end_session(connection, token))
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE)
    return answer


@router.get("/invite/{token}")
def invitation_page(request: Request, service: ServiceOf, token: str) -> HTMLResponse:
    """What an invitation leads to: choose a name and a password."""
    invitation = service.read(lambda connection: sessions.find_invitation(connection, token))
    return show(request, "invitation.html", {"invitation": invitation, "token": token})


@router.post("/invite/{token}")
def invitation(
    request: Request,
    service: ServiceOf,
    token: str,
    password: Annotated[str, Form()],
    name: Annotated[str, Form()] = "",
) -> Response:
    """Join, or choose a new password."""

    def join(connection: Connection) -> str:
        found = sessions.find_invitation(connection, token)
        sessions.use_invitation(connection, token)
        if found.person is not None:
            people.set_password(connection, found.person, password)
            return found.person
        return people.add_person(connection, service.secret, name, role=found.role, password=password)

    try:
        person = service.change(join)
    except RequestError as error:
        found = service.read(lambda connection: sessions.find_invitation(connection, token))
        told = {"invitation": found, "token": token, "message": str(error), "name": name}
        return show(request, "invitation.html", told, error.status)
    return logged_in(service, person)


def _within(path: str) -> str:
    """A path of this service, whatever else was asked for."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/"


def logged_in(service: Service, person: str, then: str = "/") -> Response:
    """A browser that has a session from now on."""
    hours = service.settings.session_hours
    token, _ = service.change(lambda connection: sessions.begin_session(connection, person, hours))
    answer = RedirectResponse(then, 303)
    secure = service.settings.address.startswith("https:")
    answer.set_cookie(COOKIE, token, max_age=int(3_600 * hours), httponly=True, samesite="lax", secure=secure)
    return answer
