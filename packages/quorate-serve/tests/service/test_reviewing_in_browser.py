"""Reviewing in a real browser: look, show, accept or correct; two who differ; and who decides between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from sqlalchemy import select

from quorate_serve import annotating
from quorate_serve.database import tables
from quorate_serve.documents import add_text
from quorate_serve.live.worker import Follower
from quorate_serve.people import Role
from quorate_serve.settings import ReviewSettings, ServiceSettings
from serving import Team, free_port

if TYPE_CHECKING:
    from playwright.sync_api import Page

TEXT = "Ada Lovelace met Bob 👋 in Bath"
ADA = {"start": 0, "end": 12, "label": "PER"}
SHORT = {"start": 0, "end": 3, "label": "PER"}
BATH = {"start": 26, "end": 30, "label": "LOC"}
SAID = {"ann": [ADA, BATH], "ben": [ADA, BATH], "cho": [SHORT, BATH]}
Open = Callable[..., "Page"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Team]:
    """A service with documents that three people labelled, a consensus, and two reviewers for each document."""
    settings = ServiceSettings(
        tmp_path, port=free_port(), labels=("PER", "LOC"), reviews=ReviewSettings(per_document=2)
    )
    team = Team(settings)
    people = {name: team.add(name, None) for name in SAID}

    def fill(connection: Any) -> None:
        for number in range(6):
            document = add_text(connection, f"letter-{number}", TEXT)
            for name, spans in SAID.items():
                annotating.import_annotation(connection, people[name], document, list(spans), None)

    team.database.change(fill)
    Follower(settings, team.database).refit()
    with team.serving():
        yield team
    team.close()


@pytest.fixture
def open_as(site: Team, visit: Open) -> Open:
    """Open a page as somebody, and wait until it has something to show or to say."""

    def go(who: Role | str, path: str, **options: Any) -> Page:
        return visit(site, who, path, ready="#task:not([hidden]), #message:not([hidden])", **options)

    return go


def reviews(team: Team) -> list[Any]:
    with team.database.read() as connection:
        return list(connection.execute(select(tables.reviews).order_by(tables.reviews.c.event)).mappings())


def name_of(page: Page) -> str:
    return page.locator("#name").inner_text()


def test_accepted_with_the_same_key_twice(site: Team, open_as: Open) -> None:
    page = open_as(Role.REVIEWER, "/review")
    name = name_of(page)
    assert page.locator("#others .card").count() == 3
    assert "ann" not in page.locator("#others").inner_text()  # who said what is not told
    assert page.evaluate("document.querySelector('quorate-spans').spans") == []  # nor what the consensus is
    page.keyboard.press("Control+Enter")
    page.get_by_role("button", name="Accept").wait_for()
    assert page.locator("#others table tbody tr").count() == 3
    page.keyboard.press("Control+Enter")
    page.wait_for_function("name => document.getElementById('name').textContent !== name", arg=name)
    page.wait_for_selector("quorate-outbox[state=saved]")
    (review,) = reviews(site)
    assert review["accepted"]
    assert review["spans"] == [ADA, BATH]


def test_two_differ_and_a_manager_decides(site: Team, open_as: Open, axe: Callable[[Page], list[str]]) -> None:
    other = site.add("rob", Role.REVIEWER)
    for who, key in ((Role.REVIEWER, None), (other, "Delete")):
        page = open_as(who, "/review")
        name = name_of(page)
        page.keyboard.press("Control+Enter")
        page.get_by_role("button", name="Accept").wait_for()
        if key is not None:  # the first span is not one
            text = page.locator("quorate-spans .text")
            text.press("Control+Home")
            text.press("Tab")
            text.press(key)
            page.get_by_role("button", name="Save as corrected").wait_for()
            page.locator("summary").first.click()
            page.locator("#note").fill("a machine, <b>not</b> a person")
        assert not axe(page)
        page.locator("#go").click()
        page.wait_for_function("name => document.getElementById('name').textContent !== name", arg=name)
        page.wait_for_selector("quorate-outbox[state=saved]")
        page.context.close()
    first, second = reviews(site)
    assert first["document"] == second["document"]
    party = open_as(other, "/adjudicate")
    assert "one of those who differ" in party.locator("#message").inner_text()
    page = open_as(Role.MANAGER, "/adjudicate")
    assert "Ada Lovelace" in page.locator("#message").inner_text()
    assert "a machine, <b>not</b> a person" in page.locator("#others").inner_text()
    assert not axe(page)
    page.get_by_role("button", name="Begin with B").click()
    page.keyboard.press("Control+Enter")
    page.wait_for_function("() => document.getElementById('message').textContent.includes('nothing')")
    page.wait_for_selector("quorate-outbox[state=saved]")
    assert reviews(site)[-1]["adjudicates"]


def test_disputes_are_looked_for_page_after_page_and_a_manager_decides_their_own(site: Team, open_as: Open) -> None:
    sue, tom = site.add("sue", Role.REVIEWER), site.add("tom", Role.REVIEWER)
    with site.database.read() as connection:
        numbers = sorted(connection.execute(select(tables.documents.c.number)).scalars())
    sides = ((sue, site.ids[Role.MANAGER]), (sue, tom), (tom, site.ids[Role.REVIEWER]))
    for number, people in zip(numbers, sides, strict=False):
        for person, spans in zip(people, ([ADA], [SHORT]), strict=True):
            given = {"id": f"{person}-{number}", "document": number, "spans": spans, "accepted": False}
            httpx.post(
                f"{site.settings.address}/api/v1/reviews", json=given, headers=site.token(person)
            ).raise_for_status()
    page = open_as(sue, "/adjudicate")
    page.route("**/api/v1/disputes*", lambda route: route.continue_(url=route.request.url.replace("=100", "=1")))
    page.reload()
    page.wait_for_selector("#task:not([hidden])")
    assert name_of(page) == "letter-2"  # on the two before it she differs herself
    page = open_as(Role.MANAGER, "/adjudicate")
    assert name_of(page) == "letter-0"
    assert page.locator("#beside").inner_text() == "3 to decide"
    page.keyboard.press("Control+Enter")
    page.wait_for_function("() => document.getElementById('name').textContent === 'letter-1'")
    page.wait_for_selector("quorate-outbox[state=saved]")
    assert reviews(site)[-1]["adjudicates"]


@pytest.mark.parametrize("options", [{"viewport": {"width": 390, "height": 800}}, {"color_scheme": "dark"}])
def test_on_a_phone_and_in_the_dark(open_as: Open, axe: Callable[[Page], list[str]], options: dict[str, Any]) -> None:
    page = open_as(Role.REVIEWER, "/review", **options)
    page.locator("#go").click()
    page.get_by_role("button", name="Accept").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not axe(page)
