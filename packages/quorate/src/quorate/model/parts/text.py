"""Models of the text given the truth. Now: how the word that stands there is written, and which it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from quorate.model.parts.dirichlet import View, divergence, expected_log, kl_sparse, not_below_zero, view_of

Floats = NDArray[np.float64]

SHAPE_PRIOR = 1.0
"""The prior count of every shape: before any data, all distributions over shapes are alike."""


class Shapes(NamedTuple):
    """``of_word [V]`` How each word is written: one of ``number`` shapes. With one shape, only words count."""

    of_word: NDArray[np.int8]
    number: int

    @classmethod
    def none(cls, n_words: int) -> Self:
        """All words are written alike."""
        return cls(np.zeros(n_words, np.int8), 1)

    def sizes(self) -> Floats:
        """``[S]`` How many words have each shape."""
        return np.bincount(self.of_word, minlength=self.number).astype(np.float64)

    def sums(self, counts: Floats) -> Floats:
        """``[S, J]`` Counts of words, added up by shape."""
        columns = [np.bincount(self.of_word, column, self.number) for column in counts.T]
        return np.stack(columns, axis=1) if columns else np.zeros((self.number, 0))


@dataclass(frozen=True)
class Words:
    """A word is drawn in two steps: its shape ~ Cat(σ_t), and the word among those of this shape ~ Cat(ρ_t,shape).

    σ_j ~ Dir(1) over shapes, ρ_j,s ~ Dir(κ0) over the words of shape s. ``counts`` is ``[V, J]``; those of shapes are
    their sums. A word that was never seen in fitting gives no evidence: it has no row.
    """

    kappa0: float
    counts: Floats
    shapes: Shapes
    point: bool = False

    @classmethod
    def of(
        cls, n_words: int, n_labels: int, kappa0: float, *, shapes: Shapes | None = None, point: bool = False
    ) -> Self:
        """The model before any data; with ``point``, σ and ρ are estimated by points (EM).

        >>> Words.of(5, 3, 0.3).counts.shape
        (5, 3)
        """
        return cls(kappa0, np.zeros((n_words, n_labels)), shapes or Shapes.none(n_words), point)

    @cached_property
    def _by_shape(self) -> Floats:
        return self.shapes.sums(self.counts)

    @cached_property
    def _expected(self) -> Floats:
        return self._looked_at(expected_log, slice(None))

    def log_lik(self, view: View | None = None) -> Floats:
        """``[V, J]`` The log probability of every word, as ``view`` looks at the posterior (``None``: as a pass does).

        >>> shapes = Shapes(np.array([0, 0, 1], np.int8), 2)
        >>> counts = np.array([[3.0], [1.0], [4.0]])
        >>> from quorate.model.parts.dirichlet import log_mean
        >>> np.exp(Words(1.0, counts, shapes).log_lik(log_mean)).ravel().round(3)
        array([0.333, 0.167, 0.5  ])
        """
        view = view or view_of(self.point)
        return self._expected if view is expected_log else self._looked_at(view, slice(None))

    def log_lik_of(self, words: NDArray[np.int64]) -> Floats:
        """Some rows of what a pass reads: a vocabulary is long."""
        return self._looked_at(view_of(self.point), words)

    def _looked_at(self, view: View, words: NDArray[np.int64] | slice) -> Floats:
        """ln σ(shape) + ln ρ(word), regrouped so that what is of shapes is worked out once for each shape."""
        by_shape, of_words = self._by_shape, self.kappa0 * self.shapes.sizes()[:, None]
        everything = by_shape.sum(axis=0) + SHAPE_PRIOR * self.shapes.number
        of_shape = view(SHAPE_PRIOR + by_shape, of_words + by_shape)
        return np.asarray(view(self.kappa0 + self.counts[words], everything) + of_shape[self.shapes.of_word[words]])

    def updated(self, counts: Floats) -> Self:
        """With these counts of words by label."""
        return replace(self, counts=counts)

    def grown(self, shapes: Shapes) -> Self:
        """With room for words that come after those it has met; ``shapes`` are those of all."""
        more = np.zeros((len(shapes.of_word) - len(self.counts), self.counts.shape[1]))
        return replace(self, counts=np.concatenate([self.counts, more]), shapes=shapes)

    def mixed(self, words: NDArray[np.int64], counts: Floats, own: float, others: float) -> Self:
        """With ``own`` times these counts and ``others`` times those of some ``words``, none below 0."""
        by_word = own * self.counts
        by_word[words] = not_below_zero(by_word[words] + others * counts)
        return replace(self, counts=by_word)

    def kl(self) -> float:
        """Σ over labels, of shapes and of the words of each shape."""
        by_shape, sizes = self._by_shape, self.shapes.sizes()
        prior = np.full(by_shape.T.shape, SHAPE_PRIOR)
        of_shapes = divergence(prior + by_shape.T, prior, point=self.point)
        if not self.point:
            of_words = self.kappa0 * sizes[:, None] * np.ones_like(by_shape)
            return of_shapes + kl_sparse(np.array(self.kappa0), self.counts, of_words, by_shape)
        groups = (self.counts[self.shapes.of_word == shape].T for shape in np.flatnonzero(sizes))
        return of_shapes + sum(
            divergence(self.kappa0 + each, np.full(each.shape, self.kappa0), point=True) for each in groups
        )

    def arrays(self) -> dict[str, Floats]:
        """The counts."""
        return {"words": self.counts}

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With counts from a file."""
        return replace(self, counts=arrays["words"])
