"""The web application: routes, who may ask for them, and one shape for what goes wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hmac import compare_digest
from pathlib import Path
from typing import Any, cast

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

import quorate
from quorate.errors import QuorateError
from quorate.service.database.engine import Database
from quorate.service.live.ticks import Ticks
from quorate.service.people import Role
from quorate.service.permissions import ABOUT, EVERYBODY, PAGES, ROUTES
from quorate.service.problems import NotLoggedInError, RefusedError, RequestError, StalePageError
from quorate.service.routes import (
    api_annotations,
    api_audit,
    api_consensus,
    api_documents,
    api_live,
    api_people,
    api_queue,
    api_reviews,
    api_service,
    pages_account,
    pages_annotate,
    pages_audit,
    pages_people,
    pages_progress,
    pages_review,
    pages_session,
    pages_settings,
)
from quorate.service.routes.moments import day_of
from quorate.service.sessions import COOKIE, Who, who_asks
from quorate.service.settings import ServiceSettings

__all__ = ["ROUTERS", "create_app"]

ROUTERS = (
    pages_session.router,
    pages_annotate.router,
    pages_review.router,
    pages_audit.router,
    pages_progress.router,
    pages_people.router,
    pages_settings.router,
    pages_account.router,
    api_service.router,
    api_annotations.router,
    api_audit.router,
    api_consensus.router,
    api_reviews.router,
    api_documents.router,
    api_live.router,
    api_queue.router,
    api_people.router,
)
_SAFE = ("GET", "HEAD", "OPTIONS")
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_HERE = Path(__file__).parent


def create_app(settings: ServiceSettings, database: Database | None = None) -> FastAPI:
    """The application of a service; the database is opened with it, unless one is given."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.database = database or Database.at(settings.database)
        app.state.ticks = Ticks(app.state.database)
        yield
        app.state.ticks.stop()
        if database is None:
            await run_in_threadpool(app.state.database.close)

    app = FastAPI(
        title="quorate",
        version=quorate.__version__,
        description="Annotate and review spans as a team; the consensus is alive.",
        openapi_url=None,  # it is a route like any other (routes/api_service.py)
        lifespan=lifespan,
        dependencies=[Depends(_authorise)],
    )
    app.state.settings, app.state.secret = settings, settings.secret()
    app.state.templates = Jinja2Templates(_HERE / "templates")
    app.state.templates.env.globals.update(
        pages=PAGES, about=ABOUT, day_of=day_of, manager=Role.MANAGER, admin=Role.ADMIN
    )
    app.mount("/static", StaticFiles(directory=_HERE / "static"), name="static")
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(QuorateError, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    _check_permissions()
    return app


def _check_permissions() -> None:
    """Every route is in the table of permissions, and nothing else is."""
    names = {route.name for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)}
    if names != set(ROUTES):
        raise RuntimeError(f"routes and permissions differ: {sorted(names ^ set(ROUTES))}")


async def _authorise(request: Request) -> None:
    """Find out who asks, and whether they may; deny by default."""
    name = getattr(request.scope.get("route"), "name", "")
    if name not in ROUTES:
        raise RefusedError("this is not for anybody")
    who = await run_in_threadpool(_who_asks, request)
    request.state.who = who
    least = ROUTES[name]
    if least is EVERYBODY:
        return
    if who is None:
        raise NotLoggedInError("log in first")
    if not who.role.may(least):
        raise RefusedError(f"this is for {least.value}s (you are logged in as {who.role.value})")
    if who.csrf is not None and request.method not in _SAFE:
        await _check_csrf(request, who.csrf)


def _who_asks(request: Request) -> Who | None:
    with database_of(request).read() as connection:
        return who_asks(connection, request.headers.get("authorization", ""), request.cookies.get(COOKIE))


async def _check_csrf(request: Request, expected: str) -> None:
    """A browser's request that changes something carries the token of its session, in a header or in its form."""
    given = request.headers.get("x-csrf-token", "")
    if not given and request.headers.get("content-type", "").startswith(_FORMS):
        given = str((await request.form()).get("csrf", ""))
    if not compare_digest(given.encode(), expected.encode()):
        raise StalePageError("this page is from before the last login (load it again)")


def database_of(request: Request) -> Database:
    """The database of the application that a request came to."""
    return cast(Database, request.app.state.database)


def _answer(request: Request, status: int, code: str, message: str) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": {"code": code, "message": message}}, status)
    if status == NotLoggedInError.status:
        return RedirectResponse("/login", 303)
    templates = cast(Jinja2Templates, request.app.state.templates)
    who = getattr(request.state, "who", None)
    return templates.TemplateResponse(request, "problem.html", {"message": message, "who": who}, status)


async def _problem(request: Request, error: Exception) -> Response:
    status, code = (error.status, error.code) if isinstance(error, RequestError) else (422, "invalid")
    return _answer(request, status, code, str(error))


async def _invalid(request: Request, error: Exception) -> Response:
    first: Any = cast(RequestValidationError, error).errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:])
    return _answer(request, 422, "invalid", f"{where or 'request'}: {first['msg']}")


async def _http(request: Request, error: Exception) -> Response:
    known = cast(HTTPException, error)
    code = {404: "not-found", 405: "not-allowed"}.get(known.status_code, "bad-request")
    message = {404: "there is nothing here", 405: "not by this method"}.get(known.status_code, str(known.detail))
    return _answer(request, known.status_code, code, message)
