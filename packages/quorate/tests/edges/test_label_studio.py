"""Sync with a real Label Studio server, and with a server that fails.

The real one (package ``label-studio``, SQLite, loopback) lives in an environment of its own, which ``.ci/run``
prepares; ``QUORATE_LABEL_STUDIO`` names the folder of that environment. Elsewhere those tests are skipped; in CI they
fail.
"""

from __future__ import annotations

import copy
import http.cookiejar
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from label_studio_server import Pretence, World, hurried
from needs import missing
from processes import Start, started_here
from quorate import InputError, ServerError, SettingsError
from quorate.label_studio import Client, NoAnswerError, push, sync
from quorate.label_studio.sync import pull

ROOT = Path(__file__).resolve().parents[4]
SERVER = Path(os.environ.get("QUORATE_LABEL_STUDIO", ROOT / ".label-studio"))
CONFIG = (
    '<View><Labels name="ner" toName="words"><Label value="PER"/><Label value="LOC"/></Labels>'
    '<Text name="words" value="$text"/></View>'
)
WELCOME = "👋 Ada Ng sang in Rome."


# A real server ------------------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = SERVER / "bin" / "label-studio"
    if not program.exists():
        missing(f"no Label Studio server at {SERVER}: .ci/run prepares one, or set QUORATE_LABEL_STUDIO")
    folder = tmp_path_factory.mktemp("label-studio")
    template = SERVER / "template.sqlite3"
    if template.exists():
        (folder / "label_studio.sqlite3").write_bytes(template.read_bytes())
    port = free_port()
    settings = {
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
        "DJANGO_DB": "sqlite",
        "LATEST_VERSION_CHECK": "false",
        "COLLECT_ANALYTICS": "false",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
        "NO_PROXY": "*",
    }
    command = [str(program), "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port)]
    with (folder / "log").open("wb") as log, started_here() as start:
        process = start(command, cwd=folder, env=os.environ | settings, stdout=log, stderr=log)
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 300
        while not answers(f"{url}/health"):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the server did not start: {(folder / 'log').read_text()[-2000:]}")
            time.sleep(0.5)
        yield url


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return int(response.status) == 200
    except (urllib.error.URLError, OSError):
        return False


class Person:
    """Somebody with an account, who signs up as one does in a browser, and makes a personal access token."""

    def __init__(self, url: str, name: str) -> None:
        jar = http.cookiejar.CookieJar()
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        page = browser.open(f"{url}/user/signup/", timeout=60).read().decode()
        token = re.search(r'csrfmiddlewaretoken" value="([^"]+)', page)
        assert token is not None
        form = {"email": f"{name}@example.com", "password": "a-long-password", "csrfmiddlewaretoken": token[1]}
        headers = {"Referer": f"{url}/user/signup/"}
        data = urllib.parse.urlencode(form).encode()
        browser.open(urllib.request.Request(f"{url}/user/signup/", data, headers), timeout=60).close()
        csrf = next(cookie.value for cookie in jar if cookie.name == "csrftoken")
        headers = {"Referer": url, "X-CSRFToken": csrf or ""}
        with browser.open(urllib.request.Request(f"{url}/api/token/", b"", headers), timeout=60) as response:
            self.key = json.loads(response.read())["token"]
        self.client = Client(url, self.key)

    def annotate(self, task: int, *spans: tuple[int, int, str, str], ground_truth: bool = False) -> None:
        result = [
            {
                "from_name": "ner",
                "to_name": "words",
                "type": "labels",
                "value": {"start": start, "end": end, "text": text, "labels": [label]},
            }
            for start, end, text, label in spans
        ]
        self.client.create(f"/api/tasks/{task}/annotations/", {"result": result, "ground_truth": ground_truth})


@pytest.fixture(scope="module")
def people(server: str) -> list[Person]:
    return [Person(server, name) for name in ("owner", "ann", "bob", "cho")]


@pytest.fixture(scope="module")
def project(people: list[Person]) -> tuple[int, list[int]]:
    """A project with four tasks, three of them annotated by three people."""
    owner, ann, bob, cho = people
    number = owner.client.create("/api/projects/", {"title": "Names", "label_config": CONFIG})["id"]
    texts = [WELCOME, "Bob met Ada.", "It rains in Rome.", "Eve left for Rome."]
    owner.client.create(f"/api/projects/{number}/import", [{"text": text} for text in texts])
    tasks = [task["id"] for task in owner.client.get("/api/tasks", project=number)["tasks"]]
    first, second, third, _ = sorted(tasks)
    for person in (ann, bob):
        person.annotate(first, (2, 8, "Ada Ng", "PER"), (17, 21, "Rome", "LOC"))
        person.annotate(second, (0, 3, "Bob", "PER"), (8, 11, "Ada", "PER"))
        person.annotate(third, (12, 16, "Rome", "LOC"))
    cho.annotate(first, (2, 5, "Ada", "PER"), (17, 21, "Rome", "LOC"))
    cho.annotate(second, (0, 3, "Bob", "PER"))
    cho.annotate(third)
    return number, sorted(tasks)


def own(client: Client, project: int) -> dict[int, Any]:
    return {prediction["task"]: prediction for prediction in client.get("/api/predictions/", project=project)}


def spans_of(prediction: Any) -> list[tuple[str, str]]:
    return sorted((region["value"]["text"], region["value"]["labels"][0]) for region in prediction["result"])


def test_the_consensus_becomes_predictions_and_only_changes_are_written(
    people: list[Person], project: tuple[int, list[int]]
) -> None:
    owner, ann, *_ = people
    number, (first, second, third, fourth) = project
    done = sync(owner.client, number)
    assert done is not None
    assert done[:5] == (3, 3, 0, 0, 0)
    there = own(owner.client, number)
    assert sorted(there) == [first, second, third]
    assert spans_of(there[first]) == [("Ada Ng", "PER"), ("Rome", "LOC")]
    region = min(there[first]["result"], key=lambda region: region["value"]["start"])
    assert (region["value"]["start"], region["value"]["end"], region["from_name"]) == (2, 8, "ner")
    assert all(0 < prediction["score"] <= 1 for prediction in there.values())
    assert all(prediction["model_version"] == "quorate auto" for prediction in there.values())
    assert 0 < region["score"] <= 1

    again = sync(owner.client, number)
    assert again is not None
    assert again[:5] == (3, 0, 0, 3, 0)
    assert {task: each["updated_at"] for task, each in own(owner.client, number).items()} == {
        task: each["updated_at"] for task, each in there.items()
    }
    assert sync(owner.client, number, seen=again.fingerprint) is None

    ann.annotate(fourth, (0, 3, "Eve", "PER"))
    more = sync(owner.client, number)
    assert more is not None
    assert more.created == 1
    assert spans_of(own(owner.client, number)[fourth])[0] == ("Eve", "PER")


def test_the_task_that_needs_another_label_comes_first(people: list[Person], project: tuple[int, list[int]]) -> None:
    owner = people[0]
    number, _ = project
    sync(owner.client, number)
    there = own(owner.client, number)
    query = json.dumps({"ordering": ["tasks:predictions_score"]})  # what the Data Manager asks when a column is sorted
    listed = [task["id"] for task in owner.client.get("/api/tasks", project=number, query=query)["tasks"]]
    assert [task for task in listed if task in there] == sorted(there, key=lambda task: there[task]["score"])


def test_ground_truth_is_taken_as_certain(people: list[Person], project: tuple[int, list[int]]) -> None:
    owner = people[0]
    number, (_, _, third, _) = project
    owner.annotate(third, ground_truth=True)  # it says that there is nothing, against two of three
    sync(owner.client, number)
    prediction = own(owner.client, number)[third]
    assert prediction["result"] == []
    assert prediction["score"] == pytest.approx(1.0, abs=1e-3)


def test_a_duplicate_is_removed_and_others_predictions_are_left_alone(
    people: list[Person], project: tuple[int, list[int]]
) -> None:
    owner = people[0]
    number, (first, *_) = project
    sync(owner.client, number)
    extra = [
        {"task": first, "model_version": "quorate auto", "score": 0.1, "result": []},
        {"task": first, "model_version": "tagger-1", "score": 0.5, "result": []},
    ]
    owner.client.create(f"/api/projects/{number}/import/predictions", extra)
    done = sync(owner.client, number)
    assert done is not None
    assert done.deleted == 1
    versions = [each["model_version"] for each in owner.client.get("/api/predictions/", project=number)]
    assert versions.count("tagger-1") == 1
    assert versions.count("quorate auto") == done.tasks


def test_the_command(people: list[Person], project: tuple[int, list[int]], server: str) -> None:
    environment = os.environ | {"LABEL_STUDIO_API_KEY": people[0].key}
    command = [sys.executable, "-m", "quorate", "label-studio", "sync", "--url", server, "--project", str(project[0])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "left as they were" in done.stderr
    assert people[0].key not in done.stdout + done.stderr
    wrong = subprocess.run([*command[:-1], "999"], env=environment, capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1
    assert "/api/projects/999/: no such thing there" in wrong.stderr
    environment["LABEL_STUDIO_API_KEY"] = "0123456789abcdef"
    refused = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "the key was refused" in refused.stderr
    assert "0123456789abcdef" not in refused.stderr


def tabs_of(client: Client, project: int) -> dict[str, list[int]]:
    """By its title, the tasks that the Data Manager shows in each tab, in their order."""
    return {
        view["data"]["title"]: [
            task["id"] for task in client.get("/api/tasks", project=project, view=view["id"], page_size=100)["tasks"]
        ]
        for view in client.get("/api/dm/views/", project=project)
        if view["data"]["title"].startswith("quorate")
    }


def test_what_is_next_is_a_tab_of_the_data_manager(
    people: list[Person], project: tuple[int, list[int]], server: str, tmp_path: Path
) -> None:
    client, ann = people[0].client, people[1]
    number, (first, second, third, fourth) = project
    sync(client, number)
    done = push(client, number, [(str(first), "2"), (str(fourth), "3"), (str(second), "2")], by_annotator=True)
    assert done.assigned is None  # the open-source server has no assignments
    tabs = tabs_of(client, number)
    assert {title: sorted(tasks) for title, tasks in tabs.items()} == {
        "quorate: next": [first, second, fourth],
        "quorate: next for 2": [first, second],
        "quorate: next for 3": [fourth],
    }
    ours = [each for each in client.get("/api/predictions/", project=number) if each["model_version"] == "quorate auto"]
    scores = {each["task"]: each["score"] for each in ours}
    assert tabs["quorate: next"] == sorted(tabs["quorate: next"], key=lambda task: scores.get(task, 2.0))
    assert ann.client.get("/api/tasks", project=number, view=int(done.tabs[0].url.rpartition("=")[2]))["total"] == 3
    again = push(client, number, [(str(third), "2"), ("987654", "2")])
    assert [tab.url for tab in again.tabs] == [done.tabs[0].url]
    assert "1 of the 2 documents are no tasks" in again.notes[0]
    assert tabs_of(client, number) == {"quorate: next": [third]}
    with pytest.raises(InputError, match="none of these documents is a task of project"):
        push(client, number, [("987654", "2")])
    assert tabs_of(client, number) == {}

    with (tmp_path / "export.json").open("wb") as stream:
        pull(client, number, stream)
    environment = os.environ | {"LABEL_STUDIO_API_KEY": people[0].key}
    command = [sys.executable, "-m", "quorate", "next", str(tmp_path / "export.json"), "-n", "2", "--push"]
    command += ["--url", server, "--project", str(number)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert re.search(rf"tab 'quorate: next', 1 task: {server}/projects/{number}/data\?tab=\d+\n", ran.stderr)
    assert tabs_of(client, number)["quorate: next"] == [fourth]  # everybody else has seen the others


# A server that fails ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [500, 503, 429, 0])
def test_faults_that_pass_are_tried_again(code: int) -> None:
    world = World({("GET", "export"): [code, code], ("GET", "predictions"): [502]})
    with Pretence(world.answer) as server:
        client, pauses = hurried(server.url)
        done = sync(client, 1)
        assert server.keys == {"Token secret-key"}
    assert done is not None
    assert done[:5] == (2, 2, 0, 0, 0)
    assert pauses == [1.0, 2.0, 1.0]
    assert {each["task"]: len(each["result"]) for each in world.predictions.values()} == {1: 1, 2: 1}


def test_a_creation_that_was_done_though_it_failed_is_not_done_twice() -> None:
    world = World({("POST", "predictions"): [-1]})
    with Pretence(world.answer) as server:
        done = sync(hurried(server.url)[0], 1)
    assert done is not None
    assert done.kept == 2
    assert len(world.predictions) == 2


def test_faults_that_do_not_pass_end_in_one_line_and_change_nothing() -> None:
    world = World({("GET", "export"): [503] * 9})
    with Pretence(world.answer) as server:
        with pytest.raises(ServerError) as caught:
            sync(hurried(server.url)[0], 1)
        asked = server.asked.count(("GET", "/api/projects/1/export"))
    assert str(caught.value) == (
        f"{server.url}: no answer after 3 attempts: the server answers 503 Service Unavailable "
        "(is Label Studio running there?)"
    )
    assert asked == 3
    assert not world.predictions


def test_a_fault_in_the_middle_leaves_every_task_with_one_prediction() -> None:
    world = World()
    with Pretence(world.answer) as server:
        sync(hurried(server.url)[0], 1)
        before = {number: dict(each) for number, each in world.predictions.items()}
        for task in world.tasks:
            task["annotations"] = task["annotations"][1:]
        world.fail = {("PATCH", "2"): [503] * 9}
        with pytest.raises(ServerError, match="no answer after 3 attempts"):
            sync(hurried(server.url)[0], 1)
        assert sorted(world.predictions) == [1, 2]
        assert world.predictions[2] == before[2]
        world.fail = {}
        done = sync(hurried(server.url)[0], 1)
    assert done is not None
    assert (done.changed, done.kept) == (1, 1)


@pytest.mark.parametrize(("moved", "changed"), [(0.0049, 0), (-0.0049, 0), (0.0051, 2)])
@pytest.mark.parametrize("of", ["task", "region"])
def test_a_prediction_is_left_alone_until_a_score_has_moved_by_half_a_hundredth(
    of: str, moved: float, changed: int
) -> None:
    world = World()
    with Pretence(world.answer) as server:
        sync(hurried(server.url)[0], 1)
        for prediction in world.predictions.values():
            (prediction if of == "task" else prediction["result"][0])["score"] += moved
        before = copy.deepcopy(world.predictions)
        done = sync(hurried(server.url)[0], 1)
    assert done is not None
    assert (done.changed, done.kept) == (changed, 2 - changed)
    assert (world.predictions == before) is not bool(changed)


@pytest.mark.parametrize(("least", "changed"), [(0.0, 2), (0.01, 2), (0.02, 0), (1.0, 0)])
def test_how_far_a_score_must_move_can_be_said(least: float, changed: int) -> None:
    world = World()
    with Pretence(world.answer) as server:
        sync(hurried(server.url)[0], 1, least_change=least)
        for prediction in world.predictions.values():
            prediction["score"] += 0.015 if prediction["score"] < 0.9 else -0.015
        done = sync(hurried(server.url)[0], 1, least_change=least)
        assert done is not None
        assert done.changed == changed
        again = sync(hurried(server.url)[0], 1, least_change=least)  # what did not move at all is never written
        assert again is not None
        assert again.changed == 0
        with pytest.raises(SettingsError, match="least change of a score must be from 0 to 1"):
            sync(hurried(server.url)[0], 1, least_change=1.5)


def test_a_prediction_of_other_spans_is_changed_though_its_scores_are_the_same() -> None:
    world = World()
    with Pretence(world.answer) as server:
        sync(hurried(server.url)[0], 1)
        wanted = copy.deepcopy(world.predictions[1])
        world.predictions[1]["result"][0]["value"]["end"] = 2
        done = sync(hurried(server.url)[0], 1)
    assert done is not None
    assert (done.changed, done.kept) == (1, 1)
    assert world.predictions[1] == wanted


def test_the_project_shows_the_consensus_unless_it_shows_another_model() -> None:
    world = World()
    with Pretence(world.answer) as server:
        sync(hurried(server.url)[0], 1)
        assert world.version == "quorate auto"
        world.version = "tagger-1"
        done = sync(hurried(server.url)[0], 1)
    assert world.version == "tagger-1"
    assert done is not None
    assert "the project shows predictions of 'tagger-1'" in done.notes[-1]


def titles(world: World) -> list[str]:
    return [view["data"]["title"] for view in world.views.values()]


def test_a_second_push_replaces_the_first_and_leaves_other_tabs_alone() -> None:
    world = World()
    world.views = {1: {"id": 1, "data": {"title": "Default"}}, 2: {"id": 2, "data": None}}
    with Pretence(world.answer) as server:
        client, _ = hurried(server.url)
        push(client, 1, [("1", "ann@example.com"), ("2", "bob@example.com")], by_annotator=True)
        assert [view["data"]["title"] for number, view in world.views.items() if number > 2] == [
            "quorate: next", "quorate: next for ann@example.com", "quorate: next for bob@example.com",
        ]  # fmt: skip
        push(client, 1, [("2", "bob@example.com")], by_annotator=True)
        assert [(number, view["data"]["title"]) for number, view in world.views.items() if number > 2] == [
            (3, "quorate: next"), (5, "quorate: next for bob@example.com"),
        ]  # fmt: skip
        assert [item["value"] for item in world.views[3]["data"]["filters"]["items"]] == [2]
        assert push(client, 1, []).tabs == ()
    assert list(world.views) == [1, 2]


def test_a_server_that_has_assignments_is_given_them() -> None:
    world = World()
    world.enterprise = True
    with Pretence(world.answer) as server:
        client, _ = hurried(server.url)
        done = push(client, 1, [("1", "ann@example.com"), ("2", "2"), ("2", "zoe")], by_annotator=True)
        assert done.assigned == 2
        assert world.assigned == {1: [1], 2: [2]}
        assert done.notes == ("nobody on the server is called 'zoe', so nothing was assigned to them",)
        assert push(client, 1, [("1", "ann@example.com")]).assigned is None  # nobody was named


@pytest.mark.parametrize("fault", [503, -1, 0])
def test_a_push_through_faults_makes_every_tab_once(fault: int) -> None:
    """Also where a tab was made and the answer was lost."""
    world = World({("POST", "views"): [fault], ("PATCH", "1"): [503], ("GET", "views"): [502]})
    with Pretence(world.answer) as server:
        for _ in range(2):
            push(hurried(server.url)[0], 1, [("1", "ann")])
    assert titles(world) == ["quorate: next"]


def test_documents_that_are_no_tasks_are_not_pushed() -> None:
    world = World()
    with Pretence(world.answer) as server:
        client, _ = hurried(server.url)
        with pytest.raises(InputError, match="document 's001' is no task of Label Studio"):
            push(client, 1, [("1", "ann"), ("s001", "bob")])
        with pytest.raises(InputError, match="none of these documents is a task of project 1"):
            push(client, 1, [("77", "ann")])
        done = push(client, 1, [("77", "ann"), ("1", "ann")])
    assert done.notes == ("1 of the 2 documents are no tasks of project 1 (any more)",)
    assert titles(world) == ["quorate: next"]


def test_the_command_says_where_to_click(tmp_path: Path) -> None:
    world, export = World(), tmp_path / "export.json"
    export.write_text(json.dumps(world.tasks))
    environment = os.environ | {"LABEL_STUDIO_API_KEY": "secret-key"}
    command = [sys.executable, "-m", "quorate", "next", str(export), "-n", "1", "--annotators", "3"]

    def ran(*options: str) -> tuple[int, str]:
        done = subprocess.run([*command, *options], env=environment, capture_output=True, text=True, check=False)
        assert "secret-key" not in done.stdout + done.stderr
        return done.returncode, done.stderr

    world.tasks[1]["annotations"] = world.tasks[1]["annotations"][:2]
    export.write_text(json.dumps(world.tasks))
    with Pretence(world.answer) as server:
        code, said = ran("--push", "--url", server.url, "--project", "1")
        assert code == 0, said
        assert f"tab 'quorate: next for 3', 1 task: {server.url}/projects/1/data?tab=2" in said
        assert "tell everybody their tab" in said
    assert ran("--push", "--url", server.url) == (
        2, "quorate: --push needs --url and --project (the address of the server, the number of the project)\n"
    )  # fmt: skip
    assert ran("--project", "1")[0] == 2


def test_the_pauses_of_a_watch_grow_and_begin_anew() -> None:
    from quorate.cli.label_studio import _again_and_again

    answers = iter([None, "away", "away", "away", None, "away", None])
    pauses: list[float] = []

    def once() -> None:
        if next(answers) == "away":
            raise NoAnswerError("no answer")

    with pytest.raises((StopIteration, RuntimeError)):
        _again_and_again(once, 100.0, True, pauses.append)
    assert pauses == [100.0, 100.0, 200.0, 300.0, 100.0, 100.0, 100.0]


@pytest.mark.parametrize("code", [502, 503, 0])
def test_a_watch_that_is_interrupted_in_a_request_does_nothing_twice(code: int, start: Start, tmp_path: Path) -> None:
    world, log = World({("GET", "export"): [200, code, code, 200]}), tmp_path / "log"
    environment = os.environ | {"LABEL_STUDIO_API_KEY": "secret-key"}
    with Pretence(world.answer) as server, log.open("wb") as stream:
        command = [sys.executable, "-m", "quorate", "label-studio", "sync", "--url", server.url, "--project", "1"]
        process = start([*command, "--watch", "0.1", "--attempts", "1"], env=environment, stderr=stream)
        deadline = time.monotonic() + 120
        while "answers again" not in log.read_text() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(2)
        process.wait(60)
    lines = log.read_text().splitlines()
    assert ["created" in lines[0], "trying again" in lines[1], "answers again" in lines[2]] == [True] * 3
    assert lines[3:] == ["quorate: stopped"]
    assert server.asked.count(("GET", "/api/predictions/")) == 1


def test_a_sync_prints_how_good_it_is_and_whom_to_trust() -> None:
    environment = os.environ | {"LABEL_STUDIO_API_KEY": "secret-key"}
    with Pretence(World().answer) as server:
        command = [sys.executable, "-m", "quorate", "label-studio", "sync", "--url", server.url, "--project", "1"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        first, head, *rows = done.stdout.splitlines()
        assert first == "agreement 0.39 (Krippendorff's alpha)"
        assert head.split()[:2] == ["annotator", "labels"]
        assert sorted(row.split()[0] for row in rows) == ["1", "2", "3"]
        told = subprocess.run([*command, "--json"], env=environment, capture_output=True, text=True, check=False)
    record = json.loads(told.stdout)
    assert (record["project"], record["tasks"], record["kept"]) == (1, 2, 2)
    assert f"{record['agreement']:.2f}" == "0.39"
    assert [row["name"] for row in record["annotators"]] == ["1", "2", "3"]
    assert told.stderr == ""


def test_nobody_there() -> None:
    client, pauses = hurried(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(ServerError, match=r"no answer after 3 attempts: .*refused"):
        sync(client, 1)
    assert pauses == [1.0, 2.0]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (401, r"the key was refused: out of order \(see Account & Settings"),
        (404, r"/api/projects/1/: no such thing there \(check --project"),
        (400, r"/api/projects/1/: the server answers 400: out of order"),
        (302, r"sends us to http://example\.invalid"),
    ],
)
def test_refusals_are_not_tried_again(code: int, message: str) -> None:
    with Pretence(lambda *_: (code, {"detail": "out of order"})) as server:
        with pytest.raises(ServerError, match=message) as caught:
            sync(hurried(server.url)[0], 1)
        assert len(server.asked) == 1
    assert "secret-key" not in str(caught.value)


KEYS = ["0123456789abcdef0123", "eyJhbGci.eyJ0b2tlbiI6MX0.c2lnbmF0dXJl"]


@pytest.mark.parametrize("key", KEYS, ids=["legacy", "personal"])
@pytest.mark.parametrize("code", [400, 401, 403, 409])
@pytest.mark.parametrize("before", [0, 190])
def test_a_key_that_the_server_sends_back_is_masked(key: str, code: int, before: int) -> None:
    """Whole, and where only its beginning would fit into the line; so is the access that a personal token buys."""
    access = "short-lived-access"

    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        if path == "/api/token/refresh" and code != 401:
            return 200, {"access": access}
        return code, {"detail": f"{'.' * before} {key} {access} is not welcome"}

    with Pretence(answer) as server, pytest.raises(ServerError) as caught:
        Client(server.url, key, attempts=1).get("/api/projects/1/")
    said = str(caught.value)
    assert "***" in said
    assert key[:6] not in said
    assert code == 401 or key == KEYS[0] or access[:6] not in said


def test_a_key_in_a_broken_answer_or_a_redirect_is_masked() -> None:
    def once(answer: bytes) -> str:
        with socket.socket() as place:
            place.bind(("127.0.0.1", 0))
            place.listen()

            def reply() -> None:
                connection, _ = place.accept()
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(answer)

            thread = threading.Thread(target=reply, daemon=True)
            thread.start()
            with pytest.raises(ServerError) as caught:
                Client(f"http://127.0.0.1:{place.getsockname()[1]}", KEYS[0], attempts=1, timeout=5).get("/api/")
            thread.join(5)
        return str(caught.value)

    key = KEYS[0]
    for answer in (
        f"what is {key}?\r\n\r\n",
        f"HTTP/1.1 503 no {key}\r\nContent-Length: 0\r\n\r\n",
        f"HTTP/1.1 302 there\r\nLocation: http://{key}.example.invalid/\r\nContent-Length: 0\r\n\r\n",
    ):
        said = once(answer.encode())
        assert "***" in said
        assert key not in said


def test_another_kind_of_server() -> None:
    with (
        Pretence(lambda *_: (200, b"<html>")) as server,
        pytest.raises(ServerError, match="not JSON \\(is it a Label Studio"),
    ):
        sync(hurried(server.url)[0], 1)


def test_a_personal_token_buys_access_and_buys_it_again_when_it_runs_out() -> None:
    world, sold = World(), []

    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        if path == "/api/token/refresh":
            assert body == {"refresh": "a.b.c"}
            sold.append(path)
            return 200, {"access": f"access-{len(sold)}"}
        if len(sold) == 1 and path == "/api/predictions/":
            return 401, {"detail": "token expired"}
        return world.answer(method, path, body)

    with Pretence(answer) as server:
        client = Client(server.url, "a.b.c", pause=lambda _: None)
        sync(client, 1)
        assert server.keys == {"", "Bearer access-1", "Bearer access-2"}
    assert len(world.predictions) == 2
    assert "a.b.c" not in repr(client)


def test_what_cannot_be_synced_is_said() -> None:
    world = World()
    with Pretence(world.answer) as server:
        client, _ = hurried(server.url)
        with pytest.raises(InputError, match="the project has no label 'NAME'"):
            sync(client, 1, reading={"map_labels": "PER=NAME"})
        with pytest.raises(SettingsError, match="must begin with 'quorate'"):
            sync(client, 1, model_version="mine")
        for task in world.tasks:
            task["annotations"] = []
        with pytest.raises(InputError, match="project 1: nobody has annotated anything yet"):
            sync(client, 1)
    assert not world.predictions
    for url in ("localhost:8080", "http://user:pass@host"):
        with pytest.raises(SettingsError):
            Client(url, "key")
    with pytest.raises(SettingsError, match="the key is empty or not a key"):
        Client("http://localhost", " ")


def test_sync_recommends_no_option_that_it_lacks() -> None:
    import typer.main

    from quorate.cli import app

    world = World()
    for task in world.tasks:
        task["data"] = {"text": "👋 Ada sang."}
        for annotation in task["annotations"]:
            regions = [{**region, "value": {**region["value"], "text": None}} for region in annotation["result"]]
            inner = [{**region, "value": {**region["value"], "start": 2}} for region in regions]
            annotation["result"] = regions + inner
    with Pretence(world.answer) as server:
        done = sync(hurried(server.url)[0], 1, method="mv")
    assert done is not None
    assert any("overlapped a longer one" in note for note in done.notes)
    assert any("nothing tells what offsets count" in note for note in done.notes)
    command = typer.main.get_command(app).commands["label-studio"].commands["sync"]  # type: ignore[attr-defined]
    own = {option for parameter in command.params for option in parameter.opts}
    for note in done.notes:
        assert set(re.findall(r"(?<!aggregate )--[a-z-]+", note)) <= own


def test_with_layers_predictions_hold_regions_that_overlap() -> None:
    world = World()
    for annotation in world.tasks[0]["annotations"][:2]:  # which are those of both tasks
        (inner,) = annotation["result"]
        outer = {**inner, "value": {**inner["value"], "end": 8, "text": "Ada sang"}}
        annotation["result"] = [inner, outer]
    with Pretence(world.answer) as server:
        client = hurried(server.url)[0]
        assert sync(client, 1, method="mv") is not None
        alone = {each["task"]: len(each["result"]) for each in world.predictions.values()}
        done = sync(client, 1, method="mv", layers=True)
        assert done is not None
        assert sync(client, 1, method="mv", layers=True, seen=done.fingerprint) is None
    assert alone == {1: 1, 2: 1}
    assert not any("overlapped" in note for note in done.notes)
    for prediction in world.predictions.values():
        found = {(one["value"]["start"], one["value"]["end"], one["value"]["text"]) for one in prediction["result"]}
        assert found == {(0, 3, "Ada"), (0, 8, "Ada sang")}


def test_the_key_comes_from_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LABEL_STUDIO_API_KEY", raising=False)
    command = [sys.executable, "-m", "quorate", "label-studio", "sync", "--url", "http://127.0.0.1:9", "--project", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "no key (export LABEL_STUDIO_API_KEY=" in done.stderr


def test_watching_syncs_again_and_ends_quietly(start: Start) -> None:
    world = World()
    with Pretence(world.answer) as server:
        environment = os.environ | {"LABEL_STUDIO_API_KEY": "secret-key"}
        command = [sys.executable, "-m", "quorate", "label-studio", "sync", "--url", server.url, "--project", "1"]
        process = start(
            [*command, "--watch", "0.2"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        deadline = time.monotonic() + 120
        while server.asked.count(("GET", "/api/projects/1/export")) < 3 and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(2)
        out, err = process.communicate(timeout=60)
    assert server.asked.count(("GET", "/api/predictions/")) == 1  # nothing changed, so nothing was done again
    assert "Traceback" not in out + err
    assert "2 predictions created" in err


def test_watching_goes_on_through_a_restart_of_the_server(start: Start, tmp_path: Path) -> None:
    environment = os.environ | {"LABEL_STUDIO_API_KEY": "secret-key"}
    world, log = World(), tmp_path / "log"

    def until_it_says(what: str) -> None:
        deadline = time.monotonic() + 120
        while what not in log.read_text() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        assert what in log.read_text()

    with log.open("wb") as stream:
        with Pretence(world.answer) as server:
            command = [sys.executable, "-m", "quorate", "label-studio", "sync", "--url", server.url, "--project", "1"]
            process = start([*command, "--watch", "0.2", "--attempts", "1"], env=environment, stderr=stream)
            until_it_says("2 predictions created")
        until_it_says("trying again")
        time.sleep(1)  # two more tries or so, of which nothing is said
        world.tasks[0]["annotations"] = world.tasks[0]["annotations"][1:]
        with Pretence(world.answer, port=int(server.url.rpartition(":")[2])):
            until_it_says("the server answers again")
            process.send_signal(2)
            process.wait(60)
    lines = log.read_text().splitlines()
    assert lines[1].startswith(f"quorate: {server.url}: no answer after 1 attempt: ")
    assert "(is Label Studio running there?); trying again until it answers, after 0.2 s" in lines[1]
    assert sum("trying again" in line for line in lines) == 1
    assert any(" predictions created, " in line and ", 0 changed" not in line for line in lines[2:])
    assert "Traceback" not in log.read_text()
    assert process.returncode == 130


@pytest.mark.parametrize("key", ["secret-key", "a.b.c"])
def test_watching_goes_on_through_a_page_in_place_of_an_answer(key: str, start: Start, tmp_path: Path) -> None:
    """A proxy shows its own page, as if all were well, while the server behind it starts."""
    environment = os.environ | {"LABEL_STUDIO_API_KEY": key}
    world, log, pages = World(), tmp_path / "log", [b"<html>Starting up", b" ", b"<html>Starting up"]

    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        if pages:
            return 200, pages.pop()
        return (200, {"access": "bought"}) if path == "/api/token/refresh" else world.answer(method, path, body)

    with Pretence(answer) as server, log.open("wb") as stream:
        command = [sys.executable, "-m", "quorate", "label-studio", "sync", "--url", server.url, "--project", "1"]
        process = start([*command, "--watch", "0.2"], env=environment, stderr=stream)
        deadline = time.monotonic() + 120
        while "the server answers again" not in log.read_text() and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        process.send_signal(2)
        process.wait(60)
    lines = log.read_text().splitlines()
    assert process.returncode == 130
    assert "not JSON (is it a Label Studio server?); trying again until it answers" in lines[0]
    assert "2 predictions created" in lines[1]


def test_watching_ends_where_the_key_is_refused(start: Start) -> None:
    world = World({("GET", "export"): [200, 401]})
    with Pretence(world.answer) as server:
        environment = os.environ | {"LABEL_STUDIO_API_KEY": "secret-key"}
        command = [sys.executable, "-m", "quorate", "label-studio", "sync", "--url", server.url, "--project", "1"]
        process = start([*command, "--watch", "0.2"], env=environment, stderr=subprocess.PIPE, text=True)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "the key was refused" in err.splitlines()[-1]
