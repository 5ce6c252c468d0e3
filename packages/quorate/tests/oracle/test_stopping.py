"""Draws against enumeration, and the expected change against what more labels do bring."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from by_name import bsc
from problems import enumerate_paths
from quorate import Corpus, Document, aggregate, sample, score
from quorate.active.stopping import Change, change_of, draw, draw_path, evidence_of, forward_of
from quorate.active.suggest import next_labels
from quorate.active.view import View, views_of
from quorate.corpus.simulate import Behaviour, crowd
from quorate.model.parts.truth import Chain
from simulated_crowds import sentences


@pytest.mark.no_cover
def test_paths_are_drawn_as_often_as_they_are_probable() -> None:
    rng = np.random.default_rng(0)
    evidence = rng.normal(0, 1, (3, 2))
    start, trans = np.log([0.7, 0.3]), np.log([[0.8, 0.2], [0.4, 0.6]])
    chain = Chain(start, trans, np.zeros(2), True)
    forward = forward_of(evidence, chain)
    drawn = Counter(tuple(draw_path(forward, chain, rng)) for _ in range(20_000))
    for path, weight in enumerate_paths(evidence, start, trans).weights.items():
        assert drawn[path] / 20_000 == pytest.approx(weight, abs=4 * np.sqrt(weight * (1 - weight) / 20_000) + 1e-4)


@pytest.mark.parametrize("settings", [{"method": "bsc-seq"}, {"method": "auto", "spans": False}])
def test_evidence_gives_the_posterior_of_the_output_pass(sample: Corpus, settings: dict[str, Any]) -> None:
    part = Corpus(sample.documents[:20])
    model = bsc(**settings).fit(part)
    for d in range(3):
        length = min(len(part[d].tokens), 3)
        annotations = {name: tags[:length] for name, tags in part[d].annotations.items()}
        short = Corpus([Document("s", part[d].tokens[:length], annotations)])
        crowd = model.fitted_.crowd(short)
        tables, chain = model.fitted_.output_tables(crowd)
        expected = enumerate_paths(evidence_of(tables, crowd, 0), chain.start, chain.trans)
        found = model.combine(short).probabilities[0]
        np.testing.assert_allclose(found, expected.posterior, rtol=0, atol=1e-9)


def test_of_a_document_known_in_part_only_the_rest_is_unsure(sample: Corpus) -> None:
    """Against the sum over every sequence that agrees with what is known."""
    part = Corpus(sample.documents[:20])
    model = bsc("bsc-seq").fit(part)
    for d in range(3):
        one = part[d]
        short = Corpus([Document("s", one.tokens[:3], {k: v[:3] for k, v in one.annotations.items()})])
        known = {"s": (None, (one.gold or ())[1], None)}
        crowd = model.fitted_.crowd(short)
        tables, chain = model.fitted_.output_tables(crowd)
        evidence = evidence_of(tables, crowd, 0)
        evidence[1, np.arange(evidence.shape[1]) != model.tagset_.index[str(known["s"][1])]] = -1e3
        expected = enumerate_paths(evidence, chain.start, chain.trans)
        view = View(short, model, known)
        np.testing.assert_allclose(view.result.probabilities[0], expected.posterior, rtol=0, atol=1e-9)
        weights = np.array([weight for weight in expected.weights.values() if weight > 0])
        assert view.unsure.sequence[0] == pytest.approx(-(weights * np.log(weights)).sum(), abs=1e-6)
        assert view.unsure.sequence[0] < View(short, model, {}).unsure.sequence[0]
        assert view.result[0].known.tolist() == [False, True, False]


@pytest.mark.parametrize("method", ["bsc-cm", "auto"])
def test_tallies_are_those_of_what_is_expected(sample: Corpus, method: str) -> None:
    result = aggregate(sample, method)
    tallies = result.span_tallies()
    assert 2 * tallies.found.sum() / (tallies.given.sum() + tallies.true.sum()) == pytest.approx(result.expected.f1)


@pytest.mark.no_cover
@pytest.mark.parametrize("method", ["bsc-cm", "auto"])
def test_the_expected_change_is_near_the_one_that_comes(method: str) -> None:
    """Half of the labels are held back. Those that are asked for are given, and F1 against gold is looked at."""
    people = {f"a{n}": Behaviour(miss=0.25, confuse=0.1, start_late=0.1, invent=0.004) for n in range(6)}
    everything = crowd(sentences(300, seed=21), people, seed=3)
    held = Corpus(
        [
            Document(one.id, one.tokens, dict(sorted(one.annotations.items())[number % 3 :: 3]), one.gold)
            for number, one in enumerate(everything)
        ]
    )
    model = bsc(method).fit(held)
    advice = next_labels(held, model, n=150, diversity=0.0)
    gold = [one.gold for one in held]
    before = score.strict(model.result_.tags, gold).f1
    new = [
        Document(one.document, everything[one.document].tokens, {one.annotator: said})
        for one in advice.suggestions
        if one.annotator and (said := everything[one.document].annotations[one.annotator])
    ]
    after = score.strict(model.update(Corpus(new)).result_.tags, gold).f1
    assert advice.change.low < advice.change.mean < advice.change.high
    assert after - before > 0.03
    assert advice.change.mean == pytest.approx(after - before, rel=0.75)
    assert not advice.stop


def test_an_annotator_may_be_called_somebody_else(sample: Corpus) -> None:
    """As whoever has labelled nothing yet is called in tables."""
    first, second = sample.annotators[:2]
    names = {first: "somebody else", second: "ben"}
    documents = [
        Document(one.id, one.tokens, {names[name]: tags for name, tags in one.annotations.items() if name in names})
        for one in sample
    ]
    advice = next_labels(Corpus(documents), n=5, annotators=["somebody else"])
    assert [one.annotator for one in advice.suggestions] == ["somebody else"] * 5


def test_a_crowd_that_knows_it_all_is_told_to_stop() -> None:
    people = {f"a{n}": Behaviour(miss=0.0) for n in range(5)}
    corpus = crowd(sentences(80, seed=22), people, per_document=4, seed=4)
    advice = next_labels(corpus, bsc("bsc-cm").fit(corpus), n=10)
    assert advice.stop
    assert advice.suggestions


def test_the_verdict_does_not_rest_on_a_few_documents() -> None:
    model = bsc("bsc-cm").fit(sample())
    few, one, usual, many = (next_labels(sample(), model, n=n) for n in (5, 1, 20, 60))
    assert few.reason == one.reason == usual.reason
    assert usual.reason.endswith("points or less to the expected score (an estimate of the model, from 20 documents)")
    assert many.reason.endswith("from 60 documents)")
    assert few.suggestions == usual.suggestions[:5]
    assert (few.change.labels, one.change.labels, usual.change.labels) == (5, 1, 20)
    corpus, (view,) = views_of(sample(), model, None)
    pairs = [
        (corpus.position(one.document), view.crowd.annotators.index(str(one.annotator))) for one in few.suggestions
    ]
    entropy = np.where(view.decided, 0.0, view.unsure.reducible(view.reducible).sequence)
    drawn = draw(view.result, model.fitted_, view.crowd, pairs, model.engines(), seed=0)
    alone = change_of([drawn], [d for d, _ in pairs], entropy)
    assert few.change == pytest.approx(alone, rel=1e-9)
    assert few.change.mean != usual.change.mean


def test_the_gain_is_for_the_entropy_of_all_documents() -> None:
    assert Change(0.5, 0.01, 0.0, 0.02, 10, 0.1).all_round == pytest.approx(0.2)
    assert Change(0.95, 0.01, 0.0, 0.02, 10, 0.1).all_round == pytest.approx(0.05)
    assert Change(0.95, 0.0, 0.0, 0.0, 0, 0.0).all_round == 0.0
