"""What stands is what events say: rebuilt from them alone, it is the same to the byte."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, select, text

from quorate_serve import annotating, queue, reviewing, state
from quorate_serve.database import tables
from quorate_serve.documents import add_text
from quorate_serve.events import Kind, events_after, last_event
from quorate_serve.people import Role, erase
from quorate_serve.problems import RequestError
from quorate_serve.sessions import Who
from quorate_serve.settings import QueueSettings, ReviewSettings, ServiceSettings
from serving import Team

TABLES = ("annotations", "assignments", "reviews", "review_leases")
TEXT = "Ada sang 👋 in Bath today"
LABELS = ("PER", "LOC", "ORG")


def spans_of(chance: random.Random) -> list[dict[str, Any]]:
    """Spans in a text of 24 characters, which may overlap."""
    found = []
    for _ in range(chance.randrange(4)):
        start = chance.randrange(20)
        found.append({"start": start, "end": start + chance.randrange(1, 5), "label": chance.choice(LABELS)})
    return found


def one_of(chance: random.Random, team: Team, people: list[str], numbers: list[int]) -> Callable[[Connection], Any]:
    """Something that somebody does, whether they may or not."""
    person, number, id = chance.choice(people), chance.choice(numbers), uuid.UUID(int=chance.getrandbits(128)).hex
    who = Who(person, chance.choice([Role.REVIEWER, Role.MANAGER]), None)
    spans, seconds = spans_of(chance), chance.choice([None, 0.1, 1 / 3, 7.0])
    minutes = chance.choice([60.0, 1e-7])  # some leases end at once
    lent = QueueSettings(per_document_max=3, lease_minutes=minutes, check_rate=0.3, training=1)
    settings = ServiceSettings(
        team.settings.root, queue=lent, reviews=ReviewSettings(per_document=2, lease_minutes=minutes, own=True)
    )
    saved = annotating.Given(id, number, spans, seconds)
    decided = reviewing.Given(id, number, spans, False, chance.random() < 0.3, None, "a note", seconds)
    tags = [None, {"O": 0.5, "B-PER": 0.5}]
    return chance.choice(
        [
            lambda connection: queue.lease(connection, person, lent),
            lambda connection: queue.lease(connection, person, lent),
            lambda connection: queue.release(connection, person, number),
            lambda connection: annotating.save(connection, person, saved),
            lambda connection: annotating.save(connection, person, saved),
            lambda connection: annotating.import_annotation(connection, person, number, spans, tags),
            lambda connection: annotating.withdraw(connection, person, number, id),
            lambda connection: annotating.undo(connection, person, number, id),
            lambda connection: reviewing.lease(connection, person, settings, numbers),
            lambda connection: reviewing.release(connection, person, in_hand(connection, person)),
            lambda connection: reviewing.reveal(connection, person, in_hand(connection, person)),
            lambda connection: reviewing.decide(connection, who, decided, settings),
            lambda connection: reviewing.withdraw(connection, person, number, id),
        ]
    )


def in_hand(connection: Connection, person: str) -> int:
    """The document that somebody got last to review; 0 if they got none."""
    leases = tables.review_leases.c
    query = select(leases.document).where(leases.person == person).order_by(leases.at.desc())
    return connection.execute(query).scalars().first() or 0


@pytest.mark.parametrize("seed", range(3))
def test_what_is_rebuilt_is_the_same_to_the_byte(any_team: Team, seed: int) -> None:
    chance, database = random.Random(seed), any_team.database
    people = [any_team.add(f"person {n}", Role.REVIEWER) for n in range(5)]

    def add(connection: Connection) -> list[int]:
        purposes = ["work"] * 6 + ["check", "training"]
        return [add_text(connection, f"{n}", TEXT, purpose=one) for n, one in enumerate(purposes)]

    numbers = database.change(add)
    refused = 0
    for _ in range(400):
        try:
            database.change(one_of(chance, any_team, people, numbers))
        except RequestError:
            refused += 1
    before = raw(database.engine)
    assert all(before[name] for name in TABLES)  # there is something of every kind
    with database.read() as connection:
        kinds = {event.kind for event in events_after(connection, 0, 10_000) if event.document is not None}
        count = last_event(connection)
    assert kinds >= {kind for kind in Kind if kind.value.split(".")[0] in ("annotation", "assignment", "review")}
    assert 0 < refused < 350
    assert database.change(state.rebuild) == count
    assert raw(database.engine) == before
    database.change(lambda connection: [connection.execute(tables.metadata.tables[name].delete()) for name in TABLES])
    database.change(state.rebuild)
    assert raw(database.engine) == before


def test_erasing_somebody_changes_nothing_that_stands(any_team: Team) -> None:
    chance, database = random.Random(5), any_team.database
    people = [any_team.add(f"person {n}", Role.REVIEWER) for n in range(3)]
    numbers = database.change(lambda connection: [add_text(connection, f"{n}", TEXT) for n in "ab"])
    for _ in range(100):
        try:
            database.change(one_of(chance, any_team, people, numbers))
        except RequestError:
            continue
    before = raw(database.engine)
    admin = any_team.ids[Role.ADMIN]
    for person in people:
        database.change(lambda connection, person=person: erase(connection, person, by=admin))  # type: ignore[misc]
    database.change(state.rebuild)
    assert raw(database.engine) == before
    with database.read() as connection:
        assert connection.execute(select(tables.personal_keys.c.person)).all()  # of the others


def raw(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """The tables of what stands, as the database keeps them."""
    with engine.connect() as connection:
        return {name: [tuple(row) for row in connection.execute(text(_as_text(connection, name)))] for name in TABLES}


def _as_text(connection: Connection, name: str) -> str:
    columns = ", ".join(f"CAST({column.name} AS TEXT)" for column in tables.metadata.tables[name].columns)
    return f"SELECT {columns} FROM {name} ORDER BY document, person"
