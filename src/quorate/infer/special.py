"""ψ and ln Γ of many numbers, in blocks on this machine's cores: the words of a large vocabulary take long on one."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

__all__ = ["gammaln", "psi"]

Floats = NDArray[np.float64]

_BLOCK = 1 << 13


def psi(x: Floats) -> Floats:
    """ψ of numbers ≥ 0, −inf at 0.

    >>> psi(np.array([1.0, 0.5])).round(6)
    array([-0.577216, -1.96351 ])
    """
    return _blockwise(special.psi, x)


def gammaln(x: Floats) -> Floats:
    """ln Γ of numbers ≥ 0, inf at 0.

    >>> gammaln(np.array([1.0, 5.0])).round(6)
    array([0.      , 3.178054])
    """
    return _blockwise(special.gammaln, x)


def _blockwise(function: Callable[..., Any], x: Floats) -> Floats:
    """SciPy lets go of the interpreter lock, so that threads help; where there is little to do, they do not."""
    if np.size(x) < 2 * _BLOCK:
        return np.asarray(function(x))
    flat = np.ascontiguousarray(x).reshape(-1)
    out = np.empty_like(flat)
    blocks = [slice(first, first + _BLOCK) for first in range(0, len(flat), _BLOCK)]
    for _ in _threads().map(lambda block: function(flat[block], out=out[block]), blocks):
        pass
    return out.reshape(np.shape(x))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
