"""The loop: one for every model. Pass, bound, stop rule, update; restarts; the output pass.

The bound of a pass belongs to the parameters that the pass used: ELBO = Σ ln Z − KL(truth) − KL(text) − KL(annotators).
A part that is estimated by a point (EM, MAP) gives ln p(θ̂) in place of −KL. With fixed data and priors it never falls;
a fall is a bug and raises.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.algebra import first_votes
from quorate.crowd.crowd import Cells, Crowd
from quorate.crowd.lots import hashed, lots_of
from quorate.errors import FitError
from quorate.model.engines.protocol import Counts, Decoded, Engine, Paths, Tables
from quorate.model.parts.annotators import Annotators
from quorate.model.parts.dirichlet import View, log_mean
from quorate.model.parts.text import Words
from quorate.model.parts.truth import Chain, Truth
from quorate.model.start import Start

Floats = NDArray[np.float64]


class StopReason(StrEnum):
    """Why the loop ended.

    >>> StopReason.CONVERGED.value
    'converged'
    """

    CONVERGED = "converged"
    MAX_PASSES = "max passes"


class Trace(NamedTuple):
    """How a fit went: the bound after every pass, why it stopped, and the best bound of each start.

    >>> Trace((-9.0, -8.5), StopReason.MAX_PASSES, (-8.5,), 0.1).passes
    2
    """

    bounds: tuple[float, ...]
    reason: StopReason
    starts: tuple[float, ...]
    seconds: float

    @property
    def passes(self) -> int:
        """How many passes the kept start took."""
        return len(self.bounds)

    @property
    def bound(self) -> float:
        """The last bound."""
        return self.bounds[-1]

    def __repr__(self) -> str:
        return f"<Trace: {self.passes} passes, bound {self.bound:,.1f}, stopped: {self.reason.value}>"


class Progress(NamedTuple):
    """What a progress callback is told after every pass; ``note`` is what there is to say instead of a bound."""

    start: int
    n_starts: int
    passes: int
    max_passes: int
    bound: float = math.nan
    note: str = ""


@dataclass(frozen=True)
class Model:
    """The three parts, and how far the annotators' evidence is trusted (``temper`` β ≤ 1).

    β weighs the annotators' likelihood and their counts alike; the likelihood alone would make the bound fall.
    """

    truth: Truth
    annotators: Annotators
    text: Words | None
    temper: float = 1.0

    def tables(self, cells: Cells, view: View | None = None) -> Tables:
        """Log-likelihood rows for the cells of a corpus, and for words, as ``view`` looks at the parts."""
        words = np.zeros((0, cells.n_labels)) if self.text is None else self.text.log_lik(view)
        return Tables(self.annotators.log_lik(cells, view), words, self.temper)

    def counted(self, engine: Engine, data: Cells) -> Counts:
        """One pass over what an engine has: expected counts under this model, and ln Z."""
        return engine.run(self.tables(data), self.truth.chain())

    def kl(self) -> float:
        """Of all parts."""
        return self.truth.kl() + self.annotators.kl() + (0.0 if self.text is None else self.text.kl())

    def updated(self, data: Cells, counts: Counts) -> Self:
        """With the posteriors that the counts give, which the engine has tempered like the likelihood."""
        return replace(
            self,
            truth=self.truth.updated(counts.labels),
            annotators=self.annotators.updated(data, counts.cells),
            text=None if self.text is None else self.text.updated(counts.words),
        )


class Fit(NamedTuple):
    """A fitted model and how it got there."""

    model: Model
    trace: Trace


def fit(
    engine: Engine,
    model: Model,
    crowd: Crowd,
    *,
    start: Start = Start.VOTES,
    max_passes: int = 20,
    tolerance: float = 0.0,
    seed: int | None = None,
    restarts: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> Fit:
    """Fit from one start or several, and keep the one with the best bound.

    Without a seed the first start is exact; with one, and from the second start on, the start is perturbed.
    ``tolerance`` is the relative gain of the bound below which the loop stops.
    """
    began = time.perf_counter()
    best: tuple[Model, list[float], StopReason] | None = None
    finals: list[float] = []
    for number, noise in enumerate(_noises(crowd, seed, restarts)):

        def report(done: int, bound: float, number: int = number) -> None:
            if progress is not None:
                progress(Progress(number, restarts, done, max_passes, bound))

        first = initial_model(engine, model, crowd, start, noise)
        found = _passes_where_data_are(engine, first, crowd.cells, max_passes, tolerance, report)
        finals.append(found[1][-1])
        if best is None or finals[-1] > best[1][-1]:
            best = found
    if best is None:
        raise FitError("at least one start is needed")
    return Fit(best[0], Trace(tuple(best[1]), best[2], tuple(finals), time.perf_counter() - began))


def _noises(crowd: Crowd, seed: int | None, restarts: int) -> Iterator[Floats | None]:
    """``[G, 2]`` Uniform numbers for the cells of every start; ``None``: the start is exact.

    They depend on who gave which labels, and not on the numbers that annotators and labels have.
    """
    for number in range(restarts):
        yield None if seed is None and number == 0 else _uniform(crowd, seed or 0, number)


def _uniform(crowd: Crowd, seed: int, number: int) -> Floats:
    cells, size = crowd.cells, np.round(crowd.cell_weights()).astype(np.uint64)
    of_label = np.bincount(cells.label, size, minlength=cells.n_labels).astype(np.uint64)
    own = hashed(lots_of(crowd, seed).annotator[cells.annotator] + hashed(of_label[cells.label] + hashed(size)))
    columns = [hashed(own + hashed(np.array([2 * number + n]))) for n in range(2)]
    return (np.stack(columns, axis=1) >> np.uint64(11)) / float(1 << 53) + 2.0**-54


def more_passes(engine: Engine, model: Model, cells: Cells, n_passes: int) -> Model:
    """Go on from where a model is. Nobody asks for the bound on the way, so it is not worked out."""
    there = engine.resident(model, cells) if isinstance(engine, KeepsModels) else None
    if there is None:
        return _passed(engine, model, cells, n_passes)
    return _passed(engine, there, cells, n_passes).brought_back()


def initial_model(
    engine: Engine, model: Model, crowd: Crowd, start: Start = Start.VOTES, noise: Floats | None = None
) -> Model:
    """The model that the first pass begins with; ``noise`` perturbs it."""
    cells = crowd.cells
    if start is Start.VOTES:
        weight, smoothing = first_votes(crowd)
        if noise is not None:
            weight = weight * -0.5 * np.log(noise).sum(axis=1)  # Gamma(2, ½)
        votes = np.zeros((len(cells.label), cells.n_labels))
        votes[np.arange(len(votes)), cells.label] = weight
        return model.updated(cells, engine.vote(votes, smoothing, model.temper))
    if noise is None:
        return model
    tables = model.tables(cells)
    radius, angle = np.sqrt(-2 * np.log(noise[:, :1])), 2 * np.pi * (noise[:, 1:] + np.arange(cells.n_labels) / 7)
    perturbed = tables._replace(cells=tables.cells + 0.5 * radius * np.cos(angle))
    return model.updated(cells, engine.run(perturbed, model.truth.chain()))


class HasRounding(Protocol):
    """Where passes run; ``rounding`` is the share of a bound's terms by which it may fall unnoticed."""

    rounding: float


class Trainable(Protocol):
    """What the loop goes round: a model that counts in a pass over its data, and takes the counts."""

    def counted(self, engine: Any, data: Any) -> Any:
        """One pass: expected counts, among them ``log_z``."""

    def kl(self) -> float:
        """Of all that was learned."""

    def updated(self, data: Any, counts: Any) -> Self:
        """With the posteriors that the counts give."""


Trained = TypeVar("Trained", bound=Trainable)


class Resident(Trainable, Protocol):
    """A model that lives where an engine has its data."""

    def brought_back(self) -> Model:
        """The model as any other."""


@runtime_checkable
class KeepsModels(Protocol):
    """An engine to which a model can go for its passes, so that counts and tables need not travel."""

    def resident(self, model: Model, cells: Cells) -> Resident | None:
        """The same model there; ``None`` if it has a part that the engine does not know."""


def _passed(engine: HasRounding, model: Trained, data: Any, n_passes: int) -> Trained:
    """So many passes without their bounds."""
    for _ in range(n_passes):
        model = model.updated(data, model.counted(engine, data))
    return model


def _passes_where_data_are(
    engine: Engine,
    model: Model,
    cells: Cells,
    max_passes: int,
    tolerance: float,
    report: Callable[[int, float], None],
) -> tuple[Model, list[float], StopReason]:
    """:func:`passes` of a model that stays with the engine meanwhile, if it can."""
    there = engine.resident(model, cells) if isinstance(engine, KeepsModels) else None
    if there is None:
        return passes(engine, model, cells, max_passes, tolerance, report)
    fitted, bounds, reason = passes(engine, there, cells, max_passes, tolerance, report)
    return fitted.brought_back(), bounds, reason


def passes(
    engine: HasRounding,
    model: Trained,
    data: Any,
    max_passes: int,
    tolerance: float,
    report: Callable[[int, float], None] = lambda *_: None,
) -> tuple[Trained, list[float], StopReason]:
    """Pass, bound, stop rule, update: the model after its last pass, the bound of each, and why it ended there.

    ``report`` is called with the bound of each pass.
    """
    bounds: list[float] = []
    reason = None
    while reason is None:
        counts = model.counted(engine, data)
        kl = model.kl()
        bound = counts.log_z - kl
        rounding = engine.rounding * (abs(counts.log_z) + abs(kl))  # in EM, ln Z and KL may nearly cancel
        if not np.isfinite(bound) or (bounds and bound < bounds[-1] - rounding):
            before = f"{bounds[-1]:.6f}" if bounds else "nothing"
            raise FitError(
                f"the bound fell from {before} to {bound:.6f} in pass {len(bounds) + 1} "
                "(this is a bug: please report it with your data)"
            )
        gain = bound - bounds[-1] if bounds else np.inf
        bounds.append(bound)
        report(len(bounds), bound)
        model = model.updated(data, counts)
        if gain <= tolerance * abs(bound):
            reason = StopReason.CONVERGED
        elif len(bounds) >= max_passes:
            reason = StopReason.MAX_PASSES
    return model, bounds, reason


def output_tables(model: Model, cells: Cells, exponent: float) -> tuple[Tables, Chain]:
    """What the output pass reads: posterior means, every sequence with probability ∝ p(sequence)^``exponent``."""
    tables, chain = model.tables(cells, log_mean), model.truth.chain(log_mean)
    if exponent == 1.0:
        return tables, chain
    return (
        tables._replace(cells=tables.cells * exponent, words=tables.words * exponent),
        chain._replace(start=chain.start * exponent, trans=chain.trans * exponent),
    )


def decode(
    engine: Engine,
    model: Model,
    cells: Cells,
    *,
    by_token: bool = False,
    exponent: float = 1.0,
    posteriors: bool = True,
) -> Decoded:
    """The output pass, with posterior means: everything that is given out comes from it.

    With a ``exponent`` below 1 the same sequence wins, less surely.
    """
    return engine.decode(*output_tables(model, cells, exponent), by_token=by_token, posteriors=posteriors)


@runtime_checkable
class DecodesInPart(Protocol):
    """An engine that leaves out of the output pass what is not asked for, which is most of its work."""

    def best_paths(self, tables: Tables, chain: Chain) -> Paths:
        """The best sequences."""

    def posteriors(self, tables: Tables, chain: Chain) -> NDArray[np.float64]:
        """``[N, J]`` The posteriors."""


def best_paths(engine: Engine, model: Model, cells: Cells) -> Paths:
    """The sequences that :func:`decode` finds, without any probability."""
    tables = output_tables(model, cells, 1.0)
    if isinstance(engine, DecodesInPart):
        return engine.best_paths(*tables)
    decoded = engine.decode(*tables, by_token=False, posteriors=False)
    return Paths(decoded.path, decoded.span_end)


def posteriors(engine: Engine, model: Model, cells: Cells, exponent: float) -> NDArray[np.float64]:
    """``[N, J]`` The posteriors that :func:`decode` finds, without sequences."""
    tables = output_tables(model, cells, exponent)
    if isinstance(engine, DecodesInPart):
        return engine.posteriors(*tables)
    return engine.decode(*tables, by_token=False).posterior
