"""What each annotator gets right and wrong, measured against the consensus, and a word for each kind of habit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import hard_tags
from quorate.corpus.tags import Invalid, Scheme
from quorate.encode.algebra import document_of_events, token_of_events
from quorate.encode.encoded import Encoded
from quorate.encode.from_corpus import encode
from quorate.result.habits import SpanHabits
from quorate.result.result import Result

__all__ = ["HABITS", "RIGHT_WHERE_MARKED", "Person", "Shares", "blind_types", "people", "wilson"]

Floats = NDArray[np.float64]
ByType = Mapping[str, tuple[int, int, Mapping[str, int]]]

HABITS: dict[str, str] = {
    "late_start": "starts late",
    "early_start": "starts early",
    "late_finish": "ends late",
    "early_finish": "ends early",
    "split": "splits spans",
    "wrong_type": "mixes up types",
}
"""Kinds of error in a span that someone did find, and the habit that each is a sign of."""

RIGHT_WHERE_MARKED = "right where they mark"
"""Whose labels tell few bits on average, as they mark little, but who are right where they do: a rule, say."""

_RIGHT = 0.8
_FEW_SPANS = 5
_FEW_LABELS = 20
_Z = 1.959964


@dataclass(frozen=True)
class Shares:
    """Counts of spans behind an annotator's shares: of the consensus's, found ones, and the annotator's own.

    Spans of the consensus count as much as they are probable.

    >>> Shares(consensus=10, found=8, own=9, counts={"missed": 2, "late_start": 4}).share("late_start")
    0.5
    """

    consensus: float = 0
    found: float = 0
    own: float = 0
    counts: Mapping[str, float] = field(default_factory=dict)

    def of(self, kind: str) -> float:
        """How many spans a kind of error is counted over: all for misses, own for inventions, else those found."""
        return {"missed": self.consensus, "false_positive": self.own, "fused": self.own}.get(kind, self.found)

    @property
    def precision(self) -> float | None:
        """The share of their own spans that the consensus has, just so; ``None`` if they marked none."""
        return self.counts.get("exact", 0) / self.own if self.own else None

    @property
    def coverage(self) -> float | None:
        """The share of all spans of the consensus, in the documents they saw, that they marked just so."""
        agreed = self.counts.get("agreed", 0)
        return self.counts.get("exact", 0) / agreed if agreed else None

    def share(self, kind: str) -> float | None:
        """The share of spans with this kind of error; ``None`` if there was none to get wrong."""
        whole = self.of(kind)
        return self.counts.get(kind, 0) / whole if whole else None


@dataclass(frozen=True)
class Person:
    """One annotator, as the report has them.

    ``low`` and ``high`` bound the accuracy (95%, documents as the units; ``None`` with fewer than two). ``by_type``
    has, for each type, how many spans the consensus has where they looked, how many of those they marked with any
    overlap, and how many they marked as another type, by that type. ``given [G]`` are the labels that they gave, and
    ``truths [G, J]`` the expected number of each on every truth. ``precision`` is how often they are right where they
    speak, ``coverage`` how much of what there is to say they say: of spans, or of tokens in the plain scheme.
    ``habits`` is what they do with the spans of the consensus.
    """

    name: str
    documents: int
    labels: float
    accuracy: float | None
    low: float | None
    high: float | None
    informativeness: float | None
    shares: Shares
    by_type: ByType
    given: NDArray[np.int64]
    truths: Floats
    precision: float | None
    coverage: float | None
    kind: str
    habits: SpanHabits


def wilson(right: float, n: float) -> tuple[float, float]:
    """A 95% interval for a share (Wilson, 1927).

    >>> [round(bound, 3) for bound in wilson(8, 10)]
    [0.49, 0.943]
    """
    if n <= 0:
        return 0.0, 1.0
    p, z2 = right / n, _Z * _Z
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z * np.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return float(max(middle - half, 0.0)), float(min(middle + half, 1.0))


def people(result: Result) -> list[Person]:
    """Everyone in the result's corpus, in the order of their names; ``kind`` is ``new`` if the fit had not met them.

    >>> import quorate
    >>> crowd = {person.name: person.kind for person in people(quorate.aggregate(quorate.sample()))}
    >>> crowd["ana"], crowd["fay"], crowd["hal"]
    ('careful', 'noise', 'starts late')
    """
    encoded = encode(
        result.corpus,
        result.tagset,
        invalid=Invalid(result.settings_.get("invalid", "repair")),
        annotators=result.annotators.names,
        words=(),
    )
    events = _Events(result, encoded)
    counts, by_type = _span_counts(result)
    habits = result.span_habits(encoded)
    typical = float(np.quantile(result.annotators.informativeness, 0.75)) if len(result.annotators) else 0.0
    marks_spans = result.tagset.scheme is not Scheme.PLAIN
    tokens: Counter[str] = Counter()
    for document in result.corpus:
        tokens.update(dict.fromkeys(document.annotations, len(document.tokens)))
    rows = []
    number = {name: k for k, name in enumerate(encoded.annotators)}
    for name in result.corpus.annotators:
        k = number[name]
        accuracy, low, high = events.accuracy(k)
        own_habits = SpanHabits(*habits[:, k].tolist())
        of_spans = _shares(own_habits, counts.get(name, {}))
        kinds = by_type.get(name, {})
        told = result.annotators[name].informativeness if name in result.annotators.names else None
        labels = float(events.labels[k])
        precision, coverage = of_spans.precision, of_spans.coverage
        if not marks_spans:
            precision, coverage = accuracy, labels / max(tokens[name], 1)
        rows.append(
            Person(
                name,
                int(events.documents[k]),
                labels,
                accuracy,
                low,
                high,
                told,
                of_spans,
                kinds,
                *events.truths(k),
                precision,
                coverage,
                _kind(labels, told, typical, of_spans, kinds, precision, coverage, marks_spans=marks_spans),
                own_habits,
            )
        )
    return rows


class _Events:
    """Every label given, beside the posterior of its token."""

    def __init__(self, result: Result, encoded: Encoded) -> None:
        K, J, D = len(encoded.annotators), len(encoded.tagset.labels), encoded.n_docs
        posterior = np.concatenate([*result.probabilities, np.zeros((0, J))])
        cell = encoded.event_cell
        token = token_of_events(encoded)
        weight = np.ones(len(cell)) if encoded.event_weight is None else encoded.event_weight
        who, label = encoded.cells.annotator[cell], encoded.cells.label[cell]
        right = posterior[token, label] * weight
        doc = document_of_events(encoded)
        pair, place = np.unique(who * max(D, 1) + doc, return_inverse=True)
        self._who = pair // max(D, 1)
        self._right = np.bincount(place, right, minlength=len(pair))
        self._given = np.bincount(place, weight, minlength=len(pair))
        self._doubt = np.bincount(place, right * (1 - right), minlength=len(pair))
        self.labels = np.bincount(who, weight, minlength=K)
        self.documents = np.bincount(self._who, minlength=K)
        pair, place = np.unique(who * J + label, return_inverse=True)
        self._speaker, self._label = np.divmod(pair, J)
        self._truths = np.zeros((len(pair), J))
        for j in range(J):
            self._truths[:, j] = np.bincount(place, posterior[token, j] * weight, minlength=len(pair))

    def truths(self, k: int) -> tuple[NDArray[np.int64], Floats]:
        """The labels that an annotator gave ``[G]``, and the expected truths of each ``[G, J]``."""
        mine = slice(*np.searchsorted(self._speaker, [k, k + 1]))
        return self._label[mine], self._truths[mine]

    def accuracy(self, k: int) -> tuple[float | None, float | None, float | None]:
        """The share of right labels, and its interval: documents differ, and the truth is not certain."""
        mine = self._who == k
        right, given = self._right[mine], self._given[mine]
        n = given.sum()
        if not n > 0:
            return None, None, None
        share = float(right.sum() / n)
        if len(given) < 2:
            return share, None, None
        spread = len(given) / (len(given) - 1) * ((right - share * given) ** 2).sum() + self._doubt[mine].sum()
        variance = spread / n**2
        # As many independent labels as would give this variance: labels of one document are alike.
        effective = min(share * (1 - share) / variance, n) if variance > 0 else float(len(given))
        low, high = wilson(share * effective, effective)
        return share, low, high


_KIND_OF_HABIT = {
    "missed": "missed",
    "invented": "false_positive",
    "early_start": "early_start",
    "late_start": "late_start",
    "early_end": "early_finish",
    "late_end": "late_finish",
    "split": "split",
    "wrong_type": "wrong_type",
}


def _shares(habits: SpanHabits, counts: Mapping[str, int]) -> Shares:
    """Kinds of error as habits have them, and ``counts`` of the others."""
    of_habits = {kind: getattr(habits, name) for name, kind in _KIND_OF_HABIT.items()}
    return Shares(habits.spans, habits.found, habits.marks, {**counts, **of_habits})


def _span_counts(result: Result) -> tuple[dict[str, Counter[str]], dict[str, ByType]]:
    """How many of the consensus's spans each annotator marked just so, of how many; and what became of each type."""
    tagset = result.tagset
    if tagset.scheme is Scheme.PLAIN:
        return {}, {}
    kinds: dict[str, Counter[str]] = {}
    types: dict[str, dict[str, tuple[list[int], Counter[str]]]] = {}
    for document, consensus in zip(result.corpus, result.spans, strict=True):
        agreed = [span.bare for span in consensus]
        for name, given in document.annotations.items():
            tags = hard_tags(given)
            own = tagset.spans(tags)
            wanted = (
                agreed if None not in tags else [span for span in agreed if None not in tags[span.start : span.end]]
            )
            counts = kinds.setdefault(name, Counter())
            counts["agreed"] += len(agreed)
            counts["exact"] += len(set(own) & set(wanted))
            for span in wanted:
                row, others = types.setdefault(name, {}).setdefault(span.label, ([0, 0], Counter()))
                over = [other.label for other in own if other.start < span.end and span.start < other.end]
                row[0] += 1
                if span.label in over:
                    row[1] += 1
                elif over:
                    others[over[0]] += 1
    by_type: dict[str, ByType] = {
        name: {kind: (n, marked, others) for kind, ((n, marked), others) in rows.items()}
        for name, rows in types.items()
    }
    return kinds, by_type


def _kind(
    labels: float,
    told: float | None,
    typical: float,
    shares: Shares,
    by_type: ByType,
    precision: float | None,
    coverage: float | None,
    *,
    marks_spans: bool,
) -> str:
    """The one word or two that say most about someone."""
    if told is None:
        return "new"
    if labels < _FEW_LABELS or (marks_spans and shares.consensus < _FEW_SPANS):
        return "too few labels"
    if told < 0.15 * typical:
        # Bits count what silence tells too: of someone who mostly says O, or nothing, they see little. In the plain
        # scheme whoever gives every token the commonest label is often right as well, and tells nothing.
        spoke = shares.own >= _FEW_SPANS if marks_spans else coverage is not None and coverage < 0.5
        if spoke and precision is not None and precision >= _RIGHT:
            return RIGHT_WHERE_MARKED
        return "noise" if shares.own or not marks_spans else "marks nothing"
    if not marks_spans:
        return "careful" if told >= 0.6 * typical else "mixed"
    blind = blind_types(by_type)
    if blind:
        return "misses " + ", ".join(blind)
    missed, invented = shares.share("missed") or 0.0, shares.share("false_positive") or 0.0
    habits = {kind: shares.share(kind) or 0.0 for kind in HABITS}
    worst = max(habits, key=lambda kind: habits[kind])
    if habits[worst] >= 0.15 and missed < 0.5:
        return HABITS[worst]
    if missed >= 0.35:
        return "misses many"
    if invented >= 0.35:
        return "marks too much"
    return "careful" if missed < 0.2 and invented < 0.2 else "mixed"


def blind_types(by_type: ByType) -> list[str]:
    """Types that someone hardly ever marks, while they do mark others.

    >>> blind_types({"ORG": (20, 1, {}), "PER": (20, 18, {})})
    ['ORG']
    """
    seen = {kind: (n, marked) for kind, (n, marked, _) in by_type.items() if n >= 8}
    blind = [kind for kind, (n, marked) in sorted(seen.items()) if marked < 0.1 * n]
    rest_n = sum(n for kind, (n, _) in seen.items() if kind not in blind)
    rest = sum(marked for kind, (_, marked) in seen.items() if kind not in blind)
    return blind if rest_n and rest >= 0.5 * rest_n else []
