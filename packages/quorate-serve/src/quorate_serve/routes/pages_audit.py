"""The page of audits: managers plan them, reviewers check."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy import Connection

from quorate.errors import QuorateError
from quorate_serve import auditing
from quorate_serve.auditing import Audit, Task
from quorate_serve.consensus_file import consensus_version
from quorate_serve.routes import api_audit
from quorate_serve.routes.common import ServiceOf, WhoAsks, show

router = APIRouter(include_in_schema=False)


@router.get("/audit")
def audit_page(request: Request, service: ServiceOf) -> Response:
    """The audit that is open, what came of those before, and a form for the next."""
    return _shown(request, service, "")


@router.get("/audit/check")
def audit_check_page(request: Request, service: ServiceOf, who: WhoAsks) -> Response:
    """The next document to check."""

    def look(connection: Connection) -> tuple[Audit | None, Task | None, int]:
        own = auditing.open_audit(connection)
        if own is None:
            return None, None, 0
        checked = len(auditing.checks_of(connection, own))
        return own, auditing.next_task(connection, who.person, own, service.settings), checked

    own, task, checked = service.read(look)
    if own is not None and task is None and checked < len(own.documents):
        return _shown(request, service, "What is left to check you annotated yourself: somebody else checks it.")
    if own is None or task is None:
        return RedirectResponse("/audit", 303)
    given = service.marking | {"audit": own.id, "document": task._asdict()}
    return show(request, "audit_check.html", {"given": given, "audit": own, "checked": checked})


@router.post("/audit")
def plan_audit_from_page(
    request: Request,
    service: ServiceOf,
    who: WhoAsks,
    documents: Annotated[int, Form(ge=1, le=100_000)],
    sequential: Annotated[bool, Form()] = False,
    proposes: Annotated[bool, Form()] = False,
) -> Response:
    """Plan an audit."""
    given = api_audit.PlanIn(documents=documents, sequential=sequential, proposes=proposes)
    try:
        api_audit.plan_audit(service, who, given)
    except QuorateError as error:
        return _shown(request, service, str(error), 422)
    return RedirectResponse("/audit", 303)


@router.post("/audit/{id}/more")
def extend_audit_from_page(
    request: Request, service: ServiceOf, who: WhoAsks, id: str, documents: Annotated[int, Form(ge=1, le=100_000)]
) -> Response:
    """Draw more documents."""
    try:
        api_audit.extend_audit(service, who, id, api_audit.MoreIn(documents=documents))
    except QuorateError as error:
        return _shown(request, service, str(error), 422)
    return RedirectResponse("/audit", 303)


@router.post("/audit/{id}/end")
def end_audit_from_page(request: Request, service: ServiceOf, who: WhoAsks, id: str) -> Response:
    """Give an audit up, or leave it at what was checked."""
    api_audit.end_audit(service, who, id)
    return RedirectResponse("/audit", 303)


def _shown(request: Request, service: ServiceOf, message: str, status: int = 200) -> Response:
    def look(connection: Connection) -> tuple[list[Audit], int, int]:
        audits = auditing.audits_of(connection)
        first = next((one for one in audits if one.is_open), None)
        checked = 0 if first is None else len(auditing.checks_of(connection, first))
        return audits, checked, consensus_version(connection)

    audits, checked, version = service.read(look)
    stale = next((one for one in audits if one.is_open and checked == len(one.documents)), None)
    if stale is not None:  # the service was stopped before it had worked out the last check
        api_audit.worked_out(service, stale)
        audits, checked, version = service.read(look)
    values = {
        "open": next((one for one in audits if one.is_open), None),
        "past": [one for one in audits if not one.is_open],
        "checked": checked,
        "version": version,
        "proposes": not service.settings.blind,
        "message": message,
    }
    return show(request, "audit.html", values, status)
