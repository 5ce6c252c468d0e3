"""The engines by name, and the one place that makes them. What one needs is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Corpus
from quorate.crowd.crowd import Crowd
from quorate.model.engines.protocol import Engine
from quorate.model.engines.threads import ThreadsEngine


class EngineName(StrEnum):
    """Where passes run: on this machine's cores, or through JAX on an accelerator.

    >>> EngineName("jax").value
    'jax'
    """

    THREADS = "threads"
    JAX = "jax"


@dataclass(frozen=True)
class Engines:
    """Where passes were asked to run, handed down to whatever makes some: which engine, its threads, its cluster.

    ``threads`` of ``None`` are all cores; ``cluster`` is the address of a scheduler or a ``distributed.Client``.

    >>> Engines().name.value
    'threads'
    """

    name: EngineName = EngineName.THREADS
    threads: int | None = None
    cluster: Any = None

    @property
    def here(self) -> bool:
        """Whether passes run on this machine's cores, where a token can stand for all that are like it."""
        return self.name is EngineName.THREADS and self.cluster is None

    def over(
        self,
        crowd: Crowd,
        *,
        text: bool = True,
        times: NDArray[np.float64] | None = None,
        corpus: Corpus | None = None,
    ) -> Engine:
        """An engine over a crowd, to be closed after use; its known labels are clamped.

        ``corpus`` is where documents have the names that messages give. The rest is explained at
        :class:`quorate.model.engines.threads.ThreadsEngine`.
        """
        options: dict[str, Any] = {"known": crowd.known, "text": text, "threads": self.threads}
        if corpus is not None:
            options["names"] = lambda d: corpus[d].where()
        if times is not None:
            options["times"] = times
        if self.cluster is None:
            return self._kind()(crowd, **options)
        from quorate.model.engines.cluster import ClusterEngine

        return ClusterEngine(crowd, cluster=self.cluster, kind=self._kind(), **options)

    def _kind(self) -> Callable[..., Engine]:
        if self.name is EngineName.THREADS:
            return ThreadsEngine
        from quorate.model.engines.jax import JaxEngine

        return JaxEngine
