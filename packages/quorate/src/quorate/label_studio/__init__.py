"""Label Studio, live: annotations are pulled from a project, combined, put back as predictions; what is next."""

from __future__ import annotations

from quorate.label_studio.client import Client, NoAnswerError
from quorate.label_studio.push import Pushed, Tab, push
from quorate.label_studio.sync import Synced, sync

__all__ = ["Client", "NoAnswerError", "Pushed", "Synced", "Tab", "push", "sync"]
