"""Dirichlet distributions, row-wise along the last axis. A concentration of 0 is a structural zero: left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from quorate.infer.special import gammaln, psi

__all__ = ["View", "divergence", "expected_log", "kl", "kl_sparse", "log_mean", "view_of"]

Floats = NDArray[np.float64]
View = Callable[..., Floats]
"""How a posterior is looked at: :func:`expected_log` inside the loop, :func:`log_mean` for what is given out."""


def expected_log(concentration: Floats, total: Floats | None = None) -> Floats:
    """E ln π_i = ψ(a_i) − ψ(Σ a); −inf at structural zeros. ``total`` is Σ a where the row is not all there.

    >>> expected_log(np.array([1.0, 1.0, 0.0])).round(6)
    array([ -1.,  -1., -inf])
    """
    if total is None:
        total = concentration.sum(axis=-1, keepdims=True)
    return psi(concentration) - psi(total)


def log_mean(concentration: Floats, total: Floats | None = None) -> Floats:
    """ln E π_i = ln a_i − ln Σ a; −inf at structural zeros. ``total`` is Σ a where the row is not all there.

    >>> np.exp(log_mean(np.array([3.0, 1.0, 0.0])))
    array([0.75, 0.25, 0.  ])
    """
    if total is None:
        total = concentration.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.log(concentration) - np.log(total)


def view_of(point: bool) -> View:
    """How a pass looks at a part: at its mean where a point is estimated (EM), in expectation where not (VB)."""
    return log_mean if point else expected_log


def divergence(posterior: Floats, prior: Floats, *, point: bool) -> float:
    """What a part takes from the bound: KL(posterior ‖ prior), or for a point estimate its −ln p(θ̂).

    The point θ̂ is the posterior's mean, which is the most probable one under the prior Dir(prior + 1) and the counts.

    >>> a, p = np.array([3.0, 1.0]), np.array([1.0, 1.0])
    >>> bool(np.isclose(divergence(a, p, point=True), -np.log(6 * 0.75 * 0.25)))
    True
    """
    if not point:
        return kl(posterior, prior)
    a, p = np.broadcast_arrays(posterior, prior)
    live = p > 0
    rows = gammaln((p + live).sum(axis=-1))
    cells = p[live] * log_mean(a)[live] - gammaln(p[live] + 1)
    return -float(rows.sum() + cells.sum())


def kl(posterior: Floats, prior: Floats) -> float:
    """Σ over rows of KL(Dir(posterior) ‖ Dir(prior)), which must have the same structural zeros.

    >>> kl(np.array([1.0, 1.0]), np.array([1.0, 1.0]))
    0.0
    """
    a, p = np.broadcast_arrays(posterior, prior)
    live = a > 0
    return kl_sparse(a[live], p[live], expected_log(a)[live], a.sum(axis=-1), p.sum(axis=-1))


def kl_sparse(cells: Floats, prior_cells: Floats, expected: Floats, totals: Floats, prior_totals: Floats) -> float:
    """The same from the cells that differ from their prior (with their E ln π) and the totals of whole rows.

    >>> a, p = np.array([2.0, 1.0]), np.array([1.0, 1.0])
    >>> bool(np.isclose(kl_sparse(a[:1], p[:1], expected_log(a)[:1], a.sum(), p.sum()), kl(a, p)))
    True
    """
    rows = gammaln(totals) - gammaln(prior_totals)
    changed = gammaln(prior_cells) - gammaln(cells) + (cells - prior_cells) * expected
    return float(rows.sum() + changed.sum())
