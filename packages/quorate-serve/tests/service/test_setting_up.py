"""A campaign that begins in an empty folder: what makes it, what is refused, and that nothing half-made stays."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

import quorate
from quorate.formats import write
from quorate.project.settings_file import SettingsFile
from quorate.storage.files import atomic
from quorate_serve.campaign import SpanType, changes_of, read_campaign
from quorate_serve.database import tables
from quorate_serve.live.worker import Follower
from quorate_serve.people import Role
from quorate_serve.settings import ServiceSettings
from quorate_serve.start import begin
from serving import PASSWORD, Team

TEXTS = "\n".join(f"Ada met Ben in Bath on day {day}." for day in range(10))
FORM: dict[str, Any] = {
    "texts": TEXTS,
    "type": ["PER", "LOC", ""],
    "key": ["p", "", ""],
    "colour": ["violet", "", ""],
    "overlaps": "nested",
    "guidelines": "# Names\r\n\r\nMark *all* of them.",
    "per_document_min": "1",
    "per_document_max": "3",
    "annotators": "Ann\r\nBen\r\n",
    "reviewers": "Rob",
}


@pytest.fixture(params=["sqlite", "postgresql"])
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Team]:
    """A team on a folder in which there is nothing yet."""
    url = request.getfixturevalue("new_postgres") if request.param == "postgresql" else None
    made = Team(ServiceSettings(tmp_path, database_url=url))
    yield made
    made.close()


def sent(team: Team, files: Any = None, **changes: Any) -> Any:
    return team.client(Role.ADMIN, follow_redirects=False).post("/setup", data={**FORM, **changes}, files=files)


def there(team: Team) -> list[str]:
    """The files in the folder that are no database."""
    paths = team.settings.root.rglob("*")
    return sorted(path.relative_to(team.settings.root).as_posix() for path in paths if ".quorate" not in path.parts)


def texts_of(team: Team) -> dict[str, str]:
    with team.database.read() as connection:
        return {row.id: row.text for row in connection.execute(select(tables.documents))}


def test_pasted_texts_become_a_project_and_the_campaign_runs(team: Team) -> None:
    admin = team.client(Role.ADMIN, follow_redirects=False)
    assert admin.get("/").headers["location"] == "/setup"
    assert "Set up" in admin.get("/setup").text
    answer = sent(team)
    assert answer.status_code == 200, answer.text
    assert there(team) == ["data", "data/texts.jsonl", "guidelines.md", "quorate.toml"]
    assert texts_of(team) == {f"text-{n}": line for n, line in enumerate(TEXTS.splitlines(), 1)}
    told = tomllib.loads((team.settings.root / "quorate.toml").read_text())
    assert told["inputs"] == ["data/texts.jsonl"]
    assert told["serve"] == {
        "labels": "PER,LOC",
        "keys": {"PER": "p"},
        "colours": {"PER": "violet"},
        "guidelines": "guidelines.md",
        "per-document-min": 1,
        "per-document-max": 3,
        "overlaps": "nested",
    }
    assert (team.settings.root / "guidelines.md").read_text() == "# Names\n\nMark *all* of them.\n"
    assert "Welcome" in admin.get("/").text
    assert admin.get("/setup").status_code == 303
    ann = team.client(Role.ANNOTATOR)
    assert '"name": "PER"' in ann.get("/annotate").text
    assert "<em>all</em>" in ann.get("/annotate").text
    number = ann.post("/api/v1/queue/next").json()["document"]["number"]
    nested = [{"start": 0, "end": 3, "label": "PER"}, {"start": 0, "end": 7, "label": "PER"}]
    save = {"id": "save-of-ann", "document": number, "spans": nested}
    assert ann.post("/api/v1/annotations", json=save).status_code == 200
    save = {"id": "save-of-ann-2", "document": number, "spans": [{"start": 0, "end": 3, "label": "ORG"}]}
    assert ann.post("/api/v1/annotations", json=save).status_code == 422


def test_links_by_name_lead_in_once_are_shown_again_and_can_be_revoked(team: Team) -> None:
    sent(team)
    admin = team.client(Role.ADMIN)
    listed = {one["name"]: one for one in admin.get("/api/v1/invitations").json()}
    assert {name: one["role"] for name, one in listed.items()} == {
        "Ann": "annotator", "Ben": "annotator", "Rob": "reviewer"
    }  # fmt: skip
    page = admin.get("/people").text
    assert all(one["url"] in page for one in listed.values())
    link = listed["Ann"]["url"].removeprefix(team.settings.address)
    assert 'value="Ann"' in team.client().get(link).text
    joins = {"name": "Ann", "password": PASSWORD}
    assert team.client(follow_redirects=False).post(link, data=joins).status_code == 303
    assert admin.post(f"/people/invitations/{listed['Ben']['id']}/revoke", data={}).status_code == 200
    assert team.client().get(listed["Ben"]["url"].removeprefix(team.settings.address)).status_code == 404
    assert [one["name"] for one in admin.get("/api/v1/invitations").json()] == ["Rob"]
    with team.database.read() as connection:
        kept = connection.execute(select(tables.invitations.c.sealed)).scalars().all()
    assert sum(one is not None for one in kept) == 1
    assert not any(b"Rob" in bytes(one) for one in kept if one is not None)


def test_a_restart_goes_on_as_for_any_project(team: Team) -> None:
    sent(team)
    settings, told = begin(team.settings, SettingsFile.read(team.settings.root / "quorate.toml"))
    assert len(texts_of(team)) == 10
    assert not any("documents" in line for line in told)
    assert settings.root == team.settings.root


def test_annotations_in_what_is_uploaded_are_taken_along(team: Team, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("elsewhere") / "crowd.jsonl"
    write(quorate.Corpus(quorate.sample().documents[:20]), path)
    given = {"texts": "", "type": ["PER"], "key": [""], "colour": [""], "annotators": "Zoë"}
    answer = sent(team, [("files", ("crowd.jsonl", path.read_bytes()))], **given)
    assert answer.status_code == 200, answer.text
    assert "labels of 12 annotators" in answer.text
    assert (team.settings.root / "data" / "crowd.jsonl").read_bytes() == path.read_bytes()
    with team.database.read() as connection:
        campaign = read_campaign(connection)
    assert campaign is not None
    assert campaign.types[0] == SpanType("PER")
    assert {one.name for one in campaign.types} == {"PER", "LOC", "ORG", "WORK"}


@pytest.mark.parametrize(
    ("name", "content", "how", "expected"),
    [
        ("news.txt", b"One.\n\nTwo\nlines.\n", "", {"news-1": "One.", "news-2": "Two\nlines."}),
        ("news.txt", b"One.\n\nTwo\nlines.\n", "lines", {"news-1": "One.", "news-2": "Two", "news-3": "lines."}),
        ("news.txt", b"One.\r\n\r\nTwo.\r\n", "files", {"news": "One.\n\nTwo."}),
        ("t.csv", b'id,text,x\nn1,"Ada, sang.",3\n,Ben slept.,4\n', "", {"n1": "Ada, sang.", "t-2": "Ben slept."}),
        ("t.tsv", "\ufeffText\nZoë sang.\n".encode(), "", {"t-1": "Zoë sang."}),
        ("t.jsonl", b'{"id": "a", "text": "Ada sang."}\n', "", {"a": "Ada sang."}),
        ("t.txt", b"Ada B-PER\nsang O\n", "", {"t-1": "Ada sang"}),
    ],
)
def test_files_of_texts(team: Team, name: str, content: bytes, how: str, expected: dict[str, str]) -> None:
    answer = sent(team, [("files", (name, content))], texts="", how=how)
    assert answer.status_code == 200, answer.text
    found = texts_of(team)
    if name == "t.txt":
        assert list(found.values()) == list(expected.values())
    else:
        assert found == expected


BAD = [
    ({"texts": " \n "}, None, "there are no texts yet"),
    ({"type": ["", ""]}, None, "there is no type of span yet"),
    ({"type": ["PER", "PER"]}, None, "two types are called"),
    ({"type": ["a,b", ""]}, None, "no name for a type"),
    ({"type": ["O", ""]}, None, "stands for no span"),
    ({"key": ["p", "p"]}, None, "two types have the key"),
    ({"key": ["?", ""]}, None, "no key for PER"),
    ({"colour": ["infrared", ""]}, None, "no colour for PER"),
    ({"per_document_min": "4"}, None, "a document cannot get 4 to 3 annotators"),
    ({"annotators": "Ann\nann"}, None, "invited already, or is in the list twice"),
    ({"reviewers": "reviewer"}, None, "already"),
    ({}, [("files", ("x.txt", b""))], "the file is empty"),
    ({}, [("files", ("x.txt", b"caf\xe9"))], "not UTF-8 text"),
    ({}, [("files", ("x.docx", b"PK\x03\x04 no"))], "x.docx"),
    ({}, [("files", ("x.jsonl", b'{"id": 1'))], "x.jsonl"),
    ({"how": "nonsense"}, None, "unknown format"),
    ({}, [("files", ("a.txt", b"One.")), ("files", ("a.txt", b"Two."))], "two documents have the id"),
]


@pytest.mark.parametrize(("changes", "files", "expected"), BAD)
def test_what_cannot_be_is_said_on_the_page_and_nothing_stays(
    team: Team, changes: dict[str, Any], files: Any, expected: str
) -> None:
    changes = {"type": ["PER", "LOC"], "key": ["", ""], "colour": ["", ""], **changes}
    before = len(team.client(Role.ADMIN).get("/api/v1/people").json())
    answer = sent(team, files, **changes)
    assert answer.status_code in (409, 422), answer.text
    alert = answer.text.partition('role="alert">')[2].partition("</p>")[0]
    assert expected in alert.replace("&#39;", "'")
    assert str(team.settings.root) not in alert
    assert "/tmp" not in alert
    assert there(team) == []
    assert texts_of(team) == {}
    assert len(team.client(Role.ADMIN).get("/api/v1/people").json()) == before
    assert team.client(Role.ADMIN).get("/api/v1/invitations").json() == []
    assert sent(team).status_code == 200  # and it can be done again


def test_a_disk_that_fails_leaves_nothing(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(path: Path, **options: Any) -> Any:
        if path.name == "quorate.toml":
            raise OSError("no space left")
        return whole(path, **options)

    whole = atomic.written_whole
    monkeypatch.setattr("quorate_serve.setting_up.written_whole", fails)
    with pytest.raises(OSError, match="no space left"):
        sent(team)
    monkeypatch.undo()
    assert there(team) == []
    assert texts_of(team) == {}
    assert sent(team).status_code == 200


def test_what_is_in_the_folder_is_not_overwritten(team: Team) -> None:
    (team.settings.root / "guidelines.md").write_text("mine")
    answer = sent(team)
    assert answer.status_code == 409
    assert "guidelines.md is in the folder already" in answer.text
    assert (team.settings.root / "guidelines.md").read_text() == "mine"
    assert texts_of(team) == {}


def test_a_campaign_begins_once(team: Team) -> None:
    assert sent(team).status_code == 200
    again = sent(team, annotators="", reviewers="")
    assert again.status_code == 409
    assert "set up already" in again.text
    with team.database.read() as connection:
        assert [one.what for one in changes_of(connection)] == [
            (
                "type PER added",
                "type LOC added",
                "guidelines",
                "1 to 3 annotators of a document",
                "overlaps: nested",
            )
        ]


def test_a_form_of_another_site_begins_nothing(team: Team) -> None:
    browser = team.client(Role.ADMIN)
    for headers in ({"Origin": "https://evil.example"}, {"X-CSRF-Token": "guessed"}):
        assert browser.post("/setup", data=FORM, headers=headers).status_code == 403
    assert texts_of(team) == {}


def test_who_is_no_manager_is_not_sent_there(team: Team) -> None:
    assert "Welcome" in team.client(Role.REVIEWER).get("/").text


def test_a_start_without_labels_says_nothing_of_a_campaign(team: Team) -> None:
    sent(team)
    (team.settings.root / "quorate.toml").unlink()  # the database was moved to another folder, say
    settings, _ = begin(team.settings, None)
    assert settings.labels == ("PER", "LOC")
    assert json.loads(json.dumps(settings.keys)) == {"PER": "p"}


def test_the_process_that_follows_takes_spans_as_they_may_overlap_from_then_on(team: Team) -> None:
    follower = Follower(team.settings, team.database)  # which began before there was a campaign
    assert sent(team, overlaps="nested", per_document_max="2").status_code == 200
    nested = [{"start": 0, "end": 3, "label": "PER"}, {"start": 0, "end": 11, "label": "LOC"}]
    for role in (Role.ANNOTATOR, Role.REVIEWER):
        browser = team.client(role)
        while (task := browser.post("/api/v1/queue/next").json()["document"]) is not None:
            save = {"id": f"save-{role.value}-{task['number']}", "document": task["number"], "spans": nested}
            assert browser.post("/api/v1/annotations", json=save).status_code == 200
    follower.refit()
    with team.database.read() as connection:
        found = connection.execute(select(tables.consensus.c.spans)).scalars().all()
    marked = [{(span["start"], span["end"], span["label"]) for span in spans} for spans in found]
    assert marked == [{(0, 3, "PER"), (0, 11, "LOC")}] * 10


def test_a_paste_that_is_too_long_is_told_to_come_as_a_file(team: Team) -> None:
    answer = sent(team, [("files", ("a.txt", b"One."))], texts="Ada sang in Bath. " * 80_000)
    assert answer.status_code == 400
    assert "upload it as a file" in answer.text
    assert texts_of(team) == {}
