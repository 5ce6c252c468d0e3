"""A linear-chain conditional random field over token features, trained on weighted sequences by python-crfsuite.

CRFsuite has no weights of sequences (nor have sklearn-crfsuite and chaine, which wrap it): a sequence is given as many
times as its weight says, in whole copies. What it learned is read back as arrays, so that probabilities come from the
same kernels as everything else.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.errors import FitError, SettingsError
from quorate.infer.parts.truth import Chain
from quorate.taggers.crfsuite_features import FeatureTable

__all__ = ["Crf", "CrfTrainer", "apportioned", "library"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NEVER_SEEN = -20.0  # the score of a label that no training sequence has


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


class CrfTrainer:
    """Trains on sequences of labels for documents whose features are laid out once.

    ``doc_start`` says where each document's tokens begin in ``features``; ``l2`` is the weight of the squared norm
    beside a sequence of weight 1, ``iterations`` the most steps of L-BFGS.
    """

    def __init__(
        self, features: FeatureTable, doc_start: Ints, n_labels: int, *, l2: float = 1.0, iterations: int = 30
    ) -> None:
        self._library = library()
        self._features, self._doc_start = features, doc_start
        # Numbers stand for names on both sides: no name can confuse the library or what it writes.
        self._labels = [str(label) for label in range(n_labels)]
        self._numbers = [str(number) for number in range(len(features.names))]
        self._l2, self._iterations = l2, iterations
        self._items: dict[int, Any] = {}

    def train(self, sequences: Iterable[tuple[int, Sequence[int], int]], copies: int) -> Crf:
        """A CRF from (document, its labels, times) triples; ``copies`` times stand for weight 1."""
        trainer = self._library.Trainer(
            algorithm="lbfgs",
            params={
                "c1": 0.0,
                "c2": self._l2 * copies,
                "max_iterations": self._iterations,
                "feature.possible_transitions": True,
            },
            verbose=False,
        )
        trained = np.zeros(len(self._labels), np.bool_)
        for document, labels, times in sequences:
            names = [self._labels[label] for label in labels]
            trained[list(labels)] = True
            for _ in range(times):
                trainer.append(self._items_of(document), names)
        if not trained.any():
            raise FitError("there is no sequence of labels to learn from")
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "model.crf")
            trainer.train(path)
            tagger = self._library.Tagger()
            tagger.open(path)
            learned = tagger.info()
            tagger.close()
        J = len(trained)
        crf = Crf(np.zeros((len(self._numbers), J)), np.zeros(J), np.zeros((J, J)))
        for (number, label), weight in learned.state_features.items():
            crf.weights[int(number), int(label)] = weight
        for (before, after), weight in learned.transitions.items():
            crf.transitions[int(before), int(after)] = weight
        crf.start[~trained] = _NEVER_SEEN
        crf.transitions[:, ~trained] = _NEVER_SEEN
        return crf

    def _items_of(self, document: int) -> Any:
        if document not in self._items:
            start, number, _ = self._features
            tokens = range(int(self._doc_start[document]), int(self._doc_start[document + 1]))
            rows = [[self._numbers[n] for n in number[start[t] : start[t + 1]].tolist()] for t in tokens]
            self._items[document] = self._library.ItemSequence(rows)
        return self._items[document]


def apportioned(weights: Floats, group: Ints, copies: int) -> Ints:
    """Whole numbers in the proportion of ``weights``, ``copies`` in each group whose weights sum to 1.

    By largest remainder; of equals, the first.

    >>> apportioned(np.array([0.5, 0.3, 0.2, 1.0]), np.array([0, 0, 0, 1]), copies=4).tolist()
    [2, 1, 1, 4]
    """
    exact = copies * weights
    whole = np.floor(exact + 1e-9).astype(np.int64)
    n_groups = int(group.max(initial=-1)) + 1
    left = np.rint(np.bincount(group, exact, n_groups)) - np.bincount(group, whole, n_groups)
    order = np.lexsort((np.arange(len(group)), np.round(whole - exact, 9), group))
    first = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=n_groups))])[:-1]
    rank = np.arange(len(group)) - first[group[order]]
    whole[order] += rank < left[group[order]]
    return whole


def library() -> Any:
    """The package pycrfsuite; :class:`SettingsError` where it is not installed."""
    try:
        import pycrfsuite
    except ImportError:
        raise SettingsError("method 'crf-ma' needs python-crfsuite (pip install 'quorate[crf]')") from None
    return pycrfsuite
