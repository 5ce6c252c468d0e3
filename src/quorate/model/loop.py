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

from quorate.crowd.crowd import Cells
from quorate.errors import FitError
from quorate.model.engines.protocol import Counts, Decoded, Engine, Paths, Tables
from quorate.model.parts.annotators import Annotators
from quorate.model.parts.dirichlet import View, log_mean
from quorate.model.parts.text import Words
from quorate.model.parts.truth import Chain, Truth
from quorate.model.start import FirstVotes, Start

__all__ = [
    "Checkpoint",
    "DecodesInPart",
    "Fit",
    "KeepsModels",
    "Model",
    "Progress",
    "Resident",
    "Standing",
    "Start",
    "StopReason",
    "Trace",
    "best_paths",
    "decode",
    "first_counts",
    "fit",
    "initial_model",
    "more_passes",
    "output_tables",
    "passes",
    "posteriors",
]

_VOTE_SMOOTHING = 0.1


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


class Standing(NamedTuple):
    """Where a fit stands after a pass: which start it is in, the model and the bounds, and why it ended, if it did.

    ``finals`` are the bounds of the starts before, and ``best`` is the best of them.
    """

    start: int
    model: Model
    bounds: tuple[float, ...]
    reason: StopReason | None
    finals: tuple[float, ...] = ()
    best: tuple[Model, tuple[float, ...], StopReason] | None = None


class Checkpoint(Protocol):
    """Keeps where a fit stands, so that it can go on from there another time."""

    def last(self) -> Standing | None:
        """Where the fit stood when it was interrupted; ``None``: it begins."""

    def keep(self, standing: Standing) -> None:
        """Called after every pass."""


def fit(
    engine: Engine,
    model: Model,
    cells: Cells,
    *,
    start: Start = Start.VOTES,
    max_passes: int = 20,
    tolerance: float = 0.0,
    seed: int | None = None,
    restarts: int = 1,
    progress: Callable[[Progress], None] | None = None,
    first_votes: FirstVotes | None = None,
    checkpoint: Checkpoint | None = None,
) -> Fit:
    """Fit from one start or several, and keep the one with the best bound.

    Without a seed the first start is exact; with one, and from the second start on, the start is perturbed.
    ``tolerance`` is the relative gain of the bound below which the loop stops. With a ``checkpoint`` the fit goes on
    from where that one stands.
    """
    began = time.perf_counter()
    stood = None if checkpoint is None else checkpoint.last()
    best = None if stood is None else stood.best
    finals = [] if stood is None else list(stood.finals)
    for number, rng in enumerate(_generators(seed, restarts)):
        if stood is not None and number < stood.start:
            continue

        def report(done: int, bound: float, number: int = number) -> None:
            if progress is not None:
                progress(Progress(number, restarts, done, max_passes, bound))

        def keep(
            model: Model, bounds: tuple[float, ...], reason: StopReason | None, number: int = number, best: Any = best
        ) -> None:
            if checkpoint is not None:
                checkpoint.keep(Standing(number, model, bounds, reason, tuple(finals), best))

        here = stood if stood is not None and number == stood.start else None
        if here is not None and here.reason is not None:
            fitted, bounds, reason = here.model, list(here.bounds), here.reason
        else:

            def begin(rng: np.random.Generator | None = rng, here: Standing | None = here) -> Model:
                return initial_model(engine, model, cells, start, rng, first_votes) if here is None else here.model

            fitted, bounds, reason = _passes_where_data_are(
                engine,
                begin,  # made when passes begin, and held by nobody else: it may be large
                cells,
                max_passes,
                tolerance,
                report,
                None if checkpoint is None else keep,
                so_far=() if here is None else here.bounds,
            )
        finals.append(bounds[-1])
        if best is None or bounds[-1] > best[1][-1]:
            best = fitted, tuple(bounds), reason
    if best is None:
        raise FitError("at least one start is needed")
    return Fit(best[0], Trace(best[1], best[2], tuple(finals), time.perf_counter() - began))


def _generators(seed: int | None, restarts: int) -> Iterator[np.random.Generator | None]:
    """One for every start, made when its turn comes; ``None``: the start is exact."""
    parent = np.random.default_rng(seed or 0)
    for number in range(restarts):
        yield None if seed is None and number == 0 else parent.spawn(1)[0]


def more_passes(engine: Engine, model: Model, cells: Cells, n_passes: int) -> Model:
    """Go on from where a model is. Nobody asks for the bound on the way, so it is not worked out."""
    there = engine.resident(model, cells) if isinstance(engine, KeepsModels) else None
    if there is None:
        return _passed(engine, model, cells, n_passes)
    return _passed(engine, there, cells, n_passes).brought_back()


def initial_model(
    engine: Engine,
    model: Model,
    cells: Cells,
    start: Start = Start.VOTES,
    rng: np.random.Generator | None = None,
    first_votes: FirstVotes | None = None,
) -> Model:
    """The model that the first pass begins with; ``rng`` perturbs it.

    ``first_votes`` says how votes count in a start by coverage.
    """
    if start is not Start.PRIOR:
        return model.updated(cells, first_counts(engine, cells, start, model.temper, rng, first_votes))
    if rng is None:
        return model
    tables = model.tables(cells)
    noise: NDArray[np.float64] = rng.normal(0.0, 0.5, tables.cells.shape)
    return model.updated(cells, engine.run(tables._replace(cells=tables.cells + noise), model.truth.chain()))


def first_counts(
    engine: Engine,
    cells: Cells,
    start: Start,
    temper: float,
    rng: np.random.Generator | None = None,
    first_votes: FirstVotes | None = None,
) -> Counts:
    """What the first pass is told where it begins with votes: the same for every model with this ``temper``."""
    votes = np.zeros((len(cells.label), cells.n_labels))
    votes[np.arange(len(votes)), cells.label] = 1.0 if rng is None else rng.gamma(2.0, 0.5, len(votes))
    smoothing = _VOTE_SMOOTHING
    if start is Start.COVERAGE and first_votes is not None:
        votes, smoothing = votes * first_votes.weight[:, None], first_votes.smoothing
    return engine.vote(votes, smoothing, temper)


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
    begin: Callable[[], Model],
    cells: Cells,
    max_passes: int,
    tolerance: float,
    report: Callable[[int, float], None],
    keep: Callable[[Model, tuple[float, ...], StopReason | None], None] | None,
    *,
    so_far: tuple[float, ...],
) -> tuple[Model, list[float], StopReason]:
    """:func:`passes` of a model that stays with the engine meanwhile, if it can."""
    keep_or_not = keep or (lambda *_: None)
    if not isinstance(engine, KeepsModels):
        return passes(engine, begin(), cells, max_passes, tolerance, report, keep_or_not, so_far=so_far)
    first = begin()
    there = engine.resident(first, cells)
    if there is None:
        return passes(engine, first, cells, max_passes, tolerance, report, keep_or_not, so_far=so_far)

    def keep_it_here(resident: Resident, bounds: tuple[float, ...], reason: StopReason | None) -> None:
        if keep is not None:
            keep(resident.brought_back(), bounds, reason)

    fitted, bounds, reason = passes(engine, there, cells, max_passes, tolerance, report, keep_it_here, so_far=so_far)
    return fitted.brought_back(), bounds, reason


def passes(
    engine: HasRounding,
    model: Trained,
    data: Any,
    max_passes: int,
    tolerance: float,
    report: Callable[[int, float], None] = lambda *_: None,
    keep: Callable[[Trained, tuple[float, ...], StopReason | None], None] = lambda *_: None,
    *,
    so_far: tuple[float, ...] = (),
) -> tuple[Trained, list[float], StopReason]:
    """Pass, bound, stop rule, update: the model after its last pass, the bound of each, and why it ended there.

    ``report`` is told the bound of each pass, and ``keep`` what was learned in it and whether it was the last.
    ``so_far`` are the bounds of passes that the model has behind it.
    """
    bounds, reason = list(so_far), None
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
        keep(model, tuple(bounds), reason)
    return model, bounds, reason


def output_tables(model: Model, cells: Cells, sharpness: float) -> tuple[Tables, Chain]:
    """What the output pass reads: posterior means, every sequence with probability ∝ p(sequence)^``sharpness``."""
    tables, chain = model.tables(cells, log_mean), model.truth.chain(log_mean)
    if sharpness == 1.0:
        return tables, chain
    return (
        tables._replace(cells=tables.cells * sharpness, words=tables.words * sharpness),
        chain._replace(start=chain.start * sharpness, trans=chain.trans * sharpness),
    )


def decode(
    engine: Engine,
    model: Model,
    cells: Cells,
    *,
    by_token: bool = False,
    sharpness: float = 1.0,
    posteriors: bool = True,
) -> Decoded:
    """The output pass, with posterior means: everything that is given out comes from it.

    With a ``sharpness`` below 1 the same sequence wins, less surely.
    """
    return engine.decode(*output_tables(model, cells, sharpness), by_token=by_token, posteriors=posteriors)


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


def posteriors(engine: Engine, model: Model, cells: Cells, sharpness: float) -> NDArray[np.float64]:
    """``[N, J]`` The posteriors that :func:`decode` finds, without sequences."""
    tables = output_tables(model, cells, sharpness)
    if isinstance(engine, DecodesInPart):
        return engine.posteriors(*tables)
    return engine.decode(*tables, by_token=False).posterior
