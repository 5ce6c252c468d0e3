"""Tests of significance against enumerations of everything that could have happened."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from quorate import score
from quorate.errors import InputError, SettingsError


def exact_p(differences: np.ndarray) -> float:
    """Two-tailed p of the signed-rank statistic: the share of all sign patterns at least as extreme."""
    ranks = np.argsort(np.argsort(np.abs(differences))) + 1
    middle = ranks.sum() / 2
    observed = abs(ranks[np.asarray(differences) > 0].sum() - middle)
    sums = [
        sum(r for r, sign in zip(ranks, signs, strict=True) if sign) for signs in product([0, 1], repeat=len(ranks))
    ]
    return float(np.mean([abs(s - middle) >= observed - 1e-9 for s in sums]))


@pytest.mark.parametrize("seed", range(5))
def test_wilcoxon_against_all_sign_patterns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.random(9), rng.random(9) * 0.8
    found = score.wilcoxon(first, second)
    assert found.p_value == pytest.approx(exact_p(first - second), rel=1e-10)
    assert (found.n, found.ties) == (9, 0)
    assert found.mean_difference == pytest.approx(np.mean(first - second), abs=1e-11)


def test_wilcoxon_drops_ties_and_says_so() -> None:
    first, second = [0.9, 0.5, 0.7, 0.2, 1.0, 1.0], [0.8, 0.3, 0.4, 0.6, 1.0, 1.0]
    found, without = score.wilcoxon(first, second), score.wilcoxon(first[:4], second[:4])
    assert (found.statistic, found.p_value, found.n) == (without.statistic, without.p_value, 4)
    assert (found.ties, without.ties) == (2, 0)


def test_wilcoxon_takes_equal_scores_with_other_rounding_as_ties() -> None:
    assert score.wilcoxon([0.1 + 0.2], [0.3]) == score.Wilcoxon(0.0, 1.0, 0, 1, 0.0)


def test_wilcoxon_where_all_are_tied_is_defined() -> None:
    assert score.wilcoxon([1.0, 0.5], [1.0, 0.5]) == score.Wilcoxon(0.0, 1.0, 0, 2, 0.0)


def test_wilcoxon_is_the_same_both_ways() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 5, 200) / 4, rng.integers(0, 6, 200) / 5
    one, other = score.wilcoxon(first, second), score.wilcoxon(second, first)
    assert one.p_value == other.p_value
    assert one.mean_difference == pytest.approx(-other.mean_difference, abs=1e-12)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [([1.0], [1.0, 0.5], "1 scores against 2"), ([], [], "no document to compare"), ([np.nan], [1.0], "not a number")],
)
def test_wilcoxon_refuses_what_cannot_be_compared(first: list[float], second: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        score.wilcoxon(first, second)


PREDICTED = [["B-X", "B-X", "O"], ["O", "B-X", "O"], ["B-X", "O", "O"], ["B-X", "O", "B-X"]]
RIVAL = [["B-X", "O", "O"], ["O", "O", "O"], ["O", "B-X", "O"], ["B-X", "O", "B-X"]]
GOLD = [["B-X", "O", "B-X"], ["O", "B-X", "O"], ["O", "B-X", "O"], ["B-X", "O", "O"]]


def enumerated(measure: Callable[[tuple[int, ...]], float]) -> list[float]:
    """The value of every way to draw the four documents with replacement."""
    return [measure(drawn) for drawn in product(range(len(GOLD)), repeat=len(GOLD))]


def f1_of_drawn(predicted: list[list[str]], drawn: tuple[int, ...]) -> float:
    return score.strict([predicted[d] for d in drawn], [GOLD[d] for d in drawn]).f1


def interval_holds(interval: score.Interval, values: list[float], level: float) -> None:
    """Whether the interval's ends are quantiles of the enumerated values, a hundredth of the mass either way."""
    tail = (1 - level) / 2
    assert np.quantile(values, tail - 0.01, method="lower") <= interval.low <= np.quantile(values, tail + 0.01)
    assert (
        np.quantile(values, 1 - tail - 0.01) <= interval.high <= np.quantile(values, 1 - tail + 0.01, method="higher")
    )


def test_bootstrap_against_every_resample() -> None:
    interval = score.bootstrap_f1(score.strict_tallies(PREDICTED, GOLD), level=0.8, resamples=20_000)
    values = enumerated(lambda drawn: f1_of_drawn(PREDICTED, drawn))
    interval_holds(interval, values, 0.8)
    assert interval.estimate == score.strict(PREDICTED, GOLD).f1
    assert interval.low < interval.estimate < interval.high


def test_bootstrap_of_a_difference_draws_the_same_documents_for_both() -> None:
    first, second = (score.strict_tallies(tags, GOLD) for tags in (PREDICTED, RIVAL))
    interval = score.bootstrap_difference(first, second, level=0.8, resamples=20_000)
    values = enumerated(lambda drawn: f1_of_drawn(PREDICTED, drawn) - f1_of_drawn(RIVAL, drawn))
    interval_holds(interval, values, 0.8)
    assert score.bootstrap_difference(first, first) == score.Interval(0.0, 0.0, 0.0, 0.95)


def test_bootstrap_repeats_with_a_seed_and_differs_without() -> None:
    rng = np.random.default_rng(3)
    tallies = score.relaxed_tallies(PREDICTED * 30, GOLD * 30)
    first, second = score.bootstrap_f1(tallies, rng=rng), score.bootstrap_f1(tallies, rng=rng)
    assert first != second
    assert score.bootstrap_f1(tallies, rng=np.random.default_rng(3)) == first
    assert score.bootstrap_f1(tallies) == score.bootstrap_f1(tallies)


def test_bootstrap_of_relaxed_scores_uses_both_sums() -> None:
    tallies = score.relaxed_tallies([["B-X", "I-X", "I-X", "I-X"]] * 3, [["B-X", "O", "O", "O"]] * 3)
    assert score.bootstrap_f1(tallies).low == pytest.approx(2 * 0.25 * 1 / 1.25, rel=1e-12)


def test_bootstrap_refuses_what_makes_no_sense() -> None:
    tallies = score.strict_tallies(PREDICTED, GOLD)
    with pytest.raises(SettingsError, match="level must lie between 0 and 1, not 95"):
        score.bootstrap_f1(tallies, level=95)
    with pytest.raises(SettingsError, match="resamples must be 1 or more, not 0"):
        score.bootstrap_f1(tallies, resamples=0)
    with pytest.raises(InputError, match="not scored on the same documents"):
        score.bootstrap_difference(tallies, score.strict_tallies(PREDICTED[:3], GOLD[:3]))


def test_the_size_of_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tallies = score.strict_tallies(PREDICTED, GOLD)
    whole = score.bootstrap_f1(tallies, resamples=100)
    monkeypatch.setattr("quorate.evaluate.metrics.significance._BLOCK", 12)
    assert score.bootstrap_f1(tallies, resamples=100) == whole
