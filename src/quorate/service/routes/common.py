"""What routes share: who asks, and how things are read, written and shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar, cast

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates
from sqlalchemy import Connection

from quorate.service.database.engine import Database
from quorate.service.sessions import Who
from quorate.service.settings import ServiceSettings

__all__ = ["Service", "ServiceOf", "WhoAsks", "show"]

T = TypeVar("T")


class Service:
    """The service that a request came to."""

    def __init__(self, request: Request) -> None:
        self.database = cast(Database, request.app.state.database)
        self.settings = cast(ServiceSettings, request.app.state.settings)
        self.secret = cast(bytes, request.app.state.secret)

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


def _who(request: Request) -> Who:
    who = request.state.who
    assert isinstance(who, Who)  # the table of permissions let nobody else through
    return who


ServiceOf = Annotated[Service, Depends(Service)]
WhoAsks = Annotated[Who, Depends(_who)]


def show(request: Request, page: str, content: Mapping[str, Any], status: int = 200) -> HTMLResponse:
    """A page; every page knows who looks at it."""
    templates = cast(Jinja2Templates, request.app.state.templates)
    who = getattr(request.state, "who", None)
    return cast(HTMLResponse, templates.TemplateResponse(request, page, {"who": who, **content}, status))
