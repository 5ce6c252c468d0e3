"""Projects of Label Studio that are kept in step with the service, in both directions.

From there come the tasks, as documents whose ids are the tasks' numbers, and what its annotators say of them: changed
and deleted annotations are followed, skipped ones and ground truth are left out. A task whose text was changed after it
came stays as it was here.

To there goes the consensus, as predictions; and what people labelled here, as annotations. Label Studio wants an
account for everybody who annotates, and people here have none: their annotations are of the account whose key it is,
and every region says in its ``meta`` whose it is, by the id that stands for a person here and says nothing. By both
they are also known again, so that they are changed and deleted as they are here, and never come back as somebody
else's. Where somebody marked nothing there is no region to say so, and no annotation there.

What has been pulled is in the events (their ``client`` is the project); what has been pushed is on the server. Nothing
else is kept, so that both may be killed at any moment, and nothing is pulled or pushed twice.
"""

from __future__ import annotations

import hashlib
import logging
import os
import signal
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, func, select

from quorate import formats
from quorate.corpus.overlaps import OverlapRule, Overlaps
from quorate.corpus.records import Document, Tag, hard_tags
from quorate.corpus.spans import Span
from quorate.corpus.tokens import Places
from quorate.errors import InputError, QuorateError, ServerError
from quorate.formats.exports import ExportAnnotation, ExportDocument
from quorate.formats.label_studio import OWN_PREFIX, Controls, prediction_of, regions_of
from quorate.formats.layers import Layers
from quorate.label_studio.client import Client, FaultError, client_of
from quorate.label_studio.sync import LEAST_CHANGE, apply_predictions, controls_of, pull, same_regions, show_version
from quorate.project.settings_file import LabelStudioProject
from quorate_serve.annotating import import_annotation, withdraw
from quorate_serve.campaign import LiveSettings
from quorate_serve.consensus_file import consensus_version
from quorate_serve.database import tables
from quorate_serve.database.engine import Database
from quorate_serve.documents import SpanRecord, add_document, document_record, overlap_in, spans_of_layers
from quorate_serve.events import Kind, append, last_event
from quorate_serve.people import named
from quorate_serve.problems import BusyError, InvalidError
from quorate_serve.settings import ServiceSettings

_VERSION = f"{OWN_PREFIX} service"
_MARK = f"{OWN_PREFIX} "  # of a region that was labelled here; then comes who it was
_TOGETHER = 200  # documents in one transaction: nobody who saves meanwhile waits for long
_ATTEMPTS = 2

_log = logging.getLogger("quorate_serve.label_studio")

StoredSpans = dict[tuple[int, str], list[SpanRecord]]
"""Spans by document and person."""
Task = dict[str, Any]


class Moved(NamedTuple):
    """What went from one to the other: documents and labels that came, labels that went; predictions, annotations."""

    documents: int = 0
    labels: int = 0
    withdrawn: int = 0
    predictions: int = 0
    annotations: int = 0
    notes: tuple[str, ...] = ()


class _Pulled(NamedTuple):
    """A project as it is on the server: without the annotations that went there from here, which are in ``own``."""

    tasks: list[Task]
    own: dict[tuple[str, str], list[Task]]
    fingerprint: str


def stay_in_step(settings: ServiceSettings) -> None:
    """The process itself, until it is told to stop (SIGTERM)."""
    stopping = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of the terminal: one of them decides
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    database = Database.open(settings.database)
    given, least = settings.label_studio, settings.queue.per_document_min

    def pause(seconds: float) -> None:
        stopping.wait(seconds)

    links = [
        InStep(
            client_of(each.url, attempts=_ATTEMPTS, pause=pause),
            each,
            database,
            settings.secret(),
            given.least_change,
            least=least,
            limit=settings.overlaps.limit,
        )
        for each in given.projects
    ]
    live = LiveSettings()
    while not stopping.is_set():
        with suppress(BusyError), database.read() as connection:
            least = live.look(connection, settings).queue.per_document_min
        for each in links:
            each.least = least
            each.turn()
        stopping.wait(given.seconds)
    os._exit(0)  # a request that is under way is not waited for


class InStep:
    """A project of Label Studio, and the service that it is kept in step with."""

    def __init__(
        self,
        client: Client,
        project: LabelStudioProject,
        database: Database,
        secret: bytes,
        least_change: float = LEAST_CHANGE,
        tell: Callable[[str], None] = _log.warning,
        least: int | None = None,
        limit: int = OverlapRule().limit,
    ) -> None:
        self._client, self._number, self._database, self._secret = client, project.number, database, secret
        self._least_change, self._tell, self.least = least_change, tell, least
        self._most = OverlapRule(Overlaps.ANY, limit)
        self._name = f"Label Studio {project.url} (project {project.number})"
        place = f"{project.url.rstrip('/')} {project.number}"
        self._source = f"label-studio-{hashlib.blake2b(place.encode(), digest_size=8).hexdigest()}"
        self._seen: tuple[str, int, int] | None = None
        self._account: Task | None = None
        self._trouble = ""
        self._warned: set[str] = set()

    def turn(self) -> None:
        """A step; what goes wrong is said once, until it goes well again."""
        try:
            moved = self.step()
        except (QuorateError, FaultError) as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                self._tell(f"{self._name} is not in step, and is tried again: {error}")
            return
        if self._trouble:
            self._trouble = ""
            self._tell(f"{self._name} is in step again")
        for note in moved.notes if moved is not None else ():
            if note not in self._warned:
                self._warned.add(note)
                self._tell(f"{self._name}: {note}")

    def step(self) -> Moved | None:
        """Take in what is new there, and bring there what is new here; ``None`` if nothing has happened on either side.

        On :class:`FaultError`, or another error, whoever calls again finds out anew what is left to do.
        """
        about = self._client.get(f"/api/projects/{self._number}/")
        controls = controls_of(about)
        pulled = self._pull()
        if (pulled.fingerprint, *self._database_stands()) == self._seen:
            return None
        came, numbers = self._take_in(pulled) if pulled.tasks else (Moved(), {})
        stands = self._database_stands()
        notes = [*came.notes]
        documents = self._documents(numbers, controls)
        predictions = 0
        if stands[0]:  # there is a consensus
            wanted = self._predictions(documents, notes)
            done = apply_predictions(self._client, self._number, wanted, self._least_change)
            predictions = done.created + done.changed + done.deleted
            notes += show_version(self._client, self._number, about, _VERSION)
        annotations = self._bring(documents, pulled.own, notes)
        self._seen = (pulled.fingerprint, *stands)
        return came._replace(predictions=predictions, annotations=annotations, notes=tuple(dict.fromkeys(notes)))

    def _database_stands(self) -> tuple[int, int]:
        with self._database.read() as connection:
            return consensus_version(connection), last_event(connection)

    # from there

    def _pull(self) -> _Pulled:
        with tempfile.TemporaryFile() as file:
            pull(self._client, self._number, file)
            file.seek(0)
            raw = file.read()
        try:
            tasks = msgspec.json.decode(raw, type=list[Task])
        except msgspec.MsgspecError:
            raise ServerError(f"{self._client.url}: an export that is no list of tasks (is it Label Studio?)") from None
        content = [[task.get("id"), task.get("data"), task.get("annotations")] for task in tasks]
        account, own = self._whose_key(), dict[tuple[str, str], list[Task]]()
        for task in tasks:
            others = []
            for annotation in task.get("annotations") or ():
                person = _made_here_by(annotation) if _is_of(annotation, account) else None
                if person is None:
                    others.append(annotation)
                else:
                    own.setdefault((str(task.get("id")), person), []).append(annotation)
            task["annotations"] = others
            task.pop("predictions", None)
        return _Pulled(tasks, own, hashlib.sha256(msgspec.json.encode(content)).hexdigest())

    def _whose_key(self) -> Task:
        """The account that the key is of."""
        if self._account is None:
            found = self._client.get("/api/current-user/whoami")
            if not isinstance(found, dict) or not isinstance(found.get("id"), int):
                raise ServerError(f"{self._client.url}: it does not say whose key this is (is it Label Studio?)")
            self._account = found
        return self._account

    def _read(self, tasks: Sequence[Task]) -> Layers:
        """The tasks as they are read from any export, in layers, so that spans that overlap are all there."""
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            file.write(msgspec.json.encode(tasks))
            file.flush()
            try:
                return formats.read_layers(file.name, format="label-studio")
            except InputError as error:
                message = str(error).replace(file.name, f"project {self._number}")
                raise InputError(self._client.masked(message)) from None

    def _take_in(self, pulled: _Pulled) -> tuple[Moved, dict[str, tuple[int, Document]]]:
        """Put there what is new, and withdraw what is gone; and the documents, with their numbers, by task."""
        layers = self._read(pulled.tasks)
        documents = list(layers.corpus)
        names = sorted({name for corpus in layers.values() for name in corpus.annotators})
        people = self._database.change(lambda connection: named(connection, self._secret, names))
        with self._database.read() as connection:
            before = self._stored_spans(connection)
        now = _tags_by_annotator(layers)
        numbers: dict[str, tuple[int, Document]] = {}
        new, labels, notes, there = 0, 0, list(layers.corpus.notes), set[tuple[int, str]]()

        how: dict[str, Any] = {"client": self._source, "least": self.least}

        def put(connection: Connection, some: Sequence[Document]) -> tuple[int, int]:
            added = changed = 0
            for document in some:
                try:
                    number, is_new = add_document(connection, document)
                except InvalidError:
                    notes.append(
                        f"task {document.id} has another text than document {document.id} here: it is left out"
                    )
                    continue
                added += is_new
                numbers[document.id] = number, document
                offsets = document_record(connection, number)["tokens"] if document.id in now else ()
                for name, tags in now.get(document.id, {}).items():
                    key = (number, people[name])
                    there.add(key)
                    spans = spans_of_layers(tags, offsets)
                    if overlap_in(spans, self._most, lambda offsets=offsets: offsets) is not None:  # type: ignore[misc]
                        notes.append(
                            f"task {document.id}: more spans of one annotator share a word than may here "
                            f"({self._most.limit}): they are left out (option overlap-limit)"
                        )
                        continue
                    if before.get(key) != spans:
                        changed += import_annotation(connection, key[1], number, spans, None, **how)
            return added, changed

        for first in range(0, len(documents), _TOGETHER):
            some = documents[first : first + _TOGETHER]
            found = self._database.change(partial(put, some=some))
            new, labels = new + found[0], labels + found[1]
        gone = [key for key in before if key not in there]
        withdrawn = self._database.change(lambda connection: self._withdraw(connection, gone)) if gone else 0
        if new or labels or withdrawn:
            body = {"source": self._name, "documents": new, "labels": labels, "withdrawn": withdrawn}
            self._database.change(lambda connection: append(connection, Kind.IMPORTED, person=None, body=body))
        return Moved(new, labels, withdrawn, notes=tuple(notes)), numbers

    def _stored_spans(self, connection: Connection) -> StoredSpans:
        """What annotators there said when it was last pulled."""
        events = tables.events.c
        last = (
            select(func.max(events.seq))
            .where(events.client == self._source, events.document.is_not(None))
            .group_by(events.document, events.person)
        )
        query = select(events.document, events.person, events.body).where(events.seq.in_(last))
        return {
            (row.document, row.person): row.body["spans"] for row in connection.execute(query) if "spans" in row.body
        }

    def _withdraw(self, connection: Connection, gone: Iterable[tuple[int, str]]) -> int:
        """Withdraw what is gone there, unless its person said something else here since."""
        held, events = tables.current_annotations.c, tables.events.c
        query = select(held.document, held.person).join(tables.events, events.seq == held.event)
        theirs = {(row.document, row.person) for row in connection.execute(query.where(events.client == self._source))}
        stale = [key for key in gone if key in theirs]
        for document, person in stale:
            withdraw(connection, person, document, uuid.uuid4().hex, client=self._source)
        return len(stale)

    # to there

    def _documents(self, numbers: Mapping[str, tuple[int, Document]], controls: Controls) -> dict[int, Document]:
        """The documents that are tasks there, by number, with the controls that make their labels."""
        return {
            number: replace(document, origin={**(document.origin or {}), "controls": controls})
            for number, document in numbers.values()
        }

    def _predictions(self, documents: Mapping[int, Document], notes: list[str]) -> dict[int, dict[str, Any]]:
        with self._database.read() as connection:
            rows = connection.execute(select(tables.consensus)).mappings().all()
        found = {}
        for row in rows:
            document = documents.get(row["document"])
            if document is not None:
                exported, reading = _exported(document, _known(row["spans"], document, notes))
                found[int(document.id)] = prediction_of(
                    exported, reading._replace(confidence=row["confidence"]), _VERSION
                )
        return found

    def _bring(
        self, documents: Mapping[int, Document], own: Mapping[tuple[str, str], Sequence[Task]], notes: list[str]
    ) -> int:
        """Make the annotations of people here those that they made here: how many were made, changed or deleted."""
        changes = 0
        left = {key: list(there) for key, there in own.items()}
        for document, person, spans, seconds in self._made_here():
            task = documents.get(document)
            result = [] if task is None else _result(task, person, _known(spans, task, notes))
            if task is None or not result:
                continue
            there = left.pop((task.id, person), [])
            kept = next((each for each in there if same_regions(each, {"result": result})), None)
            if kept is None and there:
                kept = there[0]
                self._client.change(f"/api/annotations/{kept['id']}/", {"result": result})
                changes += 1
            elif kept is None:
                self._client.create(f"/api/tasks/{task.id}/annotations/", {"result": result, "lead_time": seconds})
                changes += 1
            left[task.id, person] = [each for each in there if each is not kept]
        for annotation in (each for there in left.values() for each in there):
            self._client.delete(f"/api/annotations/{annotation['id']}/")
            changes += 1
        return changes

    def _made_here(self) -> list[tuple[int, str, list[SpanRecord], float | None]]:
        """What people said of documents that the queue gave them."""
        held, given = tables.current_annotations.c, tables.assignments.c
        query = (
            select(held.document, held.person, held.spans, held.seconds)
            .join(tables.assignments, (given.document == held.document) & (given.person == held.person))
            .order_by(held.document, held.person)
        )
        with self._database.read() as connection:
            return [(row.document, row.person, row.spans, row.seconds) for row in connection.execute(query)]


def _is_of(annotation: Any, account: Task) -> bool:
    """Whether an annotation is of an account: whoever duplicates what went there from here makes it their own."""
    who = annotation.get("completed_by") if isinstance(annotation, dict) else None
    if isinstance(who, dict):
        who = who.get("id", who.get("email"))
    return who is not None and who in (account["id"], account.get("email"))


def _made_here_by(annotation: Any) -> str | None:
    """Who made an annotation that came from here; ``None`` of any other."""
    for region in (annotation.get("result") or ()) if isinstance(annotation, dict) else ():
        meta = region.get("meta") if isinstance(region, dict) else None
        notes = meta.get("text") if isinstance(meta, dict) else None
        for text in notes if isinstance(notes, list) else [notes]:
            if isinstance(text, str) and text.startswith(f"{_MARK}p_"):
                return text.removeprefix(_MARK)
    return None


def _tags_by_annotator(layers: Layers) -> dict[str, dict[str, list[Sequence[Tag]]]]:
    """By document and annotator, their tags in each layer."""
    found: dict[str, dict[str, list[Sequence[Tag]]]] = {}
    for corpus in layers.values():
        for document in corpus:
            for name, tags in document.annotations.items():
                found.setdefault(document.id, {}).setdefault(name, []).append(hard_tags(tags))
    return found


def _known(spans: Sequence[SpanRecord], document: Document, notes: list[str]) -> list[SpanRecord]:
    """The spans whose labels the project has."""
    controls = (document.origin or {})["controls"]
    strange = sorted({span["label"] for span in spans} - set(controls))
    notes += [f"the project has no label {label!r}: its spans are left out there (add it there)" for label in strange]
    return [span for span in spans if span["label"] in controls]


def _exported(document: Document, spans: Sequence[SpanRecord]) -> tuple[ExportDocument, ExportAnnotation]:
    """Spans of a text as writers take them: cut where a span begins or ends, as spans need not follow the tokens."""
    text = document.text or ""
    cuts = sorted({0, len(text), *(span[end] for span in spans for end in ("start", "end"))})
    place = {cut: number for number, cut in enumerate(cuts)}
    pieces = Places(pairwise(cuts))
    cut_up = replace(
        document, tokens=tuple(text[start:end] for start, end in pieces), offsets=pieces, annotations={}, gold=None
    )
    marked = [
        Span(place[span["start"]], place[span["end"]], span["label"], confidence=span.get("confidence"))
        for span in spans
    ]
    return ExportDocument(cut_up), ExportAnnotation("", marked, None)


def _result(document: Document, person: str, spans: Sequence[SpanRecord]) -> list[dict[str, Any]]:
    """What somebody marked, as regions that say who it was."""
    regions = regions_of(*_exported(document, spans))
    return [{**region, "meta": {"text": [f"{_MARK}{person}"]}} for region in regions]
