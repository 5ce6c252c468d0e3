"""A process for fits, which is stopped when one takes too long or too much memory; updates go on meanwhile."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

from quorate.errors import QuorateError
from quorate.limits import size_in_words
from quorate.memory import free_memory
from quorate_serve.processes import end_with_supervisor, leave_a_core
from quorate_serve.settings import FitSettings

T = TypeVar("T")
_LOOK = 0.1  # seconds between two looks at what a fit takes
_NICE = 10
_log = logging.getLogger("quorate_serve.live")


class FitError(QuorateError):
    """A fit failed in its process."""


class FitStoppedError(FitError):
    """A fit took more than it may, and was stopped."""


class Limited:
    """Computes one thing at a time in a process of its own, within limits. The process is there from the first on."""

    def __init__(self, settings: FitSettings) -> None:
        self._settings = settings
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    def __call__(self, compute: Callable[..., T], *given: Any) -> T:
        """What a function of a module gives; :class:`FitStoppedError` if it takes too much."""
        free = free_memory()
        most = self._settings.memory or (None if free is None else free * 4 // 5)
        process, connection = self._started()
        until = time.monotonic() + self._settings.seconds
        try:
            connection.send((compute, given))
            while not connection.poll(_LOOK):
                self._check(until, most, process)
            is_well, outcome = connection.recv()
        except (EOFError, OSError):
            self.stop()
            raise FitStoppedError("its process was killed (too little memory on this machine?)") from None
        if not is_well:
            raise FitError(outcome)
        return outcome  # type: ignore[no-any-return]

    def stop(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None and self._connection is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
        self._process = self._connection = None

    def _check(self, until: float, most: int | None, process: BaseProcess) -> None:
        if time.monotonic() > until:
            self.stop()
            allowed = f"{self._settings.seconds:g} s"
            raise FitStoppedError(f"it took more than {allowed} and was stopped (option fit-seconds)")
        size = _memory_of(process.pid)
        if most is not None and size is not None and size > most:
            self.stop()
            raise FitStoppedError(f"it took more than {size_in_words(most)} and was stopped (option fit-memory)")

    def _started(self) -> tuple[BaseProcess, Connection]:
        if self._process is None or self._connection is None or not self._process.is_alive():
            self.stop()
            context = multiprocessing.get_context(
                "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else None
            )
            self._connection, theirs = context.Pipe()
            self._process = context.Process(target=_compute, args=(theirs,), name="quorate-fits", daemon=True)
            self._process.start()
            theirs.close()
        return self._process, self._connection


def _compute(connection: Connection) -> None:
    """The process itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of the terminal: one of them decides
    end_with_supervisor()
    if hasattr(os, "nice"):
        os.nice(_NICE)
    leave_a_core()
    with suppress(EOFError, OSError):
        while True:
            compute, given = connection.recv()
            try:
                answer = True, compute(*given)
            except QuorateError as error:
                answer = False, str(error)
            except Exception as error:
                _log.warning("a fit failed", exc_info=not isinstance(error, ArithmeticError | MemoryError))
                answer = False, f"{type(error).__name__}: {error}"
            connection.send(answer)


def _memory_of(process: int | None) -> int | None:
    """Bytes that a process holds; ``None`` where that cannot be known."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return None
