"""Links to join with that nobody has used yet: seen, and taken back."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from sqlalchemy import update
from typer.testing import CliRunner

from quorate.cli import app
from quorate_serve import sessions
from quorate_serve.database import tables
from quorate_serve.people import Role
from serving import Team


def made(team: Team, role: Role, person: str | None = None) -> str:
    return team.database.change(lambda connection: sessions.invite(connection, role, person))


def test_open_links_are_listed_until_they_are_used_too_old_or_revoked(team: Team) -> None:
    admin = team.client(Role.ADMIN)
    used, old, revoked, kept = (made(team, Role.ANNOTATOR) for _ in range(4))
    for_password = made(team, Role.REVIEWER, team.ids[Role.REVIEWER])
    listed = admin.get("/api/v1/invitations").json()
    assert len(listed) == 5
    assert [one["person"] for one in listed if one["person"]] == [team.ids[Role.REVIEWER]]
    joins = {"name": "Grace", "password": "correct horse battery"}
    assert team.client(follow_redirects=False).post(f"/invite/{used}", data=joins).status_code == 303
    past = update(tables.invitations).where(tables.invitations.c.digest == sessions._digest(old))
    team.database.change(lambda connection: connection.execute(past.values(until=time.time() - 1)))
    id = sessions._digest(revoked)[:16]
    assert admin.delete(f"/api/v1/invitations/{id}").status_code == 204
    assert admin.delete(f"/api/v1/invitations/{id}").status_code == 404
    left = {one["id"] for one in admin.get("/api/v1/invitations").json()}
    assert left == {sessions._digest(kept)[:16], sessions._digest(for_password)[:16]}
    assert team.client().get(f"/invite/{revoked}").status_code == 404
    assert team.client().get(f"/invite/{kept}").status_code == 200


def test_what_is_listed_opens_nothing(team: Team) -> None:
    token = made(team, Role.ANNOTATOR)
    manager = team.client(Role.MANAGER)
    (one,) = manager.get("/api/v1/invitations").json()
    assert token not in manager.get("/people").text
    assert team.client().get(f"/invite/{one['id']}").status_code == 404


def test_managers_see_and_revoke_what_they_could_make_themselves(team: Team) -> None:
    made(team, Role.ADMIN)
    made(team, Role.REVIEWER)
    manager, admin = team.client(Role.MANAGER), team.client(Role.ADMIN)
    assert [one["role"] for one in manager.get("/api/v1/invitations").json()] == ["reviewer"]
    above = next(one["id"] for one in admin.get("/api/v1/invitations").json() if one["role"] == "admin")
    assert manager.delete(f"/api/v1/invitations/{above}").status_code == 403
    assert manager.post(f"/people/invitations/{above}/revoke").status_code == 409
    assert len(admin.get("/api/v1/invitations").json()) == 2


def test_on_the_page_a_link_is_revoked_by_a_button(team: Team) -> None:
    token = made(team, Role.REVIEWER)
    made(team, Role.REVIEWER, team.ids[Role.REVIEWER])
    manager = team.client(Role.MANAGER)
    page = manager.get("/people").text
    assert "Links that are open: 2" in page
    assert "a new password of reviewer" in page
    assert "somebody new, as reviewer" in page
    actions = re.findall(r'action="(/people/invitations/[^"]+)"', page)
    assert len(actions) == 2
    action = f"/people/invitations/{sessions._digest(token)[:16]}/revoke"
    assert action in actions
    assert manager.post(action, follow_redirects=False).status_code == 303
    assert "Links that are open: 1" in manager.get("/people").text
    assert team.client().get(f"/invite/{token}").status_code == 404


def test_links_by_name_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["service", "invite", "Ann", "Ben", "--role", "reviewer"])
    assert [name in done.output for name in ("Ann: http", "Ben: http")] == [True, True]
    again = CliRunner().invoke(app, ["service", "invite", "ann"])
    assert "invited already" in str(again.exception)
