"""Reviews: the least certain first, blind, by one reviewer each; and what becomes of two who differ."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

from quorate.corpus.overlaps import OverlapRule, Overlaps
from quorate_serve import annotating
from quorate_serve.database import tables
from quorate_serve.database.engine import upsert
from quorate_serve.documents import add_text
from quorate_serve.events import Kind, events_after
from quorate_serve.people import Role
from quorate_serve.settings import ReviewSettings
from serving import Team

TEXT = "Ada Lovelace met Bob 👋 in Bath"
ADA = {"start": 0, "end": 12, "label": "PER"}
SHORT = {"start": 0, "end": 3, "label": "PER"}
BOB = {"start": 17, "end": 20, "label": "PER"}
BATH = {"start": 26, "end": 30, "label": "LOC"}


def add(team: Team, confidences: Sequence[float], said: Mapping[str, Sequence[Any]] | None = None) -> list[int]:
    """Documents that annotators labelled, with a consensus of which it is so sure."""
    said = {"annotator one": [ADA, BATH], "annotator two": [SHORT, BATH]} if said is None else said
    ids = {name: team.add(name, None) for name in said}

    def work(connection: Connection) -> list[int]:
        found = []
        for n, confidence in enumerate(confidences):
            number = add_text(connection, f"document {n}", TEXT)
            for name, spans in said.items():
                annotating.import_annotation(connection, ids[name], number, list(spans), None)
            spans = [{**ADA, "confidence": 0.6}, {**BATH, "confidence": 0.9}]
            row = {"document": number, "version": 7, "spans": spans, "confidence": confidence, "labels": 2}
            upsert(connection, tables.consensus, {**row, "known": False, "layers": {}}, ["document"])
            found.append(number)
        return found

    return team.database.change(work)


def review(number: int, spans: Sequence[Any], id: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "document": number, "spans": list(spans), "accepted": False, **more}


def test_the_least_certain_comes_first_and_is_for_one_reviewer(any_team: Team) -> None:
    sure, unsure, middle = add(any_team, [0.9, 0.1, 0.5])
    rob, mia = any_team.client(Role.REVIEWER), any_team.client(Role.MANAGER)
    first = rob.get("/api/v1/reviews/next").json()["document"]
    assert first["number"] == unsure
    assert rob.get("/api/v1/reviews/next").json()["document"]["number"] == unsure  # it is theirs
    assert mia.get("/api/v1/reviews/next").json()["document"]["number"] == middle
    saved = rob.post("/api/v1/reviews", json=review(unsure, [ADA], "review-of-rob"))
    assert saved.json() == {"event": saved.json()["event"], "document": unsure, "disputed": False}
    assert rob.post("/api/v1/reviews", json=review(unsure, [ADA], "review-of-rob")).json() == saved.json()
    assert rob.get("/api/v1/reviews/next").json()["document"]["number"] == sure
    assert rob.post(f"/api/v1/reviews/{sure}/release").status_code == 200
    assert mia.post(f"/api/v1/reviews/{middle}/release").status_code == 200
    assert rob.get("/api/v1/reviews/next").json()["document"]["number"] == middle  # what they had comes last
    assert mia.get("/api/v1/reviews/next").json()["document"]["number"] == sure
    assert mia.post("/api/v1/reviews/999/release").status_code == 404
    assert rob.get("/api/v1/reviews").json()["items"][0]["spans"] == [ADA]


def test_a_reviewer_is_blind_until_they_have_looked(team: Team) -> None:
    (number,) = add(team, [0.5])
    rob, mia = team.client(Role.REVIEWER), team.client(Role.MANAGER)
    assert mia.post(f"/api/v1/reviews/{number}/reveal").status_code == 403  # it was not given to them
    seen = rob.get("/api/v1/reviews/next").json()["document"]
    hidden = ("consensus", "version", "confidence", "candidates")
    assert [seen[name] for name in hidden] == [None] * 4
    assert {version["name"] for version in seen["versions"]} == {"A", "B"}
    people = [person for person in team.database.change(_people) if person in str(seen)]
    assert not people
    assert "annotator one" not in str(seen)
    for _ in range(2):
        shown = rob.post(f"/api/v1/reviews/{number}/reveal").json()
    assert (shown["version"], shown["confidence"]) == (7, 0.5)
    assert shown["consensus"][0] == {**ADA, "confidence": 0.6}
    letter = next(version["name"] for version in seen["versions"] if ADA in version["spans"])
    votes = {(one["start"], one["end"]): (one["votes"], one["confidence"]) for one in shown["candidates"]}
    assert votes == {(0, 3): ([_other(letter)], None), (0, 12): ([letter], 0.6), (26, 30): (["A", "B"], 0.9)}
    assert mia.get(f"/api/v1/reviews/{number}").json()["consensus"] is None
    accepted = review(number, [ADA, BATH], "accepted-by-rob", accepted=True, consensus=7, note="as it is")
    assert (
        rob.post("/api/v1/reviews", json=accepted | {"id": "without-a-version", "consensus": None}).status_code == 422
    )
    assert rob.post("/api/v1/reviews", json=accepted | {"id": "with-other-spans", "spans": []}).status_code == 422
    assert rob.post("/api/v1/reviews", json=accepted).status_code == 200
    with team.database.read() as connection:
        kinds = [event.kind for event in events_after(connection, 0) if str(event.kind).startswith("review")]
        decided = [event for event in events_after(connection, 0) if event.kind is Kind.REVIEW_DECIDED]
    assert kinds == [Kind.REVIEW_LEASED, Kind.REVIEW_REVEALED, Kind.REVIEW_DECIDED]
    assert decided[0].body["blind"] is False
    assert b"as it is" not in (decided[0].personal or b"")


def test_who_has_decided_is_not_blind_any_more(team: Team) -> None:
    (number,) = add(team, [0.5])
    rob = team.client(Role.REVIEWER)
    assert rob.get("/api/v1/reviews/next").json()["document"]["consensus"] is None
    rob.post("/api/v1/reviews", json=review(number, [SHORT], "by-rob-01"))
    assert rob.get(f"/api/v1/reviews/{number}").json()["version"] == 7  # it is shown from now on
    rob.post("/api/v1/reviews", json=review(number, [ADA], "by-rob-02"))
    rob.post(f"/api/v1/reviews/{number}/withdraw", json={"id": "withdrawn-by-rob"})
    rob.post("/api/v1/reviews", json=review(number, [BATH], "by-rob-03"))
    assert [body["blind"] for body in _decisions(team)] == [True, False, False]


@pytest.mark.parametrize(
    ("version", "spans", "accepted"),
    [
        (7, [ADA, BATH], True),
        (6, [ADA, BATH], True),
        (6, [BOB], False),  # whatever that version said: it stands as the reviewer's own word
        (7, [BOB], None),
        (8, [BOB], None),  # which was never given out
    ],
)
def test_what_is_accepted_is_what_the_consensus_says(
    team: Team, version: int, spans: list[Any], accepted: bool | None
) -> None:
    (number,) = add(team, [0.5])
    given = review(number, spans, "by-rob-01", consensus=version) | {"accepted": True}
    answer = team.client(Role.REVIEWER).post("/api/v1/reviews", json=given)
    assert answer.status_code == (422 if accepted is None else 200)
    assert [body["accepted"] for body in _decisions(team)] == ([] if accepted is None else [accepted])


def _decisions(team: Team) -> list[Mapping[str, Any]]:
    with team.database.read() as connection:
        return [event.body for event in events_after(connection, 0) if event.kind is Kind.REVIEW_DECIDED]


def _people(connection: Connection) -> list[str]:
    return list(connection.execute(select(tables.people.c.id)).scalars())


def _other(letter: str) -> str:
    return "A" if letter == "B" else "B"


def test_nothing_is_hidden_where_reviewers_are_not_blind(team: Team) -> None:
    add(team, [0.5])
    team.app.state.settings = replace(team.settings, blind=False)
    assert team.client(Role.REVIEWER).get("/api/v1/reviews/next").json()["document"]["version"] == 7


def test_nobody_reviews_what_they_annotated(team: Team) -> None:
    add(team, [0.1, 0.2])
    with team.database.read() as connection:
        one, two = connection.execute(select(tables.documents.c.number)).scalars()
    rob = team.ids[Role.REVIEWER]
    team.database.change(lambda connection: annotating.import_annotation(connection, rob, one, [ADA], None))
    browser = team.client(Role.REVIEWER)
    assert browser.get("/api/v1/reviews/next").json()["document"]["number"] == two
    refused = browser.post("/api/v1/reviews", json=review(one, [], "review-of-own"))
    assert refused.status_code == 403
    assert "yourself" in refused.json()["error"]["message"]
    team.app.state.settings = replace(team.settings, reviews=ReviewSettings(own=True))
    assert browser.post("/api/v1/reviews", json=review(two, [], "review-of-two")).status_code == 200
    assert browser.get("/api/v1/reviews/next").json()["document"]["number"] == one  # last, as nobody else can
    assert browser.post("/api/v1/reviews", json=review(one, [], "review-of-own")).status_code == 200
    assert browser.get("/api/v1/reviews/next").json() == {"document": None}


def test_two_who_differ_are_in_dispute_until_a_third_decides(any_team: Team) -> None:
    (number,) = add(any_team, [0.5])
    rob, sue = any_team.client(Role.REVIEWER), any_team.client(any_team.add("sue", Role.REVIEWER))
    third, mia = any_team.client(any_team.add("tom", Role.REVIEWER)), any_team.client(Role.MANAGER)
    assert rob.post("/api/v1/reviews", json=review(number, [ADA, BATH], "by-rob-01")).json()["disputed"] is False
    nothing = third.post("/api/v1/reviews", json=review(number, [ADA], "by-tom-00", adjudicates=True))
    assert nothing.status_code == 409
    differs = review(number, [SHORT, BATH], "by-sue-01", note="Lovelace is another")
    assert sue.post("/api/v1/reviews", json=differs).json()["disputed"] is True
    found = third.get("/api/v1/disputes").json()
    (dispute,) = found["items"]
    assert (dispute["number"], dispute["places"], dispute["mine"]) == (number, [{"start": 0, "end": 12}], False)
    assert rob.get("/api/v1/disputes").json()["items"][0]["mine"] is True
    assert {opinion["note"] for opinion in dispute["opinions"]} == {"", "Lovelace is another"}
    assert sorted(len(opinion["spans"]) for opinion in dispute["opinions"]) == [2, 2]
    own = rob.post("/api/v1/reviews", json=review(number, [ADA, BATH], "by-rob-02", adjudicates=True))
    assert own.status_code == 403
    settled = third.post("/api/v1/reviews", json=review(number, [ADA, BATH], "by-tom-01", adjudicates=True))
    assert settled.json()["disputed"] is False
    assert mia.get("/api/v1/disputes").json() == {"items": [], "next": None}
    back = third.post(f"/api/v1/reviews/{number}/withdraw", json={"id": "withdrawn-by-tom"})
    assert back.json()["disputed"] is True
    assert third.post(f"/api/v1/reviews/{number}/withdraw", json={"id": "withdrawn-by-tom"}).json() == back.json()
    assert third.post(f"/api/v1/reviews/{number}/withdraw", json={"id": "withdrawn-again"}).status_code == 404
    assert sue.post("/api/v1/reviews", json=review(number, [ADA, BATH], "by-sue-02")).json()["disputed"] is False
    assert sue.post("/api/v1/reviews", json=review(number, [ADA], "by-sue-03")).json()["disputed"] is True
    assert mia.post("/api/v1/reviews", json=review(number, [], "by-mia-01", adjudicates=True)).status_code == 200
    with any_team.database.read() as connection:
        assert len(connection.execute(select(tables.reviews)).all()) == 3  # both words stand beside the last


@pytest.mark.parametrize(
    ("one", "other", "places"),
    [
        ([ADA], [ADA], []),
        ([ADA], [{**ADA, "label": "ORG"}], [(0, 12)]),
        ([ADA, SHORT], [ADA], [(0, 3)]),  # nested in its own kind
        ([{**BOB, "end": 19}], [BOB], [(17, 19), (17, 20)]),  # within a word
        ([BOB], [BATH], [(17, 20), (26, 30)]),
        ([], [], []),
    ],
)
def test_where_two_differ(team: Team, one: list[Any], other: list[Any], places: list[tuple[int, int]]) -> None:
    team.app.state.settings = replace(team.settings, overlaps=OverlapRule(Overlaps.NESTED))
    (number,) = add(team, [0.5])
    rob, mia = team.client(Role.REVIEWER), team.client(Role.MANAGER)
    assert rob.post("/api/v1/reviews", json=review(number, one, "by-rob-01")).status_code == 200
    answer = mia.post("/api/v1/reviews", json=review(number, other, "by-mia-01"))
    assert answer.json()["disputed"] is bool(places)
    found = mia.get("/api/v1/disputes").json()["items"]
    assert [(place["start"], place["end"]) for one in found for place in one["places"]] == places


@pytest.mark.parametrize(
    ("change", "status"),
    [({"document": 999}, 404), ({"spans": [{**ADA, "end": 999}]}, 422), ({"id": "short"}, 422), ({"more": 1}, 422)],
)
def test_a_review_that_makes_no_sense(team: Team, change: dict[str, Any], status: int) -> None:
    (number,) = add(team, [0.5])
    answer = team.client(Role.REVIEWER).post("/api/v1/reviews", json=review(number, [], "by-rob-01") | change)
    assert answer.status_code == status, answer.text


def test_annotators_review_nothing(team: Team) -> None:
    (number,) = add(team, [0.5])
    ann = team.client(Role.ANNOTATOR)
    for path in ("reviews/next", f"reviews/{number}", "reviews", "disputes"):
        assert ann.get(f"/api/v1/{path}").status_code == 403
    for path in ("reviews", f"reviews/{number}/reveal", f"reviews/{number}/withdraw", f"reviews/{number}/release"):
        assert ann.post(f"/api/v1/{path}", json=review(number, [], "by-ann-01")).status_code == 403
    assert team.client(Role.REVIEWER).get(f"/api/v1/documents/{number}/history").status_code == 403


def test_as_many_reviewers_as_are_asked_for(any_team: Team) -> None:
    numbers = add(any_team, [0.1, 0.2, 0.3])
    any_team.app.state.settings = replace(any_team.settings, reviews=ReviewSettings(per_document=2))
    browsers = [any_team.client(any_team.add(f"reviewer {n}", Role.REVIEWER)) for n in range(6)]
    got: list[int] = []
    barrier = threading.Barrier(len(browsers))

    def ask(browser: Any) -> None:
        barrier.wait(30)
        got.append(browser.get("/api/v1/reviews/next").json()["document"]["number"])

    threads = [threading.Thread(target=ask, args=[browser]) for browser in browsers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted([*numbers, *numbers])


def test_history_says_who_did_what_until_they_are_erased(team: Team) -> None:
    (number,) = add(team, [0.5])
    browser = team.client(sue := team.add("Sue Perkins", Role.REVIEWER))
    browser.post("/api/v1/reviews", json=review(number, [ADA], "by-sue-01", note="a countess", seconds=3.5))
    manager = team.client(Role.MANAGER)
    entry = manager.get(f"/api/v1/documents/{number}/history").json()[-1]
    told = (entry["kind"], entry["person"], entry["name"], entry["note"], entry["seconds"])
    assert told == ("review.decided", sue, "Sue Perkins", "a countess", 3.5)
    assert entry["body"]["spans"] == [ADA]
    assert team.client(Role.ADMIN).post(f"/api/v1/people/{sue}/erase").status_code == 200
    entry = manager.get(f"/api/v1/documents/{number}/history").json()[-1]
    assert (entry["person"], entry["name"], entry["note"]) == (sue, f"erased {sue}", "")
    assert entry["body"]["spans"] == [ADA]
    assert manager.get("/api/v1/documents/999/history").status_code == 404


def test_what_is_known_is_not_reviewed(team: Team) -> None:
    add(team, [0.5])
    known = update(tables.consensus).values(known=True)
    team.database.change(lambda connection: connection.execute(known))
    assert team.client(Role.REVIEWER).get("/api/v1/reviews/next").json() == {"document": None}


def test_a_reviewer_takes_back_on_a_page_what_they_decided(team: Team) -> None:
    first, second = add(team, [0.1, 0.9])
    rob, mia = team.client(Role.REVIEWER), team.client(Role.MANAGER)
    assert "Nothing yet" in rob.get("/review/decided").text
    for number in (first, second):
        rob.get(f"/api/v1/reviews/{number}")
        assert rob.get("/api/v1/reviews/next").json()["document"]["number"] == number
        assert rob.post("/api/v1/reviews", json=review(number, [ADA], f"review-of-{number}")).status_code == 200
    page = rob.get("/review/decided").text
    assert page.index("document 1") < page.index("document 0")  # the last first
    assert "document 0" not in mia.get("/review/decided").text  # everybody sees their own
    assert mia.post(f"/review/{first}/withdraw").status_code == 404  # and takes back their own alone
    done = rob.post(f"/review/{first}/withdraw", follow_redirects=False)
    assert (done.status_code, done.headers["location"]) == (303, "/review/decided")
    assert [one["document"] for one in rob.get("/api/v1/reviews").json()["items"]] == [second]
    assert "document 0" not in rob.get("/review/decided").text
    assert rob.post(f"/review/{first}/withdraw").status_code == 404
    with team.database.read() as connection:
        assert events_after(connection, 0)[-1].kind is Kind.REVIEW_WITHDRAWN
