"""ψ and ln Γ of many numbers at once, and how far ln Γ bends, on this machine's cores.

All by their asymptotic series: the argument is moved up by 8 with the recurrence Γ(x + 8) = x(x + 1)…(x + 7)·Γ(x),
where the series is exact to the last digits; with q = x² + 7x the product is q(q + 6)(q + 10)(q + 12). Compiled
vectors fill the arrays (:mod:`quorate.model.kernels.gamma`), on threads where a vocabulary is large. SciPy's functions
take several times as long, and longer to load than a small fit.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.cores import available_threads
from quorate.model.kernels.gamma import fill_bend, fill_gammaln, fill_psi

Floats = NDArray[np.float64]
Fill = Callable[..., None]

_BLOCK = 1 << 13  # numbers that are worth a thread
_LEAST = 4  # numbers that a kernel takes at least


def psi(x: Floats) -> Floats:
    """ψ of numbers ≥ 0, −inf at 0.

    >>> psi(np.array([1.0, 0.5])).round(6)
    array([-0.577216, -1.96351 ])
    """
    return _filled(fill_psi, x)


def gammaln(x: Floats) -> Floats:
    """ln Γ of numbers ≥ 0, inf at 0.

    >>> gammaln(np.array([1.0, 5.0])).round(6)
    array([0.      , 3.178054])
    """
    return _filled(fill_gammaln, x)


def gammaln_bend(x: Floats, step: Floats) -> Floats:
    """How far ln Γ lies above its tangent at x + step, seen at x: ln Γ(x) − ln Γ(x + step) + step·ψ(x + step).

    For x, x + step ≥ 0; nothing bends at x = 0 unless there is a step. It is right to some 1e-16·(step + 1), whatever
    x: of large numbers the terms agree in nearly all their digits, so that they cannot be taken from one another.

    >>> gammaln_bend(np.array([1.0, 1e9]), np.array([1.0, 1000.0])).round(6)
    array([0.422784, 0.0005  ])
    """
    x, step = np.broadcast_arrays(x, step)
    return _filled(fill_bend, x, step)


def _filled(fill: Fill, *arguments: Floats) -> Floats:
    shape = np.shape(arguments[0])
    flat = [np.ascontiguousarray(x, np.float64).reshape(-1) for x in arguments]
    n = len(flat[0])
    if 0 < n < _LEAST:
        flat = [np.resize(x, _LEAST) for x in flat]
    out = np.empty_like(flat[0])
    n_blocks = min(available_threads(), n // _BLOCK)
    if n_blocks < 2:
        if n:
            fill(*flat, out)
        return out[:n].reshape(shape)

    def compute(ends: tuple[int, int]) -> None:
        block = slice(*ends)
        fill(*(x[block] for x in flat), out[block])

    for _ in _threads().map(compute, pairwise(np.linspace(0, n, n_blocks + 1).astype(np.int64).tolist())):
        pass
    return out.reshape(shape)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(available_threads())
