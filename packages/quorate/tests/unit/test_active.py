"""The simulated experiment: what is asked for, what is scored, and going on after an interrupt."""

from __future__ import annotations

import json
import multiprocessing
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quorate
from by_name import bsc
from quorate import Corpus, Document, next_labels, score
from quorate.active.assignment import rankings
from quorate.active.simulation import Plan, Run, simulate_active
from quorate.corpus.profiles import Profile
from quorate.corpus.simulate import Behaviour, crowd
from quorate.errors import FitError, InputError, SettingsError
from simulated_crowds import rules, sentences

PEOPLE = {f"a{n}": Behaviour(miss=0.1 + 0.08 * n, confuse=0.1, invent=0.005) for n in range(5)}
PLAN = Plan(initial=60, batch=40, max_labels=180)


def run_of(corpus: Corpus, method: str, strategy: str, plan: Plan) -> Run:
    return simulate_active(corpus, [method], [strategy], repeats=1, plan=plan, jobs=1).runs[0]


def everything(corpus: Corpus, passes: int = 5) -> Plan:
    whole = sum(len(one.annotations) for one in corpus)
    return Plan(initial=whole, batch=10, max_labels=whole, passes=passes)


@pytest.fixture(scope="module")
def small() -> Corpus:
    return crowd(sentences(70, seed=31), PEOPLE, per_document=4, seed=5)


@pytest.mark.parametrize(
    ("method", "settings"),
    [("mv", {}), ("ds", {"max_iter": 7}), ("bsc-seq", {"max_iter": 7}), ("auto", {"max_iter": 7})],
)
def test_with_every_label_a_run_is_the_plain_fit_and_its_scores_are_those_of_the_score_module(
    small: Corpus, method: str, settings: dict[str, Any]
) -> None:
    run = run_of(small, method, "random", everything(small, passes=7))
    result, gold = quorate.aggregate(small, method, **settings), [one.gold for one in small]
    assert run.f1 == [pytest.approx(score.strict(result.tags, gold).f1)]
    assert run.cee == [pytest.approx(score.cross_entropy(result.probabilities, gold, result.labels).mean)]


def test_only_the_documents_of_the_split_are_scored(small: Corpus) -> None:
    halves = Corpus([replace(one, split="dev" if n % 2 else "test") for n, one in enumerate(small)])
    plan, gold = everything(small), [one.gold for one in small][1::2]
    run = simulate_active(halves, ["mv"], ["random"], repeats=1, plan=plan, split="dev", jobs=1).runs[0]
    assert run.f1 == [pytest.approx(score.strict(quorate.aggregate(small, "mv").tags[1::2], gold).f1)]


@pytest.mark.parametrize("method", ["mv", "ds", "ibcc", "hmm-crowd", "bsc-cv", "bsc-seq", "auto"])
def test_all_methods_begin_with_the_same_labels_and_get_better(small: Corpus, method: str) -> None:
    run = run_of(small, method, "least-confidence", PLAN)
    assert run.labels == [60, 100, 140, 180]
    assert run.f1[-1] > run.f1[0]


@pytest.mark.parametrize("strategy", ["random", "token-entropy", "sequence-entropy", "information"])
@pytest.mark.parametrize("method", ["mv", "auto"])
def test_every_strategy_asks_for_new_labels(small: Corpus, method: str, strategy: str) -> None:
    assert run_of(small, method, strategy, PLAN).labels == [60, 100, 140, 180]


def test_a_document_without_labels_left_is_not_asked_for_again(small: Corpus) -> None:
    whole = sum(len(one.annotations) for one in small)
    run = run_of(small, "mv", "random", Plan(initial=whole - 50, batch=40, max_labels=10_000))
    assert run.labels == [whole - 50, whole - 10, whole]


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


def test_more_labels_do_not_make_it_worse(vague: Corpus) -> None:
    run = run_of(vague, "auto", "random", Plan(initial=900, batch=900, max_labels=3600))
    noise = 0.015  # of an F1 over about 1,000 spans
    assert (np.diff(run.f1) > -noise).all()
    assert run.f1[-1] > run.f1[0] + 0.2


def test_information_beats_random_choice(vague: Corpus) -> None:
    plan = Plan(initial=600, batch=300, max_labels=1800)
    found = simulate_active(vague, ["bsc-cm"], ["random", "information"], repeats=2, plan=plan, jobs=1)
    random, information = (curve.f1[-1] for curve in found.curves)
    assert information > random


def test_documents_that_nobody_labelled_are_no_surer_than_the_token_model_has_them(vague: Corpus) -> None:
    unread = [Document(f"u{n}", one.tokens, {}, one.gold) for n, one in enumerate(sentences(100, seed=9))]
    few = Corpus([*vague.documents[:150], *unread])
    gold = [one.gold for one in unread]
    entropies = []
    for spans in (False, True):
        model = quorate.BSC("cm", temper=0.9, spans=spans).fit(few)
        probabilities = model.result_.probabilities[150:]
        entropies.append(score.cross_entropy(probabilities, gold, model.result_.labels).mean)
    assert entropies[1] < 1.15 * entropies[0]


def test_labels_that_a_duplicate_gave_are_not_asked_for_again(small: Corpus) -> None:
    """Two accounts of one annotator: each document that one of them has labelled is closed to the other."""
    documents = [
        replace(
            one,
            annotations={
                **{name: tags for name, tags in one.annotations.items() if name != "a0"},
                **({} if "a0" not in one.annotations else {"a0": one.annotations["a0"]}),
                **({} if "a0" not in one.annotations or n % 3 == 0 else {"twin": one.annotations["a0"]}),
            },
        )
        for n, one in enumerate(crowd(sentences(200, seed=32), PEOPLE, per_document=4, seed=5))
    ]
    corpus = Corpus(documents)
    model = quorate.BSC().fit(corpus)
    assert [group for note in model.fitted_.notes for group in getattr(note, "groups", ())] == [(0, 5)]
    closed = {one.id for one in corpus if "a0" in one.annotations and "twin" not in one.annotations}
    assert closed
    advice = next_labels(corpus, model, n=200, annotators=["twin"])
    assert advice.suggestions
    assert closed.isdisjoint(one.document for one in advice.suggestions)
    twin = dict(rankings(corpus, model, ["twin"])["twin"].documents)
    assert {twin[document] for document in closed} == {0.0}
    assert max(twin.values()) > 0


def test_annotators_that_a_fit_adds_are_not_asked() -> None:
    corpus = rules(200)
    corpus = Corpus(
        [replace(one, annotations=dict(list(one.annotations.items())[n % 9 :])) for n, one in enumerate(corpus)],
        profiles={name: Profile.of(kind="rule", abstains=True) for name in corpus.annotators},
    )
    model = bsc("auto").fit(corpus)
    assert model.fitted_.helpers
    advice = next_labels(corpus, model, n=100)
    assert {one.annotator for one in advice.suggestions} <= set(corpus.annotators)
    for name in model.fitted_.helpers:
        with pytest.raises(SettingsError, match="nobody is called"):
            next_labels(corpus, model, annotators=[name])
