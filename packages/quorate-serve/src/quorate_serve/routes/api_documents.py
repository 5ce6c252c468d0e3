"""Documents, and files into and out of the service, through the API."""

from __future__ import annotations

import re
import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, File, Form, Query, UploadFile
from fastapi.responses import FileResponse
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, func, select
from starlette.background import BackgroundTask

from quorate import formats
from quorate.corpus.records import Corpus
from quorate.errors import InputError
from quorate.formats.exports import Export
from quorate.formats.layers import Layers
from quorate_serve.answers import Document, DocumentSummary, HistoryEntry, Imported
from quorate_serve.authorising import UploadRoute
from quorate_serve.consensus_file import consensus_of
from quorate_serve.database import tables
from quorate_serve.documents import add_text, content_of, document_record
from quorate_serve.events import Kind, append
from quorate_serve.exporting import annotations_of, written
from quorate_serve.history import history_of
from quorate_serve.importing import import_corpus
from quorate_serve.problems import InvalidError
from quorate_serve.routes.common import After, Limit, Page, ServiceOf, WhoAsks, page_of

router = APIRouter(prefix="/api/v1", tags=["documents"], route_class=UploadRoute)
_CHUNK = 1 << 20
_BYTES = "application/octet-stream"


class NewText(BaseModel):
    """A text to be annotated."""

    model_config = ConfigDict(extra="forbid")
    id: Annotated[str, Field(min_length=1, max_length=512)]
    text: Annotated[str, Field(min_length=1, max_length=5_000_000)]
    purpose: Literal["work"] = "work"


@router.get("/documents")
def list_documents(service: ServiceOf, after: After = 0, limit: Limit = 100) -> Page[DocumentSummary]:
    """All documents in the order of their numbers, a page at a time."""
    labels = (
        select(tables.current_annotations.c.document, func.count().label("labels"))
        .group_by(tables.current_annotations.c.document)
        .subquery()
    )
    table = tables.documents.c
    query = (
        select(table.number, table.id, table.purpose, func.coalesce(labels.c.labels, 0).label("labels"))
        .outerjoin(labels, labels.c.document == table.number)
        .where(table.number > after)
        .order_by(table.number)
        .limit(limit + 1)
    )
    rows = service.read(lambda connection: connection.execute(query).all())
    items = msgspec.convert(rows, list[DocumentSummary], from_attributes=True)
    return page_of(items, limit, lambda last: last.number)


@router.get("/documents/{number}")
def get_document(service: ServiceOf, number: int) -> Document:
    """A document with its text."""
    row = service.read(lambda connection: document_record(connection, number))
    return Document(purpose=row["purpose"], **content_of(row))


@router.get("/documents/{number}/history")
def document_history(service: ServiceOf, number: int) -> list[HistoryEntry]:
    """All that happened to a document: who, when, what; names and notes until their person is erased."""
    return service.read(lambda connection: history_of(connection, number))


@router.post("/documents")
def add_documents(
    service: ServiceOf, who: WhoAsks, texts: Annotated[list[NewText], Field(min_length=1, max_length=1_000)]
) -> Imported:
    """Add texts that nobody has labelled; those that are here already stay."""

    def add(connection: Connection) -> int:
        before = connection.execute(select(func.count()).select_from(tables.documents)).scalar_one()
        for one in texts:
            add_text(connection, one.id, one.text, purpose=one.purpose)
        after = connection.execute(select(func.count()).select_from(tables.documents)).scalar_one()
        append(connection, Kind.IMPORTED, person=who.person, body={"source": "API", "documents": after - before})
        return int(after - before)

    return Imported(documents=service.change(add), labels=0, annotators=0)


@router.post("/import")
def import_file(
    service: ServiceOf,
    who: WhoAsks,
    file: Annotated[UploadFile, File()],
    format: Annotated[str | None, Form()] = None,
    purpose: Annotated[Literal["work", "check", "training"], Form()] = "work",
) -> Imported:
    """Take in a file of annotations, in any format that is read; its format is found out unless given.

    Of documents for checks and training, the file has the right answer as gold.
    """
    name = PurePosixPath((file.filename or "upload").replace("\\", "/")).name or "upload"
    with tempfile.TemporaryDirectory(prefix="quorate-import-") as folder:
        path = Path(folder, re.sub(r"[^\w. -]", "_", name)[-100:].lstrip(".") or "upload")  # it may name the annotator
        with open(path, "wb") as stream:
            shutil.copyfileobj(file.file, stream, _CHUNK)
        try:
            layers = formats.read_layers(path, format=format, max_size=service.settings.upload_limit)
        except InputError as error:  # which names the file as it lay here
            raise InvalidError(str(error).replace(str(path), name)) from None
    found = import_corpus(
        service.database,
        service.secret,
        layers,
        by=who.person,
        purpose=purpose,
        source=name,
        rule=service.settings.overlaps,
        least=service.settings.queue.per_document_min,
    )
    return replace(found, notes=[*layers.corpus.notes, *found.notes])


@router.get("/export")
def export_annotations(
    service: ServiceOf,
    who: WhoAsks,
    what: Literal["annotations", "consensus"] = "annotations",
    format: Annotated[str, Query(max_length=32)] = "jsonl",
    names: bool = True,
) -> FileResponse:
    """Everybody's annotations as they stand, or the consensus, as a file in any format that is written."""
    formats.registry.named(format, to_write=True)
    content: Export | Corpus | Layers
    if what == "consensus":
        content = service.read(consensus_of)
    else:
        content = service.read(lambda connection: annotations_of(connection, names=names))
    note = {"what": what, "format": format, "names": names}
    service.change(lambda connection: append(connection, Kind.EXPORTED, person=who.person, body=note))
    with ExitStack() as holds:
        # now, so that whatever it cannot hold is said in an error
        path = holds.enter_context(written(content, format, service.settings.folder))
        sent = BackgroundTask(holds.pop_all().close)
        return FileResponse(path, filename=f"{what}{path.suffix}", media_type=_BYTES, background=sent)
