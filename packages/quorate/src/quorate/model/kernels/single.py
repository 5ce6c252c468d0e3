"""One document by itself: forward–backward, scaled, or in log space where scaling would lose too much; and Viterbi.

In C (``native/single.h``) for other kernels; here is what Python calls. Many documents side by side are done by
``native/lanes.c``. What all of them should give is said by NumPy in :mod:`quorate.model.engines.plain`, against which
they are tested. Letters as in :mod:`quorate.model.kernels.chain`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.native import native

Floats = NDArray[np.float64]
Ints32 = NDArray[np.int32]


class Steps(NamedTuple):
    """The truth's first label ``[J]`` and its steps ``[J, J]``: logarithms; and as they are, flat.

    ``back`` is ``trans`` transposed. ``least`` is the smallest step that is possible at all, and at most 1. With
    ``in_logs`` some step is possible and yet 0 as a number, so that all must be done in log space.
    """

    log_start: Floats
    log_trans: Floats
    start: Floats
    trans: Floats
    back: Floats
    least: float
    in_logs: bool


@native
def fill_steps(log_start: Floats, log_trans: Floats, start: Floats, trans: Floats, back: Floats) -> float:
    """Fill in the steps as they are; returns ``least``, negative if all must be done in log space."""


def steps_of(log_start: Floats, log_trans: Floats) -> Steps:
    """The steps from their logarithms ``[J]`` and ``[J, J]``.

    >>> steps = steps_of(np.log([0.75, 0.25]), np.log([[0.5, 0.5], [0.125, 0.875]]))
    >>> steps.trans.round(3).tolist(), round(steps.least, 3), steps.in_logs
    ([0.5, 0.5, 0.125, 0.875], 0.125, False)
    """
    J = len(log_start)
    log_start, log_trans = np.ascontiguousarray(log_start), np.ascontiguousarray(log_trans)
    start, trans, back = np.empty(J), np.empty(J * J), np.empty(J * J)
    least = fill_steps(log_start, log_trans, start, trans, back)
    return Steps(log_start, log_trans, start, trans, back, abs(least), least < 0)


@native
def viterbi(evidence: Floats, L: int, steps: Steps, end: Floats, back: Ints32, path: Ints32) -> None:
    """The best path; ties go to the lower label. ``end`` is added at the last token; ``back`` ``[L, J]`` is room."""
