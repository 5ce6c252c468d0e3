"""No page of a service without an audit says how good the consensus is, and nothing that a program may read does."""

from __future__ import annotations

import pytest
from fastapi.routing import APIRoute
from sqlalchemy import select

from claims import claims_of_html, claims_of_record
from managing import bring_in, check_all, numbers
from quorate_serve.app import ROUTERS
from quorate_serve.database import tables
from quorate_serve.live.worker import Follower
from quorate_serve.people import Role
from serving import Team

NOT_READ = {
    "/api/v1/live": "never ends",
    "/api/v1/openapi.json": "is of no consensus",
    "/login/oidc": "goes elsewhere",
    "/login/oidc/back": "comes from elsewhere",
}


@pytest.fixture
def labelled(team: Team) -> Team:
    """A team with a crowd's labels (no gold among them), a consensus, and what more labels should add."""
    bring_in(team, 40)
    follower = Follower(team.settings, team.database, looks_ahead=True)
    while follower.step():
        pass
    return team


def places(team: Team) -> list[str]:
    """Everything that can be read, with a document, an annotator and an audit that are there."""
    document = next(iter(numbers(team).values()))
    with team.database.read() as connection:
        person = connection.execute(select(tables.current_annotations.c.person)).scalars().first()
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    paths = [route.path for route in routes if "GET" in (route.methods or ()) and route.path not in NOT_READ]
    given = {"document": document, "number": document, "person": person, "id": "none", "token": "none"}
    return [path.format(**given) for path in paths]


def found(team: Team) -> dict[str, list[str]]:
    """The claims at each place, for everybody who may look."""
    claims: dict[str, list[str]] = {}
    read = 0
    for role in Role:
        browser = team.client(role)
        for path in places(team):
            answer = browser.get(path)
            if answer.status_code != 200:
                continue
            read += 1
            is_record = answer.headers["content-type"].startswith("application/json")
            told = claims_of_record(answer.json()) if is_record else claims_of_html(answer.text)
            claims |= {f"{role.value} {path}": told} if told else {}
    assert read > 60
    return claims


def test_nothing_says_how_good_the_consensus_is(labelled: Team) -> None:
    assert found(labelled) == {}


def test_an_audit_does(labelled: Team) -> None:
    """The same pages, so that it is known that they are looked at."""
    audit = labelled.client(Role.MANAGER).post("/api/v1/audits", json={"documents": 12}).json()
    check_all(labelled, audit["id"])
    told = found(labelled)
    assert {"reviewer /progress", "manager /audit", "reviewer /api/v1/audits"} <= set(told)
