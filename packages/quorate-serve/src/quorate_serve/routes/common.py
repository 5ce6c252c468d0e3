"""What routes share: who asks, and how things are read, written and shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Generic, TypeVar, cast

from fastapi import Depends, Query, Request
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, Table, func, select

from quorate_serve.database import tables
from quorate_serve.database.engine import Database
from quorate_serve.labels_used import LabelsUsed
from quorate_serve.passwords import SlowWork
from quorate_serve.routes.moments import minute_of
from quorate_serve.sessions import Who
from quorate_serve.settings import ServiceSettings

T = TypeVar("T")
After = Annotated[int, Query(ge=0, description="The `next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=1_000, description="How many at most.")]

_A_PAGE = 50  # rows of a page that lists what somebody did
_BEGINNING = 80  # characters of a text

ClientId = Annotated[str, Field(min_length=8, max_length=64, description="Made by the client, at random.")]


class SpanIn(BaseModel):
    """A span: code points of the text, end excluded."""

    model_config = ConfigDict(extra="forbid", strict=True)
    start: int
    end: int
    label: str


class Change(BaseModel):
    """Something that is done once, however often it is asked for with the same ``id``."""

    model_config = ConfigDict(extra="forbid")
    id: ClientId


class Page(BaseModel, Generic[T]):
    """Some of many things; ``next`` asks for those after them, and is null at the end."""

    items: list[T]
    next: int | None


def page_of(found: Sequence[T], limit: int, place: Callable[[T], int]) -> Page[T]:
    """A page of at most ``limit`` things, given one more if there are more."""
    items = list(found[:limit])
    return Page(items=items, next=place(items[-1]) if len(found) > limit else None)


class Service:
    """The service that a request came to."""

    def __init__(self, request: Request) -> None:
        self.database = cast(Database, request.app.state.database)
        self.settings = cast(ServiceSettings, request.state.settings)  # as they are now
        self.secret = cast(bytes, request.app.state.secret)
        self.slow = cast(SlowWork, request.app.state.slow)
        self._labels_used = cast(LabelsUsed, request.app.state.labels_used)

    @property
    def labels(self) -> tuple[str, ...]:
        """What people choose from: the labels that were given, otherwise those that have been used so far."""
        return self.settings.labels or self.labels_used

    @property
    def labels_used(self) -> tuple[str, ...]:
        """The labels that have been used so far, but for the last seconds."""
        return self.read(self._labels_used.look)

    @property
    def marking(self) -> dict[str, Any]:
        """What a page needs on which people mark spans: the labels, and which spans may overlap."""
        keys, colours = self.settings.keys, self.settings.colours
        labels = [{"name": name, "key": keys.get(name), "colour": colours.get(name)} for name in self.labels]
        return {"labels": labels, "overlaps": self.settings.overlaps.allowed.value}

    def read(self, work: Callable[[Connection], T]) -> T:
        """Look something up."""
        with self.database.read() as connection:
            return work(connection)

    def change(self, work: Callable[[Connection], T]) -> T:
        """Write something, and wait until it is committed."""
        return self.database.change(work)

    async def changed(self, work: Callable[[Connection], T]) -> T:
        """Write something; other requests are answered while it waits to be committed."""
        return await asyncio.wrap_future(self.database.write(work))


# What routes depend on is there at once; were these not async, each would be sent to a thread and waited for.


async def _service(request: Request) -> Service:
    return Service(request)


async def _who(request: Request) -> Who:
    who = request.state.who
    assert isinstance(who, Who)  # the table of permissions let nobody else through
    return who


ServiceOf = Annotated[Service, Depends(_service)]
WhoAsks = Annotated[Who, Depends(_who)]


def last_first(
    connection: Connection, table: Table, person: str, before: int | None
) -> tuple[list[dict[str, Any]], int | None]:
    """What stands of somebody in a table, for a page that lists it: some rows, and before which event others are."""
    documents, kept = tables.documents.c, table.c
    query = (
        select(table, documents.id, func.substr(documents.text, 1, _BEGINNING).label("text"))
        .join(tables.documents, documents.number == kept.document)
        .where(kept.person == person)
        .order_by(kept.event.desc())
        .limit(_A_PAGE + 1)
    )
    if before is not None:
        query = query.where(kept.event < before)
    rows = connection.execute(query).all()
    shown = [{**row._asdict(), "spans": len(row.spans), "at": minute_of(row.at)} for row in rows[:_A_PAGE]]
    return shown, rows[_A_PAGE - 1].event if len(rows) > _A_PAGE else None


def show(request: Request, page: str, content: Mapping[str, Any], status: int = 200) -> HTMLResponse:
    """A page; every page knows who looks at it."""
    templates = cast(Jinja2Templates, request.app.state.templates)
    who = getattr(request.state, "who", None)
    return cast(HTMLResponse, templates.TemplateResponse(request, page, {"who": who, **content}, status))
