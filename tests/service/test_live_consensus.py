"""The live consensus: what people save is in it a moment later, and in the end it is that of the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select

import quorate
from quorate.corpus.records import Corpus, hard_tags
from quorate.formats import write
from quorate.service import annotating
from quorate.service.database import tables
from quorate.service.documents import add_document, add_text, corpus_of, marked_documents, spans_of_tags
from quorate.service.events import Kind, append
from quorate.service.importing import import_corpus
from quorate.service.live.publish import Publisher
from quorate.service.live.worker import Follower
from quorate.service.people import Role
from serving import Team

Spans = Sequence[Mapping[str, Any]]


def crowd(n: int = 60) -> Corpus:
    return Corpus(quorate.sample().documents[:n])


def save(team: Team, person: str, document: int, spans: Spans) -> int:
    """Somebody saves, as the route does; the number of the event."""
    given = annotating.Given(uuid.uuid4().hex, document, spans)

    def work(connection: Connection) -> int:
        lease(connection, person, document)
        return annotating.save(connection, person, given).event

    return team.database.change(work)


def lease(connection: Connection, person: str, document: int) -> None:
    values = {"document": document, "person": person, "purpose": "work", "state": "leased", "at": 0.0, "until": 9e9}
    there = select(tables.assignments.c.state).where(
        tables.assignments.c.document == document, tables.assignments.c.person == person
    )
    if connection.execute(there).first() is None:
        connection.execute(insert(tables.assignments).values(**values))


def decide(team: Team, person: str, document: int, spans: Spans, *, adjudicates: bool = False) -> None:
    def work(connection: Connection) -> None:
        event = append(connection, Kind.REVIEW_DECIDED, person=person, document=document)
        values = {
            "spans": list(spans),
            "accepted": True,
            "adjudicates": adjudicates,
            "event": event.seq,
            "at": event.at,
        }
        connection.execute(insert(tables.reviews).values(document=document, person=person, **values))

    team.database.change(work)


def settle(follower: Follower) -> None:
    """Let the worker do all there is to do."""
    for _ in range(50):
        if not follower.step():
            return
    raise AssertionError("the worker does not come to rest")


def given_out(team: Team) -> dict[int, Any]:
    with team.database.read() as connection:
        return {row.document: row for row in connection.execute(select(tables.consensus))}


def snapshots(team: Team) -> list[Any]:
    with team.database.read() as connection:
        return list(connection.execute(select(tables.snapshots).order_by(tables.snapshots.c.version)))


@pytest.fixture
def staffed(any_team: Team) -> Iterator[Team]:
    """A team with a crowd's labels in it."""
    import_corpus(any_team.database, any_team.settings.secret(), crowd())
    yield any_team


def test_a_crowd_through_the_api_gives_the_consensus_of_the_command_line(team: Team, tmp_path: Path) -> None:
    corpus = crowd()
    people = {name: team.add(name, Role.ANNOTATOR) for name in corpus.annotators}
    browsers = {name: team.client(person) for name, person in people.items()}
    team.app.state.settings = replace(team.settings, labels=())
    numbers = {}

    def bring(connection: Connection) -> None:
        for document in corpus:
            number, _ = add_document(connection, replace(document, gold=None))
            numbers[document.id] = number
            for name in document.annotations:
                lease(connection, people[name], number)

    team.database.change(bring)
    follower = Follower(team.settings, team.database)
    for document in corpus:
        with team.database.read() as connection:
            offsets = connection.execute(
                select(tables.documents.c.tokens).where(tables.documents.c.id == document.id)
            ).scalar_one()
        for name, tags in document.annotations.items():
            spans = spans_of_tags(hard_tags(tags), offsets)
            saved = {"id": uuid.uuid4().hex, "document": numbers[document.id], "spans": spans}
            assert browsers[name].post("/api/v1/annotations", json=saved).status_code == 200
    settle(follower)
    follower.refit(choose=True)

    with team.database.read() as connection:
        write(corpus_of(marked_documents(connection)), tmp_path / "export.jsonl")
    command = [sys.executable, "-m", "quorate", "aggregate", "export.jsonl", "-o", "out.jsonl", "--tagger", "none"]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, timeout=300)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    rows = given_out(team)
    assert len(lines) == len(rows) == len(corpus)
    for line in lines:
        number = numbers[line["id"]]
        expected = spans_of_tags(line["tags"], [(place[0], place[1]) for place in line["offsets"]])
        assert [{**span, "confidence": 0} for span in rows[number].spans] == [
            {**span, "confidence": 0} for span in expected
        ]
        assert rows[number].confidence == pytest.approx(line["confidence"], abs=1e-3)


def test_a_save_is_in_the_consensus_after_a_step(staffed: Team) -> None:
    follower = Follower(staffed.settings, staffed.database)
    settle(follower)
    before, version = given_out(staffed), follower.version
    number = next(iter(before))
    mark = {"start": 0, "end": 3, "label": "LOC"}
    event = save(staffed, staffed.ids[Role.ANNOTATOR], number, [mark])
    follower.step()
    after = given_out(staffed)
    assert after[number].labels == before[number].labels + 1
    assert after[number].version == version + 1
    assert {n: row for n, row in after.items() if n != number} == {n: row for n, row in before.items() if n != number}
    last = snapshots(staffed)[-1]
    assert (last.kind, last.event, last.changed) == ("update", event, [number])
    assert last.summary["labels"] == sum(row.labels for row in after.values())
