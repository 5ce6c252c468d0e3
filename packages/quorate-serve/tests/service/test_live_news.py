"""News as they happen, and the consensus by the API: for reviewers; annotators hear of their queue alone."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import pytest
import uvicorn

from quorate_serve.documents import add_text
from quorate_serve.live.fitting import Row
from quorate_serve.live.publish import Publisher
from quorate_serve.people import Role
from quorate_serve.routes import api_live
from quorate_serve.sessions import remove_token
from serving import Team, free_port

SPAN = {"start": 0, "end": 3, "label": "PER", "confidence": 0.8}


def row(confidence: float, *, labels: int = 2, known: bool = False) -> Row:
    return Row([SPAN], confidence, labels, known)


@pytest.fixture
def publisher(team: Team) -> Publisher:
    """Of a service with four documents, the first three of which have a consensus."""
    team.database.change(lambda connection: [add_text(connection, f"d{n}", f"Ada sang {n}") for n in range(4)])
    made = Publisher(team.database)
    counts = {"documents": 3, "labels": 6, "spans": 3, "known": 0}
    fit = {"agreement": 0.74, "annotators": []}
    made.tell("refit", 5, {**counts, **fit}, {1: row(0.9), 2: row(0.3), 3: row(0.3)})
    return made


@contextmanager
def served(team: Team) -> Iterator[str]:
    """The application on a port, in a thread."""
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(team.app, port=port, log_level="critical"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        team.app.state.ticks.stop()
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


class Listener:
    """Somebody who listens; ``events`` are kind, id and data."""

    def __init__(self, address: str, headers: dict[str, str]) -> None:
        self.events: list[tuple[str, str | None, Any]] = []
        self.lines: list[str] = []
        self.ready = threading.Event()
        self._thread = threading.Thread(target=self._listen, args=(address, headers), daemon=True)
        self._thread.start()
        assert self.ready.wait(10)

    def _listen(self, address: str, headers: dict[str, str]) -> None:
        with (
            suppress(httpx.ReadError, httpx.RemoteProtocolError),  # it was hung up
            httpx.stream("GET", f"{address}/api/v1/live", headers=headers, timeout=30) as answer,
        ):
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/event-stream")
            now: dict[str, str] = {}
            self._answer = answer
            for line in answer.iter_lines():
                self.lines.append(line)
                self.ready.set()
                name, _, value = line.partition(": ")
                if line:
                    now[name] = value
                elif "event" in now:
                    self.events.append((now["event"], now.get("id"), json.loads(now["data"])))
                    now = {}
                else:
                    now = {}

    def wait_for(self, n: int) -> list[tuple[str, str | None, Any]]:
        until = time.monotonic() + 5
        while len(self.events) < n and time.monotonic() < until:
            time.sleep(0.01)
        return self.events

    def leave(self) -> None:
        """Hang up."""
        stream = self._answer.extensions["network_stream"]
        stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def ends(self) -> bool:
        self._thread.join(10)
        return not self._thread.is_alive()


def test_reviewers_are_told_what_changed_and_annotators_of_their_queue(team: Team, publisher: Publisher) -> None:
    with served(team) as address:
        reviewer = Listener(address, team.token(Role.REVIEWER))
        annotator = Listener(address, team.token(Role.ANNOTATOR))
        time.sleep(0.3)  # so that both listen
        publisher.tell("update", 6, {}, {2: row(0.5)})
        publisher.queues(6, {team.ids[Role.ANNOTATOR]: ([(2, 0.5)], False)}, {})
        assert reviewer.wait_for(2) == [
            ("consensus", "2", {"version": 2, "kind": "update", "changed": [2]}),
            ("queue", "3", {}),
        ]
        assert annotator.wait_for(1) == [("queue", None, {})]
        assert "consensus" not in "".join(annotator.lines)
    assert reviewer.ends()
    assert annotator.ends()


def test_who_was_away_is_told_what_they_missed(
    team: Team, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.tell("update", 6, {}, {2: row(0.5)})
    publisher.tell("refit", 7, {}, {1: row(0.7)})
    with served(team) as address:
        headers = team.token(Role.REVIEWER)
        missed = Listener(address, {**headers, "Last-Event-ID": "1"}).wait_for(3)
        assert [(kind, id) for kind, id, _ in missed] == [("consensus", "2"), ("consensus", "3"), ("progress", "3")]
        monkeypatch.setattr("quorate_serve.live.ticks._MOST", 1)
        much = Listener(address, {**headers, "Last-Event-ID": "1"}).wait_for(2)
        assert much[0] == ("consensus", "3", {"version": 3, "kind": "refit", "changed": None})


def test_the_stream_ends_with_the_token(team: Team, publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    from quorate_serve.sessions import make_token

    monkeypatch.setattr(api_live, "_HEARTBEAT", 0.1)
    person = team.ids[Role.REVIEWER]
    id, token = team.database.change(lambda connection: make_token(connection, person, "test", days=1))
    with served(team) as address:
        listener = Listener(address, {"Authorization": f"Bearer {token}"})
        time.sleep(0.3)
        assert any(line.startswith(":") for line in listener.lines)
        team.database.change(lambda connection: remove_token(connection, person, id))
        assert listener.ends()


def test_the_stream_ends_with_the_token_on_a_busy_service(
    team: Team, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quorate_serve.sessions import make_token

    monkeypatch.setattr(api_live, "_HEARTBEAT", 1.0)  # several looks, each of which finds something
    person, stop = team.ids[Role.ANNOTATOR], threading.Event()
    id, token = team.database.change(lambda connection: make_token(connection, person, "test", days=1))

    def publish() -> None:
        while not stop.wait(0.05):
            publisher.tell("update", 6, {}, {2: row(0.5)})

    busy = threading.Thread(target=publish)
    with served(team) as address:
        listener = Listener(address, {"Authorization": f"Bearer {token}"})
        busy.start()
        try:
            until = time.monotonic() + 10
            while not any(line.startswith(":") for line in listener.lines) and time.monotonic() < until:
                time.sleep(0.01)
            assert ": still here" in listener.lines  # although nothing of what came is for annotators
            team.database.change(lambda connection: remove_token(connection, person, id))
            assert listener.ends()
        finally:
            stop.set()
            busy.join()


def test_the_consensus_is_given_a_page_at_a_time(team: Team, publisher: Publisher) -> None:
    publisher.tell("update", 6, {}, {1: row(0.95, known=True)})
    manager = team.client(Role.MANAGER)

    def pages(**query: Any) -> list[int]:
        found: list[int] = []
        after: dict[str, str] = {}
        for _ in range(10):
            page = manager.get("/api/v1/consensus", params={"limit": 1, **query, **after}).json()
            found += [item["document"] for item in page["items"]]
            if page["next"] is None:
                return found
            after = {"after": page["next"]}
        raise AssertionError("pages without an end")

    assert pages() == [1, 2, 3]
    assert pages(order="least-certain") == [2, 3, 1]
    assert pages(changed_since=1) == [1]
    assert pages(changed_since=2) == []
    one = manager.get("/api/v1/consensus/1").json()
    assert one == {
        "document": 1,
        "id": "d0",
        "version": 2,
        "spans": [SPAN],
        "confidence": 0.95,
        "labels": 2,
        "known": True,
    }
    assert manager.get("/api/v1/consensus/4").status_code == 404
    assert manager.get("/api/v1/consensus", params={"order": "least-certain", "after": "3"}).status_code == 422
    assert manager.get("/api/v1/consensus", params={"after": "x"}).status_code == 422


def test_progress_has_the_last_counts_and_the_last_fit(team: Team, publisher: Publisher) -> None:
    counts = {"documents": 3, "labels": 7, "spans": 3, "known": 1}
    publisher.tell("update", 9, counts, {1: row(0.95, labels=3)})
    publisher.queues(9, {}, {})
    told = team.client(Role.REVIEWER).get("/api/v1/progress").json()
    assert (told["version"], told["event"], told["labels"], told["known"]) == (3, 9, 7, 1)
    assert told["fit"]["agreement"] == 0.74
    assert told["fit"]["version"] == 1


def test_whom_to_trust_is_for_managers(team: Team, publisher: Publisher) -> None:
    told = team.client(Role.REVIEWER).get("/api/v1/progress").json()["fit"]
    assert "annotators" not in told
    assert "sources" not in told


def test_before_the_first_fit_there_is_nothing(team: Team) -> None:
    manager = team.client(Role.MANAGER)
    assert manager.get("/api/v1/progress").json()["fit"] is None
    assert manager.get("/api/v1/consensus").json() == {"items": [], "next": None}


@pytest.mark.parametrize("path", ["consensus", "consensus/1"])
def test_reviewers_look_for_themselves_first(team: Team, path: str) -> None:
    assert team.client(Role.REVIEWER).get(f"/api/v1/{path}").status_code == 403


@pytest.mark.parametrize("path", ["consensus", "consensus/1", "progress"])
def test_annotators_do_not_see_the_consensus(team: Team, path: str) -> None:
    assert team.client(Role.ANNOTATOR).get(f"/api/v1/{path}").status_code == 403
    assert team.client().get("/api/v1/live").status_code == 401


def test_one_person_has_some_streams_at_most(team: Team, publisher: Publisher) -> None:
    with served(team) as address:
        token, other = team.token(Role.REVIEWER), team.token(Role.REVIEWER)
        listeners = [Listener(address, [token, other][n % 2]) for n in range(api_live.MOST_STREAMS)]
        for headers in (token, other):
            refused = httpx.get(f"{address}/api/v1/live", headers=headers)
            assert refused.status_code == 429
            assert refused.json()["error"]["code"] == "too-many"
            assert int(refused.headers["Retry-After"]) >= 1
        Listener(address, team.token(Role.ANNOTATOR))  # others have their own
        listeners[0].leave()
        until = time.monotonic() + 10
        while httpx_stream(address, token) == 429 and time.monotonic() < until:
            time.sleep(0.05)
        assert httpx_stream(address, token) == 200


def test_of_many_streams_that_are_asked_for_at_once_no_more_are_opened(team: Team, publisher: Publisher) -> None:
    headers, many = team.token(Role.REVIEWER), 4 * api_live.MOST_STREAMS

    async def ask(client: httpx.AsyncClient, ready: asyncio.Event, found: list[int]) -> None:
        async with client.stream("GET", "/api/v1/live", headers=headers) as answer:
            found.append(answer.status_code)
            await ready.wait()

    async def ask_all(address: str) -> list[int]:
        ready, found = asyncio.Event(), list[int]()
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=address, limits=limits, timeout=30) as client:
            asking = [asyncio.create_task(ask(client, ready, found)) for _ in range(many)]
            while len(found) < many:
                await asyncio.sleep(0.01)
            ready.set()
            await asyncio.gather(*asking)
        return found

    with served(team) as address:
        statuses = asyncio.run(ask_all(address))
    assert statuses.count(200) == api_live.MOST_STREAMS
    assert statuses.count(429) == many - api_live.MOST_STREAMS


def httpx_stream(address: str, headers: dict[str, str]) -> int:
    """What somebody gets who asks for the stream, and leaves at once."""
    with httpx.stream("GET", f"{address}/api/v1/live", headers=headers) as answer:
        return answer.status_code
