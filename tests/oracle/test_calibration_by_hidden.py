"""Calibration by hidden annotators finds what was put in, and estimates are sums that can be done by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit
from scipy.stats import truncnorm

import simulated_crowds as crowds
import quorate
from quorate.choose import calibrate
from quorate.choose.calibrate import Confirmations, _best_power, _mean_power, _profile, fit_span_map
from quorate.choose.evidence import confirmed_on
from quorate.choose.hidden import Agreement
from quorate.choose.trials import Run, benches_over, hidden_in, span_benches_of
from quorate.corpus.records import Corpus, Document
from quorate.corpus.tags import Invalid
from quorate.crowd.algebra import Spans
from quorate.crowd.sharing import Sharing
from quorate.model.engines.factory import Engines
from quorate.model.prepared import prepare
from quorate.model.settings import Evidence, Settings
from quorate.model.calibration import AS_STATED, Calibration
from quorate.result.tallies import SpanTallies, expected_scores


def test_the_span_map_is_found_from_confirmations() -> None:
    rng = np.random.default_rng(0)
    stated = rng.beta(4, 1, 30_000)
    truly = expit(-0.8 + 0.6 * logit(stated))
    habit = rng.uniform(0.3, 0.8, len(stated))
    confirmed = rng.random(len(stated)) < truly * habit * np.exp(0.24)
    nothing = np.zeros(0, np.int64)
    agreement = Agreement(np.zeros((6, 1)), Spans(nothing, nothing, nothing, nothing), confirmed, habit)
    shift, slope, ceiling = fit_span_map(agreement, stated)
    assert (shift, slope) == pytest.approx((-0.8, 0.6), abs=0.12)
    assert ceiling == 0.97
    found = Calibration(1.0, shift, slope, ceiling).spans(stated)
    assert np.abs(found - 0.97 * truly).mean() < 0.03


def test_where_few_others_look_habits_gain_less() -> None:
    rng = np.random.default_rng(1)
    stated = rng.beta(4, 1, 30_000)
    habit = rng.uniform(0.3, 0.8, len(stated))
    confirmed = rng.random(len(stated)) < stated * habit * np.exp(0.12)
    nothing = np.zeros(0, np.int64)
    agreement = Agreement(np.zeros((6, 1)), Spans(nothing, nothing, nothing, nothing), confirmed, habit)
    shift, slope, _ = fit_span_map(agreement, stated, others=2.0)
    assert (shift, slope) == pytest.approx((0.0, 1.0), abs=0.12)


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
    missed = Confirmations(np.array([False]), np.array([0.95]), np.array([1.0]))
    assert missed.loss(0.2) == pytest.approx(-np.log(0.02))
    assert missed.loss(-0.2) == pytest.approx(-np.log(1 - 0.95 * np.exp(-0.2)))


@pytest.mark.parametrize("gain", [0.0, 0.1, 0.2, 0.3, 0.5])
def test_the_gain_of_habits_is_the_likeliest(gain: float) -> None:
    rng = np.random.default_rng(2)
    stated, habit = rng.beta(4, 1, 400), rng.uniform(0.3, 0.7, 400)
    confirmed = rng.random(400) < stated * habit * np.exp(gain)
    found = Confirmations(confirmed, habit, stated)
    usual = 0.21

    def loss(log_gain: float) -> float:
        return float(((log_gain - usual) / 0.05) ** 2 / 2 + found.loss(log_gain).sum())

    best = minimize_scalar(loss, bounds=(usual - 0.15, usual + 0.15), method="bounded", options={"xatol": 1e-6})
    at, value = _profile(found, usual)
    assert at == pytest.approx(best.x, abs=2e-4)
    assert value == pytest.approx(best.fun, abs=0.01)


@pytest.mark.parametrize("power", [0.3, 1.0])
def test_what_is_confirmed_at_a_power_is_what_a_consensus_at_it_states(power: float) -> None:
    corpus = crowds.sparse(120, 40)
    prepared = prepare(corpus, None, Invalid.REPAIR)
    settings = Settings.of(annotator="cm", evidence="spans")
    hidden, engines, nobody = hidden_in(prepared, Sharing.of(), settings), Engines(), Sharing.of()
    with benches_over(hidden, prepared, settings, engines, nobody, np.ones(len(corpus.annotators))) as benches:
        run = Run(settings, benches)
        run.go_on(3)
        spans = span_benches_of(benches, run.models, Evidence.SPANS, 0.8, engines, nobody)
    whole = Confirmations.of(hidden, [one.decoded(settings, power) for one in spans])
    found = confirmed_on(spans, settings)(power)
    for name in Confirmations._fields:
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-12)
    assert len(whole.stated) > 50


def test_as_stated_changes_nothing() -> None:
    values = np.array([0.0, 0.3, 1.0])
    assert AS_STATED.spans(values) is values


def tallies_by_hand() -> SpanTallies:
    """Three documents, of which the second is empty."""
    document = np.array([0, 0, 2])
    stated = np.array([0.9, 0.8, 0.7])
    sharp, blunt = np.array([2.0, 0.5, 0.6]), np.array([2.4, 0.7, 0.8])
    counts, likely, sure = (
        np.bincount(document, one, minlength=3).astype(np.float64)
        for one in (np.ones(3), Calibration(0.5, -1.0, 1.0).spans(stated), stated)
    )
    return SpanTallies(counts, likely, sure, sharp, blunt)


def test_what_is_expected_by_hand() -> None:
    found = expected_scores(tallies_by_hand())
    right, true = expit(logit(np.array([0.9, 0.8, 0.7])) - 1.0).sum(), (3.1 + 3.9) / 2
    assert found.precision == pytest.approx(right / 3)
    assert found.recall == pytest.approx(right / true)
    assert found.f1 == pytest.approx(2 * right / (3 + true))


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
    choice = quorate.aggregate(corpus).choice
    assert choice is not None
    assert choice.trials
    assert choice.calibration.sharpness == 1.0
