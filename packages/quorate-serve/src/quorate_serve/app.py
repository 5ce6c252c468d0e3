"""The web application: routes, who may ask for them, and one shape for what goes wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

import quorate
from quorate.audit import sentences
from quorate.errors import QuorateError
from quorate_serve.authorising import LIMITS, authorise
from quorate_serve.campaign import LiveSettings
from quorate_serve.database.engine import Database
from quorate_serve.delivering import outgoing_of
from quorate_serve.labels_used import LabelsUsed
from quorate_serve.live.ticks import Ticks
from quorate_serve.oidc import provider_of
from quorate_serve.passwords import SlowWork
from quorate_serve.people import Role
from quorate_serve.permissions import ABOUT, PAGES, ROUTES
from quorate_serve.problems import NotLoggedInError, RequestError, TooManyError
from quorate_serve.rate_limits import RateLimits, retry_after
from quorate_serve.routes import (
    api_annotations,
    api_audit,
    api_consensus,
    api_documents,
    api_live,
    api_people,
    api_queue,
    api_reviews,
    api_service,
    api_webhooks,
    pages_account,
    pages_annotate,
    pages_audit,
    pages_campaign,
    pages_oidc,
    pages_people,
    pages_progress,
    pages_review,
    pages_session,
    pages_settings,
    pages_setup,
    pages_webhooks,
)
from quorate_serve.routes.moments import day_of
from quorate_serve.settings import ServiceSettings

ROUTERS = (
    api_annotations.router,  # looked through in this order, and saves are most of what comes
    pages_session.router,
    pages_annotate.router,
    pages_review.router,
    pages_audit.router,
    pages_progress.router,
    pages_people.router,
    pages_settings.router,
    pages_setup.router,
    pages_campaign.router,
    pages_webhooks.router,
    pages_account.router,
    pages_oidc.router,
    api_service.router,
    api_audit.router,
    api_consensus.router,
    api_reviews.router,
    api_documents.router,
    api_live.router,
    api_queue.router,
    api_people.router,
    api_webhooks.router,
)
_HERE = Path(__file__).parent


def create_app(settings: ServiceSettings, database: Database | None = None) -> FastAPI:
    """The application of a service; the database is opened with it, unless one is given."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.database = database or Database.at(settings.database)
        app.state.ticks = Ticks(app.state.database)
        app.state.slow = SlowWork()
        yield
        app.state.ticks.stop()
        app.state.slow.close()
        if database is None:
            await run_in_threadpool(app.state.database.close)

    app = FastAPI(
        title="quorate",
        version=quorate.__version__,
        description="Annotate and review spans as a team; the consensus is alive.",
        openapi_url=None,  # it is a route like any other (routes/api_service.py)
        lifespan=lifespan,
        dependencies=[Depends(authorise)],
    )
    app.state.settings, app.state.secret = settings, settings.secret()
    app.state.live_settings = LiveSettings()
    app.state.limits, app.state.outgoing = RateLimits(LIMITS), outgoing_of(settings)
    app.state.streams = Counter[str]()  # of each person, those that are open
    app.state.provider, app.state.labels_used = provider_of(settings), LabelsUsed()
    app.state.templates = Jinja2Templates(_HERE / "templates")
    app.state.templates.env.globals.update(
        pages=PAGES, about=ABOUT, day_of=day_of, audit_sentences=sentences, manager=Role.MANAGER, admin=Role.ADMIN
    )
    app.state.templates.env.globals["has_provider"] = app.state.provider is not None
    app.mount("/static", StaticFiles(directory=_HERE / "static"), name="static")
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(QuorateError, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _failed)
    _check_permissions()
    return app


def _check_permissions() -> None:
    """Every route is in the table of permissions, and nothing else is."""
    names = {route.name for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)}
    if names != set(ROUTES):
        raise RuntimeError(f"routes and permissions differ: {sorted(names ^ set(ROUTES))}")


def _answer(request: Request, status: int, code: str, message: str) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": {"code": code, "message": message}}, status)
    if status == NotLoggedInError.status:
        wanted = request.url.path if request.method == "GET" else "/"
        return RedirectResponse("/login" if wanted == "/" else f"/login?next={quote(wanted)}", 303)
    templates = cast(Jinja2Templates, request.app.state.templates)
    who = getattr(request.state, "who", None)
    return templates.TemplateResponse(request, "problem.html", {"message": message, "who": who}, status)


async def _problem(request: Request, error: Exception) -> Response:
    status, code = (error.status, error.code) if isinstance(error, RequestError) else (422, "invalid")
    answer = _answer(request, status, code, str(error))
    if isinstance(error, TooManyError):
        answer.headers["Retry-After"] = retry_after(error.wait)
    return answer


async def _failed(request: Request, error: Exception) -> Response:
    """A fault of the service's own: it goes to the log, and nothing of it to whoever asked."""
    return _answer(request, 500, "failed", "the service failed at this (try again; its log says why)")


async def _invalid(request: Request, error: Exception) -> Response:
    first: Any = cast(RequestValidationError, error).errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:])
    return _answer(request, 422, "invalid", f"{where or 'request'}: {first['msg']}")


async def _http(request: Request, error: Exception) -> Response:
    known = cast(HTTPException, error)
    code = {404: "not-found", 405: "not-allowed"}.get(known.status_code, "bad-request")
    told = {404: "there is nothing here", 405: "not by this method"}
    message = told.get(known.status_code, str(known.detail))
    if message.startswith("Part exceeded"):  # as the parser of forms says it
        message = "a text of more than 1 MB is too long for a form (upload it as a file)"
    return _answer(request, known.status_code, code, message)
