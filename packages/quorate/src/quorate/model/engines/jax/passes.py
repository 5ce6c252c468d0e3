"""One pass over a batch: evidence, forward–backward, posterior and its sums; and votes in place of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from quorate.model.engines.jax.layout import Batch

_FALL_BACK = -40.0  # nats by which evidence may conflict before single precision is not enough
_USUAL = 3.0  # nats a token of disagreement that is usual, and counts as no conflict
_UNROLLED = 16  # labels, or labels of a token, that are gone through without a loop


class Steps(NamedTuple):
    """The chain: probabilities of first labels and of steps, and the logarithm of what may be last."""

    start: Any
    trans: Any
    end: Any


class Marks(NamedTuple):
    """``[L, B]`` Where documents begin and end, and where there are any; every place without a token is by itself."""

    first: Any
    last: Any
    there: Any


class Summary(NamedTuple):
    """Sums over a batch, in doubles: ln Z, counts of labels, and how many documents must be done again."""

    log_z: Any
    first: Any  # [J]
    pairs: Any  # [J, J] without the factor T
    all: Any  # [J]
    n_bad: Any


class Passed(NamedTuple):
    """Of a batch: sums, posterior ``[L·B, J]``, and which documents single precision cannot hold."""

    summary: Summary
    posterior: Any
    bad: Any  # [D]


class Recursion(NamedTuple):
    """What forward–backward finds."""

    alpha: Any  # [L, J, B]
    beta: Any
    onward: Any  # [L, J, B] evidence·beta / total
    totals: Any  # [L, B]
    good: Any  # [L, B] whether there is a token, of a document that single precision can hold
    log_z: Any  # [D]
    bad: Any  # [D]


@jax.jit
def one_pass(batch: Batch, cells: Any, words: Any | None, temper: Any, steps: Steps) -> Passed:
    """Forward–backward and its counts."""
    marks = marks_of(batch)
    evidence, top = evidence_of(batch, marks, cells, words, temper, steps.end)
    found = recursion(batch, marks, evidence, top, steps)
    posterior = posterior_of(found)
    before = jnp.where(found.good[:-1, None], found.alpha[:-1], 0.0)
    onward = jnp.where((found.good & ~marks.first)[1:, None], found.onward[1:], 0.0)
    return Passed(_summary(batch, posterior, before, onward, found.log_z.sum(), found.bad), _rows(posterior), found.bad)


@jax.jit
def votes(batch: Batch, table: Any, smoothing: Any) -> Passed:
    """Shares of votes as posterior; counts of neighbours are as if tokens stood alone."""
    rows = _gathered(batch, table) + smoothing
    total = rows.sum(axis=1, keepdims=True)
    J, marks = rows.shape[1], marks_of(batch)
    shares = jnp.where(total > 0, rows / total, jnp.float32(1.0 / J))
    if batch.known is not None:
        known = batch.known[:, None, :]
        shares = jnp.where(known >= 0, (jnp.arange(J)[None, :, None] == known).astype(shares.dtype), shares)
    shares = jnp.where(marks.there[:, None, :], shares, 0.0)
    onward = jnp.where(marks.first[1:, None], 0.0, shares[1:])
    bad = jnp.zeros_like(batch.real)
    return Passed(_summary(batch, shares, shares[:-1], onward, jnp.float64(0.0), bad), _rows(shares), bad)


def _rows(posterior: Any) -> Any:
    return posterior.transpose(0, 2, 1).reshape(-1, posterior.shape[1])


def _summary(batch: Batch, posterior: Any, before: Any, onward: Any, log_z: Any, bad: Any) -> Summary:
    position, lane = jnp.divmod(batch.first, posterior.shape[2])
    first = jnp.where(batch.real[:, None], posterior[position, :, lane], 0.0)
    pairs = jnp.einsum("lib,ljb->lij", before, onward, precision=lax.Precision.HIGHEST)
    every = posterior.sum(axis=2).astype(jnp.float64).sum(axis=0)
    return Summary(
        log_z, first.astype(jnp.float64).sum(axis=0), pairs.astype(jnp.float64).sum(axis=0), every, bad.sum()
    )


def marks_of(batch: Batch) -> Marks:
    """Where documents begin and end."""
    edge = jnp.full((1, batch.doc.shape[1]), -1, batch.doc.dtype)
    there = batch.doc < len(batch.real)
    first = ~there | (batch.doc != jnp.concatenate([edge, batch.doc[:-1]]))
    last = ~there | (batch.doc != jnp.concatenate([batch.doc[1:], edge]))
    return Marks(first, last, there)


def _gathered(batch: Batch, table: Any) -> Any:
    """``[L, J, B]`` Rows of all that was said about each token, added up."""

    def said(a: Any) -> Any:
        rows = table[batch.cell[a]].transpose(0, 2, 1)
        return rows if batch.weight is None else rows * batch.weight[a][:, None, :]

    A, (L, B) = len(batch.cell), batch.word.shape
    if A <= _UNROLLED:
        return sum((said(a) for a in range(1, A)), said(0))
    nothing = jnp.zeros((L, table.shape[1], B), table.dtype)
    return lax.fori_loop(0, A, lambda a, total: total + said(a), nothing)


def evidence_of(batch: Batch, marks: Marks, cells: Any, words: Any | None, temper: Any, end: Any) -> tuple[Any, Any]:
    """``[L, J, B]`` exp(evidence − its maximum), and the maximum ``[L, B]``."""
    logs = temper * _gathered(batch, cells)
    if words is not None:
        logs = logs + words[batch.word].transpose(0, 2, 1)
    if batch.known is not None:
        label, known = jnp.arange(cells.shape[1])[None, :, None], batch.known[:, None, :]
        logs = jnp.where((known >= 0) & (label != known), -jnp.inf, logs)
    ends = (marks.last & marks.there)[:, None, :]
    logs = jnp.where(ends, logs + end[None, :, None], logs)
    top = logs.max(axis=1)
    top = jnp.where(jnp.isfinite(top), top, 0.0)
    return jnp.exp(logs - top[:, None, :]), top


def _times(weights: Any, table: Any) -> Any:
    """``[J, B]`` Σ_i weights[i]·table[i], in single precision (a matrix unit would round its factors)."""
    if len(table) > _UNROLLED:
        return jnp.matmul(table.T, weights, precision=lax.Precision.HIGHEST)
    total = weights[0][None, :] * table[0][:, None]
    for i in range(1, len(table)):
        total = total + weights[i][None, :] * table[i][:, None]
    return total


def recursion(batch: Batch, marks: Marks, evidence: Any, top: Any, steps: Steps) -> Recursion:
    """Forward–backward, scaled; the sums of a document are read off at its last token."""
    J, B = evidence.shape[1:]

    def forward(carried: tuple[Any, ...], here: tuple[Any, ...]) -> tuple[Any, Any]:
        before, conflict, log_z = carried
        weight, most, first = here
        product = jnp.where(first, steps.start[:, None], _times(before, steps.trans)) * weight
        total = product.sum(axis=0)
        log_total = jnp.log(total)
        conflict = jnp.where(first, 0.0, conflict) + jnp.minimum(log_total + _USUAL, 0.0)
        log_z = jnp.where(first, 0.0, log_z) + (log_total + most)
        after = product / total
        return (after, conflict, log_z), (after, total, conflict, log_z)

    def backward(coming: Any, here: tuple[Any, ...]) -> tuple[Any, Any]:
        weight, total, last = here
        beta = jnp.where(last, jnp.float32(1.0), coming)
        onward = weight * beta / total
        return _times(onward, steps.trans.T), (beta, onward)

    nothing = jnp.zeros((J, B), jnp.float32)
    carried = nothing, jnp.zeros(B, jnp.float32), jnp.zeros(B, jnp.float64)
    _, (alpha, totals, conflict, log_z) = lax.scan(forward, carried, (evidence, top, marks.first))
    _, (beta, onward) = lax.scan(backward, nothing, (evidence, totals, marks.last), reverse=True)
    # What overflows in beta stays so down to the document's first token.
    finite = jnp.isfinite(beta[batch.first // B, :, batch.first % B]).all(axis=1)
    bad = batch.real & ~((conflict.reshape(-1)[batch.last] > _FALL_BACK) & finite)
    usable = batch.real & ~bad
    good = jnp.append(usable, False)[batch.doc]
    return Recursion(alpha, beta, onward, totals, good, jnp.where(usable, log_z.reshape(-1)[batch.last], 0.0), bad)


def posterior_of(found: Recursion) -> Any:
    """``[L, J, B]``, 0 where it is not good."""
    return jnp.where(found.good[:, None, :], found.alpha * found.beta, 0.0)
