"""What is known about each annotator after a fit: how much they gave, how right they are, how much they tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from quorate.encode import Encoded
from quorate.infer.annotators import Annotators

__all__ = ["AnnotatorSummaries", "AnnotatorSummary", "summarise"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AnnotatorSummary:
    """One annotator.

    ``accuracy`` is the expected share of their labels that are the true ones, nan for someone without a label.
    ``informativeness`` is the mutual information, in bits per token, of their label and the truth given their previous
    label: a spammer has 0, however often they happen to be right. ``matrix[ι, j, i]`` is the posterior mean of
    p(label i | previous label ι, truth j), with a single ι for models that do not look at it.
    """

    name: str
    labels: float
    accuracy: float
    informativeness: float
    _model: Annotators = field(repr=False)
    _number: int = field(repr=False)

    @property
    def matrix(self) -> Floats:
        """``[P, J, J]`` or ``[1, J, J]`` Posterior mean of p(label i | previous label ι, truth j)."""
        return self._model.matrix(self._number)


class AnnotatorSummaries(Sequence[AnnotatorSummary]):
    """Everyone, in the order of their names; by position or by name."""

    def __init__(self, names: Sequence[str], table: Floats, model: Annotators) -> None:
        """``table`` is ``[3, K]``: labels given, accuracy, informativeness."""
        self.names = tuple(names)
        self.table = table
        self.labels, self.accuracy, self.informativeness = table
        self._model = model
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[AnnotatorSummary]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, key: int | str) -> AnnotatorSummary:  # type: ignore[override]
        number = self._numbers[key] if isinstance(key, str) else range(len(self))[key]
        return AnnotatorSummary(
            self.names[number],
            float(self.labels[number]),
            float(self.accuracy[number]),
            float(self.informativeness[number]),
            self._model,
            number,
        )

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    def __repr__(self) -> str:
        return f"<{len(self)} annotators>"


def summarise(encoded: Encoded, counts: Floats, model: Annotators) -> AnnotatorSummaries:
    """Summaries from the counts of cells ``[G, J]`` under the final posterior, and the fitted annotator model."""
    names, cells = encoded.annotators, encoded.cells
    K, J, P = len(names), cells.n_labels, cells.n_previous
    labels = np.bincount(cells.annotator, encoded.cell_weights(), minlength=K).astype(np.float64)
    right = np.bincount(cells.annotator, counts[np.arange(len(counts)), cells.label], minlength=K)
    accuracy = np.divide(right, labels, out=np.full(K, np.nan), where=labels > 0)
    informativeness = np.zeros(K)
    first = np.searchsorted(cells.annotator, np.arange(K + 1))
    for k in range(K):
        own = slice(first[k], first[k + 1])
        if not labels[k] > 0:
            continue
        by_previous = np.zeros((P, J))
        np.add.at(by_previous, cells.previous[own], counts[own])
        matrix = model.matrix(k)
        if len(matrix) == 1:
            by_previous = by_previous.sum(axis=0, keepdims=True)
        used = np.flatnonzero(by_previous.sum(axis=1) > 0)
        informativeness[k] = _mutual_information(by_previous[used] / labels[k], matrix[used])
    return AnnotatorSummaries(names, np.stack([labels, accuracy, informativeness]), model)


def _mutual_information(truths: Floats, matrices: Floats) -> float:
    """Σ over ι of p(ι)·MI(truth; label | ι) in bits, from p(ι, j) ``[ι, j]`` and p(i | ι, j) ``[ι, j, i]``."""
    joint = truths[:, :, None] * matrices
    labels = joint.sum(axis=1, keepdims=True) / truths.sum(axis=1)[:, None, None]
    ratio = np.divide(matrices, labels, out=np.ones_like(joint), where=joint > 0)
    return float((joint * np.log2(ratio)).sum())
