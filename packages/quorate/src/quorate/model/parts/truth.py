"""Models of the true labels: a Markov chain, labels that stand alone, or all labels alike.

Each is an immutable part of the loop: it gives a :class:`Chain`, takes expected counts, and knows its KL.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import TagSet
from quorate.model.parts.dirichlet import View, divergence, view_of

Floats = NDArray[np.float64]


class Chain(NamedTuple):
    """Logarithms for the recursion: first label ``[J]``, label to label ``[J, J]``, and 0 or −inf for the last ``[J]``.

    Where ``coupled`` is false every row of ``trans`` is ``start``, and an engine may take each token by itself.
    """

    start: Floats
    trans: Floats
    end: Floats
    coupled: bool


class LabelCounts(NamedTuple):
    """Expected counts of true labels: of first tokens ``[J]``, of neighbours ``[J, J]``, of all tokens ``[J]``."""

    first: Floats
    pairs: Floats
    all: Floats


class Truth(Protocol):
    """What the loop asks of a model of the truth."""

    @classmethod
    def of(cls, tagset: TagSet, gamma0: float, *, point: bool = False) -> Self:
        """The model before any data."""

    def chain(self, view: View | None = None) -> Chain:
        """Log-probabilities under the current posterior, as ``view`` looks at it (``None``: as a pass does)."""

    def updated(self, counts: LabelCounts) -> Self:
        """The same model with the posterior that these counts give."""

    def mixed(self, counts: LabelCounts, own: float, others: float) -> Self:
        """With ``own`` times what was counted and ``others`` times these counts."""

    def changed(self, counts: LabelCounts, sign: float) -> Self:
        """With the counts of some documents added (1), or taken out (−1)."""

    def kl(self) -> float:
        """KL(posterior ‖ prior)."""

    def arrays(self) -> dict[str, Floats]:
        """The posterior, for a file."""

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """The same model with a posterior from a file."""


@dataclass(frozen=True)
class _Dirichlets(ABC):
    """What models share whose probabilities have Dirichlets: their concentrations before and after data."""

    prior: Floats
    posterior: Floats
    point: bool

    @abstractmethod
    def updated(self, counts: LabelCounts) -> Self:
        """Prior and counts."""

    def mixed(self, counts: LabelCounts, own: float, others: float) -> Self:
        """Prior, and counts of both."""
        mine, theirs = self.posterior - self.prior, self.updated(counts).posterior - self.prior
        return replace(self, posterior=self.prior + own * mine + others * theirs)

    def changed(self, counts: LabelCounts, sign: float) -> Self:
        """The prior is in it once."""
        return replace(self, posterior=self.posterior + sign * (self.updated(counts).posterior - self.prior))

    def kl(self) -> float:
        """Σ over all Dirichlets."""
        return divergence(self.posterior, self.prior, point=self.point)


@dataclass(frozen=True)
class Markov(_Dirichlets):
    """T_j ~ Dir(γ_j). Forbidden transitions are left out of the Dirichlets.

    Row ``start_row`` also stands before the first token: the row of ``O``, or in the plain scheme one of its own.
    """

    start_row: int
    end: Floats

    @classmethod
    def of(cls, tagset: TagSet, gamma0: float, *, point: bool = False) -> Self:
        """The model before any data: γ0 for every transition that the scheme allows."""
        prior = gamma0 * tagset.allowed.astype(np.float64)
        start_row = tagset.outside
        if start_row is None:
            start_row = len(prior)
            prior = np.vstack([prior, np.full(len(prior), gamma0)])
        return cls(prior, prior, point, start_row, log_mask(tagset.allowed_last))

    def chain(self, view: View | None = None) -> Chain:
        """Every row of T, and the one before the first token."""
        rows = (view or view_of(self.point))(self.posterior)
        return Chain(rows[self.start_row], rows[: rows.shape[1]], self.end, True)

    def updated(self, counts: LabelCounts) -> Self:
        """Prior and counts; what the scheme forbids stays out."""
        posterior = self.prior.copy()
        posterior[: len(counts.pairs)] += counts.pairs
        posterior[self.start_row] += counts.first
        return replace(self, posterior=np.where(self.prior > 0, posterior, 0.0))

    def arrays(self) -> dict[str, Floats]:
        """The concentrations."""
        return {"transitions": self.posterior}

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With concentrations from a file."""
        return replace(self, posterior=arrays["transitions"])


@dataclass(frozen=True)
class Independent(_Dirichlets):
    """t ~ Cat(p), p ~ Dir(γ): every token by itself."""

    end: Floats

    @classmethod
    def of(cls, tagset: TagSet, gamma0: float, *, point: bool = False) -> Self:
        """The model before any data."""
        prior = np.full(len(tagset.labels), gamma0)
        return cls(prior, prior, point, np.zeros(len(prior)))

    def chain(self, view: View | None = None) -> Chain:
        """The same row everywhere."""
        row = (view or view_of(self.point))(self.posterior)
        return Chain(row, np.tile(row, (len(row), 1)), self.end, False)

    def updated(self, counts: LabelCounts) -> Self:
        """Prior and counts of all tokens."""
        return replace(self, posterior=self.prior + counts.all)

    def arrays(self) -> dict[str, Floats]:
        """The concentrations."""
        return {"labels": self.posterior}

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With concentrations from a file."""
        return replace(self, posterior=arrays["labels"])


@dataclass(frozen=True)
class Uniform:
    """p fixed at 1/J: nothing is learned."""

    n_labels: int

    @classmethod
    def of(cls, tagset: TagSet, gamma0: float, *, point: bool = False) -> Self:
        """The model; nothing of it is estimated."""
        return cls(len(tagset.labels))

    def chain(self, view: View | None = None) -> Chain:
        """1/J everywhere."""
        J = self.n_labels
        return Chain(np.full(J, -np.log(J)), np.full((J, J), -np.log(J)), np.zeros(J), False)

    def updated(self, counts: LabelCounts) -> Self:
        """The same."""
        return self

    def mixed(self, counts: LabelCounts, own: float, others: float) -> Self:
        """The same."""
        return self

    def changed(self, counts: LabelCounts, sign: float) -> Self:
        """The same."""
        return self

    def kl(self) -> float:
        """Nothing is learned, so nothing differs from the prior."""
        return 0.0

    def arrays(self) -> dict[str, Floats]:
        """Nothing."""
        return {}

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """The same."""
        return self


def log_mask(mask: NDArray[np.bool_]) -> Floats:
    """0 where something is allowed, −inf where not."""
    return np.where(mask, 0.0, -np.inf)
