"""Annotators by confusion matrices, one or one for each previous label: only the cells that occur are stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.crowd import AnnotatorPriors, Cells
from quorate.model.parts.annotators import AnnotatorPrior, Annotators, summed_by
from quorate.model.parts.arrays import check_arrays
from quorate.model.parts.dirichlet import (
    View,
    divergence,
    expected_log,
    kl_sparse,
    log_mean,
    not_below_zero,
    point_sparse,
)

Floats = NDArray[np.float64]

_CELLS = "annotator_cells"  # the array, in files, of the cells that occur


class _PriorMass(NamedTuple):
    """Where α0, and ε0 for the right label, lie in the rows of an annotator.

    ``holder [P, i]`` is the label in whose cell the mass of label i lies after ι: itself, or the one it stands for.
    ``held [P, i]`` is for how many labels a cell holds mass; for none, it is a structural zero.
    """

    holder: NDArray[np.int64]
    held: NDArray[np.int64]

    @classmethod
    def of(cls, holder: NDArray[np.int64]) -> Self:
        """From the holders."""
        held = np.zeros_like(holder)
        np.add.at(held, (np.arange(len(holder))[:, None], holder), 1)
        return cls(holder, held)

    def cells(
        self, previous: NDArray[np.int64], label: NDArray[np.int64], alpha0: float, epsilon0: Floats | float
    ) -> Floats:
        """``[G, J]`` Concentration, for each truth, of cells; ``epsilon0`` is the same for all or ``[G, 1]``."""
        right = np.where(self.holder[previous] == label[:, None], epsilon0, 0.0)
        return np.asarray(right + alpha0 * self.held[previous, label][:, None])

    def rows(self, previous: NDArray[np.int64], alpha0: float, epsilon0: Floats | float) -> Floats:
        """``[G, J]`` Σ over the labels of whole rows."""
        J = self.holder.shape[1]
        return np.asarray(np.zeros((len(previous), J)) + alpha0 * J + epsilon0)


class _Counted(NamedTuple):
    """Counts ``[G, J]`` of cells by their ascending keys, and of the rows ``[R, J]`` that these cells are of."""

    keys: NDArray[np.int64]
    counts: Floats
    rows: NDArray[np.int64]
    row_counts: Floats

    @classmethod
    def of(cls, keys: NDArray[np.int64], counts: Floats) -> Self:
        """From counts by key, of which every key occurs once."""
        rows, row_counts = summed_by(keys // counts.shape[1], counts)
        return cls(keys, counts, rows, row_counts)

    def found(self, keys: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """``[G, J]`` Counts of any cells, and of their rows; 0 where there are none."""
        return (
            _looked_up(keys, self.keys, self.counts),
            _looked_up(keys // self.counts.shape[1], self.rows, self.row_counts),
        )


@dataclass(frozen=True)
class _ByCells:
    """Dirichlets over labels, of which only the cells that occur are stored: the others keep their prior.

    ``counts`` is ``[G, J]`` for the cells ``keys`` (see :class:`Cells`), with a row (k, ι) of cells side by side. What
    keeps its prior cancels in the KL, so that memory and time grow with the labels that were given and not with K·J³.
    """

    prior: AnnotatorPrior
    n_annotators: int
    keys: NDArray[np.int64]
    counts: Floats
    mass: _PriorMass

    @classmethod
    def of(cls, prior: AnnotatorPrior, n_annotators: int) -> Self:
        """The model before any data."""
        nothing = np.zeros((0, len(prior.tagset.labels)))
        return cls(prior, n_annotators, np.zeros(0, np.int64), nothing, _PriorMass.of(cls._holders(prior)))

    @classmethod
    def size(cls, cells: Cells) -> int:
        """Of every cell a row."""
        return len(cells.label) * cells.n_labels

    @staticmethod
    def _holders(prior: AnnotatorPrior) -> NDArray[np.int64]:
        """``[P, J]`` Where the prior mass of each label lies."""
        raise NotImplementedError

    @staticmethod
    def told_apart(cells: Cells) -> tuple[Cells, NDArray[np.int64] | None]:
        """The cells as this model tells them apart, and which of these each cell is (``None``: they are the same)."""
        raise NotImplementedError

    @property
    def _view(self) -> View:
        """How a pass looks at the rows."""
        return self.prior.view

    @property
    def _shape(self) -> tuple[int, int]:
        """P and J."""
        P, J = self.mass.holder.shape
        return P, J

    def _priors(self, cells: Cells) -> Floats:
        """``[G, J]`` The prior of cells; of a source that abstains most of it is for ``O``, whatever is true."""
        prior, outside = self._priors_of_labels(cells), self.prior.tagset.outside
        if self.prior.of_each.coverage is None or outside is None:
            return prior
        marks = self.prior.marks(self.n_annotators + 1)[np.minimum(cells.annotator, self.n_annotators)]
        marks = np.where(self.mass.held[cells.previous, outside] > 0, marks, 1.0)[:, None]  # where O may follow
        of_outside = self._priors_of_labels(cells._replace(label=np.full_like(cells.label, outside)))
        of_outside = of_outside + (1 - marks) * (self._row_priors(cells.annotator, cells.previous) - of_outside)
        return np.where((cells.label == outside)[:, None], of_outside, marks * prior)

    def _priors_of_labels(self, cells: Cells) -> Floats:
        """``[G, J]`` The same, if an ``O`` of everybody were a label as any other."""
        return self.mass.cells(cells.previous, cells.label, self.prior.alpha0, self._epsilon0(cells.annotator))

    def _row_priors(self, annotator: NDArray[np.int64], previous: NDArray[np.int64]) -> Floats:
        """``[G, J]`` The same for whole rows."""
        return self.mass.rows(previous, self.prior.alpha0, self._epsilon0(annotator))

    def priors(self) -> tuple[Floats, NDArray[np.int64], Floats]:
        """``[G, J]`` The prior of the own cells, which row each is of, and the prior of these rows ``[R, J]``."""
        rows = self._counted.rows
        place = np.searchsorted(rows, self.keys // self._shape[1])
        return self._priors(self._cells), place, self._row_priors(*np.divmod(rows, self._shape[0]))

    def _epsilon0(self, annotator: NDArray[np.int64]) -> Floats | float:
        if self.prior.of_each.trust is None:
            return self.prior.epsilon0
        return self.prior.right(self.n_annotators + 1)[np.minimum(annotator, self.n_annotators), None]

    @cached_property
    def _cells(self) -> Cells:
        P, J = self._shape
        row, label = np.divmod(self.keys, J)
        return Cells(row // P, row % P, label, self.n_annotators, J, P)

    @cached_property
    def _counted(self) -> _Counted:
        return _Counted.of(self.keys, self.counts)

    @cached_property
    def _mean(self) -> _Counted:
        """What the annotators have on average, as one annotator's cells."""
        P, J = self._shape
        keys, totals = summed_by(self.keys % (P * J), self.counts)
        gave = len(np.unique(self.keys[self.counts.any(axis=1)] // (P * J)))
        return _Counted.of(keys, totals / max(gave, 1))

    def log_lik(self, cells: Cells, view: View | None = None) -> Floats:
        """ln p(label | truth): the cell's count and prior over its row's."""
        own, place = self.told_apart(cells)
        view = view or self._view
        if np.array_equal(own.keys, self.keys):
            rows = self._looked_at if view is self._view else self._viewed(view, self._cells)
        else:
            rows = self._viewed(view, own)
        return rows if place is None else rows[place]

    @cached_property
    def _looked_at(self) -> Floats:
        """``[G, J]`` The rows of the own cells as a pass looks at them."""
        return self._viewed(self._view, self._cells)

    def _viewed(self, view: View, cells: Cells) -> Floats:
        """``[G, J]`` The rows of any cells; a stranger has the crowd's mean counts."""
        P, J = self._shape
        out = np.empty((len(cells.label), J))
        for block in blocks(*out.shape):
            part = _part(cells, block)
            counts, row_counts = self._counted.found(part.keys)
            stranger = np.flatnonzero(part.annotator >= self.n_annotators)
            if len(stranger):
                counts[stranger], row_counts[stranger] = self._mean.found(part.keys[stranger] % (P * J))
            prior = self._priors(part)
            out[block] = view(prior + counts, self._row_priors(part.annotator, part.previous) + row_counts)
        return out

    def updated(self, cells: Cells, counts: Floats) -> Self:
        """With these counts of cells by truth."""
        own, place = self.told_apart(cells)
        if place is not None:
            _, counts = summed_by(place, counts)
        return replace(self, n_annotators=cells.n_annotators, keys=own.keys, counts=counts)

    def mixed(self, other: Self, own: float, others: float) -> Self:
        """With the cells of both."""
        keys = np.union1d(self.keys, other.keys)
        counts = np.zeros((len(keys), self.counts.shape[1]))
        counts[np.searchsorted(keys, self.keys)] += own * self.counts
        counts[np.searchsorted(keys, other.keys)] += others * other.counts
        return replace(self, keys=keys, counts=not_below_zero(counts))

    def changed(self, cells: Cells, counts: Floats, sign: float, source: Self) -> Self:
        """Their cells are as those of any others."""
        return self.mixed(source.updated(cells, counts), 1.0, sign)

    def grown(self, n_annotators: int, priors: AnnotatorPriors) -> Self:
        """New ones have no cells."""
        return replace(self, prior=self.prior._replace(of_each=priors), n_annotators=n_annotators)

    def kl(self) -> float:
        """Σ over the rows that occur."""
        return self._sum_over(kl_sparse)

    def _sum_over(self, term: Callable[[Floats, Floats, Floats, Floats], float]) -> float:
        """Σ of what cells and rows that occur give, each from its prior and its counts."""
        nothing = np.zeros(0)
        counted, (P, J) = self._counted, self._shape
        total = 0.0
        for block in blocks(len(counted.rows), J):
            total += term(
                nothing, nothing, self._row_priors(*np.divmod(counted.rows[block], P)), counted.row_counts[block]
            )
        for block in blocks(len(self.keys), J):
            total += term(self._priors(_part(self._cells, block)), self.counts[block], nothing, nothing)
        return total

    @property
    def matrix_shape(self) -> tuple[int, int, int]:
        """One for each previous label."""
        P, J = self._shape
        return P, J, J

    def collapsed(self) -> Annotators:
        """With the counts of all previous labels together, as they occurred."""
        return ConfusionMatrix.of(self.prior, self.n_annotators).updated(self._cells, self.counts)

    def matrix(self, annotator: int) -> Floats:
        """The rows' means, for every previous label."""
        P, J = self._shape
        previous, label = np.divmod(np.arange(P * J), J)
        cells = Cells(np.full(P * J, annotator), previous, label, self.n_annotators, J, P)
        return np.exp(self._viewed(log_mean, cells)).reshape(P, J, J).transpose(0, 2, 1)

    def cells_and_counts(self, labels: NDArray[np.int64]) -> tuple[Cells, Floats]:
        """The own cells, but for those after, or of, another label."""
        (P, J), left = self._shape, len(labels)
        number = np.full(J + 1, -1)
        number[labels] = np.arange(left)
        number[J] = left  # in the plain scheme the row after the last label is the start's
        previous, label = self._cells.previous if P == 1 else number[self._cells.previous], number[self._cells.label]
        kept = np.flatnonzero((previous >= 0) & (label >= 0))
        kept = kept[np.lexsort((label[kept], previous[kept], self._cells.annotator[kept]))]
        who, n_previous = self._cells.annotator[kept], 1 if P == 1 else P - J + left
        cells = Cells(who, previous[kept], label[kept], self.n_annotators, left, n_previous)
        return cells, self.counts[np.ix_(kept, labels)]

    def arrays(self) -> dict[str, Floats]:
        """Keys and counts."""
        return {_CELLS: self.keys.astype(np.float64), "annotators": self.counts}

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With counts from a file, in which only cells that occur have a row."""
        P, J = self._shape
        cells = arrays.get(_CELLS, np.zeros(0))
        check_arrays(arrays, {_CELLS: (cells.size,), "annotators": (cells.size, J)}, counts=True)
        if cells.size and not (cells[-1] < self.n_annotators * P * J and (np.diff(cells) >= 1).all()):
            raise ValueError(f"array {_CELLS!r} holds what is no cell of these annotators and labels")
        return replace(self, keys=cells.astype(np.int64), counts=arrays["annotators"])


@dataclass(frozen=True)
class ConfusionMatrix(_ByCells):
    """*CM*: p(label i | truth j), a Dirichlet a row. What an annotator said before makes no difference."""

    @staticmethod
    def _holders(prior: AnnotatorPrior) -> NDArray[np.int64]:
        return np.arange(len(prior.tagset.labels))[None]

    @staticmethod
    def told_apart(cells: Cells) -> tuple[Cells, NDArray[np.int64] | None]:
        """See above."""
        return cells.without_previous()

    def kl(self) -> float:
        """Σ of the rows' Dirichlets; of points, the prior density of those rows too that nothing is known of."""
        if not self.prior.point:
            return super().kl()
        J, n = self._shape[1], self.n_annotators
        row = np.full((n, J), self.prior.alpha0)  # of truth O, and those of the others, up to a permutation
        row[:, 0] += self.prior.right(n)
        others, marks = row.copy(), self.prior.marks(n)
        for each, outside in ((row, 0), (others, -1)):
            at_outside = each[:, outside] + (1 - marks) * (each.sum(axis=1) - each[:, outside])
            each *= marks[:, None]
            each[:, outside] = at_outside
        rows = divergence(row, row, point=True) + (J - 1) * divergence(others, others, point=True)
        return rows + self._sum_over(point_sparse)

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With counts from a file; those of older files are ``[K, j, i]``, with every cell in them."""
        if _CELLS in arrays:
            return super().restored(arrays)
        J = self._shape[1]
        check_arrays(arrays, {"annotators": (self.n_annotators, J, J)}, counts=True)
        table = arrays["annotators"].transpose(0, 2, 1).reshape(-1, J)
        keys = np.flatnonzero(table.any(axis=1))
        return replace(self, keys=keys, counts=table[keys])


@dataclass(frozen=True)
class Sequential(_ByCells):
    """*seq*: p(label i | truth j, own previous label ι), a Dirichlet for each (j, ι).

    It is always a distribution: a point for each of so many rows would be all noise.
    """

    @staticmethod
    def _holders(prior: AnnotatorPrior) -> NDArray[np.int64]:
        return prior_holders(prior)

    @staticmethod
    def told_apart(cells: Cells) -> tuple[Cells, NDArray[np.int64] | None]:
        """See above."""
        return cells, None

    @property
    def _view(self) -> View:
        return expected_log


_BLOCK = 1 << 18


def blocks(n_rows: int, width: int) -> list[slice]:
    """Rows in blocks, so that what is computed on the way takes little memory beside the counts themselves."""
    size = max(1, _BLOCK // width)
    return [slice(first, first + size) for first in range(0, n_rows, size)]


def _part(cells: Cells, block: slice) -> Cells:
    return cells._replace(annotator=cells.annotator[block], previous=cells.previous[block], label=cells.label[block])


def _looked_up(wanted: NDArray[np.int64], keys: NDArray[np.int64], values: Floats) -> Floats:
    """Rows of ``values`` for the wanted keys (``keys`` ascend), zeros where there is none."""
    out = np.zeros((len(wanted), values.shape[1]))
    if len(keys):
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        found = keys[place] == wanted
        out[found] = values[place[found]]
    return out


def prior_holders(prior: AnnotatorPrior) -> NDArray[np.int64]:
    """``[P, J]`` For *seq*, the label in whose cell the prior mass of each label lies after ι: what repair makes of it.

    >>> from quorate.corpus.tags import Scheme, TagSet
    >>> tagset = TagSet.of_types(Scheme.BIO, ["X"])
    >>> prior_holders(AnnotatorPrior(tagset, 1, 10))
    array([[0, 1, 1],
           [0, 1, 2],
           [0, 1, 2]])
    """
    tagset = prior.tagset
    J = len(tagset.labels)
    table = np.tile(np.arange(J), (J + (tagset.outside is None), 1))
    if not prior.forbid or tagset.outside is None:
        return table
    for before, label in np.argwhere(~tagset.allowed):
        table[before, label] = tagset.stands_for(before, label)
    return table
