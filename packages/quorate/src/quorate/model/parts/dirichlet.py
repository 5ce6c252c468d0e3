"""Dirichlet distributions, row-wise along the last axis. A concentration of 0 is a structural zero: left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.special import gammaln, gammaln_bend, psi

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


def not_below_zero(counts: Floats) -> Floats:
    """Counts from which some were taken out: rounding may leave less than nothing of them.

    >>> not_below_zero(np.array([1.0, 0.3 - (0.1 + 0.2)]))
    array([1., 0.])
    """
    return np.maximum(counts, 0.0)


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
    live, counts = p > 0, a - p
    at_prior = gammaln((p + live).sum(axis=-1)).sum() + (p[live] * log_mean(p)[live]).sum() - gammaln(p[live] + 1).sum()
    return point_sparse(p[live], counts[live], p.sum(axis=-1), counts.sum(axis=-1)) - float(at_prior)


def point_sparse(prior: Floats, counts: Floats, row_prior: Floats, row_counts: Floats) -> float:
    """By how much −ln p(θ̂) is above that of the prior's own mean, from cells and rows as :func:`kl_sparse` has them.

    Not by p·ln θ̂: under a large prior that is nearly the same number every time.
    """
    cells, rows = prior * np.log1p(counts / prior), row_prior * np.log1p(row_counts / row_prior)
    return float(rows.sum() - cells.sum())


def kl(posterior: Floats, prior: Floats) -> float:
    """Σ over rows of KL(Dir(posterior) ‖ Dir(prior)), which must have the same structural zeros.

    >>> kl(np.array([1.0, 1.0]), np.array([1.0, 1.0]))
    0.0
    """
    a, p = np.broadcast_arrays(posterior, prior)
    live, counts = a > 0, a - p
    return kl_sparse(p[live], counts[live], p.sum(axis=-1), counts.sum(axis=-1))


def kl_sparse(prior: Floats, counts: Floats, row_prior: Floats, row_counts: Floats) -> float:
    """The same from the cells that differ from their prior, by ``counts``, and the totals of whole rows.

    A sum of how far ln Γ bends: every term is as small as the counts are beside the prior, and none cancels another.

    >>> a, p = np.array([2.0, 1.0]), np.array([1.0, 1.0])
    >>> bool(np.isclose(kl_sparse(p[:1], (a - p)[:1], p.sum(), (a - p).sum()), kl(a, p)))
    True
    """
    return float(gammaln_bend(prior, counts).sum() - gammaln_bend(row_prior, row_counts).sum())
