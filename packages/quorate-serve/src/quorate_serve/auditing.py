"""Audits in the service: documents drawn from the consensus of one version, which reviewers check one by one.

Everything that makes the guarantee is that of :mod:`quorate.audit`: what is drawn, what is refused, what follows. The
consensus that was drawn from is kept as it was, so that what people save meanwhile does not touch the result. A check
is a reviewer's decision, with the audit's id: the model learns from it as from any other.
"""

from __future__ import annotations

import math
import secrets
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, insert, select, update

from quorate import audit as audits
from quorate.audit.checked import read_plan
from quorate.audit.claims import Claims
from quorate.audit.plan import LEAST
from quorate.audit.sentences import Outcome, enough_seen
from quorate.errors import OtherConsensusError, QuorateError
from quorate.formats.json_lines import write_lines
from quorate_serve.annotating import annotated
from quorate_serve.consensus_file import consensus_records, consensus_version
from quorate_serve.database import tables
from quorate_serve.disputes import Word, open_places, words_on
from quorate_serve.documents import SpanRecord, check_overlaps, check_spans, document_record
from quorate_serve.events import Event, Kind, append, find
from quorate_serve.problems import ConflictError, InvalidError, NotFoundError, RefusedError
from quorate_serve.settings import ServiceSettings
from quorate_serve.state import record

__all__ = [
    "Audit",
    "Check",
    "Drawn",
    "Task",
    "audits_of",
    "check",
    "checks_of",
    "draw",
    "draw_more",
    "end",
    "find_audit",
    "keep_outcome",
    "next_task",
    "open_audit",
    "outcome",
    "start",
    "widen",
]

_CONFIDENCE = 0.9


class Audit(NamedTuple):
    """An audit as it is kept; ``documents`` are the numbers of those to check, in the order of the plan."""

    id: str
    at: float
    version: int
    documents: tuple[int, ...]
    sequential: bool
    proposes: bool
    ended: float | None
    checked: int
    result: Mapping[str, Any] | None

    @property
    def is_open(self) -> bool:
        """Whether there is something to check."""
        return self.ended is None

    @property
    def outcome(self) -> Outcome | None:
        """What it found, for sentences."""
        if self.result is None:
            return None
        kept, types = self.result, len(self.result["by_type"]) + len(self.result["few"])
        return Outcome(
            kept["documents"],
            kept["n"],
            kept["confidence"],
            self.sequential,
            kept["f1"],
            kept["few"] if types > 1 else (),
            kept["new_types"],
            kept["more_to_halve"],
            len(self.documents) - kept["n"],
            bool(kept.get("nothing_corrected")),  # older results do not say so
        )


class Drawn(NamedTuple):
    """A plan, and the consensus that it was drawn from, as files have them."""

    version: int
    claims: str
    plan: str


class Check(NamedTuple):
    """What a reviewer found in a document, as it comes in; ``id`` is made by the client."""

    id: str
    document: int
    spans: Sequence[Mapping[str, Any]]
    seconds: float | None = None


class Task(NamedTuple):
    """A document to check; ``proposed`` is what the consensus says, if it is to be corrected."""

    number: int
    id: str
    text: str
    tokens: Sequence[tuple[int, int]]
    proposed: Sequence[SpanRecord]


def draw(connection: Connection, n: int, *, sequential: bool) -> Drawn:
    """Draw documents from the consensus as it stands, with a seed by lot; nothing is written yet."""
    version, records = consensus_version(connection), consensus_records(connection)
    if not records:
        raise NotFoundError("there is no consensus to audit yet (it comes with the first labels)")
    claims = b"\n".join(map(msgspec.json.encode, records)).decode() + "\n"
    with tempfile.TemporaryDirectory(prefix="quorate-audit-") as folder:
        path = Path(folder, "consensus.jsonl")
        path.write_text(claims, encoding="utf-8")
        try:
            drawn = audits.plan(path, n, seed=secrets.randbelow(2**31), sequential=sequential)
        except QuorateError as error:
            raise InvalidError(str(error)) from None
    return Drawn(version, claims, _lines(drawn))


def start(connection: Connection, drawn: Drawn, *, by: str, sequential: bool, proposes: bool) -> str:
    """Begin an audit; one at a time, and one of each version."""
    if open_audit(connection) is not None:
        raise ConflictError("an audit is open (check its documents, or give it up)")
    same = select(tables.audits.c.id).where(tables.audits.c.version == drawn.version)
    if connection.execute(same).first() is not None:
        raise ConflictError(
            "this consensus has been audited, and of two draws one would choose the better (wait until it has changed)"
        )
    id, at = secrets.token_hex(8), time.time()
    values = {"id": id, "at": at, "person": by, "version": drawn.version, "claims": drawn.claims, "plan": drawn.plan}
    connection.execute(
        insert(tables.audits).values(**values, sequential=sequential, proposes=proposes, checked=0, result=None)
    )
    documents = drawn.plan.count("\n")
    body = {"audit": id, "version": drawn.version, "documents": documents, "sequential": sequential}
    append(connection, Kind.AUDIT_PLANNED, person=by, body=body)
    return id


def draw_more(connection: Connection, id: str, more: int) -> str:
    """The plan of a sequential audit with so many more documents; nothing is written yet."""
    row = _row(connection, id)
    try:
        return _lines(audits.extended(_plan(row.claims, row.plan), more))
    except QuorateError as error:
        raise InvalidError(str(error)) from None


def widen(connection: Connection, id: str, plan: str, *, by: str) -> None:
    """Take a longer plan; an audit of which all was checked is open again."""
    table = tables.audits
    others = open_audit(connection)
    if others is not None and others.id != id:
        raise ConflictError("another audit is open (check its documents, or give it up)")
    connection.execute(update(table).where(table.c.id == id).values(plan=plan, ended=None))
    body = {"audit": id, "documents": plan.count("\n"), "sequential": True}
    append(connection, Kind.AUDIT_PLANNED, person=by, body=body)


def end(connection: Connection, id: str, *, by: str) -> None:
    """Give an audit up, or leave it at what was checked; of a plan for one look there is no result then."""
    if not find_audit(connection, id).is_open:
        raise ConflictError("this audit has ended")
    connection.execute(update(tables.audits).where(tables.audits.c.id == id).values(ended=time.time()))
    append(connection, Kind.AUDIT_PLANNED, person=by, body={"audit": id, "ended": True})


def audits_of(connection: Connection) -> list[Audit]:
    """All audits, the last first."""
    rows = connection.execute(select(tables.audits).order_by(tables.audits.c.at.desc())).all()
    return [_audit(connection, row) for row in rows]


def find_audit(connection: Connection, id: str) -> Audit:
    """An audit by its id."""
    return _audit(connection, _row(connection, id))


def open_audit(connection: Connection) -> Audit | None:
    """The audit that is under way."""
    row = connection.execute(select(tables.audits).where(tables.audits.c.ended.is_(None))).first()
    return None if row is None else _audit(connection, row)


def check(connection: Connection, person: str, audit: Audit, given: Check, settings: ServiceSettings) -> Event:
    """Keep what a reviewer found in a document of an audit; who checked it first may correct that, nobody else.

    Who decided between reviewers who differ on it decides so still.
    """
    before = find(connection, given.id)
    if before is not None:
        if before.person != person or before.body.get("audit") != audit.id:
            raise ConflictError("this id was taken by something else (make ids at random)")
        return before
    if not find_audit(connection, audit.id).is_open:
        raise ConflictError("this audit has ended")
    if given.document not in audit.documents:
        raise NotFoundError(f"document {given.document} is not one of this audit's")
    checked = checks_of(connection, audit).get(given.document)
    if checked is not None and checked.person != person:
        raise ConflictError(f"somebody else has checked document {given.document} (go on with the next)")
    if not settings.reviews.own and annotated(connection, person, [given.document]):
        raise RefusedError(f"you annotated document {given.document} yourself (somebody else checks it)")
    document = document_record(connection, given.document)
    spans = check_spans(given.spans, len(document["text"]), settings.labels)
    words = words_on(connection, given.document)
    others = [word for word in words if word.person != person]
    adjudicates = any(word.adjudicates for word in words if word.person == person)
    proposed = check_spans(_proposed(_row(connection, audit.id).plan)[document["id"]], len(document["text"]))
    if spans != proposed:  # layers of a consensus may cross
        check_overlaps(spans, settings.overlaps, lambda: document["tokens"])
    body = {
        "spans": spans,
        "accepted": spans == proposed,
        "adjudicates": adjudicates,
        "version": audit.version,
        "blind": not audit.proposes,
        "disputed": bool(open_places(document, [*others, Word(person, spans, adjudicates)])),
        "audit": audit.id,
    }
    return record(
        connection,
        Kind.REVIEW_DECIDED,
        person=person,
        document=given.document,
        id=given.id,
        seconds=given.seconds,
        body=body,
    )


def checks_of(connection: Connection, audit: Audit) -> dict[int, Event]:
    """The check of every document that has one, by number."""
    table = tables.events.c
    about = (Kind.REVIEW_DECIDED.value, Kind.REVIEW_WITHDRAWN.value)
    query = (
        select(tables.events)
        .where(table.document.in_(audit.documents), table.kind.in_(about), table.at >= audit.at)
        .order_by(table.seq)
    )
    found: dict[int, Event] = {}
    for row in connection.execute(query):
        event = Event(row.seq, row.id, Kind(row.kind), row.at, row.person, row.document, row.seconds, row.body)
        if event.body.get("audit") == audit.id:
            found[row.document] = event
        elif event.kind is Kind.REVIEW_WITHDRAWN and _is_by(found.get(row.document), event.person):
            del found[row.document]
    return found


def _is_by(event: Event | None, person: str | None) -> bool:
    return event is not None and event.person == person


def next_task(connection: Connection, person: str, audit: Audit, settings: ServiceSettings) -> Task | None:
    """The next document for a reviewer to check; ``None`` when all are, or what is left is what they annotated.

    A sequential plan goes by its order. Otherwise reviewers begin in different places, so that two are seldom at the
    same document.
    """
    done = set(checks_of(connection, audit))
    if not settings.reviews.own:
        done |= annotated(connection, person, audit.documents)
    waiting = [number for number in audit.documents if number not in done]
    if not waiting:
        return None
    number = waiting[0 if audit.sequential else int(person[-4:], 16) % len(waiting)]
    document = document_record(connection, number)
    proposed = _proposed(_row(connection, audit.id).plan)[document["id"]] if audit.proposes else []
    spans = check_spans(proposed, len(document["text"]))
    return Task(number, document["id"], document["text"], document["tokens"], spans)


def outcome(connection: Connection, id: str) -> tuple[int, dict[str, Any] | None]:
    """How many documents of an audit are checked, and what follows: nothing before its interval holds.

    That is when all are checked or, of a sequential plan, the first of them that make one. A plan that an earlier
    version drew otherwise gives no result: it can only be given up.
    """
    row = _row(connection, id)
    own = _audit(connection, row)
    checks = checks_of(connection, own)
    needed = own.documents[: min(LEAST, len(own.documents))] if own.sequential else own.documents
    if not all(number in checks for number in needed):
        return len(checks), None
    try:
        drawn = _plan(row.claims, row.plan)
    except OtherConsensusError:
        return len(checks), None
    spans = dict(zip(_ids(row.plan), (checks.get(number) for number in own.documents), strict=True))
    with tempfile.TemporaryDirectory(prefix="quorate-audit-") as folder:
        path = Path(folder, "checked.jsonl")
        write_lines(
            (
                line if (found := spans[line["id"]]) is None else line | {"gold": found.body["spans"], "checked": True}
                for line in map(msgspec.json.decode, row.plan.split("\n")[:-1])
            ),
            path,
        )
        result = audits.result(drawn.claims, path, plan=drawn, confidence=_CONFIDENCE)
    return len(checks), _told(result)


def keep_outcome(connection: Connection, id: str, checked: int, result: Mapping[str, Any] | None) -> None:
    """Keep what :func:`outcome` found; an audit of which all is checked has ended.

    Of two who work it out at once, the slower may have seen less: what stands is not replaced by less.
    """
    own, table = find_audit(connection, id), tables.audits
    if checked < own.checked or (not own.is_open and own.result is not None):
        return
    values: dict[str, Any] = {"checked": checked, "result": result}
    if own.is_open and checked == len(own.documents) and result is not None:
        values["ended"] = time.time()
    connection.execute(update(table).where(table.c.id == id).values(**values))


def _told(found: audits.Audit) -> dict[str, Any]:
    """What an audit found, as it is kept and shown."""

    def scores(one: audits.Scores) -> dict[str, Any]:
        values = {name: getattr(one, name) for name in ("precision", "recall", "f1")}
        return {name: None if math.isnan(value[0]) else list(value) for name, value in values.items()}

    enough = enough_seen(found)
    return {
        "documents": len(found.plan.claims),
        "n": found.n,
        "confidence": found.confidence,
        **scores(found.scores),
        "by_type": {kind: scores(one) for kind, one in enough.items()},
        "few": sorted(found.by_type.keys() - enough.keys()),
        "new_types": found.new_types,
        "nothing_corrected": found.nothing_corrected,
        "more_to_halve": found.more_to_halve,
    }


def _row(connection: Connection, id: str) -> Any:
    row = connection.execute(select(tables.audits).where(tables.audits.c.id == id)).first()
    if row is None:
        raise NotFoundError(f"no audit {id}")
    return row


def _audit(connection: Connection, row: Any) -> Audit:
    ids = _ids(row.plan)
    table = tables.documents.c
    numbers = {
        one.id: one.number for one in connection.execute(select(table.id, table.number).where(table.id.in_(ids)))
    }
    documents = tuple(numbers[id] for id in ids)
    kept = (row.sequential, row.proposes, row.ended, row.checked, row.result)
    return Audit(row.id, row.at, row.version, documents, *kept)


def _lines(drawn: audits.Plan) -> str:
    return b"".join(msgspec.json.encode(line) + b"\n" for line in drawn.lines()).decode()


def _ids(plan: str) -> list[str]:
    return [line["id"] for line in map(msgspec.json.decode, plan.split("\n")[:-1])]


def _proposed(plan: str) -> dict[str, list[SpanRecord]]:
    return {line["id"]: line["gold"] for line in map(msgspec.json.decode, plan.split("\n")[:-1])}


@lru_cache(maxsize=2)
def _plan(claims: str, plan: str) -> audits.Plan:
    """A plan read back from what is kept of it; refused unless it was drawn from this very consensus."""
    with tempfile.TemporaryDirectory(prefix="quorate-audit-") as folder:
        consensus, lines = Path(folder, "consensus.jsonl"), Path(folder, "plan.jsonl")
        consensus.write_text(claims, encoding="utf-8")
        lines.write_text(plan, encoding="utf-8")
        return read_plan([lines], Claims.of(consensus))
