"""A service for tests: in this process, on SQLite or PostgreSQL, with people of every role."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import uvicorn
from fastapi.testclient import TestClient

from needs import missing
from quorate_serve import people, sessions
from quorate_serve.app import create_app
from quorate_serve.database.engine import Database
from quorate_serve.guard import guard
from quorate_serve.people import Role
from quorate_serve.settings import ServiceSettings

PASSWORD = "correct horse battery"
_PLACES = ("/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/16/bin", "/usr/lib/postgresql/17/bin")


class Team:
    """A service with somebody of every role, and browsers for them."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        _put_tables(settings)
        self.database = Database.open(settings.database)
        self.app = create_app(settings, self.database)
        self.served = guard(self.app, settings)
        self.ids = {role: self.add(role.value, role) for role in Role}

    def add(self, name: str, role: Role | None) -> str:
        secret = self.settings.secret()
        return self.database.change(lambda connection: people.add_person(connection, secret, name, role=role))

    def client(self, who: Role | str | None = None, **options: Any) -> TestClient:
        """A browser in which a person (of a role, or by id) is logged in, or nobody; it sends its CSRF token."""
        browser = TestClient(self.served, base_url=self.settings.address, **options)
        browser.headers["Origin"] = self.settings.address
        browser.__enter__()
        if who is not None:
            person = self.ids[who] if isinstance(who, Role) else who
            token, csrf = self.database.change(lambda connection: sessions.begin_session(connection, person, 1.0))
            browser.cookies.set(self.settings.session_cookie, token)
            browser.headers["X-CSRF-Token"] = csrf
        return browser

    def cookie(self, who: Role | str) -> Any:
        """What a real browser has of somebody who is logged in."""
        person = self.ids[who] if isinstance(who, Role) else who
        token, _ = self.database.change(lambda connection: sessions.begin_session(connection, person, 1.0))
        return {"name": self.settings.session_cookie, "value": token, "url": self.settings.address}

    @contextmanager
    def serving(self) -> Iterator[str]:
        """The service on its port, in a thread of this process; its address."""
        server = uvicorn.Server(uvicorn.Config(self.served, port=self.settings.port, log_level="error", lifespan="on"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield self.settings.address
        finally:
            server.should_exit = True
            thread.join(10)

    def token(self, who: Role | str) -> dict[str, str]:
        """The header of a program of somebody's."""
        person = self.ids[who] if isinstance(who, Role) else who
        _, token = self.database.change(lambda connection: sessions.make_token(connection, person, "test", days=1))
        return {"Authorization": f"Bearer {token}"}

    def close(self) -> None:
        self.database.close()


def _put_tables(settings: ServiceSettings) -> None:
    """Spare a new file of SQLite its migrations, which are the same for each (``test_database.py`` runs them)."""
    path = Path(settings.database.removeprefix("sqlite:///"))
    if settings.database.startswith("sqlite:///") and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_migrated_file())


@cache
def _migrated_file() -> bytes:
    """A database of SQLite with all tables and nothing in them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "service.db")
        Database.open(f"sqlite:///{path}").close()
        return path.read_bytes()


class PostgresServer:
    """A PostgreSQL server of its own on loopback; it ends with the process that started it, whatever becomes of it."""

    def __init__(self, folder: Path, *, sync: bool) -> None:
        place = next((place for place in _PLACES if Path(place, "initdb").exists()), None)
        if place is None:
            missing("PostgreSQL is not installed")
        self._place, self._folder = place, folder
        self._port, self._is_known = 0, False
        self._as_user = ["setpriv", "--pdeathsig=INT"]
        self._process: subprocess.Popen[bytes] | None = None
        self._options = ["-c", f"fsync={'on' if sync else 'off'}"]  # what a killed process wrote is there without, too
        if os.getuid() == 0:  # which PostgreSQL refuses to run as
            shutil.chown(folder, "postgres")
            self._as_user += ["--reuid=postgres", "--regid=postgres", "--clear-groups"]
        run = [*self._as_user, f"{place}/initdb", "-D", str(folder / "data"), "-U", "quorate", "-A", "trust"]
        subprocess.run([*run, "-E", "UTF8", "--no-sync"], check=True, capture_output=True, cwd=folder)

    @property
    def address(self) -> str:
        return f"postgresql://quorate@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        """Start it, and wait until it answers; on the port that it had, or on a free one."""
        until = time.monotonic() + 60
        while not self._answers():
            assert time.monotonic() < until, (self._folder / "log").read_text()
            if self._process is None or self._process.poll() is not None:
                # It gave up: another took the port first, or processes of one that was killed are still there.
                self._launch(self._port if self._is_known else free_port())
            time.sleep(0.05)
        self._is_known = True

    def _launch(self, port: int) -> None:
        self._port = port
        data = ["-D", str(self._folder / "data"), "-k", str(self._folder), "-h", "127.0.0.1", "-p", str(self._port)]
        with open(self._folder / "log", "ab") as log:
            command = [*self._as_user, f"{self._place}/postgres", *data, *self._options]
            self._process = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log)

    def _answers(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            return False
        try:
            psycopg.connect(self.address, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return self._process.poll() is None  # or it was somebody else's who has the port

    def stop(self) -> None:
        """End it at once, as a power cut would."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(60)

    def kill_and_start(self) -> bool:
        """Kill the process that looks after the others, and start again."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self.start()
        return True

    def kill_one(self, chance: random.Random) -> bool:
        """Kill one of its processes: whether there was one."""
        assert self._process is not None
        theirs = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        if not theirs:
            return False
        with suppress(ProcessLookupError):
            os.kill(int(chance.choice(theirs)), signal.SIGKILL)
        return True


@contextmanager
def postgres_server(*, sync: bool = False) -> Iterator[PostgresServer]:
    """A server that runs, and is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="quorate-postgres-"))
    try:
        server = PostgresServer(folder, sync=sync)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres() -> Iterator[str]:
    """A server for tests, as an address."""
    with postgres_server() as server:
        yield server.address


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
