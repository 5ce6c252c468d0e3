"""The pages of managers and reviewers in a real browser, against a real service with a consensus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Connection, select

from managing import bring_in, fit, gold, save
from quorate_serve import auditing, delivering, sessions
from quorate_serve.database import tables
from quorate_serve.events import Kind
from quorate_serve.live.worker import Follower
from quorate_serve.people import Role
from quorate_serve.settings import ServiceSettings
from quorate_serve.state import record
from quorate_serve.webhooks import EventType
from serving import Team, free_port

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., "Page"]
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A service with a crowd's labels, an annotator at work, a consensus, and an open audit."""
    team = Team(ServiceSettings(tmp_path_factory.mktemp("site"), port=free_port()))
    bring_in(team)
    right = gold(team)
    for place, number in enumerate(list(right)[:30]):
        save(team, team.ids[Role.ANNOTATOR], number, right[number], seconds=20.0 + place)
    fit(team)
    with team.database.read() as connection:
        drawn = auditing.draw(connection, 12, sequential=False)
    by = team.ids[Role.MANAGER]
    team.database.change(lambda connection: auditing.start(connection, drawn, by=by, sequential=False, proposes=True))
    team.database.change(lambda connection: _set_up(team, connection, next(iter(right))))
    with team.serving():
        yield team
    team.close()


def _set_up(team: Team, connection: Connection, document: int) -> None:
    """A webhook that is told something, an open link, and a decision to take back."""
    id, _ = delivering.add_webhook(connection, team.settings.secret(), "https://example.com/", [])
    delivering.enqueue(connection, EventType.TEST, {"webhook": id}, webhook=id)
    sessions.invite(connection, Role.REVIEWER)
    sessions.invite_by_name(connection, team.settings.secret(), ["Zoë"], Role.ANNOTATOR)
    body = {"spans": [], "accepted": True, "adjudicates": False, "version": None, "disputed": False}
    record(connection, Kind.REVIEW_DECIDED, person=team.ids[Role.REVIEWER], document=document, body=body)


PAGES = [
    ("/people", Role.ADMIN),
    ("/people/{annotator}", Role.ADMIN),
    ("/people/me", Role.ANNOTATOR),
    ("/progress", Role.REVIEWER),
    ("/audit", Role.MANAGER),
    ("/audit/check", Role.REVIEWER),
    ("/settings", Role.MANAGER),
    ("/settings/campaign", Role.MANAGER),
    ("/guidelines", Role.ANNOTATOR),
    ("/webhooks", Role.MANAGER),
    ("/review/decided", Role.REVIEWER),
    ("/account", Role.ANNOTATOR),
]


@pytest.mark.parametrize(("path", "role"), PAGES)
def test_everybody_can_use_it(site: Team, visit: Open, axe: Callable[[Page], list[str]], path: str, role: Role) -> None:
    path = path.format(annotator=site.ids[Role.ANNOTATOR])
    for options in ({}, {"color_scheme": "dark"}, PHONE):
        page = visit(site, role, path, **options)
        assert axe(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= screen.width")
        assert page.locator("h1").count() == 1


def test_a_reviewer_checks_what_is_proposed_by_keys_alone(site: Team, visit: Open) -> None:
    page = visit(site, Role.REVIEWER, "/audit")
    page.get_by_role("link", name="Check the next").press("Enter")
    name = page.locator("h1").inner_text()
    page.wait_for_function("() => document.querySelector('quorate-spans')?.text")
    page.locator("quorate-spans .text").first.press("Control+Enter")
    page.wait_for_function("before => document.querySelector('h1')?.textContent !== before", arg=name)
    assert "1 of 12 checked" in page.locator(".head").inner_text()
    with site.database.read() as connection:
        decided = select(tables.events).where(tables.events.c.kind == "review.decided")
        event = connection.execute(decided.order_by(tables.events.c.seq.desc())).first()
    assert event is not None
    assert event.body["accepted"] is True
    assert event.seconds is not None


def test_progress_follows_without_a_reload(site: Team, visit: Open) -> None:
    page = visit(site, Role.MANAGER, "/progress")
    page.wait_for_function("() => document.getElementById('live').textContent")
    page.evaluate("window.same = true")
    before = page.locator(".figures dd").nth(2).inner_text()
    right = gold(site)
    save(site, site.ids[Role.REVIEWER], next(iter(right)), [])
    Follower(site.settings, site.database).refit()
    page.wait_for_function("before => document.querySelectorAll('.figures dd')[2].innerText !== before", arg=before)
    assert page.evaluate("window.same")


def test_an_invitation_is_copied(site: Team, visit: Open) -> None:
    page = visit(site, Role.MANAGER, "/people", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_label("Invite somebody as").select_option("reviewer")
    page.get_by_role("button", name="Make links").click()
    page.get_by_role("button", name="Copy", exact=True).click()
    page.get_by_role("button", name="Copied").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.locator("#link").inner_text()
    assert link.startswith(f"{site.settings.address}/invite/")
