"""Files into the service and out again, and who may do what with whom."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Connection, select

import quorate
from managing import numbers, save
from page_files import EXAMPLES
from quorate.formats import write
from quorate_serve import people
from quorate_serve.database import tables
from quorate_serve.events import Kind, append
from quorate_serve.people import Role, people_of
from serving import Team


def test_what_comes_in_goes_out_again(any_team: Team, tmp_path: Path) -> None:
    manager, crowd = any_team.client(Role.MANAGER), quorate.sample()
    write(crowd, tmp_path / "crowd.jsonl")
    for _ in range(2):  # the second time nothing is new
        sent = {"file": ("crowd.jsonl", (tmp_path / "crowd.jsonl").read_bytes())}
        answer = manager.post("/api/v1/import", files=sent)
        assert answer.status_code == 200, answer.text
    assert answer.json() | {"notes": []} == {"documents": 0, "labels": 0, "annotators": 12, "notes": []}
    (tmp_path / "back.jsonl").write_bytes(manager.get("/api/v1/export").content)
    back = quorate.read(tmp_path / "back.jsonl")
    assert [one.tokens for one in back] == [one.tokens for one in crowd]
    assert back.annotators == crowd.annotators
    assert [dict(one.annotations) for one in back] == [dict(one.annotations) for one in crowd]


@pytest.mark.parametrize(
    "name", ["label-studio.json", "prodigy.jsonl", "doccano/ann.jsonl", "table.csv", "columns.conll"]
)
def test_every_tools_file_comes_in(team: Team, name: str) -> None:
    path = EXAMPLES / name
    if not path.exists():
        path = next((EXAMPLES / name).parent.glob("*"))
    answer = team.client(Role.MANAGER).post("/api/v1/import", files={"file": (path.name, path.read_bytes())})
    assert answer.status_code == 200, answer.text
    assert answer.json()["labels"] > 0


def test_a_format_that_is_a_folder_comes_as_a_zip_file(team: Team) -> None:
    manager = team.client(Role.MANAGER)
    path = EXAMPLES / "label-studio.json"
    manager.post("/api/v1/import", files={"file": (path.name, path.read_bytes())})
    with zipfile.ZipFile(io.BytesIO(manager.get("/api/v1/export?format=brat").content)) as archive:
        assert any(name.endswith(".ann") for name in archive.namelist())
    assert manager.get("/api/v1/export?format=nonsense").status_code == 422


def test_a_file_that_is_none_is_refused_in_a_line(team: Team) -> None:
    manager = team.client(Role.MANAGER)
    for content, name in ((b"PK\x03\x04 broken", "x.zip"), (b"{", "../../etc/passwd.json"), (b"", "x.jsonl")):
        answer = manager.post("/api/v1/import", files={"file": (name, content)})
        assert answer.status_code == 422, answer.text
        assert "quorate-import" not in answer.text  # nor where the service keeps things


def brought(manager: TestClient, content: bytes, **fields: str) -> dict[str, Any]:
    answer = manager.post("/api/v1/import", files={"file": ("a.jsonl", content)}, data=fields)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_a_file_leaves_what_people_saved_or_withdrew_here(any_team: Team) -> None:
    manager, ann = any_team.client(Role.MANAGER), any_team.client(Role.ANNOTATOR)
    before = {"start": 0, "end": 8, "label": "PER"}
    line = {"id": "x", "text": "Bath Spa", "annotations": {"annotator": [before], "zoe": [before]}}
    brought(manager, json.dumps(line).encode())
    exported = manager.get("/api/v1/export").content
    number, after = numbers(any_team)["x"], {"start": 0, "end": 4, "label": "LOC"}
    save(any_team, any_team.ids[Role.ANNOTATOR], number, [after])
    assert brought(manager, exported)["labels"] == 0
    assert ann.get(f"/api/v1/annotations/{number}").json()["spans"] == [after]
    assert ann.post(f"/api/v1/annotations/{number}/withdraw", json={"id": "withdrawn"}).status_code == 200
    assert brought(manager, exported)["labels"] == 0
    line["annotations"] = {"annotator": [before], "zoe": []}
    assert brought(manager, json.dumps(line).encode())["labels"] == 1  # a file before said so of zoe, not she herself
    taken = {"id": "import-of-my-own", "document": number, "spans": []}
    assert ann.post("/api/v1/annotations", json=taken).status_code == 422


def test_spans_that_overlap_come_in_and_go_out_whole(any_team: Team) -> None:
    manager = any_team.client(Role.MANAGER)
    nested = [{"start": 0, "end": 4, "label": "LOC"}, {"start": 0, "end": 8, "label": "ORG"}]
    line = {"id": "x", "text": "Bath Spa", "annotations": {"zoe": nested, "yan": nested[:1]}, "gold": nested}
    brought(manager, json.dumps(line).encode(), purpose="check")
    assert brought(manager, manager.get("/api/v1/export").content)["labels"] == 0
    with any_team.database.read() as connection:
        spans = list(connection.execute(select(tables.current_annotations.c.spans)).scalars())
        gold = connection.execute(select(tables.documents.c.gold)).scalar()
    assert sorted(spans, key=len) == [nested[:1], nested]
    assert gold == nested


def test_names_that_differ_by_case_or_width_come_in(any_team: Team) -> None:
    manager, mark = any_team.client(Role.MANAGER), {"start": 0, "end": 4, "label": "LOC"}
    said = {"Ann": [mark], "ann": [], "ａｎｎ": [mark], "ANNOTATOR": [mark]}
    line = json.dumps({"id": "x", "text": "Bath Spa", "annotations": said}).encode()
    assert brought(manager, line)["labels"] == 4
    assert brought(manager, line)["labels"] == 0
    with any_team.database.read() as connection:
        called = {person.id: person.name for person in people_of(connection)}
        table = tables.current_annotations.c
        marks = {called[row.person]: len(row.spans) for row in connection.execute(select(table.person, table.spans))}
    assert marks == {"Ann": 1, "ann": 0, "ａｎｎ": 1, "annotator": 1}  # who logs in is known by any spelling


def test_a_file_comes_in_whole_or_not_at_all(any_team: Team) -> None:
    manager, mark = any_team.client(Role.MANAGER), {"start": 0, "end": 4, "label": "LOC"}
    brought(manager, json.dumps({"id": "d299", "text": "Bath", "annotations": {"zoe": [mark]}}).encode())
    lines = [{"id": f"d{n}", "text": "Bath Spa", "annotations": {"new": [mark]}} for n in range(300)]
    content = "\n".join(map(json.dumps, lines)).encode()
    answer = manager.post("/api/v1/import", files={"file": ("a.jsonl", content)})
    assert answer.status_code == 422
    assert "'d299' is here with another text" in answer.json()["error"]["message"]
    assert set(numbers(any_team)) == {"d299"}
    assert "new" not in {person["name"] for person in manager.get("/api/v1/people").json()}


def test_what_a_file_says_in_vain_is_told(team: Team) -> None:
    manager, mark = team.client(Role.MANAGER), {"start": 0, "end": 4, "label": "LOC"}
    lines = [{"id": id, "text": "Bath Spa", "annotations": {"zoe": [mark]}, "gold": [mark]} for id in ("x", "y")]
    lines.append({"id": "z", "text": "Bath Spa", "annotations": {"zoe": [mark]}})
    assert brought(manager, json.dumps(lines[0]).encode())["notes"] == []
    first, second = brought(manager, "\n".join(map(json.dumps, lines)).encode(), purpose="check")["notes"]
    assert first == "1 document is here for work already: it stays so, and its gold is left out"
    assert second.startswith("1 document for check has no gold")


def test_documents_a_page_at_a_time(team: Team) -> None:
    manager = team.client(Role.MANAGER)
    texts = [{"id": f"d{number}", "text": f"text {number} 👋"} for number in range(7)]
    assert manager.post("/api/v1/documents", json=texts).json()["documents"] == 7
    seen, after = [], 0
    while after is not None:
        page = manager.get(f"/api/v1/documents?limit=3&after={after}").json()
        seen += [one["id"] for one in page["items"]]
        after = page["next"]
    assert seen == [one["id"] for one in texts]
    assert manager.get("/api/v1/documents/1").json()["tokens"] == [[0, 4], [5, 6], [7, 8]]
    clash = manager.post("/api/v1/documents", json=[{"id": "d1", "text": "another"}])
    assert clash.status_code == 422


def test_managers_do_not_make_admins(team: Team) -> None:
    manager, admin = team.client(Role.MANAGER), team.client(Role.ADMIN)
    ann, boss = team.ids[Role.ANNOTATOR], team.ids[Role.ADMIN]
    assert manager.patch(f"/api/v1/people/{ann}", json={"role": "reviewer"}).json()["role"] == "reviewer"
    assert manager.patch(f"/api/v1/people/{ann}", json={"role": "admin"}).status_code == 403
    assert manager.patch(f"/api/v1/people/{boss}", json={"active": False}).status_code == 403
    assert manager.post("/api/v1/invitations", json={"role": "admin"}).status_code == 403
    assert manager.post("/api/v1/invitations", json={"person": boss}).status_code == 403
    assert admin.patch(f"/api/v1/people/{boss}", json={"role": "annotator"}).status_code == 409  # the only one
    assert manager.post(f"/api/v1/people/{ann}/erase").status_code == 403


def test_who_is_erased_is_nobody(any_team: Team) -> None:
    ann, browser = any_team.ids[Role.ANNOTATOR], any_team.client(Role.ANNOTATOR)
    header = any_team.token(Role.ANNOTATOR)
    admin = any_team.client(Role.ADMIN)
    assert admin.post(f"/api/v1/people/{ann}/erase").json()["name"] == f"erased {ann}"
    assert browser.get("/api/v1/people/me").status_code == 401
    assert any_team.client().get("/api/v1/people/me", headers=header).status_code == 401
    assert any_team.add("annotator", Role.ANNOTATOR) != ann  # the name is free again


def test_annotators_see_themselves_alone(team: Team) -> None:
    ann = team.client(Role.ANNOTATOR)
    assert ann.get("/api/v1/people/me").json()["name"] == "annotator"
    assert ann.get(f"/api/v1/people/{team.ids[Role.ADMIN]}").status_code == 404
    assert ann.get("/api/v1/people").status_code == 403


def test_a_token_is_good_until_it_is_ended(team: Team) -> None:
    ann = team.client(Role.ANNOTATOR)
    made = ann.post("/api/v1/tokens", json={"name": "my script"}).json()
    header = {"Authorization": f"Bearer {made['token']}"}
    assert team.client().get("/api/v1/people/me", headers=header).status_code == 200
    assert team.client(Role.REVIEWER).delete(f"/api/v1/tokens/{made['id']}").status_code == 404  # not theirs
    assert ann.delete(f"/api/v1/tokens/{made['id']}").status_code == 204
    assert team.client().get("/api/v1/people/me", headers=header).status_code == 401


def test_a_link_for_a_password_ends_when_somebody_rises(team: Team) -> None:
    manager, admin, ann = team.client(Role.MANAGER), team.client(Role.ADMIN), team.ids[Role.ANNOTATOR]
    link = manager.post("/api/v1/invitations", json={"person": ann}).json()["url"]
    path = link.removeprefix(team.settings.address)
    assert team.client().get(path).status_code == 200
    assert admin.patch(f"/api/v1/people/{ann}", json={"role": "admin"}).status_code == 200
    assert team.client().get(path).status_code == 404


@pytest.mark.parametrize("change", [{"active": None}, {"cost": None}, {"role": None}])
def test_what_needs_a_value_has_one(team: Team, change: dict[str, None]) -> None:
    answer = team.client(Role.ADMIN).patch(f"/api/v1/people/{team.ids[Role.ANNOTATOR]}", json=change)
    assert answer.status_code == 422


def test_who_is_erased_does_not_come_back(team: Team) -> None:
    admin, ann = team.client(Role.ADMIN), team.ids[Role.ANNOTATOR]
    admin.post(f"/api/v1/people/{ann}/erase")
    back = admin.patch(f"/api/v1/people/{ann}", json={"role": "annotator", "active": True})
    assert back.status_code == 409
    assert admin.post("/api/v1/invitations", json={"person": ann}).status_code == 409


def test_the_name_at_a_provider_counts_letter_by_letter(team: Team) -> None:
    secret = team.settings.secret()

    def work(connection: Connection) -> bool:
        people.set_subject(connection, secret, team.ids[Role.ANNOTATOR], "https://id.example.org Bob")
        return people.find_subject(connection, secret, "https://id.example.org bob") is None

    assert team.database.change(work)


def test_nobody_learns_from_their_data_what_is_a_check(team: Team) -> None:
    ann = team.ids[Role.ANNOTATOR]
    body = {"purpose": "check", "until": 9e9}
    team.database.change(lambda connection: append(connection, Kind.ASSIGNMENT_LEASED, person=ann, body=body))
    assert "check" not in team.client(Role.ANNOTATOR).get("/api/v1/people/me/data").text


def test_plain_labels_are_labels(team: Team) -> None:
    line = {"id": "1", "tokens": ["Ada", "Ng", "sang", "in", "Rome"]}
    said = {"ann": ["PER", "PER", "O", "O", "LOC"]}
    sent = json.dumps({**line, "annotations": said}).encode()
    answer = team.client(Role.MANAGER).post("/api/v1/import", files={"file": ("plain.jsonl", sent)})
    assert answer.status_code == 200, answer.text
    with team.database.read() as connection:
        spans = connection.execute(select(tables.current_annotations.c.spans)).scalar_one()
    assert [(one["start"], one["end"], one["label"]) for one in spans] == [(0, 6, "PER"), (15, 19, "LOC")]


def test_a_file_of_one_annotator_is_called_as_it_was_sent(team: Team) -> None:
    manager = team.client(Role.MANAGER)
    for name in ("ann", "bob"):
        sent = json.dumps({"id": 1, "text": "Ada sang", "label": [[0, 3, "PER"]]}).encode()
        assert manager.post("/api/v1/import", files={"file": (f"{name}.jsonl", sent)}).status_code == 200
    assert {"ann", "bob"} <= {one["name"] for one in manager.get("/api/v1/people").json()}
