"""What the span model knows of annotators: its posteriors, room for more, files, and the crowd's means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import digamma

from quorate.model.kernels.spans import N_RESPONSES
from quorate.model.parts.dirichlet import log_mean
from quorate.model.parts.responses import _POOLED, NOT_MARKED_MARKED, RESPONSES, Responses

Floats = NDArray[np.float64]
Arrays = dict[str, Floats]
K = 4


def learned(seed: int = 0, scale: float = 5.0) -> Responses:
    rng = np.random.default_rng(seed)
    part = Responses.of(K)
    for _ in range(3):
        part = part.updated(rng.gamma(0.5, scale, (K, N_RESPONSES)), rng.gamma(0.5, scale, (K, 2)))
    return part


def test_columns_are_the_responses_of_the_kernels() -> None:
    part = Responses.of(K)
    assert part.true.shape == (K, len(RESPONSES)) == (K, N_RESPONSES)
    assert part.free.shape == (K, NOT_MARKED_MARKED)
    np.testing.assert_allclose(part.crowd_true.sum(), 1.0)
    np.testing.assert_allclose(part.crowd_free.sum(), 1.0)


def test_a_pass_looks_at_expected_logarithms_and_the_output_at_means() -> None:
    part = learned()
    for mine, given in zip(part.log_lik(), (part.true, part.free), strict=True):
        np.testing.assert_allclose(mine, digamma(given) - digamma(given.sum(axis=1, keepdims=True)), rtol=1e-9)
    for mine, given in zip(part.log_lik(log_mean), (part.true, part.free), strict=True):
        np.testing.assert_allclose(np.exp(mine), given / given.sum(axis=1, keepdims=True))


def test_an_annotator_has_the_crowd_and_what_was_counted() -> None:
    rng = np.random.default_rng(1)
    before, responses, marks = learned(), rng.gamma(1.0, 3.0, (K, N_RESPONSES)), rng.gamma(1.0, 3.0, (K, 2))
    after = before.updated(responses, marks)
    np.testing.assert_allclose(after.true, _POOLED * before.crowd_true + responses)
    np.testing.assert_allclose(after.free, _POOLED * before.crowd_free + marks)
    np.testing.assert_allclose([after.crowd_true.sum(), after.crowd_free.sum()], 1.0)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0, 3000.0])
@pytest.mark.parametrize("seed", range(5))
def test_an_update_never_lowers_the_bound(seed: int, scale: float) -> None:
    """Counts·E ln θ − KL: the posteriors are the best for the old means, the new means no worse for the posteriors."""
    rng = np.random.default_rng(seed)
    part = learned(seed, scale)
    for _ in range(10):
        habit = rng.dirichlet(np.ones(N_RESPONSES)), rng.dirichlet(np.ones(2))
        counts = [scale * rng.gamma(1.0, 1.0, (K, 1)) * rng.dirichlet(3 * row + 0.01, K) for row in habit]

        def bound(one: Responses, counts: list[Floats] = counts) -> float:
            said = sum(float((n * row).sum()) for n, row in zip(counts, one.log_lik(), strict=True))
            return said - one.kl()

        new = part.updated(*counts)
        old_means = replace(new, crowd_true=part.crowd_true, crowd_free=part.crowd_free)
        rounding = 1e-9 * (abs(bound(new)) + abs(new.kl()))
        assert bound(old_means) >= bound(part) - rounding
        assert bound(new) >= bound(old_means) - rounding
        for _ in range(5):  # no other posterior is better under the same means
            jolt = rng.lognormal(0.0, 0.1, new.true.shape), rng.lognormal(0.0, 0.1, new.free.shape)
            jolted = replace(old_means, true=new.true * jolt[0], free=new.free * jolt[1])
            assert bound(jolted) <= bound(old_means) + rounding
        part = new


def test_the_crowd_goes_where_all_of_its_annotators_are() -> None:
    habit = np.array([0.2, 0.5, 0.05, 0.05, 0.1, 0.1])
    part = Responses.of(20)
    for _ in range(30):
        part = part.updated(np.tile(400 * habit, (20, 1)), np.tile([300.0, 100.0], (20, 1)))
    np.testing.assert_allclose(part.crowd_true, habit, atol=0.02)
    np.testing.assert_allclose(part.crowd_free, [0.75, 0.25], atol=0.02)


def test_who_is_new_is_like_the_crowd_and_the_others_stay() -> None:
    part = learned()
    more = part.grown(K + 3)
    np.testing.assert_array_equal(more.true[:K], part.true)
    np.testing.assert_array_equal(more.free[:K], part.free)
    np.testing.assert_array_equal(more.true[K:], np.tile(_POOLED * part.crowd_true, (3, 1)))
    np.testing.assert_array_equal(more.free[K:], np.tile(_POOLED * part.crowd_free, (3, 1)))
    np.testing.assert_allclose(more.kl(), part.kl())  # of whom nothing is known, nothing was learned
    for mine, theirs in zip(part.grown(K).arrays().values(), part.arrays().values(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_arrays_come_back_as_they_were() -> None:
    part = learned()
    again = Responses.of(K).restored(part.arrays())
    assert again.arrays().keys() == part.arrays().keys()
    for name, array in part.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], array)
    for mine, theirs in zip(again.log_lik(), part.log_lik(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert again.kl() == part.kl()


@pytest.mark.parametrize("name", ["span_crowd_true", "span_crowd_free", "span_true", "span_free"])
@pytest.mark.parametrize(
    ("damaged", "says"),
    [
        (lambda array: None, "is missing"),
        (lambda array: array[:-1], "is expected"),
        (lambda array: array.astype(np.float32), "is expected"),
        (lambda array: array - 1e6, "holds what is not a count"),
        (lambda array: np.where(array == array.max(), np.nan, array), "holds what is not a count"),
        (lambda array: np.where(array == array.max(), np.inf, array), "holds what is not a count"),
        (lambda array: np.where(array == array.max(), 0.0, array), "a probability of 0"),
    ],
)
def test_damaged_arrays_are_refused(name: str, damaged: Callable[[Floats], Floats | None], says: str) -> None:
    arrays: Arrays = learned().arrays()
    array = damaged(arrays.pop(name))
    if array is not None:
        arrays[name] = array
    with pytest.raises(ValueError, match=says):
        Responses.of(K).restored(arrays)


@pytest.mark.parametrize("name", ["span_crowd_true", "span_crowd_free"])
@pytest.mark.parametrize("factor", [0.5, 1 - 1e-4, 1 + 1e-4, 30.0])
def test_means_that_do_not_add_up_to_one_are_refused(name: str, factor: float) -> None:
    arrays: Arrays = learned().arrays()
    with pytest.raises(ValueError, match=f"array '{name}' does not add up to 1"):
        Responses.of(K).restored(arrays | {name: factor * arrays[name]})
