"""Audits in the service: those of the library, drawn from a consensus that is kept, checked by reviewers."""

from __future__ import annotations

import html
import json
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

import quorate
from managing import bring_in, check_all, fit, gold, save
from quorate.audit.checked import read_plan
from quorate.audit.claims import Claims
from quorate.audit.sentences import Outcome, headline, notes
from quorate.evaluate.describe import KnownF1
from quorate_serve.auditing import keep_outcome, open_audit, outcome
from quorate_serve.database import tables
from quorate_serve.people import Role
from quorate_serve.settings import ReviewSettings
from serving import Team


@pytest.fixture
def fitted(team: Team) -> Team:
    bring_in(team)
    fit(team)
    return team


def planned(team: Team, **options: Any) -> dict[str, Any]:
    answer = team.client(Role.MANAGER).post("/api/v1/audits", json={"documents": 15, **options})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_the_result_is_that_of_the_library(fitted: Team, tmp_path: Path) -> None:
    (tmp_path / "consensus.jsonl").write_bytes(fitted.client(Role.MANAGER).get("/api/v1/export?what=consensus").content)
    audit = planned(fitted)
    told = check_all(fitted, audit["id"])
    assert (told["checked"], told["documents"]) == (15, 15)
    found = fitted.client(Role.REVIEWER).get("/api/v1/audits").json()[0]
    assert found["ended"] is not None
    with fitted.database.read() as connection:
        plan = connection.execute(select(tables.audits.c.plan)).scalar_one()
    (tmp_path / "plan.jsonl").write_text(plan, encoding="utf-8")
    sample = quorate.sample()
    drawn = read_plan([tmp_path / "plan.jsonl"], Claims.of(tmp_path / "consensus.jsonl"))
    truth = {name: sample[name].gold or () for name in drawn.ids}
    expected = quorate.audit.result(drawn.claims, truth, plan=drawn)
    for name in ("precision", "recall", "f1"):
        assert found["result"][name] == pytest.approx(list(getattr(expected, name)), abs=1e-9)
    assert found["result"]["more_to_halve"] == expected.more_to_halve
    words, page = Outcome.of(expected), html.unescape(fitted.client(Role.REVIEWER).get("/audit").text)
    assert f"{headline(words)}." in page
    assert all(line in page for line in notes(words))
    known = KnownF1.of_audit(expected.f1, 0.9, 15)
    assert str(known) in html.unescape(fitted.client(Role.REVIEWER).get("/progress").text)


def test_checks_are_decisions_that_say_of_which_audit(fitted: Team) -> None:
    audit = planned(fitted, proposes=True)
    check_all(fitted, audit["id"], most=3)
    with fitted.database.read() as connection:
        rows = connection.execute(select(tables.reviews)).all()
        bodies = [
            event.body
            for event in connection.execute(select(tables.events).where(tables.events.c.kind == "review.decided"))
        ]
    assert len(rows) == 3
    assert {body["audit"] for body in bodies} == {audit["id"]}
    assert all(body["blind"] is False for body in bodies)
    right = gold(fitted)
    assert all(row.spans == right[row.document] for row in rows)
    assert fitted.client(Role.REVIEWER).get("/api/v1/audits").json()[0]["result"] is None  # not before all are checked


def test_a_slower_request_does_not_take_back_the_result(fitted: Team) -> None:
    id = planned(fitted, documents=12, sequential=True)["id"]
    manager = fitted.client(Role.MANAGER)

    def keep(found: tuple[int, dict[str, Any] | None]) -> dict[str, Any]:
        fitted.database.change(lambda connection: keep_outcome(connection, id, *found))
        return dict(manager.get("/api/v1/audits").json()[0])

    check_all(fitted, id, most=9)
    with fitted.database.read() as connection:
        seen_before = outcome(connection, id)
    assert seen_before == (9, None)
    check_all(fitted, id, most=1)
    open_still = manager.get("/api/v1/audits").json()[0]
    assert open_still["result"]["n"] == 10
    assert keep(seen_before) == open_still
    check_all(fitted, id)
    ended = manager.get("/api/v1/audits").json()[0]
    assert (ended["checked"], ended["result"]["n"]) == (12, 12)
    assert keep(seen_before) == ended
    assert keep((12, None)) == ended


def test_a_check_is_kept_once_and_nobody_elses(fitted: Team) -> None:
    audit = planned(fitted)
    reviewer, manager = fitted.client(Role.REVIEWER), fitted.client(Role.MANAGER)
    where = f"/api/v1/audits/{audit['id']}"
    task = reviewer.get(f"{where}/next").json()["document"]
    assert task["proposed"] == []  # blind unless asked for
    check = {"id": uuid.uuid4().hex, "document": task["number"], "spans": []}
    first = reviewer.post(f"{where}/checks", json=check)
    assert reviewer.post(f"{where}/checks", json=check).json() == first.json()
    again = {**check, "id": uuid.uuid4().hex}
    assert manager.post(f"{where}/checks", json=again).status_code == 409
    assert reviewer.post(f"{where}/checks", json=again).status_code == 200  # who checked it may correct it
    assert manager.post(f"{where}/checks", json={**again, "id": check["id"]}).status_code == 409
    elsewhere = next(number for number in gold(fitted) if number not in _documents(fitted))
    strange = {**check, "id": uuid.uuid4().hex, "document": elsewhere}
    assert reviewer.post(f"{where}/checks", json=strange).status_code == 404
    outside = {**check, "id": uuid.uuid4().hex, "spans": [{"start": 0, "end": 99_999, "label": "PER"}]}
    assert reviewer.post(f"{where}/checks", json=outside).status_code == 422


def test_nobody_checks_what_they_annotated(fitted: Team) -> None:
    audit, reviewer = planned(fitted), fitted.client(Role.REVIEWER)
    where, rob = f"/api/v1/audits/{audit['id']}", fitted.ids[Role.REVIEWER]
    first, *rest = _documents(fitted)
    for number in rest:
        save(fitted, rob, number, [])
    assert reviewer.get(f"{where}/next").json()["document"]["number"] == first
    check = {"id": uuid.uuid4().hex, "document": rest[0], "spans": []}
    refused = reviewer.post(f"{where}/checks", json=check)
    assert refused.status_code == 403
    assert "yourself" in refused.json()["error"]["message"]
    assert reviewer.post(f"{where}/checks", json={**check, "document": first}).status_code == 200
    assert reviewer.get(f"{where}/next").json() == {"document": None}
    assert "you annotated yourself" in reviewer.get("/audit/check").text
    fitted.app.state.settings = replace(fitted.settings, reviews=ReviewSettings(own=True))
    assert reviewer.get(f"{where}/next").json()["document"]["number"] in rest
    assert reviewer.post(f"{where}/checks", json={**check, "id": uuid.uuid4().hex}).status_code == 200


def test_who_adjudicated_a_document_and_checks_it_adjudicates_still(fitted: Team) -> None:
    audit = planned(fitted)
    number = _documents(fitted)[0]
    people = [fitted.client(fitted.add(name, Role.REVIEWER)) for name in ("sue", "tom")]
    manager = fitted.client(Role.MANAGER)
    span = {"start": 0, "end": 1, "label": fitted.settings.labels[0]}
    review = {"document": number, "accepted": False}
    for browser, spans in zip(people, ([span], []), strict=True):
        answer = browser.post("/api/v1/reviews", json={**review, "id": uuid.uuid4().hex, "spans": spans})
    assert answer.json()["disputed"] is True
    decided = {**review, "id": uuid.uuid4().hex, "spans": [span], "adjudicates": True}
    assert manager.post("/api/v1/reviews", json=decided).json()["disputed"] is False
    check = {"id": uuid.uuid4().hex, "document": number, "spans": []}
    assert manager.post(f"/api/v1/audits/{audit['id']}/checks", json=check).status_code == 200
    assert manager.get("/api/v1/disputes").json()["items"] == []
    assert manager.get("/api/v1/reviews").json()["items"][0]["adjudicates"] is True


def _documents(team: Team) -> tuple[int, ...]:
    with team.database.read() as connection:
        found = open_audit(connection)
    assert found is not None
    return found.documents


def test_one_audit_at_a_time_and_one_of_a_version(fitted: Team) -> None:
    manager, audit = fitted.client(Role.MANAGER), planned(fitted)
    assert manager.post("/api/v1/audits", json={"documents": 15}).status_code == 409
    assert manager.post(f"/api/v1/audits/{audit['id']}/end").json()["ended"]
    refused = manager.post("/api/v1/audits", json={"documents": 15})
    assert refused.status_code == 409
    assert "has been audited" in refused.json()["error"]["message"]
    assert manager.post(f"/api/v1/audits/{audit['id']}/end").status_code == 409
    assert manager.post(f"/api/v1/audits/{audit['id']}/more", json={"documents": 5}).status_code == 422  # one look


def test_a_sequential_audit_can_be_looked_at_and_added_to(fitted: Team) -> None:
    manager, audit = fitted.client(Role.MANAGER), planned(fitted, documents=12, sequential=True)
    check_all(fitted, audit["id"], most=9)
    assert manager.get("/api/v1/audits").json()[0]["result"] is None
    check_all(fitted, audit["id"], most=1)
    tenth = manager.get("/api/v1/audits").json()[0]
    assert (tenth["result"]["n"], tenth["ended"]) == (10, None)
    check_all(fitted, audit["id"])
    assert manager.get("/api/v1/audits").json()[0]["ended"]
    more = manager.post(f"/api/v1/audits/{audit['id']}/more", json={"documents": 6}).json()
    assert (more["documents"], more["ended"]) == (18, None)
    check_all(fitted, audit["id"])
    assert manager.get("/api/v1/audits").json()[0]["result"]["n"] == 18


def test_a_plan_that_another_version_drew_can_be_given_up(fitted: Team) -> None:
    audit = planned(fitted, documents=12)

    def as_drawn_otherwise(connection: Connection) -> None:
        plan = connection.execute(select(tables.audits.c.plan)).scalar_one()
        lines = [json.loads(line) for line in plan.splitlines()]
        lines[0]["audit"]["probability"] /= 2
        connection.execute(update(tables.audits).values(plan="".join(json.dumps(line) + "\n" for line in lines)))

    fitted.database.change(as_drawn_otherwise)
    check_all(fitted, audit["id"])
    manager = fitted.client(Role.MANAGER)
    assert "12 of 12 documents are checked" in manager.get("/audit").text
    assert manager.post(f"/api/v1/audits/{audit['id']}/end").json()["result"] is None
    assert "it says nothing" in manager.get("/audit").text


def test_the_rules_of_the_library_hold(fitted: Team) -> None:
    manager = fitted.client(Role.MANAGER)
    few = manager.post("/api/v1/audits", json={"documents": 3})
    assert few.status_code == 422
    assert "at least 10" in few.json()["error"]["message"]
    assert manager.get("/api/v1/audits").json() == []
    page = manager.post("/audit", data={"documents": 3, "csrf": manager.headers["X-CSRF-Token"]})
    assert page.status_code == 422
    assert "too few" in page.text


def test_pages_say_what_to_do(team: Team) -> None:
    assert "no consensus to audit yet" in team.client(Role.MANAGER).get("/audit").text
    assert team.client(Role.ANNOTATOR).get("/audit").status_code == 403
    bring_in(team)
    fit(team)
    manager, reviewer = team.client(Role.MANAGER), team.client(Role.REVIEWER)
    assert "Plan an audit" in manager.get("/audit").text
    assert "A manager plans one" in reviewer.get("/audit").text
    csrf = {"csrf": manager.headers["X-CSRF-Token"]}
    del manager.headers["X-CSRF-Token"]  # a form without a script
    assert manager.post("/audit", data={"documents": 12}).status_code == 403
    assert manager.post("/audit", data={"documents": 12, **csrf}, follow_redirects=False).status_code == 303
    page = reviewer.get("/audit/check").text
    assert "0 of 12 checked" in page
    assert reviewer.post("/audit", data={"documents": 12}).status_code == 403
    check_all(team, manager.get("/api/v1/audits").json()[0]["id"])
    assert "guaranteed with 90 % confidence" in reviewer.get("/audit").text
    assert reviewer.get("/audit/check", follow_redirects=False).headers["location"] == "/audit"
