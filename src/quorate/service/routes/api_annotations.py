"""What people say of documents, through the API."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from quorate.service import annotating
from quorate.service.routes.common import ServiceOf, WhoAsks

router = APIRouter(prefix="/api/v1", tags=["annotations"])


class SpanIn(BaseModel):
    """A span: code points of the text, end excluded."""

    model_config = ConfigDict(extra="forbid", strict=True)
    start: int
    end: int
    label: str


class Save(BaseModel):
    """What somebody says of a document; ``id`` is made by the client and is the same when the save is tried again."""

    model_config = ConfigDict(extra="forbid")
    id: Annotated[str, Field(min_length=8, max_length=64)]
    document: int
    spans: Annotated[list[SpanIn], Field(max_length=20_000)]
    seconds: Annotated[float | None, Field(ge=0, le=86_400)] = None
    client: Annotated[str | None, Field(max_length=64)] = None


class Acknowledged(BaseModel):
    """It is on the disk: the number of the event, and which revision of this document by this person it is."""

    event: int
    document: int
    revision: int


@router.post("/annotations")
async def save_annotation(given: Save, service: ServiceOf, who: WhoAsks) -> Acknowledged:
    """Save what you say of a document, in place of what you said before; the same save twice is one."""
    spans = [span.model_dump() for span in given.spans]
    save = annotating.Given(given.id, given.document, spans, given.seconds, given.client)
    labels = service.settings.labels
    saved = await service.changed(lambda connection: annotating.save(connection, who.person, save, labels))
    return Acknowledged(**saved._asdict())
