"""The span model: what annotators did with whole spans is the evidence, and the token model's opinion the prior.

The truth of a document is a set of candidates that do not overlap. A candidate σ has prior log odds

    h_σ = a · logit p_σ + b · Σ words in σ [ln ρ(word | label in σ) − ln ρ(word | O)] + e · middle_σ,

with p_σ of the fitted token model and of a vote on tokens, posterior means of ρ, and whether its bounds lie in
the middle of those that overlapping marks have (:meth:`Candidates.middle`). Annotator k does with a
true span one of six things, θ_k ~ Dir: marks it exactly, or shifted, or in pieces, or with another type at its bounds
or elsewhere, or misses it; a mark that is off is one of the candidates that overlap. Of a candidate that overlaps
nothing true, k marks it with probability φ_k. All of that is tempered by β. Sums over sets are exact
(:mod:`quorate.model.kernels.spans`), so the bound never falls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from quorate.model.candidates import Candidates
from quorate.model.engines.threads import balanced
from quorate.model.kernels import spans as kernels
from quorate.model.kernels.cores import available_threads, in_order
from quorate.model.loop import Model
from quorate.model.parts.annotators import Annotators
from quorate.model.parts.arrays import check_arrays
from quorate.model.parts.dirichlet import View, log_mean
from quorate.model.parts.responses import Responses

__all__ = [
    "SUREST",
    "USUAL_SHORT_FORMS",
    "USUAL_WEIGHTS",
    "WEIGHTS_OF_PASSAGES",
    "SpanCounts",
    "SpanEngine",
    "SpanModel",
    "SpanPosterior",
    "TokenWeights",
    "prior_log_odds",
]

Floats = NDArray[np.float64]

# How far the words and the annotators' responses are trusted: they rest on the same labels as the token model, and
# annotators share mistakes. Chosen, as the weight of the token model below, on the dev splits of two real crowds and on
# simulated ones; from half to twice each of them, F1 on NER stays within 0.3 points, and nowhere else does it fall
# below the token model for more than a point.
TEMPER, _WORD_WEIGHT = 0.4, 0.5
# How much it counts that bounds lie in the middle of those of overlapping marks: a mark that is off speaks alike for
# all candidates that overlap it, however near their bounds are. It gains 0.5 to 3 points on simulated crowds with vague
# bounds; twice of it gains more there and loses 0.4 on the dev splits of three real crowds.
_MIDDLE_WEIGHT = 0.5
SUREST = 0.999
"""What the token model says, or the text, is not believed beyond this."""
USUAL_SHORT_FORMS = 0.8
"""How often short forms are what their long forms are, before anything was seen of them."""
_MOST_WORDS = 6.0  # nats that words can say at most: long spans are no surer than that
_SLICES = 8


class TokenWeights(NamedTuple):
    """How much it counts of a span what is said of its tokens (``weight``), and the ``vote``'s share in that."""

    weight: float
    vote: float


# A vote on tokens beside the token model: whoever overlooks a span says O at each of its tokens, and the model takes
# two O at a bound for little, and prefers the longest mark; a vote does not. Against none it gains 0.7 to 3 points of
# strict F1 on simulated crowds of three with long spans and on one with splitters, costs 0.7 on a vague and sparse one,
# and on the dev splits of NER and PICO −0.1 and +0.5. With 0.5 the former gain 1 to 2 more, and relaxed F1 on PICO
# loses 0.5.
USUAL_WEIGHTS = TokenWeights(weight=0.5, vote=0.3)
# Language models who mark passages have bounds anywhere, and take the same for true that is not. A model of spans
# believes whatever two of eight marked, which is twice what is true on simulated juries. With these weights strict F1
# is 18.1 in place of 14.2 there, and 51.4 in place of 49.0 on tokens (means over those of `benchmarks/sources.py
# juries`; with a weight of 0.8, or a vote of 0.4 or 0.6: 17.1 to 18.9, and 51.0 to 51.9), and models of a real jury who
# were hidden with all of their family agree more with the consensus. On crowds of people it costs up to 2 points, and 9
# on one where many have vague bounds.
WEIGHTS_OF_PASSAGES = TokenWeights(weight=1.0, vote=0.5)


def prior_log_odds(
    likely: Floats,
    words: Floats,
    voted: Floats | float = 0.0,
    middle: Floats | float = 0.0,
    tokens: TokenWeights = USUAL_WEIGHTS,
) -> Floats:
    """``[C]`` What is said of each candidate before spans are looked at.

    By the token model, a vote on tokens, the words, and where its bounds lie among those of overlapping marks.
    """
    p = np.clip((1 - tokens.vote) * likely + tokens.vote * voted, 1 - SUREST, SUREST)
    return np.asarray(
        tokens.weight * (np.log(p) - np.log1p(-p))
        + np.clip(_WORD_WEIGHT * words, -_MOST_WORDS, _MOST_WORDS)
        + _MIDDLE_WEIGHT * middle
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
    """The annotators' responses, and how far they are trusted (``temper`` β ≤ 1).

    ``unseen`` is how many true spans a token nobody is expected to have touched, ``short_forms`` how often a short form
    is what its long form is, and ``annotators`` what the token model knows of everybody when it is counted under the
    consensus on spans; ``None``: as that model has it.
    """

    responses: Responses
    temper: float = TEMPER
    unseen: float = 0.0
    short_forms: float = USUAL_SHORT_FORMS
    annotators: Annotators | None = None

    def informs(self, model: Model) -> Model:
        """The token model with its annotators as they were counted under the consensus on spans, if they were."""
        return model if self.annotators is None else replace(model, annotators=self.annotators)

    def arrays(self) -> dict[str, Floats]:
        """What was learned, for a file."""
        told = {"span_unseen": self.unseen, "span_short_forms": self.short_forms}
        return self.responses.arrays() | {name: np.array([value]) for name, value in told.items()}

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With what a file says; ``ValueError`` if that cannot be."""
        arrays = {"span_short_forms": np.zeros(1), **arrays}  # in files of before 0.11 none was looked for
        check_arrays(arrays, {"span_unseen": (1,), "span_short_forms": (1,)}, counts=True)
        if arrays["span_short_forms"].max() > 1:
            raise ValueError("array 'span_short_forms' holds what is not a share")
        unseen, short_forms = (float(arrays[name][0]) for name in ("span_unseen", "span_short_forms"))
        return replace(self, responses=self.responses.restored(arrays), unseen=unseen, short_forms=short_forms)

    def counted(self, engine: SpanEngine, data: Candidates) -> SpanCounts:
        """One pass: what everybody is held to have done."""
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

    def posterior(self, model: SpanModel, sharpness: float = 1.0, view: View = log_mean) -> SpanPosterior:
        """The output pass: every set with probability ∝ p(set)^``sharpness``."""
        return self._swept(*model.responses.log_lik(view), model.temper, sharpness)[1]

    def log_probability(
        self,
        model: SpanModel,
        chosen: NDArray[np.bool_],
        sharpness: float = 1.0,
        view: View = log_mean,
    ) -> Floats:
        """``[D]`` ln of the probability that just the chosen candidates of a document are true."""
        posterior = self.posterior(model, sharpness, view)
        out = np.empty(len(posterior.log_z))
        tables = model.responses.log_lik(view)
        kernels.log_weight_of_set(self._problem, *tables, model.temper, sharpness, chosen, out)
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
        self, of_true: Floats, of_free: Floats, temper: float, sharpness: float
    ) -> tuple[SpanCounts, SpanPosterior]:
        p, kernel = self._problem, kernels.span_pass
        if not temper:  # nobody is asked: any annotator stands for all
            p = p._replace(who=np.zeros_like(p.who))
        true, log_z = np.zeros(len(p.start)), np.zeros(len(p.first) - 1)
        tables = (np.ascontiguousarray(of_true), np.ascontiguousarray(of_free), temper, sharpness)

        def sweep(s: int) -> SpanCounts:
            return SpanCounts(*kernel(p, *tables, self._bounds[s], self._bounds[s + 1], true, log_z))

        total, responses, marks = 0.0, np.zeros(of_true.shape), np.zeros(of_free.shape)
        for sums in in_order(sweep, range(len(self._bounds) - 1), self._threads):
            total += sums.log_z
            responses += sums.responses
            marks += sums.marks
        return SpanCounts(total, responses, marks), SpanPosterior(true, log_z)
