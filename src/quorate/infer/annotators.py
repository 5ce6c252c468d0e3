"""Models of an annotator's mistakes, from one number to a confusion matrix for each previous label.

Each is an immutable part of the loop. It gives every cell (k, ι, i) of a corpus a row of J log-likelihoods of that
label given each truth, takes rows of expected counts back, and knows its KL. An annotator who was not there in fitting
(number K or above) behaves as prior plus the crowd's mean counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from quorate.encode import Cells
from quorate.infer.dirichlet import View, divergence, expected_log, kl_sparse, log_mean, point_sparse, view_of
from quorate.tags import Scheme, TagSet

__all__ = [
    "Accuracy",
    "AnnotatorPrior",
    "Annotators",
    "ClassVector",
    "ConfusionMatrix",
    "Sequential",
    "Spammer",
    "blocks",
    "prior_holders",
    "without_previous",
]

Floats = NDArray[np.float64]


class AnnotatorPrior(NamedTuple):
    """α0 for every outcome, ε0 more for the right one, and for *seq* the labels that may follow one another.

    ``moved``: the prior mass of a label that the scheme forbids goes to the label it stands for, rather than away.
    ``habit0``: for *spam*, the prior count of every label in a guess (α0 unless given). ``point``: annotators are
    estimated by a point (EM), not by a distribution (VB). ``trust``: what ε0 is multiplied by for each annotator.
    """

    tagset: TagSet
    alpha0: float
    epsilon0: float
    moved: bool = True
    forbid: bool = True
    habit0: float | None = None
    point: bool = False
    trust: tuple[float, ...] | None = None

    @property
    def view(self) -> View:
        """How a pass looks at the annotators."""
        return view_of(self.point)

    @property
    def right_wrong(self) -> Floats:
        """``[2]`` Beta(α0+ε0, α0)."""
        return np.array([self.alpha0 + self.epsilon0, self.alpha0])

    def extra(self, n: int) -> Floats:
        """``[n]`` What each of n annotators has above ε0 by their trust; who comes after the known ones has nothing."""
        more = np.zeros(n)
        if self.trust is not None:
            known = self.epsilon0 * (np.array(self.trust[:n]) - 1.0)
            more[: len(known)] = known
        return more

    def right_wrong_of(self, n: int) -> Floats:
        """``[n, 2]`` Beta(α0+ε0, α0) of each of n annotators, by their trust."""
        table = np.tile(self.right_wrong, (n, 1))
        table[:, 0] += self.extra(n)
        return table


class Annotators(Protocol):
    """What the loop asks of a model of the annotators."""

    @property
    def prior(self) -> AnnotatorPrior:
        """What was believed before any data."""

    @classmethod
    def of(cls, prior: AnnotatorPrior, n_annotators: int) -> Self:
        """The model before any data."""

    def log_lik(self, cells: Cells, view: View | None = None) -> Floats:
        """``[G, J]`` ln p(label of the cell | truth j), as ``view`` looks at it (``None``: as a pass does)."""

    def updated(self, cells: Cells, counts: Floats) -> Self:
        """The same model with the posterior that the counts ``[G, J]`` give."""

    def mixed(self, other: Self, own: float, others: float) -> Self:
        """With ``own`` times these counts and ``others`` times those of another model of its kind, none below 0."""

    def kl(self) -> float:
        """Σ over annotators of KL(posterior ‖ prior)."""

    def matrix(self, annotator: int) -> Floats:
        """``[P, J, J]`` (seq) or ``[1, J, J]``: posterior mean of p(label i | previous ι, truth j) at ``[ι, j, i]``."""

    def arrays(self) -> dict[str, Floats]:
        """The posterior, for a file."""

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """The same model with a posterior from a file."""


def _own_label(cells: Cells) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index of the entry, in every cell's row, where the truth is the label that was given."""
    return np.arange(len(cells.label)), cells.label


def _with_stranger(counts: Floats) -> Floats:
    """One more annotator, who behaves as the others do on average."""
    mean = counts.mean(axis=0, keepdims=True) if len(counts) else np.zeros((1, *counts.shape[1:]))
    return np.concatenate([counts, mean])


def _known(cells: Cells, n_annotators: int) -> NDArray[np.int64]:
    return np.minimum(cells.annotator, n_annotators)


def _mixed(counts: Floats, others_counts: Floats, own: float, others: float) -> Floats:
    """A sum of counts; where something was taken out, rounding may leave less than nothing."""
    return np.maximum(own * counts + others * others_counts, 0.0)


def _by_annotator(cells: Cells, values: Floats) -> Floats:
    """Σ of the values ``[G, …]`` of each annotator's cells."""
    out = np.zeros((cells.n_annotators, *values.shape[1:]))
    np.add.at(out, cells.annotator, values)
    return out


@dataclass(frozen=True)
class Accuracy:
    """*acc*: right with probability π, else any other label alike. ``counts[k]`` is (right, wrong)."""

    prior: AnnotatorPrior
    counts: Floats

    @classmethod
    def of(cls, prior: AnnotatorPrior, n_annotators: int) -> Self:
        """The model before any data."""
        return cls(prior, np.zeros((n_annotators, 2)))

    def log_lik(self, cells: Cells, view: View | None = None) -> Floats:
        """ln π, or ln (1−π)/(J−1)."""
        counts = _with_stranger(self.counts)
        right, wrong = (view or self.prior.view)(self.prior.right_wrong_of(len(counts)) + counts).T
        who = _known(cells, len(self.counts))
        J = cells.n_labels
        table = np.repeat((wrong[who] - np.log(J - 1))[:, None], J, axis=1)
        table[_own_label(cells)] = right[who]
        return table

    def updated(self, cells: Cells, counts: Floats) -> Self:
        """Right where the truth is the own label."""
        right = counts[_own_label(cells)]
        return replace(self, counts=_by_annotator(cells, np.stack([right, counts.sum(axis=1) - right], axis=1)))

    def mixed(self, other: Self, own: float, others: float) -> Self:
        """With counts of both."""
        return replace(self, counts=_mixed(self.counts, other.counts, own, others))

    def kl(self) -> float:
        """Σ of Betas."""
        prior = self.prior.right_wrong_of(len(self.counts))
        return divergence(prior + self.counts, prior, point=self.prior.point)

    def matrix(self, annotator: int) -> Floats:
        """π on the diagonal, the rest spread evenly."""
        return _matrix_from_rows(self, annotator)

    def arrays(self) -> dict[str, Floats]:
        """The counts."""
        return {"annotators": self.counts}

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With counts from a file."""
        return replace(self, counts=arrays["annotators"])


@dataclass(frozen=True)
class Spammer:
    """*spam* (MACE): knows the truth with probability π, else guesses from ξ. ``knew[k]`` is (knew, guessed)."""

    prior: AnnotatorPrior
    knew: Floats
    habits: Floats

    @classmethod
    def of(cls, prior: AnnotatorPrior, n_annotators: int) -> Self:
        """The model before any data."""
        return cls(prior, np.zeros((n_annotators, 2)), np.zeros((n_annotators, len(prior.tagset.labels))))

    @property
    def _habit0(self) -> float:
        return self.prior.alpha0 if self.prior.habit0 is None else self.prior.habit0

    def _logs(self, view: View | None) -> tuple[Floats, Floats]:
        """``[K+1, 2]`` ln (π, 1−π), and ``[K+1, J]`` ln ξ."""
        view = view or self.prior.view
        knew = _with_stranger(self.knew)
        return view(self.prior.right_wrong_of(len(knew)) + knew), view(self._habit0 + _with_stranger(self.habits))

    def log_lik(self, cells: Cells, view: View | None = None) -> Floats:
        """ln (π·[i=j] + (1−π)·ξ_i), the hidden bit summed out."""
        knew, habit = self._logs(view)
        who = _known(cells, len(self.knew))
        guess = knew[who, 1] + habit[who, cells.label]
        table = np.repeat(guess[:, None], cells.n_labels, axis=1)
        table[_own_label(cells)] = np.logaddexp(knew[who, 0], guess)
        return table

    def updated(self, cells: Cells, counts: Floats) -> Self:
        """Splits each right label into known and guessed by the current parameters."""
        knew, habit = self._logs(None)
        guess = knew[cells.annotator, 1] + habit[cells.annotator, cells.label]
        known = counts[_own_label(cells)] * np.exp(
            knew[cells.annotator, 0] - np.logaddexp(knew[cells.annotator, 0], guess)
        )
        guessed = counts.sum(axis=1) - known
        habits = np.zeros_like(self.habits)
        np.add.at(habits, (cells.annotator, cells.label), guessed)
        return replace(self, knew=_by_annotator(cells, np.stack([known, guessed], axis=1)), habits=habits)

    def mixed(self, other: Self, own: float, others: float) -> Self:
        """With counts of both, of either kind."""
        return replace(
            self,
            knew=_mixed(self.knew, other.knew, own, others),
            habits=_mixed(self.habits, other.habits, own, others),
        )

    def kl(self) -> float:
        """Betas and Dirichlets."""
        prior = self.prior.right_wrong_of(len(self.knew))
        habit0 = np.full(self.habits.shape[1], self._habit0)
        return divergence(prior + self.knew, prior, point=self.prior.point) + divergence(
            habit0 + self.habits, habit0, point=self.prior.point
        )

    def matrix(self, annotator: int) -> Floats:
        """E[π]·[i=j] + E[1−π]·E[ξ_i]."""
        return _matrix_from_rows(self, annotator)

    def arrays(self) -> dict[str, Floats]:
        """Both sets of counts."""
        return {"annotators": self.knew, "habits": self.habits}

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With counts from a file."""
        return replace(self, knew=arrays["annotators"], habits=arrays["habits"])


@dataclass(frozen=True)
class ClassVector:
    """*CV*: an accuracy for each true label. ``counts[k, j]`` is (right, wrong)."""

    prior: AnnotatorPrior
    counts: Floats

    @classmethod
    def of(cls, prior: AnnotatorPrior, n_annotators: int) -> Self:
        """The model before any data."""
        return cls(prior, np.zeros((n_annotators, len(prior.tagset.labels), 2)))

    def log_lik(self, cells: Cells, view: View | None = None) -> Floats:
        """ln π_j, or ln (1−π_j)/(J−1)."""
        counts = _with_stranger(self.counts)
        logs = (view or self.prior.view)(self.prior.right_wrong_of(len(counts))[:, None] + counts)
        who = _known(cells, len(self.counts))
        table: Floats = logs[who, :, 1] - np.log(cells.n_labels - 1)
        table[_own_label(cells)] = logs[who, cells.label, 0]
        return table

    def updated(self, cells: Cells, counts: Floats) -> Self:
        """Right and wrong for each truth."""
        right = np.zeros_like(counts)
        right[_own_label(cells)] = counts[_own_label(cells)]
        return replace(self, counts=_by_annotator(cells, np.stack([right, counts - right], axis=2)))

    def mixed(self, other: Self, own: float, others: float) -> Self:
        """With counts of both."""
        return replace(self, counts=_mixed(self.counts, other.counts, own, others))

    def kl(self) -> float:
        """Σ of Betas."""
        prior = self.prior.right_wrong_of(len(self.counts))[:, None]
        return divergence(prior + self.counts, prior, point=self.prior.point)

    def matrix(self, annotator: int) -> Floats:
        """π_j on the diagonal, the rest of each row spread evenly."""
        return _matrix_from_rows(self, annotator)

    def arrays(self) -> dict[str, Floats]:
        """The counts."""
        return {"annotators": self.counts}

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With counts from a file."""
        return replace(self, counts=arrays["annotators"])


class _PriorMass(NamedTuple):
    """Where α0, and ε0 for the right label, lie in the rows of an annotator.

    ``holder [P, i]`` is the label in whose cell the mass of label i lies after ι: itself, the one it stands for, or −1
    where it is left out. ``held [P, i]`` is for how many labels a cell holds mass; for none, it is a structural zero.
    """

    holder: NDArray[np.int64]
    held: NDArray[np.int64]

    @classmethod
    def of(cls, holder: NDArray[np.int64]) -> Self:
        """From the holders."""
        held = np.zeros_like(holder)
        previous, label = np.nonzero(holder >= 0)
        np.add.at(held, (previous, holder[previous, label]), 1)
        return cls(holder, held)

    def cells(
        self, previous: NDArray[np.int64], label: NDArray[np.int64], alpha0: float, epsilon0: Floats | float
    ) -> Floats:
        """``[G, J]`` Concentration, for each truth, of cells; ``epsilon0`` is the same for all or ``[G, 1]``."""
        right = np.where(self.holder[previous] == label[:, None], epsilon0, 0.0)
        right += alpha0 * self.held[previous, label][:, None]
        return right

    def rows(self, previous: NDArray[np.int64], alpha0: float, epsilon0: Floats | float) -> Floats:
        """``[G, J]`` Σ over the labels of whole rows."""
        there = self.holder >= 0
        return np.asarray(alpha0 * there.sum(axis=1)[previous][:, None] + epsilon0 * there[previous])


class _Counted(NamedTuple):
    """Counts ``[G, J]`` of cells by their ascending keys, and of the rows ``[R, J]`` that these cells are of."""

    keys: NDArray[np.int64]
    counts: Floats
    rows: NDArray[np.int64]
    row_counts: Floats

    @classmethod
    def of(cls, keys: NDArray[np.int64], counts: Floats) -> Self:
        """From counts by key, of which every key occurs once."""
        rows, row_counts = _summed(keys // counts.shape[1], counts)
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

    @staticmethod
    def _holders(prior: AnnotatorPrior) -> NDArray[np.int64]:
        """``[P, J]`` Where the prior mass of each label lies."""
        raise NotImplementedError

    @staticmethod
    def _own(cells: Cells) -> tuple[Cells, NDArray[np.int64] | None]:
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
        """``[G, J]`` The prior of cells, by each one's trust."""
        return self.mass.cells(cells.previous, cells.label, self.prior.alpha0, self._epsilon0(cells.annotator))

    def _row_priors(self, annotator: NDArray[np.int64], previous: NDArray[np.int64]) -> Floats:
        """``[G, J]`` The same for whole rows."""
        return self.mass.rows(previous, self.prior.alpha0, self._epsilon0(annotator))

    def _epsilon0(self, annotator: NDArray[np.int64]) -> Floats | float:
        if self.prior.trust is None:
            return self.prior.epsilon0
        extra = self.prior.extra(self.n_annotators + 1)[np.minimum(annotator, self.n_annotators), None]
        return np.asarray(self.prior.epsilon0 + extra)

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
        keys, totals = _summed(self.keys % (P * J), self.counts)
        return _Counted.of(keys, totals / max(self.n_annotators, 1))

    def log_lik(self, cells: Cells, view: View | None = None) -> Floats:
        """ln p(label | truth): the cell's count and prior over its row's."""
        own, place = self._own(cells)
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
        own, place = self._own(cells)
        if place is not None:
            _, counts = _summed(place, counts)
        return replace(self, n_annotators=cells.n_annotators, keys=own.keys, counts=counts)

    def mixed(self, other: Self, own: float, others: float) -> Self:
        """With the cells of both."""
        keys = np.union1d(self.keys, other.keys)
        counts = np.zeros((len(keys), self.counts.shape[1]))
        counts[np.searchsorted(keys, self.keys)] += own * self.counts
        counts[np.searchsorted(keys, other.keys)] += others * other.counts
        return replace(self, keys=keys, counts=np.maximum(counts, 0.0))

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

    def matrix(self, annotator: int) -> Floats:
        """The rows' means, for every previous label."""
        P, J = self._shape
        previous, label = np.divmod(np.arange(P * J), J)
        cells = Cells(np.full(P * J, annotator), previous, label, self.n_annotators, J, P)
        return np.exp(self._viewed(log_mean, cells)).reshape(P, J, J).transpose(0, 2, 1)

    def arrays(self) -> dict[str, Floats]:
        """Keys and counts."""
        return {"annotator_cells": self.keys.astype(np.float64), "annotators": self.counts}

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With counts from a file."""
        return replace(self, keys=arrays["annotator_cells"].astype(np.int64), counts=arrays["annotators"])


@dataclass(frozen=True)
class ConfusionMatrix(_ByCells):
    """*CM*: p(label i | truth j), a Dirichlet a row. What an annotator said before makes no difference."""

    @staticmethod
    def _holders(prior: AnnotatorPrior) -> NDArray[np.int64]:
        return np.arange(len(prior.tagset.labels))[None]

    @staticmethod
    def _own(cells: Cells) -> tuple[Cells, NDArray[np.int64] | None]:
        return without_previous(cells)

    def kl(self) -> float:
        """Σ of the rows' Dirichlets; of points, the prior density of those rows too that nothing is known of."""
        if not self.prior.point:
            return super().kl()
        J = self._shape[1]
        row = np.full((self.n_annotators, J), self.prior.alpha0)  # of any truth, but for the order
        row[:, 0] += self.prior.epsilon0 + self.prior.extra(self.n_annotators)
        return J * divergence(row, row, point=True) + self._sum_over(point_sparse)

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With counts from a file; those of older files are ``[K, j, i]``, with every cell in them."""
        if "annotator_cells" in arrays:
            return super().restored(arrays)
        table = arrays["annotators"].transpose(0, 2, 1).reshape(-1, self._shape[1])
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
    def _own(cells: Cells) -> tuple[Cells, NDArray[np.int64] | None]:
        return cells, None

    @property
    def _view(self) -> View:
        return expected_log


def without_previous(cells: Cells) -> tuple[Cells, NDArray[np.int64] | None]:
    """The cells with the previous label left out, each once, and which of them each is (``None``: each is another)."""
    keys = cells.annotator * cells.n_labels + cells.label
    place = None
    if not np.all(keys[1:] > keys[:-1]):
        keys, place = np.unique(keys, return_inverse=True)
    annotator, label = np.divmod(keys, cells.n_labels)
    return cells._replace(annotator=annotator, previous=np.zeros_like(label), label=label, n_previous=1), place


_BLOCK = 1 << 18


def blocks(n_rows: int, width: int) -> list[slice]:
    """Rows in blocks, so that what is computed on the way takes little memory beside the counts themselves."""
    size = max(1, _BLOCK // width)
    return [slice(first, first + size) for first in range(0, n_rows, size)]


def _part(cells: Cells, block: slice) -> Cells:
    return cells._replace(annotator=cells.annotator[block], previous=cells.previous[block], label=cells.label[block])


def _summed(keys: NDArray[np.int64], values: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The keys that occur, ascending, and the sum of the rows of ``values`` that each has."""
    if not len(keys):
        return keys, values
    if not np.all(keys[1:] >= keys[:-1]):
        order = np.argsort(keys, kind="stable")
        keys, values = keys[order], values[order]
    first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    return keys[first], np.add.reduceat(values, first) if len(first) < len(keys) else values


def _looked_up(wanted: NDArray[np.int64], keys: NDArray[np.int64], values: Floats) -> Floats:
    """Rows of ``values`` for the wanted keys (``keys`` ascend), zeros where there is none."""
    out = np.zeros((len(wanted), values.shape[1]))
    if len(keys):
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        found = keys[place] == wanted
        out[found] = values[place[found]]
    return out


def _matrix_from_rows(model: Annotators, annotator: int) -> Floats:
    """The matrix of a model that does not look at the previous label, from its rows for every label."""
    J = len(model.prior.tagset.labels)
    cells = Cells(np.full(J, annotator), np.zeros(J, np.int64), np.arange(J), annotator + 1, J, J)
    return np.exp(model.log_lik(cells, log_mean)).T[None]


def prior_holders(prior: AnnotatorPrior) -> NDArray[np.int64]:
    """``[P, J]`` For *seq*, the label in whose cell the prior mass of each label lies after ι; −1: it is left out.

    >>> tagset = TagSet.of_types(Scheme.BIO, ["X"])
    >>> prior_holders(AnnotatorPrior(tagset, 1, 10, moved=True))
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
        table[before, label] = _stands_for(tagset, before, label) if prior.moved else -1
    return table


def _stands_for(tagset: TagSet, before: int, label: int) -> int:
    """The allowed label that comes nearest to a forbidden one after ``before``.

    Outside a span, a continuation stands for an opening (``I-x`` for ``B-x``; in BIOES ``E-x`` for ``S-x``). Inside a
    span of type y the span goes on (``I-x`` stands for ``I-y``); in BIOES what ends or is outside stands for ``E-y``.
    """
    prefix, kind = tagset.parts[label]
    before_prefix, before_kind = tagset.parts[before]
    if before_prefix in ("B", "I"):
        goes_on = tagset.scheme is Scheme.BIO or prefix in ("B", "I")
        return tagset.index[f"I-{before_kind}" if goes_on else f"E-{before_kind}"]
    return tagset.index[f"B-{kind}" if prefix == "I" else f"S-{kind}"]
