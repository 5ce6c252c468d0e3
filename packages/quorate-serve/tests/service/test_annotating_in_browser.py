"""The page to annotate on, in a real browser against a real service: by mouse, by keys alone, on a phone, offline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select, update

from quorate_serve.database import tables
from quorate_serve.documents import add_text
from quorate_serve.people import Role
from quorate_serve.settings import QueueSettings, ServiceSettings
from serving import Team, free_port

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

TEXTS = {"first": "Ada Lovelace met Charles in London.", "emoji": "👋🏽 Bob flew to Rome", "hebrew": "דוד נסע לחיפה"}
Open = Callable[..., "Page"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Team]:
    """A service with three documents, each for one annotator."""
    queue = QueueSettings(per_document_min=1, per_document_max=1, check_rate=0.0)
    team = Team(ServiceSettings(tmp_path, port=free_port(), labels=("PER", "LOC", "ORG"), queue=queue))
    for id, text in TEXTS.items():
        team.database.change(partial(add_text, id=id, text=text))
    with team.serving():
        yield team
    team.close()


@pytest.fixture
def annotator(site: Team, visit: Open) -> Open:
    """Open the page as an annotator."""

    def go(path: str = "/annotate", *, ready: bool = True, **options: Any) -> Page:
        return visit(site, Role.ANNOTATOR, path, ready="#task:not([hidden])" if ready else "body", **options)

    return go


def saved(team: Team) -> dict[str, list[dict[str, Any]]]:
    """The spans that are in the database, by the id of the document."""
    query = select(tables.documents.c.id, tables.current_annotations.c.spans).join(tables.current_annotations)
    with team.database.read() as connection:
        return {row.id: row.spans for row in connection.execute(query)}


def mark(page: Page, start: int, end: int, key: str) -> None:
    """Mark from one word to another by keys alone."""
    text = page.locator("quorate-spans .text").first
    text.press("Control+Home")
    for _ in range(start):
        text.press("ArrowRight")
    for _ in range(end - start):
        text.press("Shift+ArrowRight")
    text.press(key)


def to_next(page: Page, before: str) -> None:
    page.wait_for_function(
        "before => !document.getElementById('task').hidden && document.getElementById('name').textContent !== before",
        arg=before,
    )


def test_one_document_after_another_by_keys_alone(site: Team, annotator: Open) -> None:
    page = annotator()
    done = []
    for _ in TEXTS:
        name = page.locator("#name").inner_text()
        done.append(name)
        mark(page, 0, 0, "1")
        page.keyboard.press("Control+Enter")
        if len(done) < len(TEXTS):
            to_next(page, name)
    page.wait_for_selector("#message:not([hidden])")
    page.wait_for_selector("quorate-outbox[state=saved]")
    assert set(done) == set(TEXTS)
    found = saved(site)
    assert found["first"] == [{"start": 0, "end": 3, "label": "PER"}]
    assert found["hebrew"] == [{"start": 0, "end": 3, "label": "PER"}]
    assert found["emoji"][0]["start"] == 0


def test_what_is_saved_offline_is_sent_when_the_connection_is_back(site: Team, annotator: Open) -> None:
    page = annotator()
    name = page.locator("#name").inner_text()
    page.context.set_offline(True)
    mark(page, 0, 0, "2")
    page.locator("#save").click()
    page.wait_for_selector("quorate-outbox[state=offline]")
    assert saved(site) == {}
    page.context.set_offline(False)
    page.wait_for_selector("quorate-outbox[state=saved]")
    assert saved(site)[name][0]["label"] == "LOC"
    to_next(page, name)


def first_held(page: Page, url: str) -> list[Route]:
    """The first request to an address, once there is one: it waits to be let through; later ones do not."""
    held: list[Route] = []
    page.route(url, lambda route: route.continue_() if held else held.append(route))
    return held


def test_a_document_that_was_asked_for_before_its_save_arrived_is_not_shown_again(site: Team, annotator: Open) -> None:
    page = annotator()
    name = page.locator("#name").inner_text()
    page.context.set_offline(True)
    page.locator("#save").click()
    page.wait_for_selector("quorate-outbox[state=offline]")
    saves, asked = first_held(page, "**/api/v1/annotations"), first_held(page, "**/api/v1/queue/next")
    page.context.set_offline(False)
    for _ in range(500):
        if saves and asked:
            break
        page.wait_for_timeout(20)
    assert saves, "nothing was sent"
    assert asked, "no document was asked for"
    answer = asked[0].fetch()
    assert answer.json()["document"]["id"] == name
    saves[0].continue_()
    page.wait_for_selector("quorate-outbox[state=saved]")
    asked[0].fulfill(response=answer)
    to_next(page, name)


def test_marks_that_are_not_saved_survive_a_reload(annotator: Open) -> None:
    page = annotator()
    mark(page, 0, 0, "1")
    marked = page.evaluate("() => document.querySelector('quorate-spans').spans")
    page.reload()
    page.wait_for_selector("#task:not([hidden])")
    assert page.evaluate("() => document.querySelector('quorate-spans').spans") == marked
    name = page.locator("#name").inner_text()
    page.locator("#save").click()
    to_next(page, name)
    assert page.evaluate("() => Object.keys(localStorage).length") == 0


def test_what_was_saved_can_be_changed(site: Team, annotator: Open) -> None:
    page = annotator()
    name = page.locator("#name").inner_text()
    page.locator("#save").click()
    to_next(page, name)
    page.goto(site.settings.address + "/annotate/saved")
    page.get_by_role("link", name=name).click()
    page.wait_for_selector("#task:not([hidden])")
    mark(page, 0, 0, "3")
    page.locator("#save").click()
    page.wait_for_selector("#message:not([hidden])")
    page.wait_for_selector("quorate-outbox[state=saved]")
    assert saved(site)[name][0]["label"] == "ORG"


def test_a_change_that_is_kept_here_is_not_called_saved(site: Team, annotator: Open) -> None:
    page = annotator()
    name = page.locator("#name").inner_text()
    page.locator("#save").click()
    to_next(page, name)
    page.goto(site.settings.address + "/annotate/saved")
    page.get_by_role("link", name=name).click()
    page.wait_for_selector("#task:not([hidden])")
    page.context.set_offline(True)
    mark(page, 0, 0, "3")
    page.locator("#save").click()
    page.wait_for_selector("#message:not([hidden])")
    assert "Kept here" in page.locator("#message").inner_text()
    assert saved(site)[name] == []
    page.context.set_offline(False)
    page.get_by_text("Saved. It takes the place").wait_for()
    assert saved(site)[name][0]["label"] == "ORG"


def test_a_training_document_whose_save_is_refused_is_not_waited_for(site: Team, annotator: Open) -> None:
    known = update(tables.documents).values(purpose="training", gold=[{"start": 0, "end": 3, "label": "PER"}])
    site.database.change(lambda connection: connection.execute(known))
    site.app.state.settings = replace(site.settings, queue=replace(site.settings.queue, training=3))
    page = annotator()
    assert page.locator("#name").inner_text().startswith("To learn from")
    site.app.state.settings = replace(site.app.state.settings, labels=("OTHER",))
    mark(page, 0, 0, "1")
    page.locator("#save").click()
    page.wait_for_selector("quorate-outbox[state=refused]")
    page.wait_for_selector("#task:not([hidden]) #save:not([disabled])")  # it is asked for again
    page.locator("#save").click()  # without spans, now
    page.locator("#learned").wait_for()
    before = page.locator("#name").inner_text()
    page.locator("#go-on").click()
    to_next(page, before)


def test_on_a_phone_nothing_is_cut_off(annotator: Open, axe: Callable[[Page], list[str]]) -> None:
    page = annotator(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth <= screen.width")
    assert not axe(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(annotator: Open, axe: Callable[[Page], list[str]], scheme: str) -> None:
    page = annotator(color_scheme=scheme)
    assert not axe(page)
    page.goto(page.url.removesuffix("/annotate") + "/login")
    assert not axe(page)


def test_who_is_logged_out_logs_in_and_comes_back(site: Team, annotator: Open) -> None:
    page = annotator()
    page.context.clear_cookies()
    name = page.locator("#name").inner_text()
    page.locator("#save").click()
    page.wait_for_url("**/login?next=*")
    page.context.add_cookies([site.cookie(Role.ANNOTATOR)])
    page.goto(site.settings.address + "/annotate")
    page.wait_for_selector("quorate-outbox[state=saved]")
    assert name in saved(site)  # what was kept in the browser
