"""Connections on which nothing comes are closed: each holds memory, and a few thousand would be all that a process has.

Whoever connects sends the whole head of a request within :data:`PATIENCE` seconds (:mod:`quorate_serve.protocol`),
and does not stop for as long within its body (:class:`quorate_serve.security_headers.BodyLimit`). A peer that is gone
without a word is noticed by the kernel, as :func:`notice_who_is_gone` asks it to.
"""

from __future__ import annotations

import socket

PATIENCE = 30.0
"""Seconds."""

_KERNEL = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}


def notice_who_is_gone(listening: socket.socket) -> None:
    """Have connections of this socket end when the other side has answered nothing for 30 seconds."""
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KERNEL.items():
        if hasattr(socket, name):  # not every system has all of them
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
