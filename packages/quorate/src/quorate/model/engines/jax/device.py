"""JAX itself: whether it is there, its doubles, its compiled code on disk, and sizes for which code is compiled."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from quorate.errors import SettingsError

try:
    import jax
except ImportError:  # pragma: no cover
    raise SettingsError("the engine 'jax' needs JAX (install it with: pip install 'quorate[jax]')") from None

_STEPS = 8  # sizes there are between a number and twice that number
_WORTH_KEEPING = 0.2  # seconds of compiling

P = ParamSpec("P")
R = TypeVar("R")


def roomy(n: int) -> int:
    """The next size for which code is compiled: at most an eighth more.

    >>> [roomy(n) for n in (0, 7, 17, 1000)]
    [8, 8, 18, 1024]
    """
    step = 1 << max((max(n, 1) - 1).bit_length() - _STEPS.bit_length(), 0)
    return max(-(-n // step) * step, _STEPS)


def filled_up(values: NDArray[Any], size: int, nothing: Any, kind: Any = np.int32) -> Any:
    """On the device, with ``nothing`` up to that size."""
    out = np.empty((size, *values.shape[1:]), kind)
    out[: len(values)] = values
    out[len(values) :] = nothing
    return jax.device_put(out)


def with_doubles(function: Callable[P, R]) -> Callable[P, R]:
    """JAX knows numbers of 64 bits in this function; elsewhere it is as the user has it."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return inside


@cache
def keep_compiled_code() -> None:
    """Called before anything is compiled: compiled code is kept on disk, unless JAX was told where to keep it."""
    config: Any = jax.config
    if config.jax_compilation_cache_dir is None:
        try:
            home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        except RuntimeError:  # nobody has a home in some containers
            return
        config.update("jax_compilation_cache_dir", str(home / "quorate" / "jax"))
        config.update("jax_persistent_cache_min_compile_time_secs", _WORTH_KEEPING)


def advice() -> list[str]:
    """A line for those whose passes would run on cores."""
    if jax.default_backend() != "cpu":
        return []
    return ["note: no accelerator was found, and on this machine's cores --engine threads is faster"]
