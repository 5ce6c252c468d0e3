"""Arrays that a part takes back from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_arrays(
    arrays: Mapping[str, NDArray[Any]], shapes: Mapping[str, tuple[int, ...]], *, counts: bool = False
) -> None:
    """``ValueError`` unless each is there and in its shape; and all of it finite and not negative, if ``counts``."""
    for name, shape in shapes.items():
        if name not in arrays:
            raise ValueError(f"array {name!r} is missing")
        array = arrays[name]
        if array.shape != shape or array.dtype != np.float64:
            raise ValueError(f"array {name!r} is {_described(array.shape)}, where {_described(shape)} is expected")
        if counts and not (np.isfinite(array).all() and array.min(initial=0.0) >= 0):
            raise ValueError(f"array {name!r} holds what is not a count")


def _described(shape: tuple[int, ...]) -> str:
    return " by ".join(map(str, shape)) or "one number"
