"""Types, guidelines and how many annotators a document gets, changed while the campaign runs."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from managing import bring_in, save
from quorate.errors import SettingsError
from quorate.project.settings_file import SettingsFile
from quorate_serve import campaign_files
from quorate_serve.campaign import Campaign, SpanType, campaign_of, changes_of, read_campaign
from quorate_serve.database import tables
from quorate_serve.documents import add_text
from quorate_serve.live.worker import Follower
from quorate_serve.mending import mend
from quorate_serve.people import Role
from quorate_serve.settings import QueueSettings, ServiceSettings
from quorate_serve.start import begin
from serving import Team

FILE = """\
# ours
inputs = []

[serve]
labels = "PER,LOC"   # two of them
port = 8787

[aggregate]
output = "c.jsonl"
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Team]:
    """A team with two types, five documents, and a document that somebody has annotated."""
    url = request.getfixturevalue("new_postgres") if request.param == "postgresql" else None
    (tmp_path / "quorate.toml").write_text(FILE)
    queue = QueueSettings(per_document_min=1, per_document_max=1)
    made = Team(ServiceSettings(tmp_path, database_url=url, labels=("PER", "LOC"), queue=queue))
    numbers = [
        made.database.change(lambda connection, n=n: add_text(connection, f"d{n}", f"Ada sang {n}"))  # type: ignore[misc]
        for n in range(5)
    ]
    save(made, made.ids[Role.ANNOTATOR], numbers[0], [{"start": 0, "end": 3, "label": "PER"}])
    yield made
    made.close()


def form(team: Team, **changes: Any) -> dict[str, Any]:
    page = team.client(Role.MANAGER).get("/settings/campaign").text
    since = re.search(r'name="since" value="(\d+)"', page)
    assert since is not None
    return {
        "since": since[1],
        "type": ["PER", "LOC", ""],
        "key": ["", "", ""],
        "colour": ["", "", ""],
        "guidelines": "",
        "per_document_min": "1",
        "per_document_max": "1",
        **changes,
    }


def change(team: Team, given: dict[str, Any] | None = None, **changes: Any) -> Any:
    given = form(team, **changes) if given is None else given
    return team.client(Role.MANAGER, follow_redirects=False).post("/settings/campaign", data=given)


def told(team: Team) -> dict[str, Any]:
    return tomllib.loads((team.settings.root / "quorate.toml").read_text())["serve"]  # type: ignore[no-any-return]


def marking(team: Team) -> dict[str, Any]:
    found = re.search(r'id="given">(.*?)</script>', team.client(Role.ANNOTATOR).get("/annotate").text)
    assert found is not None
    return dict(json.loads(found[1]))


def alert(answer: Any) -> str:
    assert answer.status_code in (409, 422), answer.text
    return str(answer.text.partition('role="alert">')[2].partition("</p>")[0])


def test_a_type_that_is_added_can_be_marked_at_once(team: Team) -> None:
    ann = team.client(Role.ANNOTATOR)
    task = ann.post("/api/v1/queue/next").json()
    assert task["campaign"] == 0
    given = {"id": "marks-an-org", "document": task["document"]["number"], "spans": []}
    org = [{"start": 0, "end": 3, "label": "ORG"}]
    assert ann.post("/api/v1/annotations", json={**given, "spans": org}).status_code == 422
    answer = change(team, type=["PER", "LOC", "ORG"], key=["p", "", ""], colour=["", "red", ""])
    assert answer.status_code == 303, answer.text
    assert [one["name"] for one in marking(team)["labels"]] == ["PER", "LOC", "ORG"]
    assert marking(team)["labels"][0]["key"] == "p"
    assert marking(team)["labels"][1]["colour"] == "red"
    assert ann.post("/api/v1/annotations", json={**given, "spans": org}).status_code == 200
    assert ann.post("/api/v1/queue/next").json()["campaign"] == marking(team)["campaign"] > 0
    text = (team.settings.root / "quorate.toml").read_text()
    assert told(team) == {"labels": "PER,LOC,ORG", "keys": {"PER": "p"}, "colours": {"LOC": "red"}, "port": 8787}
    assert text.startswith("# ours\ninputs = []\n")
    assert text.endswith('[aggregate]\noutput = "c.jsonl"\n')


def test_who_changed_what_and_when_is_kept_and_shown(team: Team) -> None:
    change(team, guidelines="# Names\r\n")
    change(team, guidelines="# Names\r\n", per_document_min="2", per_document_max="3")
    with team.database.read() as connection:
        changes = changes_of(connection)
        kinds = tables.events.c.kind == "campaign.changed"
        events = connection.execute(select(tables.events.c.body).where(kinds)).all()
        campaign = read_campaign(connection)
    assert [(one.person, one.what) for one in changes] == [
        (team.ids[Role.MANAGER], ("2 to 3 annotators of a document",)),
        (team.ids[Role.MANAGER], ("guidelines",)),
    ]
    assert events[0].body["guidelines"] == "# Names\n"
    page = team.client(Role.MANAGER).get("/settings/campaign?changed=1").text
    assert page.count("<td>manager</td>") == 2
    assert "1 document was annotated before" in page
    mend(team.settings)
    with team.database.read() as connection:
        assert read_campaign(connection) == campaign is not None


def test_more_annotators_open_documents_that_had_enough(team: Team) -> None:
    other = team.client(team.add("Olympe", Role.ANNOTATOR))
    numbers = set()
    while (task := other.post("/api/v1/queue/next").json()["document"]) is not None:
        numbers.add(task["number"])
        other.post(
            "/api/v1/annotations", json={"id": f"by-olympe-{task['number']}", "document": task["number"], "spans": []}
        )
    assert len(numbers) == 4
    assert change(team, per_document_max="2").status_code == 303
    assert other.post("/api/v1/queue/next").json()["document"] is not None
    assert told(team)["per-document-max"] == 2
    assert change(team, per_document_max="1").status_code == 303
    assert told(team)["per-document-max"] == 1


def test_guidelines_reach_annotators_as_text_alone(team: Team) -> None:
    change(
        team, guidelines="# Mark\n\n<script>alert(1)</script> [x](javascript:alert(1)) ![i](https://evil.example/i.png)"
    )
    for path in ("/annotate", "/guidelines"):
        page = team.client(Role.ANNOTATOR).get(path).text
        assert "<h2>Mark</h2>" in page
        assert "<script>alert" not in page
        assert 'href="javascript' not in page
        assert "<img" not in page
    assert (team.settings.root / "guidelines.md").read_text().startswith("# Mark\n")
    assert told(team)["guidelines"] == "guidelines.md"
    assert change(team, guidelines=" ").status_code == 303
    assert "guidelines" not in told(team)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"type": ["LOC", "", ""]}, "PER: spans of this type are marked already"),
        ({"type": ["PERSON", "LOC", ""]}, "PER: spans of this type"),
        ({"type": ["PER", "PER", ""]}, "two types are called"),
        ({"per_document_min": "3"}, "a document cannot get 3 to 1"),
        ({"since": "0", "guidelines": "x"}, "somebody else changed the campaign"),
    ],
)
def test_what_cannot_be_changed_is_said_and_changes_nothing(team: Team, changes: dict[str, Any], expected: str) -> None:
    assert change(team, guidelines="first").status_code == 303
    before = (team.settings.root / "quorate.toml").read_text()
    assert expected in alert(change(team, **{"guidelines": "first", **changes})).replace("&#39;", "'")
    assert (team.settings.root / "quorate.toml").read_text() == before
    with team.database.read() as connection:
        assert len(changes_of(connection)) == 1


def test_a_type_that_nobody_used_can_go(team: Team) -> None:
    assert change(team, type=["PER", "", ""]).status_code == 303
    assert [one["name"] for one in marking(team)["labels"]] == ["PER"]


def test_where_no_types_are_given_those_in_use_stay(tmp_path: Path) -> None:
    team = Team(ServiceSettings(tmp_path))
    bring_in(team)
    team.app.state.settings = replace(team.settings, labels=())
    assert 'value="WORK"' in team.client(Role.MANAGER).get("/settings/campaign").text
    answer = change(team, type=["PER", "LOC", "ORG"], per_document_max="5")
    assert "WORK: spans of this type" in alert(answer)
    assert change(team, type=["", "", ""], per_document_max="5", guidelines="How").status_code == 303
    assert told(team)["guidelines"] == "guidelines.md"
    assert "labels" not in told(team)
    team.close()


def test_a_file_that_cannot_be_written_changes_nothing(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(path: Path, content: bytes) -> None:
        if path.name == "quorate.toml":
            raise SettingsError("the disk is full")
        write(path, content)

    write = campaign_files._write
    monkeypatch.setattr(campaign_files, "_write", fails)
    assert "nothing was changed: the disk is full" in alert(change(team, guidelines="new"))
    assert not (team.settings.root / "guidelines.md").exists()
    assert (team.settings.root / "quorate.toml").read_text() == FILE
    with team.database.read() as connection:
        assert read_campaign(connection) is None


def test_the_next_start_has_what_was_changed_and_a_file_that_was_edited_wins(team: Team) -> None:
    change(team, type=["PER", "LOC", "ORG"], guidelines="How")
    path = team.settings.root / "quorate.toml"
    settings, _ = begin(team.settings, None)  # as if nothing were told
    assert campaign_of(settings) == Campaign((SpanType("PER"), SpanType("LOC")), "How\n", 1, 1)
    path.write_text(FILE)
    edited = ServiceSettings(team.settings.root, team.settings.database_url, labels=("MISC",))
    settings, _ = begin(edited, SettingsFile.read(path))
    assert settings.labels == ("MISC",)
    with team.database.read() as connection:
        assert changes_of(connection)[0].person is None
    assert "quorate.toml, at a start" in team.client(Role.MANAGER).get("/settings/campaign").text


def test_a_form_of_another_site_changes_nothing(team: Team) -> None:
    given, browser = form(team, guidelines="evil"), team.client(Role.MANAGER)
    for headers in ({"Origin": "https://evil.example"}, {"X-CSRF-Token": "guessed"}):
        assert browser.post("/settings/campaign", data=given, headers=headers).status_code == 403
    with team.database.read() as connection:
        assert read_campaign(connection) is None


def test_the_process_that_follows_goes_by_what_is_changed(tmp_path: Path) -> None:
    team = Team(ServiceSettings(tmp_path))
    bring_in(team)
    now = [0.0]
    follower = Follower(team.settings, team.database, clock=lambda: now[0])

    def queue() -> list[Any]:
        """What the annotator should label next, once everything is worked out."""
        now[0] += 3_600
        while follower.step():
            pass
        with team.database.read() as connection:
            mine = tables.queues.c.person == team.ids[Role.ANNOTATOR]
            return connection.execute(select(tables.queues.c.documents).where(mine)).scalar() or []

    assert queue() == []  # all documents have as many labels as they get
    types: dict[str, Any] = {"type": ["PER", "LOC", "ORG", "WORK"], "key": [""] * 4, "colour": [""] * 4}
    assert change(team, **types, per_document_min="7", per_document_max="99").status_code == 303
    assert len(queue()) == 40
    team.close()
