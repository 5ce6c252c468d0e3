"""A model's counts, tables and KL on the device, in doubles: between passes only a few numbers travel.

ψ and how far ln Γ bends are computed as in ``quorate.model.kernels.special``, by the same series.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from quorate.crowd.crowd import Cells
from quorate.model.engines.jax.device import filled_up, roomy, with_doubles
from quorate.model.engines.protocol import Counts
from quorate.model.parts.confusions import ConfusionMatrix, Sequential
from quorate.model.parts.text import SHAPE_PRIOR, Words

if TYPE_CHECKING:
    from quorate.model.engines.jax.engine import JaxEngine
    from quorate.model.loop import Model

_PSI_SERIES = 1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12
_GAMMALN_SERIES = 1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156


def _product(q: Any) -> Any:
    return (((q + 28) * q + 252) * q + 720) * q


def _slope(x: Any, q: Any) -> Any:
    return (((4 * q + 84) * q + 504) * q + 720) * (2 * x + 7)


def _series(inverse: Any, coefficients: tuple[float, ...]) -> Any:
    square, total = inverse * inverse, coefficients[-1]
    for each in coefficients[-2::-1]:
        total = total * square + each
    return total


def _below_log(inverse: Any) -> Any:
    """ln w − ψ(w)."""
    return (_series(inverse, _PSI_SERIES) * inverse + 0.5) * inverse


def _beyond_stirling(inverse: Any) -> Any:
    return _series(inverse, _GAMMALN_SERIES) * inverse


def psi(x: Any) -> Any:
    """ψ of numbers ≥ 0, −inf at 0."""
    q, moved = (x + 7) * x, x + 8
    return jnp.where(x > 0, jnp.log(moved) - _below_log(1 / moved) - _slope(x, q) / _product(q), -jnp.inf)


def bend(x: Any, step: Any) -> Any:
    """ln Γ(x) − ln Γ(x + step) + step·ψ(x + step): see :func:`quorate.model.kernels.special.gammaln_bend`."""
    far, y = x + step, x + 8
    z = far + 8
    share = step / y
    ahead = jnp.log1p(share)
    bent = y * (share - ahead) + 0.5 * ahead - step * _below_log(1 / z)
    bent = bent + (_beyond_stirling(1 / y) - _beyond_stirling(1 / z))
    q = (far + 7) * far
    bent = bent + (jnp.log(_product(q) / _product((x + 7) * x)) - step * _slope(far, q) / _product(q))
    return jnp.where(x > 0, bent, jnp.where(step > 0, jnp.inf, 0.0))


class _CellsPrior(NamedTuple):
    """The annotators' prior, and which cells are added up in which rows; a number after the last is nothing."""

    cell: Any  # [own cells, J]
    row: Any  # [rows, J]
    row_of: Any  # [own cells]
    of_row: Any  # [rows, most] own cells
    of_own: Any | None  # [own cells, most] cells of the corpus; None: they are the same
    own_of: Any | None  # [cells]


class _WordsPrior(NamedTuple):
    """Prior counts, and which words are written how; a shape after the last is that of no word."""

    each: Any
    of_shape: Any  # [S, 1] of all words of a shape
    shape: Any  # [V]


class _Tables(NamedTuple):
    """What a pass reads, in single precision with a row of nothing; and the KL of annotators and words."""

    cells: Any
    words: Any | None
    kl: Any


def can_reside(model: Model, cells: Cells) -> bool:
    """Whether a model's parts are such as are made on the device, and its annotators have counts of these cells."""
    annotators, text = model.annotators, model.text
    if not isinstance(annotators, ConfusionMatrix | Sequential) or (text is not None and text.point):
        return False
    is_point = annotators.prior.point and not isinstance(annotators, Sequential)
    return not is_point and np.array_equal(annotators.told_apart(cells)[0].keys, annotators.keys)


@dataclass(frozen=True)
class ResidentModel:
    """A model whose annotators and words are on the device, as the loop goes round with it; the truth is small."""

    engine: JaxEngine
    model: Model  # with the truth as it is now, and the other parts as they were
    cells: Any  # [G, J] counts
    words: Any | None  # [V, J] counts
    priors: tuple[_CellsPrior, _WordsPrior | None]
    tables: _Tables

    @classmethod
    @with_doubles
    def of(cls, engine: JaxEngine, model: Model, cells: Cells, n_cells: int, n_words: int) -> Self:
        """Bring a model there, whose annotators have counts of these very cells."""
        annotators, text = model.annotators, model.text
        assert isinstance(annotators, ConfusionMatrix | Sequential)
        prior = _prior_of(annotators, cells, n_cells)
        counts = filled_up(annotators.counts, len(prior.cell), 0.0, np.float64)
        words, of_words = None, None
        if text is not None:
            words = filled_up(text.counts, n_words, 0.0, np.float64)
            of_words = _words_prior(text, n_words)
        tables = _tables_of(counts, words, (prior, of_words))
        return cls(engine, model, counts, words, (prior, of_words), tables)

    def counted(self, engine: JaxEngine, data: Cells) -> Counts:
        """One pass; counts of cells and words stay on the device."""
        return self.engine.passed(self.tables.cells, self.tables.words, self.model.temper, self.model.truth.chain())

    @with_doubles
    def kl(self) -> float:
        """Of all parts."""
        return self.model.truth.kl() + float(self.tables.kl)

    @with_doubles
    def updated(self, data: Cells, counts: Counts) -> Self:
        """With the posteriors that the counts give."""
        cells, words = _own_counts(counts.cells, self.priors[0].of_own), None if self.words is None else counts.words
        return replace(
            self,
            model=replace(self.model, truth=self.model.truth.updated(counts.labels)),
            cells=cells,
            words=words,
            tables=_tables_of(cells, words, self.priors),
        )

    def brought_back(self) -> Model:
        """The model as any other."""
        model = self.model
        annotators = model.annotators
        assert isinstance(annotators, ConfusionMatrix | Sequential)
        annotators = replace(annotators, counts=np.array(self.cells)[: len(annotators.counts)])
        if model.text is None or self.words is None:
            return replace(model, annotators=annotators)
        words = np.array(self.words)[: len(model.text.counts)]
        return replace(model, annotators=annotators, text=replace(model.text, counts=words))


def _words_prior(text: Words, n_words: int) -> _WordsPrior:
    of_shape = text.kappa0 * text.shapes.sizes()[:, None]
    shape = filled_up(text.shapes.of_word.astype(np.int32), n_words, text.shapes.number)
    return _WordsPrior(text.kappa0, jax.device_put(of_shape), shape)


def _prior_of(annotators: ConfusionMatrix | Sequential, cells: Cells, n_cells: int) -> _CellsPrior:
    place = annotators.told_apart(cells)[1]
    prior, rows, row_prior = annotators.priors()
    G, R = roomy(len(prior)), roomy(len(row_prior))
    if place is None:
        G = n_cells
    return _CellsPrior(
        filled_up(prior, G, 1.0, np.float64),
        filled_up(row_prior, R, 1.0, np.float64),
        filled_up(rows, G, R - 1),
        _members(rows, R, G),
        None if place is None else _members(place, G, n_cells),
        None if place is None else filled_up(place, n_cells, G),
    )


def _members(group: Any, n_groups: int, nothing: int) -> Any:
    """``[groups, most]`` What is in each group."""
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=n_groups)
    within = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    table = np.full((n_groups, int(sizes.max(initial=1))), nothing, np.int32)
    table[group[order], within] = order
    return jax.device_put(table)


def _with_nothing(table: Any) -> Any:
    """One more row, of zeros."""
    return jnp.concatenate([table, jnp.zeros((1, table.shape[1]), table.dtype)])


@jax.jit
def _own_counts(counts: Any, of_own: Any | None) -> Any:
    return counts if of_own is None else _with_nothing(counts)[of_own].sum(axis=1)


@jax.jit
def _tables_of(counts: Any, words: Any | None, priors: tuple[_CellsPrior, _WordsPrior | None]) -> _Tables:
    of_cells, of_words = priors
    row_counts = _with_nothing(counts)[of_cells.of_row].sum(axis=1)
    rows = psi(of_cells.cell + counts) - psi(of_cells.row + row_counts)[of_cells.row_of]
    kl = bend(of_cells.cell, counts).sum() - bend(of_cells.row, row_counts).sum()
    cells = _with_nothing(rows)
    if of_cells.own_of is not None:
        cells = _with_nothing(cells[of_cells.own_of])
    if words is None or of_words is None:
        return _Tables(cells.astype(jnp.float32), None, kl)
    by_shape = jnp.stack([(words * (of_words.shape == s)[:, None]).sum(axis=0) for s in range(len(of_words.of_shape))])
    everything = by_shape.sum(axis=0)
    of_shape = psi(SHAPE_PRIOR + by_shape) - psi(of_words.of_shape + by_shape)
    all_shapes = SHAPE_PRIOR * len(by_shape)
    said = psi(of_words.each + words) - psi(all_shapes + everything) + _with_nothing(of_shape)[of_words.shape]
    kl = kl + bend(SHAPE_PRIOR, by_shape).sum() - bend(all_shapes, everything).sum()
    kl = kl + bend(of_words.each, words).sum() - bend(of_words.of_shape, by_shape).sum()
    return _Tables(cells.astype(jnp.float32), _with_nothing(said).astype(jnp.float32), kl)
