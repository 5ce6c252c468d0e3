"""A typed client of a service (:mod:`quorate_serve`): ``Client("https://labels.example.org", "qt_0123")``.

Every request that fails in a way that may pass is tried again; what changes something carries an id that is made here,
so that what comes twice is one. Offsets are code points, ends excluded.
"""

from __future__ import annotations

from quorate_serve import answers
from quorate_serve.answers import *  # noqa: F403
from quorate_serve.client.client import Client
from quorate_serve.client.connection import (
    ConflictError,
    InvalidError,
    NotAllowedError,
    NotFoundError,
    NotLoggedInError,
    ServiceError,
    WaitError,
)
from quorate_serve.webhooks import SignatureError, verify

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
