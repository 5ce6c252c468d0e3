"""The engines by name. What one needs is imported when it is asked for, and not before."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Any

from quorate.infer.engines.protocol import Engine
from quorate.infer.engines.threads import ThreadsEngine

__all__ = ["EngineName", "engine_named"]


class EngineName(StrEnum):
    """Where passes run: on this machine's cores, or through JAX on an accelerator.

    >>> EngineName("jax").value
    'jax'
    """

    THREADS = "threads"
    JAX = "jax"


def engine_named(name: EngineName, cluster: Any = None) -> Callable[..., Engine]:
    """The engine of that name, to be called as :class:`ThreadsEngine` is; on the workers of a cluster if one is given.

    >>> engine_named(EngineName.THREADS).__name__
    'ThreadsEngine'
    """
    if cluster is not None:
        from quorate.infer.engines.cluster import ClusterEngine

        return partial(ClusterEngine, cluster=cluster, kind=engine_named(name))
    if name is EngineName.THREADS:
        return ThreadsEngine
    from quorate.infer.engines.jax import JaxEngine

    return JaxEngine
