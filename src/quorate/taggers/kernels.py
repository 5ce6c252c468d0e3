"""The compiled part of taggers: scores from features and vectors, expected labels, AdaGrad steps, best paths.

The recursions are those of :mod:`quorate.infer.kernels.single`.

Letters: N tokens, D documents, F features of a token, W features in all, J labels, L tokens of one document, X numbers
in a token's vector, H units of the hidden layer.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quorate.infer.kernels.layout import longest_of
from quorate.infer.kernels.single import Steps, steps_of, viterbi
from quorate.infer.kernels.single import expectations as chain_expectations

__all__ = [
    "HiddenLayer",
    "Rules",
    "TrainingData",
    "Weights",
    "add_gradient",
    "best_paths",
    "couple",
    "expectations",
    "hidden_gradient",
    "hidden_layer",
    "loss_and_gradient",
    "probabilities_of",
    "score_tokens",
    "steps_of",
    "train_epoch",
]

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Bools = NDArray[np.bool_]


class TrainingData(NamedTuple):
    """Features of tokens ``[N, F]`` (0: none), their vectors ``[N, X]``, where documents start, and what to learn.

    ``target`` ``[N, J]`` are the labels' probabilities, ``pairs`` ``[D, J, J]`` the expected neighbours.
    """

    features: Ints32
    vectors: Floats32
    doc_start: Ints
    target: Floats
    pairs: Floats


class Rules(NamedTuple):
    """What the scheme allows: first labels ``[J]``, steps ``[J, J]``, and 0 or −inf for last labels ``[J]``."""

    first: Bools
    steps: Bools
    end: Floats


class Weights(NamedTuple):
    """Scores of a label by feature ``[W, J]`` (row 0 is no feature), as the first ``[J]``, after another ``[J, J]``."""

    features: Floats32 | Floats
    start: Floats
    trans: Floats


class HiddenLayer(NamedTuple):
    """A layer of H units over a token's vector: weights ``[X, H]`` and ``[H]``, and scores of labels ``[H, J]``.

    Without vectors, X and H are 0.
    """

    inner: Floats32
    bias: Floats32
    outer: Floats32


@njit(nogil=True, cache=True)
def score_tokens(features: Ints32, weights: Floats32 | Floats, out: Floats) -> None:
    """``out[t, j]``: the sum of the weights for label j of token t's features."""
    L, F = features.shape
    J = weights.shape[1]
    for t in range(L):
        row = out[t]
        for j in range(J):
            row[j] = 0.0
        for f in range(F):
            if features[t, f]:
                weight = weights[features[t, f]]
                for j in range(J):
                    row[j] += weight[j]


@njit(nogil=True, cache=True)
def expectations(
    scores: Floats, steps: Steps, end: Floats, posterior: Floats, pairs: Floats, alpha: Floats, beta: Floats
) -> float:
    """As :func:`quorate.infer.kernels.single.expectations`, of labels that may end with scores of their own."""
    L, J = scores.shape
    evidence = scores.copy()
    for j in range(J):
        evidence[L - 1, j] += end[j]
    log_z: float = chain_expectations(evidence, steps, False, posterior, pairs, alpha, beta)
    return log_z


@njit(nogil=True, cache=True)
def loss_and_gradient(
    scores: Floats,
    weights: Weights,
    rules: Rules,
    target: Floats,
    target_pairs: Floats,
    by_token: Floats,
    by_step: Floats,
) -> float:
    """Cross entropy between what is to be learned and the chain, up to a constant; and its gradients.

    By each token's scores ``[L, J]`` and by the scores of steps ``[J, J]``; that by the first label's is
    ``by_token[0]``.
    """
    L, J = scores.shape
    alpha, beta = np.empty((L, J)), np.empty((L, J))
    by_step[:] = 0.0
    steps = steps_of(weights.start, weights.trans)
    loss = expectations(scores, steps, rules.end, by_token, by_step, alpha, beta)
    for t in range(L):
        for j in range(J):
            if target[t, j] > 0.0:
                loss -= target[t, j] * scores[t, j]
                if t == 0 and rules.first[j]:
                    loss -= target[t, j] * weights.start[j]
            by_token[t, j] -= target[t, j]
    for i in range(J):
        for j in range(J):
            if rules.steps[i, j]:
                loss -= target_pairs[i, j] * weights.trans[i, j]
                by_step[i, j] -= target_pairs[i, j]
    return loss


@njit(nogil=True, cache=True)
def hidden_layer(vectors: Floats32, hidden: HiddenLayer, kept: Floats32) -> Floats32:
    """``[L, H]`` What the units give for the vectors ``[L, X]``; ``kept`` ``[H]`` weighs them (0: dropped).

    Plain loops: matrices this small would keep the threads of a linear algebra library busy with waiting.
    """
    L, H = vectors.shape[0], hidden.bias.shape[0]
    units = np.empty((L, H), np.float32)
    for t in range(L):
        row = units[t]
        row[:] = hidden.bias
        for x in range(vectors.shape[1]):
            value = vectors[t, x]
            if value != 0.0:
                weight = hidden.inner[x]
                for h in range(H):
                    row[h] += value * weight[h]
        for h in range(H):
            row[h] = max(row[h], np.float32(0.0)) * kept[h]
    return units


@njit(nogil=True, cache=True)
def hidden_gradient(
    vectors: Floats32, units: Floats32, hidden: HiddenLayer, kept: Floats32, by_token: Floats
) -> HiddenLayer:
    """The gradients of the layer's weights, from those of the tokens' scores ``[L, J]``."""
    (L, H), J = units.shape, by_token.shape[1]
    inner, bias, outer = np.zeros_like(hidden.inner), np.zeros_like(hidden.bias), np.zeros_like(hidden.outer)
    by_unit = np.empty(H, np.float32)
    for t in range(L):
        for h in range(H):
            by_unit[h] = 0.0
            if units[t, h] > 0.0:
                total = 0.0
                for j in range(J):
                    total += by_token[t, j] * hidden.outer[h, j]
                    outer[h, j] += units[t, h] * by_token[t, j]
                by_unit[h] = total * kept[h]
                bias[h] += by_unit[h]
        for x in range(vectors.shape[1]):
            value = vectors[t, x]
            if value != 0.0:
                row = inner[x]
                for h in range(H):
                    row[h] += value * by_unit[h]
    return HiddenLayer(inner, bias, outer)


@njit(nogil=True, cache=True)
def adagrad(weights: Floats32, squares: Floats32, gradient: Floats32, rate: float) -> None:
    """One step, in place."""
    flat, seen, slope = weights.ravel(), squares.ravel(), gradient.ravel()
    for n in range(flat.shape[0]):
        if slope[n] != 0.0:
            seen[n] += slope[n] * slope[n]
            flat[n] -= rate * slope[n] / math.sqrt(seen[n])


@njit(nogil=True, cache=True)
def drawn(n: int, dropout: float) -> Floats32:
    """``[n]`` 0 with the probability ``dropout``, else what makes up for it."""
    kept = np.empty(n, np.float32)
    for k in range(n):
        kept[k] = 0.0 if np.random.random() < dropout else 1.0 / (1.0 - dropout)
    return kept


@njit(nogil=True, cache=True)
def train_epoch(
    data: TrainingData,
    rules: Rules,
    order: Ints,
    weights: Weights,
    squares: Weights,
    hidden: HiddenLayer,
    hidden_squares: HiddenLayer,
    rate: float,
    dropout: float,
    hidden_dropout: float,
    seed: int,
) -> float:
    """One pass of AdaGrad over the documents in ``order``, in place; returns the mean loss per token.

    Each feature of a token is left out with the probability ``dropout``; each number of the vectors, and each hidden
    unit, in a whole document with the probability ``hidden_dropout``.
    """
    np.random.seed(seed)
    features, vectors, doc_start, target, pairs = data
    F, J, X, H = features.shape[1], target.shape[1], vectors.shape[1], hidden.bias.shape[0]
    longest = longest_of(doc_start)
    kept, scores, by_token = np.empty((longest, F), np.int32), np.empty((longest, J)), np.empty((longest, J))
    by_step = np.empty((J, J))
    loss, tokens = 0.0, 0
    for d in order:
        first, L = doc_start[d], doc_start[d + 1] - doc_start[d]
        if L == 0:
            continue
        for t in range(L):
            for f in range(F):
                dropped = dropout > 0.0 and np.random.random() < dropout
                kept[t, f] = 0 if dropped else features[first + t, f]
        score_tokens(kept[:L], weights.features, scores)
        seen, kept_units = vectors[first : first + L] * drawn(X, hidden_dropout), drawn(H, hidden_dropout)
        units = hidden_layer(seen, hidden, kept_units)
        for t in range(L if H else 0):
            for h in range(H):
                for j in range(J):
                    scores[t, j] += units[t, h] * hidden.outer[h, j]
        there = target[first : first + L]
        loss += loss_and_gradient(scores[:L], weights, rules, there, pairs[d], by_token[:L], by_step)
        tokens += L
        for t in range(L):
            gradient = by_token[t]
            for f in range(F):
                if kept[t, f]:
                    weight, square = weights.features[kept[t, f]], squares.features[kept[t, f]]
                    for j in range(J):
                        square[j] += gradient[j] * gradient[j]
                        weight[j] -= rate * gradient[j] / math.sqrt(square[j])
        if H:
            slopes = hidden_gradient(seen, units, hidden, kept_units, by_token[:L])
            adagrad(hidden.inner, hidden_squares.inner, slopes.inner, rate)
            adagrad(hidden.bias, hidden_squares.bias, slopes.bias, rate)
            adagrad(hidden.outer, hidden_squares.outer, slopes.outer, rate)
        for i in range(J):
            if rules.first[i]:
                squares.start[i] += by_token[0, i] ** 2
                weights.start[i] -= rate * by_token[0, i] / math.sqrt(squares.start[i])
            for j in range(J):
                if rules.steps[i, j]:
                    squares.trans[i, j] += by_step[i, j] ** 2
                    weights.trans[i, j] -= rate * by_step[i, j] / math.sqrt(squares.trans[i, j])
    return loss / max(tokens, 1)


@njit(nogil=True, cache=True)
def add_gradient(data: TrainingData, rules: Rules, documents: Ints, weights: Weights, slopes: Weights) -> float:
    """The loss in these documents, whose tokens have no vectors; its gradients are *added* to ``slopes``."""
    features, _, doc_start, target, pairs = data
    F, J = features.shape[1], target.shape[1]
    longest = longest_of(doc_start)
    scores, by_token, by_step = np.empty((longest, J)), np.empty((longest, J)), np.empty((J, J))
    loss = 0.0
    for d in documents:
        first, L = doc_start[d], doc_start[d + 1] - doc_start[d]
        if L == 0:
            continue
        score_tokens(features[first : first + L], weights.features, scores)
        there = target[first : first + L]
        loss += loss_and_gradient(scores[:L], weights, rules, there, pairs[d], by_token[:L], by_step)
        for t in range(L):
            for f in range(F):
                if features[first + t, f]:
                    slope = slopes.features[features[first + t, f]]
                    for j in range(J):
                        slope[j] += by_token[t, j]
        for i in range(J):
            slopes.start[i] += by_token[0, i]
            for j in range(J):
                slopes.trans[i, j] += by_step[i, j]
    return loss


@njit(nogil=True, cache=True)
def couple(target: Floats, doc_start: Ints, allowed: Bools, scalings: int, out: Floats) -> None:
    """``out[d]`` += expected neighbours ``[J, J]`` in document d, whose labels have the probabilities ``target``.

    Of all joint distributions of two neighbours with these probabilities and no forbidden pair, the one of greatest
    entropy, by scaling columns and rows in turn.
    """
    J = target.shape[1]
    joint = np.empty((J, J))
    for d in range(doc_start.shape[0] - 1):
        for t in range(doc_start[d] + 1, doc_start[d + 1]):
            for i in range(J):
                for j in range(J):
                    joint[i, j] = target[t - 1, i] * target[t, j] if allowed[i, j] else 0.0
            for _ in range(scalings):
                for j in range(J):
                    total = joint[:, j].sum()
                    if total > 0.0:
                        joint[:, j] *= target[t, j] / total
                for i in range(J):
                    total = joint[i].sum()
                    if total > 0.0:
                        joint[i] *= target[t - 1, i] / total
            out[d] += joint


@njit(nogil=True, cache=True)
def probabilities_of(scores: Floats, doc_start: Ints, start: Floats, trans: Floats, end: Floats, out: Floats) -> None:
    """``out`` ``[N, J]`` Probabilities of the labels of all documents whose tokens have these scores ``[N, J]``."""
    J = end.shape[0]
    longest = longest_of(doc_start)
    alpha, beta, pairs = np.empty((longest, J)), np.empty((longest, J)), np.zeros((J, J))
    steps = steps_of(start, trans)
    for d in range(doc_start.shape[0] - 1):
        first, last = doc_start[d], doc_start[d + 1]
        if last > first:
            expectations(scores[first:last], steps, end, out[first:last], pairs, alpha, beta)


@njit(nogil=True, cache=True)
def best_paths(scores: Floats, doc_start: Ints, start: Floats, trans: Floats, end: Floats, path: Ints32) -> None:
    """``path`` ``[N]`` The best sequence of every document whose tokens have these scores ``[N, J]``."""
    back = np.empty((longest_of(doc_start), end.shape[0]), np.int32)
    steps = steps_of(start, trans)
    for d in range(doc_start.shape[0] - 1):
        first, last = doc_start[d], doc_start[d + 1]
        if last > first:
            viterbi(scores[first:last], last - first, steps, end, back, path[first:last])
