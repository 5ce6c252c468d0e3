"""Text from outside on its way to a terminal: a name or a label must not move the cursor, nor begin a line."""

from __future__ import annotations

import re

__all__ = ["escaped"]

# Control characters, what ends a line, what turns the direction of writing around, and halves of characters, which
# cannot be written at all.
_UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def escaped(text: str) -> str:
    r"""The text in one line, with its control characters escaped as Python escapes them.

    >>> escaped("ann\nquorate: all is well"), escaped("\x1b[2J"), escaped("Zoë 👋")
    ('ann\\nquorate: all is well', '\\x1b[2J', 'Zoë 👋')
    """
    return _UNSHOWN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
