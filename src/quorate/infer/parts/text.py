"""Models of the text given the truth. Now: which word stands there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from quorate.infer.parts.dirichlet import View, divergence, expected_log, kl_sparse, not_below_zero, view_of

__all__ = ["Words"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Words:
    """ρ_j ~ Dir(κ0) over the vocabulary, x ~ Cat(ρ_t). ``counts`` is ``[V, J]``.

    A word that was never seen in fitting gives no evidence: it has no row.
    """

    kappa0: float
    counts: Floats
    point: bool = False

    @classmethod
    def of(cls, n_words: int, n_labels: int, kappa0: float, *, point: bool = False) -> Self:
        """The model before any data; with ``point``, ρ is estimated by a point (EM)."""
        return cls(kappa0, np.zeros((n_words, n_labels)), point)

    @property
    def _totals(self) -> Floats:
        return np.asarray(self.counts.sum(axis=0) + self.kappa0 * len(self.counts))

    @cached_property
    def _expected(self) -> Floats:
        return expected_log(self.kappa0 + self.counts, self._totals)

    def log_lik(self, view: View | None = None) -> Floats:
        """``[V, J]`` ln ρ_j of every word, as ``view`` looks at the posterior (``None``: as a pass does)."""
        view = view or view_of(self.point)
        if view is expected_log:
            return self._expected
        return view(self.kappa0 + self.counts, self._totals)

    def updated(self, counts: Floats) -> Self:
        """With these counts of words by label."""
        return replace(self, counts=counts)

    def grown(self, n_words: int) -> Self:
        """With room for words that come after those it has met."""
        more = np.zeros((n_words - len(self.counts), self.counts.shape[1]))
        return replace(self, counts=np.concatenate([self.counts, more]))

    def mixed(self, words: NDArray[np.int64], counts: Floats, own: float, others: float) -> Self:
        """With ``own`` times these counts and ``others`` times those of some ``words``, none below 0."""
        by_word = own * self.counts
        by_word[words] = not_below_zero(by_word[words] + others * counts)
        return replace(self, counts=by_word)

    def kl(self) -> float:
        """Σ over labels."""
        V, J = self.counts.shape
        if self.point:
            return divergence((self.kappa0 + self.counts).T, np.full((J, V), self.kappa0), point=True)
        return kl_sparse(np.array(self.kappa0), self.counts, np.array(self.kappa0 * V), self.counts.sum(axis=0))

    def arrays(self) -> dict[str, Floats]:
        """The counts."""
        return {"words": self.counts}

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With counts from a file."""
        return replace(self, counts=arrays["words"])
