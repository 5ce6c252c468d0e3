"""What a person saves is kept in the browser until the service has acknowledged it, whatever happens in between."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from quorate_serve.people import Role
from save_server import SaveServer
from service_pages import Open, page_of
from serving import Team

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

ADA, BOB = "p_00000000000000ad", "p_000000000000000b"
SAVE = """async (body) => (await import("/static/outbox.js")).outbox.save("/api/v1/annotations", body)"""
LISTEN = """async () => {
  const { outbox } = await import("/static/outbox.js");
  window.told = [];
  for (const kind of ["saved", "refused"])
    outbox.addEventListener(kind, ({ detail }) => window.told.push([kind, detail.id]));
}"""
KEPT = """(person) => new Promise((done) => {
  const opening = indexedDB.open(`quorate-outbox-${person}`);
  opening.onsuccess = () => {
    const asked = opening.result.transaction("saves").objectStore("saves").getAll();
    asked.onsuccess = () => { opening.result.close(); done(asked.result.map(({ id }) => id)); };
  };
})"""
CONFLICT = (409, {"error": {"code": "conflict", "message": "somebody has decided this document: look at it again"}})


def save(page: Page, document: int = 1, **more: Any) -> str:
    """Save something; returns its id."""
    return str(page.evaluate(SAVE, {"document": document, "spans": [], **more}))


def kept(page: Page, person: str = ADA) -> list[str]:
    return list(page.evaluate(KEPT, person))


def until(page: Page, state: str) -> None:
    page.wait_for_selector(f'quorate-outbox[state="{state}"]')


def said(page: Page) -> str:
    return page.locator("quorate-outbox .state").inner_text()


def test_a_save_is_sent_once_with_an_id_and_then_let_go(open_page: Open, server: SaveServer) -> None:
    page = open_page()
    page.evaluate(LISTEN)
    id = save(page, document=12, spans=[{"start": 0, "end": 3, "label": "PER"}], seconds=4.5)
    page.wait_for_function("() => window.told.length")
    body, headers = server.received[0]
    assert body == {"id": id, "document": 12, "spans": [{"start": 0, "end": 3, "label": "PER"}], "seconds": 4.5}
    assert uuid.UUID(id).version == 4
    assert headers["x-csrf-token"] == f"token of {ADA}"
    assert page.evaluate("() => window.told") == [["saved", id]]
    until(page, "saved")
    assert said(page) == "Saved"
    assert kept(page) == []
    assert len(server.received) == 1


def test_it_is_kept_before_it_is_sent(open_page: Open, server: SaveServer) -> None:
    page = open_page()
    server.delay = 1.0
    id = save(page)
    assert kept(page) == [id]
    assert server.received == []
    assert said(page) == "Saving…"
    until(page, "saved")


@pytest.mark.parametrize("trouble", [(500, {}), (503, {}), (429, {}), (200, "<h1>Welcome to this hotel</h1>")])
def test_after_trouble_the_same_id_is_sent_again(open_page: Open, server: SaveServer, trouble: tuple[int, Any]) -> None:
    page = open_page()
    acknowledged, server.usual = server.usual, trouble
    id = save(page)
    until(page, "away")
    assert said(page) == "Not reachable: 1 kept here, trying again"
    assert kept(page) == [id]
    tries = len(server.saved)
    server.usual = acknowledged
    until(page, "saved")
    assert {body["id"] for body in server.saved} == {id}
    assert len(server.saved) > tries


def test_offline_and_back(open_page: Open, server: SaveServer, new_context: Callable[..., BrowserContext]) -> None:
    context = new_context()
    page = open_page(context=context)
    context.set_offline(True)
    ids = [save(page), save(page)]
    until(page, "offline")
    assert said(page) == "Offline: 2 kept here"
    assert kept(page) == ids
    context.set_offline(False)
    until(page, "saved")
    assert [body["id"] for body in server.saved] == ids


def test_a_server_that_was_killed_and_came_back(open_page: Open, server: SaveServer) -> None:
    page = open_page()
    server.stop()
    ids = [save(page, document) for document in (1, 2, 1)]
    until(page, "away")
    assert kept(page) == ids
    server.start()
    until(page, "saved")
    assert [body["id"] for body in server.saved] == ids


def test_whoever_works_on_while_the_service_is_away_does_not_wait_longer_for_that(
    open_page: Open, server: SaveServer
) -> None:
    page = open_page()
    server.stop()
    ids = [save(page, document) for document in range(10)]
    until(page, "away")
    server.start()
    until(page, "saved")
    assert [body["id"] for body in server.saved] == ids


@pytest.mark.parametrize("closed", [False, True])
def test_what_was_not_sent_survives_a_reload_and_closing(
    open_page: Open, server: SaveServer, new_context: Callable[..., BrowserContext], closed: bool
) -> None:
    context = new_context()
    page = open_page(context=context)
    acknowledged, server.usual = server.usual, (500, {})
    first, second = save(page, 1), save(page, 2)
    until(page, "away")
    server.usual = acknowledged
    if closed:
        page.close()
        page = open_page(context=context)
    else:
        page.reload()
    until(page, "saved")
    assert {body["id"] for body in server.saved} == {first, second}
    assert kept(page) == []


def test_the_next_person_neither_sees_nor_sends_it(
    open_page: Open, server: SaveServer, new_context: Callable[..., BrowserContext]
) -> None:
    server.pages["/bob"] = page_of(BOB)
    context = new_context()
    page = open_page(context=context)
    acknowledged, server.usual = server.usual, (500, {})
    ada = save(page)
    until(page, "away")
    page.close()
    server.usual = acknowledged
    server.received.clear()
    page = open_page("/bob", context=context)
    until(page, "saved")
    assert said(page) == "Saved"
    bob = save(page)
    page.wait_for_timeout(700)
    until(page, "saved")
    assert [(body["id"], headers["x-csrf-token"]) for body, headers in server.received] == [(bob, f"token of {BOB}")]
    assert kept(page, ADA) == [ada]
    page.close()
    page = open_page(context=context)
    until(page, "saved")
    assert server.received[-1][0]["id"] == ada
    assert server.received[-1][1]["x-csrf-token"] == f"token of {ADA}"


def test_two_tabs_send_each_save_once_and_both_are_told(
    open_page: Open, server: SaveServer, new_context: Callable[..., BrowserContext]
) -> None:
    context = new_context()
    one, other = open_page(context=context), open_page(context=context)
    server.delay = 0.1
    for page in (one, other):
        page.evaluate(LISTEN)
    ids = [save(page) for page in (one, other) * 3]
    for page in (one, other):
        page.wait_for_function("() => window.told.length === 6")
        until(page, "saved")
        assert sorted(id for _, id in page.evaluate("() => window.told")) == sorted(ids)
    assert [body["id"] for body in server.saved] == ids


def test_a_document_waits_for_its_own_earlier_save_and_holds_up_no_other(open_page: Open, server: SaveServer) -> None:
    page = open_page()
    server.stop()
    first, second, other = save(page, 1), save(page, 1), save(page, 2)
    until(page, "away")
    server.answers = [lambda body: (500, {})]
    server.start()
    until(page, "saved")
    assert [body["id"] for body in server.saved] == [first, other, first, second]


def test_what_is_refused_stays_visible_until_it_is_discarded(open_page: Open, server: SaveServer) -> None:
    page = open_page()
    server.answers = [CONFLICT]
    id, later = save(page, 7, spans=[{"start": 0, "end": 1, "label": "<b>"}]), save(page, 7)
    until(page, "refused")
    page.wait_for_function(f"async () => (await ({KEPT})('{ADA}')).length === 1")
    page.reload()
    until(page, "refused")
    assert said(page) == "Refused: somebody has decided this document: look at it again"
    page.wait_for_timeout(700)
    assert [body["id"] for body in server.saved] == [id, later]  # never again by itself
    page.get_by_text("What was refused").click()
    assert "Document 7, 1 span: somebody has decided" in page.locator(".refusals").inner_text()
    page.get_by_role("button", name="Discard").click()
    assert kept(page) == [id]
    page.get_by_role("button", name="Really discard it?").click()
    until(page, "saved")
    assert kept(page) == []


@pytest.mark.parametrize("status", [400, 403, 404, 409, 413, 422])
def test_refusals_are_final_and_can_be_tried_again_by_hand(open_page: Open, server: SaveServer, status: int) -> None:
    page = open_page()
    page.evaluate(LISTEN)
    server.answers = [(status, {"error": {"code": "no", "message": f"no: {status}"}})]
    id = save(page)
    until(page, "refused")
    assert said(page) == f"Refused: no: {status}"
    page.get_by_text("What was refused").click()
    page.get_by_role("button", name="Try again").click()
    until(page, "saved")
    assert page.evaluate("() => window.told") == [["refused", id], ["saved", id]]


@pytest.mark.parametrize(
    "answer",
    [
        (401, {"error": {"code": "login", "message": "log in"}}),
        (302, "to a page to log in at"),
        (403, {"error": {"code": "csrf", "message": "this page is of another session"}}),
    ],
)
def test_who_has_to_log_in_again_loses_nothing(open_page: Open, server: SaveServer, answer: tuple[int, Any]) -> None:
    page = open_page()
    acknowledged, server.usual = server.usual, answer
    server.pages["/login"] = page_of()
    id = save(page)
    until(page, "login")
    assert said(page) == "Log in again: 1 kept here"
    assert kept(page) == [id]
    server.usual = acknowledged
    page.get_by_role("link", name="Log in").click()
    page.wait_for_url("**/login?next=%2F")
    until(page, "saved")
    assert {body["id"] for body in server.saved} == {id}
    assert len(server.saved) >= 2


def test_the_service_calls_a_page_of_another_session_what_the_browser_waits_for(team: Team) -> None:
    browser = team.client(Role.ANNOTATOR)
    browser.headers["X-CSRF-Token"] = "of another session"
    answer = browser.post("/api/v1/annotations", json={"id": str(uuid.uuid4()), "document": 1, "spans": []})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "csrf")


def test_an_insecure_origin_has_neither_random_ids_nor_locks(open_page: Open, server: SaveServer) -> None:
    page = open_page(
        script="""Object.defineProperty(crypto, "randomUUID", { value: undefined });
                  Object.defineProperty(Navigator.prototype, "locks", { value: undefined });"""
    )
    ids = {save(page) for _ in range(5)}
    until(page, "saved")
    assert len(ids) == 5
    assert all(uuid.UUID(id).version == 4 and str(uuid.UUID(id)) == id for id in ids)
    assert {body["id"] for body in server.saved} == ids


def test_a_browser_that_keeps_nothing_says_so_and_sends_all_the_same(open_page: Open, server: SaveServer) -> None:
    page = open_page(script="""IDBFactory.prototype.open = () => { throw new DOMException("no", "SecurityError"); };""")
    acknowledged, server.usual = server.usual, (500, {})
    id = save(page)
    until(page, "unkept")
    assert said(page) == "Not saved yet: leave this page open"
    server.usual = acknowledged
    until(page, "saved")
    assert {body["id"] for body in server.saved} == {id}


def test_nobody_logged_in_saves_nothing(open_page: Open, server: SaveServer) -> None:
    server.pages["/"] = page_of("")
    page = open_page()
    assert said(page) == ""
    assert page.evaluate(SAVE.replace(", body)", ", body).catch(String)"), {"document": 1}) == (
        "Error: nobody is logged in: nothing can be saved"
    )


def test_the_page_hears_what_the_service_says_by_itself(open_page: Open, server: SaveServer) -> None:
    page = open_page()
    server.events = [
        'retry: 50\nevent: progress\ndata: {"done": 1}\n\n',
        'event: consensus\ndata: {"version": 2}\n\nevent: queue\ndata: {"left": 3}\n\n',
    ]
    page.evaluate(
        """async () => {
          window.heard = [];
          for (const kind of ["progress", "consensus", "queue", "live"])
            document.addEventListener(`quorate:${kind}`, ({ detail }) => window.heard.push([kind, detail]));
          (await import("/static/live.js")).follow();
        }"""
    )
    page.wait_for_function("() => window.heard.length >= 6")
    heard = page.evaluate("() => window.heard")
    assert [one for one in heard if one[0] != "live"] == [
        ["progress", {"done": 1}],
        ["consensus", {"version": 2}],
        ["queue", {"left": 3}],
    ]
    assert heard[0] == ["live", True]
    assert page.locator("body").inner_text().count("progress") == 0
