"""People, invitations and tokens, through the API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, select
from starlette.concurrency import run_in_threadpool

from quorate_serve import answers, people, sessions
from quorate_serve.answers import Invitation, Token, TokenMade
from quorate_serve.database import tables
from quorate_serve.own_data import data_of
from quorate_serve.people import Person, Role
from quorate_serve.permissions import own_or
from quorate_serve.problems import ConflictError, InvalidError, RefusedError
from quorate_serve.routes.common import Service, ServiceOf, WhoAsks
from quorate_serve.routes.reauthentication import reauthenticated
from quorate_serve.sessions import Who

router = APIRouter(prefix="/api/v1", tags=["people"])
_MOST_TOGETHER = 500  # links that are made at once
Password = Annotated[str, Field(max_length=1_000, repr=False, description="Your own, again, where that is needed.")]


class PersonChange(BaseModel):
    """What may be changed of somebody: what a document costs with them, how many they do at most, and so on."""

    model_config = ConfigDict(extra="forbid")
    role: Role | None = None
    active: bool | None = None
    cost: Annotated[float | None, Field(gt=0, le=1e9)] = None
    most: Annotated[int | None, Field(ge=0, le=1_000_000_000)] = None
    own_password: Password = ""


class Invite(BaseModel):
    """Whom to invite: somebody new, by role; or somebody who is here, to choose a new password."""

    model_config = ConfigDict(extra="forbid")
    role: Role = Role.ANNOTATOR
    person: str | None = None
    name: Annotated[str, Field(max_length=1_000, description="Of somebody new, to know the link by.")] = ""
    own_password: Password = ""


class InvitationOut(BaseModel):
    """A link that is good once, within a week. It is shown once, unless it is an annotator's or reviewer's by name."""

    url: str


class TokenIn(BaseModel):
    """A token for a program: a name to know it by, for how many days it is good (unless given, as many as may be).

    `password` is yours, once more; whoever has none here must have logged in within the last ten minutes.
    """

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(min_length=1, max_length=128)]
    days: Annotated[float | None, Field(gt=0)] = None
    password: Password = ""


@router.get("/people")
def list_people(service: ServiceOf) -> list[answers.Person]:
    """Everybody."""
    return [_out(person) for person in service.read(people.people_of)]


@router.get("/people/{person}")
def get_person(service: ServiceOf, who: WhoAsks, person: str) -> answers.Person:
    """Yourself (``me``), or for managers anybody."""
    wanted = who.person if person == "me" else person
    own_or(who, wanted, Role.MANAGER)
    return _out(service.read(lambda connection: people.find_person(connection, wanted)))


@router.get("/people/me/data")
def own_data(service: ServiceOf, who: WhoAsks) -> dict[str, Any]:
    """All that is kept about you, as a file to take along."""
    return service.read(lambda connection: data_of(connection, who.person))


@router.patch("/people/{person}")
async def change_person(service: ServiceOf, who: WhoAsks, person: str, change: PersonChange) -> answers.Person:
    """Change somebody's role, cost or limit, or let them in no more.

    To make a manager or an admin of them takes a browser's session, and your password again.
    """
    values = change.model_dump(exclude_unset=True, exclude={"own_password"})

    def look(connection: Connection) -> Role | None:
        _check_above(connection, who, person, change.role)
        before = people.find_person(connection, person).role
        return None if change.role is before else change.role

    raised = await run_in_threadpool(service.read, look)
    confirm = await _confirmed(service, who, raised, change.own_password)

    def work(connection: Connection) -> Person:
        confirm(connection)
        _check_unchanged(look(connection), raised)
        people.change_person(connection, person, values, by=who.person)
        return people.find_person(connection, person)

    return _out(await service.changed(work))


@router.post("/people/{person}/erase")
def erase_person(service: ServiceOf, who: WhoAsks, person: str) -> answers.Person:
    """Make it impossible to tell who somebody was; their labels stay, under an id that says nothing."""

    def work(connection: Connection) -> Person:
        people.erase(connection, person, by=who.person)
        return people.find_person(connection, person)

    erased = service.change(work)
    service.database.shred("personal_keys", "people", "tokens")
    return _out(erased)


@router.post("/invitations")
async def invite_person(service: ServiceOf, who: WhoAsks, given: Invite) -> InvitationOut:
    """A link for somebody to join with, or to choose a new password.

    One for a manager or an admin takes a browser's session, and your password again.
    """

    def look(connection: Connection) -> Role:
        if people.find_person(connection, who.person).role is not who.role:
            raise RefusedError("your role was changed a moment ago (load the page again)")
        if given.person is None:
            if not _may_make(who, given.role):
                raise RefusedError(f"only admins invite {given.role.value}s")
            return given.role
        if given.person == who.person:
            raise RefusedError("this is for others (choose your own new password on the page Account)")
        people.check_not_erased(connection, given.person)
        _check_above(connection, who, given.person, None)
        return people.find_person(connection, given.person).role or Role.ANNOTATOR

    role = await run_in_threadpool(service.read, look)
    confirm = await _confirmed(service, who, role, given.own_password)

    def work(connection: Connection) -> str:
        confirm(connection)
        _check_unchanged(look(connection), role)
        if given.person is None and given.name.strip():
            made = sessions.invite_by_name(connection, service.secret, [given.name], role, by=who.person)
            return next(iter(made.values()))
        return sessions.invite(connection, role, given.person, by=who.person)

    return InvitationOut(url=_url(service, await service.changed(work)))


async def invite_several(service: Service, who: Who, role: Role, names: Sequence[str], password: str) -> dict[str, str]:
    """Links for people to join with, by name; all of them, or an error and none."""
    if len(names) > _MOST_TOGETHER:
        raise InvalidError(f"{len(names)} names are too many at once (give {_MOST_TOGETHER} at most)")
    if not _may_make(who, role):
        raise RefusedError(f"only admins invite {role.value}s")
    confirm = await _confirmed(service, who, role, password)

    def work(connection: Connection) -> dict[str, str]:
        confirm(connection)
        if people.find_person(connection, who.person).role is not who.role:
            raise RefusedError("your role was changed a moment ago (load the page again)")
        return sessions.invite_by_name(connection, service.secret, names, role, by=who.person)

    return {name: _url(service, token) for name, token in (await service.changed(work)).items()}


@router.get("/invitations")
def list_invitations(service: ServiceOf, who: WhoAsks) -> list[Invitation]:
    """The links that are open, the newest first: those that you could make yourself."""
    found = service.read(lambda connection: sessions.open_invitations(connection, service.secret))
    return [
        Invitation(
            one.id,
            one.role.value,
            one.person,
            one.created,
            one.until,
            one.by,
            one.name,
            url=_url(service, one.token) if one.token else None,
        )
        for one in found
        if _may_make(who, one.role)
    ]


@router.delete("/invitations/{id}", status_code=204)
def revoke_invitation(service: ServiceOf, who: WhoAsks, id: str) -> None:
    """Let a link be good no more."""

    def work(connection: Connection) -> None:
        for one in sessions.open_invitations(connection):
            if one.id == id and not _may_make(who, Role(one.role)):
                raise RefusedError(f"only admins revoke links for {one.role}s")
        sessions.revoke_invitation(connection, id)

    service.change(work)


@router.get("/tokens")
def list_tokens(service: ServiceOf, who: WhoAsks) -> list[Token]:
    """Your own tokens."""
    table = tables.tokens.c
    query = select(table.id, table.name, table.created, table.until, table.used).where(table.person == who.person)
    rows = service.read(lambda connection: connection.execute(query.order_by(table.created)).all())
    return msgspec.convert(rows, list[Token], from_attributes=True)


@router.post("/tokens")
async def make_token(service: ServiceOf, who: WhoAsks, given: TokenIn) -> TokenMade:
    """A token for a program that acts as you do. It takes a browser's session, and the password again."""
    most = service.settings.token_days
    days = most if given.days is None else given.days
    if days > most:
        raise InvalidError(f"a token is good for {most} days at most (give fewer)")
    confirm = await reauthenticated(service, who, given.password)

    def work(connection: Connection) -> tuple[str, str]:
        confirm(connection)
        return sessions.make_token(connection, who.person, given.name, days)

    id, token = await service.changed(work)
    return TokenMade(id=id, token=token)


@router.delete("/tokens/{id}", status_code=204)
def remove_token(service: ServiceOf, who: WhoAsks, id: str) -> None:
    """End one of your tokens."""
    service.change(lambda connection: sessions.remove_token(connection, who.person, id))


async def _confirmed(service: Service, who: Who, role: Role | None, password: str) -> Callable[[Connection], None]:
    """Make sure of who makes managers and admins: with what was stolen, nobody is to make what lasts longer."""
    if role is None or not role.may(Role.MANAGER):
        return lambda connection: None
    if who.csrf is None:
        raise RefusedError("a token is not enough to make managers and admins (log in, and use the page People)")
    return await reauthenticated(service, who, password)


def _url(service: Service, token: str) -> str:
    return f"{service.settings.address}/invite/{token}"


def _check_unchanged(role: Role | None, before: Role | None) -> None:
    if role is not before:
        raise ConflictError("somebody else changed this role a moment ago (look again)")


def _may_make(who: Who, role: Role) -> bool:
    """Managers bring in annotators and reviewers; admins anybody."""
    return who.role is Role.ADMIN or not role.may(Role.MANAGER)


def _check_above(connection: Connection, who: Who, person: str, role: Role | None) -> None:
    """:class:`RefusedError` if somebody would change who is not below them, or raise somebody to their own role."""
    before = people.find_person(connection, person).role
    if (before is not None and not _may_make(who, before)) or (role is not None and not _may_make(who, role)):
        raise RefusedError("only admins change managers and admins")


def _out(person: Person) -> answers.Person:
    return msgspec.convert(person._asdict(), answers.Person)
