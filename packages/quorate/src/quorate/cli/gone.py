"""Options that earlier versions had, and what to use instead."""

from __future__ import annotations

import re

from quorate.model.settings import GONE


def option_gone(option: str) -> str | None:
    """What to use instead of an option that an earlier version had; ``None`` of one that there never was.

    >>> option_gone("--checkpoint"), option_gone("--sharpen")
    ('there is no option --checkpoint any more (a fit takes seconds)', None)
    """
    instead = GONE.get(option.removeprefix("--").replace("-", "_"))
    if instead is None:
        return None
    flags = re.sub(r"(\w+)=True", r"--\1", re.sub(r"(\w+)=False", r"--no-\1", instead))
    return f"there is no option {option} any more ({flags})"
