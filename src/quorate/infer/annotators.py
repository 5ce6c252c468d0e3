"""Models of an annotator's mistakes, from one number to a confusion matrix for each previous label.

Each is an immutable part of the loop. It gives every cell (k, ι, i) of a corpus a row of J log-likelihoods of that
label given each truth, takes rows of expected counts back, and knows its KL. An annotator who was not there in fitting
(number K or above) behaves as prior plus the crowd's mean counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from quorate.encode import Cells
from quorate.infer.dirichlet import View, divergence, expected_log, kl_sparse, log_mean, view_of
from quorate.tags import Scheme, TagSet

__all__ = ["Accuracy", "AnnotatorPrior", "Annotators", "ClassVector", "ConfusionMatrix", "Sequential", "Spammer"]

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


@dataclass(frozen=True)
class ConfusionMatrix:
    """*CM*: p(label i | truth j), a Dirichlet a row. ``counts`` is ``[K, j, i]``."""

    prior: AnnotatorPrior
    counts: Floats

    @classmethod
    def of(cls, prior: AnnotatorPrior, n_annotators: int) -> Self:
        """The model before any data."""
        J = len(prior.tagset.labels)
        return cls(prior, np.zeros((n_annotators, J, J)))

    def _prior(self, n: int) -> Floats:
        """``[n, j, i]`` Concentrations of each of n annotators."""
        right = np.eye(len(self.prior.tagset.labels))
        return self.prior.alpha0 + self.prior.epsilon0 * right + self.prior.extra(n)[:, None, None] * right

    def log_lik(self, cells: Cells, view: View | None = None) -> Floats:
        """The column of the label, over truths."""
        counts = _with_stranger(self.counts)
        logs = (view or self.prior.view)(self._prior(len(counts)) + counts)
        return logs[_known(cells, len(self.counts)), :, cells.label]

    def updated(self, cells: Cells, counts: Floats) -> Self:
        """Counts by truth and label, whatever the label before."""
        by_label = np.zeros_like(self.counts)  # [K, i, j]
        np.add.at(by_label, (cells.annotator, cells.label), counts)
        return replace(self, counts=by_label.transpose(0, 2, 1))

    def kl(self) -> float:
        """Σ of the rows' Dirichlets."""
        prior = self._prior(len(self.counts))
        return divergence(prior + self.counts, prior, point=self.prior.point)

    def matrix(self, annotator: int) -> Floats:
        """The rows' means."""
        counts = _with_stranger(self.counts)
        return np.exp(log_mean((self._prior(len(counts)) + counts)[annotator]))[None]

    def arrays(self) -> dict[str, Floats]:
        """The counts."""
        return {"annotators": self.counts}

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With counts from a file."""
        return replace(self, counts=arrays["annotators"])


@dataclass(frozen=True)
class Sequential:
    """*seq*: p(label i | truth j, own previous label ι), a Dirichlet for each (j, ι).

    It is always a distribution: a point for each of so many rows would be all noise. Only cells that occur are stored:
    ``counts`` is ``[G, J]`` for the cells ``keys`` (see :class:`Cells`), with a row (k, ι) of cells side by side. The
    others keep their prior and cancel in the KL.
    """

    prior: AnnotatorPrior
    n_annotators: int
    keys: NDArray[np.int64]
    counts: Floats

    @classmethod
    def of(cls, prior: AnnotatorPrior, n_annotators: int) -> Self:
        """The model before any data."""
        return cls(prior, n_annotators, np.zeros(0, np.int64), np.zeros((0, len(prior.tagset.labels))))

    @cached_property
    def _prior(self) -> Floats:
        """``[P, i, j]``: label before truth, so that a cell's row is contiguous."""
        return np.ascontiguousarray(sequential_prior(self.prior).transpose(0, 2, 1))

    @cached_property
    def _row_prior(self) -> Floats:
        """``[P, j]`` Σ over the labels of a row."""
        return np.asarray(self._prior.sum(axis=1))

    @cached_property
    def _bonus(self) -> Floats:
        """``[P, i, j]`` What one more count of ε0 adds to the prior, which is linear in it."""
        one = self.prior._replace(alpha0=0.0, epsilon0=1.0)
        return np.ascontiguousarray(sequential_prior(one).transpose(0, 2, 1))

    def _priors(self, annotator: NDArray[np.int64], previous: NDArray[np.int64], label: NDArray[np.int64]) -> Floats:
        """``[G, J]`` The prior of cells: everybody's, and what each one's trust adds."""
        common = self._prior[previous, label]
        if self.prior.trust is None:
            return common
        return np.asarray(common + self._extra(annotator) * self._bonus[previous, label])

    def _row_priors(self, annotator: NDArray[np.int64], previous: NDArray[np.int64]) -> Floats:
        """``[G, J]`` The same for whole rows."""
        common = self._row_prior[previous]
        if self.prior.trust is None:
            return common
        return np.asarray(common + self._extra(annotator) * self._bonus.sum(axis=1)[previous])

    def _extra(self, annotator: NDArray[np.int64]) -> Floats:
        return self.prior.extra(self.n_annotators + 1)[np.minimum(annotator, self.n_annotators), None]

    @cached_property
    def _cells(self) -> Cells:
        P, J = len(self._prior), len(self.prior.tagset.labels)
        row, label = np.divmod(self.keys, J)
        return Cells(row // P, row % P, label, self.n_annotators, J, P)

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """Number k·P + ι of every row that occurs, ascending."""
        return np.unique(self.keys // len(self.prior.tagset.labels))

    @cached_property
    def _row_of_cell(self) -> NDArray[np.int64]:
        return np.searchsorted(self._rows, self.keys // len(self.prior.tagset.labels))

    @cached_property
    def _row_counts(self) -> Floats:
        """``[rows, J]`` Σ over the labels of a row, by truth."""
        if not len(self.keys):
            return np.zeros((0, self.counts.shape[1]))
        first = np.searchsorted(self._row_of_cell, np.arange(len(self._rows)))
        return np.add.reduceat(self.counts, first)

    def log_lik(self, cells: Cells, view: View | None = None) -> Floats:
        """ln p(label | truth, previous label): the cell's count and prior over its row's."""
        own = np.array_equal(cells.keys, self.keys)
        if own and view in (None, expected_log):
            return self._expected
        return self._viewed(view or expected_log, cells, own=own)

    @cached_property
    def _expected(self) -> Floats:
        """``[G, J]`` E ln p of the own cells: the likelihood of a pass, and in its KL."""
        return self._viewed(expected_log, self._cells, own=True)

    def _viewed(self, view: View, cells: Cells, *, own: bool) -> Floats:
        """``[G, J]`` The rows of the own cells, or of any others."""
        out = np.empty((len(cells.label), cells.n_labels))
        for block in blocks(*out.shape):
            part = _part(cells, block)
            if own:
                counts, row_counts = self.counts[block], self._row_counts[self._row_of_cell[block]]
            else:
                counts, row_counts = self._found(part)
            out[block] = view(
                self._priors(part.annotator, part.previous, part.label) + counts,
                self._row_priors(part.annotator, part.previous) + row_counts,
            )
        return out

    def _found(self, cells: Cells) -> tuple[Floats, Floats]:
        """``[G, J]`` Counts of the given cells, and of their rows; a stranger has the crowd's means."""
        counts = _looked_up(cells.keys, self.keys, self.counts)
        row_counts = _looked_up(cells.keys // cells.n_labels, self._rows, self._row_counts)
        stranger = np.flatnonzero(cells.annotator >= self.n_annotators)
        if len(stranger):
            mean = self._mean_counts
            counts[stranger] = mean[cells.previous[stranger], cells.label[stranger]]
            row_counts[stranger] = mean.sum(axis=1)[cells.previous[stranger]]
        return counts, row_counts

    @cached_property
    def _mean_counts(self) -> Floats:
        """``[P, i, j]`` What the annotators have on average."""
        total = np.zeros_like(self._prior)
        np.add.at(total, (self._cells.previous, self._cells.label), self.counts)
        return total / max(self.n_annotators, 1)

    def updated(self, cells: Cells, counts: Floats) -> Self:
        """With these counts of cells by truth."""
        return replace(self, n_annotators=cells.n_annotators, keys=cells.keys, counts=counts)

    def kl(self) -> float:
        """Σ over the rows that occur."""
        nothing = np.zeros(0)
        J = len(self.prior.tagset.labels)
        total = 0.0
        for block in blocks(len(self._rows), J):
            row_prior = self._row_priors(*np.divmod(self._rows[block], len(self._prior)))
            total += kl_sparse(nothing, nothing, row_prior, self._row_counts[block])
        for block in blocks(len(self.keys), J):
            cells = _part(self._cells, block)
            prior = self._priors(cells.annotator, cells.previous, cells.label)
            total += kl_sparse(prior, self.counts[block], nothing, nothing)
        return total

    def matrix(self, annotator: int) -> Floats:
        """The rows' means, for every previous label."""
        P, J = len(self._prior), len(self.prior.tagset.labels)
        previous, label = np.divmod(np.arange(P * J), J)
        cells = Cells(np.full(P * J, annotator), previous, label, self.n_annotators, J, P)
        return np.exp(self.log_lik(cells, log_mean)).reshape(P, J, J).transpose(0, 2, 1)

    def arrays(self) -> dict[str, Floats]:
        """Keys and counts."""
        return {"annotator_cells": self.keys.astype(np.float64), "annotators": self.counts}

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With counts from a file."""
        return replace(self, keys=arrays["annotator_cells"].astype(np.int64), counts=arrays["annotators"])


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


def _matrix_from_rows(model: Annotators, annotator: int) -> Floats:
    """The matrix of a model that does not look at the previous label, from its rows for every label."""
    J = len(model.prior.tagset.labels)
    cells = Cells(np.full(J, annotator), np.zeros(J, np.int64), np.arange(J), annotator + 1, J, J)
    return np.exp(model.log_lik(cells, log_mean)).T[None]


def sequential_prior(prior: AnnotatorPrior) -> Floats:
    """``[ι, j, i]`` Concentration of label i when the truth is j and the annotator's own previous label ι.

    >>> tagset = TagSet.of_types(Scheme.BIO, ["X"])
    >>> sequential_prior(AnnotatorPrior(tagset, 1, 10, moved=True))[0]
    array([[11.,  2.,  0.],
           [ 1., 12.,  0.],
           [ 1., 12.,  0.]])
    """
    tagset = prior.tagset
    J = len(tagset.labels)
    P = J + (tagset.outside is None)
    table = np.broadcast_to(prior.alpha0 + prior.epsilon0 * np.eye(J), (P, J, J)).copy()
    if not prior.forbid or tagset.outside is None:
        return table
    for before in range(J):
        for label in np.flatnonzero(~tagset.allowed[before]):
            if prior.moved:
                table[before, :, _stands_for(tagset, before, int(label))] += table[before, :, label]
            table[before, :, label] = 0.0
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
