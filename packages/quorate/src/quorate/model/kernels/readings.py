"""The compiled kernel that says how well probabilities of the truth predict somebody's labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.native import native

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@native
def add_readings(
    posterior: Floats,
    token: Ints,
    label: NDArray[np.int32],
    low: int,
    high: int,
    matrix: Floats,
    logs: bool,
    right: Floats,
) -> float:
    """Adds to ``right [label, truth]`` how probable each truth is, now that items ``low`` to ``high`` were said.

    ``matrix [label, truth]`` is how often each label is said of a truth; while it is empty, nothing is known of that.
    Returns Σ ln of how likely what was said is, if ``logs``.
    """
