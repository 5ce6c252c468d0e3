"""The page about those who label: for managers everybody, for each annotator their own."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from quorate.errors import QuorateError
from quorate.wording import counted
from quorate_serve import people
from quorate_serve.charts import course
from quorate_serve.people import Role
from quorate_serve.people_page import Figures, figures_of
from quorate_serve.problems import RefusedError
from quorate_serve.routes import api_people
from quorate_serve.routes.api_people import Invite, PersonChange
from quorate_serve.routes.common import Service, ServiceOf, WhoAsks, show
from quorate_serve.routes.moments import day_of
from quorate_serve.sessions import Who

router = APIRouter(include_in_schema=False)
Password = Annotated[str, Form(max_length=1_000)]


@router.get("/people")
def people_page(request: Request, service: ServiceOf, who: WhoAsks) -> HTMLResponse:
    """Everybody, and who can be trusted."""
    return _everybody(request, service, who, {})


@router.post("/people")
async def invite_from_page(
    request: Request,
    service: ServiceOf,
    who: WhoAsks,
    role: Annotated[Role, Form()],
    names: Annotated[str, Form(max_length=100_000)] = "",
    password: Password = "",
) -> HTMLResponse:
    """A link for somebody to join with; or one for each name, a line each."""
    listed = [name.strip() for name in names.splitlines() if name.strip()]
    try:
        if listed:
            links = await api_people.invite_several(service, who, role, listed, password)
            return await run_in_threadpool(_everybody, request, service, who, {"links": links, "invited": role})
        made = await api_people.invite_person(service, who, Invite(role=role, own_password=password))
    except QuorateError as error:
        values = {"message": str(error), "asked": role, "names": names}
        status = 403 if isinstance(error, RefusedError) else 422
        return await run_in_threadpool(_everybody, request, service, who, values, status)
    return await run_in_threadpool(_everybody, request, service, who, {"link": made.url, "invited": role})


@router.post("/people/invitations/{id}/revoke")
def revoke_from_page(request: Request, service: ServiceOf, who: WhoAsks, id: str) -> Response:
    """Let a link be good no more."""
    try:
        api_people.revoke_invitation(service, who, id)
    except QuorateError as error:
        return _everybody(request, service, who, {"message": str(error)}, 409)
    return RedirectResponse("/people", 303)


@router.get("/people/me")
def own_page(request: Request, service: ServiceOf, who: WhoAsks) -> HTMLResponse:
    """What somebody has done, and nothing about others."""
    return _one(request, service, who, who.person, {"own": True})


@router.get("/people/{person}")
def person_page(request: Request, service: ServiceOf, who: WhoAsks, person: str) -> HTMLResponse:
    """All about one person."""
    return _one(request, service, who, person, {})


@router.post("/people/{person}")
async def change_person_from_page(
    request: Request,
    service: ServiceOf,
    who: WhoAsks,
    person: str,
    cost: Annotated[float, Form(gt=0, le=1e9)],
    role: Annotated[Role | None, Form()] = None,
    most: Annotated[str, Form(max_length=12)] = "",
    active: Annotated[bool, Form()] = False,
    password: Password = "",
) -> Response:
    """Change role, cost, limit, or whether they may log in."""
    given: dict[str, Any] = {"cost": cost, "most": most or None}
    if role is not None:
        given |= {"role": role, "active": active}
    try:
        change = PersonChange(**given, own_password=password)
    except ValueError:
        values = {"message": f"most: {most!r} is not a number of documents"}
        return await run_in_threadpool(_one, request, service, who, person, values, 422)
    try:
        await api_people.change_person(service, who, person, change)
    except QuorateError as error:
        return await run_in_threadpool(_one, request, service, who, person, {"message": str(error)}, 409)
    return RedirectResponse(f"/people/{person}", 303)


@router.post("/people/{person}/password")
async def new_password_from_page(
    request: Request, service: ServiceOf, who: WhoAsks, person: str, password: Password = ""
) -> HTMLResponse:
    """A link for somebody to choose a new password with, shown once."""
    try:
        made = await api_people.invite_person(service, who, Invite(person=person, own_password=password))
    except QuorateError as error:
        return await run_in_threadpool(_one, request, service, who, person, {"message": str(error)}, 403)
    return await run_in_threadpool(_one, request, service, who, person, {"link": made.url})


@router.post("/people/{person}/erase")
def erase_from_page(
    request: Request, service: ServiceOf, who: WhoAsks, person: str, name: Annotated[str, Form(max_length=400)] = ""
) -> Response:
    """Erase who somebody was, once their name is typed."""
    found = service.read(lambda connection: people.find_person(connection, person))
    if name.strip() != found.name:
        return _one(request, service, who, person, {"message": "that is not the name, so nothing was erased"}, 422)
    try:
        api_people.erase_person(service, who, person)
    except QuorateError as error:
        return _one(request, service, who, person, {"message": str(error)}, 409)
    return RedirectResponse("/people", 303)


def _everybody(
    request: Request, service: Service, who: Who, content: dict[str, Any], status: int = 200
) -> HTMLResponse:
    def look(connection: Connection) -> list[tuple[people.Person, Figures]]:
        figures = figures_of(connection)
        return [(person, figures[person.id]) for person in people.people_of(connection)]

    found = service.read(look)
    rows = [(person, own) for person, own in found if person.role is not None or own.labels]
    rows.sort(key=lambda row: (row[0].role is None, -row[1].labels, row[0].name.casefold()))
    roles = [role for role in Role if who.role is Role.ADMIN or not role.may(Role.MANAGER)]
    names = {person.id: person.name for person, _ in found}
    links = sorted(api_people.list_invitations(service, who), key=lambda one: (not one.name, one.name.casefold()))
    invitations = [(one, names.get(one.person or ""), names.get(one.by or "")) for one in links]
    values = {"rows": rows, "roles": roles, "invitations": invitations}
    return show(request, "people.html", {**values, **content}, status)


def _one(
    request: Request, service: Service, who: Who, person: str, content: dict[str, Any], status: int = 200
) -> HTMLResponse:
    found = service.read(lambda connection: people.find_person(connection, person))
    own = service.read(lambda connection: figures_of(connection, person))[person]
    shares = [
        (f"{day_of(lot.first)}: {100 * lot.share.value:.0f} % in {counted(lot.documents, 'document')}", *lot.share)
        for lot in own.lots
    ]
    erased = found.role is None and not found.active
    may = who.role is Role.ADMIN or found.role is None or not found.role.may(Role.MANAGER)
    roles = [role for role in Role if who.role is Role.ADMIN or not role.may(Role.MANAGER)]
    values = {"person": found, "figures": own, "drift": course(shares), "roles": roles, "may": may and not erased}
    values["is_me"] = found.id == who.person
    return show(request, "person.html", {**values, **content}, status)
