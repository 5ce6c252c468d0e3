"""Several methods on one corpus, scored against its gold, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Corpus, Document, Tag
from quorate.corpus.spans import Span
from quorate.corpus.tags import OUTSIDE, Scheme, TagSet, span_of_one
from quorate.errors import InputError, SettingsError
from quorate.estimators.methods import estimator
from quorate.evaluate import metrics
from quorate.evaluate.alignment import Cut, pieces, spans_on_pieces, tags_on_pieces
from quorate.formats import read_consensus
from quorate.formats.consensus_records import ConsensusRecord, LayeredRecord
from quorate.result.result import Result
from quorate.wording import counted

Floats = NDArray[np.float64]
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Scores:
    """What one consensus is worth on documents with gold.

    ``relaxed``, ``strict``, ``errors`` and ``span_calibration`` are ``None`` for plain tags, which mark no spans;
    ``cross_entropy`` and ``brier`` are ``None`` without probabilities, ``calibration`` without confidences.
    """

    documents: int
    strict: metrics.PRF | None
    by_type: dict[str, metrics.TypeScore]
    relaxed: metrics.PRF | None
    tokens: metrics.TokenScores
    cross_entropy: metrics.CrossEntropy | None
    brier: metrics.Brier | None
    calibration: metrics.Reliability | None
    span_calibration: metrics.Reliability | None
    errors: metrics.ErrorKinds | None


class Answers(NamedTuple):
    """A consensus on some documents beside their gold, from a fit or from a file; the columns run over documents.

    ``probabilities`` (with their ``labels``) and the ``confidence`` of tokens may be missing. In ``aligned`` documents
    the consensus has other tokens than the gold: then they are, and tags are those of the pieces that both are made of.
    """

    tags: list[list[str]]
    gold: Sequence[Sequence[Tag] | None]
    scheme: Scheme
    spans: Sequence[Sequence[Span]]
    confidence: list[Floats] | None
    probabilities: list[Floats] | None
    labels: Sequence[str]
    aligned: int = 0

    @classmethod
    def of(cls, result: Result, positions: Sequence[int]) -> Answers:
        """The documents of a result at these positions."""
        chosen = [result[position] for position in positions]
        return cls(
            [one.tags for one in chosen],
            [one.document.gold for one in chosen],
            result.tagset.scheme,
            [one.spans for one in chosen],
            [one.token_confidence for one in chosen],
            [one.probabilities for one in chosen],
            result.labels,
        )


def read_answers(
    consensus: str | Path,
    gold: Corpus,
    *,
    split: str | None = None,
    scheme: Scheme | None = None,
    max_size: int | str | None = None,
) -> tuple[Answers, int]:
    """A consensus file beside gold: the documents of the split that have gold; and how many of those it lacks.

    The tokens may be others than those of the gold, if the text is the same: spans are compared by their characters.
    """
    records, positions = records_with_gold(consensus, gold, split, max_size)
    if any(isinstance(record, LayeredRecord) for record in records):
        raise InputError("a consensus in layers (--layers auto takes it)", where=str(consensus))
    documents = [gold[positions[record.id]] for record in records]
    truths = [document.gold or () for document in documents]
    used = {tag for tags in (*(record.tags for record in records), *truths) for tag in tags if tag is not None}
    tagset = TagSet.infer(used, scheme)
    laid = [
        _beside(record, document, tagset, f"{consensus}: document {record.id!r}")
        for record, document in zip(records, documents, strict=True)
    ]
    aligned = sum(one.aligned for one in laid)
    labels = records[0].labels or ()
    answers = Answers(
        [one.tags for one in laid],
        [one.gold for one in laid],
        tagset.scheme,
        [one.spans for one in laid],
        None if aligned else _column([record.token_confidence for record in records]),
        None if aligned else _column([record.probabilities for record in records], len(labels)),
        labels,
        aligned,
    )
    return answers, len(positions) - len(records)


def records_with_gold(
    consensus: str | Path, gold: Corpus, split: str | None, max_size: int | str | None
) -> tuple[list[ConsensusRecord], dict[str, int]]:
    """The records of a consensus file whose documents are to be scored; and where all such stand in the gold, by id."""
    positions = {gold[position].id: position for position in scored_positions(gold, split)}
    records = [record for record in read_consensus(consensus, max_size=max_size) if record.id in positions]
    if not records:
        raise InputError("no document of it has gold (ids must be the same in both files)", where=str(consensus))
    return records, positions


def answers_of(
    records: Sequence[ConsensusRecord], documents: Sequence[Document], scheme: Scheme | None, where: str
) -> Answers:
    """Records of a consensus on the tokens of their documents, without gold."""
    for record, document in zip(records, documents, strict=True):
        if len(record.tags) != len(document.tokens):
            raise InputError(
                f"{counted(len(record.tags), 'tag')} for {counted(len(document.tokens), 'gold token')} "
                "(are they of the same text?)",
                where=f"{where}: document {record.id!r}",
            )
    used = {tag for record in records for tag in record.tags}
    return Answers(
        [record.tags for record in records],
        [None] * len(records),
        scheme or (Scheme.BIO if used <= {OUTSIDE} else TagSet.infer(used).scheme),
        [record.token_spans() for record in records],
        _column([record.token_confidence for record in records]),
        _column([record.probabilities for record in records], len(records[0].labels or ())),
        records[0].labels or (),
    )


class _Beside(NamedTuple):
    """A document of a consensus and its gold, on the same tokens or, ``aligned``, on the same pieces of the text."""

    tags: list[str]
    gold: Sequence[Tag]
    spans: list[Span]
    aligned: bool = False


def _beside(record: ConsensusRecord, document: Document, tagset: TagSet, where: str) -> _Beside:
    gold = document.gold or ()
    same = tuple(record.tokens) == document.tokens if record.tokens else len(record.tags) == len(gold)
    if same and len(record.tags) == len(gold):
        return _Beside(record.tags, gold, record.token_spans())
    if len(record.tokens) != len(record.tags):
        raise InputError(
            f"{counted(len(record.tags), 'tag')} for {counted(len(gold), 'gold token')} (are they of the same text?)",
            where=where,
        )
    one = Cut.of(record.tokens, record.text, record.offsets)
    found = pieces(one, Cut.of(document.tokens, document.text, document.offsets), where=where)
    return _Beside(
        [tag or OUTSIDE for tag in tags_on_pieces(record.tags, found.one, found.n, tagset)],
        tags_on_pieces(gold, found.other, found.n, tagset),
        spans_on_pieces(record.token_spans(), found.one),
        aligned=True,
    )


def _column(values: Sequence[Sequence[Any] | None], width: int | None = None) -> list[Floats] | None:
    """Numbers of every document, or ``None`` if one lacks them."""
    shape = -1 if width is None else (-1, width)
    return None if None in values else [np.asarray(value, np.float64).reshape(shape) for value in values]


def score_answers(answers: Answers) -> Scores:
    """Every score that the answers allow.

    >>> import quorate
    >>> result = quorate.aggregate(quorate.sample(), "mv")
    >>> round(score_answers(Answers.of(result, range(len(result)))).strict.f1, 2)
    0.72
    """
    tags, gold, scheme, spans, confidence, probabilities, labels, _ = answers
    marks_spans = scheme is not Scheme.PLAIN
    return Scores(
        len(tags),
        metrics.strict(tags, gold, scheme=scheme) if marks_spans else None,
        metrics.strict_by_type(tags, gold, scheme=scheme) if marks_spans else {},
        metrics.relaxed(tags, gold, scheme=scheme) if marks_spans else None,
        metrics.token_scores(tags, gold),
        None if probabilities is None else metrics.cross_entropy(probabilities, gold, labels),
        None if probabilities is None else metrics.brier(probabilities, gold, labels),
        None if confidence is None else metrics.token_reliability(tags, confidence, gold),
        metrics.span_reliability(spans, gold, scheme=scheme) if marks_spans else None,
        metrics.error_kinds(tags, gold, scheme=scheme) if marks_spans else None,
    )


@dataclass(frozen=True)
class MethodScores:
    """One method: its scores, what it cost, and how it stands against the reference method."""

    method: str
    scores: Scores
    seconds: float
    peak_megabytes: float | None
    test: metrics.Wilcoxon | None
    difference: metrics.Interval | None


@dataclass(frozen=True)
class Comparison:
    """Methods in the order given; ``test`` and ``difference`` compare each with ``reference``."""

    rows: tuple[MethodScores, ...]
    split: str | None
    reference: str


def compare(
    corpus: Corpus,
    methods: Sequence[str],
    *,
    split: str | None = None,
    reference: str | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Comparison:
    """Fit every method on all documents, without gold, and score each on those of ``split`` that have gold.

    The first method is the reference unless one is named. Significance is over documents: strict F1, or for plain tags
    the share of right tokens.

    >>> import quorate
    >>> found = compare(quorate.sample(), ["mv", "bsc-cm"])
    >>> [row.method for row in found.rows], found.rows[1].difference.low > 0
    (['mv', 'bsc-cm'], True)
    """
    reference = methods_to_compare(methods, reference)
    models = {method: estimator(method, **(settings or {}).get(method, {})) for method in methods}
    chosen = scored_positions(corpus, split)

    def judged(result: Result) -> tuple[Scores, metrics.Tallies]:
        answers = Answers.of(result, chosen)
        return score_answers(answers), tallies_of(answers)

    rows = fit_and_test(methods, lambda method: models[method].fit(corpus).result_, judged, reference, progress)
    return Comparison(rows, split, reference)


def methods_to_compare(methods: Sequence[str], reference: str | None) -> str:
    """The method that the others are compared with; :class:`SettingsError` if it is not one of them."""
    if not methods:
        raise SettingsError("no method to compare was given")
    reference = reference or methods[0]
    if reference not in methods:
        raise SettingsError(f"{reference!r} is not among the methods compared ({', '.join(methods)})")
    return reference


class _Fitted(NamedTuple):
    """One method after its fit: its scores, what every document adds to them, and what it cost."""

    method: str
    scores: Scores
    tallies: metrics.Tallies
    seconds: float
    megabytes: float | None


def fit_and_test(
    methods: Sequence[str],
    fit: Callable[[str], Outcome],
    judged: Callable[[Outcome], tuple[Scores, metrics.Tallies]],
    reference: str,
    progress: Callable[[int, int, str], None] | None,
) -> tuple[MethodScores, ...]:
    """Every method fitted in turn, its outcome judged, and tested against that of the reference."""
    fitted: list[_Fitted] = []
    for number, method in enumerate(methods):
        if progress is not None:
            progress(number, len(methods), method)
        with _measured() as cost:
            outcome = fit(method)
        fitted.append(_Fitted(method, *judged(outcome), **cost))
    against = next(one.tallies for one in fitted if one.method == reference)
    return tuple(
        MethodScores(
            one.method,
            one.scores,
            one.seconds,
            one.megabytes,
            None if one.method == reference else metrics.wilcoxon(one.tallies.f1(), against.f1()),
            None if one.method == reference else metrics.bootstrap_difference(one.tallies, against),
        )
        for one in fitted
    )


def scored_positions(corpus: Corpus, split: str | None) -> list[int]:
    """Where the documents stand that have gold and are of the split."""
    splits = sorted({document.split for document in corpus if document.split is not None})
    if split is not None and split not in splits:
        raise InputError(f"no document is of split {split!r} (splits here: {', '.join(splits) or 'none'})")
    chosen = [
        position
        for position, document in enumerate(corpus)
        if document.gold is not None and (split is None or document.split == split)
    ]
    if not chosen:
        raise InputError("no document to be scored has gold (give 'gold', or another --split)")
    return chosen


def tallies_of(answers: Answers) -> metrics.Tallies:
    """What every document adds to strict F1, or for plain tags to the share of right tokens."""
    if answers.scheme is not Scheme.PLAIN:
        return metrics.strict_tallies(answers.tags, answers.gold, scheme=answers.scheme)
    # A token is a span of its own: then F1 is the share of right tokens.
    gold = [None if tags is None else _each_a_span(tags) for tags in answers.gold]
    return metrics.strict_tallies([_each_a_span(tags) for tags in answers.tags], gold)


def _each_a_span(tags: Sequence[Tag]) -> list[Tag]:
    return [None if tag is None else span_of_one(tag) for tag in tags]


@contextmanager
def _measured() -> Iterator[dict[str, Any]]:
    """Seconds, and the most memory that the process had meanwhile (where the system tells)."""
    cost: dict[str, Any] = {"megabytes": None}
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # begin a new peak
    began = time.perf_counter()
    yield cost
    cost["seconds"] = time.perf_counter() - began
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        cost["megabytes"] = int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1e3
