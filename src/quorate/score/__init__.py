"""How good a consensus is, against gold: pure functions on tags and probabilities."""

from quorate.score.calibration import cross_entropy
from quorate.score.spans import PRF, relaxed, strict

__all__ = ["PRF", "cross_entropy", "relaxed", "strict"]
