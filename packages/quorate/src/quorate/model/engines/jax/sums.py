"""Sums of rows by group, the same in every pass: rows are sorted once, and added up as trees.

A tree's sums round as little as sums in doubles would, and are the same every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from quorate.model.engines.jax.device import filled_up, roomy

Ints = NDArray[np.int64]

_FANS = 8, 128  # rows that are added up at once


class Sums(NamedTuple):
    """Which rows to add up for each group: each level adds up some rows of the one before."""

    levels: tuple[Any, ...]
    weight: Any | None  # as the first level


def sums_by(groups: Sequence[Any], weights: Sequence[Any] | None, n_groups: int) -> Sums:
    """Sums by group of the places' rows, all batches end to end.

    ``groups`` are ``[A, L, B]`` of each batch; what is in a group from ``n_groups`` on is left out.
    """
    place, weight, start = _by_group(tuple(groups), None if weights is None else tuple(weights), n_groups=n_groups)
    begin = np.asarray(start, np.int64)
    first, sizes = begin[:-1], np.diff(begin)
    nothing = sum(each.shape[-2] * each.shape[-1] for each in groups)
    levels: list[Any] = []
    leaf_weight = None
    while True:
        fan = int(np.clip(1 << int(np.log2(max(sizes.mean(), 1))), *_FANS))
        parents = np.maximum(-(-sizes // fan), 1)  # at least one, so that a group without members sums to 0
        n_parents = int(parents.sum())
        n_rows = n_groups if n_parents == n_groups else roomy(n_parents)
        own_first = np.cumsum(parents) - parents
        nth = np.arange(n_parents) - np.repeat(own_first, parents)
        low = filled_up(np.repeat(first, parents) + nth * fan, n_rows, 0)
        high = filled_up(np.repeat(first + sizes, parents), n_rows, 0)
        if levels:
            levels.append(_table(low, high, nothing, fan=fan))
        else:
            levels.append(_leaves(low, high, place, nothing, fan=fan))
            leaf_weight = None if weight is None else _leaves(low, high, weight, 0.0, fan=fan)
        if n_rows == n_groups:
            return Sums(tuple(levels), leaf_weight)
        first, sizes, nothing = own_first, parents, n_rows


@jax.jit
def rows_of(posteriors: Sequence[Any]) -> Any:
    """``[all places + 1, J]`` From ``[L·B, J]`` of each batch; the last row is 0."""
    return jnp.concatenate([*posteriors, jnp.zeros((1, posteriors[0].shape[1]), posteriors[0].dtype)])


@jax.jit
def summed(rows: Any, sums: Sums) -> Any:
    """``[groups, J]`` Sums of rows, level by level, in doubles but for the first."""
    for number, level in enumerate(sums.levels):
        taken = rows[level]
        if number == 0 and sums.weight is not None:
            taken = taken * sums.weight[:, :, None]
        rows = taken.sum(axis=1).astype(jnp.float64)
        if number + 1 < len(sums.levels):
            rows = jnp.concatenate([rows, jnp.zeros((1, rows.shape[1]), rows.dtype)])
    return rows


@partial(jax.jit, static_argnames="n_groups")
def _by_group(groups: Sequence[Any], weights: Sequence[Any] | None, *, n_groups: int) -> tuple[Any, Any, Any]:
    """Places sorted by their group, their weights, and where each group begins."""
    places, base = [], 0
    for each in groups:
        n = each.shape[-2] * each.shape[-1]
        own = base + jnp.arange(n, dtype=jnp.int32)
        places.append(jnp.broadcast_to(own, (each.size // n, n)).reshape(-1))
        base += n
    columns = [jnp.concatenate([each.reshape(-1) for each in groups]), jnp.concatenate(places)]
    if weights is not None:
        columns.append(jnp.concatenate([each.reshape(-1) for each in weights]))
    group, place, *weight = lax.sort(columns, num_keys=1, is_stable=True)
    start = jnp.searchsorted(group, jnp.arange(n_groups + 1, dtype=group.dtype))
    return place, weight[0] if weight else None, start


def _within(low: Any, high: Any, fan: int) -> tuple[Any, Any]:
    number = low[:, None] + jnp.arange(fan, dtype=jnp.int32)
    return number, number < high[:, None]


@partial(jax.jit, static_argnames="fan")
def _table(low: Any, high: Any, nothing: Any, *, fan: int) -> Any:
    """``[rows, fan]`` The numbers from ``low`` on, below ``high``."""
    number, there = _within(low, high, fan)
    return jnp.where(there, number, nothing).astype(jnp.int32)


@partial(jax.jit, static_argnames="fan")
def _leaves(low: Any, high: Any, values: Any, nothing: Any, *, fan: int) -> Any:
    """The same of ``values`` at these numbers."""
    number, there = _within(low, high, fan)
    return jnp.where(there, values[jnp.where(there, number, 0)], nothing).astype(values.dtype)
