"""How good a consensus is, against gold, and how far annotators agree: pure functions on tags and probabilities."""

from quorate.evaluate.metrics.agreement import Agreement, PairAgreement, measure_agreement
from quorate.evaluate.metrics.calibration import (
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
from quorate.evaluate.metrics.description import token_alpha
from quorate.evaluate.metrics.kappa import cohen_kappa, fleiss_kappa, krippendorff_alpha
from quorate.evaluate.metrics.overlap import partial, typed
from quorate.evaluate.metrics.significance import Interval, Wilcoxon, bootstrap_difference, bootstrap_f1, wilcoxon
from quorate.evaluate.metrics.span_errors import ErrorKinds, error_kinds
from quorate.evaluate.metrics.spans import (
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
from quorate.evaluate.metrics.tokens import TokenScores, token_scores
from quorate.evaluate.metrics.unitizing import Continuum, Unitizing, unitizing_alpha

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
    "token_alpha",
    "token_reliability",
    "token_scores",
    "typed",
    "unitizing_alpha",
    "wilcoxon",
]
