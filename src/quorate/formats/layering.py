"""Overlapping and nested spans, dealt out to layers in which nobody's spans overlap.

A tag sequence holds one tag a token, so that spans which overlap cannot share one. Label sets of the tool stay together
where they can: two sets part when a span of one overlaps a span of the other by the same annotator, then labels of one
set that overlap one another, and last a label that is nested in itself, by depth.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from quorate.formats.marked import Placed, TokenMark

__all__ = ["Layer", "deal"]

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

    def holds(self, mark: TokenMark) -> bool:
        """Whether a span belongs to this layer."""
        return mark.depth == self.depth and (mark.layer, mark.label) in self.labels


def deal(documents: Sequence[Placed]) -> tuple[list[Placed], list[Layer]]:
    """The documents with every span's depth, and the layers that take all their spans.

    >>> from quorate.corpus.records import Document
    >>> marks = {"ann": [TokenMark(0, 3, "ORG"), TokenMark(1, 2, "LOC")], "bob": [TokenMark(4, 5, "PER")]}
    >>> [layer.name for layer in deal([Placed(Document("1", ("w",) * 5), marks, None)])[1]]
    ['LOC+PER', 'ORG']
    """
    deep = [_with_depths(document) for document in documents]
    counts: Counter[tuple[str, str]] = Counter()
    depths: dict[tuple[str, str], int] = {}
    clashes: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for document in deep:
        for marks in (*document.annotations.values(), document.gold or []):
            for mark in marks:
                key = (mark.layer, mark.label)
                counts[key] += 1
                depths[key] = max(depths.get(key, 0), mark.depth)
            for one, other in _overlapping(marks):
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
    return deep, sorted(layers, key=lambda layer: (layer.depth, layer.name))


def _with_depths(document: Placed) -> Placed:
    return document._replace(
        annotations={name: _nested(marks) for name, marks in document.annotations.items()},
        gold=None if document.gold is None else _nested(document.gold),
    )


def _nested(marks: list[TokenMark]) -> list[TokenMark]:
    """Spans with their depth: one more than the deepest longer span of the same label that they overlap."""
    if len(marks) < 2:
        return marks
    by_label: dict[tuple[str, str], list[TokenMark]] = defaultdict(list)
    for mark in marks:
        by_label[mark.layer, mark.label].append(mark)
    found = []
    for same in by_label.values():
        done: list[TokenMark] = []
        for mark in sorted(same, key=lambda mark: (mark.first - mark.last, mark.first)):
            above = [other.depth for other in done if mark.first < other.last and other.first < mark.last]
            done.append(mark._replace(depth=1 + max(above) if above else 0))
        found += done
    return found


def _overlapping(marks: Iterable[TokenMark]) -> Iterable[tuple[TokenMark, TokenMark]]:
    """Every pair of spans that overlap."""
    open_marks: list[TokenMark] = []
    for mark in sorted(marks):
        open_marks = [other for other in open_marks if other.last > mark.first]
        for other in open_marks:
            yield other, mark
        open_marks.append(mark)


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
