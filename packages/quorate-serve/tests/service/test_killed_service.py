"""A service as processes: killed, stopped, without its database. What it acknowledged is there afterwards, once."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from killing import LABELS, Kept, Writer, answers, descendants, kept_of, serving, writers_of
from quorate.errors import SettingsError
from quorate_serve.database.engine import Database
from quorate_serve.settings import ServiceSettings
from serving import PostgresServer, free_port, postgres_server

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes by /proc")


@pytest.fixture
def settings(tmp_path: Path) -> ServiceSettings:
    return ServiceSettings(tmp_path, port=free_port(), labels=LABELS)


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with postgres_server() as started:
        yield started


def test_nothing_acknowledged_is_lost_however_often_it_is_killed(settings: ServiceSettings) -> None:
    writers = writers_of(settings, 8, 6)
    with serving(settings) as served:
        asyncio.run(_killed(writers, [served.kill_answering] * 15))
        assert served.stop() == 0
    _all_kept(settings, writers)


def test_nor_when_postgresql_is_killed(settings: ServiceSettings, server: PostgresServer) -> None:
    settings = ServiceSettings(settings.root, server.address, port=settings.port, labels=LABELS)
    writers = writers_of(settings, 8, 6)
    chance = random.Random(1)
    with serving(settings) as served:
        before = served.answering()
        asyncio.run(_killed(writers, [lambda: server.kill_one(chance), server.kill_and_start] * 2))
        assert served.answering() == before  # it needs no other process when its database comes back
        asyncio.run(_killed(writers, [served.kill_answering]))
        assert served.stop() == 0
    _all_kept(settings, writers)


async def _killed(writers: Sequence[Writer], kills: Sequence[Callable[[], object]]) -> None:
    """Everybody saves while something is killed, again and again; after each time somebody is answered again."""
    stopping, chance = asyncio.Event(), random.Random(0)
    tasks = [asyncio.create_task(writer.save_all(0.04, stopping)) for writer in writers]
    for kill in kills:
        await asyncio.sleep(chance.uniform(0.0, 0.2))
        assert kill()
        killed = time.perf_counter()
        while not any(writer.answered_at > killed for writer in writers):
            assert time.perf_counter() < killed + 30
            await asyncio.sleep(0.005)
    stopping.set()
    await asyncio.wait_for(asyncio.gather(*tasks), 30)


def _all_kept(settings: ServiceSettings, writers: Sequence[Writer]) -> None:
    database = Database.open(settings.database)
    try:
        saves = sum(len(writer.acknowledged) for writer in writers)
        assert saves > len(writers)
        assert kept_of(database, writers) == Kept(saves, lost=0, duplicates=0)
    finally:
        database.close()


def test_the_supervisor_or_what_forks_for_it_is_killed(settings: ServiceSettings) -> None:
    writers_of(settings, 1, 1)
    with serving(settings) as served:
        assert served.process is not None
        before = served.answering()
        assert before is not None
        forks = int(Path(f"/proc/{before}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(before, signal.SIGKILL)
        os.kill(forks, signal.SIGKILL)  # just as it is needed
        _until(lambda: served.answering() not in (None, before) and answers(settings.port))
        before = served.answering()
        forks = int(Path(f"/proc/{before}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(forks, signal.SIGKILL)
        _until(lambda: not Path(f"/proc/{before}").exists())  # or two would answer, one of which nobody looks after
        _until(lambda: served.answering() not in (None, before) and answers(settings.port))
        others = descendants(served.process.pid)
        served.kill()
        served.start()  # on the same port, at once
        _until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in others))


def test_asked_to_stop_it_answers_what_is_waiting(settings: ServiceSettings) -> None:
    (writer,) = writers_of(settings, 1, 1)
    path = settings.folder / "service.db"
    with serving(settings) as served:
        assert served.process is not None
        others = descendants(served.process.pid)
        holds = sqlite3.connect(path, isolation_level=None)
        holds.execute("BEGIN IMMEDIATE")  # so that saves wait
        statuses: list[int] = []
        saves = [threading.Thread(target=lambda: statuses.append(_save(writer))) for _ in range(5)]
        for save in saves:
            save.start()
        time.sleep(0.5)
        assert statuses == []
        served.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        holds.execute("COMMIT")
        holds.close()
        for save in saves:
            save.join()
        assert statuses == [200] * 5
        assert served.process.wait(30) == 0
    _until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in others))
    assert not path.with_name("service.db-wal").exists()  # all of it is in the one file


def test_ctrl_c_leaves_nothing_behind(settings: ServiceSettings) -> None:
    (writer,) = writers_of(settings, 1, 1)
    with serving(settings) as served:
        assert served.process is not None
        others = descendants(served.process.pid)
        assert _save(writer) == 200
        os.killpg(served.process.pid, signal.SIGINT)  # it reaches every process of a terminal
        assert served.process.wait(30) == 0
        assert "Traceback" not in served.log
    _until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in others))
    assert not (settings.folder / "service.db-wal").exists()


def test_a_port_that_is_taken_is_one_line(settings: ServiceSettings) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", settings.port))
        taken.listen()
        command = [sys.executable, "-m", "quorate", "serve", "--port", str(settings.port)]
        done = subprocess.run(command, cwd=settings.root, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert f"127.0.0.1:{settings.port}: Address already in use (give another --port)" in done.stderr


def test_without_its_database_it_says_so_and_goes_on_when_it_is_back(
    settings: ServiceSettings, server: PostgresServer
) -> None:
    settings = ServiceSettings(settings.root, server.address, port=settings.port, labels=LABELS)
    (writer,) = writers_of(settings, 1, 1)
    with serving(settings) as served:
        before = served.answering()
        assert _save(writer) == 200
        server.stop()
        began = time.monotonic()
        assert [_save(writer), _health(settings.port)] == [503, 503]
        assert time.monotonic() - began < 5
        server.start()
        assert [_save(writer), _health(settings.port)] == [200, 200]
        assert served.answering() == before
        assert "the database does not answer: " in served.log
        assert "the database answers again" in served.log
        assert "Traceback" not in served.log


def test_a_full_disk_acknowledges_nothing(settings: ServiceSettings) -> None:
    (writer,) = writers_of(settings, 1, 1)
    with serving(settings) as served:
        assert _save(writer) == 200
        pid = served.answering()
        assert pid is not None
        limit = resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))  # no file grows any more
        assert [_save(writer) for _ in range(3)] == [503] * 3
        assert _events(settings) == 1
        resource.prlimit(pid, resource.RLIMIT_FSIZE, limit)
        assert _save(writer) == 200
        assert _events(settings) == 2
        assert served.answering() == pid


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="cannot be made: Not a directory"):
        Database.open(f"sqlite:///{tmp_path}/file/deep/service.db")


def _save(writer: Writer) -> int:
    """Save once: the status of the answer."""
    save = {"id": uuid.uuid4().hex, "document": writer.documents[0], "spans": []}
    connection = http.client.HTTPConnection("127.0.0.1", writer.port, timeout=30)
    headers = dict(line.split(": ") for line in writer.head.decode().split("\r\n")[1:-2] if "Length" not in line)
    connection.request("POST", "/api/v1/annotations", json.dumps(save), headers)
    status = connection.getresponse().status
    connection.close()
    return status


def _health(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/api/v1/health")
    status = connection.getresponse().status
    connection.close()
    return status


def _events(settings: ServiceSettings) -> int:
    connection = sqlite3.connect(settings.folder / "service.db")
    (count,) = connection.execute("SELECT count(*) FROM events WHERE kind LIKE 'annotation.%'").fetchone()
    connection.close()
    return int(count)


def _until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)
