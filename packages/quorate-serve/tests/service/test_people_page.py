"""The page about people: figures against counts of their own, and who sees whom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

import quorate
from managing import bring_in, fit, gold, numbers, save
from quorate.corpus.records import Corpus
from quorate_serve.database import tables
from quorate_serve.importing import import_corpus
from quorate_serve.people import Role
from quorate_serve.people_page import figures_of, lots_of, quartiles
from serving import Team

ATTACK = "<script>alert(1)</script>"


@pytest.fixture
def busy(team: Team) -> Team:
    """A crowd's labels, and an annotator who has done thirty documents here, the last ones carelessly."""
    bring_in(team)
    right, ann = gold(team), team.ids[Role.ANNOTATOR]
    for place, number in enumerate(list(right)[:30]):
        save(team, ann, number, right[number] if place < 20 else [], seconds=10.0 + place)
    fit(team)
    return team


def test_figures_are_what_a_count_says(busy: Team) -> None:
    ann = busy.ids[Role.ANNOTATOR]
    first = next(iter(numbers(busy).values()))
    save(busy, ann, first, gold(busy)[first], seconds=100.0)  # once more: the document took both times together
    with busy.database.read() as connection:
        own = figures_of(connection)[ann]
        rows = list(connection.execute(select(tables.current_annotations)))
        agreed = {row.document: row.spans for row in connection.execute(select(tables.consensus))}
    assert (own.labels, own.saved, own.cost) == (30, 30, 30.0)
    took = [110.0, *(10.0 + place for place in range(1, 30))]
    assert own.seconds == pytest.approx(tuple(np.quantile(took, [0.25, 0.5, 0.75])))
    mine = sorted((row for row in rows if row.person == ann), key=lambda row: (row.at, row.document))
    assert [lot.documents for lot in own.lots] == [10, 10, 10]
    for lot, some in zip(own.lots, (mine[:10], mine[10:20], mine[20:]), strict=True):
        same = both = 0
        for row in some:
            theirs = {(span["start"], span["end"], span["label"]) for span in row.spans}
            others = {(span["start"], span["end"], span["label"]) for span in agreed[row.document]}
            same, both = same + len(theirs & others), both + len(theirs) + len(others)
        assert lot.share.value == pytest.approx(2 * same / both)
        assert lot.share.low <= lot.share.value <= lot.share.high
    assert own.lots[0].share.value > own.lots[2].share.value
    assert own.overall[0].found is not None
    assert {one.name for one in own.types} <= {"LOC", "ORG", "PER", "WORK"}


def test_imported_labels_cost_nothing_and_show_no_drift(busy: Team) -> None:
    with busy.database.read() as connection:
        figures = figures_of(connection)
        counted = {
            person: sum(row.person == person for row in connection.execute(select(tables.current_annotations)))
            for person in figures
        }
    assert {person: own.labels for person, own in figures.items()} == counted
    imported = [own for own in figures.values() if own.labels and not own.saved]
    assert len(imported) == 12
    assert all(own.cost == 0 and own.lots == () and own.seconds is None for own in imported)
    assert all(own.overall and own.accuracy is not None for own in imported)


def test_gold_checks_are_compared_span_by_span(team: Team) -> None:
    sample = quorate.sample()
    import_corpus(team.database, team.settings.secret(), Corpus(sample.documents[:3]), purpose="check")
    right, ann = gold(team), team.ids[Role.ANNOTATOR]
    for place, number in enumerate(right):
        save(team, ann, number, right[number] if place else [])
    with team.database.read() as connection:
        checks = figures_of(connection, ann)[ann].checks
    spans = [len(right[number]) for number in right]
    assert spans[0] > 0
    assert (checks.documents, checks.right) == (3, 2)
    assert checks.f1 == pytest.approx(2 * sum(spans[1:]) / (2 * sum(spans[1:]) + spans[0]))


def test_edges() -> None:
    assert quartiles([]) is None
    assert quartiles([7.0]) == (7.0, 7.0, 7.0)
    assert lots_of([]) == ()
    nothing: list[tuple[float, list[dict[str, Any]], list[dict[str, Any]]]] = [(float(n), [], []) for n in range(25)]
    assert lots_of(nothing) == ()  # two who mark nothing agree, but nothing can be said of it


def test_annotators_see_their_own_and_nothing_of_others(busy: Team) -> None:
    ann, manager = busy.client(Role.ANNOTATOR), busy.client(Role.MANAGER)
    page = ann.get("/people/me").text
    assert "Your work" in page
    others = {person for role, person in busy.ids.items() if role is not Role.ANNOTATOR}
    assert not [person for person in others if person in page]
    with busy.database.read() as connection:
        everybody = set(connection.execute(select(tables.people.c.id)).scalars())
    assert not [person for person in everybody - {busy.ids[Role.ANNOTATOR]} if person in page]
    for role in (Role.ANNOTATOR, Role.REVIEWER):
        browser = busy.client(role)
        assert browser.get("/people").status_code == 403
        assert browser.get(f"/people/{busy.ids[Role.ANNOTATOR]}").status_code == 403
        assert browser.get("/people/me").status_code == 200
    assert busy.ids[Role.ANNOTATOR] in manager.get("/people").text
    assert '<svg class="chart course"' in manager.get(f"/people/{busy.ids[Role.ANNOTATOR]}").text
    assert manager.get("/people/p_0000000000000000").status_code == 404


def test_names_are_text(team: Team) -> None:
    person = team.add(ATTACK, Role.ANNOTATOR)
    admin = team.client(Role.ADMIN)
    for path in ("/people", f"/people/{person}"):
        page = admin.get(path).text
        assert ATTACK not in page
        assert "&lt;script&gt;" in page
    assert ATTACK not in team.client(person).get("/account").text


def test_managers_invite_change_and_do_not_erase(team: Team) -> None:
    manager, ann = team.client(Role.MANAGER), team.ids[Role.ANNOTATOR]
    page = manager.post("/people", data={"role": "reviewer"}).text
    link = page.split('<code id="link">')[1].split("<")[0]
    assert "Join as reviewer" in team.client().get(link).text
    assert link not in manager.get("/people").text  # shown once
    assert manager.post("/people", data={"role": "admin"}).status_code == 403
    changed = {"role": "reviewer", "cost": "2.5", "most": "7", "active": "true"}
    assert manager.post(f"/people/{ann}", data=changed, follow_redirects=False).status_code == 303
    told = manager.get(f"/api/v1/people/{ann}").json()
    assert (told["role"], told["cost"], told["most"], told["active"]) == ("reviewer", 2.5, 7, True)
    assert manager.post(f"/people/{ann}", data={**changed, "most": "x"}).status_code == 422
    assert manager.post(f"/people/{ann}", data={"role": "reviewer", "cost": "2.5"}, follow_redirects=False).is_redirect
    assert manager.get(f"/api/v1/people/{ann}").json()["active"] is False
    assert manager.post(f"/people/{team.ids[Role.ADMIN]}", data=changed).status_code in (403, 409)
    assert manager.get(f"/api/v1/people/{team.ids[Role.ADMIN]}").json()["role"] == "admin"
    assert manager.post(f"/people/{ann}/erase", data={"name": "annotator"}).status_code == 403
    assert "Erase" not in manager.get(f"/people/{ann}").text


def test_admins_erase_by_typing_the_name(team: Team) -> None:
    admin, ann = team.client(Role.ADMIN), team.ids[Role.ANNOTATOR]
    assert admin.post(f"/people/{ann}/erase", data={"name": "somebody"}).status_code == 422
    assert admin.get(f"/api/v1/people/{ann}").json()["name"] == "annotator"
    assert admin.post(f"/people/{ann}/erase", data={"name": "annotator"}, follow_redirects=False).status_code == 303
    assert admin.get(f"/api/v1/people/{ann}").json()["name"] == f"erased {ann}"
    assert "May log in" not in admin.get(f"/people/{ann}").text
