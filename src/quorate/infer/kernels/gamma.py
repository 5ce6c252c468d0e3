"""ψ, ln Γ and how it bends, as in :mod:`quorate.infer.kernels.special`, in compiled vectors."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quorate.infer.kernels.series import GAMMALN_SERIES, PSI_SERIES
from quorate.infer.kernels.simd import LANES, fused, load_lanes, log, spread_lanes, store, where_above

__all__ = ["fill_bend", "fill_gammaln", "fill_psi"]

Floats = NDArray[np.float64]

_LAST_PSI, _PSI = PSI_SERIES[-1], PSI_SERIES[-2::-1]
_LAST_GAMMALN, _GAMMALN = GAMMALN_SERIES[-1], GAMMALN_SERIES[-2::-1]
_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)


@njit(nogil=True, cache=True)
def _product(q):  # type: ignore[no-untyped-def]
    """q(q + 6)(q + 10)(q + 12)."""
    return fused(fused(fused(q + spread_lanes(28.0), q, spread_lanes(252.0)), q, spread_lanes(720.0)), q, q - q)


@njit(nogil=True, cache=True)
def _slope(x, q):  # type: ignore[no-untyped-def]
    """The derivative of that by x, where q = x² + 7x."""
    slope = fused(fused(spread_lanes(4.0), q, spread_lanes(84.0)), q, spread_lanes(504.0))
    return fused(slope, q, spread_lanes(720.0)) * fused(spread_lanes(2.0), x, spread_lanes(7.0))


@njit(nogil=True, cache=True)
def _below_log(inverse):  # type: ignore[no-untyped-def]
    """ln w − ψ(w) by its series in 1/w."""
    square = inverse * inverse
    series = spread_lanes(_LAST_PSI)
    for coefficient in _PSI:
        series = fused(series, square, spread_lanes(coefficient))
    return fused(series, inverse, spread_lanes(0.5)) * inverse


@njit(nogil=True, cache=True)
def _beyond_stirling(inverse):  # type: ignore[no-untyped-def]
    """ln Γ(w) − (w − ½)·ln w + w − ½·ln 2π by its series in 1/w."""
    square = inverse * inverse
    series = spread_lanes(_LAST_GAMMALN)
    for coefficient in _GAMMALN:
        series = fused(series, square, spread_lanes(coefficient))
    return series * inverse


@njit(nogil=True, cache=True)
def _psi(x):  # type: ignore[no-untyped-def]
    q = (x + spread_lanes(7.0)) * x
    moved = x + spread_lanes(8.0)
    result = log(moved) - _below_log(spread_lanes(1.0) / moved) - _slope(x, q) / _product(q)
    return where_above(x, spread_lanes(0.0), result, spread_lanes(-math.inf))


@njit(nogil=True, cache=True)
def _gammaln(x):  # type: ignore[no-untyped-def]
    q = (x + spread_lanes(7.0)) * x
    moved = x + spread_lanes(8.0)
    rest = _beyond_stirling(spread_lanes(1.0) / moved) + (spread_lanes(_HALF_LOG_2_PI) - moved)
    whole = fused(log(moved), moved - spread_lanes(0.5), rest)
    return where_above(x, spread_lanes(0.0), whole - log(_product(q)), spread_lanes(math.inf))


@njit(nogil=True, cache=True)
def _bend(x, step):  # type: ignore[no-untyped-def]
    one, half, zero = spread_lanes(1.0), spread_lanes(0.5), spread_lanes(0.0)
    far, y = x + step, x + spread_lanes(8.0)
    z = far + spread_lanes(8.0)
    at_y, at_z = one / y, one / z
    share = step * at_y
    whole = one + share
    ahead = log(whole) + (share - (whole - one)) / whole  # log1p
    bent = fused(y, share - ahead, half * ahead) - step * _below_log(at_z)
    bent = bent + (_beyond_stirling(at_y) - _beyond_stirling(at_z))
    q = (far + spread_lanes(7.0)) * far
    product = _product(q)
    bent = bent + (log(product / _product((x + spread_lanes(7.0)) * x)) - step * _slope(far, q) / product)
    at_nothing = where_above(step, zero, spread_lanes(math.inf), zero)
    return where_above(x, zero, bent, at_nothing)


@njit(nogil=True, cache=True)
def fill_psi(x: Floats, out: Floats) -> None:
    """ψ of at least eight numbers ≥ 0, −inf at 0."""
    n = x.shape[0]
    for place in range(0, n, LANES):
        whole = min(place, n - LANES)  # the last group overlaps the one before, so that it is full
        store(out, whole, _psi(load_lanes(x, whole)))


@njit(nogil=True, cache=True)
def fill_gammaln(x: Floats, out: Floats) -> None:
    """ln Γ of at least eight numbers ≥ 0, inf at 0."""
    n = x.shape[0]
    for place in range(0, n, LANES):
        whole = min(place, n - LANES)
        store(out, whole, _gammaln(load_lanes(x, whole)))


@njit(nogil=True, cache=True)
def fill_bend(x: Floats, step: Floats, out: Floats) -> None:
    """How far ln Γ bends from at least eight numbers ≥ 0 on: see :func:`quorate.infer.kernels.special.gammaln_bend`."""
    n = x.shape[0]
    for place in range(0, n, LANES):
        whole = min(place, n - LANES)
        store(out, whole, _bend(load_lanes(x, whole), load_lanes(step, whole)))
