"""The compiled part of taggers: scores from features and vectors, expected labels, AdaGrad steps, best paths.

The recursions are those of :mod:`quorate.model.kernels.single`.

Letters: N tokens, D documents, F features of a token, W features in all, J labels, L tokens of one document, X numbers
in a token's vector, H units of the hidden layer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.native import native
from quorate.model.kernels.single import Steps, steps_of

__all__ = [
    "ExactWeights",
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
    "score_exactly",
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

    features: Floats32
    start: Floats
    trans: Floats


class ExactWeights(NamedTuple):
    """As :class:`Weights`, in double precision throughout."""

    features: Floats
    start: Floats
    trans: Floats


class HiddenLayer(NamedTuple):
    """A layer of H units over a token's vector: weights ``[X, H]`` and ``[H]``, and scores of labels ``[H, J]``.

    Without vectors, X and H are 0.
    """

    inner: Floats32
    bias: Floats32
    outer: Floats32


@native
def score_tokens(features: Ints32, weights: Floats32, out: Floats) -> None:
    """``out[t, j]``: the sum of the weights for label j of token t's features."""


@native
def score_exactly(features: Ints32, weights: Floats, out: Floats) -> None:
    """As :func:`score_tokens`, of weights in double precision."""


@native
def expectations(scores: Floats, steps: Steps, end: Floats, posterior: Floats, pairs: Floats) -> float:
    """``posterior`` ``[L, J]`` of one document; expected neighbours are *added* to ``pairs``; returns ln Z.

    ``end`` ``[J]`` are the scores of labels that come last.
    """


@native
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


def hidden_layer(vectors: Floats32, hidden: HiddenLayer, kept: Floats32) -> Floats32:
    """``[L, H]`` What the units give for the vectors ``[L, X]``; ``kept`` ``[H]`` weighs them (0: dropped).

    Plain loops: matrices this small would keep the threads of a linear algebra library busy with waiting.
    """
    units = np.empty((len(vectors), len(hidden.bias)), np.float32)
    fill_units(vectors, hidden, kept, units)
    return units


@native
def fill_units(vectors: Floats32, hidden: HiddenLayer, kept: Floats32, units: Floats32) -> None:
    """The same, into ``units``."""


def hidden_gradient(
    vectors: Floats32, units: Floats32, hidden: HiddenLayer, kept: Floats32, by_token: Floats
) -> HiddenLayer:
    """The gradients of the layer's weights, from those of the tokens' scores ``[L, J]``."""
    slopes = HiddenLayer(*map(np.zeros_like, hidden))
    add_hidden_gradient(vectors, units, hidden, kept, by_token, slopes)
    return slopes


@native
def add_hidden_gradient(
    vectors: Floats32, units: Floats32, hidden: HiddenLayer, kept: Floats32, by_token: Floats, slopes: HiddenLayer
) -> None:
    """The same, added to ``slopes``."""


@native
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


@native
def add_gradient(
    data: TrainingData, rules: Rules, documents: Ints, weights: ExactWeights, slopes: ExactWeights
) -> float:
    """The loss in these documents, whose tokens have no vectors; its gradients are *added* to ``slopes``."""


@native
def couple(target: Floats, doc_start: Ints, allowed: Bools, scalings: int, out: Floats) -> None:
    """``out[d]`` += expected neighbours ``[J, J]`` in document d, whose labels have the probabilities ``target``.

    Of all joint distributions of two neighbours with these probabilities and no forbidden pair, the one of greatest
    entropy, by scaling columns and rows in turn.
    """


@native
def probabilities_of(scores: Floats, doc_start: Ints, start: Floats, trans: Floats, end: Floats, out: Floats) -> None:
    """``out`` ``[N, J]`` Probabilities of the labels of all documents whose tokens have these scores ``[N, J]``."""


@native
def best_paths(scores: Floats, doc_start: Ints, start: Floats, trans: Floats, end: Floats, path: Ints32) -> None:
    """``path`` ``[N]`` The best sequence of every document whose tokens have these scores ``[N, J]``."""
