"""What the first pass starts from, by name."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # the command line knows starts by name, and loads nothing heavy for that
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FirstVotes", "Start"]


class Start(StrEnum):
    """What the first pass starts from: the priors, shares of votes, or votes in which silence counts little.

    >>> Start("votes") is Start.VOTES
    True
    """

    PRIOR = "prior"
    VOTES = "votes"
    COVERAGE = "coverage"


class FirstVotes(NamedTuple):
    """How much the vote of each cell counts in the start ``[G]``, and how many votes every label has beforehand."""

    weight: NDArray[np.float64]
    smoothing: float
