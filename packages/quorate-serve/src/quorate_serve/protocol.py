"""HTTP as uvicorn speaks it, which itself waits for ever for the rest of a request's head."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from quorate_serve import patience


class Patient(HttpToolsProtocol):
    """A connection that is closed when no whole head of a request comes."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._timer = self.loop.call_later(patience.PATIENCE, self._look)

    def on_response_complete(self) -> None:
        """Begin to wait for the next one."""
        self._since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        wait = patience.PATIENCE
        if self.cycle is None or self.cycle.response_complete:
            wait += self._since - self.loop.time()
            if wait <= 0:
                self.transport.close()
                return
        self._timer = self.loop.call_later(wait, self._look)
