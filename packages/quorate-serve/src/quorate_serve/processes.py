"""What processes of a service do as they begin: they end with the one that started them, and leave room for others."""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing.process import parent_process


def leave_a_core() -> None:
    """Keep this process off one core, where there are several: those who save are answered there."""
    if hasattr(os, "sched_setaffinity") and len(cores := os.sched_getaffinity(0)) > 1:
        os.sched_setaffinity(0, cores - {min(cores)})


def end_with_supervisor() -> None:
    """Have this process asked to end when the one that looks after it is no more."""
    threading.Thread(target=_wait_for_its_end, name="quorate-supervised", daemon=True).start()


def _wait_for_its_end() -> None:
    supervisor, forked_by = parent_process(), os.getppid()
    assert supervisor is not None
    # Without the process that forked this one, the supervisor cannot see this one any more, and starts another.
    while supervisor.is_alive() and os.getppid() == forked_by:
        supervisor.join(1.0)
    os.kill(os.getpid(), signal.SIGTERM)
