"""To erase somebody: no table and no file tells who they were, and all that they labelled stays."""

from __future__ import annotations

import json
from pathlib import Path

from cryptography.fernet import Fernet
from sqlalchemy import Connection, select

from quorate_serve import annotating, people, sessions
from quorate_serve.database import tables
from quorate_serve.documents import add_text
from quorate_serve.events import events_after, last_event
from quorate_serve.people import Role
from serving import Team

NAME, EMAIL, NOTE, TOKEN = "Zoë Quatermass", "zoe@quatermass.example", "I was there in 1953", "laptop of Zoë"
SPAN = {"start": 0, "end": 3, "label": "PER"}


def zoe_works(team: Team) -> tuple[str, int, bytes]:
    """Somebody who labels, reviews and notes something; their id, the document, and their key."""
    secret = team.settings.secret()

    def join(connection: Connection) -> tuple[str, int, int, bytes]:
        zoe = people.add_person(
            connection, secret, NAME, role=Role.REVIEWER, email=EMAIL, password_hash="argon2", subject="zoe@idp"
        )
        sessions.make_token(connection, zoe, TOKEN, days=1)
        first, second = (add_text(connection, id, "Ada sang 👋") for id in ("one", "two"))
        annotating.import_annotation(connection, team.ids[Role.ANNOTATOR], second, [SPAN], None)
        key = connection.execute(
            select(tables.personal_keys.c.key).where(tables.personal_keys.c.person == zoe)
        ).scalar()
        assert isinstance(key, bytes)
        return zoe, first, second, key

    zoe, first, second, key = team.database.change(join)
    browser = team.client(zoe)
    assert browser.post("/api/v1/queue/next").json()["document"]["number"] == first
    saved = browser.post("/api/v1/annotations", json={"id": "save-of-zoe", "document": first, "spans": [SPAN]})
    assert saved.status_code == 200
    review = {"id": "review-of-zoe", "document": second, "spans": [SPAN], "accepted": False, "note": NOTE}
    assert browser.post("/api/v1/reviews", json=review).status_code == 200
    return zoe, first, key


def test_nothing_tells_who_they_were(any_team: Team) -> None:
    zoe, document, _ = zoe_works(any_team)
    before = everything(any_team)
    manager = any_team.client(Role.MANAGER)
    assert NAME in manager.get(f"/api/v1/documents/{document}/history").text
    with any_team.database.read() as connection:
        events = events_after(connection, 0, 10_000)
    assert any_team.client(Role.ADMIN).post(f"/api/v1/people/{zoe}/erase").status_code == 200
    after = everything(any_team)
    for told in (NAME, EMAIL, NOTE, TOKEN, json.dumps(NAME)):
        assert told not in after
    assert TOKEN in before  # the names of tokens are there until then
    assert people.digest(any_team.settings.secret(), NAME) not in after
    assert people.digest(any_team.settings.secret(), NAME) in before
    with any_team.database.read() as connection:
        assert events_after(connection, 0, 10_000)[: len(events)] == events  # what happened, happened
        assert last_event(connection) == len(events) + 1
        own = annotating.current(connection, document, zoe)
        assert own is not None
        assert own["spans"] == [SPAN]
        kept = [event for event in events if event.personal]
        assert kept
        assert {people.read_personal(connection, event.person, event.personal) for event in kept} == {""}
        assert people.find_person(connection, zoe).name == f"erased {zoe}"


def test_no_file_has_their_key_or_their_words(team: Team) -> None:
    zoe, _, key = zoe_works(team)
    with team.database.read() as connection:
        notes = [event.personal for event in events_after(connection, 0, 10_000) if event.personal]
        personal = connection.execute(select(tables.people.c.personal).where(tables.people.c.id == zoe)).scalar()
    assert isinstance(personal, bytes)
    assert [Fernet(key).decrypt(note).decode() for note in notes] == [NOTE]
    before = files(team.settings.folder)
    assert key in before
    assert personal in before
    assert team.client(Role.ADMIN).post(f"/api/v1/people/{zoe}/erase").status_code == 200
    after = files(team.settings.folder)
    assert key not in after
    assert personal not in after
    for told in (NAME, EMAIL, NOTE, TOKEN, "zoe@idp", people.digest(team.settings.secret(), NAME)):
        assert told.encode() not in after
    assert notes[0] in after  # it stays, and nobody can read it


def everything(team: Team) -> str:
    """All rows of all tables."""
    with team.database.read() as connection:
        return "\n".join(
            repr(tuple(row)) for table in tables.metadata.sorted_tables for row in connection.execute(select(table))
        )


def files(folder: Path) -> bytes:
    """All that the database has on the disk, its log among it."""
    found = [path for path in folder.iterdir() if path.name.startswith("service.db")]
    assert len(found) >= 2
    return b"".join(path.read_bytes() for path in found)
