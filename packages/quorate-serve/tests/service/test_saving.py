"""Saves: acknowledged when they are on the disk, once however often they come, and nobody else's."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import insert, select

from quorate_serve.database import tables
from quorate_serve.documents import add_text
from quorate_serve.people import Role
from serving import Team

SPAN = {"start": 0, "end": 3, "label": "PER"}


def given(team: Team, person: str, text: str = "Ada sang 👋 in Bath") -> int:
    """A document that a person has on lease."""

    def make(connection: Any) -> int:
        number = add_text(connection, text[:10], text)
        lease = {"purpose": "work", "state": "leased", "at": 0.0, "until": 9e9}
        connection.execute(insert(tables.assignments).values(document=number, person=person, **lease))
        return number

    return team.database.change(make)


def test_a_save_is_kept_once(any_team: Team) -> None:
    ann, number = any_team.client(Role.ANNOTATOR), given(any_team, any_team.ids[Role.ANNOTATOR])
    save = {"id": "a-save-of-ann", "document": number, "spans": [SPAN], "seconds": 4.5}
    first = ann.post("/api/v1/annotations", json=save)
    assert first.status_code == 200, first.text
    assert ann.post("/api/v1/annotations", json=save).json() == first.json()
    with any_team.database.read() as connection:
        kinds = list(
            connection.execute(select(tables.events.c.kind).where(tables.events.c.document == number)).scalars()
        )
        row = connection.execute(select(tables.current_annotations)).mappings().one()
    assert kinds == ["annotation.saved"]
    assert (row["spans"], row["revision"], row["seconds"]) == ([SPAN], 1, 4.5)
    again = ann.post("/api/v1/annotations", json=save | {"id": "another-one", "spans": []})
    assert again.json()["revision"] == 2


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"spans": [{"start": 0, "end": 300, "label": "PER"}]}, 422),
        ({"spans": [{"start": 3, "end": 3, "label": "PER"}]}, 422),
        ({"spans": [{"start": 0, "end": 3, "label": "NOPE"}]}, 422),
        ({"spans": [{"start": "0", "end": 3, "label": "PER"}]}, 422),
        ({"id": "short"}, 422),
        ({"document": 999}, 404),
        ({"seconds": -1}, 422),
        ({"who": "somebody else"}, 422),
    ],
)
def test_what_makes_no_sense_is_refused(team: Team, change: dict[str, Any], status: int) -> None:
    ann, number = team.client(Role.ANNOTATOR), given(team, team.ids[Role.ANNOTATOR])
    answer = ann.post("/api/v1/annotations", json={"id": "a-save-of-ann", "document": number, "spans": []} | change)
    assert answer.status_code == status, answer.text
    assert set(answer.json()["error"]) == {"code", "message"}


def test_nobody_saves_for_others_or_without_a_token(team: Team) -> None:
    number = given(team, team.ids[Role.ANNOTATOR])
    save = {"id": "a-save-of-ann", "document": number, "spans": [SPAN]}
    assert team.client().post("/api/v1/annotations", json=save).status_code == 401
    reviewer = team.client(Role.REVIEWER)
    assert reviewer.post("/api/v1/annotations", json=save).status_code == 403  # it was given to somebody else
    ann = team.client(Role.ANNOTATOR)
    assert ann.post("/api/v1/annotations", json=save, headers={"X-CSRF-Token": "forged"}).status_code == 403
    assert team.client().post("/api/v1/annotations", json=save, headers=team.token(Role.ANNOTATOR)).status_code == 200
    theirs = given(team, team.ids[Role.REVIEWER], "Bob slept in Rome")
    taken = reviewer.post("/api/v1/annotations", json=save | {"document": theirs})
    assert taken.status_code == 409


def test_coming_in_by_an_invitation(team: Team) -> None:
    from quorate_serve.sessions import invite

    token = team.database.change(lambda connection: invite(connection, Role.ADMIN))
    browser = team.client(follow_redirects=True)
    assert browser.get("/").url.path == "/login"
    assert "Join as admin" in browser.get(f"/invite/{token}").text
    short = browser.post(f"/invite/{token}", data={"name": "Grace", "password": "short"})
    assert short.status_code == 422
    assert "10 characters" in short.text
    joined = browser.post(f"/invite/{token}", data={"name": "Grace", "password": "a long password"})
    assert joined.url.path == "/setup"  # nothing is there yet
    assert browser.get(f"/invite/{token}").status_code == 404
    other = team.client(follow_redirects=True)
    assert other.post("/login", data={"name": "grace", "password": "wrong password"}).status_code == 403
    assert other.post("/login", data={"name": " GRACE ", "password": "a long password"}).url.path == "/setup"
