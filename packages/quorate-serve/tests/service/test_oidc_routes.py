"""Coming in by a provider of logins, from the first page to the last: the routes, with a provider that runs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select, update

from oidc_provider import CLIENT, SECRET, OidcProvider, oidc_provider
from quorate_serve import people, sessions
from quorate_serve.database import tables
from quorate_serve.people import Role
from quorate_serve.settings import ServiceSettings
from serving import Team

BACK = "/login/oidc/back"


@pytest.fixture(scope="module")
def server() -> Iterator[OidcProvider]:
    with oidc_provider() as running:
        yield running


@pytest.fixture
def make(server: OidcProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Team]]:
    """A service whose people may log in at the provider, which is honest again after each test."""
    issuer = server.issuer
    OidcProvider.__init__(server)
    server.issuer, server.now = issuer, time.time()
    monkeypatch.setenv("QUORATE_OIDC_SECRET", SECRET)
    made: list[Team] = []

    def go(**options: Any) -> Team:
        oidc = {"issuer": issuer, "client": CLIENT, **options.pop("oidc", {})}
        made.append(Team(ServiceSettings(tmp_path / str(len(made)), oidc=oidc, **options)))
        server.redirect = f"{made[-1].settings.address}{BACK}"
        return made[-1]

    yield go
    for team in made:
        team.close()


@pytest.fixture
def team(make: Callable[..., Team]) -> Team:
    """One that everybody of example.com may join, and whose editors review."""
    return make(oidc={"domains": "example.com", "roles": "editors=reviewer"})


def begin(browser: TestClient, theirs: OidcProvider, then: str = "/") -> dict[str, str]:
    """Click on the link of the page; what the provider sends the browser back with."""
    there = browser.get("/login/oidc", params={"then": then})
    assert there.status_code == 303
    return theirs.log_in(there.headers["location"])


def log_in(browser: TestClient, theirs: OidcProvider, then: str = "/") -> Any:
    return browser.get(BACK, params=begin(browser, theirs, then))


def browser_of(team: Team) -> TestClient:
    return team.client(follow_redirects=False)


def me(browser: TestClient) -> dict[str, Any]:
    answer = browser.get("/api/v1/people/me")
    assert answer.status_code == 200
    return dict(answer.json())


def is_nobody(browser: TestClient) -> bool:
    return browser.get("/api/v1/people/me").status_code == 401


def everybody(team: Team) -> int:
    with team.database.read() as connection:
        return len(people.people_of(connection))


def test_the_pages_offer_it_where_there_is_a_provider(team: Team, tmp_path: Path) -> None:
    assert "/login/oidc?then=" in browser_of(team).get("/login").text
    other = Team(ServiceSettings(tmp_path / "other"))
    try:
        assert "/login/oidc" not in browser_of(other).get("/login").text
        assert browser_of(other).get("/login/oidc").status_code == 404
        assert browser_of(other).get(BACK).status_code == 404
    finally:
        other.close()


def test_somebody_of_the_organisation_joins_and_comes_back_as_the_same(team: Team, server: OidcProvider) -> None:
    browser = browser_of(team)
    answer = log_in(browser, server, "/annotate?x=1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/annotate?x=1")
    first = me(browser)
    assert (first["name"], first["role"]) == ("Ada Łovelace", "annotator")
    count = everybody(team)
    again = browser_of(team)
    server.claims["name"] = "Ada King"
    log_in(again, server)
    assert me(again)["id"] == first["id"]
    assert everybody(team) == count


def test_nothing_of_the_login_stays_in_the_browser_but_a_session_of_its_own(team: Team, server: OidcProvider) -> None:
    browser, settings = browser_of(team), team.settings
    browser.cookies.set(settings.session_cookie, "planted-by-mallory")
    answer = log_in(browser, server)
    told = {line.partition("=")[0]: line.lower() for line in answer.headers.get_list("set-cookie")}
    assert set(told) == {settings.session_cookie, settings.login_cookie}
    assert "max-age=0" in told[settings.login_cookie]
    assert all("httponly" in line and "samesite=lax" in line for line in told.values())
    assert "planted-by-mallory" not in told[settings.session_cookie]


def test_a_stranger_gets_no_account(make: Callable[..., Team], server: OidcProvider) -> None:
    for domains in ("", "example.org"):
        team = make(oidc={"domains": domains})
        browser, before = browser_of(team), everybody(team)
        answer = log_in(browser, server)
        assert answer.status_code == 403
        assert "you have no account here" in answer.text
        assert is_nobody(browser)
        assert everybody(team) == before


def test_nor_does_one_whose_email_nobody_has_verified(team: Team, server: OidcProvider) -> None:
    server.claims["email_verified"] = False
    assert log_in(browser_of(team), server).status_code == 403


def test_a_group_at_the_provider_gives_a_role_when_somebody_joins_and_not_later(
    team: Team, server: OidcProvider
) -> None:
    browser = browser_of(team)
    server.claims["groups"] = ["editors"]
    log_in(browser, server)
    person = me(browser)
    assert person["role"] == "reviewer"
    change, manager = {"role": Role.ANNOTATOR}, team.ids[Role.MANAGER]
    team.database.change(lambda connection: people.change_person(connection, person["id"], change, by=manager))
    again = browser_of(team)
    log_in(again, server)
    assert me(again)["role"] == "annotator"  # what a manager decided here stands


def test_an_invitation_is_used_by_logging_in_at_the_provider(make: Callable[..., Team], server: OidcProvider) -> None:
    team = make()
    link = f"/invite/{team.database.change(lambda connection: sessions.invite(connection, Role.MANAGER))}"
    browser = browser_of(team)
    assert f"/login/oidc?then={link}" in browser.get(link).text
    answer = log_in(browser, server, link)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert me(browser)["role"] == "manager"
    server.claims |= {"sub": "eve-3", "email": "eve@example.com"}
    late = browser_of(team)
    assert log_in(late, server, link).status_code == 403  # it was good once
    assert is_nobody(late)


def test_a_link_for_a_new_password_gives_an_account_to_who_logs_in_with_it(team: Team, server: OidcProvider) -> None:
    person = team.ids[Role.REVIEWER]
    token = team.database.change(lambda connection: sessions.invite(connection, Role.REVIEWER, person))
    log_in(browser_of(team), server, f"/invite/{token}")
    later = browser_of(team)
    log_in(later, server)
    assert me(later)["id"] == person


def test_a_token_takes_a_login_of_the_last_ten_minutes(team: Team, server: OidcProvider) -> None:
    browser = browser_of(team)
    log_in(browser, server)
    form = {"name": "script", "days": "1", "csrf": csrf_of(browser)}
    assert "qt_" in browser.post("/account/tokens", data=form).text
    older = update(tables.sessions).values(created=time.time() - 601)
    team.database.change(lambda connection: connection.execute(older))
    page = browser.get("/account").text
    assert 'action="/account/tokens"' not in page
    assert 'href="/login/oidc?then=/account"' in page
    refused = browser.post("/account/tokens", data=form)
    assert refused.status_code == 422
    assert "log in again first" in refused.text
    answer = log_in(browser, server, "/account")
    assert answer.headers["location"] == "/account"
    assert "qt_" in browser.post("/account/tokens", data={**form, "csrf": csrf_of(browser)}).text


def csrf_of(browser: TestClient) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', browser.get("/account").text)
    assert found is not None
    return found[1]


def test_who_chooses_the_provider_by_a_link_ends_what_the_password_opened(team: Team, server: OidcProvider) -> None:
    person = team.ids[Role.REVIEWER]
    thief, stolen = team.client(person), team.token(person)
    token = team.database.change(lambda connection: sessions.invite(connection, Role.REVIEWER, person))
    browser = browser_of(team)
    log_in(browser, server, f"/invite/{token}")
    assert me(browser)["id"] == person
    assert is_nobody(thief)
    assert team.client().get("/api/v1/people/me", headers=stolen).status_code == 401


def test_nobody_is_taken_for_somebody_by_name_or_email(team: Team, server: OidcProvider) -> None:
    server.claims["name"] = "admin"  # as somebody is called here
    browser = browser_of(team)
    log_in(browser, server)
    assert me(browser)["id"] not in team.ids.values()
    assert me(browser)["role"] == "annotator"
    server.claims |= {"sub": "somebody-else"}  # with the same name and e-mail
    other = browser_of(team)
    assert log_in(other, server).status_code == 403
    assert is_nobody(other)


def test_whose_account_is_switched_off_stays_out(team: Team, server: OidcProvider) -> None:
    browser = browser_of(team)
    log_in(browser, server)
    off = tables.people.update().where(tables.people.c.id == me(browser)["id"]).values(active=False)
    team.database.change(lambda connection: connection.execute(off))
    again = browser_of(team)
    answer = log_in(again, server)
    assert answer.status_code == 403
    assert "switched off" in answer.text
    assert is_nobody(again)


def test_one_person_s_answer_is_of_no_use_in_the_browser_of_another(team: Team, server: OidcProvider) -> None:
    ada, mallory = browser_of(team), browser_of(team)
    begin(ada, server)
    stolen = begin(mallory, server)
    answer = ada.get(BACK, params=stolen)  # Ada follows a link that Mallory made, to be logged in as Mallory
    assert answer.status_code == 403
    assert is_nobody(ada)
    nobody = browser_of(team)
    assert nobody.get(BACK, params=begin(browser_of(team), server)).status_code == 403
    assert is_nobody(nobody)


def test_an_answer_is_good_once(team: Team, server: OidcProvider) -> None:
    browser = browser_of(team)
    answered = begin(browser, server)
    kept = browser.cookies.get(team.settings.login_cookie)
    assert kept is not None
    assert browser.get(BACK, params=answered).status_code == 303
    other = browser_of(team)
    other.cookies.set(team.settings.login_cookie, kept)
    assert other.get(BACK, params=answered).status_code == 403
    assert is_nobody(other)


@pytest.mark.parametrize(
    "then", ["https://evil.example/", "//evil.example", "/\\evil.example", "/a\r\nb", "javascript:x"]
)
def test_it_leads_nowhere_else(team: Team, server: OidcProvider, then: str) -> None:
    answer = log_in(browser_of(team), server, then)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_what_goes_wrong_at_the_provider_is_told_and_is_no_fault(team: Team, server: OidcProvider) -> None:
    browser = browser_of(team)
    query = begin(browser, server)
    refused = browser.get(f"{BACK}?{urlencode({'error': 'access_denied', 'state': query['state']})}")
    assert refused.status_code == 403
    assert "<h1>Log in</h1>" in refused.text
    server.sign = lambda claims: "not a token"
    assert log_in(browser, server).status_code == 403
    for query_string in ("", "code=", "state=&code=x", "code=%00&state=x", "error=<script>alert(1)</script>"):
        answer = browser.get(f"{BACK}?{query_string}")
        assert answer.status_code in (403, 422), query_string
        assert "<script>alert" not in answer.text
    assert is_nobody(browser)


def test_by_https_its_cookies_are_for_https_alone(make: Callable[..., Team], server: OidcProvider) -> None:
    team = make(origin="https://labels.example.org", oidc={"domains": "example.com"})
    browser = browser_of(team)
    there = browser.get("/login/oidc")
    cookie = there.headers["set-cookie"]
    assert cookie.startswith("__Secure-quorate_login=")
    assert "secure" in cookie.lower()
    answer = browser.get(BACK, params=server.log_in(there.headers["location"]))
    told = answer.headers.get_list("set-cookie")
    assert answer.status_code == 303
    assert any(line.startswith("__Host-quorate_session=") and "secure" in line.lower() for line in told)


def test_who_they_are_at_the_provider_is_not_to_be_read_in_the_database(team: Team, server: OidcProvider) -> None:
    browser = browser_of(team)
    log_in(browser, server)
    with team.database.read() as connection:
        row = connection.execute(select(tables.people).where(tables.people.c.id == me(browser)["id"])).one()
    kept = repr(tuple(row))
    assert "ada-17" not in kept
    assert "ada@example.com" not in kept
