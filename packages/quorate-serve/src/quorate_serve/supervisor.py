"""The processes of a service: those that do its work, and this one, which starts them again when they die.

The socket is opened here and lent to whoever answers, so that a browser that calls while a process is being replaced
waits for a moment instead of being turned away. If this process is the one that dies, the others end too, and whatever
looks after it can start the service again.
"""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import TYPE_CHECKING

from quorate.errors import SettingsError
from quorate_serve.patience import notice_who_is_gone
from quorate_serve.processes import end_with_supervisor, leave_a_core
from quorate_serve.settings import ServiceSettings

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

_SWITCH = 0.0005  # seconds that a thread may go on while another waits: one that writes waits after every statement
_PATIENCE = 20.0  # seconds that a process has to end by itself
_SLOWEST = 30.0  # seconds until one that dies again and again is tried once more
_QUICK = 2.0  # seconds: one that ends sooner, by itself, waits before it is tried again
_KILLED = -9  # how one ends that was killed from outside, which is no fault of its own
_LOOK = 0.05
_FREED = 2.0  # seconds in which a service that was killed lets go of its port


def listen(settings: ServiceSettings) -> socket.socket:
    """The socket to answer on."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    if os.name == "posix":
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        _bind(taken, (settings.host, settings.port))
        notice_who_is_gone(taken)
        taken.listen(512)
    except OSError as error:
        taken.close()
        reason = error.strerror or error
        raise SettingsError(f"{settings.host}:{settings.port}: {reason} (give another --port)") from None
    return taken


def _bind(taken: socket.socket, place: tuple[str, int]) -> None:
    """Take a port; one that the processes of a service have that was killed a moment ago is waited for."""
    until = time.monotonic() + _FREED
    while True:
        try:
            taken.bind(place)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > until:
                raise
            time.sleep(_LOOK)
        else:
            return


def supervise(settings: ServiceSettings, taken: socket.socket) -> None:
    """Run the service until it is told to stop (Ctrl-C, or SIGTERM)."""
    context = multiprocessing.get_context(
        "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else None
    )
    if context.get_start_method() == "forkserver":
        # Loaded once, so that a process that takes the place of another is there in milliseconds.
        context.set_forkserver_preload(["quorate_serve.app", "uvicorn"])
    kept = [
        _Kept(lambda: context.Process(target=answer, args=(settings, taken), name="quorate-answers")),
        _Kept(lambda: context.Process(target=follow, args=(settings,), name="quorate-follows")),
    ]
    if settings.label_studio.projects:
        kept.append(_Kept(lambda: context.Process(target=stay_in_step, args=(settings,), name="quorate-in-step")))
    stopping = _Stopping()
    try:
        while not stopping.asked:
            for each in kept:
                each.see_to()
            wait([end for each in kept if (end := each.sentinel) is not None], _LOOK)
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
    """A process that is started again when it ends; slower and slower, if it does so at once by itself."""

    def __init__(self, make: Callable[[], BaseProcess]) -> None:
        self._make = make
        self._process: BaseProcess | None = None
        self._began, self._due, self._wait = 0.0, 0.0, 0.0

    @property
    def sentinel(self) -> int | None:
        """What can be waited for until it ends, while it runs."""
        return None if self._process is None else self._process.sentinel

    def see_to(self) -> None:
        """Start it if it is not there."""
        now = time.monotonic()
        if self._process is not None and self._process.is_alive():
            return
        if self._process is not None:
            self._process.join()
            well = now - self._began > _QUICK or self._process.exitcode == _KILLED
            self._wait = 0.0 if well else min(_SLOWEST, max(_LOOK, 2 * self._wait))
            self._due, self._process = now + self._wait, None
        if now >= self._due:
            process = self._make()
            try:
                process.start()
            except (OSError, EOFError):  # what forks for this one was killed itself, and is there again at the next try
                self._due = now + _LOOK
            else:
                self._process, self._began = process, now

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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as below, and before what follows is loaded
    from quorate_serve.live import worker  # with all that a fit takes, which nobody else here needs

    end_with_supervisor()
    sys.setswitchinterval(_SWITCH)
    leave_a_core()
    worker.follow(settings)


def stay_in_step(settings: ServiceSettings) -> None:
    """The process that keeps projects of Label Studio in step."""
    from quorate_serve import label_studio

    end_with_supervisor()
    sys.setswitchinterval(_SWITCH)
    label_studio.stay_in_step(settings)


def answer(settings: ServiceSettings, taken: socket.socket) -> None:
    """The process that answers."""
    from quorate_serve.app import create_app

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of the terminal: one of them decides
    end_with_supervisor()
    sys.setswitchinterval(_SWITCH)
    app = create_app(settings)
    _keep_what_is_loaded()
    server_of(app, settings).run(sockets=[taken])
    sys.exit(0)


def server_of(app: FastAPI, settings: ServiceSettings) -> uvicorn.Server:
    """What answers requests for an application."""
    import uvicorn

    from quorate_serve.guard import guard
    from quorate_serve.protocol import Patient

    class Server(uvicorn.Server):
        """Lets go of those who listen to news as soon as it is told to stop: they would hold it up."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if hasattr(app.state, "ticks"):  # or it is only starting
                app.state.ticks.stop()
            super().handle_exit(sig, frame)

    config = uvicorn.Config(
        guard(app, settings),
        http=Patient,
        ws="none",
        log_level="warning",
        access_log=False,
        proxy_headers=settings.origin is not None,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    return Server(config)


def _keep_what_is_loaded() -> None:
    """Look for garbage among what comes from now on: through all that is loaded, it takes a tenth of a second."""
    gc.freeze()
