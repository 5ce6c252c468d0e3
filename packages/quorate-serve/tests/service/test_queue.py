"""The queue: nobody twice, nobody too many, nobody left out; however many ask at once."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, insert, update

from quorate.active.checks import Turn
from quorate_serve import annotating, queue
from quorate_serve.annotating import Given
from quorate_serve.database import tables
from quorate_serve.documents import add_text
from quorate_serve.events import Kind, events_after
from quorate_serve.people import Role
from quorate_serve.queue import Assignment, Nothing
from quorate_serve.settings import QueueSettings
from serving import Team

GOLD = [{"start": 0, "end": 3, "label": "PER"}]


def add(team: Team, count: int, purpose: str = "work") -> list[int]:
    """Some documents."""

    def work(connection: Connection) -> list[int]:
        numbers = [add_text(connection, f"{purpose} {n}", f"Ada {n} sang 👋", purpose=purpose) for n in range(count)]
        if purpose != "work":
            kept = tables.documents
            connection.execute(update(kept).where(kept.c.number.in_(numbers)).values(gold=GOLD))
        return numbers

    return team.database.change(work)


def ask(team: Team, person: str, settings: QueueSettings) -> Assignment | Nothing:
    return team.database.change(lambda connection: queue.lease(connection, person, settings))


def save(team: Team, person: str, document: int) -> None:
    given = Given(f"save-{person}-{document}"[:64], document, [])
    team.database.change(lambda connection: annotating.save(connection, person, given))


def listed(team: Team, person: str, documents: Sequence[int], waits: bool = False) -> None:
    row = {"person": person, "version": 1, "documents": [[one, 1.0] for one in documents], "waits": waits}
    team.database.change(lambda connection: connection.execute(insert(tables.queues).values(**row)))


def all_of(team: Team, person: str, settings: QueueSettings) -> list[int]:
    """What somebody gets, until there is nothing."""
    found = []
    while isinstance(given := ask(team, person, settings), Assignment):
        save(team, person, given.document)
        found.append(given.document)
    return found


def test_the_list_is_walked_then_the_fewest_labels_come(any_team: Team) -> None:
    ann, bob = any_team.ids[Role.ANNOTATOR], any_team.ids[Role.REVIEWER]
    one, two, three, four = add(any_team, 4)
    listed(any_team, ann, [three, one])
    settings = QueueSettings(per_document_max=2, check_rate=0.0)
    assert all_of(any_team, bob, settings) == [one, two, three, four]
    any_team.database.change(lambda connection: annotating.withdraw(connection, bob, four, "withdrawn-by-bob"))
    any_team.database.change(lambda connection: queue.release(connection, bob, four))
    assert all_of(any_team, ann, settings) == [three, one, four, two]
    assert ask(any_team, ann, settings) is Nothing.DONE


def test_a_page_that_is_loaded_again_takes_no_other_document(any_team: Team) -> None:
    ann = any_team.ids[Role.ANNOTATOR]
    add(any_team, 2)
    settings = QueueSettings(check_rate=0.0)
    assert ask(any_team, ann, settings) == ask(any_team, ann, settings)


def test_what_is_full_known_or_reviewed_is_passed_over(team: Team) -> None:
    ann, bob = team.ids[Role.ANNOTATOR], team.ids[Role.REVIEWER]
    full, known, reviewed, free = add(team, 4)
    listed(team, ann, [full, known, reviewed, free])
    settings = QueueSettings(per_document_min=1, per_document_max=1, check_rate=0.0)
    given = ask(team, bob, settings)
    assert isinstance(given, Assignment)
    assert (given.document, given.purpose) == (full, Turn.WORK)
    assert given.until == pytest.approx(time.time() + 3600, abs=60)

    def decide(connection: Connection) -> None:
        row = {"version": 1, "spans": [], "confidence": 1.0, "labels": 1, "known": True, "layers": {}}
        connection.execute(insert(tables.consensus).values(document=known, **row))
        event = connection.execute(tables.events.select()).first()
        assert event is not None
        row = {"event": event.seq, "at": 0.0, "spans": [], "accepted": True, "adjudicates": False}
        connection.execute(insert(tables.reviews).values(document=reviewed, person=bob, **row))

    team.database.change(decide)
    assert all_of(team, ann, settings) == [free]


def test_a_lease_ends_and_what_was_let_go_comes_much_later(any_team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, bob = any_team.ids[Role.ANNOTATOR], any_team.ids[Role.REVIEWER]
    one, two = add(any_team, 2)
    settings = QueueSettings(per_document_min=1, per_document_max=1, lease_minutes=10, check_rate=0.0)
    start = time.time()
    clock = [start]
    monkeypatch.setattr(time, "time", lambda: clock[0])

    def given(person: str) -> int | None:
        found = ask(any_team, person, settings)
        return found.document if isinstance(found, Assignment) else None

    assert (given(ann), given(bob)) == (one, two)
    clock[0] += 601  # both leases are over
    assert given(ann) == two
    assert given(bob) == one
    any_team.database.change(lambda connection: queue.release(connection, ann, two))
    any_team.database.change(lambda connection: queue.release(connection, bob, one))
    assert given(ann) is None  # both are free, but it had both just now
    clock[0] += 601
    assert given(ann) == one
    any_team.database.change(lambda connection: queue.release(connection, ann, one))
    any_team.database.change(lambda connection: queue.release(connection, ann, one))
    with any_team.database.read() as connection:
        events = [event for event in events_after(connection, 0) if event.document is not None]
    reasons = [event.body.get("reason") for event in events if event.kind is Kind.ASSIGNMENT_RELEASED]
    assert Counter(reasons) == {"expired": 2, "returned": 3}
    late = any_team.database.change(lambda connection: annotating.save(connection, bob, Given("late-save", one, [])))
    assert late.revision == 1  # what somebody did is kept, even when it comes late


def test_limits_per_person_and_those_who_wait(team: Team) -> None:
    ann, bob, cat = team.ids[Role.ANNOTATOR], team.ids[Role.REVIEWER], team.ids[Role.MANAGER]
    add(team, 5)
    settings = QueueSettings(per_person_max=2, check_rate=0.0)
    most = update(tables.people).where(tables.people.c.id == bob).values(most=3)
    team.database.change(lambda connection: connection.execute(most))
    assert (len(all_of(team, ann, settings)), len(all_of(team, bob, settings))) == (2, 3)
    assert ask(team, ann, settings) is Nothing.ENOUGH
    listed(team, cat, [1], waits=True)
    assert ask(team, cat, settings) is Nothing.WAITS


def test_training_comes_first_and_checks_at_their_rate(team: Team) -> None:
    training, checks, work = add(team, 3, "training"), add(team, 60, "check"), add(team, 240)
    settings = QueueSettings(training=2, check_rate=0.2)
    ann, bob = team.ids[Role.ANNOTATOR], team.ids[Role.REVIEWER]
    found = all_of(team, ann, settings)
    assert set(found[:2]) <= set(training)
    assert len(found) == len(set(found)) == 2 + len(work) + len(set(found) & set(checks))
    assert 35 <= len(set(found) & set(checks)) <= 50  # of about 290, each with a probability of 0.2; 50 at most
    assert not set(found[2:]) & set(training)
    met = [number for number in found if number in checks]
    theirs = [number for number in all_of(team, bob, settings) if number in checks]
    assert met != theirs  # nobody can tell another which ones are checks
    assert met != sorted(met)


@pytest.mark.parametrize("ranked", [False, True])
def test_fifty_at_once(any_team: Team, ranked: bool) -> None:
    people = [any_team.add(f"annotator {n}", Role.ANNOTATOR) for n in range(50)]
    documents = add(any_team, 30 if ranked else 40)
    for person in people if ranked else ():
        listed(any_team, person, documents)  # all want the same
    settings = QueueSettings(per_document_max=5, check_rate=0.0)
    counts = _at_once(any_team, people, lambda person: ask(any_team, person, settings), rounds=3)
    if ranked:
        assert set(counts.values()) == {5}  # three rounds of ten documents, each full
    else:
        assert set(counts.values()) <= {3, 4, 5}
        assert set(counts) == set(documents)


@pytest.mark.parametrize("any_team", ["postgresql"], indirect=True)
def test_several_processes_share_documents_and_nobody_is_left_out(any_team: Team) -> None:
    people = [any_team.add(f"annotator {n}", Role.ANNOTATOR) for n in range(20)]
    add(any_team, 12)
    settings = QueueSettings(per_document_max=5, check_rate=0.0)
    counts = _at_once(any_team, people, lambda person: _alone(any_team, person, settings), rounds=2)
    assert max(counts.values()) <= 5


@pytest.mark.parametrize("any_team", ["postgresql"], indirect=True)
def test_several_processes_never_give_the_last_place_twice(any_team: Team) -> None:
    people = [any_team.add(f"annotator {n}", Role.ANNOTATOR) for n in range(20)]
    add(any_team, 1)
    settings = QueueSettings(per_document_max=5, check_rate=0.0)
    barrier, got = threading.Barrier(len(people)), []

    def work(person: str) -> None:
        barrier.wait(60)
        got.append(_alone(any_team, person, settings))

    _together(work, people)
    assert Counter(isinstance(one, Assignment) for one in got) == {True: 5, False: 15}


def _alone(team: Team, person: str, settings: QueueSettings) -> Assignment | Nothing:
    """What somebody gets in a transaction of its own: only the locks of the queue stand between it and others."""
    with team.database.engine.connect() as connection, connection.begin():
        return queue.lease(connection, person, settings)


def _together(work: Callable[[str], None], people: Sequence[str]) -> None:
    threads = [threading.Thread(target=work, args=[person]) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _at_once(
    team: Team, people: Sequence[str], lease: Callable[[str], Assignment | Nothing], rounds: int
) -> Counter[int]:
    """How many got each document when everybody asked at the same time as all others, a few times."""
    barrier = threading.Barrier(len(people))
    got: dict[str, list[int]] = {person: [] for person in people}
    failed: list[BaseException] = []

    def work(person: str) -> None:
        try:
            for _ in range(rounds):
                barrier.wait(60)
                given = lease(person)
                assert isinstance(given, Assignment)
                got[person].append(given.document)
                save(team, person, given.document)
        except BaseException as error:
            failed.append(error)
            barrier.abort()

    _together(work, people)
    assert not failed, failed
    assert all(len(set(mine)) == len(mine) == rounds for mine in got.values())
    return Counter(document for mine in got.values() for document in mine)


def test_the_next_document_through_the_api(team: Team) -> None:
    ann = team.client(Role.ANNOTATOR)
    (training,), (number,) = add(team, 1, "training"), add(team, 1)
    given = ann.post("/api/v1/queue/next").json()["document"]
    assert given["number"] == number
    assert given["text"] == "Ada 0 sang 👋"
    assert given["tokens"][0] == [0, 3]
    assert (given["training"], given["spans"], given["suggestions"]) == (False, None, None)
    assert ann.post("/api/v1/queue/release", json={"document": number}).json() == {"document": number}
    assert ann.post("/api/v1/queue/release", json={"document": 99}).status_code == 404
    nothing = ann.post("/api/v1/queue/next").json()
    assert (nothing["document"], nothing["reason"]) == (None, "done")
    assert "nothing is left" in nothing["message"]
    assert training != number


def test_an_own_annotation_is_read_undone_and_withdrawn(any_team: Team) -> None:
    ann, other = any_team.client(Role.ANNOTATOR), any_team.client(Role.REVIEWER)
    add(any_team, 1)
    number = ann.post("/api/v1/queue/next").json()["document"]["number"]
    here = f"/api/v1/annotations/{number}"
    assert ann.get(here).status_code == 404
    versions: list[list[dict[str, Any]]] = [[], GOLD, [*GOLD, {"start": 4, "end": 5, "label": "LOC"}]]
    for n, spans in enumerate(versions):
        saved = ann.post("/api/v1/annotations", json={"id": f"save-number-{n}", "document": number, "spans": spans})
        assert saved.json() == {"event": saved.json()["event"], "document": number, "revision": n + 1}
    assert ann.post("/api/v1/queue/release", json={"document": number}).status_code == 409
    assert ann.get(here).json()["spans"] == versions[2]
    assert ann.get(here).json()["text"] == "Ada 0 sang 👋"
    for n, back in enumerate((1, 0)):  # further back each time
        undone = ann.post(f"{here}/undo", json={"id": f"undo-number-{n}"})
        assert undone.json()["revision"] == 4 + n
        assert ann.post(f"{here}/undo", json={"id": f"undo-number-{n}"}).json() == undone.json()
        assert ann.get(here).json()["spans"] == versions[back]
    assert ann.post(f"{here}/undo", json={"id": "undo-too-far"}).status_code == 409
    withdrawn = ann.post(f"{here}/withdraw", json={"id": "withdrawn"})
    assert withdrawn.json()["revision"] == 6
    assert ann.get(here).status_code == 404
    assert ann.post("/api/v1/queue/next").json()["document"]["number"] == number  # theirs to do again
    past = ann.get(f"{here}/history").json()
    assert [one["revision"] for one in past] == [1, 2, 3, 4, 5, 6]
    assert [one["restores"] for one in past] == [None, None, None, 2, 1, None]
    assert past[-1]["spans"] is None
    assert ann.post(f"{here}/undo", json={"id": "undo-withdrawal"}).json()["revision"] == 7
    assert ann.get(here).json()["spans"] == []
    assert ann.get("/api/v1/annotations").json()["items"][0]["document"] == number
    for path in (here, f"{here}/history"):
        assert other.get(path).status_code == 404
    assert other.get("/api/v1/annotations").json() == {"items": [], "next": None}
    assert other.post(f"{here}/undo", json={"id": "undo-by-another"}).status_code == 404
    assert other.post(f"{here}/withdraw", json={"id": "withdrawn-by-another"}).status_code == 404


def test_training_tells_what_is_right_and_a_check_never(team: Team) -> None:
    ann = team.ids[Role.ANNOTATOR]
    (training,), (check,) = add(team, 1, "training"), add(team, 1, "check")
    assert ask(team, ann, QueueSettings(training=1)).document == training  # type: ignore[union-attr]
    browser = team.client(Role.ANNOTATOR)
    shown = browser.post("/api/v1/queue/next").json()["document"]
    assert (shown["number"], shown["training"]) == (training, True)
    saved = browser.post("/api/v1/annotations", json={"id": "of-training", "document": training, "spans": []})
    assert saved.json()["gold"] == GOLD
    rows = {"document": check, "person": ann, "purpose": "check", "state": "leased", "at": 0.0, "until": 9e9}
    team.database.change(lambda connection: connection.execute(insert(tables.assignments).values(**rows)))
    shown = browser.post("/api/v1/queue/next").json()["document"]
    assert (shown["number"], shown["training"]) == (check, False)
    saved = browser.post("/api/v1/annotations", json={"id": "of-the-check", "document": check, "spans": []})
    assert set(saved.json()) == {"event", "document", "revision"}
