"""How many cores there are to use."""

from __future__ import annotations

import os

__all__ = ["available_threads"]


def available_threads() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
