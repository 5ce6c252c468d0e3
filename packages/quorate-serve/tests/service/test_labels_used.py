"""Labels where none are given: any is taken, and pages offer those that have been used."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from managing import save
from quorate_serve.documents import add_text
from quorate_serve.labels_used import LabelsUsed
from quorate_serve.people import Role
from quorate_serve.settings import ServiceSettings
from serving import Team


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def free(tmp_path: Path) -> Iterator[Team]:
    """A team that was given no labels, with a document."""
    made = Team(ServiceSettings(tmp_path))
    made.database.change(lambda connection: add_text(connection, "d1", "Ada sang in Bath"))
    yield made
    made.close()


def span(label: str) -> dict[str, Any]:
    return {"start": 0, "end": 3, "label": label}


def offered(browser: TestClient, page: str) -> list[str]:
    found = re.search(r'id="given">(.*?)</script>', browser.get(page).text)
    assert found is not None
    return [one["name"] for one in json.loads(found[1])["labels"]]


def test_a_label_that_is_new_is_taken_and_offered_without_a_restart(free: Team) -> None:
    clock = Clock()
    free.app.state.labels_used = LabelsUsed(clock=clock)
    ann, rob = free.client(Role.ANNOTATOR), free.client(Role.REVIEWER)
    page = ann.get("/annotate").text
    assert "--labels" in page
    assert "[serve]" in page
    assert "annotate.js" not in page  # which would ask for a document
    number = ann.post("/api/v1/queue/next").json()["document"]["number"]
    given = {"id": "saved-by-ann", "document": number, "spans": [span("Käse & Brot")]}
    assert ann.post("/api/v1/annotations", json=given).status_code == 200
    assert "no labels to mark with" in ann.get("/annotate").text  # one look in some seconds
    clock.now += 60
    assert offered(ann, "/annotate") == ["Käse & Brot"]
    review = {"id": "decided-by-rob", "document": number, "spans": [span("PER")], "accepted": False}
    assert rob.post("/api/v1/reviews", json=review).status_code == 200
    clock.now += 60
    for name in ("/review", "/adjudicate"):
        assert offered(rob, name) == ["Käse & Brot", "PER"]
    assert "Käse &amp; Brot" in free.client(Role.MANAGER).get("/settings").text


def test_labels_that_are_given_are_the_only_ones(team: Team) -> None:
    number = team.database.change(lambda connection: add_text(connection, "d1", "Ada sang in Bath"))
    save(team, team.ids[Role.MANAGER], number, [span("OLD")])
    ann = team.client(Role.ANNOTATOR)
    assert offered(ann, "/annotate") == ["PER", "LOC", "ORG"]
    ann.post("/api/v1/queue/next")
    given = {"id": "saved-by-ann", "document": number, "spans": [span("OLD")]}
    assert ann.post("/api/v1/annotations", json=given).status_code == 422


def test_each_look_reads_what_came_since(free: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate_serve.labels_used._AT_ONCE", 1)
    monkeypatch.setattr("quorate_serve.labels_used._PAUSE", 0.0)
    for person, label in ((Role.ANNOTATOR, "B"), (Role.REVIEWER, "A")):
        save(free, free.ids[person], 1, [span(label)])
    used = LabelsUsed()
    with free.database.read() as connection:
        assert [used.look(connection) for _ in range(3)] == [("B",), ("A", "B"), ("A", "B")]
