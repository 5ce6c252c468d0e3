"""Scripts in whatever people can name or write, tried in a real browser: every page shows them as text.

The content security policy would stop them even so. It is switched off here for all but one test, so that what is seen
to is that they never become part of a page.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from sqlalchemy import Connection, insert, update

from quorate_serve import annotating, auditing, delivering, sessions
from quorate_serve.database import tables
from quorate_serve.documents import add_text
from quorate_serve.live.worker import Follower
from quorate_serve.people import Role
from quorate_serve.settings import ReviewSettings, ServiceSettings
from quorate_serve.webhooks import EventType
from serving import Team, free_port

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

Open = Callable[..., "Page"]
SCRIPT = '<img src=x onerror="window.got = 1">'


def script(where: str) -> str:
    """What would leave a mark in the page that it gets into: as an element, out of an attribute, out of a script."""
    return f"""</script></textarea><img src=x onerror="got=1">'"><b class=got>{where}</b>{{{{7*7}}}}"""


LABELS = (script("label"), "PER")
TEXT = f"Ada {script('text')} met Bob"
HERE = [{"start": 0, "end": 3, "label": LABELS[0]}]
THERE = [{"start": 0, "end": len(TEXT), "label": LABELS[0]}]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A service in which every text is a script: names, documents, labels, notes, tokens, webhooks, files."""
    settings = ServiceSettings(
        tmp_path_factory.mktemp("site"), port=free_port(), labels=LABELS, reviews=ReviewSettings(per_document=2)
    )
    team = Team(settings)
    for role in Role:
        team.ids[role] = team.add(script(f"name of {role.value}"), role)
    second = team.add(script("another reviewer"), Role.REVIEWER)
    crowd = [team.add(script(f"crowd {number}"), None) for number in range(3)]
    numbers: list[int] = []

    def fill(connection: Connection) -> None:
        for number in range(16):
            document = add_text(connection, script(f"document {number}"), TEXT)
            numbers.append(document)
            for person, spans in zip(crowd, (HERE, HERE, THERE), strict=True):
                annotating.import_annotation(connection, person, document, list(spans), None)
        lease = {"person": team.ids[Role.ANNOTATOR], "purpose": "work", "state": "leased", "at": 0.0, "until": 9e9}
        connection.execute(insert(tables.assignments).values(document=numbers[0], **lease))
        save = annotating.Given(uuid.uuid4().hex, numbers[0], HERE, 2.0)
        annotating.save(connection, team.ids[Role.ANNOTATOR], save)
        webhook, _ = delivering.add_webhook(connection, settings.secret(), "https://example.com/", [])
        delivering.enqueue(connection, EventType.TEST, {}, webhook=webhook)
        connection.execute(update(tables.deliveries).values(answer=script("answer")))  # by whoever was asked
        for role in Role:
            sessions.make_token(connection, team.ids[role], script("token"), days=1)

    team.database.change(fill)
    Follower(settings, team.database).refit()
    for person, spans in ((team.ids[Role.REVIEWER], HERE), (second, THERE)):
        reviewer = team.client(person)
        reviewer.post(f"/api/v1/reviews/{numbers[1]}/reveal")
        review = {"id": uuid.uuid4().hex, "document": numbers[1], "spans": spans, "accepted": False}
        answer = reviewer.post("/api/v1/reviews", json={**review, "note": script("note")})
        assert answer.status_code == 200, answer.text
    with team.database.read() as connection:
        drawn = auditing.draw(connection, 10, sequential=False)
    by = team.ids[Role.MANAGER]
    team.database.change(lambda connection: auditing.start(connection, drawn, by=by, sequential=False, proposes=True))
    with team.serving():
        yield team
    team.close()


def harmless(page: Page) -> None:
    """Nothing that somebody wrote is an element of the page, or of a component in it, or has been run."""
    found = page.evaluate(
        """() => {
          const roots = [document], bad = [];
          for (const root of roots)
            for (const element of root.querySelectorAll("*")) {
              if (element.shadowRoot) roots.push(element.shadowRoot);
              if (element.matches(".got, [onerror], [onload], img[src='x']")) bad.push(element.outerHTML);
            }
          return { bad, ran: window.got ?? null };
        }"""
    )
    assert found == {"bad": [], "ran": None}


def shows(page: Page, *parts: str) -> None:
    """The scripts are there to be read: a page without them would show nothing about how it treats them."""
    for part in parts:
        mark = f"<b class=got>{part}</b>{{{{7*7}}}}"
        page.wait_for_function(
            """mark => {
              const texts = [document.body.innerText, ...[...document.querySelectorAll("*")].flatMap((one) =>
                [one.shadowRoot?.textContent, one.value, one.getAttribute("aria-label")])];
              return texts.some((text) => typeof text === "string" && text.includes(mark));
            }""",
            arg=mark,
        )
        harmless(page)


WORKS = "#task:not([hidden])"
PAGES = [
    (Role.ANNOTATOR, "/annotate", WORKS, ("text", "label")),
    (Role.ANNOTATOR, "/annotate/saved", "table", ("document 0",)),
    (Role.ANNOTATOR, "/annotate/{first}", WORKS, ("text", "label", "document 0")),
    (Role.REVIEWER, "/review", WORKS, ("text", "label")),
    (Role.MANAGER, "/adjudicate", WORKS, ("text", "label", "note", "document 1")),
    (Role.MANAGER, "/people", "table", ("name of annotator", "crowd 1")),
    (Role.MANAGER, "/people/{annotator}", "h1", ("name of annotator", "label")),
    (Role.ANNOTATOR, "/people/me", "h1", ("label",)),
    (Role.REVIEWER, "/audit/check", "quorate-spans", ("text", "label")),
    (Role.MANAGER, "/settings", "h1", ("label",)),
    (Role.MANAGER, "/webhooks", "table", ("answer",)),
    (Role.REVIEWER, "/review/decided", "table", ("document 1",)),
    (Role.ADMIN, "/account", "table", ("name of admin", "token")),
]


@pytest.mark.parametrize(("role", "path", "ready", "parts"), PAGES, ids=[page[1] for page in PAGES])
def test_what_people_write_is_shown_as_text(
    site: Team, visit: Open, role: Role, path: str, ready: str, parts: tuple[str, ...]
) -> None:
    with site.database.read() as connection:
        first = connection.exec_driver_sql("SELECT min(number) FROM documents").scalar()
    path = path.format(first=first, annotator=site.ids[Role.ANNOTATOR])
    shows(visit(site, role, path, ready=ready, bypass_csp=True), *parts)


@pytest.mark.parametrize("path", ["/audit", "/progress", "/"])
def test_pages_of_figures_are_harmless_too(site: Team, visit: Open, path: str) -> None:
    page = visit(site, Role.MANAGER, path, ready="h1", bypass_csp=True)
    harmless(page)


def test_what_was_marked_can_be_gone_through_and_taken_over(site: Team, visit: Open) -> None:
    page = visit(site, Role.ADMIN, "/review", ready=WORKS, bypass_csp=True)
    page.get_by_role("button", name="Show the consensus").click()
    page.get_by_role("button", name="Accept").wait_for()
    shows(page, "text", "label")
    page.get_by_role("button", name="Begin with").first.click()
    harmless(page)


def test_the_name_of_a_file_is_shown_as_text(site: Team, visit: Open) -> None:
    page = visit(site, Role.MANAGER, "/settings", ready="h1", bypass_csp=True)
    for content, name in ((b"{", "broken"), (b'{"id": "new", "tokens": ["a"], "annotations": {}}\n', "taken in")):
        page.locator("#file").set_input_files(
            {"name": f"{script(name)}.jsonl".replace("/", "∕"), "mimeType": "text/plain", "buffer": content}
        )
        page.get_by_role("button", name="Import").click()
        page.wait_for_selector(".notice")
        page.wait_for_function("() => document.querySelector('.notice').innerText.length > 0")
        harmless(page)


def test_what_an_address_or_a_form_holds_is_shown_as_text(site: Team, visit: Open) -> None:
    page = visit(site, Role.MANAGER, "/people", ready="h1", bypass_csp=True)
    odd = quote(script("address"), safe="")
    for path in ("people/", "invite/", "", "annotate/", "people?x=", "login?next=/"):
        page.goto(f"{site.settings.address}/{path}{odd}")
        harmless(page)
    page.context.clear_cookies()
    page.goto(f"{site.settings.address}/login?next=/{odd}")
    page.locator("#name").fill(script("typed"))
    page.locator("#password").fill("wrong password")
    page.get_by_role("button", name="Log in").click()
    page.wait_for_selector("[role=alert]")
    shows(page, "typed")


def test_an_invitation_that_is_refused_shows_what_was_typed_as_text(site: Team, visit: Open) -> None:
    token = site.database.change(lambda connection: sessions.invite(connection, Role.ANNOTATOR))
    page = visit(site, Role.ANNOTATOR, f"/invite/{token}", ready="#name", bypass_csp=True)
    page.locator("#name").fill(script("crowd 1"))  # a name that somebody has
    page.locator("#password").fill("correct horse battery")
    page.get_by_role("button", name="Go on").click()
    page.wait_for_selector("[role=alert]")
    shows(page, "crowd 1")


def test_a_script_that_did_get_into_a_page_would_not_be_run(
    site: Team, new_context: Callable[..., BrowserContext]
) -> None:
    for bypass_csp, ran in ((True, 1), (False, None)):
        context = new_context(bypass_csp=bypass_csp)
        page = context.new_page()
        page.goto(f"{site.settings.address}/login")
        failed = "new Promise((done) => document.querySelector('main > img').addEventListener('error', done))"
        page.evaluate(
            f"document.querySelector('main').insertAdjacentHTML('beforeend', {SCRIPT!r}); {failed}.then(() => 0)"
        )
        assert page.evaluate("window.got ?? null") == ran
