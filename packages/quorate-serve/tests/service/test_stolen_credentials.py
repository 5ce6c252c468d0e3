"""Somebody has stolen a cookie or a token: how long it lasts, and that it does not become more than it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Connection, select, update

from quorate_serve import passwords, people, sessions
from quorate_serve.database import tables
from quorate_serve.people import Role
from quorate_serve.settings import ServiceSettings
from serving import PASSWORD, Team, free_port

DAY = 86_400.0
WRONG = "guessed wrongly"


@pytest.fixture(scope="module")
def kept() -> str:
    return passwords.hashed(PASSWORD)


@pytest.fixture
def owner(any_team: Team, kept: str) -> str:
    """Somebody with a password, who manages."""
    person = any_team.add("Grace", Role.MANAGER)
    any_team.database.change(lambda connection: people.set_password(connection, person, kept))
    return person


def age(team: Team, seconds: float) -> None:
    """All sessions began longer ago."""
    older = update(tables.sessions).values(created=tables.sessions.c.created - seconds)
    team.database.change(lambda connection: connection.execute(older))


def header(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def is_good(team: Team, token: str) -> bool:
    return team.client().get("/api/v1/people/me", headers=header(token)).status_code == 200


def made(browser: TestClient, **given: Any) -> Any:
    return browser.post("/api/v1/tokens", json={"name": "script", "password": PASSWORD, **given})


# --- a cookie ---------------------------------------------------------------------------------------------------------


def test_a_cookie_makes_no_token_without_the_password(any_team: Team, owner: str) -> None:
    thief = any_team.client(owner)
    for password in ("", WRONG):
        answer = made(thief, password=password)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "reauthenticate")
        page = thief.post("/account/tokens", data={"name": "script", "days": 1, "password": password})
        assert page.status_code == 422
        assert "qt_" not in page.text
        assert "password" in page.text
    assert thief.get("/api/v1/tokens").json() == []
    token = made(thief).json()["token"]
    assert is_good(any_team, token)


def test_guessing_the_password_by_a_cookie_is_slowed_down_as_the_login_is(any_team: Team, owner: str) -> None:
    thief = any_team.client(owner)
    statuses = [made(thief, password=WRONG).status_code for _ in range(6)]
    assert statuses == [403] * 5 + [429]
    assert made(thief).status_code == 429
    assert thief.post("/account/password", data={"before": PASSWORD, "password": "x" * 20}).status_code == 429


@pytest.mark.parametrize("days", [91, 3_650, 1e300])
def test_a_token_ends_within_90_days(any_team: Team, owner: str, days: float) -> None:
    browser = any_team.client(owner)
    refused = made(browser, days=days)
    assert (refused.status_code, "90 days at most" in refused.text) == (422, True)
    assert made(browser, days=-1).status_code == made(browser, days=0).status_code == 422
    token = made(browser).json()["token"]
    (one,) = browser.get("/api/v1/tokens").json()
    assert one["until"] == pytest.approx(time.time() + 90 * DAY, abs=60)
    past = update(tables.tokens).values(until=time.time() - 1)
    any_team.database.change(lambda connection: connection.execute(past))
    assert not is_good(any_team, token)


def test_how_long_a_token_is_good_is_a_setting(tmp_path: Path) -> None:
    team = Team(ServiceSettings(tmp_path, token_days=7))
    try:
        browser = team.client(Role.ANNOTATOR)
        assert made(browser, days=8).status_code == 422
        assert made(browser, days=7).status_code == 200
        assert 'max="7" value="7"' in browser.get("/account").text
    finally:
        team.close()


def test_who_has_no_password_here_makes_a_token_soon_after_a_login(any_team: Team) -> None:
    browser = any_team.client(Role.ANNOTATOR)
    assert made(browser, password="").status_code == 200
    assert 'action="/account/tokens"' in browser.get("/account").text
    age(any_team, 601)
    answer = made(browser, password="anything")
    assert answer.json()["error"]["code"] == "reauthenticate"
    assert "log in again first" in answer.json()["error"]["message"]
    page = browser.get("/account").text
    assert 'action="/account/tokens"' not in page
    assert "/login/oidc?then=/account" in page
    assert browser.post("/account/tokens", data={"name": "x", "days": 1}).status_code == 422


def test_who_has_a_password_is_asked_for_it_also_after_a_login(any_team: Team, owner: str) -> None:
    assert made(any_team.client(owner), password="").status_code == 403


def test_who_has_no_password_here_sets_none_by_a_cookie(any_team: Team) -> None:
    browser = any_team.client(Role.ANNOTATOR)
    answer = browser.post("/account/password", data={"before": "anything", "password": "a new password"})
    assert answer.status_code == 422
    assert "no password" in answer.text


# --- a token ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", Role)
def test_a_token_makes_no_tokens_not_even_with_the_password(any_team: Team, role: Role, kept: str) -> None:
    any_team.database.change(lambda connection: people.set_password(connection, any_team.ids[role], kept))
    program = any_team.client()
    program.headers.update(any_team.token(role))
    assert made(program).status_code == 403
    assert program.post("/account/tokens", data={"name": "x", "days": 1, "password": PASSWORD}).status_code == 403
    assert len(program.get("/api/v1/tokens").json()) == 1


End = Callable[[Team, str], Any]


def by_password(team: Team, person: str) -> Any:
    return team.client(person).post("/account/password", data={"before": PASSWORD, "password": "a new password"})


def by_link(team: Team, person: str) -> Any:
    link = team.database.change(lambda connection: sessions.invite(connection, Role.MANAGER, person))
    return team.client().post(f"/invite/{link}", data={"password": "a new password"})


def by_provider(team: Team, person: str) -> Any:
    secret = team.settings.secret()
    return team.database.change(lambda connection: people.set_subject(connection, secret, person, "https://id grace"))


def by_logout(team: Team, person: str) -> Any:
    return team.client(person).post("/account/logout")


def by_role(team: Team, person: str) -> Any:
    return change(team, person, role=Role.ANNOTATOR)


def by_switching_off(team: Team, person: str) -> Any:
    change(team, person, active=False)
    return change(team, person, active=True)


def by_erasing(team: Team, person: str) -> Any:
    return team.database.change(lambda connection: people.erase(connection, person, by=team.ids[Role.ADMIN]))


def change(team: Team, person: str, **values: Any) -> Any:
    by = team.ids[Role.ADMIN]
    return team.database.change(lambda connection: people.change_person(connection, person, values, by=by))


@pytest.mark.parametrize("end", [by_password, by_link, by_provider, by_logout, by_role, by_switching_off, by_erasing])
def test_all_tokens_and_sessions_end(any_team: Team, owner: str, end: End) -> None:
    browser, other = any_team.client(owner), any_team.client(Role.REVIEWER)
    token, of_other = made(browser).json()["token"], any_team.token(Role.REVIEWER)
    end(any_team, owner)
    assert not is_good(any_team, token)
    assert browser.get("/api/v1/people/me").status_code == 401
    assert other.get("/api/v1/people/me").status_code == 200
    assert any_team.client().get("/api/v1/people/me", headers=of_other).status_code == 200


def test_an_ordinary_logout_leaves_tokens_alone(any_team: Team, owner: str) -> None:
    browser = any_team.client(owner)
    token = made(browser).json()["token"]
    browser.post("/logout")
    assert is_good(any_team, token)


def test_another_cost_ends_nothing(any_team: Team, owner: str) -> None:
    browser = any_team.client(owner)
    token, link = made(browser).json()["token"], browser.post("/api/v1/invitations", json={}).json()["url"]
    form = {"role": "manager", "active": "true", "cost": "2"}
    answer = any_team.client(Role.ADMIN).post(f"/people/{owner}", data=form, follow_redirects=False)
    assert answer.status_code == 303
    assert is_good(any_team, token)
    assert any_team.client().get(path_of(link)).status_code == 200


def test_a_password_that_was_changed_meanwhile_makes_no_token(any_team: Team, owner: str, kept: str) -> None:
    thief = any_team.client(owner)
    is_right = passwords.is_right

    def slowly(attempt: passwords.Attempt, password: str) -> bool:
        found = is_right(attempt, password)
        new = passwords.hashed("a new password")
        any_team.database.change(lambda connection: people.set_password(connection, owner, new))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "is_right", slowly)
        assert made(thief).status_code == 403
    with any_team.database.read() as connection:
        assert connection.execute(select(tables.tokens)).all() == []


def test_a_login_at_the_provider_takes_the_place_of_the_password(any_team: Team, owner: str) -> None:
    by_provider(any_team, owner)
    with any_team.database.read() as connection:
        assert not passwords.has_password(connection, owner)


# --- what would outlive it --------------------------------------------------------------------------------------------


@pytest.fixture
def boss(any_team: Team, kept: str) -> str:
    person = any_team.ids[Role.ADMIN]
    any_team.database.change(lambda connection: people.set_password(connection, person, kept))
    return person


def lasting(team: Team) -> list[tuple[str, str, dict[str, Any]]]:
    """What an admin may do that would leave a thief with more than was stolen."""
    manager, annotator = team.ids[Role.MANAGER], team.ids[Role.ANNOTATOR]
    return [
        ("POST", "/api/v1/invitations", {"role": "manager"}),
        ("POST", "/api/v1/invitations", {"role": "admin"}),
        ("POST", "/api/v1/invitations", {"person": manager}),
        ("PATCH", f"/api/v1/people/{annotator}", {"role": "manager"}),
        ("PATCH", f"/api/v1/people/{manager}", {"role": "admin", "cost": 2}),
    ]


def test_managers_and_admins_are_made_by_who_knows_the_password(any_team: Team, boss: str) -> None:
    thief = any_team.client(boss)
    for method, path, body in lasting(any_team):
        for password in ("", WRONG):
            answer = thief.request(method, path, json={**body, "own_password": password})
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "reauthenticate"), path
        assert thief.request(method, path, json={**body, "own_password": PASSWORD}).status_code == 200, path


def test_nor_do_the_pages_make_them(any_team: Team, boss: str) -> None:
    thief, manager = any_team.client(boss, follow_redirects=False), any_team.ids[Role.MANAGER]
    raised = {"role": "admin", "cost": "1", "active": "true"}
    forms = [("/people", {"role": "admin"}), (f"/people/{manager}/password", {}), (f"/people/{manager}", raised)]
    for path, form in forms:
        answer = thief.post(path, data=form)
        assert answer.status_code in (403, 409), path
        assert "this needs your password again" in answer.text
        assert 'type="password"' in answer.text
        assert thief.post(path, data={**form, "password": PASSWORD}).status_code in (200, 303), path
    assert thief.get(f"/api/v1/people/{manager}").json()["role"] == "admin"


def test_a_token_makes_no_managers_and_admins(any_team: Team, boss: str) -> None:
    headers = any_team.token(boss)
    for method, path, body in lasting(any_team):
        answer = any_team.client().request(method, path, json={**body, "own_password": PASSWORD}, headers=headers)
        assert answer.status_code == 403, path
        assert "a token is not enough" in answer.text
    below = any_team.client().post("/api/v1/invitations", json={"role": "reviewer"}, headers=headers)
    assert below.status_code == 200


def test_nobody_makes_a_link_for_a_new_password_of_their_own(any_team: Team, boss: str) -> None:
    thief = any_team.client(boss)
    for password in ("", PASSWORD):
        answer = thief.post("/api/v1/invitations", json={"person": boss, "own_password": password})
        assert answer.status_code == 403
    assert thief.post(f"/people/{boss}/password", data={"password": PASSWORD}).status_code == 403
    for person in any_team.ids.values():
        offered = f'action="/people/{person}/password"' in thief.get(f"/people/{person}").text
        assert offered is (person != boss)


# --- links ------------------------------------------------------------------------------------------------------------


def path_of(link: str) -> str:
    return "/invite/" + link.rpartition("/")[2]


@pytest.fixture
def links(any_team: Team, owner: str) -> dict[str, str]:
    """A link that the owner made for somebody new, one for a new password, and one that the admin made."""
    boss, browser = any_team.client(Role.ADMIN), any_team.client(owner)
    again = {"person": any_team.ids[Role.ANNOTATOR]}
    return {
        "new": browser.post("/api/v1/invitations", json={"role": "reviewer"}).json()["url"],
        "again": browser.post("/api/v1/invitations", json=again).json()["url"],
        "of another": boss.post("/api/v1/invitations", json={"role": "reviewer"}).json()["url"],
    }


@pytest.mark.parametrize("end", [by_role, by_switching_off, by_erasing])
def test_links_end_with_the_account_or_the_role_of_who_made_them(
    any_team: Team, owner: str, links: dict[str, str], end: End
) -> None:
    assert {one["by"] for one in any_team.client(Role.ADMIN).get("/api/v1/invitations").json()} == {
        owner,
        any_team.ids[Role.ADMIN],
    }
    end(any_team, owner)
    for name, link in links.items():
        expected = 200 if name == "of another" else 404
        assert any_team.client().get(path_of(link)).status_code == expected, name
        joins = any_team.client(follow_redirects=False).post(path_of(link), data={"name": name, "password": PASSWORD})
        assert joins.status_code == (303 if name == "of another" else 404), name


def test_links_outlive_a_new_password_of_who_made_them(any_team: Team, owner: str, links: dict[str, str]) -> None:
    by_password(any_team, owner)
    assert any_team.client().get(path_of(links["new"])).status_code == 200


def test_links_of_the_command_line_end_with_nobody(any_team: Team, owner: str) -> None:
    link = any_team.database.change(lambda connection: sessions.invite(connection, Role.REVIEWER))
    by_erasing(any_team, owner)
    assert any_team.client().get(f"/invite/{link}").status_code == 200


def test_the_page_says_who_made_a_link(any_team: Team, owner: str, links: dict[str, str]) -> None:
    assert "<td>Grace</td>" in any_team.client(Role.ADMIN).get("/people").text


def test_who_was_raised_a_moment_ago_invites_in_no_role_of_before(any_team: Team, owner: str) -> None:
    """A request that was let through before the role changed makes nothing after it."""
    browser, find_person = any_team.client(owner), people.find_person

    def lowered(connection: Connection, person: str) -> people.Person:
        found = find_person(connection, person)
        return replace_role(found, Role.ANNOTATOR) if person == owner else found

    def replace_role(found: people.Person, role: Role) -> people.Person:
        return found._replace(role=role)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(people, "find_person", lowered)
        assert browser.post("/api/v1/invitations", json={"role": "reviewer"}).status_code == 403


def test_a_service_behind_https_gives_tokens_to_programs_too(tmp_path: Path, kept: str) -> None:
    from quorate_serve.client import Client

    team = Team(ServiceSettings(tmp_path, origin="https://labels.example.org"))
    team.settings = replace(team.settings, origin=None, port=free_port())
    try:
        team.database.change(lambda connection: people.set_password(connection, team.ids[Role.ADMIN], kept))
        token = team.token(Role.ADMIN)["Authorization"].removeprefix("Bearer ")
        with team.serving() as address, Client(address, token, attempts=1) as client:
            assert client.make_token("script", password=PASSWORD).token.startswith("qt_")
    finally:
        team.close()
