"""Label Studio, live: annotations are pulled from a project, combined, and the consensus put back as predictions."""

from __future__ import annotations

from quorate.label_studio.client import Client, NoAnswerError
from quorate.label_studio.sync import Synced, sync

__all__ = ["Client", "NoAnswerError", "Synced", "sync"]
