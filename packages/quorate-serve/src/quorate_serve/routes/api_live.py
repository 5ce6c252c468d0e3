"""News as they happen: a stream of server-sent events."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated, Any, cast

from fastapi import APIRouter, Header, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from quorate_serve.live.ticks import Tick, Ticks
from quorate_serve.people import Role
from quorate_serve.problems import TooManyError
from quorate_serve.routes.common import ServiceOf, WhoAsks
from quorate_serve.sessions import who_asks

router = APIRouter(prefix="/api/v1", tags=["consensus"])

MOST_STREAMS = 10
"""Of one person at once: a browser has one for each page that is looked at, a program one."""
_HEARTBEAT = 15.0  # seconds
_AGAIN = 2_000  # milliseconds until a browser that lost the stream asks again


class Stream(StreamingResponse):
    """A stream that counts among those of a person for as long as it is open."""

    def __init__(self, open_streams: Counter[str], person: str, content: AsyncIterator[str]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(content, media_type="text/event-stream", headers=headers)
        self._open, self._person = open_streams, person

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; :class:`TooManyError` if the person has as many as may be."""
        if self._open[self._person] >= MOST_STREAMS:
            raise TooManyError(f"you have {MOST_STREAMS} streams open (close one)", _HEARTBEAT)
        self._open[self._person] += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._open[self._person] -= 1
            self._open += Counter()  # forget those at 0


@router.get("/live", response_class=StreamingResponse)
async def live(
    request: Request,
    service: ServiceOf,
    who: WhoAsks,
    last_event_id: Annotated[int | None, Header(ge=0, description="The `id` of the last event that was seen.")] = None,
) -> StreamingResponse:
    """What happens from now on, as server-sent events; those after `Last-Event-ID` first, if that is given.

    `queue`: what you should label next has changed. For reviewers, also `consensus`: a version was given out, with the
    numbers of the documents that `changed` in it (null: any may have); and `progress`: the model was fitted again.
    """
    ticks = cast(Ticks, request.app.state.ticks)
    is_reviewer = who.role.may(Role.REVIEWER)
    authorization, cookie = (
        request.headers.get("authorization", ""),
        request.cookies.get(service.settings.session_cookie),
    )

    def still() -> bool:
        return service.read(lambda connection: who_asks(connection, authorization, cookie)) == who

    async def stream() -> AsyncIterator[str]:
        yield f"retry: {_AGAIN}\n\n"
        async for tick in ticks.listen(last_event_id if is_reviewer else None, _HEARTBEAT):
            if tick is not None:
                for event in events_of(tick, is_reviewer=is_reviewer):
                    yield event
            elif not await run_in_threadpool(still):
                return
            else:
                yield ": still here\n\n"

    return Stream(request.app.state.streams, who.person, stream())


def events_of(tick: Tick, *, is_reviewer: bool) -> list[str]:
    """What somebody is told of a tick. Annotators are told nothing of the consensus, not even that it changed.

    >>> events_of(Tick(7, "update", [3]), is_reviewer=False)
    []
    """
    if not is_reviewer:
        return [_event("queue", {}, None)] if tick.kind == "queues" else []
    found = []
    if tick.kind not in ("queues", "outlook", "failed") or tick.changed:
        found.append(("consensus", {"version": tick.version, "kind": tick.kind, "changed": tick.changed}))
    if tick.kind == "queues":
        found.append(("queue", {}))
    if tick.kind in ("refit", "outlook", "failed"):
        found.append(("progress", {"version": tick.version}))
    return [_event(kind, data, tick.version) for kind, data in found]


def _event(kind: str, data: dict[str, Any], id: int | None) -> str:
    return f"event: {kind}\n{'' if id is None else f'id: {id}' + chr(10)}data: {json.dumps(data)}\n\n"
