"""ψ and ln Γ of many numbers at once, and how far ln Γ bends, in blocks on this machine's cores.

All by their asymptotic series: the argument is moved up by 8 with the recurrence Γ(x + 8) = x(x + 1)…(x + 7)·Γ(x),
where the series is exact to the last digits; with q = x² + 7x the product is q(q + 6)(q + 10)(q + 12). NumPy lets go of
the interpreter lock, so that threads help with the words of a large vocabulary. Large arrays are filled by the
compiled vectors of :mod:`quorate.infer.kernels.gamma`, with the same coefficients, where numba is installed: an engine
on an accelerator needs none. (SciPy's are as fast as NumPy's on one core, and take longer to load than a small fit.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from quorate.infer.kernels.compiled import load_numba
from quorate.infer.kernels.cores import available_threads
from quorate.infer.kernels.series import GAMMALN_SERIES, PSI_SERIES

__all__ = ["gammaln", "gammaln_bend", "psi"]

Floats = NDArray[np.float64]
Fill = Callable[..., None]

_SHIFT = 8.0
_BLOCK = 1 << 13  # numbers a block: they and the intermediate results fit into a core's cache
_MOST_BLOCKS = 8  # blocks a task at most: tasks are longer on more cores, so that threads wait less for each other


def psi(x: Floats) -> Floats:
    """ψ of numbers ≥ 0, −inf at 0.

    >>> psi(np.array([1.0, 0.5])).round(6)
    array([-0.577216, -1.96351 ])
    """
    return _blockwise(_psi, "fill_psi", x)


def gammaln(x: Floats) -> Floats:
    """ln Γ of numbers ≥ 0, inf at 0.

    >>> gammaln(np.array([1.0, 5.0])).round(6)
    array([0.      , 3.178054])
    """
    return _blockwise(_gammaln, "fill_gammaln", x)


def gammaln_bend(x: Floats, step: Floats) -> Floats:
    """How far ln Γ lies above its tangent at x + step, seen at x: ln Γ(x) − ln Γ(x + step) + step·ψ(x + step).

    For x, x + step ≥ 0; nothing bends at x = 0 unless there is a step. It is right to some 1e-16·(step + 1), whatever
    x: of large numbers the terms agree in nearly all their digits, so that they cannot be taken from one another.

    >>> gammaln_bend(np.array([1.0, 1e9]), np.array([1.0, 1000.0])).round(6)
    array([0.422784, 0.0005  ])
    """
    x, step = np.broadcast_arrays(x, step)
    return _blockwise(_bend, "fill_bend", x, step)


def _blockwise(function: Fill, name: str, *arguments: Floats) -> Floats:
    flat = [np.ascontiguousarray(x, np.float64).reshape(-1) for x in arguments]
    out = np.empty_like(flat[0])
    n = len(out)
    compiled = _compiled() if n >= _BLOCK else None
    if compiled is not None:
        function, n_blocks = getattr(compiled, name), min(available_threads(), n // _BLOCK)
    else:
        n_blocks = -(-n // (_BLOCK * min(max(available_threads() // 2, 1), _MOST_BLOCKS)))
    cuts = np.linspace(0, n, n_blocks + 1).astype(np.int64).tolist()

    def compute(block: slice) -> None:
        with np.errstate(divide="ignore"):
            function(*(x[block] for x in flat), out[block])

    blocks = [slice(*ends) for ends in pairwise(cuts)]
    for _ in map(compute, blocks) if n < 4 * _BLOCK else _threads().map(compute, blocks):
        pass
    return out.reshape(np.shape(arguments[0]))


@cache
def _compiled() -> ModuleType | None:
    """The compiled versions; none where there is no numba."""
    try:
        load_numba()
        from quorate.infer.kernels import gamma
    except ImportError:
        return None
    return gamma


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(available_threads())


def _series(inverse: Floats, coefficients: tuple[float, ...]) -> Floats:
    """Σ c_n·inverse^(2n)."""
    square = inverse * inverse
    total = square * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        total += coefficient
        total *= square
    total += coefficients[0]
    return total


def _psi(x: Floats, out: Floats) -> None:
    q = x + 7.0
    q *= x
    ratio = _slope(x, q)
    ratio /= _product(q)
    moved = x + _SHIFT
    inverse = 1.0 / moved
    np.log(moved, out=out)
    series = _series(inverse, PSI_SERIES)
    series *= inverse
    series += 0.5
    series *= inverse
    out -= series
    out -= ratio


def _gammaln(x: Floats, out: Floats) -> None:
    moved = x + _SHIFT
    np.log(moved, out=out)
    out *= moved - 0.5
    out -= moved
    inverse = 1.0 / moved
    series = _series(inverse, GAMMALN_SERIES)
    series *= inverse
    out += series
    q = x + 7.0
    q *= x
    out -= np.log(_product(q))
    out += 0.5 * math.log(2.0 * math.pi)


def _bend(x: Floats, step: Floats, out: Floats) -> None:
    """Stirling's series at y = x + 8 and z = y + step, in which (z − ½ − step)·ln z − (y − ½)·ln y is a log1p."""
    y, far = x + _SHIFT, x + step
    z = far + _SHIFT
    share = step / y
    ahead = np.log1p(share)
    np.subtract(share, ahead, out=out)
    out *= y
    ahead *= 0.5
    out += ahead
    at_y, at_z = 1.0 / y, 1.0 / z
    series = _series(at_z, PSI_SERIES)
    series *= at_z
    series += 0.5
    series *= at_z
    series *= step
    out -= series
    out += _series(at_y, GAMMALN_SERIES) * at_y
    out -= _series(at_z, GAMMALN_SERIES) * at_z
    q = far * (far + 7.0)
    product, before = _product(q), _product(x * (x + 7.0))
    still = x <= 0.0
    product[still], before[still] = 1.0, 1.0
    out += np.log(product / before)
    slope = _slope(far, q)
    slope *= step
    slope /= product
    out -= slope
    out[still] = np.where(step[still] > 0.0, np.inf, 0.0)


def _slope(x: Floats, q: Floats) -> Floats:
    """The derivative by x of q(q + 6)(q + 10)(q + 12), where q = x² + 7x."""
    slope = 4.0 * q
    slope += 84.0
    slope *= q
    slope += 504.0
    slope *= q
    slope += 720.0
    slope *= 2.0 * x + 7.0
    return slope


def _product(q: Floats) -> Floats:
    """q(q + 6)(q + 10)(q + 12)."""
    product = q + 28.0
    product *= q
    product += 252.0
    product *= q
    product += 720.0
    product *= q
    return product
