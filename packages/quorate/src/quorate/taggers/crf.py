"""A linear-chain conditional random field that learns from probabilities, on the package's own kernels.

Alone it is the light tagger; with vectors of tokens in context it is the core of :mod:`quorate.taggers.context`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Document
from quorate.corpus.tags import TagSet
from quorate.errors import SettingsError
from quorate.model.parts.truth import log_mask
from quorate.taggers.features import TokenFeatures, frequent, numbered

if TYPE_CHECKING:
    from quorate.taggers.kernels import HiddenLayer, Weights

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]

# AdaGrad's sums of squares before any gradient: of features, of the hidden layer, and of steps, which all move.
_FEATURE_SQUARE, _HIDDEN_SQUARE, _STEP_SQUARE = 0.01, 0.1, 1.0
_SCALINGS = 5  # of the expected neighbours; more change nothing
_HIDDEN_DROPOUT = 0.3


class _Learned(NamedTuple):
    kept: NDArray[np.int32]  # the buckets that have weights, in the order of these
    weights: Weights
    hidden: HiddenLayer


class CrfTagger:
    """Tags text by word, shape, affixes and neighbours, and by which label follows which.

    The loss is the cross entropy between the posterior of sequences that it is given and its own; trained by AdaGrad
    over ``epochs`` passes, each feature of a token being left out with the probability ``dropout``. Labels that the
    scheme forbids after one another never come out. The same ``seed`` gives the same tagger.

    >>> tagset = TagSet.infer(["O", "B-PER", "I-PER"])
    >>> documents = [Document(str(n), (name, "sang")) for n, name in enumerate(["Ada", "Eve", "Bob", "Ada", "Eve"])]
    >>> tagger = CrfTagger(tagset).fit(documents, [np.eye(3)[[1, 0]]] * 5)
    >>> tagger.predict([Document("6", ("Eve", "sang"))])[0].argmax(axis=1)
    array([1, 0])
    """

    hidden_units = 0

    def __init__(
        self, tagset: TagSet, *, epochs: int = 8, rate: float = 0.05, dropout: float = 0.7, seed: int = 0
    ) -> None:
        if epochs < 1 or not rate > 0 or not 0 <= dropout < 1:
            raise SettingsError(
                "a CRF needs epochs of 1 or more, a rate above 0, and a dropout from 0 to below 1, "
                f"not {epochs}, {rate:g} and {dropout:g}"
            )
        self.tagset, self.epochs, self.rate, self.dropout, self.seed = tagset, epochs, rate, dropout, seed
        self._features = TokenFeatures()
        self._learned: _Learned | None = None

    def vectors(self, documents: Sequence[Document]) -> Floats32:
        """``[N, X]`` A vector for every token of the documents, end to end; here of no numbers."""
        return np.zeros((sum(len(document.tokens) for document in documents), 0), np.float32)

    def fit(self, documents: Sequence[Document], posteriors: Sequence[Floats]) -> Self:
        """Learn from documents and, for each, ``[L, J]`` the probability of every label at every token."""
        from quorate.taggers import kernels

        tagset, J = self.tagset, len(self.tagset.labels)
        buckets, doc_start = self._features.end_to_end([document.tokens for document in documents])
        kept = frequent(buckets)
        target = np.concatenate([np.zeros((0, J)), *posteriors])
        pairs = np.zeros((len(documents), J, J))
        kernels.couple(target, doc_start, tagset.allowed, _SCALINGS, pairs)
        vectors = self.vectors(documents)
        data = kernels.TrainingData(numbered(buckets, kept), vectors, doc_start, target, pairs)
        rules = kernels.Rules(tagset.allowed_first, tagset.allowed, log_mask(tagset.allowed_last))
        rng = np.random.default_rng(self.seed)
        weights = kernels.Weights(
            np.zeros((len(kept) + 1, J), np.float32), log_mask(tagset.allowed_first), log_mask(tagset.allowed)
        )
        squares = kernels.Weights(
            np.full(weights.features.shape, _FEATURE_SQUARE, np.float32),
            np.full(J, _STEP_SQUARE),
            np.full((J, J), _STEP_SQUARE),
        )
        X, H = vectors.shape[1], self.hidden_units
        hidden = kernels.HiddenLayer(
            (rng.normal(size=(X, H)) / np.sqrt(max(X, 1))).astype(np.float32),
            np.zeros(H, np.float32),
            (rng.normal(size=(H, J)) * 0.1 / np.sqrt(max(H, 1))).astype(np.float32),
        )
        hidden_squares = kernels.HiddenLayer(*(np.full(part.shape, _HIDDEN_SQUARE, np.float32) for part in hidden))
        for _ in range(self.epochs):
            kernels.train_epoch(
                data,
                rules,
                rng.permutation(len(documents)),
                weights,
                squares,
                hidden,
                hidden_squares,
                self.rate,
                self.dropout,
                _HIDDEN_DROPOUT,
                int(rng.integers(1 << 31)),
            )
        self._learned = _Learned(kept, weights, hidden)
        return self

    def predict(self, documents: Sequence[Document]) -> list[Floats]:
        """For every document, ``[L, J]`` the probability of every label at every token."""
        from quorate.taggers import kernels

        if self._learned is None:
            raise SettingsError("this tagger has not learned anything yet (call fit first)")
        kept, weights, (inner, bias, outer) = self._learned
        buckets, doc_start = self._features.end_to_end([document.tokens for document in documents])
        scores = np.zeros((len(buckets), len(self.tagset.labels)))
        kernels.score_tokens(numbered(buckets, kept), weights.features, scores)
        scores += np.maximum(self.vectors(documents) @ inner + bias, 0) @ outer
        out = np.zeros_like(scores)
        end = log_mask(self.tagset.allowed_last)
        kernels.probabilities_of(scores, doc_start, weights.start, weights.trans, end, out)
        return np.split(out, doc_start[1:-1])
