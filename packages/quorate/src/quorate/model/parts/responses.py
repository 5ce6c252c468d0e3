"""The part of the span model: what each annotator does with a true span, and where nothing is true."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.special import gammaln
from quorate.model.parts.arrays import check_arrays
from quorate.model.parts.dirichlet import View, expected_log, kl

Floats = NDArray[np.float64]

RESPONSES = ("exact", "shifted", "split", "other type", "other type, shifted", "missed")
"""What can be done with a true span, in the order of the columns (see :mod:`quorate.model.kernels.spans`)."""

NOT_MARKED_MARKED = 2
"""What can be done with a candidate where nothing is true."""

# Where the crowd is taken to be before any data, worth as many spans as a few annotators mark in an hour: they find
# six true spans in ten, mostly to the token.
_USUAL = np.array([0.42, 0.12, 0.02, 0.05, 0.04, 0.35])
_USUAL_MARKS = np.array([0.92, 0.08])
_WORTH = 30.0
# How many spans of the average annotator everybody has beforehand.
_POOLED = 8.0
_ROUNDING = 1e-6  # by how much the probabilities of a file may miss a sum of 1


@dataclass(frozen=True)
class Responses:
    """θ_k ~ Dir(s·m) over responses to a true span, φ_k ~ Dir(s·l) over marking where nothing is true.

    ``true [K, 6]`` and ``free [K, 2]`` are the posteriors. The crowd's means m and l are points, found with the rest
    under a Dirichlet prior around what is usual: whoever gave few labels is taken to be like the others.
    """

    crowd_true: Floats
    crowd_free: Floats
    true: Floats
    free: Floats

    @classmethod
    def of(cls, n_annotators: int) -> Self:
        """Before any data.

        >>> Responses.of(3).true.shape
        (3, 6)
        """
        m, free = _USUAL / _USUAL.sum(), _USUAL_MARKS
        return cls(m, free, np.tile(_POOLED * m, (n_annotators, 1)), np.tile(_POOLED * free, (n_annotators, 1)))

    def log_lik(self, view: View | None = None) -> tuple[Floats, Floats]:
        """Log probabilities of responses ``[K, 6]`` and marks ``[K, 2]``, as ``view`` looks at the posteriors."""
        if view is None or view is expected_log:
            return self._expected
        return view(self.true), view(self.free)

    @cached_property
    def _expected(self) -> tuple[Floats, Floats]:
        return expected_log(self.true), expected_log(self.free)

    def updated(self, responses: Floats, marks: Floats) -> Self:
        """With the posteriors that these counts give, and then the crowd's means that those give."""
        true, crowd_true = _pooled(self.crowd_true, _USUAL / _USUAL.sum(), responses)
        free, crowd_free = _pooled(self.crowd_free, _USUAL_MARKS, marks)
        return replace(self, true=true, free=free, crowd_true=crowd_true, crowd_free=crowd_free)

    def kl(self) -> float:
        """Of all annotators, and −ln of the prior density of the crowd's means."""
        return (
            kl(self.true, _POOLED * self.crowd_true)
            + kl(self.free, _POOLED * self.crowd_free)
            - _log_prior(self.crowd_true, _USUAL / _USUAL.sum())
            - _log_prior(self.crowd_free, _USUAL_MARKS)
        )

    def grown(self, n_annotators: int) -> Self:
        """With room for annotators who come after those it has met: they are taken to be like the crowd."""
        more = n_annotators - len(self.true)
        return replace(
            self,
            true=np.concatenate([self.true, np.tile(_POOLED * self.crowd_true, (more, 1))]),
            free=np.concatenate([self.free, np.tile(_POOLED * self.crowd_free, (more, 1))]),
        )

    def arrays(self) -> dict[str, Floats]:
        """Everything, for a file."""
        return {
            "span_crowd_true": self.crowd_true,
            "span_crowd_free": self.crowd_free,
            "span_true": self.true,
            "span_free": self.free,
        }

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With what a file says; ``ValueError`` if that cannot be."""
        K, R = self.true.shape
        shapes = {"span_crowd_true": (R,), "span_crowd_free": (2,), "span_true": (K, R), "span_free": (K, 2)}
        check_arrays(arrays, shapes, counts=True)
        if any(not (arrays[name] > 0).all() for name in shapes):
            raise ValueError("the span model holds a probability of 0")
        for name in ("span_crowd_true", "span_crowd_free"):
            if abs(arrays[name].sum() - 1.0) > _ROUNDING:
                raise ValueError(f"array {name!r} does not add up to 1")
        return replace(self, **{name.removeprefix("span_"): arrays[name] for name in shapes})


def _log_prior(mean: Floats, usual: Floats) -> float:
    """ln of the density of Dir(1 + worth·usual), whose most probable point is ``usual``."""
    a = 1 + _WORTH * usual
    return float(gammaln(np.array([a.sum()]))[0] - gammaln(a).sum() + ((a - 1) * np.log(mean)).sum())


def _pooled(mean: Floats, usual: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """``[K, R]`` The posteriors that counts give around the crowd's ``mean``, and then a better mean.

    Who has no counts says nothing of the mean, and has the better one as prior and posterior.
    """
    posterior, some = _POOLED * mean + counts, counts.any(axis=1)
    better = _mean(mean, usual, posterior[some], counts[some])
    posterior[~some] = _POOLED * better
    return posterior, better


def _mean(now: Floats, usual: Floats, posterior: Floats, counts: Floats) -> Floats:
    """A crowd's mean that explains the annotators at least as well as the present one.

    The mean of all that was counted is a good guess; the step towards it is halved until the bound does not fall.
    """
    wanted = counts.sum(axis=0) + _WORTH * usual
    wanted = wanted / wanted.sum()
    evidence, K = expected_log(posterior).sum(axis=0), len(posterior)

    def bound(mean: Floats) -> float:
        a = _POOLED * mean
        return float((a * evidence).sum() - K * gammaln(a).sum()) + _log_prior(mean, usual)

    before, step = bound(now), 1.0
    while step > 1e-3:
        tried = now + step * (wanted - now)
        if bound(tried) >= before:
            return np.asarray(tried)
        step /= 2
    return now
