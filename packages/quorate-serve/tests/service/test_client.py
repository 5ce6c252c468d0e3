"""The client of a service, against a service on a port: a whole life, errors of their kind, a service that is away."""

from __future__ import annotations

import inspect
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select

import quorate
from managing import give_password
from quorate.corpus.sample import sample
from quorate.errors import InputError, QuorateError, ServerError, SettingsError
from quorate.formats import write
from quorate_serve.client import (
    Client,
    ConflictError,
    Event,
    InvalidError,
    NotAllowedError,
    NotFoundError,
    NotLoggedInError,
    ServiceError,
    Span,
    WaitError,
)
from quorate_serve.database import tables
from quorate_serve.documents import add_text
from quorate_serve.live.worker import Follower
from quorate_serve.people import Role
from quorate_serve.settings import QueueSettings
from serving import PASSWORD, Team, free_port

GREETING = "👋 Ada Lovelace met שרה in Zürich"
ADA = Span(2, 14, "PER")
SARAH = Span(19, 22, "PER")


@contextmanager
def at_work(team: Team) -> Iterator[str]:
    """The service on a port of its own."""
    team.settings = replace(team.settings, port=free_port())
    with team.serving() as address:
        yield address
        for client in CLIENTS:
            client.close()
        CLIENTS.clear()
        team.app.state.ticks.stop()


CLIENTS: list[Client] = []
"""Those that are closed before their service ends."""


def client_of(team: Team, who: Role | str, token: str = "", **options: Any) -> Client:
    token = token or team.token(who)["Authorization"].removeprefix("Bearer ")
    CLIENTS.append(Client(team.settings.address, token, **{"attempts": 1, **options}))
    return CLIENTS[-1]


def give(team: Team, *texts: str) -> list[int]:
    texts = texts or (GREETING,)
    return team.database.change(lambda connection: [add_text(connection, text[:9], text) for text in texts])


def test_a_whole_life(any_team: Team, tmp_path: Path) -> None:
    crowd = quorate.Corpus(sample().documents[:12])
    write(crowd, tmp_path / "crowd.jsonl", "jsonl")
    any_team.app.state.settings = replace(
        any_team.settings, labels=(), queue=QueueSettings(per_document_max=100, check_rate=0.0)
    )
    with at_work(any_team):
        manager, annotator = client_of(any_team, Role.MANAGER), client_of(any_team, Role.ANNOTATOR)
        reviewer = client_of(any_team, Role.REVIEWER)
        found = manager.import_file(tmp_path / "crowd.jsonl")
        assert (found.documents, found.annotators) == (12, len(crowd.annotators))
        assert manager.import_file(tmp_path / "crowd.jsonl").labels == 0
        assert [one.id for one in manager.documents()] == [document.id for document in crowd]
        assert manager.add_texts({"ש-1": GREETING, "two": "It rains."}) == 2
        assert manager.add_texts({"ש-1": GREETING}) == 0

        done = []
        while (task := annotator.next()) is not None:
            spans = [ADA, SARAH] if task.id == "ש-1" else []
            done.append(annotator.save(task.number, spans, seconds=1.5))
        assert len(done) == 14
        mine = {one.document: one.spans for one in annotator.annotations()}
        greeting = next(number for number, spans in mine.items() if spans)
        assert mine[greeting] == [ADA, SARAH]
        own = annotator.annotation(greeting)
        assert own.text is not None
        assert (own.id, own.text[19:22]) == ("ש-1", "שרה")
        annotator.save(greeting, [ADA])
        assert annotator.undo(greeting).revision == 3
        annotator.withdraw(greeting)
        assert [one.spans for one in annotator.revisions(greeting)] == [[ADA, SARAH], [ADA], [ADA, SARAH], None]
        annotator.save(greeting, [ADA])

        Follower(any_team.settings, any_team.database).refit()
        unsure = reviewer.next_review()
        assert unsure is not None
        assert unsure.consensus is None
        shown = reviewer.reveal(unsure.number)
        assert shown.consensus is not None
        assert shown.candidates is not None
        agreed = [one.span for one in shown.consensus]
        decided = reviewer.decide(unsure.number, agreed, accepted=True, consensus=shown.version, note="שלום")
        assert not decided.disputed
        assert [one.document for one in reviewer.reviews()] == [unsure.number]
        assert reviewer.review(unsure.number).decided == agreed
        another = reviewer.next_review()
        assert another is not None
        reviewer.release_review(another.number)

        Follower(any_team.settings, any_team.database).refit()
        assert manager.consensus(unsure.number).known
        assert len(list(manager.all_consensus())) == 14
        sure = [one.confidence for one in manager.all_consensus(order="least-certain")]
        assert sure == sorted(sure)
        progress = reviewer.progress()
        assert (progress.documents, progress.known) == (14, 1)
        assert list(manager.all_consensus(changed_since=progress.version)) == []
        assert "שלום" in [one.note for one in manager.history(unsure.number)]
        assert manager.document(greeting).text == GREETING

        for what in ("annotations", "consensus"):
            manager.export(tmp_path / f"{what}.jsonl", what=what)
        back = quorate.read(tmp_path / "annotations.jsonl")
        assert len(back) == 14
        for before, after in zip(crowd, back, strict=False):
            assert {**after.annotations, **before.annotations} == dict(after.annotations)
        lines = (tmp_path / "consensus.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(lines) == 14
        manager.export(tmp_path / "back.json.gz", format="label-studio", names=False)
        assert len(quorate.read(tmp_path / "back.json.gz", format="label-studio")) == 14


def test_reviewers_who_differ_and_who_decides_between_them(team: Team) -> None:
    (number,) = give(team, "Ada Lovelace sang in Rome.")
    with at_work(team):
        first, second, third = (client_of(team, role) for role in (Role.REVIEWER, Role.MANAGER, Role.ADMIN))
        annotator = client_of(team, Role.ANNOTATOR)
        annotator.next()
        annotator.save(number, [Span(0, 12, "PER"), Span(21, 25, "LOC")])
        Follower(team.settings, team.database).refit()
        first.next_review()
        first.decide(number, [Span(0, 12, "PER")])
        second.review(number)
        assert second.decide(number, [Span(0, 3, "PER")], note="short").disputed
        (dispute,) = third.disputes()
        assert (dispute.number, dispute.mine, len(dispute.opinions)) == (number, False, 2)
        assert [(place.start, place.end) for place in dispute.places] == [(0, 12)]
        assert not third.adjudicate(number, [Span(0, 12, "PER")], note="whole name").disputed
        assert list(third.disputes()) == []
        assert third.withdraw_review(number).disputed


def test_people_and_their_tokens(team: Team) -> None:
    with at_work(team) as address:
        admin, annotator = client_of(team, Role.ADMIN), client_of(team, Role.ANNOTATOR)
        me = annotator.me()
        assert (me.name, me.role) == ("annotator", "annotator")
        assert annotator.person(me.id) == me
        assert len(admin.people()) == 4
        assert admin.change_person(me.id, cost=2.5, most=7).most == 7
        changed = admin.change_person(me.id, most=None)
        assert (changed.cost, changed.most) == (2.5, None)
        assert "/invite/" in admin.invite("reviewer")
        assert "/invite/" in admin.invite_again(me.id)
        (again, new) = admin.invitations()
        assert (again.person, new.person, new.role) == (me.id, None, "reviewer")
        admin.revoke_invitation(again.id)
        assert [one.id for one in admin.invitations()] == [new.id]
        assert (new.name, new.url) == ("", None)
        url = admin.invite(name="Ann")
        assert [(one.name, one.url) for one in admin.invitations() if one.name] == [("Ann", url)]
        give_password(team, Role.ANNOTATOR)
        annotator = client_of(team, Role.ANNOTATOR)  # as the new password ended the token before
        with pytest.raises(NotAllowedError, match="a token is not enough for this"):
            annotator.make_token("script")
        with pytest.raises(NotAllowedError, match="the password is not right"):
            annotator.make_token("script", password="guessed wrongly")
        with pytest.raises(InvalidError, match="for 90 days at most"):
            annotator.make_token("script", password=PASSWORD, days=91)
        give_password(team, Role.ADMIN)
        admin = client_of(team, Role.ADMIN)
        with pytest.raises(NotAllowedError, match="a token is not enough to make managers"):
            admin.invite("admin")
        assert "/invite/" in admin.invite("admin", password=PASSWORD)
        manager = team.ids[Role.MANAGER]
        assert "/invite/" in admin.invite_again(manager, password=PASSWORD)
        assert admin.change_person(manager, role="admin", password=PASSWORD).role == "admin"
        made = annotator.make_token("script", password=PASSWORD, days=1)
        with team.database.read() as connection:
            assert connection.execute(select(tables.sessions)).all() == []  # it has logged out again
        with Client(address, made.token, attempts=1) as program:
            assert program.is_well()
            assert program.me() == annotator.me()
            assert made.id in [one.id for one in annotator.tokens()]
            annotator.remove_token(made.id)
            with pytest.raises(NotLoggedInError):
                program.me()
        assert admin.erase_person(me.id).name == f"erased {me.id}"


def test_errors_are_of_their_kind(team: Team, tmp_path: Path) -> None:
    (number,) = give(team)
    with at_work(team) as address:
        annotator, manager = client_of(team, Role.ANNOTATOR), client_of(team, Role.MANAGER)
        with pytest.raises(NotLoggedInError, match="log in first") as caught:
            client_of(team, Role.ANNOTATOR, token="qt_unknown").me()
        assert caught.value.status == 401
        with pytest.raises(NotAllowedError, match="for managers") as refused:
            annotator.people()
        assert refused.value.status == 403
        with pytest.raises(NotAllowedError, match="was not given to you"):
            annotator.save(number, [])
        with pytest.raises(NotFoundError, match="no document 999"):
            manager.document(999)
        with pytest.raises(NotFoundError):
            manager.person("../tokens")
        annotator.next()
        with pytest.raises(InvalidError, match="span 1 is from 2 to 99") as invalid:
            annotator.save(number, [Span(2, 99, "PER")])
        assert invalid.value.status == 422
        with pytest.raises(InvalidError, match="label 'NOPE'"):
            annotator.save(number, [Span(2, 5, "NOPE")])
        annotator.save(number, [])
        with pytest.raises(ConflictError, match="is labelled"):
            annotator.release(number)
        (tmp_path / "bad.jsonl").write_text("{")
        with pytest.raises(InvalidError, match=r"bad\.jsonl"):
            manager.import_file(tmp_path / "bad.jsonl")
        with pytest.raises(InputError, match="cannot be read"):
            manager.import_file(tmp_path / "none.jsonl")
        with pytest.raises(ServiceError):
            manager.export(tmp_path / "out", format="no-such-format")
        assert not (tmp_path / "out").exists()
        assert str(caught.value).count("\n") == 0
        with pytest.raises(ServerError, match="not JSON"):
            manager._ask(dict, "GET", f"{address}/login")


@pytest.mark.parametrize("given", [("", "qt_x"), ("localhost", "qt_x"), ("http://", "qt_x"), ("http://a", "qt_ü")])
def test_what_cannot_be_asked(given: tuple[str, str]) -> None:
    with pytest.raises(SettingsError):
        Client(*given)


def test_a_service_that_is_away_and_comes_back_has_a_save_once(any_team: Team) -> None:
    """The answer to the first save is lost, then there is nobody, then the service is there again."""
    (number,) = give(any_team)
    with at_work(any_team):
        client_of(any_team, Role.ANNOTATOR).next()
    lost: list[str] = []
    back: list[Any] = []

    class Losing(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            response = super().handle_request(request)
            if not lost:
                lost.append(json.loads(request.content)["id"])
                running.__exit__(None, None, None)
                raise httpx.ReadError("the connection was lost")
            return response

    def pause(seconds: float) -> None:
        if len(pauses) == 1:
            back.append(any_team.serving())
            back[0].__enter__()
        pauses.append(seconds)

    pauses: list[float] = []  # nobody is there after the first: the service is back after the second
    any_team.settings = replace(any_team.settings, port=free_port())
    running = any_team.serving()
    running.__enter__()
    client = client_of(any_team, Role.ANNOTATOR, attempts=5, pause=pause, transport=Losing())
    try:
        saved = client.save(number, [ADA])
        assert saved.revision == 1
        assert len(pauses) == 2  # nobody was there at the second try
        assert client.save(number, [SARAH], id=lost[0]) == saved  # the same id is the same save
        assert [one.spans for one in client.revisions(number)] == [[ADA]]
    finally:
        back[0].__exit__(None, None, None)
    with pytest.raises(WaitError, match="no answer after 5 attempts"):
        client.me()
    client.close()


def test_a_service_that_is_busy_is_left_alone_for_as_long_as_it_asks() -> None:
    answers = [httpx.Response(429, headers={"Retry-After": "7"}), httpx.Response(503), httpx.Response(200, json=[])]
    pauses: list[float] = []
    transport = httpx.MockTransport(lambda _: answers.pop(0))
    assert Client("http://localhost", "qt_x", pause=pauses.append, transport=transport).people() == []
    assert pauses[0] == 7.0
    assert 0.5 <= pauses[1] <= 1.0


def test_lists_are_read_page_after_page(team: Team) -> None:
    texts = {f"d{n}": f"text {n}" for n in range(1_203)}
    with at_work(team):
        manager = client_of(team, Role.MANAGER)
        assert manager.add_texts(texts) == 1_203
        assert [one.id for one in manager.documents()] == list(texts)


def test_a_big_export_is_written_as_it_comes(team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with at_work(team):
        manager = client_of(team, Role.MANAGER)
        manager.add_texts({f"d{n}": f"{n} 👋 " + "many words " * 20_000 for n in range(12)})
        largest = 0
        chunks = httpx.Response.iter_bytes

        def seen(self: httpx.Response, size: int | None = None) -> Iterator[bytes]:
            nonlocal largest
            for chunk in chunks(self, size):
                largest = max(largest, len(chunk))
                yield chunk

        monkeypatch.setattr(httpx.Response, "iter_bytes", seen)
        manager.export(tmp_path / "all.jsonl")
        size = (tmp_path / "all.jsonl").stat().st_size
        assert size > 8 * largest > 0
        assert len(quorate.read(tmp_path / "all.jsonl", format="jsonl")) == 12


def test_an_export_that_breaks_off_leaves_no_file(tmp_path: Path) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        def content() -> Iterator[bytes]:
            yield b"half of it"
            raise httpx.ReadError("the connection was lost")

        return httpx.Response(200, content=content())

    client = Client("http://localhost", "qt_x", attempts=2, pause=lambda _: None, transport=httpx.MockTransport(answer))
    (tmp_path / "out.jsonl").write_text("as it was")
    with pytest.raises(WaitError):
        client.export(tmp_path / "out.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
    assert (tmp_path / "out.jsonl").read_text() == "as it was"


def test_what_happens_is_heard_as_it_happens(any_team: Team) -> None:
    give(any_team, GREETING, "Bob met Ada.")
    heard: list[Event] = []
    with at_work(any_team):
        annotator, reviewer = client_of(any_team, Role.ANNOTATOR), client_of(any_team, Role.REVIEWER)
        first = annotator.next()
        assert first is not None
        annotator.save(first.number, [Span(0, 3, "PER")])
        follower = Follower(any_team.settings, any_team.database)
        follower.refit()
        before = follower.version

        def listen() -> None:
            for event in reviewer.live(after=0):
                heard.append(event)
                if event.kind == "consensus" and event.data["version"] > before:
                    return

        listening = threading.Thread(target=listen, daemon=True)
        listening.start()
        until = time.monotonic() + 10
        while not heard and time.monotonic() < until:
            time.sleep(0.01)
        assert (heard[0].kind, heard[0].id) == ("consensus", before)
        second = annotator.next()
        assert second is not None
        annotator.save(second.number, [Span(0, 3, "PER")])
        while follower.step():
            pass
        listening.join(10)
        assert not listening.is_alive()
        last = heard[-1]
        assert last.data["changed"] is None or second.number in last.data["changed"]


# nothing of the API is out of reach

OUT_OF_REACH = {  # an audit is held on its page; webhooks are set up once; one's own data are downloaded
    "DELETE /api/v1/webhooks/{id}",
    "GET /api/v1/people/me/data",
    "GET /api/v1/webhooks",
    "GET /api/v1/webhooks/{id}/deliveries",
    "PATCH /api/v1/webhooks/{id}",
    "POST /api/v1/webhooks",
    "POST /api/v1/webhooks/{id}/secret",
    "POST /api/v1/webhooks/{id}/test",
    "GET /api/v1/audits",
    "GET /api/v1/audits/{id}/next",
    "POST /api/v1/audits",
    "POST /api/v1/audits/{id}/checks",
    "POST /api/v1/audits/{id}/end",
    "POST /api/v1/audits/{id}/more",
}
"""Routes that no method asks for."""

ARGUMENTS: dict[str, Any] = {
    "document": 7,
    "number": 7,
    "id": "id-of-it",
    "spans": [],
    "texts": {"a": "b"},
    "name": "script",
}


def test_every_route_of_the_api_has_a_method(team: Team, tmp_path: Path) -> None:
    asked: set[tuple[str, str]] = set()

    def answer(request: httpx.Request) -> httpx.Response:
        asked.add((request.method, request.url.path))
        return httpx.Response(404)

    client = Client("http://localhost", "qt_x", transport=httpx.MockTransport(answer))
    (tmp_path / "file").write_text("content")
    for name, method in inspect.getmembers(client, inspect.ismethod):
        if name.startswith("_") or name == "close":
            continue
        assert inspect.getdoc(method), f"{name} has no docstring"
        needed = [each.name for each in inspect.signature(method).parameters.values() if each.default is each.empty]
        given = {each: {**ARGUMENTS, "path": tmp_path / "file"}[each] for each in needed}
        with pytest.raises(NotFoundError):
            next(iter(method(**given)))  # who asks for a list asks when it is read
    routes = team.client().get("/api/v1/openapi.json").json()["paths"]
    unreached = set()
    for path, methods in routes.items():
        shape = re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
        for method in methods:
            if path.startswith("/api/") and not any(m == method.upper() and shape.fullmatch(p) for m, p in asked):
                unreached.add(f"{method.upper()} {path}")
    assert unreached == OUT_OF_REACH


def test_public_names_say_what_they_are() -> None:
    import quorate_serve.client

    for name in quorate_serve.client.__all__:
        assert inspect.getdoc(getattr(quorate_serve.client, name)), name
    assert issubclass(ServiceError, QuorateError)
