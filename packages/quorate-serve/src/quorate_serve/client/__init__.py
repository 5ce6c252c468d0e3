"""A typed client of a service (:mod:`quorate_serve`): ``Client("https://labels.example.org", "qt_0123")``.

Every request that fails in a way that may pass is tried again; what changes something carries an id that is made here,
so that what comes twice is one. Offsets are code points, ends excluded.
"""

from __future__ import annotations

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
from quorate_serve.client.records import (
    Annotation,
    Candidate,
    Consensus,
    ConsensusSpan,
    Dispute,
    Document,
    DocumentSummary,
    Event,
    HistoryEntry,
    Imported,
    Invitation,
    Opinion,
    Person,
    Place,
    Progress,
    Review,
    Reviewed,
    ReviewTask,
    Revision,
    Saved,
    Span,
    Task,
    Token,
    TokenMade,
    Version,
)
from quorate_serve.webhooks import SignatureError, verify

__all__ = [
    "Annotation",
    "Candidate",
    "Client",
    "ConflictError",
    "Consensus",
    "ConsensusSpan",
    "Dispute",
    "Document",
    "DocumentSummary",
    "Event",
    "HistoryEntry",
    "Imported",
    "InvalidError",
    "Invitation",
    "NotAllowedError",
    "NotFoundError",
    "NotLoggedInError",
    "Opinion",
    "Person",
    "Place",
    "Progress",
    "Review",
    "ReviewTask",
    "Reviewed",
    "Revision",
    "Saved",
    "ServiceError",
    "SignatureError",
    "Span",
    "Task",
    "Token",
    "TokenMade",
    "Version",
    "WaitError",
    "verify",
]
