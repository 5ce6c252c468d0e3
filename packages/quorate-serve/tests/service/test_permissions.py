"""Every route, for everybody: who may ask for it is written down here once more, by hand, and compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastapi.routing import APIRoute
from sqlalchemy import insert, update

from quorate_serve import app as application
from quorate_serve import delivering, people, permissions, sessions
from quorate_serve.app import ROUTERS, create_app
from quorate_serve.database import tables
from quorate_serve.documents import add_text
from quorate_serve.people import Role
from quorate_serve.settings import ServiceSettings
from serving import Team

MARKER = "Xanthippe"  # in what one annotator wrote, and nowhere else
NOBODY, ANNOTATOR, REVIEWER, MANAGER, ADMIN = range(5)

# From whom on each route answers, by hand: who is below is refused.
LEAST = {
    "GET /": ANNOTATOR,
    "GET /login": NOBODY,
    "POST /login": NOBODY,
    "POST /logout": ANNOTATOR,
    "GET /login/oidc": NOBODY,
    "GET /login/oidc/back": NOBODY,
    "GET /invite/{token}": NOBODY,
    "POST /invite/{token}": NOBODY,
    "GET /api/v1/health": NOBODY,
    "GET /api/v1/openapi.json": NOBODY,
    "POST /api/v1/annotations": ANNOTATOR,
    "GET /api/v1/annotations": ANNOTATOR,
    "GET /api/v1/annotations/{document}": ANNOTATOR,
    "POST /api/v1/annotations/{document}/withdraw": ANNOTATOR,
    "POST /api/v1/annotations/{document}/undo": ANNOTATOR,
    "GET /api/v1/annotations/{document}/history": ANNOTATOR,
    "POST /api/v1/queue/next": ANNOTATOR,
    "POST /api/v1/queue/release": ANNOTATOR,
    "GET /api/v1/people/me/data": ANNOTATOR,
    "GET /api/v1/people/{person}": ANNOTATOR,
    "GET /api/v1/tokens": ANNOTATOR,
    "POST /api/v1/tokens": ANNOTATOR,
    "DELETE /api/v1/tokens/{id}": ANNOTATOR,
    "GET /api/v1/live": ANNOTATOR,
    "GET /annotate": ANNOTATOR,
    "GET /annotate/saved": ANNOTATOR,
    "GET /guidelines": ANNOTATOR,
    "GET /annotate/{document}": ANNOTATOR,
    "GET /people/me": ANNOTATOR,
    "GET /account": ANNOTATOR,
    "POST /account/tokens": ANNOTATOR,
    "POST /account/tokens/{id}/end": ANNOTATOR,
    "POST /account/password": ANNOTATOR,
    "POST /account/logout": ANNOTATOR,
    "GET /review": REVIEWER,
    "GET /review/decided": REVIEWER,
    "POST /review/{document}/withdraw": REVIEWER,
    "GET /adjudicate": REVIEWER,
    "GET /audit": REVIEWER,
    "GET /audit/check": REVIEWER,
    "GET /progress": REVIEWER,
    "GET /api/v1/audits": REVIEWER,
    "GET /api/v1/audits/{id}/next": REVIEWER,
    "POST /api/v1/audits/{id}/checks": REVIEWER,
    "GET /api/v1/reviews": REVIEWER,
    "GET /api/v1/reviews/next": REVIEWER,
    "GET /api/v1/reviews/{document}": REVIEWER,
    "POST /api/v1/reviews": REVIEWER,
    "POST /api/v1/reviews/{document}/reveal": REVIEWER,
    "POST /api/v1/reviews/{document}/release": REVIEWER,
    "POST /api/v1/reviews/{document}/withdraw": REVIEWER,
    "GET /api/v1/disputes": REVIEWER,
    "GET /api/v1/documents": REVIEWER,
    "GET /api/v1/documents/{number}": REVIEWER,
    "GET /api/v1/consensus": REVIEWER,
    "GET /api/v1/consensus/{document}": REVIEWER,
    "GET /api/v1/progress": REVIEWER,
    "GET /api/v1/documents/{number}/history": MANAGER,
    "POST /audit": MANAGER,
    "POST /audit/{id}/more": MANAGER,
    "POST /audit/{id}/end": MANAGER,
    "POST /api/v1/audits": MANAGER,
    "POST /api/v1/audits/{id}/more": MANAGER,
    "POST /api/v1/audits/{id}/end": MANAGER,
    "GET /people": MANAGER,
    "POST /people": MANAGER,
    "GET /people/{person}": MANAGER,
    "POST /people/{person}": MANAGER,
    "POST /people/{person}/password": MANAGER,
    "GET /setup": MANAGER,
    "POST /setup": MANAGER,
    "GET /settings/campaign": MANAGER,
    "POST /settings/campaign": MANAGER,
    "GET /settings": MANAGER,
    "POST /settings/import": MANAGER,
    "POST /api/v1/documents": MANAGER,
    "POST /api/v1/import": MANAGER,
    "GET /api/v1/export": MANAGER,
    "GET /api/v1/people": MANAGER,
    "PATCH /api/v1/people/{person}": MANAGER,
    "POST /api/v1/invitations": MANAGER,
    "GET /api/v1/invitations": MANAGER,
    "DELETE /api/v1/invitations/{id}": MANAGER,
    "POST /people/invitations/{id}/revoke": MANAGER,
    "GET /webhooks": MANAGER,
    "POST /webhooks": MANAGER,
    "POST /webhooks/{id}/switch": MANAGER,
    "POST /webhooks/{id}/secret": MANAGER,
    "POST /webhooks/{id}/try": MANAGER,
    "POST /webhooks/{id}/remove": MANAGER,
    "GET /api/v1/webhooks": MANAGER,
    "POST /api/v1/webhooks": MANAGER,
    "PATCH /api/v1/webhooks/{id}": MANAGER,
    "POST /api/v1/webhooks/{id}/secret": MANAGER,
    "DELETE /api/v1/webhooks/{id}": MANAGER,
    "GET /api/v1/webhooks/{id}/deliveries": MANAGER,
    "POST /api/v1/webhooks/{id}/test": MANAGER,
    "POST /people/{person}/erase": ADMIN,
    "POST /api/v1/people/{person}/erase": ADMIN,
}
BLIND = {"GET /api/v1/consensus", "GET /api/v1/consensus/{document}"}  # to reviewers, before they have looked
BY_BROWSER = {"POST /api/v1/tokens", "POST /account/tokens"}  # no token is good for these, whoever has it
ENDLESS = "GET /api/v1/live"  # a stream: for those who may have it, tested by itself
ROLES = {ANNOTATOR: Role.ANNOTATOR, REVIEWER: Role.REVIEWER, MANAGER: Role.MANAGER, ADMIN: Role.ADMIN}


class Work(NamedTuple):
    """What there is to be read: of one annotator, who is not the one that asks."""

    document: int
    other: str
    webhook: str


@pytest.fixture
def team(any_team: Team) -> Team:
    return any_team


@pytest.fixture
def work(team: Team) -> Work:
    other = team.add("Olympe", Role.ANNOTATOR)

    def make(connection: Any) -> tuple[int, str]:
        number = add_text(connection, "secret-letter", f"{MARKER} wrote to Ada")
        lease = {"purpose": "work", "state": "leased", "at": 0.0, "until": 9e9}
        connection.execute(insert(tables.assignments).values(document=number, person=other, **lease))
        return number, delivering.add_webhook(connection, team.settings.secret(), "https://example.com/", [])[0]

    number, webhook = team.database.change(make)
    spans = [{"start": 0, "end": len(MARKER), "label": "PER"}]
    saved = team.client(other).post(
        "/api/v1/annotations", json={"id": "olympe-saves", "document": number, "spans": spans}
    )
    assert saved.status_code == 200, saved.text
    return Work(number, other, webhook)


def asked(route: str, work: Work) -> tuple[str, str]:
    method, path = route.split(" ")
    names = {"document": work.document, "number": work.document, "person": work.other}
    return method, path.format(id=work.webhook, token="guessed", **names)


def test_every_route_is_in_the_table_of_this_test() -> None:
    routes = [route for router in ROUTERS for route in router.routes]
    assert all(isinstance(route, APIRoute) for route in routes)
    there = {f"{method} {route.path}" for route in routes for method in route.methods}  # type: ignore[attr-defined]
    assert there == set(LEAST)


def refusals(team: Team, work: Work) -> Iterator[tuple[str, int, bool, int]]:
    """What each gets of each route: the route, who, whether by a token, and the status."""
    for route, least in LEAST.items():
        method, path = asked(route, work)
        for who in range(NOBODY, least):
            role = ROLES.get(who)
            browser = team.client(role, follow_redirects=False)
            yield route, who, False, browser.request(method, path, json={}).status_code
            if role is not None:
                told = team.token(role)
                yield route, who, True, team.client().request(method, path, headers=told, json={}).status_code


def test_who_is_below_is_refused_whatever_they_send(team: Team, work: Work) -> None:
    for route, who, by_token, status in refusals(team, work):
        is_page = " /api/" not in route
        expected = (303 if is_page else 401) if who == NOBODY else 403
        if is_page and who == NOBODY and route.startswith("POST"):
            expected = 303
        assert status == expected, (route, who, by_token)


def test_who_may_is_let_through(team: Team, work: Work) -> None:
    for route, least in LEAST.items():
        if route in (ENDLESS, "POST /logout", "POST /account/logout"):
            continue
        method, path = asked(route, work)
        for who in range(max(least, ANNOTATOR), ADMIN + 1):
            headers = team.token(ROLES[who])
            status = team.client().request(method, path, headers=headers, json={}).status_code
            assert status not in (401, 500), (route, who)
            if route in BY_BROWSER:
                assert status == 403, (route, who)
                status = team.client(ROLES[who]).request(method, path, json={}).status_code
            # who may ask may still find nothing there for them, or send nothing that makes sense
            refused_by_content = "/login" in path or "/release" in path or "/reviews" in path
            is_blind = who == REVIEWER and route in BLIND
            assert (status == 403) is is_blind or refused_by_content, (route, who)


@pytest.mark.parametrize("whose", [None, Role.ADMIN])
def test_a_link_is_neither_a_cookie_nor_a_token(team: Team, work: Work, whose: Role | None) -> None:
    person = None if whose is None else team.ids[whose]
    link = team.database.change(lambda connection: sessions.invite(connection, Role.ADMIN, person))
    stranger = team.client(follow_redirects=False)
    stranger.cookies.set(team.settings.session_cookie, link)
    for route, least in LEAST.items():
        method, path = asked(route, work)
        expected = 401 if path.startswith("/api/") else 303
        for headers in ({}, {"Authorization": f"Bearer {link}"}):
            if least != NOBODY:
                assert stranger.request(method, path, json={}, headers=headers).status_code == expected, route


@pytest.mark.parametrize("what", ["inactive", "erased", "no role"])
def test_who_was_let_in_no_more_gets_nothing(team: Team, work: Work, what: str) -> None:
    gone = team.add("Gone", Role.ADMIN)
    browser, headers = team.client(gone, follow_redirects=False), team.token(gone)

    def end(connection: Any) -> None:
        if what == "erased":
            people.erase(connection, gone, by=gone)
        values: dict[str, Any] = {"active": False} if what == "inactive" else {"role": None}
        connection.execute(update(tables.people).where(tables.people.c.id == gone).values(**values))

    team.database.change(end)
    for route, least in LEAST.items():
        if least == NOBODY:
            continue
        method, path = asked(route, work)
        expected = 401 if path.startswith("/api/") else 303
        assert browser.request(method, path, json={}).status_code == expected, route
        assert team.client().request(method, path, headers=headers, json={}).status_code in (401, 200), route


def test_no_annotator_reads_anothers_work_by_any_route(team: Team, work: Work) -> None:
    ann = team.client(Role.ANNOTATOR)
    for route in LEAST:
        method, path = asked(route, work)
        if method != "GET" or route == ENDLESS:
            continue
        for query in ("", "?after=0", f"?after={work.document - 1}", f"?person={work.other}", "?names=true"):
            answer = ann.get(path + query)
            assert MARKER not in answer.text, route
            assert "secret-letter" not in answer.text, route
            assert work.other not in answer.text.replace(f"nobody is called {work.other}", ""), route
    for action in ("withdraw", "undo"):
        answer = ann.post(f"/api/v1/annotations/{work.document}/{action}", json={"id": "not-my-work"})
        assert answer.status_code == 404
    stolen = {"id": "olympe-saves", "document": work.document, "spans": []}
    assert ann.post("/api/v1/annotations", json=stolen).status_code in (403, 409)
    assert MARKER in team.client(work.other).get(f"/api/v1/annotations/{work.document}").text


def test_tokens_of_others_are_neither_seen_nor_ended(team: Team, work: Work) -> None:
    id, _ = team.database.change(lambda connection: sessions.make_token(connection, work.other, "hers", days=1))
    for role in Role:
        browser = team.client(role)
        assert id not in browser.get("/api/v1/tokens").text
        assert browser.delete(f"/api/v1/tokens/{id}").status_code == 404
    assert team.client(work.other).delete(f"/api/v1/tokens/{id}").status_code == 204


def test_a_manager_is_not_made_an_admin_by_a_manager(team: Team) -> None:
    manager = team.client(Role.MANAGER)
    for person in (team.ids[Role.MANAGER], team.ids[Role.ADMIN]):
        assert manager.patch(f"/api/v1/people/{person}", json={"role": "annotator"}).status_code == 403
    assert manager.patch(f"/api/v1/people/{team.ids[Role.ANNOTATOR]}", json={"role": "admin"}).status_code == 403
    assert manager.post("/api/v1/invitations", json={"role": "admin"}).status_code == 403
    assert manager.post("/api/v1/invitations", json={"person": team.ids[Role.ADMIN]}).status_code == 403


def test_an_application_with_a_route_without_a_rule_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(permissions.ROUTES, "export_annotations")
    with pytest.raises(RuntimeError, match="export_annotations"):
        create_app(ServiceSettings(tmp_path))
    monkeypatch.setattr(application, "ROUTERS", ())
    with pytest.raises(RuntimeError, match="routes and permissions differ"):
        create_app(ServiceSettings(tmp_path))


def test_what_is_kept_about_somebody_is_theirs_alone_to_take(team: Team, work: Work) -> None:
    data = team.client(work.other).get("/api/v1/people/me/data").json()
    assert data["person"]["name"] == "Olympe"
    assert [one["spans"][0]["end"] for one in data["annotations"]] == [len(MARKER)]
    assert "annotation.saved" in [event["kind"] for event in data["events"]]
    assert team.client(Role.ADMIN).get("/api/v1/people/me/data").json()["annotations"] == []
