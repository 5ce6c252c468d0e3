"""A fit that takes too long or too much memory is stopped; the last consensus stays, and everybody is told."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import quorate
from quorate.corpus.records import Corpus
from quorate.errors import InputError
from quorate_serve.importing import import_corpus
from quorate_serve.live.limited import FitError, FitStoppedError, Limited
from quorate_serve.live.worker import Follower
from quorate_serve.people import Role
from quorate_serve.settings import FitSettings
from serving import Team


def sleeps(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def holds(size: int) -> None:
    held = b"1" * size
    time.sleep(30)
    assert held


def refuses() -> None:
    raise InputError("no label")


def divides() -> float:
    return 1 / 0


def dies() -> None:
    os._exit(9)


@pytest.fixture
def limited() -> Iterator[Limited]:
    made = Limited(FitSettings())
    yield made
    made.stop()


def test_what_takes_too_long_is_stopped_and_the_next_has_a_new_process() -> None:
    limited = Limited(FitSettings(seconds=0.5))
    began = time.perf_counter()
    with pytest.raises(FitStoppedError, match=r"more than 0.5 s and was stopped \(option fit-seconds\)"):
        limited(sleeps, 60)
    assert time.perf_counter() < began + 20
    limited = Limited(FitSettings())
    one, other = limited(sleeps, 0), limited(sleeps, 0)
    assert one == other != os.getpid()
    limited.stop()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is seen by /proc")
def test_what_takes_too_much_memory_is_stopped() -> None:
    limited = Limited(FitSettings(memory=500 << 20))
    with pytest.raises(FitStoppedError, match=r"more than 500 MB and was stopped \(option fit-memory\)"):
        limited(holds, 600 << 20)


def test_errors_come_back(limited: Limited) -> None:
    with pytest.raises(FitError, match=r"^no label$"):
        limited(refuses)
    with pytest.raises(FitError, match=r"^ZeroDivisionError: division by zero$"):
        limited(divides)
    with pytest.raises(FitStoppedError, match="its process was killed"):
        limited(dies)
    assert limited(sleeps, 0)


def test_the_consensus_is_the_same_from_another_process(team: Team, limited: Limited) -> None:
    import_corpus(team.database, team.settings.secret(), Corpus(quorate.sample().documents[:30]))
    rows = []
    for options in ({}, {"fits": limited}):
        follower = Follower(team.settings, team.database, **options)  # type: ignore[arg-type]
        follower.refit()
        rows.append(team.client(Role.MANAGER).get("/api/v1/consensus").json()["items"])
    assert [one["spans"] for one in rows[0]] == [one["spans"] for one in rows[1]]


def test_a_fit_that_is_stopped_is_told_and_the_last_consensus_stays(team: Team, limited: Limited) -> None:
    team.settings = replace(team.settings, fits=FitSettings(seconds=120.0))
    import_corpus(team.database, team.settings.secret(), Corpus(quorate.sample().documents[:30]))
    now, manager = [0.0], team.client(Role.MANAGER)
    stopped = Limited(FitSettings(seconds=0.001))
    fits: list[Limited] = [limited]
    begun: list[float] = []

    def fit(*given: Any) -> Any:
        begun.append(now[0])
        return fits[-1](*given)

    follower = Follower(team.settings, team.database, fits=fit, clock=lambda: now[0])
    follower.refit()
    before = manager.get("/api/v1/consensus").json()["items"]
    assert manager.get("/api/v1/health").json()["consensus"] == "ok"
    fits.append(stopped)
    now[0] += 1000.0
    import_corpus(team.database, team.settings.secret(), Corpus(quorate.sample().documents[30:60]))
    while follower.step():
        pass
    assert manager.get("/api/v1/health").json()["consensus"] == "failing"
    assert "more than 0.001 s and was stopped" in manager.get("/progress").text
    after = {one["document"]: one for one in manager.get("/api/v1/consensus").json()["items"]}
    assert all(after[one["document"]]["spans"] == one["spans"] for one in before)
    count = len(begun)
    now[0] += 100.0  # the next may take as long: at most half of the time is spent with fits
    follower.step()
    assert len(begun) == count
    fits.append(limited)
    now[0] += 30.0
    while follower.step():
        pass
    assert len(begun) == count + 1
    assert manager.get("/api/v1/health").json()["consensus"] == "ok"
    stopped.stop()


def test_updates_go_on_while_a_fit_runs(team: Team) -> None:
    """What comes aside is not waited for."""
    import_corpus(team.database, team.settings.secret(), Corpus(quorate.sample().documents[:10]))
    waiting: list[Future[Any]] = []

    def aside(work: Any) -> Future[Any]:
        waiting.append(Future())
        return waiting[-1]

    follower = Follower(team.settings, team.database, aside=aside)
    began = time.perf_counter()
    for _ in range(3):
        follower.step()
    assert waiting
    assert time.perf_counter() < began + 5
