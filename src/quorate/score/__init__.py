"""How good a consensus is, against gold, and how far annotators agree: pure functions on tags and probabilities."""

from quorate.score.agreement import Agreement, PairAgreement, measure_agreement
from quorate.score.calibration import (
    Brier,
    CrossEntropy,
    Reliability,
    ReliabilityBin,
    brier,
    cross_entropy,
    emitted_confidence,
    reliability,
    span_reliability,
    token_reliability,
)
from quorate.score.kappa import cohen_kappa, fleiss_kappa, krippendorff_alpha
from quorate.score.overlap import partial, typed
from quorate.score.significance import Interval, Wilcoxon, bootstrap_difference, bootstrap_f1, wilcoxon
from quorate.score.span_errors import ErrorKinds, error_kinds
from quorate.score.spans import (
    PRF,
    Tallies,
    TypeScore,
    macro,
    relaxed,
    relaxed_tallies,
    strict,
    strict_by_type,
    strict_tallies,
)
from quorate.score.tokens import TokenScores, token_scores
from quorate.score.unitizing import Continuum, Unitizing, unitizing_alpha

__all__ = [
    "PRF",
    "Agreement",
    "Brier",
    "Continuum",
    "CrossEntropy",
    "ErrorKinds",
    "Interval",
    "PairAgreement",
    "Reliability",
    "ReliabilityBin",
    "Tallies",
    "TokenScores",
    "TypeScore",
    "Unitizing",
    "Wilcoxon",
    "bootstrap_difference",
    "bootstrap_f1",
    "brier",
    "cohen_kappa",
    "cross_entropy",
    "emitted_confidence",
    "error_kinds",
    "fleiss_kappa",
    "krippendorff_alpha",
    "macro",
    "measure_agreement",
    "partial",
    "relaxed",
    "relaxed_tallies",
    "reliability",
    "span_reliability",
    "strict",
    "strict_by_type",
    "strict_tallies",
    "token_reliability",
    "token_scores",
    "typed",
    "unitizing_alpha",
    "wilcoxon",
]
