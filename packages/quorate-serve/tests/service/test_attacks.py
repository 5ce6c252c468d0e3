"""Attacks that are tried: what is refused, and that nothing fails at it (a 500 is a fault, whoever asks)."""

from __future__ import annotations

import io
import json
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update

from quorate_serve import passwords, sessions
from quorate_serve.database import tables
from quorate_serve.documents import add_text
from quorate_serve.people import Role
from quorate_serve.settings import ServiceSettings
from serving import PASSWORD, Team

SCRIPT = "<script>alert(1)</script>"
INJECTIONS = [
    "' OR '1'='1",
    "'; DROP TABLE people; --",
    '" UNION SELECT password FROM people --',
    "%27%20OR%201=1",
    "1; SELECT pg_sleep(9)",
    "\\'; --",
    "${7*7}{{7*7}}",
    "../../../../etc/passwd",
    "..\\..\\secret",
    "a\r\nSet-Cookie: x=y",
    SCRIPT,
    "\u202e\u0000"[:1],
    "💥" * 50,
]
UNFIT = ["a\u0000b", "\ud800"]
HUGE = [2**63, 2**64, -(2**63) - 1, 10**30]


@pytest.fixture
def member(team: Team) -> str:
    """Somebody with a password."""
    from quorate_serve.people import set_password

    person, kept = team.add("Grace", Role.ADMIN), passwords.hashed(PASSWORD)
    team.database.change(lambda connection: set_password(connection, person, kept))
    return person


def logins(team: Team, **form: str) -> Any:
    return team.client(follow_redirects=False).post("/login", data={"name": "Grace", "password": PASSWORD, **form})


# --- text of people in pages and answers ------------------------------------------------------------------------------


def test_markup_in_what_people_type_is_shown_as_text(team: Team) -> None:
    answer = team.client().post("/login", data={"name": SCRIPT, "password": SCRIPT, "next": f'/"{SCRIPT}'})
    assert answer.status_code == 403
    assert "&lt;script&gt;" in answer.text
    assert "<script" not in answer.text
    token = team.database.change(lambda connection: sessions.invite(connection, Role.ANNOTATOR))
    again = team.client().post(f"/invite/{token}", data={"name": f'"><img onerror={SCRIPT}>', "password": "short"})
    assert "<script" not in again.text
    assert "<img" not in again.text
    assert "<script" not in team.client(Role.ADMIN).get(f"/{SCRIPT}").text


def test_answers_with_stored_markup_are_never_taken_for_a_page(team: Team) -> None:
    manager = team.client(Role.MANAGER)
    assert manager.post("/api/v1/documents", json=[{"id": SCRIPT, "text": SCRIPT}]).status_code == 200
    manager.post("/api/v1/tokens", json={"name": SCRIPT})
    for path in ("/api/v1/documents", "/api/v1/documents/1", "/api/v1/tokens", "/api/v1/export"):
        answer = manager.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"].split(";")[0] in ("application/json", "application/octet-stream")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "script-src 'self'" in answer.headers["content-security-policy"]


def test_every_answer_has_the_headers_also_where_it_fails(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = team.client(Role.ADMIN, raise_server_exceptions=False)
    monkeypatch.setattr("quorate_serve.people.people_of", lambda *_: 1 / 0)
    for path, status in (("/nowhere", 404), ("/api/v1/people", 500), ("/static/base.css", 200), ("/static/none", 404)):
        answer = browser.get(path)
        assert answer.status_code == status
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    failed = browser.get("/api/v1/people")
    assert set(failed.json()["error"]) == {"code", "message"}
    assert "division" not in failed.text


# --- requests that another site has a browser send --------------------------------------------------------------------


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:9", "http://localhost:8787", ""])
def test_another_sites_page_changes_nothing(team: Team, member: str, origin: str) -> None:
    browser = team.client(Role.ADMIN)
    assert browser.post("/api/v1/tokens", json={"name": "x"}, headers={"Origin": origin}).status_code == 403
    assert browser.post("/logout", headers={"Origin": origin}).status_code == 403
    stranger = team.client(follow_redirects=False)
    form = {"name": "Grace", "password": PASSWORD}
    answer = stranger.post("/login", data=form, headers={"Origin": origin})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_without_an_origin_a_form_is_refused(team: Team, member: str) -> None:
    stranger = team.client(follow_redirects=False)
    del stranger.headers["Origin"]
    assert stranger.post("/login", data={"name": "Grace", "password": PASSWORD}).status_code == 403


@pytest.mark.parametrize(
    "content",
    [
        {"json": {"name": "x"}},
        {"data": {"name": "x"}},
        {"content": '{"name": "x"}', "headers": {"Content-Type": "text/plain"}},
        {"content": '{"name": "x"}'},
        {"files": {"name": ("x", b"x")}},
        {"content": '{"name": "x"}', "headers": {"Content-Type": "multipart/form-data"}},
    ],
)
def test_without_the_sessions_own_token_nothing_is_changed(team: Team, content: dict[str, Any]) -> None:
    other = team.client(Role.MANAGER).headers["X-CSRF-Token"]
    browser = team.client(Role.ADMIN)
    del browser.headers["X-CSRF-Token"]
    for token in (None, "", "forged", other):
        headers = {**content.get("headers", {}), **({} if token is None else {"X-CSRF-Token": token})}
        answer = browser.post("/api/v1/tokens", **{**content, "headers": headers})
        assert answer.status_code in (400, 403), (token, answer.text)
    assert browser.get("/api/v1/tokens").json() == []


def test_a_get_changes_nothing_by_a_method_in_a_header(team: Team) -> None:
    browser = team.client(Role.ADMIN)
    browser.get("/api/v1/tokens", headers={"X-HTTP-Method-Override": "POST"})
    assert browser.get("/api/v1/tokens").json() == []
    assert browser.get("/logout").status_code in (404, 405)


# --- sessions and passwords -------------------------------------------------------------------------------------------


def test_a_login_gets_a_secret_that_nobody_had_before(team: Team, member: str) -> None:
    name = team.settings.session_cookie
    planted = team.client(follow_redirects=False)
    planted.cookies.set(name, "planted-by-mallory")
    first = planted.post("/login", data={"name": "Grace", "password": PASSWORD}).cookies[name]
    assert first != "planted-by-mallory"
    again = team.client(follow_redirects=False)
    again.cookies.set(name, first)
    second = again.post("/login", data={"name": "Grace", "password": PASSWORD}).cookies[name]
    old = team.client(follow_redirects=False)
    old.cookies.set(name, first)
    assert second != first
    assert old.get("/").status_code == 303  # the session before has ended with it


def test_two_services_of_one_machine_leave_each_other_s_sessions_alone(team: Team, member: str, tmp_path: Path) -> None:
    other = Team(replace(team.settings, root=tmp_path / "other", port=team.settings.port + 1))
    try:
        browser = team.client(follow_redirects=False)
        browser.post("/login", data={"name": "Grace", "password": PASSWORD})
        elsewhere = other.client(Role.ADMIN)
        jar = dict(browser.cookies) | dict(elsewhere.cookies)  # a browser looks at the host alone, not at the port
        for one in (browser, elsewhere):
            one.cookies.clear()
            one.cookies.update(jar)
        assert browser.get("/api/v1/people/me").json()["id"] == member
        assert elsewhere.get("/api/v1/people/me").json()["id"] == other.ids[Role.ADMIN]
        elsewhere.post("/logout", data={"csrf": elsewhere.headers["X-CSRF-Token"]})
        assert browser.get("/api/v1/people/me").status_code == 200
        assert elsewhere.get("/api/v1/people/me").status_code == 401
    finally:
        other.close()


@pytest.mark.parametrize(
    ("origin", "session", "login"),
    [
        (None, "quorate_session_8787", "quorate_login_8787"),
        ("https://labels.example.org", "__Host-quorate_session", "__Secure-quorate_login"),
    ],
)
def test_cookies_are_named_after_where_they_are_good(origin: str | None, session: str, login: str) -> None:
    settings = ServiceSettings(Path(), origin=origin)
    assert (settings.session_cookie, settings.login_cookie) == (session, login)


@pytest.mark.parametrize("column", ["until", "idle_until"])
def test_a_session_ends(team: Team, column: str) -> None:
    browser = team.client(Role.ADMIN)
    assert browser.get("/api/v1/people/me").status_code == 200
    past = update(tables.sessions).values(**{column: time.time() - 1})
    team.database.change(lambda connection: connection.execute(past))
    assert browser.get("/api/v1/people/me").status_code == 401
    assert browser.get("/api/v1/people/me").status_code == 401  # nor does asking bring it back


def test_a_session_that_is_used_goes_on(team: Team) -> None:
    browser = team.client(Role.ADMIN)
    soon = update(tables.sessions).values(idle_until=time.time() + 5)
    team.database.change(lambda connection: connection.execute(soon))
    assert browser.get("/api/v1/people/me").status_code == 200
    team.database.change(lambda connection: None)  # what was written before is there
    with team.database.read() as connection:
        assert connection.execute(select(tables.sessions.c.idle_until)).scalar_one() > time.time() + 3_000


def test_a_new_password_ends_sessions_elsewhere(team: Team, member: str) -> None:
    browser = team.client(member)
    token = team.database.change(lambda connection: sessions.invite(connection, Role.ADMIN, member))
    here = team.client()
    assert here.post(f"/invite/{token}", data={"password": "another password"}).status_code == 200
    assert browser.get("/api/v1/people/me").status_code == 401
    assert here.get("/api/v1/people/me").status_code == 200


def test_whoever_guesses_a_password_must_wait_and_the_right_one_does_not_help(team: Team, member: str) -> None:
    statuses = [logins(team, password="wrong password").status_code for _ in range(6)]
    assert statuses == [403] * 5 + [429]
    locked = logins(team)
    assert locked.status_code == 429
    assert 1 <= int(locked.headers["retry-after"]) <= 15
    past = update(tables.login_attempts).values(at=time.time() - 16)
    team.database.change(lambda connection: connection.execute(past))
    assert logins(team).status_code == 303
    assert logins(team).status_code == 303  # and nothing is counted any more
    unknown = [logins(team, name="Nobody").status_code for _ in range(6)]
    assert unknown == [403] * 5 + [429]  # a name that nobody has looks the same


def test_what_is_counted_of_guesses_is_bounded(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "_MOST_COUNTED", 5)
    secret = team.settings.secret()

    def guess(connection: Any) -> int:
        for _ in range(3):
            passwords.begin_attempt(connection, secret, "Grace")
        for number in range(20):
            passwords.begin_attempt(connection, secret, f"name {number}")
        assert passwords.begin_attempt(connection, secret, "Grace")
        count = connection.execute(select(func.count()).select_from(tables.login_attempts)).scalar_one()
        kept = connection.execute(select(func.max(tables.login_attempts.c.attempts))).scalar_one()
        assert kept == 4  # the one that was guessed at most is not pushed out
        return int(count)

    assert team.database.change(guess) == 5


def test_too_many_requests_are_told_when_to_come_back(team: Team) -> None:
    browser = team.client()
    answers = [browser.post("/invite/guessed", data={"password": "a long password"}) for _ in range(70)]
    assert answers[0].status_code == 404
    last = answers[-1]
    assert last.status_code == 429
    assert int(last.headers["retry-after"]) >= 1
    assert team.client(Role.ANNOTATOR).get("/api/v1/people/me").status_code == 200  # who is logged in is not kept out


@pytest.mark.parametrize(
    "then",
    ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/a\r\nSet-Cookie: x=y", "\\"],
)
def test_a_login_leads_to_pages_of_this_service_alone(team: Team, member: str, then: str) -> None:
    answer = logins(team, next=then)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "x=y" not in answer.headers.get("set-cookie", "")


def test_a_token_in_the_address_is_none(team: Team) -> None:
    token = team.token(Role.ADMIN)["Authorization"].split()[1]
    for query in (f"?token={token}", f"?access_token={token}", f"?Authorization=Bearer%20{token}"):
        assert team.client().get(f"/api/v1/people{query}").status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "127.0.0.1, evil.example"])
def test_another_host_is_refused(team: Team, host: str) -> None:
    answer = team.client(Role.ADMIN).get("/", headers={"Host": host})
    assert answer.status_code == 400


# --- what is sent -----------------------------------------------------------------------------------------------------


def calls(text: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Requests with a text in every place that takes one."""
    span = {"start": 0, "end": 1, "label": text}
    return [
        ("GET", "/api/v1/people/{}", {}),
        ("PATCH", "/api/v1/people/{}", {"json": {"cost": 2}}),
        ("POST", "/api/v1/people/{}/erase", {"json": {}}),
        ("DELETE", "/api/v1/tokens/{}", {}),
        ("GET", "/invite/{}", {}),
        ("GET", "/static/{}", {}),
        ("GET", "/api/v1/webhooks/{}/deliveries", {}),
        ("POST", "/api/v1/webhooks/{}/test", {}),
        ("GET", "/api/v1/annotations/{}", {}),
        ("GET", "/api/v1/consensus", {"params": {"after": text[:64], "order": text}}),
        ("GET", "/api/v1/consensus", {"params": {"after": text[:64]}}),
        ("GET", "/api/v1/documents", {"params": {"after": text, "limit": text}}),
        ("GET", "/api/v1/export", {"params": {"format": text[:32]}}),
        ("GET", "/login", {"params": {"next": text}}),
        ("POST", "/login", {"data": {"name": text, "password": text}}),
        ("POST", "/api/v1/tokens", {"json": {"name": text}}),
        ("POST", "/api/v1/webhooks", {"json": {"url": text}}),
        ("POST", "/api/v1/invitations", {"json": {"person": text}}),
        ("POST", "/api/v1/documents", {"json": [{"id": text, "text": text}]}),
        ("POST", "/api/v1/annotations", {"json": {"id": text * 9, "document": 1, "spans": [span], "client": text}}),
        ("POST", "/api/v1/import", {"files": {"file": (text, b"{}")}, "data": {"format": text, "purpose": text}}),
        ("POST", "/api/v1/import", {"files": {"file": (text, b'{"id": "a", "text": "b c"}')}}),
    ]


def test_injected_sql_is_text(any_team: Team) -> None:
    admin = any_team.client(Role.ADMIN, raise_server_exceptions=False)
    any_team.database.change(lambda connection: add_text(connection, "one", "Ada sang"))
    for text in INJECTIONS:
        for method, path, content in calls(text):
            answer = admin.request(method, path.format(httpx_quoted(text)), **content)
            assert answer.status_code < 500, (method, path, text, answer.text)
            assert "root:" not in answer.text
            assert "x=y" not in answer.headers.get("set-cookie", "")
    with any_team.database.read() as connection:
        assert connection.execute(select(func.count()).select_from(tables.people)).scalar_one() == len(Role)


@pytest.mark.parametrize("text", UNFIT)
def test_text_that_no_database_takes_is_refused(any_team: Team, text: str) -> None:
    admin = any_team.client(Role.ADMIN, raise_server_exceptions=False)
    bodies = [("/api/v1/tokens", {"name": text}), ("/api/v1/documents", [{"id": text, "text": "a"}])]
    bodies += [("/api/v1/documents", [{"id": "a", "text": f"a{text}"}]), ("/api/v1/invitations", {"person": text})]
    for path, body in bodies:
        sent = {"content": json.dumps(body), "headers": {"Content-Type": "application/json"}}
        assert admin.post(path, **sent).status_code == 422, path  # type: ignore[arg-type]
    if text.isprintable() or "\0" in text:
        for path in ("/api/v1/people/a%00b", "/invite/%00", "/api/v1/consensus?after=%00"):
            assert admin.get(path).status_code in (404, 422), path
        assert admin.post("/login", data={"name": text, "password": "x"}).status_code == 422


@pytest.mark.parametrize("number", HUGE)
def test_numbers_beyond_all_measure_are_refused(any_team: Team, number: int) -> None:
    admin = any_team.client(Role.ADMIN, raise_server_exceptions=False)
    for path in ("annotations/{}", "annotations/{}/history", "documents/{}", "consensus/{}", "documents?after={}"):
        assert admin.get("/api/v1/" + path.format(number)).status_code in (404, 422), path
    span = {"start": number, "end": number, "label": "PER"}
    for body in ({"document": number, "spans": []}, {"document": 1, "spans": [span]}):
        answer = admin.post("/api/v1/annotations", json={"id": "a-huge-one", **body})
        assert answer.status_code in (404, 422), answer.text
    assert admin.post("/api/v1/queue/release", json={"document": number}).status_code in (403, 404, 409, 422)
    person = any_team.ids[Role.ANNOTATOR]
    assert admin.patch(f"/api/v1/people/{person}", json={"most": number}).status_code == 422


def test_bodies_beyond_all_measure_are_refused(team: Team) -> None:
    ann = team.client(Role.ANNOTATOR, raise_server_exceptions=False)
    json_type = {"Content-Type": "application/json"}
    deep = "[" * 100_000 + "]" * 100_000
    assert ann.post("/api/v1/annotations", content=deep, headers=json_type).status_code in (400, 422)
    assert ann.post("/api/v1/annotations", content="9" * 100_000, headers=json_type).status_code in (400, 422)
    spans = [{"start": 0, "end": 1, "label": "PER"}] * 20_001
    many = ann.post("/api/v1/annotations", json={"id": "many-spans", "document": 1, "spans": spans})
    assert many.status_code == 422
    large = ann.post("/api/v1/annotations", content=b" " * (3 << 20), headers=json_type)
    assert large.status_code == 413
    assert large.json()["error"]["code"] == "too-large"


def test_what_a_stranger_uploads_is_not_even_read(team: Team) -> None:
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    # what is not read is not seen to be broken either
    assert team.client().post("/api/v1/import", content=b"--y", headers=kind).status_code == 401
    ann = team.client(Role.ANNOTATOR)
    assert ann.post("/api/v1/import", files={"file": ("x", b"{}")}).status_code == 403


def test_archives_that_lead_elsewhere_or_blow_up_are_refused(team: Team) -> None:
    manager = team.client(Role.MANAGER, raise_server_exceptions=False)
    for name, content in (("../../evil.ann", b"x"), ("/etc/evil.txt", b"x"), ("big.txt", b"\0" * (300 << 20))):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, content)
        answer = manager.post("/api/v1/import", files={"file": ("x.zip", packed.getvalue())})
        assert answer.status_code == 422, (name, answer.text[:200])


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/v1/annotations", {"id": "mass-assign", "document": 1, "spans": [], "person": "p_1"}),
        ("POST", "/api/v1/tokens", {"name": "x", "person": "p_1"}),
        ("POST", "/api/v1/documents", [{"id": "x", "text": "y", "gold": []}]),
        ("POST", "/api/v1/invitations", {"role": "annotator", "until": 9e9}),
        ("POST", "/api/v1/webhooks", {"url": "https://example.com", "secret": "whsec_x"}),
        ("PATCH", "/api/v1/people/me", {"id": "p_1"}),
        ("PATCH", "/api/v1/people/me", {"password": "x"}),
    ],
)
def test_fields_that_are_not_asked_for_are_refused(team: Team, method: str, path: str, body: Any) -> None:
    assert team.client(Role.ADMIN).request(method, path, json=body).status_code == 422


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "https://localhost/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://2130706433/",
        "https://user:password@example.com/",
        "https://example.com:22/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/",
        "https://127.0.0.1\\@example.com/",
    ],
)
def test_webhooks_do_not_reach_into_the_own_network(team: Team, url: str) -> None:
    answer = team.client(Role.ADMIN).post("/api/v1/webhooks", json={"url": url})
    assert answer.status_code == 422, answer.text
    assert team.client(Role.ADMIN).get("/api/v1/webhooks").json() == []


@pytest.mark.parametrize("path", ["../app.py", "%2e%2e/app.py", "..%2fapp.py", "....//app.py", "%2e%2e%5capp.py"])
def test_only_static_files_are_served_as_such(team: Team, path: str) -> None:
    answer = team.client().get(f"/static/{path}")
    assert "create_app" not in answer.text
    assert answer.status_code in (200, 400, 404)


def httpx_quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="", errors="replace")


# --- what is told of all this -----------------------------------------------------------------------------------------


def test_the_description_of_the_api_says_what_it_takes(team: Team) -> None:
    told = team.client().get("/api/v1/openapi.json").json()
    assert told["openapi"].startswith("3.1")
    assert set(told["components"]["securitySchemes"]) == {"token", "session"}
    for path, operations in told["paths"].items():
        for operation in operations.values():
            assert bool(operation["security"]) is (path != "/api/v1/health")
            assert "4XX" in operation["responses"]
    refs = json.dumps(told).split('"$ref": "#/components/schemas/')[1:]
    assert {ref.partition('"')[0] for ref in refs} <= set(told["components"]["schemas"])
