"""``docs/service.md`` from top to bottom: its commands and its Python, against a service that is really there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from typer.main import get_group

import pages
from quorate_serve.cli import app
from serving import free_port

PAGE = pages.ROOT / "docs" / "service.md"
NAME, PASSWORD = "Ada", "correct horse battery"
READY = "Ctrl-C stops it"
STOPPED_BEFORE = "mv .quorate/serve before"
"""The page says to stop the service, and then this."""


class Reader:
    """Somebody who follows the page in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        quorate = folder / "bin" / "quorate"
        quorate.parent.mkdir()
        quorate.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m quorate "$@"\n')
        quorate.chmod(0o755)
        self.folder = folder / "project"
        self.folder.mkdir()
        self.port = str(free_port())
        self.address = f"http://127.0.0.1:{self.port}"
        path = f"{quorate.parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "COLUMNS": "200"}
        self.service: subprocess.Popen[str] | None = None

    def run(self, command: str) -> str:
        """What a command prints."""
        if command.startswith("pip install"):
            return ""
        if command == STOPPED_BEFORE:
            self.stop()
        if command.startswith("export "):
            self.environment |= {"URL": self.address, "TOKEN": self.token()}
            return ""
        if re.match(r"quorate (serve|service invite)\b", command):
            command += f" --port {self.port}"
        if command.startswith("quorate serve "):
            return self.serve(command)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    def serve(self, command: str) -> str:
        """Start a service in place of the one that runs; whoever has a link for the first admin joins with it."""
        self.stop()
        self.service = subprocess.Popen(
            command.split(), cwd=self.folder, env=self.environment, stderr=subprocess.PIPE, text=True
        )
        assert self.service.stderr is not None
        printed = []
        for line in self.service.stderr:
            printed.append(line)
            if READY in line:
                break
        if link := re.search(r"http://\S+/invite/\S+", "".join(printed)):
            with self.browser() as browser:
                answer = browser.post(link[0], data={"name": NAME, "password": PASSWORD})
                assert answer.status_code == 303, answer.text
        return "".join(printed)

    def browser(self) -> httpx.Client:
        return httpx.Client(
            base_url=self.address,
            headers={"Origin": self.address},
            timeout=30,
            transport=httpx.HTTPTransport(retries=5),
        )

    def token(self) -> str:
        """A token as the page *Account* makes one, for whoever logs in by name and password."""
        with self.browser() as browser:
            answer = browser.post("/login", data={"name": NAME, "password": PASSWORD})
            assert answer.status_code == 303, answer.text
            csrf = re.search(r'name="csrf" value="([^"]+)"', browser.get("/account").text)
            assert csrf
            page = browser.post(
                "/account/tokens", data={"csrf": csrf[1], "name": "page", "days": "1", "password": PASSWORD}
            ).text
        token = re.search(r"qt_[\w-]+", page)
        assert token, page
        return token[0]

    def wait_for_consensus(self) -> None:
        """Until there is one: a reader has it by the time they have read so far."""
        headers = {"Authorization": f"Bearer {self.environment['TOKEN']}"}
        for _ in range(300):
            answer = httpx.get(f"{self.address}/api/v1/consensus", headers=headers, timeout=30)
            if answer.json()["items"]:
                return
            time.sleep(0.2)
        raise AssertionError("no consensus after a minute")

    def python(self, block: str) -> None:
        self.wait_for_consensus()
        done = subprocess.run(
            [sys.executable, "-c", block], cwd=self.folder, env=self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{block}\n{done.stderr}"

    def stop(self) -> None:
        """As Ctrl-C does."""
        if self.service is not None:
            self.service.send_signal(signal.SIGINT)
            _, told = self.service.communicate(timeout=60)
            assert self.service.returncode == 0, told
            self.service = None


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    made = Reader(tmp_path)
    yield made
    if made.service is not None:
        made.service.terminate()
        made.service.communicate(timeout=60)


@pytest.mark.skipif(os.name != "posix", reason="the page speaks to a shell")
def test_every_block_of_the_page_is_as_it_says(reader: Reader) -> None:
    done = 0
    for step in pages.steps(PAGE):
        done += 1
        if step.kind == "python":
            reader.python(step.text)
            continue
        printed = reader.run(step.text)
        shown = [line.replace("8787", reader.port) for line in step.shown]
        assert pages.shows(shown, printed), f"{step.text}\n{printed}"
    assert done > 15


def test_every_option_of_serve_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    command = get_group(app).commands["serve"]
    options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} - {"--help", "-h"}
    told = {name for name in options if f"`{name}`" in page or re.search(rf"^{name.lstrip('-')} = ", page, re.M)}
    assert sorted(options - told) == []
