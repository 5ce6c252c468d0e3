"""The consensus of the service as a file: the records that the command line writes for the same labels."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, delete

import quorate
from quorate.corpus.overlaps import OverlapRule, Overlaps
from quorate.corpus.records import Corpus
from quorate.estimators.bsc import BSC
from quorate.formats.registry import FORMATS
from quorate_serve.annotating import import_annotation
from quorate_serve.database import tables
from quorate_serve.documents import add_text, corpus_of, marked_documents
from quorate_serve.importing import import_corpus
from quorate_serve.live.worker import Follower
from quorate_serve.people import Role
from serving import Team

ROUNDED = 1e-6


@pytest.fixture
def fitted(team: Team) -> Team:
    """A team whose crowd has a consensus."""
    crowd = Corpus(quorate.sample().documents[:40])
    import_corpus(team.database, team.settings.secret(), crowd)
    Follower(team.settings, team.database).refit()
    return team


def lines(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


def alike(one: Any, other: Any) -> bool:
    """Whether values are the same, but for the last digits of numbers."""
    if isinstance(one, float) or isinstance(other, float):
        return bool(one == pytest.approx(other, abs=ROUNDED))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)


def test_records_are_those_of_aggregate(fitted: Team, tmp_path: Path) -> None:
    with fitted.database.read() as connection:
        corpus = corpus_of(marked_documents(connection))
    BSC(tagger="none").fit(corpus).result_.write(tmp_path / "consensus.jsonl")
    manager = fitted.client(Role.MANAGER)
    given = lines(manager.get("/api/v1/export?what=consensus").content)
    expected = lines((tmp_path / "consensus.jsonl").read_bytes())
    assert len(given) == 40
    assert all(map(alike, given, expected))
    (tmp_path / "served.jsonl").write_bytes(manager.get("/api/v1/export?what=consensus").content)
    assert len(quorate.audit.plan(tmp_path / "served.jsonl", 20)) == 20


def test_every_format_that_is_written_has_it(fitted: Team) -> None:
    manager = fitted.client(Role.MANAGER)
    for name, format in FORMATS.items():
        if format.writes:
            answer = manager.get(f"/api/v1/export?what=consensus&format={name}")
            assert answer.status_code == 200, (name, answer.text)
            assert len(answer.content) > 100, name
            assert 'filename="consensus.' in answer.headers["content-disposition"]


def test_layers_are_kept(team: Team) -> None:
    inner, outer = {"start": 0, "end": 4, "label": "LOC"}, {"start": 0, "end": 19, "label": "ORG"}

    def label(connection: Connection) -> None:
        for n in range(12):
            number = add_text(connection, f"d{n}", f"Bath Spa University opens {n}")
            for role in (Role.ANNOTATOR, Role.REVIEWER, Role.MANAGER):
                import_annotation(connection, team.ids[role], number, [inner, outer] if n % 3 else [], None)

    team.database.change(label)
    settings = replace(team.settings, overlaps=OverlapRule(Overlaps.NESTED))
    Follower(settings, team.database).refit()
    manager = team.client(Role.MANAGER)
    given = lines(manager.get("/api/v1/export?what=consensus").content)
    assert [sorted(one["layers"]) for one in given] == [["LOC", "ORG"]] * 12
    assert {span["layer"]: span["end"] for span in given[1]["spans"]} == {"LOC": 4, "ORG": 19}
    assert given[1]["layers"]["ORG"]["tags"] == ["B-ORG", "I-ORG", "I-ORG", "O", "O"]
    assert given[0]["spans"] == []  # and yet in layers, as all are
    refused = manager.get("/api/v1/export?what=consensus&format=parquet")
    assert refused.status_code == 422
    assert "layers" in refused.json()["error"]["message"]


def test_without_one_or_half_way_there_is_none(fitted: Team) -> None:
    manager = fitted.client(Role.MANAGER)
    fitted.database.change(lambda connection: connection.execute(delete(tables.snapshots)))
    assert manager.get("/api/v1/export?what=consensus").status_code == 503
    fitted.database.change(lambda connection: connection.execute(delete(tables.consensus)))
    assert manager.get("/api/v1/export?what=consensus").status_code == 404
    assert fitted.client(Role.REVIEWER).get("/api/v1/export?what=consensus").status_code == 403
