"""A service for tests: in this process, on SQLite or PostgreSQL, with people of every role."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from needs import missing
from quorate.service import people, sessions
from quorate.service.app import create_app
from quorate.service.database.engine import Database
from quorate.service.people import Role
from quorate.service.sessions import COOKIE
from quorate.service.settings import ServiceSettings

PASSWORD = "correct horse battery"
_PLACES = ("/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/16/bin", "/usr/lib/postgresql/17/bin")


class Team:
    """A service with somebody of every role, and browsers for them."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.database = Database.open(settings.database)
        self.app = create_app(settings, self.database)
        self.ids = {role: self.add(role.value, role) for role in Role}

    def add(self, name: str, role: Role | None) -> str:
        secret = self.settings.secret()
        return self.database.change(lambda connection: people.add_person(connection, secret, name, role=role))

    def client(self, who: Role | str | None = None, **options: Any) -> TestClient:
        """A browser in which a person (of a role, or by id) is logged in, or nobody; it sends its CSRF token."""
        browser = TestClient(self.app, base_url=self.settings.address, **options)
        browser.__enter__()
        if who is not None:
            person = self.ids[who] if isinstance(who, Role) else who
            token, csrf = self.database.change(lambda connection: sessions.begin_session(connection, person, 1.0))
            browser.cookies.set(COOKIE, token)
            browser.headers["X-CSRF-Token"] = csrf
        return browser

    def token(self, who: Role | str) -> dict[str, str]:
        """The header of a program of somebody's."""
        person = self.ids[who] if isinstance(who, Role) else who
        _, token = self.database.change(lambda connection: sessions.make_token(connection, person, "test"))
        return {"Authorization": f"Bearer {token}"}

    def close(self) -> None:
        self.database.close()


@contextmanager
def postgres() -> Iterator[str]:
    """A PostgreSQL server of its own on loopback, as an address; it is gone afterwards."""
    place = next((folder for folder in _PLACES if Path(folder, "initdb").exists()), None)
    if place is None:
        missing("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="quorate-postgres-"))
    as_user = []
    if os.getuid() == 0:  # which PostgreSQL refuses to run as
        shutil.chown(folder, "postgres")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    data, port = folder / "data", free_port()
    run = [*as_user, f"{place}/initdb", "-D", str(data), "-U", "quorate", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(run, check=True, capture_output=True, cwd=folder)
    options = f"-p {port} -h 127.0.0.1 -k {folder}"
    control = [*as_user, f"{place}/pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log")]
    subprocess.run([*control, "-o", options, "start"], check=True, capture_output=True, cwd=folder)
    try:
        yield f"postgresql://quorate@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], capture_output=True, cwd=folder, check=False)
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
