"""Spans that overlap: refused or shown where they must not, and never a reason for another consensus elsewhere.

Forty histories by default, and two hundred with ``make fuzz``; a quarter as many in layers.
"""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select

import quorate
from quorate.corpus.overlaps import OverlapRule, Overlaps
from quorate.corpus.records import Corpus
from quorate.formats import read_known, write
from quorate_serve import annotating, reviewing
from quorate_serve.database import tables
from quorate_serve.documents import add_text
from quorate_serve.exporting import annotations_of
from quorate_serve.importing import import_corpus
from quorate_serve.live.worker import Follower
from quorate_serve.people import Role
from quorate_serve.sessions import Who
from serving import Team

Spans = Sequence[Mapping[str, Any]]
BATH, SPA = {"start": 0, "end": 4, "label": "LOC"}, {"start": 0, "end": 8, "label": "ORG"}
CROSSING = {"start": 5, "end": 12, "label": "LOC"}
TEXT = "Bath Spa won the cup"
NESTED, ANY = OverlapRule(Overlaps.NESTED), OverlapRule(Overlaps.ANY)
HISTORIES = int(os.environ.get("QUORATE_HISTORIES", "40"))


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def add(team: Team, text: str = TEXT) -> int:
    return team.database.change(lambda connection: add_text(connection, uuid.uuid4().hex, text))


def give(team: Team, number: int, *people: str) -> None:
    def work(connection: Connection) -> None:
        for person in people:
            values = {"purpose": "work", "state": "leased", "at": 0.0, "until": 9e9}
            connection.execute(insert(tables.assignments).values(document=number, person=person, **values))

    team.database.change(work)


def put(team: Team, person: str, number: int, spans: Spans) -> None:
    """As another tool says it, which nothing refuses."""
    ordered = sorted(map(dict, spans), key=lambda span: (span["start"], span["end"], span["label"]))
    team.database.change(
        lambda connection: annotating.import_annotation(connection, person, number, ordered, None, client="test")
    )


def given_out(team: Team) -> dict[int, tuple[set[tuple[int, int, str]], float]]:
    with team.database.read() as connection:
        return {
            row.document: ({(span["start"], span["end"], span["label"]) for span in row.spans}, row.confidence)
            for row in connection.execute(select(tables.consensus))
        }


def told(team: Team) -> dict[str, float | None]:
    """What the last fit tells of itself as a whole."""
    query = select(tables.snapshots.c.summary).where(tables.snapshots.c.kind == "refit")
    with team.database.read() as connection:
        found = connection.execute(query.order_by(tables.snapshots.c.version.desc())).scalars().first()
    assert found is not None
    return {"agreement": found["agreement"]}


def settle(follower: Follower) -> None:
    for _ in range(50):
        if not follower.step():
            return
    raise AssertionError("the worker does not come to rest")


def allowing(team: Team, rule: OverlapRule) -> Team:
    team.settings = team.app.state.settings = replace(team.settings, overlaps=rule)
    return team


@pytest.mark.parametrize(
    ("rule", "spans", "message"),
    [
        (OverlapRule(), [BATH, SPA], "LOC from 0 to 4 overlaps ORG from 0 to 8, and no spans may overlap here"),
        (OverlapRule(), [BATH, CROSSING], ""),
        (NESTED, [BATH, SPA], ""),
        (NESTED, [SPA, CROSSING], "LOC from 5 to 12 crosses ORG from 0 to 8"),
        (ANY, [SPA, CROSSING], ""),
        (
            OverlapRule(Overlaps.ANY, 2),
            [SPA, BATH, {**BATH, "label": "PER"}],
            "PER from 0 to 4 lies on a word on which there are 2 spans already",
        ),
    ],
)
def test_what_must_not_overlap_is_refused_when_it_is_saved(
    team: Team, rule: OverlapRule, spans: Spans, message: str
) -> None:
    number, person = add(allowing(team, rule)), team.ids[Role.ANNOTATOR]
    give(team, number, person)
    answer = team.client(Role.ANNOTATOR).post(
        "/api/v1/annotations", json={"id": uuid.uuid4().hex, "document": number, "spans": spans}
    )
    if not message:
        assert answer.status_code == 200
        return
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "overlap"
    assert message in answer.json()["error"]["message"]
    with team.database.read() as connection:
        assert annotating.current(connection, number, person) is None


def test_reviewers_are_refused_it_too(team: Team) -> None:
    number = add(team)
    put(team, team.ids[Role.ANNOTATOR], number, [BATH])
    answer = team.client(Role.REVIEWER).post(
        "/api/v1/reviews", json={"id": uuid.uuid4().hex, "document": number, "spans": [BATH, SPA], "accepted": False}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "overlap")


def test_going_back_to_what_must_not_be_is_refused(team: Team) -> None:
    number, person = add(team), team.ids[Role.ANNOTATOR]
    put(team, person, number, [BATH, SPA])
    put(team, person, number, [SPA])
    answer = team.client(Role.ANNOTATOR).post(f"/api/v1/annotations/{number}/undo", json={"id": uuid.uuid4().hex})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "overlap")


def test_spans_without_end_on_one_word_are_refused_in_a_file(team: Team) -> None:
    many = [{"start": 0, "end": 4, "label": f"L{n}"} for n in range(9)]
    line = {"id": "many", "text": TEXT, "annotations": {"zoe": many}}
    for rule in (OverlapRule(), ANY):
        manager = allowing(team, rule).client(Role.MANAGER)
        answer = manager.post("/api/v1/import", files={"file": ("a.jsonl", json.dumps(line).encode())})
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "overlap")
        assert "document 'many': more than 8 spans of one annotator share the word at 0" in answer.text
    assert not team.database.change(lambda connection: connection.execute(select(tables.documents)).all())


def test_a_file_whose_spans_overlap_is_taken_in_and_the_lead_is_shown_where(team: Team) -> None:
    manager, line = team.client(Role.MANAGER), {"id": "x", "text": TEXT, "annotations": {"zoe": [BATH, SPA]}}
    told = manager.post("/api/v1/import", files={"file": ("a.jsonl", json.dumps(line).encode())}).json()
    assert any("in 1 label spans overlap although they must not here" in note for note in told["notes"])
    Follower(team.settings, team.database).refit()
    assert {number: spans for number, (spans, _) in given_out(team).items()} == {1: {(0, 8, "ORG")}}
    page = manager.get("/progress").text
    assert "LOC “Bath” overlaps ORG “Bath Spa”" in page
    assert "zoe" in page
    assert "zoe" not in team.client(Role.REVIEWER).get("/progress").text
    found = manager.get("/api/v1/progress").json()["overlaps"]
    assert (found["documents"], found["some"][0]["span"], found["some"][0]["other"]) == (1, BATH, SPA)


@pytest.mark.parametrize("rule", [OverlapRule(), NESTED, ANY])
def test_one_mark_inside_another_changes_nothing_elsewhere_and_heals(team: Team, rule: OverlapRule) -> None:
    team = allowing(team, rule)
    import_corpus(team.database, team.settings.secret(), Corpus(quorate.sample().documents[:60]))
    clock = Clock()
    follower = Follower(team.settings, team.database, clock=clock)
    follower.refit()
    before, whole = given_out(team), told(team)
    with team.database.read() as connection:
        every = connection.execute(select(tables.current_annotations)).all()
    row, outer = next((row, span) for row in every for span in row.spans if span["end"] - span["start"] > 6)
    put(team, row.person, row.document, [*row.spans, {**outer, "end": outer["start"] + 3, "label": "WORK"}])
    follower.refit()
    assert given_out(team) == before
    assert told(team) == whole
    put(team, row.person, row.document, row.spans)
    clock.now += 1000  # as long as the fit before took, and more
    settle(follower)
    assert given_out(team) == before
    assert "overlap" not in team.client(Role.MANAGER).get("/progress").text


def test_where_many_spans_lie_inside_others_types_have_layers(team: Team) -> None:
    team = allowing(team, NESTED)
    numbers = [add(team, f"{TEXT} {n}") for n in range(12)]
    for number in numbers:
        for role in (Role.ANNOTATOR, Role.REVIEWER, Role.MANAGER):
            put(team, team.ids[role], number, [BATH, SPA])
    follower = Follower(team.settings, team.database)
    follower.refit()
    assert all(spans == {(0, 4, "LOC"), (0, 8, "ORG")} for spans, _ in given_out(team).values())
    for number in numbers[:-1]:
        for role in (Role.ANNOTATOR, Role.REVIEWER, Role.MANAGER):
            put(team, team.ids[role], number, [SPA])
    follower.refit()
    assert all(spans == {(0, 8, "ORG")} for spans, _ in given_out(team).values())
    assert "as they hardly do elsewhere" in team.client(Role.MANAGER).get("/progress").text


def test_what_a_reviewer_decides_is_given_out_however_rare(team: Team) -> None:
    team.settings = replace(team.settings, overlaps=NESTED, labels=())
    import_corpus(team.database, team.settings.secret(), Corpus(quorate.sample().documents[:60]))
    follower = Follower(team.settings, team.database)
    follower.refit()
    number, outer = next(
        (n, span) for n, (spans, _) in given_out(team).items() for span in sorted(spans) if span[1] > span[0] + 8
    )
    with team.database.read() as connection:
        query = select(tables.documents.c.tokens).where(tables.documents.c.number == number)
        end = next(end for start, end in connection.execute(query).scalar_one() if start == outer[0])
    whole = {"start": outer[0], "end": outer[1], "label": outer[2]}
    inner = {"start": outer[0], "end": end, "label": "WORK"}
    reviewer = Who(team.ids[Role.REVIEWER], Role.REVIEWER, "")

    def decided(*spans: Mapping[str, Any]) -> dict[int, set[tuple[int, int, str]]]:
        given = reviewing.Given(uuid.uuid4().hex, number, spans, accepted=False)
        team.database.change(lambda connection: reviewing.decide(connection, reviewer, given, team.settings))
        follower.refit()
        return {n: spans for n, (spans, _) in given_out(team).items()}

    before, once = decided(whole), told(team)
    assert before[number] == {outer}
    assert decided(whole, inner) == before | {number: {outer, (outer[0], end, "WORK")}}
    assert told(team) == pytest.approx(once, abs=0.05)
    assert decided(whole) == before
    assert told(team) == once


@pytest.mark.parametrize("rule", [OverlapRule(), NESTED, ANY])
def test_a_fit_takes_as_long_with_spans_that_overlap_without_end(team: Team, rule: OverlapRule) -> None:
    """What was saved before it was refused: 1,300 spans over one another were minutes, and a gigabyte."""
    team = allowing(team, rule)
    import_corpus(team.database, team.settings.secret(), Corpus(quorate.sample().documents[:60]))
    text = " ".join(f"w{n}" for n in range(4_000))
    number, other = add(team, text), add(team, text)
    someone = team.ids[Role.ANNOTATOR]
    put(team, someone, other, [{"start": 0, "end": len(text), "label": "PER"}])
    put(team, someone, number, [{"start": 0, "end": len(text), "label": "PER"}])
    follower = Follower(team.settings, team.database)

    def seconds() -> float:
        began = time.perf_counter()
        follower.refit()
        return time.perf_counter() - began

    seconds()
    alone = seconds()
    put(team, someone, number, [{"start": 0, "end": len(text) - n, "label": "PER"} for n in range(1_860)])
    assert seconds() < 3 * alone + 2


def tagged(document: Any, spans: Spans) -> dict[str, Any]:
    """A line that says what spans, none of which overlap, are as tags."""
    tags = ["O"] * len(document.tokens)
    for span in spans:
        for n, (start, end) in enumerate(document.tokens):
            if span["start"] <= start and end <= span["end"]:
                tags[n] = f"{'B' if start == span['start'] else 'I'}-{span['label']}"
    return {"id": document.id, "tokens": [document.text[start:end] for start, end in document.tokens], "tags": tags}


def by_aggregate(team: Team, folder: Path) -> dict[int, tuple[set[tuple[int, int, str]], float]]:
    """The consensus of a program on the export, with what reviewers decided."""
    with team.database.read() as connection:
        write(annotations_of(connection, names=False), folder / "export.jsonl")
        rows = connection.execute(select(tables.documents)).all()
        decided = connection.execute(select(tables.reviews)).all()
    numbers, texts = {row.id: row.number for row in rows}, {row.number: row for row in rows}
    corpus, known = quorate.read(folder / "export.jsonl"), None
    if decided:
        lines = [
            {"reviewer": row.person, "adjudicated": row.adjudicates, **tagged(texts[row.document], row.spans)}
            for row in decided
        ]
        (folder / "known.jsonl").write_text("\n".join(map(json.dumps, lines)))
        known = read_known(folder / "known.jsonl", corpus)
    result = quorate.aggregate(corpus, known=known)
    found = {}
    for one in result:
        offsets = one.document.offsets
        assert offsets is not None
        spans = {(offsets[span.start][0], offsets[span.end - 1][1], span.label) for span in one.spans}
        found[numbers[one.document.id]] = (spans, float(one.confidence))
    return found


def by_layers(team: Team, folder: Path) -> dict[int, tuple[set[tuple[int, int, str]], float]]:
    """The consensus of a program on the export, in the layers that this needs."""
    with team.database.read() as connection:
        write(annotations_of(connection, names=False), folder / "export.jsonl")
        rows = connection.execute(select(tables.documents)).all()
    numbers = {row.id: row.number for row in rows}
    found = {}
    for one in quorate.aggregate_layers(quorate.read_layers(folder / "export.jsonl")):
        offsets = one.document.offsets
        assert offsets is not None
        spans = {(offsets[span.start][0], offsets[span.end - 1][1], span.label) for span in one.spans}
        found[numbers[one.document.id]] = (spans, float(one.confidence))
    return found


@pytest.mark.parametrize(
    ("seed", "rule"), [*((n, OverlapRule()) for n in range(HISTORIES)), *((n, ANY) for n in range(HISTORIES // 4))]
)
def test_after_every_save_the_consensus_is_that_of_the_export(
    team: Team, tmp_path: Path, seed: int, rule: OverlapRule
) -> None:
    """Histories of marks, slips that overlap, decisions, and all of these taken back; in layers, without decisions."""
    team, chance = allowing(team, rule), random.Random(seed)
    kinds = ["mark", "slip", "unmark", "withdraw", *(["decide", "undecide"] if rule is not ANY else [])]
    start = chance.randrange(0, 300)
    import_corpus(team.database, team.settings.secret(), Corpus(quorate.sample().documents[start : start + 8]))
    with team.database.read() as connection:
        documents = {row.number: row for row in connection.execute(select(tables.documents))}
        people = sorted({row.person for row in connection.execute(select(tables.current_annotations))})
    reviewer = Who(team.ids[Role.REVIEWER], Role.REVIEWER, "")
    clock = Clock()
    follower = Follower(team.settings, team.database, clock=clock)
    settle(follower)

    def mark(number: int) -> dict[str, Any]:
        tokens = documents[number].tokens
        first = chance.randrange(len(tokens))
        last = min(first + chance.randrange(3), len(tokens) - 1)
        label = chance.choice(["PER", "LOC", "ORG"])
        return {"start": tokens[first][0], "end": tokens[last][1], "label": label}

    def something(connection: Connection) -> None:
        number, person = chance.choice(sorted(documents)), chance.choice(people)
        said = annotating.current(connection, number, person)
        spans = [] if said is None else [dict(span) for span in said["spans"]]
        what = chance.choice(kinds)
        id = f"{chance.getrandbits(60):016x}"
        if what == "withdraw" and said is not None:
            kept = connection.execute(
                select(tables.current_annotations.c.person).where(tables.current_annotations.c.document == number)
            ).all()
            if len(kept) > 1:
                annotating.withdraw(connection, person, number, id)
        elif what == "decide":
            given = reviewing.Given(id, number, [mark(number)], accepted=False)
            reviewing.decide(connection, reviewer, given, team.settings)
        elif what == "undecide":
            decided = connection.execute(select(tables.reviews.c.document)).scalars().all()
            if decided:
                reviewing.withdraw(connection, reviewer.person, chance.choice(sorted(decided)), id)
        else:
            if what == "unmark":
                spans = spans[:-1]
            else:
                one = mark(number)
                if what == "mark":
                    spans = [each for each in spans if each["end"] <= one["start"] or one["end"] <= each["start"]]
                spans.append(one)
            unique = {(each["start"], each["end"], each["label"]): each for each in spans}
            kept_spans = [unique[key] for key in sorted(unique)]
            annotating.import_annotation(connection, person, number, kept_spans, None, client="test")

    for _ in range(3):
        team.database.change(something)
        settle(follower)
        clock.now += 400  # nobody saves for a while, and what is left is fitted
        settle(follower)
        live, expected = given_out(team), (by_layers if rule is ANY else by_aggregate)(team, tmp_path)
        assert {number: spans for number, (spans, _) in live.items()} == {
            number: spans for number, (spans, _) in expected.items()
        }
        for number, (_, confidence) in live.items():
            assert confidence == pytest.approx(expected[number][1], abs=1e-3)
