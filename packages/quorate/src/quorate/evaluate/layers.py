"""Scores of a consensus in layers, or against gold whose spans overlap: by layer, and over all spans.

Gold is dealt into the layers of the consensus: a span that the consensus has is in the same layer, any other where its
label belongs (one that is unknown, anywhere) and where most of it is marked. What finds no room has layers of its own,
in which the consensus marks nothing. So every gold span is in one layer, and what is right in all layers adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from quorate.corpus.discontinuous import clash
from quorate.corpus.records import Corpus, Document, Tag
from quorate.corpus.spans import Span
from quorate.corpus.tags import OUTSIDE, Scheme, TagSet, find_spans, marks_span
from quorate.estimators.layered import LayeredModel
from quorate.estimators.methods import estimator
from quorate.evaluate import metrics
from quorate.evaluate.compare import (
    Answers,
    Comparison,
    Scores,
    answers_of,
    fit_and_test,
    methods_to_compare,
    records_with_gold,
    score_answers,
    scored_positions,
    tallies_of,
)
from quorate.formats.consensus_records import LayeredRecord, by_layer
from quorate.formats.layering import deal
from quorate.formats.layers import Layers
from quorate.formats.marked import Placed
from quorate.result.layers import LayeredResult


@dataclass(frozen=True)
class LayeredScores:
    """The scores of every layer, and of all spans together: sums of what is counted in each."""

    together: Scores
    layers: dict[str, Scores]


class _Gold:
    """The gold of one document: its spans, whichever layers they were read in, and the tokens that have none."""

    def __init__(self, layers: Layers, position: int) -> None:
        versions = [corpus[position] for corpus in layers.values()]
        self.document: Document = versions[0]
        self.unknown = [tag is None for tag in self.document.gold or ()]
        found = [span.bare for one in versions for span in find_spans([_span_tag(tag) for tag in one.gold or ()])]
        self.spans = sorted(set(found), key=lambda span: (span.start - span.end, span))

    def tags(self, spans: Sequence[Span], tagset: TagSet) -> list[Tag]:
        """Those of some of its spans."""
        tags = tagset.tags(spans, len(self.unknown))
        return [None if unknown else tag for tag, unknown in zip(tags, self.unknown, strict=True)]


def _span_tag(tag: Tag) -> Tag:
    return tag if tag is not None and marks_span(tag) else None


def read_layered_answers(
    consensus: str | Path,
    gold: Layers,
    *,
    split: str | None = None,
    scheme: Scheme | None = None,
    max_size: int | str | None = None,
) -> tuple[dict[str, Answers], int]:
    """A consensus file beside gold, by layer; and how many documents with gold it lacks.

    >>> import quorate, tempfile
    >>> gold = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-ORG", "I-ORG")}, ("B-ORG", "I-ORG"))])
    >>> inner = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("O", "O")}, ("B-LOC", "O"))])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = quorate.aggregate(gold, "mv").write(f"{folder}/c.jsonl")
    ...     answers, _ = read_layered_answers(f"{folder}/c.jsonl", Layers({"ORG": gold, "LOC": inner}))
    >>> {name: score.strict.recall for name, score in score_layers(answers).layers.items()}
    {'all': 1.0, 'LOC': 0.0}
    """
    records, positions = records_with_gold(consensus, gold.corpus, split, max_size)
    truths = [_Gold(gold, positions[record.id]) for record in records]
    layers = by_layer(records, str(consensus)) or {"all": records}
    answers: dict[str, Answers] = {}
    for name, own in layers.items():
        documents = [truth.document for truth in truths]
        answers[name] = answers_of(own, documents, scheme, str(consensus))
    first = next(record for record in records)
    takes = {name: set(one.types) for name, one in first.layers.items()} if isinstance(first, LayeredRecord) else None
    return _with_gold(answers, truths, takes), len(positions) - len(records)


def score_layers(answers: Mapping[str, Answers]) -> LayeredScores:
    """Every score that the answers of all layers allow."""
    together = _together(list(answers.values()))
    return LayeredScores(together, {name: score_answers(own) for name, own in answers.items()})


def compare_layers(
    layers: Layers,
    methods: Sequence[str],
    *,
    split: str | None = None,
    reference: str | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Comparison:
    """What :func:`quorate.evaluate.compare.compare` does, with a fit for each layer, and scores over all spans."""
    reference = methods_to_compare(methods, reference)
    models = {method: LayeredModel(estimator(method, **(settings or {}).get(method, {}))) for method in methods}
    chosen = scored_positions(layers.corpus, split)
    truths = [_Gold(layers, position) for position in chosen]

    def judged(result: LayeredResult) -> tuple[Scores, metrics.Tallies]:
        answers = list(_answers_of(result, chosen, truths).values())
        columns = zip(*(tallies_of(own) for own in answers), strict=True)
        return _together(answers), metrics.Tallies(*(np.sum(column, axis=0) for column in columns))

    rows = fit_and_test(methods, lambda method: models[method].fit(layers).result_, judged, reference, progress)
    return Comparison(rows, split, reference)


def laid_end_to_end(layers: Layers) -> Corpus:
    """One corpus in which every layer of a document is a document of its own: to count spans of all layers.

    >>> one = Corpus([Document("1", ("Bath",), {"ann": ("B-LOC",)})])
    >>> [document.id for document in laid_end_to_end(Layers({"LOC": one, "ORG": one}))]
    ['LOC 1', 'ORG 1']
    """
    return Corpus(
        replace(document, id=f"{name} {document.id}") for name, corpus in layers.items() for document in corpus
    )


def _answers_of(result: LayeredResult, positions: Sequence[int], truths: Sequence[_Gold]) -> dict[str, Answers]:
    """A result beside gold, by layer."""
    answers = {name: Answers.of(one, positions) for name, one in result.layers.items()}
    return _with_gold(answers, truths, {name: set(one.tagset.types) for name, one in result.layers.items()})


def _with_gold(
    answers: Mapping[str, Answers], truths: Sequence[_Gold], takes: Mapping[str, Collection[str]] | None
) -> dict[str, Answers]:
    """The answers beside the gold of each layer, and layers for gold that none of them takes.

    ``takes`` are the labels of each layer; a label that is in none belongs to all.
    """
    held: dict[str, list[list[Span]]] = {name: [] for name in answers}
    left: list[Placed] = []
    for d, truth in enumerate(truths):
        dealt = gold_by_layer(truth.spans, {name: own.spans[d] for name, own in answers.items()}, takes)
        for name in answers:
            held[name].append(dealt[name])
        over = [span for span in truth.spans if not any(span in spans for spans in dealt.values())]
        left.append(Placed(truth.document, {}, over))
    found = {name: _beside(own, truths, held[name]) for name, own in answers.items()}
    if any(one.gold for one in left):
        for layer, documents in deal(left):
            name = layer.name if layer.name not in found else f"{layer.name} (gold alone)"
            found[name] = _nothing(truths, [one.gold or [] for one in documents])
    return found


def gold_by_layer(
    gold: Sequence[Span], consensus: Mapping[str, Sequence[Span]], takes: Mapping[str, Collection[str]] | None
) -> dict[str, list[Span]]:
    """For each layer of a document the gold spans that belong to it, of those given the longest first.

    ``takes`` are the labels of each layer; a label that is in none belongs to all. Some spans may find no room.

    >>> found, takes = {"LOC": [], "ORG": [Span(0, 2, "ORG")]}, {"LOC": ["LOC"], "ORG": ["ORG"]}
    >>> gold_by_layer([Span(0, 2, "ORG"), Span(0, 1, "ORG"), Span(1, 2, "LOC")], found, takes)
    {'LOC': [Span(start=1, end=2, label='LOC')], 'ORG': [Span(start=0, end=2, label='ORG')]}
    """
    own = {name: [span.bare for span in spans] for name, spans in consensus.items()}
    dealt: dict[str, list[Span]] = {name: [] for name in own}
    known = {label for labels in (takes or {}).values() for label in labels}
    others = []
    for span in gold:
        same = next((name for name in own if span in own[name] and _fits(span, dealt[name])), None)
        if same is None:
            others.append(span)
        else:
            dealt[same].append(span)
    for span in others:
        homes = [name for name in own if span.label not in known or span.label in (takes or {})[name]]
        free = [name for name in homes if _fits(span, dealt[name])]
        if free:
            dealt[max(free, key=lambda name: _shared(span, own[name]))].append(span)
    return {name: sorted(spans) for name, spans in dealt.items()}


def _fits(span: Span, others: Sequence[Span]) -> bool:
    """Whether tags can hold a span beside others."""
    return not any(clash(span, other) for other in others)


def _shared(span: Span, others: Sequence[Span]) -> int:
    """How many of a span's tokens are in others, too."""
    return len(set(span.tokens) & {token for other in others for token in other.tokens})


def _beside(answers: Answers, truths: Sequence[_Gold], spans: Sequence[Sequence[Span]]) -> Answers:
    tagset = TagSet.of_types(answers.scheme, {span.label for each in spans for span in each})
    return answers._replace(gold=[truth.tags(own, tagset) for truth, own in zip(truths, spans, strict=True)])


def _nothing(truths: Sequence[_Gold], spans: Sequence[Sequence[Span]]) -> Answers:
    """A layer that the consensus does not have."""
    tags = [[OUTSIDE] * len(truth.document.tokens) for truth in truths]
    return _beside(Answers(tags, [], Scheme.BIO, [[] for _ in truths], None, None, ()), truths, spans)


def _together(answers: Sequence[Answers]) -> Scores:
    """The scores of all layers: what is counted is added, and what is sure of something is judged where it is."""
    documents = len(answers[0].tags)
    scores = score_answers(_joined(answers)._replace(confidence=None, probabilities=None))
    sure = [own for own in answers if own.confidence is not None]
    soft = [own for own in answers if own.probabilities is not None]
    found: dict[str, Any] = {}
    if sure:
        found["calibration"] = score_answers(_joined(sure)._replace(probabilities=None)).calibration
    if soft:
        entropy = score_answers(_joined(soft))
        found |= {"cross_entropy": entropy.cross_entropy, "brier": entropy.brier}
    return replace(scores, documents=documents, **found)


def _joined(answers: Sequence[Answers]) -> Answers:
    """All layers of all documents, as documents of their own."""
    labels = list(dict.fromkeys(label for own in answers for label in own.labels))
    sure = all(own.confidence is not None for own in answers)
    kept = all(own.probabilities is not None for own in answers)
    return Answers(
        [tags for own in answers for tags in own.tags],
        [gold for own in answers for gold in own.gold],
        answers[0].scheme,
        [spans for own in answers for spans in own.spans],
        [row for own in answers for row in own.confidence or ()] if sure else None,
        [_widened(rows, own.labels, labels) for own in answers for rows in own.probabilities or ()] if kept else None,
        labels,
    )


def _widened(rows: Any, labels: Sequence[str], wanted: Sequence[str]) -> Any:
    """Probabilities of some labels as those of more."""
    wide = np.zeros((len(rows), len(wanted)))
    wide[:, [wanted.index(label) for label in labels]] = rows
    return wide
