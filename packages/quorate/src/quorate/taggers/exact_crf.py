"""The CRF of :mod:`quorate.taggers.crf` without dropout: the weights that explain expected labels best, by L-BFGS.

The log-likelihood of weighted sequences is linear in how often each label, and each pair of neighbours, is expected at
each place; so sequences with weights are learned from exactly, each document once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.errors import FitError
from quorate.model.parts.truth import Chain

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]

_NEVER_SEEN = -20.0  # the score of a label that is never to be learned
_CORRECTIONS = 6  # earlier steps that L-BFGS remembers


class Crf(NamedTuple):
    """What was learned: a row for every feature ``[F, J]``, the first label ``[J]``, from label to label ``[J, J]``.

    >>> Crf(np.zeros((1, 2)), np.zeros(2), np.zeros((2, 2))).chain().trans.tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """

    weights: Floats
    start: Floats
    transitions: Floats

    def chain(self) -> Chain:
        """The steps for the recursion, which a CRF need not normalise. Every label may come last."""
        return Chain(self.start, self.transitions, np.zeros(len(self.start)), True)

    def scores(self, features: Ints32) -> Floats:
        """``[N, J]`` For every token the sum of the rows of its features ``[N, F]``, counted from 1 (0: none)."""
        from quorate.taggers import kernels

        scores = np.zeros((len(features), len(self.start)))
        kernels.score_exactly(features, np.concatenate([np.zeros((1, len(self.start))), self.weights]), scores)
        return scores


def train(
    features: Ints32,
    n_features: int,
    doc_start: Ints,
    target: Floats,
    pairs: Floats,
    *,
    l2: float = 1.0,
    iterations: int = 30,
) -> Crf:
    """A CRF that expects ``target`` ``[N, J]`` at tokens and ``pairs`` ``[D, J, J]`` as neighbours in documents.

    ``features`` are numbers from 1 ``[N, F]`` (0: none). Documents without a target teach nothing. ``l2`` is the weight
    of the squared norm beside a document's log-likelihood, ``iterations`` the most steps of L-BFGS.
    """
    from scipy.optimize import minimize

    from quorate.taggers import kernels

    taught = np.asarray(target.any(axis=0))
    if not taught.any():
        raise FitError("there is no sequence of labels to learn from")
    J, R = len(taught), int(taught.sum())
    target, pairs = np.ascontiguousarray(target[:, taught]), np.ascontiguousarray(pairs[:, taught][:, :, taught])
    total = np.concatenate([[0.0], np.cumsum(target.sum(axis=1))])
    documents = np.flatnonzero(np.diff(total[doc_start]) > 0)
    data = kernels.TrainingData(features, np.zeros((len(features), 0), np.float32), doc_start, target, pairs)
    rules = kernels.Rules(np.ones(R, np.bool_), np.ones((R, R), np.bool_), np.zeros(R))
    rows = n_features + 1  # the first is no feature: it has no gradient, and stays 0

    def parts(flat: Floats) -> kernels.ExactWeights:
        by_feature, start, trans = np.split(flat, [rows * R, (rows + 1) * R])
        return kernels.ExactWeights(by_feature.reshape(rows, R), start, trans.reshape(R, R))

    def loss_and_slope(flat: Floats) -> tuple[float, Floats]:
        slope = 2.0 * l2 * flat
        loss = kernels.add_gradient(data, rules, documents, parts(flat), parts(slope))
        return loss + l2 * float(flat @ flat), slope

    found = minimize(
        loss_and_slope,
        np.zeros((rows + 1 + R) * R),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": iterations, "maxcor": _CORRECTIONS},
    )
    learned = parts(found.x)
    crf = Crf(np.zeros((n_features, J)), np.full(J, _NEVER_SEEN), np.full((J, J), _NEVER_SEEN))
    crf.weights[:, taught] = learned.features[1:]
    crf.start[taught] = learned.start
    crf.transitions[:, taught] = 0.0
    crf.transitions[np.ix_(taught, taught)] = learned.trans
    return crf
