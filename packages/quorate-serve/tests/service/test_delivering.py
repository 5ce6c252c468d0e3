"""Webhooks as the service tells them: with what happened, until they are received, also after a kill."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from loopback import Received, Reply, http_server
from managing import bring_in, check_all, fit
from quorate_serve.client import verify
from quorate_serve.database import tables
from quorate_serve.delivering import Courier, consensus_changed
from quorate_serve.documents import add_text
from quorate_serve.outgoing import Outgoing, Rules
from quorate_serve.people import Role
from serving import Team


def to(team: Team, port: int) -> Courier:
    outgoing = Outgoing(Rules(plain_http=True, own_hosts=frozenset({f"127.0.0.1:{port}"})), seconds=5)
    team.app.state.outgoing = outgoing
    return Courier(team.database, team.settings.secret(), outgoing)


def document(team: Team, *people: str) -> int:
    def make(connection: Any) -> int:
        number = add_text(connection, "one", "Ada sang")
        for person in people:
            lease = {"purpose": "work", "state": "leased", "at": 0.0, "until": 9e9}
            connection.execute(insert(tables.assignments).values(document=number, person=person, **lease))
        return number

    return team.database.change(make)


def states(team: Team) -> list[tuple[str, int]]:
    with team.database.read() as connection:
        table = tables.deliveries.c
        return [(row.state, row.attempts) for row in connection.execute(select(table.state, table.attempts))]


def test_a_document_that_is_completed_is_told_once(any_team: Team) -> None:
    answers = [Reply(500), Reply(204)]
    with http_server(lambda _: answers.pop(0)) as server:
        courier, admin = to(any_team, server.port), any_team.client(Role.ADMIN)
        made = admin.post("/api/v1/webhooks", json={"url": f"http://127.0.0.1:{server.port}/"}).json()
        ids = [any_team.ids[role] for role in (Role.ANNOTATOR, Role.REVIEWER)]
        number = document(any_team, *ids)
        for turn in range(2):
            for person in ids:
                save = {"id": f"{person}-{turn}", "document": number, "spans": []}
                assert any_team.client(person).post("/api/v1/annotations", json=save).status_code == 200
                assert len(states(any_team)) == int(turn == 1 or person == ids[1])
        assert courier.step() == 1
        assert states(any_team) == [("waiting", 1)]
        assert courier.step() == 0  # not before its time
        due = update(tables.deliveries).values(due=0.0)
        any_team.database.change(lambda connection: connection.execute(due))
        assert courier.step() == 1
        first, second = server.received
        told = verify(made["secret"], second.headers, second.body)
    assert states(any_team) == [("delivered", 2)]
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert (told["type"], told["data"]["document"], told["data"]["reason"]) == ("document.completed", number, "labels")


def test_one_that_was_killed_while_it_sent_sends_again(team: Team) -> None:
    with http_server(lambda _: Reply(204)) as server:
        courier, admin = to(team, server.port), team.client(Role.ADMIN)
        id = admin.post("/api/v1/webhooks", json={"url": f"http://127.0.0.1:{server.port}/"}).json()["id"]
        assert admin.post(f"/api/v1/webhooks/{id}/test").status_code == 202
        team.database.change(lambda connection: courier._take(connection, time.time()))  # and it is killed
        assert courier.step() == 0
        late = Courier(team.database, team.settings.secret(), team.app.state.outgoing, clock=lambda: time.time() + 61)
        assert late.step() == 1
    assert [one["state"] for one in admin.get(f"/api/v1/webhooks/{id}/deliveries").json()] == ["delivered"]


def test_a_new_secret_signs_beside_the_old_one_and_one_that_is_off_is_told_nothing(team: Team) -> None:
    received: list[Received] = []

    def answer(got: Received) -> Reply:
        received.append(got)
        return Reply(204)

    with http_server(answer) as server:
        courier, admin = to(team, server.port), team.client(Role.ADMIN)
        made = admin.post("/api/v1/webhooks", json={"url": f"http://127.0.0.1:{server.port}/"}).json()
        new = admin.post(f"/api/v1/webhooks/{made['id']}/secret").json()["secret"]
        admin.post(f"/api/v1/webhooks/{made['id']}/test")
        courier.step()
        for secret in (made["secret"], new):
            assert verify(secret, received[0].headers, received[0].body)["type"] == "webhook.test"
        admin.patch(f"/api/v1/webhooks/{made['id']}", json={"active": False})
        team.database.change(lambda connection: consensus_changed(connection, 1, "update", [1]))
        assert courier.step() == 0
        assert len(states(team)) == 1
    with team.database.read() as connection:
        kept = connection.execute(select(tables.webhooks.c.secrets)).scalar_one()
    assert new.encode() not in kept
    assert admin.delete(f"/api/v1/webhooks/{made['id']}").status_code == 204
    assert states(team) == []


def test_versions_that_wait_are_told_as_one(team: Team) -> None:
    with http_server(lambda _: Reply(204)) as server:
        courier = to(team, server.port)
        url = f"http://127.0.0.1:{server.port}/"
        made = team.client(Role.MANAGER).post("/api/v1/webhooks", json={"url": url}).json()
        for version in (1, 2, 3):
            team.database.change(
                lambda connection, version=version: consensus_changed(connection, version, "update", [version])  # type: ignore[misc]
            )
        assert courier.step() == 1
        told = verify(made["secret"], server.received[0].headers, server.received[0].body)
    assert told["data"] == {"version": 3, "kind": "update", "documents": [1, 2, 3]}


def a_webhook(team: Team) -> str:
    team.app.state.outgoing = Outgoing(Rules(plain_http=True, own_hosts=frozenset({"127.0.0.1:1"})))
    return str(team.client(Role.ADMIN).post("/api/v1/webhooks", json={"url": "http://127.0.0.1:1/"}).json()["id"])


def test_what_waits_for_one_that_is_off_stays(team: Team) -> None:
    id, admin = a_webhook(team), team.client(Role.ADMIN)
    team.database.change(lambda connection: consensus_changed(connection, 1, "update", [1]))
    for active in (False, True):
        assert admin.patch(f"/api/v1/webhooks/{id}", json={"active": active}).status_code == 200
        team.database.change(lambda connection: consensus_changed(connection, 2, "update", [2]))
        with team.database.read() as connection:
            (body,) = connection.execute(select(tables.deliveries.c.body)).scalars()
        assert json.loads(body)["data"]["documents"] == ([1, 2] if active else [1])


def test_labels_of_files_complete_a_document_and_checks_are_none(team: Team) -> None:
    a_webhook(team)
    for purpose, told in (("check", 0), ("work", 1)):
        line = {"id": purpose, "text": "Ada sang", "annotations": {"zoe": [], "yan": []}, "gold": []}
        sent = {"file": ("a.jsonl", json.dumps(line).encode())}
        answer = team.client(Role.MANAGER).post("/api/v1/import", files=sent, data={"purpose": purpose})
        assert answer.json()["labels"] == 2, answer.text
        assert len(states(team)) == told


def test_a_check_of_an_audit_decides_a_document(team: Team) -> None:
    bring_in(team, 30)
    fit(team)
    a_webhook(team)
    audit = team.client(Role.MANAGER).post("/api/v1/audits", json={"documents": 10}).json()["id"]
    check_all(team, audit, most=1)
    with team.database.read() as connection:
        (body,) = connection.execute(select(tables.deliveries.c.body)).scalars()
    assert json.loads(body)["data"]["reason"] == "decided"


def test_a_courier_outlives_what_goes_wrong(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    courier, stopping, turns = to(team, 1), threading.Event(), list[int]()

    def step() -> int:
        turns.append(1)
        if len(turns) == 1:
            raise ValueError("out of order")
        stopping.set()
        return 0

    monkeypatch.setattr(courier, "step", step)
    monkeypatch.setattr("quorate_serve.delivering._LOOK", 0.01)
    courier._run(stopping)
    assert len(turns) == 2
