"""The simulated experiment: what is asked for, what is scored, and going on after an interrupt."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quorate
from by_name import bsc
from simulated_crowds import sentences
from quorate import Corpus, Document, score
from quorate.active import simulation
from quorate.active.simulation import Plan, _Labels, _Pool, simulate_active
from quorate.choose.choice import Choice, choose
from quorate.corpus.simulate import Behaviour, crowd
from quorate.corpus.tags import Invalid
from quorate.crowd.algebra import number_pairs
from quorate.errors import FitError, InputError, SettingsError
from quorate.model.prepared import Prepared, prepare

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


@pytest.fixture(scope="module")
def vague() -> Corpus:
    """Forty people who find most names, and put every third boundary a token off."""
    rng = np.random.default_rng(8)
    people = {
        f"w{n:02}": Behaviour(
            miss=float(rng.beta(2, 4)), confuse=0.1, start_early=0.2, start_late=0.1, end_early=0.1, end_late=0.2
        )
        for n in range(40)
    }
    return crowd(sentences(900, seed=8), people, per_document=5, seed=8)


def test_more_labels_do_not_make_it_worse_and_settings_are_chosen_again(
    vague: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen_by = []

    def counted(prepared: Prepared, *settings: Any, **more: Any) -> Choice:
        found = choose(prepared, *settings, **more)
        if found.vote is not None:
            chosen_by.append(len(number_pairs(prepared.encoded)[0]))
        return found

    monkeypatch.setattr(simulation, "choose", counted)
    run = _Pool(vague, None).run("auto", "random", 0, Plan(initial=900, batch=900, max_labels=3600))
    assert len(chosen_by) > 1
    assert all(later >= 2 * earlier for earlier, later in itertools.pairwise(chosen_by))
    noise = 0.015  # of an F1 over about 1,000 spans
    assert (np.diff(run.f1) > -noise).all()
    assert run.f1[-1] > run.f1[0] + 0.2


def test_the_consensus_of_a_run_is_that_of_the_estimator(vague: Corpus) -> None:
    whole = sum(len(one.annotations) for one in vague)
    run = _Pool(vague, None).run("auto", "random", 0, Plan(initial=whole, batch=10, max_labels=whole))
    model = quorate.BSC(tagger=None).fit(vague)  # runs have none
    assert model.settings_["evidence"] == "spans"
    assert run.f1 == [pytest.approx(score.strict(model.result_.tags, [one.gold for one in vague]).f1, abs=0.002)]


def test_documents_that_nobody_labelled_are_no_surer_than_the_token_model_has_them(vague: Corpus) -> None:
    unread = [Document(f"u{n}", one.tokens, {}, one.gold) for n, one in enumerate(sentences(100, seed=9))]
    few = Corpus([*vague.documents[:150], *unread])
    gold = [one.gold for one in unread]
    entropies = []
    for evidence in ("tokens", "spans"):
        model = quorate.BSC("cm", epsilon0=10.0, temper=0.9, max_iter=5, evidence=evidence).fit(few)
        probabilities = model.result_.probabilities[150:]
        entropies.append(score.cross_entropy(probabilities, gold, model.result_.labels).mean)
    assert entropies[1] < 1.15 * entropies[0]
