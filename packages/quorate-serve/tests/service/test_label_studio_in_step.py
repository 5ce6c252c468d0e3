"""A project of Label Studio and the service, kept in step in both directions."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from label_studio_server import Pretence, World
from quorate.errors import SettingsError
from quorate.label_studio import Client
from quorate.project.settings_file import LabelStudioProject, SettingsFile
from quorate_serve import annotating, queue
from quorate_serve.database import tables
from quorate_serve.documents import add_text
from quorate_serve.label_studio import InStep
from quorate_serve.live.worker import Follower
from quorate_serve.people import Role, people_of
from quorate_serve.settings import LabelStudioSettings, QueueSettings, ServiceSettings
from quorate_serve.start import begin
from serving import Team

TEXT = "👋 Ada sang."


def region(start: int, end: int, text: str) -> dict[str, Any]:
    value = {"start": start, "end": end, "text": text, "labels": ["PER"]}
    return {"from_name": "ner", "to_name": "words", "type": "labels", "value": value}


def annotation(number: int, who: int, *regions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": number, "completed_by": who, "result": list(regions), **more}


class Labelled(World):
    """A project whose annotations can be made, changed and deleted; ``task`` 1 is labelled, 2 is not."""

    def __init__(self) -> None:
        super().__init__()
        self.last_annotation = 100
        said = [annotation(11, 1, region(2, 5, "Ada")), annotation(12, 2, region(2, 5, "Ada")), annotation(13, 3)]
        self.tasks = [
            {"id": 1, "data": {"text": TEXT}, "annotations": said},
            {"id": 2, "data": {"text": "Bob ran 👋 to Ada."}, "annotations": []},
        ]

    def _do(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        parts = path.strip("/").split("/")
        if method == "POST" and parts[1] == "tasks":
            self.last_annotation += 1
            made = {"id": self.last_annotation, "completed_by": 99, **body}
            next(task for task in self.tasks if task["id"] == int(parts[2]))["annotations"].append(made)
            return 201, made
        if parts[1] == "annotations":
            for task in self.tasks:
                for one in list(task["annotations"]):
                    if one["id"] == int(parts[2]):
                        if method == "DELETE":
                            task["annotations"].remove(one)
                        else:
                            one |= body
            return 200, {}
        return super()._do(method, path, body)

    def of_the_key(self) -> list[dict[str, Any]]:
        return [one for task in self.tasks for one in task["annotations"] if one["completed_by"] == 99]


class Both:
    """The project, the service, and what is between them."""

    def __init__(self, team: Team, world: Labelled, server: Pretence) -> None:
        self.team, self.world, self.server = team, world, server
        self.told: list[str] = []
        self.link = self.fresh()

    def fresh(self, **options: Any) -> InStep:
        """As after a restart of the service."""
        client = Client(self.server.url, "secret-key", attempts=1, timeout=5, pause=lambda _: None)
        project = LabelStudioProject(self.server.url, 1)
        database, secret = self.team.database, self.team.settings.secret()
        self.link = InStep(client, project, database, secret, tell=self.told.append, **options)
        return self.link

    def said(self) -> dict[tuple[str, str], list[tuple[int, int, str]]]:
        """By document and name of whoever says so."""
        with self.team.database.read() as connection:
            names = {person.id: person.name for person in people_of(connection)}
            held = tables.current_annotations
            query = select(held, tables.documents.c.id).join(tables.documents)
            return {
                (row.id, names[row.person]): [(span["start"], span["end"], span["label"]) for span in row.spans]
                for row in connection.execute(query)
            }

    def events(self) -> int:
        with self.team.database.read() as connection:
            return len(connection.execute(select(tables.events.c.seq)).all())

    def save(self, id: str, *spans: tuple[int, int, str]) -> None:
        """Somebody labels a document in the service."""
        person = self.team.ids[Role.ANNOTATOR]

        def work(connection: Any) -> None:
            number = connection.execute(select(tables.documents.c.number).where(tables.documents.c.id == id)).scalar()
            while annotating.current(connection, number, person) is None:
                given = queue.lease(connection, person, QueueSettings(check_rate=0.0))
                assert isinstance(given, queue.Assignment)
                if given.document == number:
                    break
                annotating.save(connection, person, annotating.Given(f"none-{given.document:08}", given.document, []))
            records = [{"start": start, "end": end, "label": label} for start, end, label in spans]
            key = f"save-{id}-{len(spans)}-{self.events():06}"
            annotating.save(connection, person, annotating.Given(key, number, records, 4.5))

        self.team.database.change(work)

    def fit(self) -> None:
        Follower(self.team.settings, self.team.database).refit()


@pytest.fixture
def both(any_team: Team) -> Iterator[Both]:
    world = Labelled()
    with Pretence(world.answer) as server:
        yield Both(any_team, world, server)


def test_tasks_and_annotations_come_once_and_changes_are_followed(both: Both) -> None:
    moved = both.link.step()
    assert moved is not None
    assert moved[:5] == (2, 3, 0, 0, 0)
    assert both.said() == {("1", "1"): [(2, 5, "PER")], ("1", "2"): [(2, 5, "PER")], ("1", "3"): []}
    events = both.events()
    assert both.link.step() is None
    again = both.fresh().step()
    assert again is not None
    assert again[:5] == (0, 0, 0, 0, 0)
    assert both.events() == events

    first, second, _ = both.world.tasks[0]["annotations"]
    first["result"] = []
    both.world.tasks[0]["annotations"].remove(second)
    both.world.tasks[1]["annotations"].append(annotation(14, 2, region(13, 16, "Ada"), region(0, 3, "Bob")))
    both.world.tasks.append({"id": 3, "data": {"text": "Eve."}, "annotations": []})
    moved = both.link.step()
    assert moved is not None
    assert moved[:3] == (1, 2, 1)
    assert both.said() == {("1", "1"): [], ("1", "3"): [], ("2", "2"): [(0, 3, "PER"), (13, 16, "PER")]}
    del both.world.tasks[1]
    moved = both.link.step()
    assert moved is not None
    assert moved.withdrawn == 1
    second["result"] = []
    both.world.tasks[0]["annotations"].append(second)  # and back again
    assert both.link.step() is not None
    assert both.said()["1", "2"] == []


def test_annotations_with_too_many_regions_on_a_word_stay_there(both: Both) -> None:
    nested = [region(0, 3, "Bob"), region(0, 7, "Bob ran")]
    both.world.tasks[1]["annotations"].append(annotation(14, 2, *nested))
    moved = both.fresh(limit=1).step()
    assert moved is not None
    assert ("2", "2") not in both.said()
    assert moved.notes == (
        "task 2: more spans of one annotator share a word than may here (1): they are left out (option overlap-limit)",
    )
    assert both.fresh().step() is not None
    assert both.said()["2", "2"] == [(0, 3, "PER"), (0, 7, "PER")]


def test_the_consensus_goes_there_when_it_has_moved(both: Both) -> None:
    both.link.step()
    assert both.world.predictions == {}  # there is no consensus yet
    both.fit()
    moved = both.link.step()
    assert moved is not None
    assert moved.predictions == 1
    (prediction,) = both.world.predictions.values()
    (marked,) = prediction["result"]
    assert (prediction["task"], marked["value"]["start"], marked["value"]["text"]) == (1, 2, "Ada")
    assert 0 < marked["score"] <= 1
    assert both.world.version == prediction["model_version"] == "quorate service"
    before = copy.deepcopy(both.world.predictions)
    moved = both.fresh().step()
    assert moved is not None
    assert (moved.predictions, both.world.predictions) == (0, before)
    prediction["score"] -= 0.004
    assert both.fresh().step()[3] == 0  # type: ignore[index]
    prediction["score"] -= 0.1
    assert both.fresh().step()[3] == 1  # type: ignore[index]


def test_what_people_label_here_goes_there_and_does_not_come_back(both: Both) -> None:
    both.link.step()
    both.save("2", (0, 3, "PER"), (13, 16, "PER"), (0, 7, "PER"))
    moved = both.link.step()
    assert moved is not None
    assert moved.annotations == 1
    (made,) = both.world.of_the_key()
    person = both.team.ids[Role.ANNOTATOR]
    assert [one["value"]["text"] for one in made["result"]] == ["Bob", "Bob ran", "Ada"]
    assert {tuple(one["meta"]["text"]) for one in made["result"]} == {(f"quorate {person}",)}
    assert made["lead_time"] == 4.5
    said = both.said()
    for link in (both.link, both.fresh()):
        moved = link.step()
        assert moved is None or moved[:5] == (0, 0, 0, 0, 0)
    assert both.said() == said

    both.save("2", (0, 3, "PER"))
    assert both.link.step()[4] == 1  # type: ignore[index]
    (changed,) = both.world.of_the_key()
    assert (changed["id"], len(changed["result"])) == (made["id"], 1)
    both.save("2")
    assert both.link.step()[4] == 1  # type: ignore[index]
    assert both.world.of_the_key() == []


def test_what_somebody_there_duplicates_is_theirs(both: Both) -> None:
    both.link.step()
    both.save("2", (0, 3, "PER"))
    both.link.step()
    (pushed,) = both.world.of_the_key()
    for number, who in ((201, 1), (202, {"id": 2, "email": "bob@example.com"})):
        both.world.tasks[1]["annotations"].append({**copy.deepcopy(pushed), "id": number, "completed_by": who})
    both.save("2", (0, 3, "PER"), (14, 17, "PER"))
    both.fresh().step()
    there = {one["id"]: len(one["result"]) for one in both.world.tasks[1]["annotations"]}
    assert there == {pushed["id"]: 2, 201: 1, 202: 1}
    assert both.said()["2", "1"] == both.said()["2", "bob@example.com"] == [(0, 3, "PER")]
    assert both.server.asked.count(("GET", "/api/current-user/whoami")) == 2  # once for each start


def test_a_label_that_the_project_lacks_is_left_out_and_said_once(both: Both) -> None:
    both.link.turn()
    both.save("2", (0, 3, "PER"), (13, 16, "LOC"))
    both.link.turn()
    both.fresh().turn()
    assert [len(one["result"]) for one in both.world.of_the_key()] == [1]
    assert len(both.told) == 2  # once by each
    assert "no label 'LOC'" in both.told[0]


@pytest.mark.parametrize("code", [503, -1, 0])
def test_a_fault_on_the_way_makes_nothing_twice(both: Both, code: int) -> None:
    both.link.step()
    both.save("2", (0, 3, "PER"))
    both.world.fail = {("POST", "annotations"): [code]}
    both.link.turn()
    both.link.turn()
    assert len(both.world.of_the_key()) == 1
    assert len(both.told) == 2
    assert both.told[1].endswith("is in step again")


def test_a_server_that_is_away_is_said_once(both: Both) -> None:
    both.link.turn()
    both.world.fail = {("GET", "export"): [503, 503, 503]}
    for _ in range(4):
        both.link.turn()
    assert len(both.told) == 2
    assert "is not in step, and is tried again" in both.told[0]
    assert "secret-key" not in "".join(both.told)
    both.world.fail = {("GET", "1"): [401]}
    both.link.turn()
    assert "the key was refused" in both.told[2]


def test_a_task_with_another_text_is_left_out_and_said_once(both: Both) -> None:
    both.team.database.change(lambda connection: add_text(connection, "1", "Something else."))
    both.link.turn()
    assert both.said() == {}
    both.world.tasks[1]["data"]["text"] = "Changed."
    both.link.turn()
    assert ["another text" in told for told in both.told] == [True, True]
    both.link.turn()
    assert len(both.told) == 2


def test_what_is_skipped_or_ground_truth_there_is_nobody_s_label_here(both: Both) -> None:
    both.world.tasks[0]["annotations"] = [
        annotation(11, 1, region(2, 5, "Ada"), was_cancelled=True),
        annotation(12, 2, region(2, 5, "Ada"), ground_truth=True),
    ]
    moved = both.link.step()
    assert moved is not None
    assert (moved.documents, moved.labels) == (2, 0)


def test_an_empty_project(both: Both) -> None:
    both.world.tasks = []
    moved = both.link.step()
    assert moved is not None
    assert moved[:5] == (0, 0, 0, 0, 0)


def test_a_project_s_file_says_what_is_kept_in_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "quorate.toml"
    path.write_text(
        'inputs = [{ label-studio = "http://127.0.0.1:1", project = 3 }]\n'
        '["label-studio sync"]\nwatch = 5\nleast-change = 0.1\n'
    )
    file, settings = SettingsFile.read(path), ServiceSettings(tmp_path)
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "secret-key")
    linked, told = begin(settings, file)
    assert linked.label_studio == LabelStudioSettings((LabelStudioProject("http://127.0.0.1:1", 3),), 5.0, 0.1)
    assert told[0] == "kept in step with http://127.0.0.1:1 (project 3), every 5 s"
    with pytest.raises(SettingsError, match="is not a time"):
        LabelStudioSettings(seconds=0).check()
    with pytest.raises(SettingsError, match="not a change of a score"):
        LabelStudioSettings(least_change=2).check()
