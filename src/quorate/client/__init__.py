"""A typed client of a service (:mod:`quorate.service`): ``Client("https://labels.example.org", "qt_0123")``.

Every request that fails in a way that may pass is tried again; what changes something carries an id that is made here,
so that what comes twice is one. Offsets are code points, ends excluded. ``pip install 'quorate[client]'`` brings what
it needs.
"""

from __future__ import annotations

from quorate.client.client import Client
from quorate.client.connection import (
    ConflictError,
    InvalidError,
    NotAllowedError,
    NotFoundError,
    NotLoggedInError,
    ServiceError,
    WaitError,
)
from quorate.service import answers
from quorate.service.answers import *  # noqa: F403
from quorate.service.webhooks import SignatureError, verify

__all__ = [
    "Client",
    "ConflictError",
    "InvalidError",
    "NotAllowedError",
    "NotFoundError",
    "NotLoggedInError",
    "ServiceError",
    "SignatureError",
    "WaitError",
    "verify",
]
__all__ += answers.__all__
