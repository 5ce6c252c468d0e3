"""Connections on which nothing comes are closed, whatever part of a request they have sent; those that work are not."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import httpx
import pytest

from quorate_serve import patience
from quorate_serve.people import Role
from quorate_serve.supervisor import listen, server_of
from serving import Team, free_port

PATIENCE = 1.0
LATE = 3.9 * PATIENCE  # on a machine that does much else
HEAD = b"POST /api/v1/documents HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.fixture
def port(team: Team, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Where a service answers that waits for a second."""
    monkeypatch.setattr(patience, "PATIENCE", PATIENCE)
    with answering(team) as taken:
        yield taken


@contextmanager
def answering(team: Team) -> Iterator[int]:
    settings = replace(team.settings, port=free_port())
    server = server_of(team.app, settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listen(settings)]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield settings.port
    team.app.state.ticks.stop()
    server.should_exit = True
    thread.join(20)
    assert not thread.is_alive()


def closed_after(port: int, *sent: bytes, every: float = 0.0, most: float = 5 * PATIENCE) -> tuple[float, bytes]:
    """The seconds until the service closes a connection on which this was sent, and what it said."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        began, said = time.monotonic(), b""
        for piece in sent:
            try:
                connection.sendall(piece)
            except OSError:
                break
            time.sleep(every)
        connection.settimeout(most)
        try:
            while piece := connection.recv(65_536):
                said += piece
        except TimeoutError:
            return float("inf"), said
        except ConnectionResetError:
            pass
        return time.monotonic() - began, said


def with_length(team: Team, length: int) -> bytes:
    token = team.token(Role.MANAGER)["Authorization"].encode()
    return HEAD + b"Authorization: " + token + b"\r\nContent-Length: " + str(length).encode() + b"\r\n\r\n"


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-", HEAD, b"\r\n"],
    ids=["nothing", "a word", "half", "head", "line"],
)
def test_who_sends_no_whole_request_is_hung_up_on(port: int, sent: bytes) -> None:
    seconds, _ = closed_after(port, sent)
    assert PATIENCE * 0.9 < seconds < LATE


def test_a_header_that_drips_in_does_not_hold_the_connection(port: int) -> None:
    drops = [b"GET / HTTP/1.1\r\n", *[f"X-{n}: x\r\n".encode() for n in range(40)]]
    seconds, _ = closed_after(port, *drops, every=PATIENCE / 10)
    assert seconds < LATE  # the pipe is broken before all is sent, which takes four


def test_nor_does_a_second_request_that_does_not_end(port: int) -> None:
    first = b"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    seconds, said = closed_after(port, first, b"GET / HT", every=0.2)
    assert said.startswith(b"HTTP/1.1 200")
    assert seconds < LATE


def test_a_body_that_stops_coming_is_told_of_and_hung_up_on(team: Team, port: int) -> None:
    for sent in ([with_length(team, 1_000)], [with_length(team, 1_000), b"[" * 10]):
        seconds, said = closed_after(port, *sent)
        assert PATIENCE * 0.9 < seconds < LATE
        assert said.startswith(b"HTTP/1.1 408"), said
        assert b'"code": "too-slow"' in said
        assert b"connection: close" in said.lower()


def test_a_body_that_stops_before_the_login_is_hung_up_on(port: int) -> None:
    form = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nX-CSRF-Token: x\r\nContent-Length: 100\r\n"
    seconds, said = closed_after(port, form + b"Content-Type: application/x-www-form-urlencoded\r\n\r\nname=")
    assert PATIENCE * 0.9 < seconds < LATE
    assert said.startswith(b"HTTP/1.1 408")


def test_a_slow_body_that_keeps_coming_arrives(team: Team, port: int) -> None:
    body = b'[{"id": "one", "text": "Ada sang"}]'
    pieces = [body[at : at + 5] for at in range(0, len(body), 5)]
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(with_length(team, len(body)))
        for piece in pieces:
            time.sleep(PATIENCE / 3)
            connection.sendall(piece)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")


def test_a_stream_on_which_only_the_service_speaks_stays_open(team: Team, port: int) -> None:
    url = f"http://127.0.0.1:{port}/api/v1/live"
    with httpx.stream("GET", url, headers=team.token(Role.REVIEWER), timeout=2.5 * PATIENCE) as answer:
        assert answer.status_code == 200
        lines = answer.iter_lines()
        assert next(lines).startswith("retry")
        next(lines)
        with pytest.raises(httpx.ReadTimeout):  # nothing comes, and nobody hangs up
            next(lines)


def test_one_that_waits_for_its_next_request_is_closed_as_before(port: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        for _ in range(3):
            assert client.get("/api/v1/health").status_code == 200
            time.sleep(PATIENCE / 2)


def test_a_peer_that_is_gone_is_noticed(team: Team) -> None:
    """What a peer says that lost its power or its network is nothing: the kernel asks, and gives up after 30 s."""
    taken = listen(replace(team.settings, port=free_port()))
    try:
        with socket.create_connection(taken.getsockname()) as _:
            accepted, _ = taken.accept()
            with accepted:
                get = accepted.getsockopt
                assert get(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
                tcp = socket.IPPROTO_TCP
                asked = get(tcp, socket.TCP_KEEPINTVL) * get(tcp, socket.TCP_KEEPCNT)
                assert get(tcp, socket.TCP_KEEPIDLE) + asked == 30
                assert get(tcp, socket.TCP_USER_TIMEOUT) == 30_000
    finally:
        taken.close()


def test_it_is_30_seconds() -> None:
    assert patience.PATIENCE == 30.0
