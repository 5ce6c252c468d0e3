"""The output pass over a batch: the best path, its spans and their probabilities, all by place."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from quorate.model.engines.jax.layout import Batch
from quorate.model.engines.jax.passes import Marks, Recursion, Steps, evidence_of, marks_of, posterior_of, recursion


class Rules(NamedTuple):
    """What the scheme allows, in logarithms with those of the chain, and which labels are in spans and go on."""

    start: Any  # [J]
    trans: Any  # [J, J]
    end: Any  # [J]
    goes_on: Any  # [J, J]
    in_span: Any  # [J]


class Written(NamedTuple):
    """By place ``[L·B]``: label, its probability, how long a span is that begins there (0: none), its probability.

    By document: ln Z, the path's log-probability, and whether it must be done again. And the posterior ``[L·B, J]``.
    """

    path: Any
    token_probability: Any
    span_length: Any
    span_probability: Any
    log_z: Any
    log_probability: Any
    bad: Any
    posterior: Any


@partial(jax.jit, static_argnames="by_token")
def decode_batch(
    batch: Batch, cells: Any, words: Any | None, temper: Any, steps: Steps, rules: Rules, *, by_token: bool
) -> Written:
    """Everything that is given out."""
    marks = marks_of(batch)
    evidence, top = evidence_of(batch, marks, cells, words, temper, steps.end)
    found = recursion(batch, marks, evidence, top, steps)
    posterior = posterior_of(found)
    path = posterior.argmax(axis=1).astype(jnp.int16) if by_token else _viterbi(jnp.log(evidence), marks, rules)
    length, span_probability, log_probability = _spans(marks, evidence, found, path.astype(jnp.int32), steps, rules)
    usable = batch.real & ~found.bad
    return Written(
        path.astype(jnp.int8 if len(steps.start) < 128 else jnp.int16).reshape(-1),
        _at(posterior, path).reshape(-1),
        length.reshape(-1),
        span_probability.reshape(-1),
        found.log_z,
        jnp.where(usable, log_probability.reshape(-1)[batch.first], 0.0),
        found.bad,
        posterior.transpose(0, 2, 1).reshape(-1, posterior.shape[1]),
    )


@jax.jit
def in_order(parts: tuple[Any, ...], place: Any) -> Any:
    """By token what is by place, all batches end to end."""
    return jnp.concatenate(parts)[jnp.minimum(place, sum(map(len, parts)) - 1)]


def _at(rows: Any, label: Any) -> Any:
    """``[L, B]`` The row's number for the label at each place."""
    return jnp.take_along_axis(rows, label[:, None, :].astype(jnp.int32), axis=1)[:, 0, :]


def _spans(
    marks: Marks, evidence: Any, found: Recursion, path: Any, steps: Steps, rules: Rules
) -> tuple[Any, Any, Any]:
    """Lengths and probabilities of the spans that begin at each place, and ln of the path's probability from there on.

    A span is bounded by steps that begin a new span or leave one: steps inside a span count 0 at both of its ends.
    """
    J, B = evidence.shape[1:]
    before = jnp.concatenate([path[:1], path[:-1]])
    weight = _at(evidence, path) / found.totals
    inner = jnp.log(jnp.where(marks.first, steps.start[path], steps.trans[before, path]) * weight)
    new = jnp.where(rules.goes_on, jnp.float32(0.0), steps.trans)
    came = jnp.concatenate([jnp.zeros((1, J, B), jnp.float32), found.alpha[:-1]])
    opening = (came * new.T[path].transpose(0, 2, 1)).sum(axis=1)
    opening = jnp.where(marks.first, steps.start[path], opening) * weight
    closing = jnp.log((found.onward * new[before].transpose(0, 2, 1)).sum(axis=1))
    goes_on = rules.goes_on[before, path] & ~marks.first

    def backward(carried: tuple[Any, ...], here: tuple[Any, ...]) -> tuple[Any, Any]:
        """``rest`` and ``length`` are those of the span that the place is in, from there on; ``all`` is the path's."""
        coming, more, onward = carried
        inside, leaving, is_inside, last = here
        rest = jnp.where(last, jnp.float32(0.0), coming)
        length = jnp.where(last, 0, more) + 1
        path_from_here = jnp.where(last, 0.0, onward) + inside
        carried = jnp.where(is_inside, rest + inside, leaving), jnp.where(is_inside, length, 0), path_from_here
        return carried, (rest, length, path_from_here)

    carried = jnp.zeros(B, jnp.float32), jnp.zeros(B, jnp.int32), jnp.zeros(B, jnp.float64)
    _, (rest, length, of_path) = lax.scan(backward, carried, (inner, closing, goes_on, marks.last), reverse=True)
    begins = marks.there & ~goes_on & rules.in_span[path]
    probability = jnp.minimum(opening * jnp.exp(rest), jnp.float32(1.0))
    return jnp.where(begins, length, 0), jnp.where(begins, probability, 0.0), of_path


def _viterbi(evidence: Any, marks: Marks, rules: Rules) -> Any:
    """``[L, B]`` The best path."""
    J, B = evidence.shape[1:]

    def forward(best: Any, here: tuple[Any, ...]) -> tuple[Any, Any]:
        weight, first = here
        scores = best[:, None, :] + rules.trans[:, :, None]
        back = scores.argmax(axis=0).astype(jnp.int16)
        after = jnp.where(first, rules.start[:, None], scores.max(axis=0)) + weight
        after = after - jnp.maximum(after.max(axis=0), jnp.float32(-1e30))  # else a long document's digits get lost
        return after, (back, (after + rules.end[:, None]).argmax(axis=0).astype(jnp.int16))

    def backward(coming: Any, here: tuple[Any, ...]) -> tuple[Any, Any]:
        pointers, best_last, last = here
        label = jnp.where(last, best_last, coming)
        before = jnp.take_along_axis(pointers, label[None, :].astype(jnp.int32), axis=0)[0]
        return before, label

    _, (back, best_last) = lax.scan(forward, jnp.zeros((J, B), jnp.float32), (evidence, marks.first))
    _, path = lax.scan(backward, jnp.zeros(B, jnp.int16), (back, best_last, marks.last), reverse=True)
    return path
