"""Settings and accounts: files in and out, tokens, passwords, logging out everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import func, select

import quorate
from managing import give_password
from quorate.formats import registry, write
from quorate_serve.database import tables
from quorate_serve.people import Role
from serving import PASSWORD, Team

ATTACK = "<img src=x onerror=alert(1)>"


def test_a_file_comes_in_and_goes_out(team: Team, tmp_path: Path) -> None:
    manager = team.client(Role.MANAGER)
    write(quorate.Corpus(quorate.sample().documents[:5]), tmp_path / "crowd.jsonl")
    content = (tmp_path / "crowd.jsonl").read_bytes()
    page = manager.post("/settings/import", files={"file": (f"{ATTACK}.jsonl", content)}, data={"purpose": "work"}).text
    assert "5 new documents" in page
    assert ATTACK not in page
    refused = manager.post("/settings/import", files={"file": ("x.jsonl", b"{")})
    assert refused.status_code == 422
    assert "x.jsonl" in refused.text
    assert manager.get("/api/v1/export?what=annotations&format=conll&names=false").status_code == 200
    shown = manager.get("/settings").text
    assert all(label in shown for label in team.settings.labels)
    assert "2 at least, 5 at most" in shown


def test_formats_whose_library_is_missing_are_not_offered(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = team.client(Role.MANAGER)
    assert 'value="spacy"' in manager.get("/settings").text
    monkeypatch.setitem(registry._LIBRARIES, "spacy", "a_library_that_nobody_has")
    page = manager.get("/settings").text
    assert 'value="spacy"' not in page
    assert "quorate[spacy]" in page
    assert 'value="conll"' in page


@pytest.mark.parametrize("role", [Role.ANNOTATOR, Role.REVIEWER])
def test_settings_are_for_managers(team: Team, role: Role) -> None:
    browser = team.client(role)
    assert browser.get("/settings").status_code == 403
    assert browser.post("/settings/import", files={"file": ("x.jsonl", b"{}")}).status_code == 403
    assert "/settings" not in browser.get("/").text


def test_tokens_are_shown_once_and_ended(team: Team) -> None:
    ann = team.client(Role.ANNOTATOR)
    page = ann.post("/account/tokens", data={"name": ATTACK, "days": 3}).text
    token = page.split('<code id="token">')[1].split("<")[0]
    header = {"Authorization": f"Bearer {token}"}
    assert team.client().get("/api/v1/people/me", headers=header).status_code == 200
    page = ann.get("/account").text
    assert token not in page
    assert ATTACK not in page
    id = ann.get("/api/v1/tokens").json()[0]["id"]
    assert team.client(Role.ADMIN).post(f"/account/tokens/{id}/end").status_code == 404  # not theirs
    assert ann.post(f"/account/tokens/{id}/end", follow_redirects=False).status_code == 303
    assert team.client().get("/api/v1/people/me", headers=header).status_code == 401


def test_a_password_is_changed_by_who_knows_the_old_one(team: Team) -> None:
    give_password(team, Role.ANNOTATOR)
    ann, elsewhere = team.client(Role.ANNOTATOR), team.client(Role.ANNOTATOR)
    new = "another good one"
    wrong = ann.post("/account/password", data={"before": "guessed wrongly", "password": new})
    assert wrong.status_code == 422
    assert "the password is not right" in wrong.text
    assert ann.post("/account/password", data={"before": PASSWORD, "password": "short"}).status_code == 422
    done = ann.post("/account/password", data={"before": PASSWORD, "password": new}, follow_redirects=False)
    assert done.headers["location"] == "/account"
    assert ann.get("/account").status_code == 200  # who changed it stays in
    assert elsewhere.get("/account", follow_redirects=False).status_code == 303
    assert team.client().post("/login", data={"name": "annotator", "password": new}).status_code == 200


def test_log_out_everywhere(team: Team) -> None:
    one, other, boss = team.client(Role.ANNOTATOR), team.client(Role.ANNOTATOR), team.client(Role.ADMIN)
    assert one.post("/account/logout", follow_redirects=False).headers["location"] == "/login"
    for browser in (one, other):
        assert browser.get("/account", follow_redirects=False).status_code == 303
    assert boss.get("/account").status_code == 200
    with team.database.read() as connection:
        assert connection.execute(select(func.count()).select_from(tables.sessions)).scalar() == 1
