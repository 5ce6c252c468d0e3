"""What a report says, as typed values: numbers, names and sentences, no markup; :func:`plain` is their JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

__all__ = [
    "Agreement",
    "AnnotatorRow",
    "Annotators",
    "Audit",
    "AuditScores",
    "Bins",
    "Calibration",
    "DifferenceRow",
    "DocumentRow",
    "Documents",
    "ErrorExample",
    "ErrorRow",
    "Explanation",
    "Finding",
    "Fit",
    "Gold",
    "Group",
    "LabelRow",
    "Labels",
    "Matrices",
    "Recalibrated",
    "Report",
    "Scores",
    "SettingRow",
    "Summary",
    "ToCheck",
    "Together",
    "TypeRow",
    "Vote",
    "VoteSpans",
    "plain",
]

_DIGITS = 5
_OR_LEFT_OUT = {"left_out": True}  # a field that is not in the page where it is None; others are null there


def plain(value: Any) -> Any:
    """As JSON can have it: a value's fields by name, no arrays, no numpy numbers, nothing that is not finite.

    >>> plain(Vote(documents=2, tokens=np.int64(3))), plain(Bins(error=0.1234567, count=1))
    ({'documents': 2, 'tokens': 3}, {'error': 0.12346, 'count': 1, 'bins': []})
    """
    if is_dataclass(value):
        items = ((one, getattr(value, one.name)) for one in fields(value))
        return {one.name: plain(item) for one, item in items if item is not None or "left_out" not in one.metadata}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return round(value, _DIGITS) if math.isfinite(value) else None
    return value


@dataclass(frozen=True)
class Finding:
    """One sentence, the section that says more, and (for findings about someone) the annotator's name.

    >>> Finding("annotators", "ann misses 40% of the spans.", "ann").about
    'annotators'
    """

    about: str
    text: str
    who: str | None = None


@dataclass(frozen=True)
class TypeRow:
    """What an annotator marks of one type: how much, and its precision and coverage with 95% intervals."""

    type: str
    marks: float
    precision: tuple[float, float, float]
    coverage: tuple[float, float, float]


@dataclass(frozen=True)
class AnnotatorRow:
    """An annotator; ``shares`` of spans with each kind of error, and ``of`` how many spans that is.

    ``habits`` are the shares of what they do with the consensus's spans, each with a 95% interval: share, low, high.
    ``source`` is people, models or rules; ``team`` the group that their profile names, and ``together`` the number of
    the group whose errors are correlated with theirs.
    """

    name: str
    source: str = "people"
    documents: int = 0
    labels: float = 0.0
    accuracy: float | None = None
    low: float | None = None
    high: float | None = None
    informativeness: float | None = None
    precision: float | None = None
    coverage: float | None = None
    kind: str = "mixed"
    group: int | None = None
    consensus_spans: float = 0
    own_spans: float = 0
    shares: Mapping[str, float | None] = field(default_factory=dict)
    of: Mapping[str, float] = field(default_factory=dict)
    blind: Sequence[str] = ()
    habits: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    types: Sequence[TypeRow] = ()
    team: str | None = None
    together: int | None = None


@dataclass(frozen=True)
class Together:
    """Annotators with correlated errors, and how many independent ones they are worth.

    ``merged``: they are duplicates, and one annotator in the fit.
    """

    names: Sequence[str]
    votes: float
    merged: bool = False


@dataclass(frozen=True)
class DifferenceRow:
    """Of a type, the spans that only people have, or only models, and how many of each the consensus took."""

    type: str
    people_only: int = 0
    people_only_taken: int = 0
    models_only: int = 0
    models_only_taken: int = 0


@dataclass(frozen=True)
class Annotators:
    """Everybody, and the shares and habits of the whole crowd, rules aside.

    ``differences`` are those of people and models, where there are both.
    """

    rows: Sequence[AnnotatorRow] = ()
    together: Sequence[Together] = ()
    differences: Sequence[DifferenceRow] | None = None
    crowd: Mapping[str, float | None] = field(default_factory=dict)
    habits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """Annotators who label alike: their numbers, their mean matrix in thousandths, and what most of them are like."""

    members: Sequence[int]
    matrix: Sequence[int]
    accuracy: float | None
    informativeness: float | None
    kinds: Sequence[tuple[str, int]]


@dataclass(frozen=True)
class Matrices:
    """Matrices in thousandths ``of`` annotators by number, for each ``previous`` label or ``averaged`` over them."""

    previous: Sequence[str] = ()
    averaged: bool = False
    of: Mapping[str, Sequence[int]] = field(default_factory=dict)
    groups: Sequence[Group] | None = field(default=None, metadata=_OR_LEFT_OUT)
    silhouettes: Sequence[tuple[int, float]] | None = field(default=None, metadata=_OR_LEFT_OUT)


@dataclass(frozen=True)
class Explanation:
    """Why a document came out so: the probability of ``spans`` with all annotators, with none, and without each.

    ``changes`` are, for each annotator, the spans that would go and those that would come without them.
    """

    who: Sequence[int]
    spans: Sequence[Sequence[Any]]
    none: Sequence[float]
    without: Sequence[Sequence[float]]
    changes: Sequence[Sequence[Sequence[Any]]]


@dataclass(frozen=True)
class DocumentRow:
    """A document: the consensus, how sure it is of each token, and everybody's ``labels``, by their number."""

    id: str
    confidence: float
    tokens: Sequence[str]
    tags: Sequence[int]
    sure: Sequence[float]
    spans: Sequence[Sequence[Any]]
    labels: Sequence[tuple[int, Sequence[int]]]
    gold: Sequence[int] | None = field(default=None, metadata=_OR_LEFT_OUT)
    split: str | None = field(default=None, metadata=_OR_LEFT_OUT)
    gaps: Sequence[str] | None = field(default=None, metadata=_OR_LEFT_OUT)
    known: bool | None = field(default=None, metadata=_OR_LEFT_OUT)
    vote: Sequence[int] | None = field(default=None, metadata=_OR_LEFT_OUT)
    why: Explanation | None = field(default=None, metadata=_OR_LEFT_OUT)


@dataclass(frozen=True)
class Documents:
    """How many documents there are, how many are in doubt, and the ``list`` of those that are shown.

    ``once`` are those that one annotator saw or none, and ``not_judged`` those that only annotators saw who cannot be
    judged. ``of_audit`` are more documents, which are shown only to those who check an audit's.
    """

    total: int = 0
    doubtful: int = 0
    unsure: int = 0
    known: int = 0
    once: int = 0
    not_judged: int = 0
    histogram: Sequence[int] = ()
    expected_right: float = 0.0
    ambiguous: int = 0
    most_ambiguous: Sequence[str] = ()
    explained: bool = False
    list: Sequence[DocumentRow] = ()
    of_audit: Sequence[DocumentRow] = ()


@dataclass(frozen=True)
class LabelRow:
    """A type, or in the plain scheme a label: how many, how certain, who sees it, and what it is taken for.

    ``mixed_share`` is how often it is, and ``mixed_low`` how often at the least: the lower end of a 95% interval.
    """

    label: str
    spans: int = 0
    confidence: float | None = None
    low: int = 0
    length: float | None = None
    marked: float | None = None
    mixed_with: str | None = None
    mixed_share: float = 0.0
    mixed_low: float = 0.0
    histogram: Sequence[int] = ()
    f1: float | None = None
    alpha: float | None = None


@dataclass(frozen=True)
class Labels:
    """Every label, counted in spans or in tokens."""

    rows: Sequence[LabelRow] = ()
    unit: str = "span"


@dataclass(frozen=True)
class Agreement:
    """How far annotators agree before any model, and the ``pairs`` who share most tokens."""

    documents: int = 0
    tokens: int = 0
    observed: float | None = None
    alpha: float | None = None
    unitizing_alpha: float | None = None
    fleiss_kappa: float | None = None
    mean_kappa: float | None = None
    spans_matched: float | None = None
    by_type: Mapping[str, float | None] = field(default_factory=dict)
    n_pairs: int = 0
    pairs: Sequence[Sequence[Any]] = ()


@dataclass(frozen=True)
class Fit:
    """The bound of every pass, why passes ended, and the bounds of other starts."""

    bounds: Sequence[float]
    reason: str
    starts: Sequence[float] = ()


@dataclass(frozen=True)
class SettingRow:
    """A setting, its value, and whether it was given or is the default."""

    name: str
    value: str
    why: str


@dataclass(frozen=True)
class AuditScores:
    """Of all spans (``name`` is empty) or of a type: each score with its interval, as value, low and high.

    A score is ``None`` where nothing is known; ``seen`` is how many true spans were met.
    """

    name: str
    precision: Sequence[float] | None
    recall: Sequence[float] | None
    f1: Sequence[float] | None
    seen: int


@dataclass(frozen=True)
class Recalibrated:
    """Probabilities of one kind in the documents checked, as the consensus gave them and as the audit corrects them."""

    name: str
    before: Bins
    after: Bins


@dataclass(frozen=True)
class Audit:
    """What a person found in ``checked`` documents that were drawn, and what follows for the whole consensus.

    ``headline`` is the answer in a line, ``notes`` what it means.
    """

    checked: int = 0
    documents: int = 0
    planned: int = 0
    seed: int = 0
    scores: Sequence[AuditScores] = ()
    headline: str = ""
    notes: Sequence[str] = ()
    reliability: Sequence[Recalibrated] = ()


@dataclass(frozen=True)
class ToCheck:
    """The documents of an audit that a person has yet to check, in the order of drawing.

    ``key`` tells this plan from others, for what a browser keeps; ``half_width`` is how far the interval of F1 should
    reach to either side when all are checked, ``without_mistakes`` its two ends if no mistake is found in them,
    ``tells_little`` whether that is so wide that numbers would only mislead.
    """

    ids: Sequence[str]
    key: str
    sequential: bool = False
    half_width: float | None = None
    without_mistakes: Sequence[float] | None = None
    tells_little: bool = False


@dataclass(frozen=True)
class Scores:
    """Against gold: precision, recall and F1, ``strict`` and ``relaxed``, and the accuracy of tokens."""

    strict: Sequence[float] | None = None
    relaxed: Sequence[float] | None = None
    accuracy: float = 0.0


@dataclass(frozen=True)
class Bins:
    """Confidence against what was right: each bin's bounds, how many, their mean confidence and share of right ones.

    ``mean`` is the confidence and the share of all of them, where that is shown.
    """

    error: float = 0.0
    count: int = 0
    bins: Sequence[Sequence[float]] = ()
    mean: tuple[float, float] | None = field(default=None, metadata=_OR_LEFT_OUT)


@dataclass(frozen=True)
class Calibration:
    """Of tokens and of spans."""

    tokens: Bins | None = None
    spans: Bins | None = None


@dataclass(frozen=True)
class ErrorExample:
    """A document with an error in it."""

    id: str
    tokens: Sequence[str]
    tags: Sequence[int]
    gold: Sequence[int]


@dataclass(frozen=True)
class ErrorRow:
    """A kind of error, how often it occurs, and examples."""

    kind: str
    name: str
    count: int
    examples: Sequence[ErrorExample]


@dataclass(frozen=True)
class Gold:
    """The consensus, and the majority ``vote``, against gold."""

    documents: int = 0
    split: str | None = None
    right: int = 0
    method: Scores = field(default_factory=Scores)
    by_type: Mapping[str, Sequence[float]] = field(default_factory=dict)
    calibration: Calibration = field(default_factory=Calibration)
    document_calibration: Bins | None = None
    vote: Scores | None = field(default=None, metadata=_OR_LEFT_OUT)
    errors: Sequence[ErrorRow] | None = field(default=None, metadata=_OR_LEFT_OUT)


@dataclass(frozen=True)
class VoteSpans:
    """What became of the spans of the majority vote."""

    vote: int
    kept: int
    moved: int
    retyped: int
    dropped: int
    added: int
    consensus: int


@dataclass(frozen=True)
class Vote:
    """In how many documents and tokens the consensus differs from the majority vote, and in which spans."""

    documents: int
    tokens: int
    spans: VoteSpans | None = field(default=None, metadata=_OR_LEFT_OUT)


@dataclass(frozen=True)
class Summary:
    """The numbers at the top; those of spans are not there in the plain scheme."""

    documents: int = 0
    tokens: int = 0
    annotators: int = 0
    labels: float = 0.0
    confidence: float = 0.0
    review: int = 0
    spans: int | None = field(default=None, metadata=_OR_LEFT_OUT)
    sure_spans: int | None = field(default=None, metadata=_OR_LEFT_OUT)
    span_histogram: Sequence[int] | None = field(default=None, metadata=_OR_LEFT_OUT)


@dataclass(frozen=True)
class Report:
    """Everything that a report shows; ``tags`` are what the numbers in documents stand for.

    ``version`` is that of this package, ``of_version`` that of the consensus, where somebody counts them. ``layer`` is
    what of the annotations it is about, where they are in layers. ``how_good`` is what is known of the consensus, in
    the words that the terminal has, and ``estimate`` what is said of confidence. ``changes`` are sentences on what was
    done before and after the fit: merged duplicates, sources that abstain, correlated errors, calibration.
    """

    title: str = ""
    version: str = ""
    method: str = ""
    scheme: str = ""
    labels_of_model: Sequence[str] = ()
    types: Sequence[str] = ()
    inputs: Sequence[str] = ()
    digest: str = ""
    layer: str = ""
    how_good: str = ""
    estimate: str = ""
    notes: Sequence[str] = ()
    annotators: Annotators = field(default_factory=Annotators)
    matrices: Matrices = field(default_factory=Matrices)
    documents: Documents = field(default_factory=Documents)
    labels: Labels = field(default_factory=Labels)
    agreement: Agreement | None = None
    fit: Fit | None = None
    settings: Sequence[SettingRow] = ()
    changes: Sequence[str] = ()
    audit: Audit | None = None
    to_check: ToCheck | None = None
    gold: Gold | None = None
    vote: Vote | None = None
    tags: Sequence[str] = ()
    summary: Summary = field(default_factory=Summary)
    findings: Sequence[Finding] = ()
    next: Sequence[str] = ()
    of_version: int | str | None = None
