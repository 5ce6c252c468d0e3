"""ψ and ln Γ of :mod:`quorate.infer.special` in compiled vectors."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quorate.infer.simd import LANES, fused, load_lanes, log, spread_lanes, store, where_above

__all__ = ["fill_gammaln", "fill_psi"]

Floats = NDArray[np.float64]

_PSI = (-691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
_GAMMALN = (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)


@njit(nogil=True, cache=True)
def _product(q):  # type: ignore[no-untyped-def]
    """q(q + 6)(q + 10)(q + 12)."""
    return fused(fused(fused(q + spread_lanes(28.0), q, spread_lanes(252.0)), q, spread_lanes(720.0)), q, q - q)


@njit(nogil=True, cache=True)
def _psi(x):  # type: ignore[no-untyped-def]
    q = (x + spread_lanes(7.0)) * x
    slope = fused(fused(spread_lanes(4.0), q, spread_lanes(84.0)), q, spread_lanes(504.0))
    slope = fused(slope, q, spread_lanes(720.0)) * fused(spread_lanes(2.0), x, spread_lanes(7.0))
    moved = x + spread_lanes(8.0)
    inverse = spread_lanes(1.0) / moved
    square = inverse * inverse
    series = spread_lanes(1 / 12)
    for coefficient in _PSI:
        series = fused(series, square, spread_lanes(coefficient))
    small = fused(series, inverse, spread_lanes(0.5)) * inverse
    result = log(moved) - small - slope / _product(q)
    return where_above(x, spread_lanes(0.0), result, spread_lanes(-math.inf))


@njit(nogil=True, cache=True)
def _gammaln(x):  # type: ignore[no-untyped-def]
    q = (x + spread_lanes(7.0)) * x
    moved = x + spread_lanes(8.0)
    inverse = spread_lanes(1.0) / moved
    square = inverse * inverse
    series = spread_lanes(1 / 156)
    for coefficient in _GAMMALN:
        series = fused(series, square, spread_lanes(coefficient))
    whole = fused(log(moved), moved - spread_lanes(0.5), fused(series, inverse, spread_lanes(_HALF_LOG_2_PI) - moved))
    return where_above(x, spread_lanes(0.0), whole - log(_product(q)), spread_lanes(math.inf))


@njit(nogil=True, cache=True)
def fill_psi(x: Floats, out: Floats) -> None:
    """ψ of at least eight numbers ≥ 0, −inf at 0."""
    n = x.shape[0]
    for place in range(0, n, LANES):
        whole = min(place, n - LANES)  # what is left at the end is computed with some that are done
        store(out, whole, _psi(load_lanes(x, whole)))


@njit(nogil=True, cache=True)
def fill_gammaln(x: Floats, out: Floats) -> None:
    """ln Γ of at least eight numbers ≥ 0, inf at 0."""
    n = x.shape[0]
    for place in range(0, n, LANES):
        whole = min(place, n - LANES)
        store(out, whole, _gammaln(load_lanes(x, whole)))
