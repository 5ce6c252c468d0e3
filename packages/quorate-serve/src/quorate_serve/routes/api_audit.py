"""Audits, through the API."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from quorate_serve import auditing
from quorate_serve.answers import Span
from quorate_serve.auditing import Audit, Check
from quorate_serve.delivering import document_decided
from quorate_serve.events import Event
from quorate_serve.routes.common import ClientId, Service, ServiceOf, SpanIn, WhoAsks

router = APIRouter(prefix="/api/v1", tags=["audits"])


class PlanIn(BaseModel):
    """How many documents to draw from the consensus as it stands.

    ``sequential``: one may look at any time and add documents, with wider intervals. ``proposes``: those who check are
    shown the consensus, to correct it.
    """

    model_config = ConfigDict(extra="forbid")
    documents: Annotated[int, Field(ge=1, le=100_000)] = 50
    sequential: bool = False
    proposes: bool = False


class MoreIn(BaseModel):
    """How many more documents to draw for a sequential audit."""

    model_config = ConfigDict(extra="forbid")
    documents: Annotated[int, Field(ge=1, le=100_000)]


class AuditOut(BaseModel):
    """An audit of one version of the consensus.

    ``result`` has precision, recall and F1 of all documents, each as [value, low, high], which hold with its
    confidence; it is null until enough is checked. ``more_to_halve`` says how many more documents would make the
    intervals half as wide.
    """

    id: str
    at: float
    version: int
    documents: int
    checked: int
    sequential: bool
    proposes: bool
    ended: float | None
    result: dict[str, Any] | None


class TaskOut(BaseModel):
    """A document to check; ``proposed`` is what the consensus says, if it is to be corrected, and empty otherwise."""

    number: int
    id: str
    text: str
    tokens: list[tuple[int, int]]
    proposed: list[Span]


class NextTask(BaseModel):
    """The next document to check; null when there is none for you: all are, or the rest you annotated yourself."""

    document: TaskOut | None


class CheckIn(BaseModel):
    """What is right in a document of an audit; ``id`` is made by the client."""

    model_config = ConfigDict(extra="forbid")
    id: ClientId
    document: int
    spans: Annotated[list[SpanIn], Field(max_length=20_000)]
    seconds: Annotated[float | None, Field(ge=0, le=86_400)] = None


class Checked(BaseModel):
    """It is on the disk; how many documents of the audit are checked, and of how many."""

    event: int
    document: int
    checked: int
    documents: int


@router.get("/audits")
def list_audits(service: ServiceOf) -> list[AuditOut]:
    """All audits, the last first."""
    return [_out(one) for one in service.read(auditing.audits_of)]


@router.post("/audits")
def plan_audit(service: ServiceOf, who: WhoAsks, given: PlanIn) -> AuditOut:
    """Draw documents for reviewers to check; one audit is open at a time."""
    drawn = service.read(lambda connection: auditing.draw(connection, given.documents, sequential=given.sequential))
    kind = {"sequential": given.sequential, "proposes": given.proposes}
    id = service.change(lambda connection: auditing.start(connection, drawn, by=who.person, **kind))
    return _out(service.read(lambda connection: auditing.find_audit(connection, id)))


@router.post("/audits/{id}/more")
def extend_audit(service: ServiceOf, who: WhoAsks, id: str, given: MoreIn) -> AuditOut:
    """Draw more documents for a sequential audit."""
    plan = service.read(lambda connection: auditing.draw_more(connection, id, given.documents))
    service.change(lambda connection: auditing.widen(connection, id, plan, by=who.person))
    return _out(service.read(lambda connection: auditing.find_audit(connection, id)))


@router.post("/audits/{id}/end")
def end_audit(service: ServiceOf, who: WhoAsks, id: str) -> AuditOut:
    """Give an audit up; a sequential one keeps the result of what was checked."""
    service.change(lambda connection: auditing.end(connection, id, by=who.person))
    return _out(service.read(lambda connection: auditing.find_audit(connection, id)))


@router.get("/audits/{id}/next")
def next_check(service: ServiceOf, who: WhoAsks, id: str) -> NextTask:
    """The next document for you to check."""
    own = service.read(lambda connection: auditing.find_audit(connection, id))
    if not own.is_open:
        return NextTask(document=None)
    task = service.read(lambda connection: auditing.next_task(connection, who.person, own, service.settings))
    return NextTask(document=None if task is None else TaskOut.model_validate(task._asdict()))


@router.post("/audits/{id}/checks")
def check_document(service: ServiceOf, who: WhoAsks, id: str, given: CheckIn) -> Checked:
    """Save what is right in a document of an audit; the same save twice is one."""
    own = service.read(lambda connection: auditing.find_audit(connection, id))
    check = Check(given.id, given.document, [span.model_dump() for span in given.spans], given.seconds)

    def work(connection: Connection) -> Event:
        event = auditing.check(connection, who.person, own, check, service.settings)
        if not event.body["disputed"]:
            document_decided(connection, given.document)
        return event

    event = service.change(work)
    checked = worked_out(service, own)
    return Checked(event=event.seq, document=given.document, checked=checked, documents=len(own.documents))


def worked_out(service: Service, audit: Audit) -> int:
    """Work out what an audit says now, aside of those who save; how many documents of it are checked."""
    checked, result = service.read(lambda connection: auditing.outcome(connection, audit.id))
    service.change(lambda connection: auditing.keep_outcome(connection, audit.id, checked, result))
    return checked


def _out(audit: Audit) -> AuditOut:
    return AuditOut(**{**audit._asdict(), "documents": len(audit.documents)})
