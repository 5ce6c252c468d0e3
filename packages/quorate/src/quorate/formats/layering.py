"""Overlapping and nested spans, dealt out to layers in which nobody's spans overlap.

A tag sequence holds one tag a token, so that spans which overlap cannot share one; nor can two of one label that are
woven into each other (see :func:`quorate.corpus.discontinuous.clash`). Two labels part if they overlap in enough
documents to be no slip: then each has layers of its own. The label sets of a tool part first, as a whole. Spans that
overlap within a group of labels are dealt out document by document: its first layer takes what one tag sequence holds,
the longest first, and deeper ones the rest, by the colouring of an interval graph. So a single mark changes the layers
of its own document alone. A deeper layer that hardly any document needs is *rare*: it is kept, and not combined.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Generic, NamedTuple, TypeVar

from quorate.corpus.discontinuous import clash
from quorate.corpus.overlaps import MOST_DEEP
from quorate.corpus.spans import Span
from quorate.errors import InputError
from quorate.formats.marked import Placed
from quorate.formats.notes import some
from quorate.wording import counted

_ONE_IN = 50  # of the documents with two labels, these overlap in at least one of so many, to part
_ENOUGH, _OF_FEW = 5, 10  # documents in which they overlap at least; or, of few documents, in one of so many

Key = TypeVar("Key", str, tuple[str, str])
Name = TypeVar("Name", bound=Hashable)


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


_Deep = list[tuple[Span, int]]
"""Spans, each with the depth at which it lies among those of its group."""
_Label = tuple[str, str]


class _DeepDocument(NamedTuple):
    """The spans of a document with their depths."""

    annotations: dict[str, _Deep]
    gold: _Deep | None


class _Facts(NamedTuple):
    """What a document tells of layers: its labels, those that overlap, and its spans if any do."""

    labels: frozenset[_Label]
    pairs: frozenset[tuple[_Label, _Label]]
    tangled: Placed | None
    certain: frozenset[str] = frozenset()


class _Needs(NamedTuple):
    """Labels of a document with the depths, beyond the first layer, at which they are; and those that are certain."""

    places: frozenset[tuple[_Label, int]]
    certain: frozenset[tuple[_Label, int]]


class Layering(Generic[Name]):
    """The layers that documents need. A document that is put again counts as it is now; the order is of no account.

    Two labels part where they overlap in one of 50 documents that have both, and in five documents (of fewer than 50
    documents in which anything is marked, in a tenth). A deeper layer is rare unless as many documents need it.

    >>> from quorate.corpus.records import Document
    >>> marks = {"ann": [Span(0, 3, "ORG"), Span(1, 2, "LOC")]}
    >>> nested, flat = (Placed(Document("1", ("w",) * 5), each, None) for each in (marks, {"ann": marks["ann"][:1]}))
    >>> layering = Layering[int]()
    >>> for n in range(20):
    ...     layering.put(n, nested if n < 2 else flat)
    >>> [layer.name for layer in layering.layers()]
    ['LOC', 'ORG']
    >>> layering.put(0, flat)
    >>> [layer.name for layer in layering.layers()], [layer.name for layer in layering.rare]
    (['LOC+ORG', 'LOC (1 deep)'], ['LOC (1 deep)'])
    """

    def __init__(self) -> None:
        self._facts: dict[Name, _Facts] = {}
        self._having: dict[_Label, set[Name]] = defaultdict(set)
        self._overlaps: Counter[tuple[_Label, _Label]] = Counter()
        self._groups: list[list[_Label]] = []
        self._deep: dict[Name, _Needs] = {}
        self.rare: set[Layer] = set()
        self.needing_rare: set[Name] = set()

    def put(self, name: Name, document: Placed, certain: Iterable[str] = ()) -> None:
        """Take in a document, in place of what it was; :class:`InputError` if too many of its spans overlap.

        What the annotators say who are ``certain`` is no slip: a deeper layer that takes a span of theirs is not rare.
        """
        before = self._facts.get(name, _NOTHING)
        now = self._facts[name] = _facts(document)._replace(certain=frozenset(certain))
        self._deep.pop(name, None)
        for label in before.labels:
            self._having[label].discard(name)
        for label in now.labels:
            self._having[label].add(name)
        self._overlaps.subtract(before.pairs)
        self._overlaps.update(now.pairs)

    def layers(self) -> list[Layer]:
        """The layers that take all spans of these documents; one where there is no span."""
        having = {label: names for label, names in self._having.items() if names}
        marked = sum(bool(facts.labels) for facts in self._facts.values())
        clashes: dict[_Label, set[_Label]] = defaultdict(set)
        for (one, other), times in self._overlaps.items():
            if times and _are_enough(times, len(having[one] & having[other]), marked):
                clashes[one].add(other)
                clashes[other].add(one)
        groups = _groups(having, clashes)
        if groups != self._groups:
            self._groups, self._deep = groups, {}
        needing, certain = self._deeper_needs()
        layers, self.rare, self.needing_rare = [], set(), set()
        for group in groups:
            layers.append(Layer(frozenset(group), 0))
            deepest = {label: max((depth for one, depth in needing if one == label), default=0) for label in group}
            for depth in range(1, 1 + max(deepest.values())):
                layer = Layer(frozenset(label for label in group if deepest[label] >= depth), depth)
                layers.append(layer)
                needs = set[Name]().union(*(needing.get((label, depth), ()) for label in layer.labels))
                with_them = set[Name]().union(*(having[label] for label in layer.labels))
                is_certain = any((label, depth) in certain for label in layer.labels)
                if not is_certain and not _are_enough(len(needs), len(with_them), marked):
                    self.rare.add(layer)
                    self.needing_rare |= needs
        return sorted(layers, key=lambda layer: (layer.depth, layer.name)) or [Layer(frozenset(), 0)]

    def _deeper_needs(self) -> tuple[dict[tuple[_Label, int], set[Name]], set[tuple[_Label, int]]]:
        """The documents that have a label at a depth, beyond the first layer of its group; and what is certain."""
        group_of = {label: number for number, group in enumerate(self._groups) for label in group}
        needing: dict[tuple[_Label, int], set[Name]] = defaultdict(set)
        certain: set[tuple[_Label, int]] = set()
        for name, facts in self._facts.items():
            if facts.tangled is None:
                continue
            if name not in self._deep:
                deep = _with_depths(facts.tangled, group_of)
                sure = [spans for who, spans in deep.annotations.items() if who in facts.certain]
                self._deep[name] = _Needs(_deeper([*deep.annotations.values(), deep.gold or []]), _deeper(sure))
            for place in self._deep[name].places:
                needing[place].add(name)
            certain |= self._deep[name].certain
        return needing, certain


def _deeper(spans: Iterable[_Deep]) -> frozenset[tuple[_Label, int]]:
    """Labels with the depths, beyond the first layer, at which they are."""
    return frozenset(((span.layer, span.label), depth) for each in spans for span, depth in each if depth)


def _are_enough(times: int, having: int, marked: int) -> bool:
    """Whether spans overlap in enough documents to be no slip, among those that have their labels, and all."""
    return times * _ONE_IN >= having and (times >= _ENOUGH or times * _OF_FEW >= marked)


def deal(documents: Sequence[Placed]) -> list[tuple[Layer, list[Placed]]]:
    """The layers that take all spans, each with the documents and the spans that it takes; one where there is no span.

    >>> from quorate.corpus.records import Document
    >>> spans = {"ann": [Span(0, 3, "ORG"), Span(1, 2, "LOC")], "bob": [Span(4, 5, "PER")]}
    >>> [layer.name for layer, _ in deal([Placed(Document("1", ("w",) * 5), spans, None)])]
    ['LOC+PER', 'ORG']
    """
    return deal_rare(documents)[0]


def deal_rare(documents: Sequence[Placed]) -> tuple[list[tuple[Layer, list[Placed]]], set[Layer]]:
    """What :func:`deal` gives, and those of the layers that are rare."""
    layering = Layering[int]()
    for number, document in enumerate(documents):
        layering.put(number, document)
    layers = layering.layers()
    return list(zip(layers, _dealt(layers, documents), strict=True)), layering.rare


def named(layers: Iterable[Layer]) -> dict[str, Layer]:
    """Layers by names that differ."""
    found: dict[str, Layer] = {}
    for layer in layers:
        name = layer.name or "all"
        found[name if name not in found else f"{name} #{len(found) + 1}"] = layer
    return found


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
    own = [known.document(document) for document in documents]
    return dict(zip(layers, _dealt(list(layers.values()), own), strict=True))


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


def _dealt(layers: Sequence[Layer], documents: Sequence[Placed]) -> list[list[Placed]]:
    """The documents with the spans that each layer takes."""
    group_of: dict[_Label, int] = {}
    for number, layer in sorted(enumerate(layers), key=lambda pair: pair[1].depth):
        for label in sorted(layer.labels):
            group_of.setdefault(label, number)
    deep = [_with_depths(document, group_of) for document in documents]
    return [[_held(layer, *pair) for pair in zip(documents, deep, strict=True)] for layer in layers]


def _held(layer: Layer, document: Placed, deep: _DeepDocument) -> Placed:
    """The document with the spans that a layer takes."""

    def held(spans: _Deep) -> list[Span]:
        return [span for span, depth in spans if layer.holds(span, depth)]

    annotations = {name: held(spans) for name, spans in deep.annotations.items()}
    return Placed(document.document, annotations, None if deep.gold is None else held(deep.gold))


def _with_depths(document: Placed, group_of: Mapping[_Label, int]) -> _DeepDocument:
    annotations = {name: _depths(spans, group_of) for name, spans in document.annotations.items()}
    return _DeepDocument(annotations, None if document.gold is None else _depths(document.gold, group_of))


def _depths(spans: list[Span], group_of: Mapping[_Label, int]) -> _Deep:
    """Spans with their depths: 0 for what one tag sequence holds, the longest first, and colours for the rest."""
    by_group: dict[int | _Label, list[Span]] = defaultdict(list)
    for span in spans:
        key = (span.layer, span.label)
        by_group[group_of.get(key, key)].append(span)
    found: _Deep = []
    for own in by_group.values():
        first, rest = _first_layer(own)
        found += [(span, 0) for span in first]
        open_spans: _Deep = []
        for span in sorted(rest, key=lambda span: (span.start, -span.end, span.layer, span.label)):
            open_spans = [pair for pair in open_spans if pair[0].end > span.start]
            taken = {depth for other, depth in open_spans if clash(other, span)}
            depth = next(depth for depth in range(1, 2 + len(taken)) if depth not in taken)
            open_spans.append((span, depth))
            found.append((span, depth))
    return found


def _first_layer(spans: list[Span]) -> tuple[list[Span], list[Span]]:
    """What one tag sequence holds, the longest spans first; and the rest."""
    if len(spans) == 1:
        return spans, []
    first: list[Span] = []
    rest: list[Span] = []
    taken = bytearray(max((span.end for span in spans), default=0))
    between: defaultdict[str, bytearray] = defaultdict(lambda: bytearray(len(taken)))
    woven = any(span.pieces for span in spans)  # only then can one stand between the pieces of another
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start, span.label)):
        clashes = woven and between[span.label].find(1, span.start, span.end) >= 0
        if clashes or any(taken.find(1, start, end) >= 0 for start, end in span.parts):
            rest.append(span)
            continue
        first.append(span)
        if woven:
            between[span.label][span.start : span.end] = b"\1" * (span.end - span.start)
        for start, end in span.parts:
            taken[start:end] = b"\1" * (end - start)
    return first, rest


_NOTHING = _Facts(frozenset(), frozenset(), None)


def _facts(document: Placed) -> _Facts:
    labels: set[_Label] = set()
    pairs: set[tuple[_Label, _Label]] = set()
    is_tangled = False
    for spans in (*document.annotations.values(), document.gold or []):
        labels.update((span.layer, span.label) for span in spans)
        _check_depth(spans, document)
        for one, other in _clashing(spans):
            is_tangled = True
            key, other_key = sorted([(one.layer, one.label), (other.layer, other.label)])
            if key != other_key:
                pairs.add((key, other_key))
    return _Facts(frozenset(labels), frozenset(pairs), document if is_tangled else None)


def _check_depth(spans: list[Span], document: Placed) -> None:
    """:class:`InputError` if more spans share a token than layers are made for."""
    if len(spans) <= MOST_DEEP:
        return
    pieces = [piece for span in spans for piece in span.parts]
    edges = sorted([(start, 1) for start, _ in pieces] + [(end, -1) for _, end in pieces])
    deepest = max(accumulate(step for _, step in edges))
    if deepest > MOST_DEEP:
        raise InputError(
            f"{counted(deepest, 'span')} of one annotator share a token (at most {MOST_DEEP} may overlap)",
            where=document.document.where(),
        )


def _clashing(spans: Iterable[Span]) -> Iterable[tuple[Span, Span]]:
    """Every pair of spans that no tag sequence can hold together."""
    open_spans: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        open_spans = [other for other in open_spans if other.end > span.start]
        for other in open_spans:
            if clash(other, span):
                yield other, span
        open_spans.append(span)


def _groups(labels: Iterable[_Label], clashes: Mapping[_Label, set[_Label]]) -> list[list[_Label]]:
    """Labels in groups without a clash: first whole label sets, then the labels of each group."""
    labels = list(labels)
    set_clashes: dict[str, set[str]] = defaultdict(set)
    for (layer, _), others in clashes.items():
        set_clashes[layer] |= {other for other, _ in others if other != layer}
    found = []
    for group in _coloured({layer for layer, _ in labels}, set_clashes):
        found += _coloured({label for label in labels if label[0] in group}, clashes)
    return found


def _coloured(keys: Iterable[Key], clashes: Mapping[Key, set[Key]]) -> list[list[Key]]:
    """Keys in as few groups as a greedy choice finds, by their names; no two of a group clash."""
    groups: list[list[Key]] = []
    for key in sorted(keys):
        free = next((group for group in groups if clashes.get(key, set()).isdisjoint(group)), None)
        if free is None:
            groups.append([key])
        else:
            free.append(key)
    return groups
