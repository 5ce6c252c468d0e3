"""Numba, loaded without what no kernel needs.

On its first call numba loads SciPy's linear algebra, only to see that it is there: on a small corpus that takes longer
than the fit. It is there, as this package needs SciPy; what numba compiles is the same.
"""

from __future__ import annotations

import sys

__all__ = ["load_numba"]


def load_numba() -> None:
    """Load numba as it would load itself, less SciPy.

    >>> load_numba()
    >>> from numba.np import arraymath
    >>> arraymath._HAVE_BLAS
    True
    """
    if "numba.np.arraymath" in sys.modules:
        return
    try:
        import numba.np.linalg as linear_algebra

        look = linear_algebra.ensure_blas
    except (ImportError, AttributeError):  # another version of numba, which is free to do it in another way
        return
    linear_algebra.ensure_blas = lambda: None
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        linear_algebra.ensure_blas = look
