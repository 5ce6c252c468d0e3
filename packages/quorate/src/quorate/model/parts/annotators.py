"""Models of an annotator's mistakes: what each must offer, and those with a few numbers an annotator.

Each is an immutable part of the loop. It gives every cell (k, ι, i) of a corpus a row of J log-likelihoods of that
label given each truth, takes rows of expected counts back, and knows its KL. An annotator who was not there in fitting
(number K or above) behaves as prior plus the crowd's mean counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import TagSet
from quorate.crowd.crowd import AnnotatorPriors, Cells
from quorate.errors import SettingsError
from quorate.model.parts.arrays import check_arrays
from quorate.model.parts.dirichlet import View, divergence, log_mean, not_below_zero, view_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_LEAST_MARKS = 0.1  # share of prior counts that marks of a source that abstains have: with less, one rules out the rest


class AnnotatorPrior(NamedTuple):
    """α0 for every outcome, ε0 more for the right one, and for *seq* the labels that may follow one another.

    ``guess_prior``: for *spam*, the prior count of every label in a guess (α0 unless given). ``point``: annotators are
    estimated by a point (EM), not by a distribution (VB). ``of_each``: what is assumed of each annotator.
    """

    tagset: TagSet
    alpha0: float
    epsilon0: float
    forbid: bool = True
    guess_prior: float | None = None
    point: bool = False
    of_each: AnnotatorPriors = AnnotatorPriors()

    @property
    def view(self) -> View:
        """How a pass looks at the annotators."""
        return view_of(self.point)

    def right(self, n: int) -> Floats:
        """``[n]`` ε0 of each of n annotators, by their trust."""
        return self.epsilon0 * self.of_each.trust_of(n)

    def marks(self, n: int) -> Floats:
        """``[n]`` The share of the prior counts of all marks that each of n annotators has; the rest is for ``O``."""
        return np.where(self.of_each.abstains(n), np.maximum(self.of_each.coverage_of(n), _LEAST_MARKS), 1.0)

    def right_wrong_of(self, n: int) -> Floats:
        """``[n, 2]`` Beta(α0+ε0, α0) of each of n annotators, by their trust."""
        return np.stack([self.alpha0 + self.right(n), np.full(n, self.alpha0)], axis=1)


class Annotators(Protocol):
    """What the loop asks of a model of the annotators."""

    @property
    def prior(self) -> AnnotatorPrior:
        """What is assumed before any data."""

    @classmethod
    def of(cls, prior: AnnotatorPrior, n_annotators: int) -> Self:
        """The model before any data."""

    @classmethod
    def size(cls, cells: Cells) -> int:
        """How many numbers the model keeps of annotators who said this, at most."""

    def log_lik(self, cells: Cells, view: View | None = None) -> Floats:
        """``[G, J]`` ln p(label of the cell | truth j), as ``view`` looks at it (``None``: as a pass does)."""

    def updated(self, cells: Cells, counts: Floats) -> Self:
        """The same model with the posterior that the counts ``[G, J]`` give."""

    def mixed(self, other: Self, own: float, others: float) -> Self:
        """With ``own`` times these counts and ``others`` times those of another model of its kind, none below 0."""

    def changed(self, cells: Cells, counts: Floats, sign: float, source: Self) -> Self:
        """With the counts ``[G, J]`` of some documents added (1), or taken out (−1), as ``source`` splits them."""

    def grown(self, n_annotators: int, priors: AnnotatorPriors) -> Self:
        """With room for annotators who come after those it has met, and the ``priors`` of everybody."""

    def kl(self) -> float:
        """Σ over annotators of KL(posterior ‖ prior)."""

    @property
    def matrix_shape(self) -> tuple[int, int, int]:
        """That of :meth:`matrix`."""

    def collapsed(self) -> Annotators:
        """A model that does not look at the previous label, of the same counts: its matrix is small."""

    def matrix(self, annotator: int) -> Floats:
        """``[P, J, J]`` (seq) or ``[1, J, J]``: posterior mean of p(label i | previous ι, truth j) at ``[ι, j, i]``."""

    def cells_and_counts(self, labels: Integers) -> tuple[Cells, Floats]:
        """Cells and their counts ``[G, J']`` from which a model of J' of the labels learns what this one did of them.

        ``labels`` are their numbers here, in the order of their numbers there. :class:`SettingsError` if a model of
        this kind does not learn from counts alone.
        """

    def arrays(self) -> dict[str, Floats]:
        """The posterior, for a file."""

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """The same model with a posterior from a file; ``ValueError`` if it is none of these annotators and labels."""


def _own_label(cells: Cells) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index of the entry, in every cell's row, where the truth is the label that was given."""
    return np.arange(len(cells.label)), cells.label


def _with_stranger(counts: Floats) -> Floats:
    """One more annotator, who behaves as those who gave labels do on average."""
    gave = max(int(counts.any(axis=tuple(range(1, counts.ndim))).sum()), 1)
    mean = counts.sum(axis=0, keepdims=True) / gave
    return np.concatenate([counts, mean])


def _with_room(counts: Floats, n_annotators: int) -> Floats:
    """With rows of zeros for those who come after the others."""
    return np.concatenate([counts, np.zeros((n_annotators - len(counts), *counts.shape[1:]))])


def _known(cells: Cells, n_annotators: int) -> NDArray[np.int64]:
    return np.minimum(cells.annotator, n_annotators)


def _check_shapes(own: dict[str, Floats], arrays: dict[str, Floats]) -> None:
    """``ValueError`` unless the arrays of a file are counts, as many as the model has."""
    check_arrays(arrays, {name: array.shape for name, array in own.items()}, counts=True)


def _by_annotator(cells: Cells, values: Floats) -> Floats:
    """Σ of the values ``[G, …]`` of each annotator's cells."""
    out = np.zeros((cells.n_annotators, *values.shape[1:]))
    who, sums = summed_by(cells.annotator, values)
    out[who] = sums
    return out


@dataclass(frozen=True)
class _RightWrong(ABC):
    """What models share that count right and wrong labels of each annotator, whatever stood before."""

    prior: AnnotatorPrior
    counts: Floats

    @abstractmethod
    def updated(self, cells: Cells, counts: Floats) -> Self:
        """With the counts of right and wrong that are expected."""

    def mixed(self, other: Self, own: float, others: float) -> Self:
        """With counts of both."""
        return replace(self, counts=not_below_zero(own * self.counts + others * other.counts))

    def changed(self, cells: Cells, counts: Floats, sign: float, source: Self) -> Self:
        """Their counts are as those of any others."""
        return self.mixed(source.updated(cells, counts), 1.0, sign)

    def grown(self, n_annotators: int, priors: AnnotatorPriors) -> Self:
        """New ones have no counts."""
        return replace(self, prior=self.prior._replace(of_each=priors), counts=_with_room(self.counts, n_annotators))

    @property
    def matrix_shape(self) -> tuple[int, int, int]:
        """One for all previous labels."""
        return _one_matrix(self.prior)

    def collapsed(self) -> Self:
        """It does not look at them."""
        return self

    def arrays(self) -> dict[str, Floats]:
        """The counts."""
        return {"annotators": self.counts}

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With counts from a file."""
        _check_shapes(self.arrays(), arrays)
        return replace(self, counts=arrays["annotators"])


@dataclass(frozen=True)
class Accuracy(_RightWrong):
    """*acc*: right with probability π, else any other label alike. ``counts[k]`` is (right, wrong)."""

    @classmethod
    def of(cls, prior: AnnotatorPrior, n_annotators: int) -> Self:
        """The model before any data."""
        return cls(prior, np.zeros((n_annotators, 2)))

    @classmethod
    def size(cls, cells: Cells) -> int:
        """Of every annotator."""
        return 2 * cells.n_annotators

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

    def cells_and_counts(self, labels: Integers) -> tuple[Cells, Floats]:
        """Right and wrong, whatever the truth."""
        return _right_wrong_cells(self.counts[:, None], len(labels))


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
    def _guess_prior(self) -> float:
        return self.prior.alpha0 if self.prior.guess_prior is None else self.prior.guess_prior

    def _logs(self, view: View | None) -> tuple[Floats, Floats]:
        """``[K+1, 2]`` ln (π, 1−π), and ``[K+1, J]`` ln ξ."""
        view = view or self.prior.view
        knew = _with_stranger(self.knew)
        return view(self.prior.right_wrong_of(len(knew)) + knew), view(self._guess_prior + _with_stranger(self.habits))

    @classmethod
    def size(cls, cells: Cells) -> int:
        """Of every annotator."""
        return (cells.n_labels + 2) * cells.n_annotators

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
        habits = np.zeros((cells.n_annotators, self.habits.shape[1]))
        np.add.at(habits, (cells.annotator, cells.label), guessed)
        return replace(self, knew=_by_annotator(cells, np.stack([known, guessed], axis=1)), habits=habits)

    def mixed(self, other: Self, own: float, others: float) -> Self:
        """With counts of both, of either kind."""
        return replace(
            self,
            knew=not_below_zero(own * self.knew + others * other.knew),
            habits=not_below_zero(own * self.habits + others * other.habits),
        )

    def changed(self, cells: Cells, counts: Floats, sign: float, source: Self) -> Self:
        """Their counts are as those of any others."""
        return self.mixed(source.updated(cells, counts), 1.0, sign)

    def grown(self, n_annotators: int, priors: AnnotatorPriors) -> Self:
        """New ones have no counts of either kind."""
        knew, habits = _with_room(self.knew, n_annotators), _with_room(self.habits, n_annotators)
        return replace(self, prior=self.prior._replace(of_each=priors), knew=knew, habits=habits)

    def kl(self) -> float:
        """Betas and Dirichlets."""
        prior = self.prior.right_wrong_of(len(self.knew))
        guess_prior = np.full(self.habits.shape[1], self._guess_prior)
        return divergence(prior + self.knew, prior, point=self.prior.point) + divergence(
            guess_prior + self.habits, guess_prior, point=self.prior.point
        )

    @property
    def matrix_shape(self) -> tuple[int, int, int]:
        """One for all previous labels."""
        return _one_matrix(self.prior)

    def collapsed(self) -> Annotators:
        """It does not look at them."""
        return self

    def matrix(self, annotator: int) -> Floats:
        """E[π]·[i=j] + E[1−π]·E[ξ_i]."""
        return _matrix_from_rows(self, annotator)

    def cells_and_counts(self, labels: Integers) -> tuple[Cells, Floats]:
        """What was known and what was guessed is no longer told apart in counts."""
        raise SettingsError("an annotator model 'spam' cannot be a history (fit it with acc, cv, cm or seq)")

    def arrays(self) -> dict[str, Floats]:
        """Both sets of counts."""
        return {"annotators": self.knew, "habits": self.habits}

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With counts from a file."""
        _check_shapes(self.arrays(), arrays)
        return replace(self, knew=arrays["annotators"], habits=arrays["habits"])


@dataclass(frozen=True)
class ClassVector(_RightWrong):
    """*CV*: an accuracy for each true label. ``counts[k, j]`` is (right, wrong)."""

    @classmethod
    def of(cls, prior: AnnotatorPrior, n_annotators: int) -> Self:
        """The model before any data."""
        return cls(prior, np.zeros((n_annotators, len(prior.tagset.labels), 2)))

    @classmethod
    def size(cls, cells: Cells) -> int:
        """Of every annotator."""
        return 2 * cells.n_labels * cells.n_annotators

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
        right = np.zeros((cells.n_annotators, cells.n_labels))
        np.add.at(right, (cells.annotator, cells.label), counts[_own_label(cells)])
        wrong = counts.copy()
        wrong[_own_label(cells)] = 0.0
        return replace(self, counts=np.stack([right, _by_annotator(cells, wrong)], axis=2))

    def kl(self) -> float:
        """Σ of Betas."""
        prior = self.prior.right_wrong_of(len(self.counts))[:, None]
        return divergence(prior + self.counts, prior, point=self.prior.point)

    def matrix(self, annotator: int) -> Floats:
        """π_j on the diagonal, the rest of each row spread evenly."""
        return _matrix_from_rows(self, annotator)

    def cells_and_counts(self, labels: Integers) -> tuple[Cells, Floats]:
        """Right and wrong for each truth."""
        return _right_wrong_cells(self.counts[:, labels], len(labels))


def summed_by(keys: NDArray[np.int64], values: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The keys that occur, ascending, and the sum of the rows of ``values`` that each has."""
    if not len(keys):
        return keys, values
    if not np.all(keys[1:] >= keys[:-1]):
        order = np.argsort(keys, kind="stable")
        keys, values = keys[order], values[order]
    first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    return keys[first], np.add.reduceat(values, first) if len(first) < len(keys) else values


def _right_wrong_cells(right_wrong: Floats, n_labels: int) -> tuple[Cells, Floats]:
    """Cells with the counts ``[K, T, 2]`` of right and wrong labels of truths 0 to T − 1.

    All wrong labels are alike, so that any of them will do: it is the one after the truth.
    """
    annotator, truth, wrong = np.nonzero(right_wrong)
    keys, place = np.unique(annotator * n_labels + (truth + wrong) % n_labels, return_inverse=True)
    counts = np.zeros((len(keys), n_labels))
    np.add.at(counts, (place, truth), right_wrong[annotator, truth, wrong])
    who, label = np.divmod(keys, n_labels)
    return Cells(who, np.zeros_like(label), label, len(right_wrong), n_labels, 1), counts


def _one_matrix(prior: AnnotatorPrior) -> tuple[int, int, int]:
    J = len(prior.tagset.labels)
    return 1, J, J


def _matrix_from_rows(model: Annotators, annotator: int) -> Floats:
    """The matrix of a model that does not look at the previous label, from its rows for every label."""
    J = len(model.prior.tagset.labels)
    cells = Cells(np.full(J, annotator), np.zeros(J, np.int64), np.arange(J), annotator + 1, J, J)
    return np.exp(model.log_lik(cells, log_mean)).T[None]
