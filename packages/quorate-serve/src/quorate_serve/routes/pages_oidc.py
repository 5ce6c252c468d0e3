"""Coming in by a provider of logins (OpenID Connect)."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from quorate_serve import people, sessions
from quorate_serve.authorising import address_of, take
from quorate_serve.oidc import SECONDS_TO_LOG_IN, Identity, LoginError, Provider
from quorate_serve.people import Role
from quorate_serve.problems import ConflictError, NotFoundError, RefusedError
from quorate_serve.routes.common import ServiceOf, show
from quorate_serve.routes.pages_session import logged_in

router = APIRouter(include_in_schema=False)
_INVITED = "/invite/"
_PATH = "/login/oidc"


@router.get("/login/oidc")
def oidc_login(request: Request, service: ServiceOf, then: Annotated[str, Query(max_length=1_000)] = "/") -> Response:
    """Go to the provider."""
    take(request, "login", address_of(request))
    begun = _provider(request).begin(then)
    answer = RedirectResponse(begun.url, 303)
    answer.set_cookie(
        service.settings.login_cookie,
        begun.cookie,
        max_age=SECONDS_TO_LOG_IN,
        path=_PATH,
        httponly=True,
        samesite="lax",
        secure=service.settings.is_https,
    )
    return answer


@router.get("/login/oidc/back")
async def oidc_back(request: Request, service: ServiceOf) -> Response:
    """Come back from the provider, who says who it is."""
    take(request, "login", address_of(request))
    cookie = service.settings.login_cookie
    provider = _provider(request)
    try:
        identity, then = await run_in_threadpool(
            provider.finish, dict(request.query_params), request.cookies.get(cookie, "")
        )
        invited = then.removeprefix(_INVITED) if then.startswith(_INVITED) else None

        def enter(connection: Connection) -> str:
            return _enter(connection, service.secret, provider, identity, invited)

        person = await service.changed(enter)
        answer = await logged_in(request, service, person, "/" if invited else then)
    except (LoginError, RefusedError, ConflictError, NotFoundError) as error:
        answer = show(request, "login.html", {"message": str(error)}, 403)
    answer.delete_cookie(cookie, path=_PATH, httponly=True, samesite="lax", secure=service.settings.is_https)
    return answer


def _enter(connection: Connection, secret: bytes, provider: Provider, identity: Identity, invited: str | None) -> str:
    """Whose account it is. Nobody is taken for somebody by name or e-mail: those can be had by others."""
    subject = f"{identity.issuer} {identity.subject}"
    known = people.find_subject(connection, secret, subject)
    if known is not None:
        if not known.active or known.role is None:
            raise RefusedError("this account is switched off (ask a manager)")
        return known.id
    if invited is not None:
        invitation = sessions.find_invitation(connection, invited)
        sessions.use_invitation(connection, invited)
        if invitation.person is not None:
            people.set_subject(connection, secret, invitation.person, subject)
            return invitation.person
        return _add(connection, secret, identity, invitation.role, subject)
    if not provider.settings.may_join(identity):
        raise RefusedError("you have no account here (ask a manager for an invitation)")
    role = max((Role(one) for one in identity.roles), key=list(Role).index, default=Role.ANNOTATOR)
    return _add(connection, secret, identity, role, subject)


def _add(connection: Connection, secret: bytes, identity: Identity, role: Role, subject: str) -> str:
    name = "".join(each for each in identity.name if each.isprintable()).strip()[:200] or identity.email
    try:
        return people.add_person(
            connection, secret, name or identity.subject, role=role, email=identity.email, subject=subject
        )
    except ConflictError:  # two who are called the same
        name = identity.email or identity.subject
        return people.add_person(connection, secret, name, role=role, email=identity.email, subject=subject)


def _provider(request: Request) -> Provider:
    found = request.app.state.provider
    if found is None:
        raise NotFoundError("there is no provider of logins here (log in by name)")
    return cast(Provider, found)
