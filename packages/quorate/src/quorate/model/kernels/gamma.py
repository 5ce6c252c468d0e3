"""ψ, ln Γ and how it bends, e^x and ln x, of many numbers in vectors (``native/gamma.c``)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.native import native

Floats = NDArray[np.float64]


@native
def fill_psi(x: Floats, out: Floats) -> None:
    """ψ of at least four numbers ≥ 0, −inf at 0."""


@native
def fill_gammaln(x: Floats, out: Floats) -> None:
    """ln Γ of at least four numbers ≥ 0, inf at 0."""


@native
def fill_bend(x: Floats, step: Floats, out: Floats) -> None:
    """How far ln Γ bends from at least four numbers ≥ 0 on: see :func:`quorate.model.kernels.special.gammaln_bend`."""


@native
def fill_exp(x: Floats, out: Floats) -> None:
    """e^x of at least four numbers up to 700; 0 below −708."""


@native
def fill_log(x: Floats, out: Floats) -> None:
    """ln x of at least four normal numbers above 0."""
