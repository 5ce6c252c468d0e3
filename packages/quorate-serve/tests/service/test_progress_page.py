"""The page of progress: its figures against counts of their own."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from sqlalchemy import insert, select

import quorate
from managing import bring_in, check_all, fit, gold, numbers, save
from quorate.corpus.records import Corpus, Document
from quorate_serve.database import tables
from quorate_serve.events import Kind, append
from quorate_serve.importing import import_corpus
from quorate_serve.live.worker import Follower
from quorate_serve.people import Role
from quorate_serve.progress_page import progress_of
from serving import Team

DAY = 86_400


def test_figures_are_what_a_count_says(any_team: Team) -> None:
    bring_in(any_team, 20)
    right, ann = gold(any_team), any_team.ids[Role.ANNOTATOR]
    for number in list(right)[:5]:
        save(any_team, ann, number, right[number])
    some = list(right)[10]
    any_team.client(Role.ADMIN).patch(f"/api/v1/people/{ann}", json={"cost": 1.5})
    now = time.time()
    lease = {"person": ann, "purpose": "work", "at": now, "state": "leased"}

    def lend(connection: object) -> None:
        connection.execute(insert(tables.assignments).values(document=some, until=now + 60, **lease))  # type: ignore[attr-defined]
        connection.execute(insert(tables.assignments).values(document=some + 1, until=now - 60, **lease))  # type: ignore[attr-defined]

    any_team.database.change(lend)
    with any_team.database.read() as connection:
        found = progress_of(connection)
        labels = Counter(row.document for row in connection.execute(select(tables.current_annotations)))
    assert found.documents == 20
    assert found.labels == sum(labels.values())
    assert dict(found.by_labels) == Counter(labels[number] for number in right)
    assert found.leases == 1
    assert found.cost == 7.5
    assert [count for _, count in found.days][-1] == 5
    assert (found.agreement, found.spans, found.audited) == (None, 0, None)


def test_days_without_labels_are_there(team: Team) -> None:
    bring_in(team, 3)
    ann, number = team.ids[Role.ANNOTATOR], next(iter(numbers(team).values()))
    now = 1_000 * DAY + 7.0
    for days in (0, 0, 3, 45):

        def happened(connection: object, at: float = now - days * DAY) -> None:
            append(connection, Kind.ANNOTATION_SAVED, person=ann, document=number, at=at)  # type: ignore[arg-type]

        team.database.change(happened)
    with team.database.read() as connection:
        found = progress_of(connection, now)
    assert [count for _, count in found.days] == [1, 0, 0, 2]
    assert [str(day) for day, _ in found.days][-1] == "1972-09-27"


def test_it_says_how_good_it_is_and_by_what(team: Team) -> None:
    manager = team.client(Role.MANAGER)
    assert "There are no documents yet" in manager.get("/progress").text
    bring_in(team)
    assert "There is no consensus yet" in manager.get("/progress").text
    fit(team)
    with team.database.read() as connection:
        found = progress_of(connection)
        spans = sum(len(row.spans) for row in connection.execute(select(tables.consensus)))
    assert found.spans == spans > 0
    assert found.agreement is not None
    page = manager.get("/progress").text
    assert f"Agreement {found.agreement:.2f} (Krippendorff&#39;s alpha); F1 unknown: an audit measures it." in page
    assert "Audited F1" not in page
    audit = manager.post("/api/v1/audits", json={"documents": 12}).json()
    check_all(team, audit["id"])
    page = " ".join(manager.get("/progress").text.split())
    told = manager.get("/api/v1/audits").json()[0]["result"]["f1"]
    assert "Audited F1" in page
    value, low, high = (f"{100 * one:.1f}" for one in told)
    assert f"; F1 {value} ({low} to {high}, guaranteed with 90 % confidence) by the audit of 12 documents." in page


def test_annotators_do_not_see_it_and_nothing_is_inline(team: Team) -> None:
    bring_in(team, 5)
    assert team.client(Role.ANNOTATOR).get("/progress").status_code == 403
    page = team.client(Role.REVIEWER).get("/progress").text
    assert not re.search(r"\sstyle=|<style|\son[a-z]+=|<script(?![^>]*\bsrc=)", page)


def looked_ahead(team: Team) -> Mapping[str, Any]:
    """What more labels should add, worked out as a service does it."""
    follower = Follower(team.settings, team.database, looks_ahead=True)
    while follower.step():
        pass
    with team.database.read() as connection:
        told = progress_of(connection).outlook
    assert told is not None
    return told


def test_it_says_what_more_labels_would_add(team: Team) -> None:
    bring_in(team, 12)
    told = looked_ahead(team)
    assert 0 < told["labels"] <= 100
    page = " ".join(team.client(Role.MANAGER).get("/progress").text.split())
    assert f"should add {100 * told['mean']:.2f} points to it." in page
    assert ("time to stop" in page) == told["stop"]


def test_where_nobody_is_left_to_ask_it_does_not_say_that_it_is_good_enough(team: Team) -> None:
    everybody = [
        Document(one.id, one.tokens, dict(zip("ab", one.annotations.values(), strict=False)))
        for one in quorate.sample()
        if len(one.annotations) > 1
    ]
    import_corpus(team.database, team.settings.secret(), Corpus(everybody[:12]), source="two people")
    told = looked_ahead(team)
    assert (told["labels"], told["stop"], told["nobody_left"]) == (0, True, True)
    page = " ".join(team.client(Role.MANAGER).get("/progress").text.split())
    assert '<p class="notice">Nothing is left to ask for: every document' in page
    assert "time to stop" not in page
    assert "labels more should add" not in page
