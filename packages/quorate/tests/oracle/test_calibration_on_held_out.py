"""Calibration on held-out annotators finds what was put in, and its sums are those that can be done by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import truncnorm

import quorate
import simulated_crowds as crowds
from quorate.corpus.records import Corpus, Document
from quorate.crowd.algebra import Spans, only_documents
from quorate.crowd.encode import encode
from quorate.crowd.hold_out import folds
from quorate.model import calibrate
from quorate.model.calibrate import Confirmations, _best_power, _mean_power, _profile, fit_exponent, fit_span_exponent
from quorate.model.calibration import Calibration
from quorate.result.tallies import SpanTallies, expected_scores

NOBODY = np.zeros(0, np.int64)


def confirmations(confirmed: np.ndarray, habit: np.ndarray, stated: np.ndarray) -> Confirmations:
    return Confirmations(np.zeros(len(confirmed), np.int64), confirmed, habit, stated)


@pytest.mark.parametrize("power", [0.3, 0.6, 1.0])
def test_the_exponent_of_spans_is_found_from_confirmations(power: float) -> None:
    """Spans that are right as often as their odds, raised to a power, say."""
    rng = np.random.default_rng(0)
    odds = np.exp(rng.normal(2.0, 2.0, 20_000))
    truly = odds**power / (1 + odds**power)
    habit = rng.uniform(0.3, 0.7, len(odds))
    confirmed = rng.random(len(odds)) < truly * habit * np.exp(0.21)

    def at(tried: float) -> Confirmations:
        return confirmations(confirmed, habit, odds**tried / (1 + odds**tried))

    corpus = crowds.sparse(60, 30)
    held = [one for _, one in folds(encode(corpus, corpus.tagset()))]
    many = [one._replace(others=4.0) for one in held]
    assert fit_span_exponent(many, at) == pytest.approx(power, abs=0.05)


def test_the_exponent_of_tokens_is_found_from_held_out_labels() -> None:
    rng = np.random.default_rng(1)
    log_odds = rng.normal(0.0, 4.0, 20_000)
    true = (rng.random(len(log_odds)) < 1 / (1 + np.exp(-0.4 * log_odds))).astype(np.int64)
    told = np.where(rng.random(len(true)) < 0.85, true, 1 - true)

    def said(power: float) -> list[calibrate.Said]:
        p = 1 / (1 + np.exp(-power * log_odds))
        return [calibrate.Said(np.stack([1 - p, p], axis=1), np.arange(len(p)), told)]

    assert fit_exponent(said) == pytest.approx(0.4, abs=0.1)
    assert fit_exponent(lambda _: [calibrate.Said(np.zeros((0, 2)), NOBODY, NOBODY)]) == 1.0


@pytest.mark.parametrize("best", [0.15, 0.2, 0.33, 0.5, 0.8, 1.0])
def test_the_best_power_is_found_all_over_the_range(best: float) -> None:
    found = _best_power(lambda log_power: (log_power - np.log(best)) ** 2, 0.15, 8)
    assert found == pytest.approx(best, rel=1e-6)


def test_a_bump_does_not_hide_the_best_power() -> None:
    """As searches do that look at what lies near: here the loss is lower on both sides of 0.6 than in between."""

    def loss(log_power: float) -> float:
        return float((log_power - np.log(0.3)) ** 2 + 0.5 * np.exp(-(((log_power - np.log(0.6)) / 0.15) ** 2)))

    assert _best_power(loss, 0.15, 8) == pytest.approx(0.3, rel=0.1)


@pytest.mark.parametrize(("best", "spread"), [(0.4, 0.1), (0.4, 0.4), (0.9, 0.5), (0.2, 2.0)])
def test_the_mean_power_is_that_of_all_by_their_likelihood(best: float, spread: float) -> None:
    """The mean of a normal distribution of ln power, as far as powers are tried."""
    low, high = (np.log(end / best) / spread for end in (0.15, 1.0))
    expected = truncnorm.mean(low, high, loc=np.log(best), scale=spread)
    found = _mean_power(lambda log_power: ((log_power - np.log(best)) / spread) ** 2 / 2, 0.15, 8)
    assert np.log(found) == pytest.approx(expected, abs=0.03)


def test_where_two_powers_are_as_good_the_mean_lies_between() -> None:
    def loss(log_power: float) -> float:
        return 8 * float(min(abs(log_power - np.log(0.25)), abs(log_power - np.log(0.9))))

    assert 0.4 < _mean_power(loss, 0.15, 8) < 0.6


def test_a_true_span_that_was_missed_is_never_quite_impossible() -> None:
    """Whoever is expected to mark nearly all, and somewhat more than that, still misses one in fifty."""
    missed = confirmations(np.array([False]), np.array([0.95]), np.array([1.0]))
    assert missed.loss(0.2) == pytest.approx(-np.log(0.02))
    assert missed.loss(-0.2) == pytest.approx(-np.log(1 - 0.95 * np.exp(-0.2)))


@pytest.mark.parametrize("gain", [0.0, 0.1, 0.2, 0.3, 0.5])
def test_the_gain_of_habits_is_the_likeliest(gain: float) -> None:
    rng = np.random.default_rng(2)
    stated, habit = rng.beta(4, 1, 400), rng.uniform(0.3, 0.7, 400)
    confirmed = rng.random(400) < stated * habit * np.exp(gain)
    found = confirmations(confirmed, habit, stated)
    usual = 0.21

    def loss(log_gain: float) -> float:
        return float(((log_gain - usual) / 0.05) ** 2 / 2 + found.loss(log_gain).sum())

    best = minimize_scalar(loss, bounds=(usual - 0.15, usual + 0.15), method="bounded", options={"xatol": 1e-6})
    value = _profile(found, usual)
    assert value == pytest.approx(best.fun, abs=0.01)


def test_confirmations_are_those_of_every_fold_one_after_another() -> None:
    corpus = crowds.sparse(60, 30)
    crowd = encode(corpus, corpus.tagset())
    types, rows, held, found = crowd.tagset.types, list[tuple[bool, float, float]](), [], []
    for number, (rest, one) in enumerate(folds(crowd)):
        sample = only_documents(rest, one.documents)
        gold = sorted(
            (int(first) + span.start, int(first) + span.end, types.index(span.label))
            for first, d in zip(sample.doc_start, one.documents.tolist(), strict=False)
            for span in crowd.tagset.spans(corpus[d].gold or ())
        )
        stated = np.linspace(0.1, 0.9, len(gold)) / (1 + number)
        start, end, kind = (np.array(column) for column in zip(*gold, strict=True))
        spans = Spans(start, end, kind, np.full(len(gold), -1))
        beside, _, matched, expected = one.confirmed(spans)
        place = {start: p for (start, _, _), p in zip(gold, stated, strict=True)}
        rows += [(bool(m), float(e), place[int(a)]) for m, e, a in zip(matched, expected, beside.start, strict=True)]
        held.append(one)
        shuffled = np.random.default_rng(0).permutation(len(gold))
        found.append((spans.where(shuffled), stated[shuffled]))
    whole = Confirmations.of(held, found)
    mine = zip(whole.matched.tolist(), whole.expected.tolist(), whole.stated.tolist(), strict=True)
    np.testing.assert_allclose(sorted(mine), sorted(rows), rtol=1e-12)
    assert len(rows) > 50


def test_what_is_expected_by_hand() -> None:
    """Three documents, of which the second is empty."""
    found = expected_scores(
        SpanTallies(np.array([2.0, 0.0, 1.0]), np.array([1.7, 0.0, 0.7]), np.array([2.0, 0.5, 0.6]))
    )
    assert found.precision == pytest.approx(2.4 / 3)
    assert found.recall == pytest.approx(2.4 / 3.1)
    assert found.f1 == pytest.approx(2 * 2.4 / (3 + 3.1))


@pytest.mark.parametrize("at_once", [1, 7, 1 << 15])
def test_likelihood_of_what_was_said_is_that_of_loops(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "_AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    J, said = 3, []
    for n in (20, 0, 11):
        posterior = rng.dirichlet(np.ones(J), 15)
        said.append(calibrate.Said(posterior, np.sort(rng.integers(0, 15, n)), rng.integers(0, J, n)))
    rows = [(one.posterior[t], i) for one in said for t, i in zip(one.token, one.label, strict=True)]
    share = np.zeros((J, J))
    for p, i in rows:
        share[:, i] += p
    for _ in range(calibrate._EM_PASSES):
        matrix = (share + 0.1) / (share + 0.1).sum(axis=1, keepdims=True)
        share, totals = np.zeros((J, J)), []
        for p, i in rows:
            totals.append(p @ matrix[:, i])
            share[:, i] += p * matrix[:, i] / totals[-1]
    assert calibrate.log_likelihood(said) == pytest.approx(np.log(totals).mean(), rel=1e-12)


def test_confidence_stays_as_stated_where_nobody_is_sure_of_a_label() -> None:
    found, none = {"B-X": 0.45, "B-Y": 0.2, "O": 0.35}, {"O": 0.4, "B-X": 0.3, "B-Y": 0.3}
    corpus = Corpus(
        [Document(str(n), ("a", "b", "c"), {f"w{k}": (found, none, none) for k in range(4)}) for n in range(60)]
    )
    assert quorate.BSC().fit(corpus).calibration_.tokens == 1.0


def test_where_nobody_can_be_held_out_confidence_is_as_stated() -> None:
    corpus = Corpus(replace(one, annotations={"ann": one.gold or ()}) for one in crowds.sentences(30))
    assert quorate.BSC().fit(corpus).calibration_ == Calibration()
    assert quorate.BSC(calibrate=False).fit(crowds.sparse(30, 10)).calibration_ == Calibration()
