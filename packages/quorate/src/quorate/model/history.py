"""What was learned of annotators in an earlier project, as prior of the next.

Expected counts of the earlier fit are taken as labels that were seen once more: they add to the counts of every pass,
and what they say of the parameters, Σ counts·E ln A, goes from the KL. Up to a constant, which is taken off, that is
the KL to the prior with those counts in it; so the bound keeps its meaning and never falls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import TagSet
from quorate.crowd.crowd import AnnotatorPriors, Cells
from quorate.errors import SettingsError
from quorate.formats.notes import some
from quorate.model.parts.annotators import AnnotatorPrior, Annotators
from quorate.model.parts.arrays import check_arrays
from quorate.model.parts.dirichlet import View
from quorate.model.settings import AnnotatorModel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Arrays = dict[str, Floats]

_CELLS, _COUNTS = "history_cells", "history"


@dataclass(frozen=True)
class Past:
    """The annotators of an earlier fit: the kind of their model, the tags that it knew, their names, the model."""

    model: AnnotatorModel
    tagset: TagSet
    names: tuple[str, ...]
    annotators: Annotators

    @property
    def known_before(self) -> set[str]:
        """Those of whom that fit had a history itself."""
        history: Cells | None = getattr(self.annotators, "cells", None)
        return set() if history is None else {self.names[k] for k in history.annotator.tolist()}


def merged_cells(one: Cells, keys: Integers) -> tuple[Cells, Integers, Integers]:
    """Cells of both, and where the first ones and the others are among them."""
    both = np.union1d(one.keys, keys)
    row, label = np.divmod(both, one.n_labels)
    annotator, previous = np.divmod(row, one.n_previous)
    cells = one._replace(annotator=annotator, previous=previous, label=label)
    return cells, np.searchsorted(both, one.keys), np.searchsorted(both, keys)


@dataclass(frozen=True)
class WithHistory:
    """A model of annotators to whose counts those of an earlier project are added."""

    inner: Annotators
    cells: Cells
    counts: Floats
    constant: float = 0.0

    @classmethod
    def of(cls, prior: AnnotatorPrior, n_annotators: int) -> Self:
        """Not to be made from a prior alone."""
        raise NotImplementedError

    @classmethod
    def around(cls, inner: Annotators, cells: Cells, counts: Floats) -> Self:
        """The model before any data of this project."""
        start = cls(inner.updated(cells, counts), cells, counts)
        return replace(start, constant=start.kl())

    @classmethod
    def size(cls, cells: Cells) -> int:
        """Of every cell a row of the earlier counts, beside what the model within keeps."""
        return len(cells.label) * cells.n_labels

    @property
    def prior(self) -> AnnotatorPrior:
        """What is assumed before either project."""
        return self.inner.prior

    def log_lik(self, cells: Cells, view: View | None = None) -> Floats:
        """As the model within."""
        return self.inner.log_lik(cells, view)

    def updated(self, cells: Cells, counts: Floats) -> Self:
        """With these counts and the earlier ones."""
        both, mine, past = merged_cells(cells, self.cells.keys)
        total = np.zeros((len(both.label), counts.shape[1]))
        total[mine] += counts
        total[past] += self.counts
        return replace(self, inner=self.inner.updated(both, total))

    def mixed(self, other: Self, own: float, others: float) -> Self:
        """As the models within."""
        return replace(self, inner=self.inner.mixed(other.inner, own, others))

    def changed(self, cells: Cells, counts: Floats, sign: float, source: Self) -> Self:
        """The history stays in it, whatever is added or taken out."""
        return replace(self, inner=self.inner.changed(cells, counts, sign, source.inner))

    def grown(self, n_annotators: int, priors: AnnotatorPriors) -> Self:
        """The model within; nothing is known yet of new ones."""
        cells = self.cells._replace(n_annotators=n_annotators)
        return replace(self, inner=self.inner.grown(n_annotators, priors), cells=cells)

    def kl(self) -> float:
        """KL to the prior that holds the earlier counts."""
        logs = self.inner.log_lik(self.cells)
        said = float((self.counts[self.counts > 0] * logs[self.counts > 0]).sum())
        return self.inner.kl() - said - self.constant

    @property
    def matrix_shape(self) -> tuple[int, int, int]:
        """As the model within."""
        return self.inner.matrix_shape

    def collapsed(self) -> Annotators:
        """As the model within."""
        return self.inner.collapsed()

    def matrix(self, annotator: int) -> Floats:
        """As the model within."""
        return self.inner.matrix(annotator)

    def cells_and_counts(self, labels: Integers) -> tuple[Cells, Floats]:
        """Of the model within: what is learned in both projects."""
        return self.inner.cells_and_counts(labels)

    def arrays(self) -> dict[str, Floats]:
        """Of the model within, what is learned in both projects; and what was in the earlier one."""
        return self.inner.arrays() | {_CELLS: self.cells.keys.astype(np.float64), _COUNTS: self.counts}

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With a posterior from a file."""
        return replace(self, inner=self.inner.restored(arrays))

    @cached_property
    def labels(self) -> float:
        """How many labels the history counts for."""
        return float(self.counts.sum())


def restored_history(
    annotators: Annotators, blank: Annotators, n_annotators: int, n_previous: int, arrays: Arrays
) -> Annotators:
    """Annotators from a file with the history that is in it too, if any; ``blank`` are they before any data."""
    if _COUNTS not in arrays:
        return annotators
    J, counts, keys = annotators.matrix_shape[2], arrays[_COUNTS], arrays.get(_CELLS, np.zeros(0))
    check_arrays(arrays, {_CELLS: (keys.size,), _COUNTS: (keys.size, J)}, counts=True)
    row, label = np.divmod(keys.astype(np.int64), J)
    who, previous = np.divmod(row, n_previous)
    if not (np.diff(keys) >= 1).all() or (who >= n_annotators).any():
        raise ValueError(f"array {_CELLS!r} holds what is no cell of these annotators and labels")
    past = WithHistory.around(blank, Cells(who, previous, label, n_annotators, J, n_previous), counts)
    return replace(past, inner=annotators)


def past_cells(
    past: Past, model: AnnotatorModel, tagset: TagSet, names: tuple[str, ...], n_previous: int
) -> tuple[Cells, Floats]:
    """The counts of those who are in both projects, as cells of this one; one clear error if they do not fit."""
    if past.model is not model:
        raise SettingsError(
            f"the history is of annotator model {past.model.value!r}, not {model.value!r} (give --annotator)"
        )
    missing = [label for label in tagset.labels if label not in past.tagset.index]
    if past.tagset.scheme is not tagset.scheme or missing:
        raise SettingsError(
            f"the history is a model of other labels: it knows {some(list(past.tagset.labels), 9)} "
            f"({past.tagset.scheme.value}), the input has {some(list(tagset.labels), 9)} ({tagset.scheme.value})"
        )
    if not set(names) & set(past.names):
        raise SettingsError("nobody in the input is in the history (annotators are matched by name)")
    cells, counts = past.annotators.cells_and_counts(np.array([past.tagset.index[name] for name in tagset.labels]))
    place = {name: number for number, name in enumerate(names)}
    who = np.array([place.get(name, -1) for name in past.names])[cells.annotator]
    kept = np.flatnonzero(who >= 0)
    kept = kept[np.argsort(who[kept], kind="stable")]  # within each they are in order
    here = Cells(who[kept], cells.previous[kept], cells.label[kept], len(names), cells.n_labels, n_previous)
    return here, counts[kept]
