"""The processes of a service: those that do its work, and this one, which starts them again when they die.

The socket is opened here and lent to whoever answers, so that a browser that calls while a process is being replaced
waits for a moment instead of being turned away.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from types import FrameType

from quorate.errors import SettingsError
from quorate.service.settings import ServiceSettings

__all__ = ["listen", "supervise"]

_PATIENCE = 20.0  # seconds that a process has to end by itself
_SLOWEST = 30.0  # seconds until one that dies again and again is tried once more
_LOOK = 0.05


def listen(settings: ServiceSettings) -> socket.socket:
    """The socket to answer on."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    if os.name == "posix":
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((settings.host, settings.port))
    except OSError as error:
        taken.close()
        told = error.strerror or error
        raise SettingsError(f"{settings.host}:{settings.port}: {told} (give another --port)") from None
    taken.listen(512)
    return taken


def supervise(settings: ServiceSettings, taken: socket.socket) -> None:
    """Run the service until it is told to stop (Ctrl-C, or SIGTERM)."""
    context = multiprocessing.get_context(
        "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else None
    )
    if context.get_start_method() == "forkserver":
        # Loaded once, so that a process that takes the place of another is there in milliseconds.
        context.set_forkserver_preload(["quorate.service.app", "uvicorn"])
    kept = [
        _Kept(lambda: context.Process(target=answer, args=(settings, taken), name="quorate-answers")),
        _Kept(lambda: context.Process(target=follow, args=(settings,), name="quorate-follows")),
    ]
    stopping = _Stopping()
    try:
        while not stopping.asked:
            for each in kept:
                each.see_to()
            time.sleep(_LOOK)
    finally:
        for each in kept:
            each.end()


class _Stopping:
    """Whether somebody asked the service to stop."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True


class _Kept:
    """A process that is started again when it ends; slower and slower, if it does so at once."""

    def __init__(self, make: Callable[[], BaseProcess]) -> None:
        self._make = make
        self._process: BaseProcess | None = None
        self._began, self._due, self._wait = 0.0, 0.0, 0.0

    def see_to(self) -> None:
        """Start it if it is not there."""
        now = time.monotonic()
        if self._process is not None and self._process.is_alive():
            return
        if self._process is not None:
            self._process.join()
            self._wait = 0.0 if now - self._began > 2.0 else min(_SLOWEST, max(0.05, 2 * self._wait))
            self._due, self._process = now + self._wait, None
        if now >= self._due:
            self._process, self._began = self._make(), now
            self._process.start()

    def end(self) -> None:
        """Let it finish what it is doing, and end."""
        if self._process is None:
            return
        self._process.terminate()
        self._process.join(_PATIENCE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def follow(settings: ServiceSettings) -> None:
    """The process that keeps the consensus alive."""
    from quorate.service.live import worker  # with all that a fit takes, which nobody else here needs

    worker.follow(settings)


def answer(settings: ServiceSettings, taken: socket.socket) -> None:
    """The process that answers."""
    import uvicorn

    from quorate.service.app import create_app

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of the terminal: one of them decides
    app = create_app(settings)

    class Server(uvicorn.Server):
        """Lets go of those who listen to news as soon as it is told to stop: they would hold it up."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            app.state.ticks.stop()
            super().handle_exit(sig, frame)

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        proxy_headers=settings.origin is not None,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    Server(config).run(sockets=[taken])
    sys.exit(0)
