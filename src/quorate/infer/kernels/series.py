"""The coefficients of the asymptotic series of ψ and ln Γ, by rising powers of 1/x²."""

from __future__ import annotations

__all__ = ["GAMMALN_SERIES", "PSI_SERIES"]

PSI_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
GAMMALN_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
