"""What each annotator gets right and wrong, measured against the consensus, and a word for each kind of habit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import hard_tags
from quorate.corpus.tags import Invalid, Scheme
from quorate.crowd.algebra import document_of_events, token_of_events
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode
from quorate.estimators.comparison import compared_with_nobody, overlap_too_little
from quorate.result.habits import SpanHabits
from quorate.result.result import Result
from quorate.result.sources import SourceKind

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
"""A rule, or an annotator whose labels have few bits on average, as they mark little, but rightly."""

MARKS_LITTLE = "marks little"
"""An annotator whose labels have few bits on average, and whose marks are right too often for noise."""

NOT_JUDGED = "cannot be judged"
"""Who shares no document with anybody, so that nobody knows how good they are."""

APART = "too little overlap"
"""A rule whose marks next to nobody else's marks touch, so that nobody knows how often it is right."""

MOSTLY_RIGHT, OFTEN_WRONG = "mostly right", "often wrong"
"""Other rules: half or more of what they mark is right, or surely less."""

LEAST_SHARE = 0.10
"""A mistake in fewer of someone's spans is not worth a word."""

_RIGHT, _MOSTLY = 0.8, 0.5
_CAREFUL = 0.2  # of a careful annotator, fewer spans are missed, and fewer invented
_OF_THE_CROWDS = 0.5  # share of the crowd's precision, below which marks may be at random
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
    mark, ``coverage`` how much of what there is to mark they mark: of spans, or of tokens in the plain scheme.
    ``habits`` is what they do with the spans of the consensus, and ``habits_by_type`` the same for each type.
    """

    name: str
    source: SourceKind
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
    habits_by_type: Mapping[str, SpanHabits]


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


def people(result: Result, known: Collection[str] = ()) -> list[Person]:
    """Everyone in the result's corpus, in the order of their names; ``kind`` is ``new`` if the fit had not met them.

    Of those who share no document with anybody, nor with what is ``known`` (ids), only what they gave is there.

    >>> import quorate
    >>> crowd = {person.name: person.kind for person in people(quorate.aggregate(quorate.sample()))}
    >>> crowd["ana"], crowd["fay"], crowd["hal"]
    ('careful', 'noise', 'starts late')
    """
    seen = encode(
        result.corpus,
        result.tagset,
        invalid=Invalid(result.settings_.get("invalid", "repair")),
        annotators=result.annotators.names,
        words=(),
    )
    events = _Events(result, seen)
    by_type = _by_type(result)
    habits = result.span_habits(seen)
    crowd = SpanHabits(*habits.sum(axis=(1, 2)).tolist())
    typical = float(np.quantile(result.annotators.informativeness, 0.75)) if len(result.annotators) else 0.0
    marks_spans = result.tagset.scheme is not Scheme.PLAIN
    tokens: Counter[str] = Counter()
    for document in result.corpus:
        tokens.update(dict.fromkeys(document.annotations, len(document.tokens)))
    rows = []
    number = {name: k for k, name in enumerate(seen.annotators)}
    unknown = dict.fromkeys(() if known else overlap_too_little(seen, result.sources), APART)
    unknown |= dict.fromkeys(compared_with_nobody(result.model, result.corpus, known), NOT_JUDGED)
    for name in result.corpus.annotators:
        k = number[name]
        if name in unknown:
            rows.append(_not_judged(name, result.sources.kind(name), events, k, unknown[name]))
            continue
        accuracy, low, high = events.accuracy(k)
        own_habits = SpanHabits(*habits[:, :, k].sum(axis=1).tolist())
        kinds = by_type.get(name, {})
        bits = result.annotators[name].informativeness if name in result.annotators.names else None
        labels = float(events.labels[k])
        precision, coverage = own_habits.share("precision"), own_habits.share("coverage")
        if not marks_spans:
            precision, coverage = accuracy or 0.0, labels / max(tokens[name], 1)
        source = result.sources.kind(name)
        if marks_spans and source is SourceKind.RULES and bits is not None:
            kind = _kind_of_rule(own_habits)
        else:
            kind = _kind(labels, bits, typical, own_habits, crowd, kinds, precision, coverage, marks_spans=marks_spans)
        rows.append(
            Person(
                name,
                source,
                int(events.documents[k]),
                labels,
                accuracy,
                low,
                high,
                bits,
                _shares(own_habits),
                kinds,
                *events.truths(k),
                precision if precision == precision else None,
                coverage if coverage == coverage else None,
                kind,
                own_habits,
                {name: SpanHabits(*habits[:, t, k].tolist()) for t, name in enumerate(result.tagset.span_types)},
            )
        )
    return rows


def _not_judged(name: str, source: SourceKind, events: _Events, k: int, kind: str) -> Person:
    """An annotator of whom it is known what they gave, and not how good it is."""
    return Person(
        name=name,
        source=source,
        documents=int(events.documents[k]),
        labels=float(events.labels[k]),
        accuracy=None,
        low=None,
        high=None,
        informativeness=None,
        shares=Shares(),
        by_type={},
        given=np.zeros(0, np.int64),
        truths=np.zeros((0, len(events.tagset.labels))),
        precision=None,
        coverage=None,
        kind=kind,
        habits=SpanHabits(),
        habits_by_type={},
    )


class _Events:
    """Every label given, beside the posterior of its token."""

    def __init__(self, result: Result, seen: Crowd) -> None:
        self.tagset = seen.tagset
        K, J, D = len(seen.annotators), len(seen.tagset.labels), seen.n_docs
        posterior = np.concatenate([*result.probabilities, np.zeros((0, J))])
        cell = seen.event_cell
        token = token_of_events(seen)
        weight = np.ones(len(cell)) if seen.event_weight is None else seen.event_weight
        who, label = seen.cells.annotator[cell], seen.cells.label[cell]
        right = posterior[token, label] * weight
        doc = document_of_events(seen)
        pair, place = np.unique(who * max(D, 1) + doc, return_inverse=True)
        self._who = pair // max(D, 1)
        self._right = np.bincount(place, right, minlength=len(pair))
        self._given = np.bincount(place, weight, minlength=len(pair))
        self._doubt = np.bincount(place, right * (1 - right), minlength=len(pair))
        self.labels = np.bincount(who, weight, minlength=K)
        self.documents = np.bincount(self._who, minlength=K)
        pair, place = np.unique(who * J + label, return_inverse=True)
        self._pair_who, self._label = np.divmod(pair, J)
        self._truths = np.zeros((len(pair), J))
        for j in range(J):
            self._truths[:, j] = np.bincount(place, posterior[token, j] * weight, minlength=len(pair))

    def truths(self, k: int) -> tuple[NDArray[np.int64], Floats]:
        """The labels that an annotator gave ``[G]``, and the expected truths of each ``[G, J]``."""
        mine = slice(*np.searchsorted(self._pair_who, [k, k + 1]))
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


def _shares(habits: SpanHabits) -> Shares:
    """Kinds of error as habits have them."""
    counts = {kind: habits.number(name) for name, kind in _KIND_OF_HABIT.items()}
    return Shares(habits.spans, habits.found, habits.marks, counts)


def _by_type(result: Result) -> dict[str, ByType]:
    """What became of each type of the consensus's spans, annotator by annotator."""
    tagset = result.tagset
    if tagset.scheme is Scheme.PLAIN:
        return {}
    types: dict[str, dict[str, tuple[list[int], Counter[str]]]] = {}
    for document, consensus in zip(result.corpus, result.spans, strict=True):
        agreed = [span.bare for span in consensus]
        for name, given in document.annotations.items():
            tags = hard_tags(given)
            own = tagset.spans(tags)
            wanted = (
                agreed if None not in tags else [span for span in agreed if None not in tags[span.start : span.end]]
            )
            for span in wanted:
                row, others = types.setdefault(name, {}).setdefault(span.label, ([0, 0], Counter()))
                over = [other.label for other in own if span.overlaps(other)]
                row[0] += 1
                if span.label in over:
                    row[1] += 1
                elif over:
                    others[over[0]] += 1
    return {
        name: {kind: (n, marked, others) for kind, ((n, marked), others) in rows.items()}
        for name, rows in types.items()
    }


def right_where_they_mark(habits: SpanHabits, crowd: SpanHabits) -> bool:
    """Whether someone's precision is surely half as high as that of all that anybody marked.

    Of what is marked at random next to nothing is right, so that the lower end of the interval tells.

    >>> crowd = SpanHabits(exact=800, marks=1000)
    >>> right_where_they_mark(SpanHabits(exact=30, marks=50), crowd)
    True
    >>> right_where_they_mark(SpanHabits(exact=3, marks=50), crowd)
    False
    """
    return habits.interval("precision")[0] >= _OF_THE_CROWDS * crowd.share("precision")


def wrong_where_they_mark(habits: SpanHabits, crowd: SpanHabits) -> bool:
    """Whether someone's precision is surely not half as high as that of all that anybody marked.

    >>> crowd = SpanHabits(exact=800, marks=1000)
    >>> wrong_where_they_mark(SpanHabits(exact=3, marks=50), crowd)
    True
    >>> wrong_where_they_mark(SpanHabits(exact=1, marks=4), crowd)
    False
    """
    return habits.interval("precision")[1] < _OF_THE_CROWDS * crowd.share("precision")


def _kind_of_rule(habits: SpanHabits) -> str:
    """Of a rule it counts how often it is right where it marks, and not what it leaves out."""
    if habits.marks < _FEW_SPANS:
        return "too few spans" if habits.marks else "marks nothing"
    precision, (_, high) = habits.share("precision"), habits.interval("precision")
    if precision >= _MOSTLY:
        return RIGHT_WHERE_MARKED if precision >= _RIGHT else MOSTLY_RIGHT
    return OFTEN_WRONG if high < _MOSTLY else "mixed"


def _kind(
    labels: float,
    bits: float | None,
    typical: float,
    habits: SpanHabits,
    crowd: SpanHabits,
    by_type: ByType,
    precision: float,
    coverage: float,
    *,
    marks_spans: bool,
) -> str:
    """The one word or two that describe an annotator best."""
    if bits is None:
        return "new"
    shares = _shares(habits)
    if labels < _FEW_LABELS or (marks_spans and shares.consensus < _FEW_SPANS):
        return "too few labels"
    if bits < 0.15 * typical:
        # Bits are few of someone who mostly gives O, or nothing, however right their marks are. In the plain scheme
        # one who gives every token the commonest label is often right as well, without any information.
        marked_some = shares.own >= _FEW_SPANS if marks_spans else coverage < 0.5
        if marked_some and precision >= _RIGHT:
            return RIGHT_WHERE_MARKED
        if marks_spans and marked_some and right_where_they_mark(habits, crowd):
            return MARKS_LITTLE
        if marks_spans and shares.own and not wrong_where_they_mark(habits, crowd):
            return "too few labels"
        return "noise" if shares.own or not marks_spans else "marks nothing"
    if not marks_spans:
        return "careful" if bits >= 0.6 * typical else "mixed"
    blind = blind_types(by_type)
    if blind:
        return "misses " + ", ".join(blind)
    missed, invented = shares.share("missed") or 0.0, shares.share("false_positive") or 0.0
    errors = {kind: shares.share(kind) or 0.0 for kind in HABITS}
    worst = max(errors, key=lambda kind: errors[kind])
    if errors[worst] >= 0.15 and missed < 0.5:
        return HABITS[worst] if _at_least(shares, worst) >= LEAST_SHARE else "mixed"
    if missed >= 0.35 and _at_least(shares, "missed") >= _CAREFUL:
        return "misses many"
    if invented >= 0.35 and _at_least(shares, "false_positive") >= _CAREFUL:
        return "marks too much"
    return "careful" if missed < _CAREFUL and invented < _CAREFUL else "mixed"


def _at_least(shares: Shares, kind: str) -> float:
    """The lower end of the 95% interval of a share: few spans do not make a habit."""
    return wilson(shares.counts.get(kind, 0), shares.of(kind))[0]


def blind_types(by_type: ByType) -> list[str]:
    """Types of which an annotator marks fewer than a tenth, while they do mark others.

    >>> blind_types({"ORG": (20, 1, {}), "PER": (20, 18, {})})
    ['ORG']
    """
    seen = {kind: (n, marked) for kind, (n, marked, _) in by_type.items() if n >= 8}
    blind = [kind for kind, (n, marked) in sorted(seen.items()) if marked < 0.1 * n]
    rest_n = sum(n for kind, (n, _) in seen.items() if kind not in blind)
    rest = sum(marked for kind, (_, marked) in seen.items() if kind not in blind)
    return blind if rest_n and rest >= 0.5 * rest_n else []
