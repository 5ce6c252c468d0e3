"""A team at work for tests of the pages that managers see: a crowd's labels, and a consensus on them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select

import quorate
from quorate.corpus.records import Corpus
from quorate_serve import annotating
from quorate_serve.database import tables
from quorate_serve.database.engine import upsert
from quorate_serve.documents import spans_of_tags
from quorate_serve.importing import import_corpus
from quorate_serve.labels_used import LabelsUsed
from quorate_serve.live.worker import Follower
from quorate_serve.passwords import hashed
from quorate_serve.people import Role, set_password
from serving import PASSWORD, Team

Spans = Sequence[Mapping[str, Any]]


def bring_in(team: Team, n: int = 40) -> None:
    """Import a crowd's labels."""
    import_corpus(team.database, team.settings.secret(), Corpus(quorate.sample().documents[:n]), source="the sample")
    with team.database.read() as connection:
        team.settings = replace(team.settings, labels=LabelsUsed().look(connection))
    team.app.state.settings = team.settings


def fit(team: Team) -> None:
    """A consensus on all that was said."""
    Follower(team.settings, team.database).refit()


def numbers(team: Team) -> dict[str, int]:
    with team.database.read() as connection:
        rows = connection.execute(select(tables.documents.c.id, tables.documents.c.number))
        return {row.id: row.number for row in rows}


def gold(team: Team) -> dict[int, list[dict[str, Any]]]:
    """What is right in the sample, by number."""
    found, sample = {}, quorate.sample()
    with team.database.read() as connection:
        for row in connection.execute(select(tables.documents)):
            truth = sample[row.id].gold
            assert truth is not None
            found[row.number] = spans_of_tags(truth, row.tokens)
    return found


def save(team: Team, person: str, document: int, spans: Spans, seconds: float | None = None) -> None:
    """Somebody saves a document that they were given."""

    def work(connection: Connection) -> None:
        lease = {"document": document, "person": person, "purpose": "work", "state": "leased", "at": 0.0, "until": 9e9}
        upsert(connection, tables.assignments, lease, ("document", "person"))
        annotating.save(connection, person, annotating.Given(uuid.uuid4().hex, document, spans, seconds))

    team.database.change(work)


def check_all(team: Team, audit: str, role: Role = Role.REVIEWER, most: int = 10_000) -> dict[str, Any]:
    """A reviewer who knows what is right checks an audit's documents; the last acknowledgement."""
    reviewer, right, told = team.client(role), gold(team), {}
    for _ in range(most):
        task = reviewer.get(f"/api/v1/audits/{audit}/next").json()["document"]
        if task is None:
            break
        check = {"id": uuid.uuid4().hex, "document": task["number"], "spans": right[task["number"]], "seconds": 3.0}
        answer = reviewer.post(f"/api/v1/audits/{audit}/checks", json=check)
        assert answer.status_code == 200, answer.text
        told = answer.json()
    return told


def give_password(team: Team, role: Role) -> None:
    kept = hashed(PASSWORD)
    team.database.change(lambda connection: set_password(connection, team.ids[role], kept))
