"""What differs between two versions of a consensus: documents, spans, annotators, agreement, and what decided them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from quorate.project.changes import what_changed
from quorate.project.store import Store, Version

_MOVED = 0.05  # of a document's confidence, or of an annotator's informativeness in bits: what is worth a word


class _Span(msgspec.Struct, frozen=True):
    start: int
    end: int
    label: str
    text: str | None = None
    confidence: float | None = None
    pieces: tuple[tuple[int, int], ...] = ()

    @property
    def place(self) -> tuple[int, int, tuple[tuple[int, int], ...]]:
        return self.start, self.end, self.pieces


class _Line(msgspec.Struct):
    id: str
    spans: list[_Span]
    confidence: float
    tags: list[str | None] = []


class SpanChange(NamedTuple):
    """A span that came, went, or has another label or other bounds now; ``before`` and ``after`` are words and label.

    >>> SpanChange("label", ("Bath", "LOC"), ("Bath", "ORG")).kind
    'label'
    """

    kind: str
    before: tuple[str, str] | None
    after: tuple[str, str] | None


class DocumentChange(NamedTuple):
    """A document that came (``added``), went (``removed``), is tagged otherwise (``changed``), or only surer or less.

    >>> DocumentChange("7", "added", (), None, 0.9).kind
    'added'
    """

    id: str
    kind: str
    spans: tuple[SpanChange, ...]
    before: float | None
    after: float | None


class AnnotatorChange(NamedTuple):
    """An annotator who came or went, or of whom there is more, or something else thought: labels, bits a label tells.

    >>> AnnotatorChange("ann", (120, 0.5), (240, 0.6)).after
    (240, 0.6)
    """

    name: str
    before: tuple[float, float] | None
    after: tuple[float, float] | None

    @property
    def is_otherwise(self) -> bool:
        """Whether they are new or gone, or are thought to tell more or less, and not only have other labels."""
        return self.before is None or self.after is None or abs(self.before[1] - self.after[1]) > _MOVED


class Difference(NamedTuple):
    """All of it. ``agreement`` is that of the annotators, before and after; ``None`` where there is none."""

    before: int
    after: int
    documents: tuple[DocumentChange, ...]
    annotators: tuple[AnnotatorChange, ...]
    agreement: tuple[float | None, float | None]
    decided: tuple[str, ...]

    def count(self, kind: str) -> int:
        """How many documents changed in this way."""
        return sum(one.kind == kind for one in self.documents)

    def spans(self) -> Counter[str]:
        """How many spans changed, by how."""
        return Counter(span.kind for one in self.documents for span in one.spans)


def difference(store: Store, before: Version, after: Version) -> Difference:
    """From one version to another, which need not be the later."""
    old, new = (_lines(store.content(version.consensus)) for version in (before, after))
    documents = [_document(name, old.get(name), new.get(name)) for name in dict.fromkeys([*old, *new])]
    rows = [_annotators(store.content(version.annotators)) for version in (before, after)]
    return Difference(
        before.number,
        after.number,
        tuple(one for one in documents if one is not None),
        tuple(_annotator_changes(*rows)),
        (before.agreement, after.agreement),
        tuple(what_changed(before, after.inputs, after.known, after.decided)),
    )


def _lines(content: bytes) -> dict[str, _Line]:
    decoder = msgspec.json.Decoder(_Line)
    return {line.id: line for line in map(decoder.decode, content.splitlines())}


def _document(name: str, old: _Line | None, new: _Line | None) -> DocumentChange | None:
    if old is None:
        assert new is not None
        return DocumentChange(name, "added", tuple(_span_changes([], new.spans)), None, new.confidence)
    if new is None:
        return DocumentChange(name, "removed", (), old.confidence, None)
    spans = tuple(_span_changes(old.spans, new.spans))
    if spans or old.tags != new.tags:
        return DocumentChange(name, "changed", spans, old.confidence, new.confidence)
    if abs(new.confidence - old.confidence) > _MOVED:
        return DocumentChange(name, "confidence", (), old.confidence, new.confidence)
    return None


def _span_changes(old: Sequence[_Span], new: Sequence[_Span]) -> Iterator[SpanChange]:
    """Spans that are the same in both are paired first, then those at the same place, then those that overlap."""
    left = {(span.place, span.label): span for span in old}
    came = [span for span in new if left.pop((span.place, span.label), None) is None]
    gone = list(left.values())
    for same_place in (True, False):
        for span in list(came):
            match = next((other for other in gone if _matches(span, other, same_place)), None)
            if match is not None:
                came.remove(span)
                gone.remove(match)
                yield SpanChange("label" if match.label != span.label else "bounds", _named(match), _named(span))
    yield from (SpanChange("removed", _named(span), None) for span in gone)
    yield from (SpanChange("added", None, _named(span)) for span in came)


def _matches(one: _Span, other: _Span, same_place: bool) -> bool:
    if same_place:
        return one.place == other.place
    return one.label == other.label and one.start < other.end and other.start < one.end


def _named(span: _Span) -> tuple[str, str]:
    return span.text or f"{span.start}–{span.end}", span.label


class _Annotator(msgspec.Struct):
    name: str
    labels: float
    informativeness: float | None = None
    layer: str = ""


def _annotators(content: bytes) -> dict[str, tuple[float, float]]:
    rows = msgspec.json.decode(content, type=list[_Annotator])
    return {
        one.name if not one.layer else f"{one.name} ({one.layer})": (one.labels, one.informativeness or 0.0)
        for one in rows
    }


def _annotator_changes(
    old: Mapping[str, tuple[float, float]], new: Mapping[str, tuple[float, float]]
) -> Iterator[AnnotatorChange]:
    for name in sorted({*old, *new}):
        change = AnnotatorChange(name, old.get(name), new.get(name))
        if change.is_otherwise or old[name][0] != new[name][0]:
            yield change
