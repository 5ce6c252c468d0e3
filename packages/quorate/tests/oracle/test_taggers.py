"""The CRF against enumeration of every path, and its gradients against finite differences."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from quorate.corpus.tags import Scheme, TagSet
from quorate.model.parts.truth import log_mask
from quorate.taggers import kernels

TAGSETS = [
    TagSet.of_types(Scheme.BIO, ["A"]),
    TagSet.of_types(Scheme.BIOES, ["A"]),
    TagSet.of_types(Scheme.PLAIN, ["x", "y", "z"]),
]


def random_chain(tagset: TagSet, seed: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray, np.ndarray]:
    """Scores of first labels and steps (−inf where forbidden), and 0 or −inf for last labels."""
    rng = np.random.default_rng(seed)
    J = len(tagset.labels)
    start = log_mask(tagset.allowed_first) + rng.normal(size=J)
    trans = log_mask(tagset.allowed) + rng.normal(size=(J, J))
    return rng, start, trans, log_mask(tagset.allowed_last)


def enumerate_paths(
    scores: np.ndarray, start: np.ndarray, trans: np.ndarray, end: np.ndarray
) -> dict[tuple[int, ...], float]:
    """The weight of every possible path."""
    L, J = scores.shape
    weights = {}
    for path in product(range(J), repeat=L):
        total = start[path[0]] + end[path[-1]] + sum(scores[t, j] for t, j in enumerate(path))
        total += sum(trans[i, j] for i, j in pairwise(path))
        weights[path] = float(np.exp(total))
    return weights


@pytest.mark.parametrize("tagset", TAGSETS, ids=lambda tagset: tagset.scheme.value)
@pytest.mark.parametrize("scale", [1.0, 400.0], ids=["scaled", "log space"])
def test_expectations_are_those_of_all_paths(tagset: TagSet, scale: float) -> None:
    rng, start, trans, end = random_chain(tagset, 1)
    L, J = 4, len(tagset.labels)
    scores = rng.normal(size=(L, J)) * scale
    shift = scores.max(axis=1, keepdims=True)
    weights = enumerate_paths(scores - shift, start, trans, end)
    total = sum(weights.values())
    marginals, neighbours = np.zeros((L, J)), np.zeros((J, J))
    for path, weight in weights.items():
        for t, j in enumerate(path):
            marginals[t, j] += weight / total
        for i, j in pairwise(path):
            neighbours[i, j] += weight / total
    posterior, pairs = np.empty((L, J)), np.zeros((J, J))
    log_z = kernels.expectations(scores, kernels.steps_of(start, trans), end, posterior, pairs)
    np.testing.assert_allclose(posterior, marginals, atol=1e-10)
    np.testing.assert_allclose(pairs, neighbours, atol=1e-10)
    assert log_z == pytest.approx(np.log(total) + shift.sum(), rel=1e-10)

    best = np.zeros(L, np.int32)
    kernels.best_paths(scores, np.array([0, L]), start, trans, end, best)
    assert weights[tuple(best.tolist())] == pytest.approx(max(weights.values()), rel=1e-9)


@pytest.mark.parametrize("tagset", TAGSETS, ids=lambda tagset: tagset.scheme.value)
def test_gradients_are_finite_differences(tagset: TagSet) -> None:
    rng, start, trans, end = random_chain(tagset, 2)
    L, J, X, H = 4, len(tagset.labels), 5, 6
    rules = kernels.Rules(tagset.allowed_first, tagset.allowed, end)
    other = random_chain(tagset, 3)
    target, target_pairs = np.empty((L, J)), np.zeros((J, J))
    kernels.expectations(rng.normal(size=(L, J)), kernels.steps_of(other[1], other[2]), end, target, target_pairs)
    vectors = rng.normal(size=(L, X)).astype(np.float32)
    hidden = kernels.HiddenLayer(*(rng.normal(size=shape).astype(np.float32) for shape in ((X, H), (H,), (H, J))))
    kept = np.array([0, 2, 1, 1, 2, 1], np.float32)

    def loss(
        scores: np.ndarray, start: np.ndarray, trans: np.ndarray, hidden: kernels.HiddenLayer
    ) -> tuple[float, np.ndarray, np.ndarray]:
        units = np.maximum(vectors.astype(np.float64) @ hidden.inner + hidden.bias, 0) * kept
        by_token, by_step = np.empty((L, J)), np.empty((J, J))
        weights = kernels.Weights(np.zeros((1, J), np.float32), start, trans)
        whole = np.asarray(scores + units @ hidden.outer.astype(np.float64), np.float64)
        return (
            kernels.loss_and_gradient(whole, weights, rules, target, target_pairs, by_token, by_step),
            by_token,
            by_step,
        )

    scores = rng.normal(size=(L, J))
    _, by_token, by_step = loss(scores, start, trans, hidden)
    units = kernels.hidden_layer(vectors, hidden, kept)
    slopes = kernels.hidden_gradient(vectors, units, hidden, kept, by_token)

    def slope(array: np.ndarray, index: tuple[int, ...], step: float) -> float:
        kept_value = array[index]
        values = []
        for sign in (1, -1):
            array[index] = kept_value + sign * step
            values.append(loss(scores, start, trans, hidden)[0])
        array[index] = kept_value
        return (values[0] - values[1]) / (2 * step)

    for index in np.ndindex(L, J):
        assert by_token[index] == pytest.approx(slope(scores, index, 1e-5), abs=1e-7)
    for j in np.flatnonzero(tagset.allowed_first):
        assert by_token[0, j] == pytest.approx(slope(start, (int(j),), 1e-5), abs=1e-7)
    for i, j in np.argwhere(tagset.allowed):
        assert by_step[i, j] == pytest.approx(slope(trans, (i, j), 1e-5), abs=1e-7)
    for part, expected in zip(hidden, slopes, strict=True):
        for index in np.ndindex(part.shape):
            assert expected[index] == pytest.approx(slope(part, index, 1e-2), abs=2e-3)


def test_expected_neighbours_keep_the_probabilities_and_the_scheme() -> None:
    """Margins of a chain's posterior: the coupling has the same margins, and no forbidden pair."""
    tagset = TAGSETS[0]
    rng, start, trans, end = random_chain(tagset, 4)
    L, J = 2, len(tagset.labels)
    target, true_pairs = np.empty((L, J)), np.zeros((J, J))
    kernels.expectations(rng.normal(size=(L, J)), kernels.steps_of(start, trans), end, target, true_pairs)
    pairs = np.zeros((1, J, J))
    kernels.couple(target, np.array([0, L]), tagset.allowed, 200, pairs)
    np.testing.assert_allclose(pairs[0].sum(axis=0), target[1], atol=1e-9)
    np.testing.assert_allclose(pairs[0].sum(axis=1), target[0], atol=1e-9)
    assert (pairs[0][~tagset.allowed] == 0).all()


def test_an_epoch_takes_the_steps_of_adagrad_with_the_draws_of_numpy() -> None:
    """Every draw, gradient and step again with NumPy, in double precision: dropped features, numbers and units."""
    tagset, rng = TAGSETS[0], np.random.default_rng(5)
    J, F, W, X, H = len(tagset.labels), 4, 7, 5, 6
    doc_start = np.array([0, 3, 3, 8])
    order, rate, dropout, hidden_dropout, seed = np.array([2, 1, 0]), 0.1, 0.4, 0.3, 12345
    features = rng.integers(0, W + 1, (8, F)).astype(np.int32)
    vectors = rng.normal(size=(8, X)).astype(np.float32)
    target = rng.dirichlet(np.ones(J), 8)
    pairs = np.zeros((3, J, J))
    kernels.couple(target, doc_start, tagset.allowed, 5, pairs)
    data = kernels.TrainingData(features, vectors, doc_start, target, pairs)
    rules = kernels.Rules(tagset.allowed_first, tagset.allowed, log_mask(tagset.allowed_last))
    start, trans = log_mask(tagset.allowed_first), log_mask(tagset.allowed)
    shapes = [(W + 1, J), (X, H), (H,), (H, J)]
    by_feature, *layer = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    by_feature[0] = 0.0
    weights, hidden = kernels.Weights(by_feature, start, trans), kernels.HiddenLayer(*layer)
    expected = [part.astype(np.float64) for part in (*weights, *hidden)]
    seen_squares = [np.ones_like(part) for part in expected]
    squares = kernels.Weights(np.ones_like(by_feature), np.ones(J), np.ones((J, J)))
    hidden_squares = kernels.HiddenLayer(*map(np.ones_like, hidden))
    loss = kernels.train_epoch(
        data, rules, order, weights, squares, hidden, hidden_squares, rate, dropout, hidden_dropout, seed
    )

    draws, total = np.random.RandomState(seed), 0.0
    for d in (2, 0):
        rows = slice(doc_start[d], doc_start[d + 1])
        kept = np.where(draws.random_sample(features[rows].shape) < dropout, 0, features[rows])
        numbers, units = (
            np.where(draws.random_sample(n) < hidden_dropout, 0, 1 / (1 - hidden_dropout)) for n in (X, H)
        )
        table, first, steps, inner, bias, outer = expected
        sight = vectors[rows] * numbers
        before = sight @ inner + bias
        active = np.maximum(before, 0) * units
        scores = table[kept].sum(axis=1) + active @ outer
        by_token, by_step = np.empty(scores.shape), np.empty((J, J))
        chain = kernels.Weights(by_feature, first, steps)
        total += kernels.loss_and_gradient(scores, chain, rules, target[rows], pairs[d], by_token, by_step)
        for t, f in np.argwhere(kept > 0):
            step_of_adagrad(table[kept[t, f]], seen_squares[0][kept[t, f]], by_token[t], rate)
        by_unit = by_token @ outer.T * units * (before > 0)
        slopes = [by_token[0] * rules.first, by_step * rules.steps, sight.T @ by_unit, by_unit.sum(axis=0)]
        for part, square, slope in zip(expected[1:], seen_squares[1:], [*slopes, active.T @ by_token], strict=True):
            step_of_adagrad(part, square, slope, rate)
    assert loss == pytest.approx(total / 8, rel=1e-5)
    learned: list[np.ndarray] = [*weights, *hidden]
    for found, wanted in zip(learned, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def step_of_adagrad(weight: np.ndarray, square: np.ndarray, slope: np.ndarray, rate: float) -> None:
    """One step, in place."""
    square += slope**2
    weight -= rate * slope / np.sqrt(square)
