"""How far probabilities can be trusted: cross entropy, Brier score, calibration error with its reliability bins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.corpus.records import Tag
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme, find_spans
from quorate.errors import InputError, SettingsError
from quorate.evaluate.metrics.reading import opens_at_orphans, tag_pairs
from quorate.wording import counted

Floats = NDArray[np.float64]

_CLIP = 1e-100
_ROUNDING = 1e-6  # how far a probability may leave [0, 1] by rounding
_UNKNOWN, _UNSCORED = -1, -2


class CrossEntropy(NamedTuple):
    """Mean of −ln p(gold label), over how many tokens, and how many of those had a gold label outside the label set.

    >>> CrossEntropy(0.5, 10, 0).mean
    0.5
    """

    mean: float
    tokens: int
    unknown: int


class Brier(NamedTuple):
    """Mean squared error of the probabilities, over how many tokens, how many with gold outside the label set.

    >>> Brier(0.1, 10, 0).tokens
    10
    """

    mean: float
    tokens: int
    unknown: int


def cross_entropy(
    probabilities: Iterable[Floats], gold: Iterable[Sequence[Tag] | None], labels: Sequence[str]
) -> CrossEntropy:
    """The cross entropy error (CEE): mean over tokens with gold of −ln p(gold label), clipped at p = 1e-100.

    A gold label outside the label set scores at the clip.

    >>> cross_entropy([np.array([[0.5, 0.5], [1.0, 0.0]])], [["O", None]], ["O", "B-X"])
    CrossEntropy(mean=0.6931471805599453, tokens=1, unknown=0)
    """
    given, _, unknown = _at_gold(probabilities, gold, labels)
    return CrossEntropy(float(-np.log(np.maximum(given, _CLIP)).mean()), len(given), unknown)


def brier(probabilities: Iterable[Floats], gold: Iterable[Sequence[Tag] | None], labels: Sequence[str]) -> Brier:
    """The Brier score: mean over tokens with gold of Σ_j (p_j − [j is the gold label])², from 0 (best) to 2.

    A gold label outside the label set counts as one more label, of probability 0.

    >>> brier([np.array([[0.5, 0.5], [1.0, 0.0]])], [["O", "O"]], ["O", "B-X"])
    Brier(mean=0.25, tokens=2, unknown=0)
    """
    given, squares, unknown = _at_gold(probabilities, gold, labels)
    # Σ_j p_j² − p_gold² + (1 − p_gold)², and p_gold is 0 outside the label set
    return Brier(float((squares - 2 * given + 1).mean()), len(given), unknown)


def _at_gold(
    probabilities: Iterable[Floats], gold: Iterable[Sequence[Tag] | None], labels: Sequence[str]
) -> tuple[Floats, Floats, int]:
    """Of every token with gold: the probability of its gold label, the sum of squares; how many labels are unknown."""
    code_of: dict[Tag, int] = {label: position for position, label in enumerate(labels)}
    code_of[None] = _UNSCORED
    rows_of, truths = list(probabilities), list(gold)
    if len(rows_of) != len(truths):
        raise InputError(
            f"probabilities of {counted(len(rows_of), 'document')} for {len(truths)} of gold (give the same documents)"
        )
    given, squares, unknown = [], [], 0
    for number, (rows, truth) in enumerate(zip(rows_of, truths, strict=True), 1):
        if truth is None:
            continue
        if rows.shape != (len(truth), len(labels)):
            raise InputError(
                f"probabilities of shape {rows.shape} for {counted(len(truth), 'gold tag')} "
                f"and {counted(len(labels), 'label')} "
                "(give one row a token, one column a label)",
                where=f"document {number}",
            )
        codes = np.fromiter((code_of.get(tag, _UNKNOWN) for tag in truth), np.int64, len(truth))
        scored = codes != _UNSCORED
        codes, rows = codes[scored], rows[scored]
        known = codes != _UNKNOWN
        given.append(np.where(known, rows[np.arange(len(codes)), codes], 0.0))
        squares.append(np.einsum("nj,nj->n", rows, rows))
        unknown += int(len(codes) - known.sum())
    all_given, all_squares = (np.concatenate(parts) if parts else np.zeros(0) for parts in (given, squares))
    if not len(all_given):
        raise InputError("no token has a gold tag, so there is nothing to score (choose documents that have gold)")
    _check_probabilities(all_given)
    _check_probabilities(np.sqrt(all_squares))
    return all_given, all_squares, unknown


def _check_probabilities(values: Floats) -> None:
    wrong = ~((values >= -_ROUNDING) & (values <= 1 + _ROUNDING))
    if wrong.any():
        raise InputError(f"{float(values[wrong][0])} is not a probability (give numbers from 0 to 1)")


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Of ``count`` answers with a confidence above ``low`` up to ``high``: its mean, and the share that is right.

    >>> ReliabilityBin(0.9, 1.0, count=50, confidence=0.97, right=0.92).right
    0.92
    """

    low: float
    high: float
    count: int
    confidence: float
    right: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """Bins of confidence, in ascending order, without the empty ones.

    >>> reliability([0.9, 0.9, 0.6], [True, False, True], bins=2).error
    0.1333333333333333
    """

    bins: tuple[ReliabilityBin, ...]

    @property
    def count(self) -> int:
        """How many answers there are in all."""
        return sum(part.count for part in self.bins)

    @property
    def error(self) -> float:
        """The expected calibration error: ``|confidence − share right|`` of an answer's bin, the mean; 0 if none."""
        return sum(part.count * abs(part.confidence - part.right) for part in self.bins) / max(self.count, 1)


def reliability(confidence: ArrayLike, right: ArrayLike, *, bins: int = 10) -> Reliability:
    """Compare confidences with whether each answer is right, in ``bins`` bins of equal width (Guo et al., 2017).

    >>> reliability([0.25, 0.75, 0.75], [False, True, True], bins=2).bins[1]
    ReliabilityBin(low=0.5, high=1.0, count=2, confidence=0.75, right=1.0)
    """
    if bins < 1:
        raise SettingsError(f"bins must be 1 or more, not {bins}")
    sure, correct = np.asarray(confidence, np.float64), np.asarray(right, np.float64)
    if sure.shape != correct.shape:
        raise InputError(f"{sure.size} confidences for {correct.size} answers (give one an answer)")
    _check_probabilities(sure)
    edges = [b / bins for b in range(bins + 1)]
    place = np.searchsorted(edges[1:-1], sure)
    count = np.bincount(place, minlength=bins).tolist()
    confidences, rights = (np.bincount(place, values, minlength=bins).tolist() for values in (sure, correct))
    return Reliability(
        tuple(
            ReliabilityBin(edges[b], edges[b + 1], count[b], confidences[b] / count[b], rights[b] / count[b])
            for b in range(bins)
            if count[b]
        )
    )


def emitted_confidence(
    predicted: Iterable[Sequence[str]], probabilities: Iterable[Floats], labels: Sequence[str]
) -> list[Floats]:
    """For every document, ``[L]`` the probability of the tag that each token got.

    >>> emitted_confidence([["B-X", "O"]], [np.array([[0.2, 0.8], [0.9, 0.1]])], ["O", "B-X"])
    [array([0.8, 0.9])]
    """
    index = {label: position for position, label in enumerate(labels)}
    return [
        rows[np.arange(len(tags)), np.fromiter((index[tag] for tag in tags), np.int64, len(tags))]
        for tags, rows in zip(predicted, probabilities, strict=True)
    ]


def token_reliability(
    predicted: Iterable[Sequence[Tag]],
    confidence: Iterable[ArrayLike],
    gold: Iterable[Sequence[Tag] | None],
    *,
    bins: int = 10,
) -> Reliability:
    """Whether the confidence of each token's tag is the share of such tokens whose tag is right.

    ``confidence`` holds one number a token (see :func:`emitted_confidence`). Tokens without a prediction are left out.

    >>> token_reliability([["O", "O"]], [[0.75, 0.75]], [["O", "B-X"]], bins=1).error
    0.25
    """
    given, truths = list(predicted), list(gold)
    pairs = tag_pairs(given, truths)
    sure: list[Floats] = []
    for number, (tags, values, truth) in enumerate(zip(given, confidence, truths, strict=True), 1):
        numbers = np.asarray(values, np.float64)
        if numbers.shape != (len(tags),):
            raise InputError(
                f"{counted(numbers.size, 'confidence')} for {counted(len(tags), 'tag')} (give one a token)",
                where=f"document {number}",
            )
        if truth is not None:
            sure.append(numbers)
    right = [tag == wish for pair in pairs for tag, wish in zip(*pair, strict=True)]
    scored = [tag is not None for pair in pairs for tag in pair.predicted]  # None where gold is, too
    return reliability(np.concatenate(sure)[scored], np.array(right)[scored], bins=bins)


def span_reliability(
    spans: Iterable[Sequence[Span]],
    gold: Iterable[Sequence[Tag] | None],
    *,
    orphans: bool = False,
    scheme: Scheme | None = None,
    bins: int = 10,
) -> Reliability:
    """Whether the confidence of predicted spans is the share of such spans that have a gold span's start, end and type.

    A predicted span without confidence counts as certain. One that holds a token without gold is left out. ``orphans``
    says whether a gold span may open at an ``I`` that continues nothing.

    >>> found = [Span(0, 1, "X", 0.9), Span(2, 3, "X", 0.7)]
    >>> span_reliability([found], [["B-X", "O", "O"]], bins=1).bins[0].right
    0.5
    """
    given, truths = list(spans), list(gold)
    tag_pairs([truth or () for truth in truths], truths)
    if len(given) != len(truths):
        raise InputError(
            f"spans of {counted(len(given), 'document')} for {len(truths)} of gold (give the same documents)"
        )
    opens = opens_at_orphans({tag for truth in truths for tag in truth or ()}, orphans=orphans, scheme=scheme)
    sure, right = [], []
    for found, truth in zip(given, truths, strict=True):
        if truth is None:
            continue
        wanted = set(find_spans(truth, orphans=opens))
        for span in found:
            if None not in truth[span.start : span.end]:
                sure.append(span.sure)
                right.append(span.bare in wanted)
    return reliability(sure, right, bins=bins)
