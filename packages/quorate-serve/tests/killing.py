"""A service that is killed while people save: its processes, those who save, and what must be kept of it."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, insert, select

from quorate_serve import people, sessions
from quorate_serve.database import tables
from quorate_serve.database.engine import Database
from quorate_serve.documents import add_text
from quorate_serve.people import Role
from quorate_serve.settings import ServiceSettings

LABELS = ("LOC", "ORG", "PER")
_TEXT = "Ada Lovelace of London met Charles Babbage 👋 at the Royal Society, and they spoke of engines. " * 3
_PATIENCE = 10.0  # seconds that somebody waits for an answer
_AGAIN = 0.02  # seconds until a save is tried again
_FOREVER = 4e9


class Acknowledged(NamedTuple):
    """A save that was answered: what was sent, what came back, how long after it was due."""

    id: str
    document: int
    spans: list[dict[str, Any]]
    event: int
    revision: int
    seconds: float


@dataclass
class Writer:
    """Somebody who saves, and tries again with the same id until it is acknowledged."""

    person: str
    head: bytes
    documents: Sequence[int]
    port: int
    random: random.Random
    acknowledged: list[Acknowledged] = field(default_factory=list)
    attempts: int = 0
    answered_at: float = 0.0
    """When the last attempt began that was answered."""
    _streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def save_all(self, mean: float, stopping: asyncio.Event) -> None:
        """Saves that are due at random moments, whether or not the ones before have been answered."""
        due = time.perf_counter()
        while not stopping.is_set():
            due += self.random.expovariate(1.0 / mean)
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await self.save(due)
        self.hang_up()

    async def save(self, due: float) -> None:
        """One save, until it is acknowledged; now and then it is sent once more, and must be answered the same."""
        id, document, spans = str(uuid.UUID(int=self.random.getrandbits(128))), self._document(), self._spans()
        body = json.dumps({"id": id, "document": document, "spans": spans, "seconds": 2.5}).encode()
        told = await self._acknowledgement(body)
        taken = time.perf_counter() - due
        self.acknowledged.append(Acknowledged(id, document, spans, told["event"], told["revision"], taken))
        if self.random.random() < 0.02:
            again = await self._acknowledgement(body)
            assert again == told, (again, told)

    async def _acknowledgement(self, body: bytes) -> dict[str, int]:
        while True:
            self.attempts += 1
            began = time.perf_counter()
            try:
                status, content = await asyncio.wait_for(self._post(body), _PATIENCE)
            except (OSError, EOFError, TimeoutError):
                self.hang_up()
                await asyncio.sleep(_AGAIN * (1 + self.random.random()))
                continue
            if status == 200:
                self.answered_at = began
                return dict(json.loads(content))
            assert status in (429, 503), (status, content)
            await asyncio.sleep(_AGAIN * (1 + self.random.random()))

    async def _post(self, body: bytes) -> tuple[int, bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self._streams
        writer.write(self.head % len(body) + body)
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        content = await reader.readexactly(length)
        if b"connection: close" in lines:
            self.hang_up()
        return int(lines[0].split()[1]), content

    def hang_up(self) -> None:
        """Let go of the connection."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None

    def _document(self) -> int:
        return self.random.choice(self.documents)

    def _spans(self) -> list[dict[str, Any]]:
        places = sorted(self.random.sample(range(len(_TEXT)), 2 * self.random.randint(0, 6)))
        pairs = zip(places[::2], places[1::2], strict=True)
        return [{"start": start, "end": end, "label": self.random.choice(LABELS)} for start, end in pairs]


def writers_of(settings: ServiceSettings, many: int, documents: int, seed: int = 0) -> list[Writer]:
    """Accounts with a session each, and with leases on documents that they share."""

    def make(connection: Connection) -> list[Writer]:
        numbers = [add_text(connection, f"document {number}", _TEXT) for number in range(documents)]
        return [_writer(connection, settings, numbers, random.Random(seed + one), one) for one in range(many)]

    database = Database.open(settings.database)
    try:
        return database.change(make)
    finally:
        database.close()


def _writer(
    connection: Connection, settings: ServiceSettings, numbers: Sequence[int], chance: random.Random, one: int
) -> Writer:
    person = people.add_person(connection, settings.secret(), f"writer {one}", role=Role.ANNOTATOR)
    token, csrf = sessions.begin_session(connection, person, 1_000.0)
    given = chance.sample(numbers, max(1, len(numbers) // 2))
    lease = {"person": person, "purpose": "work", "state": "leased", "at": 0.0, "until": _FOREVER}
    connection.execute(insert(tables.assignments), [{"document": number, **lease} for number in given])
    head = (
        f"POST /api/v1/annotations HTTP/1.1\r\nHost: 127.0.0.1:{settings.port}\r\nContent-Type: application/json\r\n"
        f"Cookie: {settings.session_cookie}={token}\r\nX-CSRF-Token: {csrf}\r\nContent-Length: %d\r\n\r\n"
    )
    return Writer(person, head.encode(), given, settings.port, chance)


class Kept(NamedTuple):
    """What the database has of what was acknowledged."""

    acknowledged: int
    lost: int
    duplicates: int


def kept_of(database: Database, writers: Sequence[Writer]) -> Kept:
    """Compare the database with what was acknowledged: its content, its order, and what stands now."""
    table, stands = tables.events, tables.current_annotations
    with database.read() as connection:
        events = connection.execute(
            select(table).where(table.c.kind.in_(("annotation.saved", "annotation.revised"))).order_by(table.c.seq)
        ).all()
        current = {(row.person, row.document): row for row in connection.execute(select(stands))}
    found = {row.id: row for row in events}
    last = {(row.person, row.document): row for row in events}
    lost = 0
    for writer in writers:
        latest: dict[int, int] = {}
        for save in writer.acknowledged:
            row = found.get(save.id)
            expected = (writer.person, save.document, save.event, {"spans": save.spans, "revision": save.revision})
            there = row is not None and (row.person, row.document, row.seq, row.body) == expected
            lost += not there or save.event <= latest.get(save.document, 0)
            latest[save.document] = save.event
        for document, event in latest.items():
            now, newest = current.get((writer.person, document)), last[writer.person, document]
            lost += now is None or now.event < event or (now.event, now.spans) != (newest.seq, newest.body["spans"])
    revisions = Counter((row.person, row.document, row.body["revision"]) for row in events)
    known = {save.id for writer in writers for save in writer.acknowledged}
    twice = sum(count - 1 for count in revisions.values()) + sum(row.id not in known for row in events)
    return Kept(sum(len(writer.acknowledged) for writer in writers), lost, twice)


class Served:
    """``quorate serve`` in a folder, as processes that can be killed."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        database = [] if self.settings.database_url is None else ["--database", self.settings.database_url]
        command = [sys.executable, "-m", "quorate", "serve", "--port", str(self.settings.port), *database]
        with open(self.settings.root / "log", "ab") as log:
            self.process = subprocess.Popen(
                [*command, "--labels", ",".join(LABELS)],
                cwd=self.settings.root,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},  # however this one found it
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until = time.monotonic() + 60
        while not answers(self.settings.port):
            assert self.process.poll() is None, self.log
            assert time.monotonic() < until, self.log
            time.sleep(0.05)

    @property
    def log(self) -> str:
        """All that it has printed."""
        return (self.settings.root / "log").read_text()

    def answering(self) -> int | None:
        """The process that answers, if there is one now: it has the socket, and somebody else has started it."""
        assert self.process is not None
        socket = _listening(self.settings.port)
        theirs = [pid for pid in descendants(self.process.pid) if socket in _open_files(pid)]
        return theirs[-1] if theirs else None

    def kill_answering(self, before: int | None = None) -> int | None:
        """Kill the process that answers, if it is another than before: which one that was."""
        pid = self.answering()
        if pid is None or pid == before:
            return None
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return pid

    def kill(self) -> None:
        """Kill the process that looks after the others."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Ask it to end, and wait: its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def serving(settings: ServiceSettings) -> Iterator[Served]:
    """A service that is started, and ended in any case."""
    served = Served(settings)
    try:
        served.start()
        yield served
    finally:
        if served.process is not None:
            try:
                served.stop()
            except subprocess.TimeoutExpired:
                os.killpg(served.process.pid, signal.SIGKILL)
                raise


def answers(port: int) -> bool:
    """Whether a service is well."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
    try:
        connection.request("GET", "/api/v1/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have, as they are now."""
    found = []
    with suppress(OSError):
        for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            found += [child, *descendants(child)]
    return found


def _listening(port: int) -> str:
    """The socket that listens on a port of this machine, as open files name it."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        place, state, inode = (line.split()[column] for column in (1, 3, 9))
        if place.endswith(f":{port:04X}") and state == "0A":
            return f"socket:[{inode}]"
    return ""


def _open_files(pid: int) -> set[str]:
    found = set()
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found
