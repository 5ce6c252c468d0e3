"""What the first pass starts from, by name."""

from __future__ import annotations

from enum import StrEnum


class Start(StrEnum):
    """What the first pass starts from: the priors, or shares of votes.

    >>> Start("votes") is Start.VOTES
    True
    """

    PRIOR = "prior"
    VOTES = "votes"
