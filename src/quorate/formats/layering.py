"""Overlapping and nested spans, dealt out to layers in which nobody's spans overlap.

A tag sequence holds one tag a token, so that spans which overlap cannot share one; nor can two of one label that are
woven into each other (see :func:`quorate.corpus.discontinuous.clash`). Label sets of the tool stay together
where they can: two sets part when a span of one overlaps a span of the other by the same annotator, then labels of one
set that overlap one another, and last a label that is nested in itself, by depth.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from quorate.corpus.discontinuous import clash
from quorate.corpus.spans import Span
from quorate.errors import InputError
from quorate.formats.marked import Placed
from quorate.formats.notes import some

__all__ = ["Layer", "deal", "deal_into"]

Key = TypeVar("Key", str, tuple[str, str])


class Layer(NamedTuple):
    """Labels (each with the set it is of) that never overlap, at one depth of nesting.

    >>> Layer(frozenset({("", "PER"), ("", "LOC")}), 0).name
    'LOC+PER'
    """

    labels: frozenset[tuple[str, str]]
    depth: int

    @property
    def name(self) -> str:
        """The labels, and how deep inside themselves."""
        names = "+".join(sorted({label for _, label in self.labels}))
        return names if not self.depth else f"{names} ({self.depth} deep)"

    @classmethod
    def named(cls, name: str) -> Layer:
        """The layer that has this name; of which sets its labels are, that does not tell.

        >>> Layer.named("PER+LOC (1 deep)").name
        'LOC+PER (1 deep)'
        """
        labels, depth = re.fullmatch(r"(.*?)(?: \((\d+) deep\))?", name, re.DOTALL).groups()  # type: ignore[union-attr]
        return cls(frozenset(("", label) for label in labels.split("+")), int(depth or 0))

    def holds(self, span: Span, depth: int) -> bool:
        """Whether a span that is so deep inside its own label belongs to this layer."""
        return depth == self.depth and (span.layer, span.label) in self.labels


_Nested = list[tuple[Span, int]]
"""Spans, each with how many others of its label it is inside of."""


class _Deep(NamedTuple):
    """The spans of a document with their depths."""

    annotations: dict[str, _Nested]
    gold: _Nested | None


def deal(documents: Sequence[Placed]) -> list[tuple[Layer, list[Placed]]]:
    """The layers that take all spans, each with the documents and the spans that it takes; one where there is no span.

    >>> from quorate.corpus.records import Document
    >>> spans = {"ann": [Span(0, 3, "ORG"), Span(1, 2, "LOC")], "bob": [Span(4, 5, "PER")]}
    >>> [layer.name for layer, _ in deal([Placed(Document("1", ("w",) * 5), spans, None)])]
    ['LOC+PER', 'ORG']
    """
    deep = [_with_depths(document) for document in documents]
    counts: Counter[tuple[str, str]] = Counter()
    depths: dict[tuple[str, str], int] = {}
    clashes: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for document in deep:
        for nested in (*document.annotations.values(), document.gold or []):
            for span, depth in nested:
                key = (span.layer, span.label)
                counts[key] += 1
                depths[key] = max(depths.get(key, 0), depth)
            for one, other in _clashing(span for span, _ in nested):
                key, other_key = (one.layer, one.label), (other.layer, other.label)
                if key != other_key:
                    clashes[key].add(other_key)
                    clashes[other_key].add(key)
    groups = _groups(counts, clashes)
    layers = [
        Layer(labels, depth)
        for group in groups
        for depth in range(1 + max(depths[label] for label in group))
        if (labels := frozenset(label for label in group if depths[label] >= depth))
    ]
    layers = sorted(layers, key=lambda layer: (layer.depth, layer.name)) or [Layer(frozenset(), 0)]
    return [(layer, [_held(layer, *pair) for pair in zip(documents, deep, strict=True)]) for layer in layers]


def deal_into(layers: Mapping[str, Layer], documents: Sequence[Placed]) -> dict[str, list[Placed]]:
    """The documents with the spans that each of these layers takes, by its name.

    A label that an annotator uses and no layer takes is refused. Spans that lie deeper inside others of their label
    than any layer takes are in none.

    >>> from quorate.corpus.records import Document
    >>> placed = Placed(Document("1", ("w",) * 5), {"ann": [Span(0, 3, "ORG"), Span(1, 2, "ORG")]}, None)
    >>> deal_into({"outer": Layer(frozenset({("", "ORG")}), 0)}, [placed])["outer"][0].annotations
    {'ann': [Span(start=0, end=3, label='ORG')]}
    """
    known = _Known(layers)
    named = [known.document(document) for document in documents]
    deep = [_with_depths(document) for document in named]
    return {name: [_held(layer, *pair) for pair in zip(named, deep, strict=True)] for name, layer in layers.items()}


class _Known:
    """Finds the label set by which layers know a span: its own, that of the layer it names, or any with its label."""

    def __init__(self, layers: Mapping[str, Layer]) -> None:
        self._layers = layers
        self._sets: dict[str, str] = {}
        for layer in layers.values():
            for of, label in sorted(layer.labels):
                self._sets.setdefault(label, of)

    def document(self, placed: Placed) -> Placed:
        annotations = {name: [self._span(span) for span in spans] for name, spans in placed.annotations.items()}
        strange = sorted({span.label for spans in annotations.values() for span in spans} - set(self._sets))
        if strange:
            raise InputError(
                f"no layer takes label {strange[0]!r} (layers: {some(list(self._layers), 10)}; fit again with such "
                "documents, or rename it with --map-labels)",
                where=placed.document.where(),
            )
        return Placed(placed.document, annotations, None if placed.gold is None else list(map(self._span, placed.gold)))

    def _span(self, span: Span) -> Span:
        if any((span.layer, span.label) in layer.labels for layer in self._layers.values()):
            return span
        return span._replace(layer=self._sets.get(span.label, span.layer))


def _held(layer: Layer, document: Placed, deep: _Deep) -> Placed:
    """The document with the spans that a layer takes."""

    def held(nested: _Nested) -> list[Span]:
        return [span for span, depth in nested if layer.holds(span, depth)]

    annotations = {name: held(nested) for name, nested in deep.annotations.items()}
    return Placed(document.document, annotations, None if deep.gold is None else held(deep.gold))


def _with_depths(document: Placed) -> _Deep:
    annotations = {name: _nested(spans) for name, spans in document.annotations.items()}
    return _Deep(annotations, None if document.gold is None else _nested(document.gold))


def _nested(spans: list[Span]) -> _Nested:
    """Spans with their depth: one more than the deepest longer span of the same label that they overlap."""
    by_label: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for span in spans:
        by_label[span.layer, span.label].append(span)
    found: _Nested = []
    for same in by_label.values():
        done: _Nested = []
        for span in sorted(same, key=lambda span: (span.start - span.end, span.start)):
            above = [depth for other, depth in done if span.start < other.end and other.start < span.end]
            done.append((span, 1 + max(above) if above else 0))
        found += done
    return found


def _clashing(spans: Iterable[Span]) -> Iterable[tuple[Span, Span]]:
    """Every pair of spans that no tag sequence can hold together."""
    open_spans: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        open_spans = [other for other in open_spans if other.end > span.start]
        for other in open_spans:
            if clash(other, span):
                yield other, span
        open_spans.append(span)


def _groups(
    counts: Counter[tuple[str, str]], clashes: dict[tuple[str, str], set[tuple[str, str]]]
) -> list[list[tuple[str, str]]]:
    """Labels in groups without a clash: first whole label sets, then the labels of each group."""
    sets: Counter[str] = Counter()
    set_clashes: dict[str, set[str]] = defaultdict(set)
    for (layer, _), times in counts.items():
        sets[layer] += times
    for (layer, _), others in clashes.items():
        set_clashes[layer] |= {other for other, _ in others if other != layer}
    found = []
    for group in _coloured(sets, set_clashes):
        labels = Counter({key: times for key, times in counts.items() if key[0] in group})
        found += _coloured(labels, clashes)
    return found


def _coloured(counts: Counter[Key], clashes: dict[Key, set[Key]]) -> list[list[Key]]:
    """Keys in as few groups as a greedy choice finds, the most used first; no two of a group clash."""
    groups: list[list[Key]] = []
    for key in sorted(counts, key=lambda key: (-counts[key], key)):
        free = next((group for group in groups if clashes.get(key, set()).isdisjoint(group)), None)
        if free is None:
            groups.append([key])
        else:
            free.append(key)
    return groups
