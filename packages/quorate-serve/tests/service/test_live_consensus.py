"""The live consensus: what people save is in it a moment later, and in the end it is that of the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select

import quorate
from quorate.corpus.overlaps import OverlapRule, Overlaps
from quorate.corpus.records import Corpus, hard_tags
from quorate.formats import write
from quorate_serve import annotating
from quorate_serve.database import tables
from quorate_serve.documents import add_document, add_text, corpus_of, marked_documents, spans_of_tags
from quorate_serve.events import Kind, append, last_event
from quorate_serve.importing import import_corpus
from quorate_serve.live import publish, worker
from quorate_serve.live.publish import Publisher
from quorate_serve.live.worker import Follower
from quorate_serve.people import Role
from quorate_serve.settings import QueueSettings
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
def staffed(any_team: Team) -> Team:
    """A team with a crowd's labels in it."""
    import_corpus(any_team.database, any_team.settings.secret(), crowd())
    return any_team


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
    follower.refit()

    with team.database.read() as connection:
        write(corpus_of(marked_documents(connection)), tmp_path / "export.jsonl")
    command = [sys.executable, "-m", "quorate", "aggregate", "export.jsonl", "-o", "out.jsonl"]
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


def test_what_reviewers_decide_is_known_unless_they_differ(staffed: Team) -> None:
    follower = Follower(staffed.settings, staffed.database)
    settle(follower)
    number = next(number for number, row in given_out(staffed).items() if row.spans)
    mark = [{"start": 0, "end": 3, "label": "LOC"}]
    decide(staffed, staffed.ids[Role.REVIEWER], number, mark)
    settle(follower)
    row = given_out(staffed)[number]
    assert row.known
    assert [(span["start"], span["label"], span["confidence"]) for span in row.spans] == [(0, "LOC", 1.0)]
    decide(staffed, staffed.ids[Role.MANAGER], number, [])
    settle(follower)
    assert not given_out(staffed)[number].known
    decide(staffed, staffed.ids[Role.ADMIN], number, [], adjudicates=True)
    settle(follower)
    row = given_out(staffed)[number]
    assert (row.known, row.spans) == (True, [])
    follower.refit()
    assert given_out(staffed)[number].known


def test_a_label_that_is_new_and_one_taken_back_are_followed_by_a_fit(team: Team) -> None:
    import_corpus(team.database, team.settings.secret(), crowd(30))
    follower = Follower(team.settings, team.database)
    settle(follower)
    person, number = team.ids[Role.ANNOTATOR], next(iter(given_out(team)))
    before = given_out(team)[number]
    save(team, person, number, [{"start": 0, "end": 3, "label": "SHIP"}])
    for n in range(4):
        save(team, team.add(f"somebody {n}", Role.ANNOTATOR), number, [{"start": 0, "end": 3, "label": "SHIP"}])
    settle(follower)
    follower.refit()
    assert given_out(team)[number].labels == before.labels + 5
    fitted = next(one for one in reversed(snapshots(team)) if one.kind == "refit")
    assert all("SHIP" in one["types"] for one in fitted.summary["annotators"])
    team.database.change(lambda connection: annotating.withdraw(connection, person, number, uuid.uuid4().hex))
    settle(follower)
    assert given_out(team)[number].labels == before.labels + 4


def test_spans_in_spans_are_all_in_the_consensus(team: Team) -> None:
    team.settings = replace(team.settings, overlaps=OverlapRule(Overlaps.NESTED))
    outer, inner = {"start": 0, "end": 8, "label": "ORG"}, {"start": 0, "end": 4, "label": "LOC"}
    numbers = [team.database.change(lambda c, n=n: add_text(c, f"d{n}", f"Bath Spa won {n}")) for n in range(12)]  # type: ignore[misc]
    people = [team.add(name, Role.ANNOTATOR) for name in ("anna", "ben", "cleo")]
    for number in numbers:
        for person in people[: 2 if number == numbers[0] else 3]:
            save(team, person, number, [outer])
    follower = Follower(team.settings, team.database)
    settle(follower)
    for number in numbers[1:]:
        for person in people:
            save(team, person, number, [outer, inner])
    settle(follower)
    follower.refit()
    last = given_out(team)[numbers[-1]]
    assert [(span["start"], span["end"], span["label"]) for span in last.spans] == [(0, 4, "LOC"), (0, 8, "ORG")]
    save(team, people[2], numbers[0], [outer, inner])
    follower.step()
    assert given_out(team)[numbers[0]].labels == 3


def test_documents_for_checks_tell_of_people_and_are_not_in_the_consensus(team: Team) -> None:
    corpus = crowd(40)
    secret = team.settings.secret()
    import_corpus(team.database, secret, Corpus(corpus.documents[:20]), purpose="check")
    import_corpus(team.database, secret, Corpus(corpus.documents[20:]))
    follower = Follower(team.settings, team.database)
    settle(follower)
    with team.database.read() as connection:
        rows = connection.execute(select(tables.documents.c.number, tables.documents.c.purpose))
        purposes = {row.number: row.purpose for row in rows}
    assert {purposes[number] for number in given_out(team)} == {"work"}
    told = snapshots(team)[-1] if snapshots(team)[-1].kind == "refit" else snapshots(team)[-2]
    tags = sum(one["tags"] for one in told.summary["annotators"])
    assert tags == sum(len(one.tokens) * len(one.annotations) for one in corpus)  # by checks too, people are judged


def test_a_worker_killed_while_it_publishes_is_followed_by_one_that_completes_it(
    staffed: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "_TOGETHER", 7)
    follower = Follower(staffed.settings, staffed.database)
    calls = 0
    write_one = Publisher._write

    def dies(self: Publisher, work: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        write_one(self, work)

    monkeypatch.setattr(Publisher, "_write", dies)
    with pytest.raises(KeyboardInterrupt):
        settle(follower)
    monkeypatch.setattr(Publisher, "_write", write_one)
    assert len(given_out(staffed)) == 21
    assert snapshots(staffed) == []
    settle(Follower(staffed.settings, staffed.database))
    rows = given_out(staffed)
    assert len(rows) == 60
    assert {row.version for row in rows.values()} == {1}
    assert [one.version for one in snapshots(staffed)] == [1, 2]
    assert snapshots(staffed)[0].changed == sorted(rows)  # those of the first worker too
    with staffed.database.read() as connection:
        assert snapshots(staffed)[0].event == last_event(connection)


def test_a_worker_that_starts_again_changes_nothing(staffed: Team) -> None:
    settle(Follower(staffed.settings, staffed.database))
    settle(Follower(staffed.settings, staffed.database))
    assert len([one for one in snapshots(staffed) if one.kind == "refit"]) == 2
    assert len({row.version for row in given_out(staffed).values()}) == 1


def test_updates_go_on_while_a_fit_is_under_way(team: Team) -> None:
    import_corpus(team.database, team.settings.secret(), crowd(30))
    waiting: list[tuple[Callable[[], Any], Future[Any]]] = []

    def aside(work: Callable[[], Any]) -> Future[Any]:
        waiting.append((work, Future()))
        return waiting[-1][1]

    def finish() -> None:
        work, future = waiting.pop()
        future.set_result(work())

    now = 0.0
    follower = Follower(team.settings, team.database, aside=aside, clock=lambda: now)
    follower.step()
    finish()
    while not waiting:  # rows go out a few at a time
        follower.step()
    finish()  # the queues
    follower.step()
    now += 100.0  # long enough for another fit
    first, second, *_ = given_out(team)
    save(team, team.ids[Role.ANNOTATOR], first, [])
    for n in range(labels_of(team) // 10):
        save(team, team.add(f"somebody {n}", Role.ANNOTATOR), first, [])
    for _ in range(3):
        follower.step()
    labels = given_out(team)[first].labels
    assert labels > labels_of(team) // 12
    assert waiting  # a fit, as a tenth has come
    save(team, team.ids[Role.ANNOTATOR], second, [{"start": 0, "end": 3, "label": "LOC"}])
    follower.step()
    there = given_out(team)[second]
    finish()
    for _ in range(3):
        follower.step()
    after = given_out(team)
    assert after[second].labels == there.labels
    assert after[first].labels == labels
    assert after[second].version >= there.version


def test_queues_leave_out_what_somebody_has_done_or_has_in_hand(staffed: Team) -> None:
    person = staffed.ids[Role.ANNOTATOR]
    done, in_hand, *_ = sorted(_numbers(staffed))
    save(staffed, person, done, [])
    staffed.database.change(lambda connection: lease(connection, person, in_hand))
    settle(Follower(replace(staffed.settings, queue=QueueSettings(per_document_max=20)), staffed.database))
    with staffed.database.read() as connection:
        queues = {row.person: row for row in connection.execute(select(tables.queues))}
    assert set(queues) == set(staffed.ids.values())  # whose labels were imported gets nothing to do
    own = [number for number, _ in queues[person].documents]
    assert own
    assert not {done, in_hand} & set(own)
    assert snapshots(staffed)[-1].kind == "queues"


def test_old_snapshots_go(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "_KEPT", 5)
    monkeypatch.setattr(publish, "_PRUNED_EVERY", 10)
    publisher = Publisher(team.database)
    for _ in range(20):
        publisher.tell("update", 1, {})
    assert [one.version for one in snapshots(team)] == [16, 17, 18, 19, 20]


def labels_of(team: Team) -> int:
    return sum(row.labels for row in given_out(team).values())


def _numbers(team: Team) -> list[int]:
    with team.database.read() as connection:
        return list(connection.execute(select(tables.documents.c.number)).scalars())


def test_a_fit_that_fails_is_told_until_one_succeeds(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    import_corpus(team.database, team.settings.secret(), crowd(10), source="the sample")
    now, browser = [0.0], team.client(Role.MANAGER)
    follower = Follower(team.settings, team.database, clock=lambda: now[0])
    assert browser.get("/api/v1/health").json() == {"status": "ok", "consensus": "ok"}
    with monkeypatch.context() as patched:
        patched.setattr(worker, "fit", _fails)
        for _ in range(3):  # tried again and again, and told once
            follower.step()
            now[0] += 120.0
        assert browser.get("/api/v1/health").json() == {"status": "ok", "consensus": "failing"}
        assert "ZeroDivisionError: a label of nobody" in browser.get("/progress").text
        shown = team.client(Role.REVIEWER).get("/progress").text
        assert "The last fit failed" in shown
        assert "a label of nobody" not in shown
        with team.database.read() as connection:
            kinds = connection.execute(select(tables.snapshots.c.kind)).scalars().all()
        assert kinds.count("failed") == 1
    while follower.step():
        now[0] += 120.0
    assert browser.get("/api/v1/health").json()["consensus"] == "ok"
    assert "The last fit failed" not in browser.get("/progress").text


def _fails(*_: object) -> None:
    raise ZeroDivisionError("a label of nobody")
