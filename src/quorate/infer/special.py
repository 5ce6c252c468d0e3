"""ψ and ln Γ of many numbers at once, by their asymptotic series, in blocks on this machine's cores.

The argument is moved up by 8 with the recurrence Γ(x + 8) = x(x + 1)…(x + 7)·Γ(x), where the series is exact to the
last digits; with q = x² + 7x the product is q(q + 6)(q + 10)(q + 12). NumPy lets go of the interpreter lock, so that
threads help with the words of a large vocabulary. An engine that compiles its kernels brings compiled versions for
large arrays (:func:`use`). (SciPy's are as fast as NumPy's on one core, and take longer to load
than a small fit.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quorate.infer.cores import available_threads

__all__ = ["gammaln", "psi", "use"]

Floats = NDArray[np.float64]
Fill = Callable[[Floats, Floats], None]

_SHIFT = 8.0
_BLOCK = 1 << 13  # so many numbers, and what is computed on the way, stay in a core's cache
_MOST_BLOCKS = 8  # of those at a time: the more cores, the longer each must leave the interpreter to the others
_PSI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_GAMMALN = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


_compiled: dict[str, Fill] = {}


def use(fill_psi: Fill | None, fill_gammaln: Fill | None) -> None:
    """From now on these fill large arrays; ``None``: NumPy does."""
    for name, fill in (("psi", fill_psi), ("gammaln", fill_gammaln)):
        if fill is None:
            _compiled.pop(name, None)
        else:
            _compiled[name] = fill


def psi(x: Floats) -> Floats:
    """ψ of numbers ≥ 0, −inf at 0.

    >>> psi(np.array([1.0, 0.5])).round(6)
    array([-0.577216, -1.96351 ])
    """
    return _blockwise(_psi, _compiled.get("psi"), x)


def gammaln(x: Floats) -> Floats:
    """ln Γ of numbers ≥ 0, inf at 0.

    >>> gammaln(np.array([1.0, 5.0])).round(6)
    array([0.      , 3.178054])
    """
    return _blockwise(_gammaln, _compiled.get("gammaln"), x)


def _blockwise(function: Fill, compiled: Fill | None, x: Floats) -> Floats:
    flat = np.ascontiguousarray(x, np.float64).reshape(-1)
    out = np.empty_like(flat)
    n = len(flat)
    if compiled is not None and n >= _BLOCK:
        function, n_blocks = compiled, min(available_threads(), n // _BLOCK)
    else:
        n_blocks = -(-n // (_BLOCK * min(max(available_threads() // 2, 1), _MOST_BLOCKS)))
    cuts = np.linspace(0, n, n_blocks + 1).astype(np.int64).tolist()

    def compute(block: slice) -> None:
        with np.errstate(divide="ignore"):
            function(flat[block], out[block])

    blocks = [slice(*ends) for ends in pairwise(cuts)]
    for _ in map(compute, blocks) if n < 4 * _BLOCK else _threads().map(compute, blocks):
        pass
    return out.reshape(np.shape(x))


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
    ratio = 4.0 * q  # p'(q) / p(q) with p(q) = q(q + 6)(q + 10)(q + 12)
    ratio += 84.0
    ratio *= q
    ratio += 504.0
    ratio *= q
    ratio += 720.0
    ratio /= _product(q)
    ratio *= 2.0 * x + 7.0
    moved = x + _SHIFT
    inverse = 1.0 / moved
    np.log(moved, out=out)
    series = _series(inverse, _PSI)
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
    series = _series(inverse, _GAMMALN)
    series *= inverse
    out += series
    q = x + 7.0
    q *= x
    out -= np.log(_product(q))
    out += 0.5 * math.log(2.0 * math.pi)


def _product(q: Floats) -> Floats:
    """q(q + 6)(q + 10)(q + 12)."""
    product = q + 28.0
    product *= q
    product += 252.0
    product *= q
    product += 720.0
    product *= q
    return product
