"""Text on its way to a terminal: a name or a label must not move the cursor, nor begin a line; wrapped to its width."""

from __future__ import annotations

import os
import re
from typing import TextIO

_USUAL_WIDTH = 80

# Control characters, what ends a line, what turns the direction of writing around, and halves of characters, which
# cannot be written at all.
_UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def escaped(text: str) -> str:
    r"""The text in one line, with its control characters escaped as Python escapes them.

    >>> escaped("ann\nquorate: all is well"), escaped("\x1b[2J"), escaped("Zoë 👋")
    ('ann\\nquorate: all is well', '\\x1b[2J', 'Zoë 👋')
    """
    return _UNSHOWN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def width_of(stream: TextIO) -> int | None:
    """How many columns the terminal has that a stream goes to; ``None`` where it goes to a file or into a pipe."""
    if not stream.isatty():
        return None
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    except OSError:
        return _USUAL_WIDTH


def wrapped(line: str, width: int, *, indent: int = 2) -> str:
    """A line in as many as it takes, between words; those after the first are indented.

    A word that is too long, such as a path, stays whole, so that it can be copied.

    >>> print(wrapped("quorate: combined, and written to out.jsonl", 30, indent=9))
    quorate: combined, and written
             to out.jsonl
    >>> wrapped("short", 80)
    'short'
    """
    from rich.cells import cell_len  # a character may take two columns

    if cell_len(line) <= width:
        return line
    words = line.split(" ")
    lines = [words[0]]
    for word in words[1:]:
        if cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(" " * indent + word)
    return "\n".join(lines)
