"""The span model: what annotators did with whole spans is the evidence, and the token model's opinion the prior.

The truth of a document is a set of candidates that do not overlap. A candidate σ has prior log odds

    h_σ = a · logit p_σ + (1 − a) · n_d · Σ words in σ [ln ρ(word | label in σ) − ln ρ(word | O)] + e · middle_σ,

with p_σ of the fitted token model and of a vote on tokens, posterior means of ρ, and whether its bounds lie in the
middle of those that overlapping marks have (:meth:`Candidates.middle`). The token model rests on the same labels, so
that a is small. A word is new evidence only where other annotators labelled it: n_d is the share of all labels of the
fit by annotators who gave none in this document.

Annotator k does with a true span one of six things, θ_k ~ Dir: marks it exactly, or shifted, or in pieces, or with
another type at its bounds or elsewhere, or misses it; a mark that is off is one of the candidates that overlap. Of a
candidate that overlaps nothing true, k marks it with probability φ_k. All of that is tempered by β, as annotators share
mistakes. Sums over sets are exact (:mod:`quorate.model.kernels.spans`), so the bound never falls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from quorate.model.candidates import Candidates
from quorate.model.kernels import spans as kernels
from quorate.model.kernels.cores import available_threads, balanced, in_order
from quorate.model.parts.arrays import check_arrays
from quorate.model.parts.dirichlet import View, log_mean
from quorate.model.parts.responses import Responses

Floats = NDArray[np.float64]

TEMPER = 0.4
"""β: how far responses count."""
_TOKENS = 0.2  # a: how far the token model counts
_VOTE = 0.3  # share of a vote on tokens in its probability
_MIDDLE = 0.5  # e: how much it counts that bounds lie in the middle
_SUREST = 0.999  # p of the token model is kept this far from 1
_MOST_WORDS = 6.0  # nats that words can say at most: long spans are no surer than that
_SLICES = 8


def prior_log_odds(likely: Floats, words: Floats, voted: Floats | None, middle: Floats) -> Floats:
    """``[C]`` h of each candidate; ``words`` are their sums times n_d, ``voted`` is ``None`` where there is no vote."""
    share = 0.0 if voted is None else _VOTE
    p = np.clip((1 - share) * likely + share * (0.0 if voted is None else voted), 1 - _SUREST, _SUREST)
    return np.asarray(
        _TOKENS * (np.log(p) - np.log1p(-p))
        + np.clip((1 - _TOKENS) * words, -_MOST_WORDS, _MOST_WORDS)
        + _MIDDLE * middle
    )


class SpanCounts(NamedTuple):
    """What a pass brings back: Σ ln Z (less that of the prior), counts of responses ``[K, 6]`` and marks ``[K, 2]``."""

    log_z: float
    responses: Floats
    marks: Floats


class SpanPosterior(NamedTuple):
    """``true [C]`` The probability of each candidate, and ``log_z [D]``."""

    true: Floats
    log_z: Floats


@dataclass(frozen=True)
class SpanModel:
    """The annotators' responses, and how far they count (``temper`` β ≤ 1).

    ``unseen`` is how many true spans a token nobody is expected to have touched.
    """

    responses: Responses
    temper: float = TEMPER
    unseen: float = 0.0

    def arrays(self) -> dict[str, Floats]:
        """What was learned, for a file."""
        return self.responses.arrays() | {"span_unseen": np.array([self.unseen])}

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With what a file says; ``ValueError`` if that cannot be."""
        check_arrays(arrays, {"span_unseen": (1,)}, counts=True)
        return replace(self, responses=self.responses.restored(arrays), unseen=float(arrays["span_unseen"][0]))

    def counted(self, engine: SpanEngine, data: Candidates) -> SpanCounts:
        """One pass: what everybody is expected to have done."""
        return engine.run(self)

    def kl(self) -> float:
        """Of the responses."""
        return self.responses.kl()

    def grown(self, n_annotators: int) -> Self:
        """With room for annotators who come after those it has met."""
        return replace(self, responses=self.responses.grown(n_annotators))

    def updated(self, data: Candidates, counts: SpanCounts) -> Self:
        """With the posteriors that the counts give."""
        return replace(self, responses=self.responses.updated(counts.responses, counts.marks))


class SpanEngine:
    """Candidates with their prior, ready for passes on threads; results do not hang on how many there are."""

    rounding = 1e-9

    def __init__(self, candidates: Candidates, prior: Floats, *, threads: int | None = None) -> None:
        self._threads = threads or available_threads()
        c = candidates
        self._problem = kernels.Problem(
            c.start, c.end, c.kind, c.cluster, c.by_start, c.first, c.pair_start, c.who, c.weight,
            c.response_start, c.response, c.spread, prior, c.apart,
        )  # fmt: skip
        work = c.response_start + 4 * c.first  # a document takes about as long as it has responses
        self._bounds = balanced(work, max(_SLICES, int(work[-1]) // 20_000))

    @property
    def prior(self) -> Floats:
        """``[C]`` The log odds of each candidate before spans are looked at."""
        return self._problem.prior

    @cached_property
    def _nobody(self) -> float:
        """Σ ln Z of the prior."""
        return self._swept(np.zeros((1, 6)), np.zeros((1, 2)), 0.0, 1.0)[0].log_z

    def run(self, model: SpanModel) -> SpanCounts:
        """One pass."""
        sums, _ = self._swept(*model.responses.log_lik(), model.temper, 1.0)
        return SpanCounts(sums.log_z - self._nobody, sums.responses, sums.marks)

    def posterior(self, model: SpanModel, exponent: float = 1.0, view: View = log_mean) -> SpanPosterior:
        """The output pass: every set with probability ∝ p(set)^``exponent``."""
        return self._swept(*model.responses.log_lik(view), model.temper, exponent)[1]

    def log_probability(
        self,
        model: SpanModel,
        chosen: NDArray[np.bool_],
        exponent: float = 1.0,
        view: View = log_mean,
    ) -> Floats:
        """``[D]`` ln of the probability that just the chosen candidates of a document are true."""
        posterior = self.posterior(model, exponent, view)
        out = np.empty(len(posterior.log_z))
        tables = model.responses.log_lik(view)
        kernels.log_weight_of_set(self._problem, *tables, model.temper, exponent, chosen, out)
        return np.minimum(out - posterior.log_z, 0.0)

    def best_set(self, gain: Floats) -> NDArray[np.bool_]:
        """``[C]`` Of every document the set of candidates that do not overlap with the highest sum of ``gain``."""
        p, chosen = self._problem, np.zeros(len(gain), np.bool_)
        kernels.best_set(p.start, p.end, p.kind, p.first, p.apart, gain, chosen)
        return chosen

    def likeliest_set(self, model: SpanModel, view: View = log_mean) -> NDArray[np.bool_]:
        """``[C]`` Of every document the set of candidates that is likeliest as a whole."""
        chosen = np.zeros(len(self._problem.start), np.bool_)
        kernels.likeliest_set(self._problem, *model.responses.log_lik(view), model.temper, chosen)
        return chosen

    def close(self) -> None:
        """Nothing is held."""

    def _swept(
        self, of_true: Floats, of_free: Floats, temper: float, exponent: float
    ) -> tuple[SpanCounts, SpanPosterior]:
        p, kernel = self._problem, kernels.span_pass
        if not temper:  # nobody is asked: any annotator stands for all
            p = p._replace(who=np.zeros_like(p.who))
        true, log_z = np.zeros(len(p.start)), np.zeros(len(p.first) - 1)
        tables = (np.ascontiguousarray(of_true), np.ascontiguousarray(of_free), temper, exponent)

        def sweep(s: int) -> SpanCounts:
            return SpanCounts(*kernel(p, *tables, self._bounds[s], self._bounds[s + 1], true, log_z))

        total, responses, marks = 0.0, np.zeros(of_true.shape), np.zeros(of_free.shape)
        for sums in in_order(sweep, range(len(self._bounds) - 1), self._threads):
            total += sums.log_z
            responses += sums.responses
            marks += sums.marks
        return SpanCounts(total, responses, marks), SpanPosterior(true, log_z)
