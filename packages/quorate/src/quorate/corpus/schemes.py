"""The names of tag schemes, and of what becomes of tags that break them."""

from __future__ import annotations

from enum import StrEnum


class Scheme(StrEnum):
    """How spans are written as tags.

    >>> Scheme("bio") is Scheme.BIO
    True
    """

    BIO = "bio"
    BIOES = "bioes"
    IO = "io"
    PLAIN = "plain"


class Invalid(StrEnum):
    """What to do with a tag that cannot follow the one before it.

    >>> Invalid("repair") is Invalid.REPAIR
    True
    """

    REPAIR = "repair"
    KEEP = "keep"
    ERROR = "error"
