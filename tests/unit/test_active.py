"""The simulated experiment: what is asked for, what is scored, and going on after an interrupt."""

from __future__ import annotations

import json
import multiprocessing
import threading
from pathlib import Path

import numpy as np
import pytest

import quorate
from by_name import bsc
from crowds import sentences
from quorate import Corpus, Document, score
from quorate.active.simulation import Plan, _Labels, _Pool, simulate_active
from quorate.corpus.simulate import Behaviour, crowd
from quorate.corpus.tags import Invalid
from quorate.errors import FitError, InputError, SettingsError
from quorate.models.prepared import prepare

PLAN = Plan(initial=60, batch=40, max_labels=180)


@pytest.fixture(scope="module")
def small() -> Corpus:
    people = {f"a{n}": Behaviour(miss=0.1 + 0.08 * n, confuse=0.1, invent=0.005) for n in range(5)}
    return crowd(sentences(70, seed=31), people, per_document=4, seed=5)


def test_scores_are_those_of_the_score_module(small: Corpus) -> None:
    result = bsc("bsc-seq").fit(small).result_
    labels = _Labels(prepare(small, None, Invalid.REPAIR), list(range(len(small))))
    f1, cee = labels.score(result._decoded)
    gold = [one.gold for one in small]
    assert f1 == pytest.approx(score.strict(result.tags, gold).f1)
    assert cee == pytest.approx(score.cross_entropy(result.probabilities, gold, result.labels).mean)


@pytest.mark.parametrize("method", ["mv", "ds", "ibcc", "hmm-crowd", "bsc-cv", "bsc-seq", "auto"])
def test_all_methods_begin_with_the_same_labels_and_get_better(small: Corpus, method: str) -> None:
    run = _Pool(small, None).run(method, "least-confidence", 0, PLAN)
    assert run.labels == [60, 100, 140, 180]
    assert run.f1[-1] > run.f1[0]


def test_with_every_label_a_run_is_the_plain_fit(small: Corpus) -> None:
    whole = sum(len(one.annotations) for one in small)
    plan = Plan(initial=whole, batch=10, max_labels=whole, passes=7)
    run = _Pool(small, None).run("bsc-cm", "random", 0, plan)
    result = quorate.aggregate(small, "bsc-cm", max_iter=7, tol=0.0)
    assert run.f1 == [pytest.approx(score.strict(result.tags, [one.gold for one in small]).f1)]


def test_a_document_without_labels_left_is_not_asked_for_again(small: Corpus) -> None:
    whole = sum(len(one.annotations) for one in small)
    run = _Pool(small, None).run("mv", "random", 0, Plan(initial=whole - 50, batch=40, max_labels=10_000))
    assert run.labels[-1] == whole
    assert run.labels == sorted(run.labels)


def test_labels_asked_for_are_of_different_documents_and_new(small: Corpus) -> None:
    pool = _Pool(small, None)
    labels = _Labels(prepare(small, None, Invalid.REPAIR), list(range(len(small))))
    assert len(labels.doc) == sum(len(one.annotations) for one in small)
    had = np.zeros(len(labels.doc), dtype=np.bool_)
    had[::3] = True
    part = labels.those(had)
    assert len(part.encoded.event_cell) == sum(
        len(small[int(d)].tokens) for d, here in zip(labels.doc, had, strict=True) if here
    )
    assert pool.run("bsc-cm", "information", 0, PLAN).labels == [60, 100, 140, 180]


def test_parallel_runs_are_the_same_and_an_interrupted_simulation_goes_on(small: Corpus, tmp_path: Path) -> None:
    store = tmp_path / "runs.jsonl"
    found = simulate_active(small, ["mv", "bsc-cm"], ["random"], repeats=2, plan=PLAN, results=store, jobs=2)
    lines = store.read_text().splitlines()
    assert len(lines) == 5
    store.write_text("\n".join(lines[:3]) + "\n" + lines[3][:20])  # cut off in the middle of a line
    told: list[tuple[int, int, str]] = []
    again = simulate_active(
        small,
        ["mv", "bsc-cm"],
        ["random"],
        repeats=2,
        plan=PLAN,
        results=store,
        jobs=1,
        progress=lambda *step: told.append(step),
    )
    assert [step[0] for step in told] == [2, 3, 4]
    for one, other in zip(found.runs, again.runs, strict=True):
        assert one[:6] == other[:6]
    assert [(curve.method, curve.repeats) for curve in again.curves] == [("mv", 2), ("bsc-cm", 2)]
    assert len(store.read_text().splitlines()) == 5
    with pytest.raises(InputError, match="runs of other data or settings"):
        simulate_active(small, ["mv"], ["random"], plan=Plan(initial=10), results=store)
    store.write_text(json.dumps({"a": 1}) + "\nnot json\n")
    with pytest.raises(InputError, match="is not a file of runs"):
        simulate_active(small, ["mv"], ["random"], plan=PLAN, results=store)


def test_the_processes_of_a_simulation_are_waited_for(small: Corpus) -> None:
    before = threading.active_count()
    simulate_active(small, ["mv"], ["random"], repeats=2, plan=PLAN, jobs=2)
    assert multiprocessing.active_children() == []
    assert threading.active_count() == before


def test_an_error_ends_the_processes_of_a_simulation(small: Corpus) -> None:
    def fail(done: int, total: int, note: str) -> None:
        if done:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        simulate_active(small, ["mv"], ["random"], repeats=50, plan=PLAN, jobs=2, progress=fail)
    assert multiprocessing.active_children() == []


def test_a_process_that_is_lost_is_said_in_one_line(small: Corpus) -> None:
    def kill(done: int, total: int, note: str) -> None:
        for process in multiprocessing.active_children():
            process.kill()

    with pytest.raises(FitError, match=r"a process of the simulation ended before its time \(if memory is short"):
        simulate_active(small, ["mv"], ["random"], repeats=50, plan=PLAN, jobs=2, progress=kill)


def test_a_figure_is_drawn(small: Corpus, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra plot is not installed")
    from quorate.active.curves import curves_figure
    from quorate.result.figures import save

    found = simulate_active(small, ["mv"], ["random"], repeats=2, plan=PLAN, jobs=1)
    for name in ("curves.png", "curves.svg"):
        save(curves_figure(found), tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5_000


def test_mistakes_say_what_to_do(small: Corpus) -> None:
    with pytest.raises(SettingsError, match="unknown method 'nope'"):
        simulate_active(small, ["nope"])
    with pytest.raises(SettingsError, match="'best-worker' cannot be simulated"):
        simulate_active(small, ["best-worker"])
    with pytest.raises(SettingsError, match="strategy 'best' is not known"):
        simulate_active(small, ["mv"], ["best"])
    with pytest.raises(SettingsError, match="batch must be 1 or more"):
        Plan(batch=0)
    with pytest.raises(SettingsError, match="repeats must be 1 or more"):
        simulate_active(small, ["mv"], repeats=0)
    bare = Corpus([Document(one.id, one.tokens, one.annotations) for one in small])
    with pytest.raises(InputError, match="no document to be scored has gold"):
        simulate_active(bare, ["mv"])
