"""Processes that tests start: they can be interrupted, and none outlives its test."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol


class Start(Protocol):
    """Starts a process, as :class:`subprocess.Popen` does."""

    def __call__(self, command: Sequence[str], **options: Any) -> subprocess.Popen[Any]: ...


@contextmanager
def started_here() -> Iterator[Start]:
    """Whatever is started in this block is ended with it, and with it all that it has started in turn."""
    processes: list[subprocess.Popen[Any]] = []

    def start(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        # A process inherits that SIGINT is ignored, as it is where tests run in the background of a script. What has
        # a handler here begins with the default there.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            processes.append(subprocess.Popen(command, start_new_session=True, **options))
        finally:
            signal.signal(signal.SIGINT, before)
        return processes[-1]

    try:
        yield start
    finally:
        for process in reversed(processes):
            end(process)


def end(process: subprocess.Popen[Any]) -> None:
    """Kill a process and its group."""
    if os.name == "posix":
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    process.wait(60)
