"""The first quarter of an hour of a campaign, in a real browser, from an empty folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from serving import PASSWORD, free_port

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}
TEXTS = "\n".join(f"Ada Lovelace met Ben in Bath on day {day}." for day in range(10))


class Served:
    """``quorate serve`` in a folder, as somebody starts it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, free_port()
        self.link = self._start()

    def _start(self) -> str:
        command = [sys.executable, "-m", "quorate", "serve", "--port", str(self._port)]
        environment = {**os.environ, "COLUMNS": "200"}
        self._process = subprocess.Popen(command, cwd=self._folder, stderr=subprocess.PIPE, text=True, env=environment)
        assert self._process.stderr is not None
        found = next(found for line in self._process.stderr if (found := re.search(r"http://\S+", line)))
        return found[0]

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.communicate(timeout=60)

    def restart(self) -> str:
        self.stop()
        return self._start()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def open_at(new_context: Callable[..., BrowserContext]) -> Iterator[Callable[..., Page]]:
    """Open an address in a browser of somebody's own; what goes to the console as an error fails the test."""
    complaints: list[str] = []

    def go(url: str, **options: object) -> Page:
        page = new_context(**options).new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        for _ in range(100):
            try:
                page.goto(url)
                break
            except Exception:  # it is only starting
                time.sleep(0.1)
        return page

    yield go
    assert [text for text in complaints if not text.startswith("Failed to load resource")] == []


def join(page: Page, name: str = "") -> None:
    if name:
        page.get_by_label("Your name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Password").press("Enter")
    page.wait_for_url(lambda url: "/invite/" not in url)


def test_from_an_empty_folder_to_the_first_progress(
    served: Served, open_at: Callable[..., Page], axe: Callable[[Page], list[str]], tmp_path: Path
) -> None:
    owner = open_at(served.link)
    join(owner, "Olga")
    owner.get_by_role("heading", name="Set up the campaign").wait_for()
    for scheme, width in (("light", 1100), ("dark", 1100), ("light", 390)):
        owner.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        owner.set_viewport_size({"width": width, "height": 780})
        assert axe(owner) == []
        assert owner.evaluate("document.documentElement.scrollWidth <= innerWidth")

    # by keys alone
    owner.get_by_label("Paste them").focus()
    owner.keyboard.insert_text(TEXTS)
    owner.get_by_role("button", name="Begin").press("Enter")
    assert "no type of span" in owner.get_by_role("alert").inner_text()
    assert owner.get_by_label("Paste them").input_value() == TEXTS
    owner.get_by_label("Name of type 1").press_sequentially("PER")
    owner.keyboard.press("Tab")
    owner.keyboard.type("p")
    owner.keyboard.press("Tab")
    owner.keyboard.type("violet")
    owner.get_by_label("Name of type 2").press_sequentially("LOC")
    owner.get_by_role("button", name="Add a type").press("Enter")
    owner.keyboard.type("ORG")  # where the focus is now
    owner.get_by_label("How to mark").fill("# Names\n\nMark **all** of them.")
    owner.get_by_label("Invite annotators").fill("Ann\nBen")
    owner.get_by_role("button", name="Begin").press("Enter")
    owner.get_by_role("heading", name="The campaign runs").wait_for()
    assert "10 documents, 3 types" in owner.get_by_role("status").inner_text()
    assert axe(owner) == []
    links = dict(line.split("\t") for line in owner.locator("#made-annotator").inner_text().splitlines())
    assert list(links) == ["Ann", "Ben"]

    # each annotates a document, by their link
    for name, link in links.items():
        page = open_at(link, **(PHONE if name == "Ben" else {}))
        assert page.get_by_label("Your name").input_value() == name
        join(page)
        page.goto(page.url + "annotate")
        page.wait_for_function("() => document.querySelector('quorate-spans')?.text")
        assert axe(page) == []
        page.locator("summary", has_text="Guidelines").press("Enter")
        page.locator("strong", has_text="all").wait_for()
        text = page.locator("quorate-spans .text").first
        text.focus()
        page.keyboard.press("Home")
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("p")
        page.locator("quorate-spans .name", has_text="PER").wait_for()
        before = page.locator("h1").inner_text()
        page.keyboard.press("Control+Enter")
        page.wait_for_function("before => document.querySelector('h1').innerText !== before", arg=before)

    # and the owner sees it
    owner.goto(owner.url.replace("/setup", "/people"))
    rows = {
        row.locator("th").inner_text(): row.locator("td").nth(1).inner_text()
        for row in owner.locator("tr:has(td a), tr:has(th a)").all()
    }
    assert (rows["Ann"], rows["Ben"]) == ("1", "1")
    owner.goto(owner.url.replace("/people", "/progress"))
    assert "Progress" in owner.locator("h1").inner_text()
    assert re.search(r"\b2\b", owner.locator(".figures").first.inner_text())

    # the same after a restart; it logs nobody out
    address = served.restart()
    page = open_at(address)
    page.get_by_label("Name").fill("Olga")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").press("Enter")
    page.get_by_role("heading", name="Welcome").wait_for()
    assert (tmp_path / "quorate.toml").exists()
