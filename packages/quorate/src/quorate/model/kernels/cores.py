"""How many cores there are to use, and work on all of them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Piece = TypeVar("Piece")
Result = TypeVar("Result")
_AHEAD = 4  # pieces a thread that may be done before their results are taken


def available_threads() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(work: Callable[[Piece], Result], pieces: Iterable[Piece], threads: int) -> Iterator[Result]:
    """``work`` of each piece on threads; results in the order of the pieces, and never many that wait to be taken.

    It should be work of compiled code, which lets go of the interpreter lock. When nobody takes results any more, what
    has not begun is left undone.

    >>> list(in_order(abs, [-3, 2, -1], 2))
    [3, 2, 1]
    """
    pool, waiting = _helpers(threads), deque[Future[Result]]()
    try:
        for piece in pieces:
            waiting.append(pool.submit(work, piece))
            if len(waiting) > _AHEAD * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def balanced(start: NDArray[np.int64], slices: int) -> NDArray[np.int64]:
    """Cuts between groups so that every slice holds about as many members."""
    wanted = np.linspace(0, start[-1], slices + 1)[1:-1]
    return np.concatenate([[0], np.searchsorted(start, wanted), [len(start) - 1]])


@lru_cache(maxsize=4)
def _helpers(threads: int) -> ThreadPoolExecutor:
    """Threads that stand ready from one call to the next."""
    return ThreadPoolExecutor(threads)


if hasattr(os, "register_at_fork"):  # a forked process has none of the threads
    os.register_at_fork(after_in_child=_helpers.cache_clear)
