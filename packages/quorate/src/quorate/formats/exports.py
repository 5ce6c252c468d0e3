"""What a writer is given: documents with what annotators, gold and consensus say of each, whatever they came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.discontinuous import in_pieces, is_continued, whole_label
from quorate.corpus.offsets import Unit, ruler
from quorate.corpus.profiles import Profile
from quorate.corpus.records import Corpus, Document, SoftTag, Tag, hard_tags
from quorate.corpus.spans import CharSpan, Span
from quorate.corpus.tags import OUTSIDE, Scheme, TagSet, find_spans, marks_span, split_tag
from quorate.corpus.tokens import Offsets, Places
from quorate.errors import OutputError
from quorate.formats.notes import Notes

_NOBODYS = (
    "{} {document that nobody annotated is|documents that nobody annotated are} not written: this format has what "
    "annotators said"
)
_OFTEN = 1000  # pages after which it is told how far a writer has come


class ExportAnnotation(NamedTuple):
    """What one annotator, the gold or the consensus says of a document.

    ``tags`` is ``None`` where several layers were combined: they are in ``layers``, by name. ``shares`` of annotators
    for every label at every token, and how many tokens are ambiguous, are there if asked for. ``known`` says of every
    token whether its tag was given as a known label; of layers, each says so itself.
    """

    name: str
    spans: Sequence[Span]
    tags: Sequence[Tag | SoftTag] | None
    confidence: float | None = None
    token_confidence: Sequence[float] | NDArray[np.float64] | None = None
    probabilities: Any = None
    layers: Mapping[str, ExportAnnotation] = {}
    shares: Any = None
    ambiguity: float | None = None
    known: Sequence[bool] | NDArray[np.bool_] = ()

    @property
    def is_known(self) -> bool:
        """Whether every tag, in every layer, was given as a known label."""
        if self.layers:
            return all(layer.is_known for layer in self.layers.values())
        return len(self.known) > 0 and all(self.known)

    def knows(self, span: Span) -> bool:
        """Whether every token of a span was given as a known label."""
        known = self.layers[span.layer].known if self.layers else self.known
        return len(known) > 0 and all(known[position] for position in span.tokens)

    def in_pieces(self) -> ExportAnnotation:
        """With every piece as a span by itself, for formats that have no discontinuous spans.

        >>> apart = Span(0, 3, "ADR", pieces=((0, 1), (2, 3)))
        >>> [span.label for span in ExportAnnotation("", [apart], None).in_pieces().spans]
        ['ADR', 'ADR…']
        """
        return self._replace(spans=in_pieces(self.spans))


@dataclass(frozen=True)
class ExportDocument:
    """A document and what is said of it."""

    document: Document
    annotators: Sequence[ExportAnnotation] = ()
    gold: ExportAnnotation | None = None
    consensus: ExportAnnotation | None = None

    def text(self) -> str:
        """The text, or the tokens with blanks between."""
        document = self.document
        return " ".join(document.tokens) if document.text is None else document.text

    def offsets(self) -> Offsets:
        """Where the tokens stand in :meth:`text`, in code points."""
        document = self.document
        if document.text is not None and document.offsets is not None:
            return document.offsets
        lengths = list(map(len, document.tokens))
        starts = accumulate((length + 1 for length in lengths), initial=0)
        return Places((start, start + length) for start, length in zip(starts, lengths, strict=False))

    def annotations(self) -> Iterator[ExportAnnotation]:
        """The consensus if there is one, else the annotators."""
        return iter(self.annotators if self.consensus is None else [self.consensus])


@dataclass(frozen=True)
class Export:
    """All pages (made anew each time), the labels and scheme of their tags, and what made the consensus.

    ``lines`` are the same pages as lines of JSONL, many at a time and with how many they are, where there is a faster
    way to them. ``profiles`` are what is known of the annotators beforehand, ``notes`` what a writer could not write.
    """

    documents: Callable[[], Iterable[ExportDocument]]
    labels: tuple[str, ...]
    scheme: Scheme
    model: str = "quorate"
    probabilities: bool = False
    layers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lines: Callable[[], Iterable[tuple[int, memoryview]]] | None = None
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)

    @property
    def types(self) -> tuple[str, ...]:
        """The span types, sorted."""
        every = [self.labels, *self.layers.values()]
        kinds = (split_tag(label)[1] for labels in every for label in labels if label != OUTSIDE)
        return tuple(sorted(set(map(whole_label, kinds))))

    @property
    def discontinuous(self) -> bool:
        """Whether spans may have pieces."""
        every = [self.labels, *self.layers.values()]
        return any(is_continued(split_tag(label)[1]) for labels in every for label in labels)

    def annotated(self) -> Iterator[ExportDocument]:
        """The pages for a format that has a record for each annotator of a document; a note counts those with none.

        Written without a name, such a document would come back as one that somebody saw, and in which nothing is
        marked.

        >>> export = export_of(Corpus([Document("1", ("Ada",), {"ann": ("O",)}), Document("2", ("sang",))]))
        >>> [page.document.id for page in export.annotated()], len(export.notes.sentences())
        (['1'], 1)
        """
        for page in self.documents():
            if page.consensus is None and not page.annotators:
                self.notes.count(_NOBODYS, 1)
            else:
                yield page

    def watched(self, progress: Callable[[int], None]) -> Export:
        """The same, which tells now and then how many pages a writer has taken.

        >>> done: list[int] = []
        >>> export = export_of(Corpus([Document("1", ("Ada",)), Document("2", ("sang",))])).watched(done.append)
        >>> len(list(export.documents())), done
        (2, [2])
        """
        pages, lines = self.documents, self.lines

        def taken() -> Iterator[ExportDocument]:
            number = 0
            for number, page in enumerate(pages(), 1):
                yield page
                if number % _OFTEN == 0:
                    progress(number)
            progress(number)

        def taken_lines() -> Iterator[tuple[int, memoryview]]:
            number = 0
            for here, piece in () if lines is None else lines():
                number += here
                progress(number)
                yield here, piece

        return replace(self, documents=taken, lines=None if lines is None else taken_lines)

    def check_spans(self, format: str) -> None:
        """Raise :class:`OutputError` if these are plain labels, which mark no spans."""
        if self.scheme is Scheme.PLAIN:
            raise OutputError(
                f"plain labels mark no spans, which is all that {format} holds (use jsonl, conll or table)"
            )

    def check_layers(self, format: str) -> None:
        """Raise :class:`OutputError` if there are several layers, where a format holds one tag a token."""
        if self.layers:
            raise OutputError(f"{format} holds one tag a token, and there are several layers (use jsonl, csv or brat)")


def unit_for(exported: ExportDocument, tool: str) -> Unit:
    """What offsets count in a tool's file: what they counted in the file that it came from, if that was the tool's."""
    origin = exported.document.origin or {}
    return exported.document.unit if origin.get("tool") == tool else Unit.CODE_POINTS


def outward_spans(
    exported: ExportDocument, annotation: ExportAnnotation, unit: Unit | None = None
) -> Iterator[CharSpan]:
    """The spans of a reading in their order, in the document's own unit, unless a format has one of its own.

    >>> document = Document("1", ("👋", "Ada"), text="👋 Ada", offsets=((0, 1), (2, 5)), unit=Unit.UTF16)
    >>> annotation = ExportAnnotation("", [Span(1, 2, "P")], None)
    >>> [(span.start, span.end, span.text) for span in outward_spans(ExportDocument(document), annotation)]
    [(3, 6, 'Ada')]
    """
    if not annotation.spans:
        return
    text, offsets = exported.text(), exported.offsets()
    measure = ruler(text, unit or exported.document.unit)
    for span in annotation.spans:
        parts = [(offsets[first][0], offsets[last - 1][1]) for first, last in span.parts]
        words = " ".join(text[start:end] for start, end in parts)
        outward = tuple((measure.outward(start), measure.outward(end)) for start, end in parts)
        pieces = outward if span.pieces else ()
        yield CharSpan(outward[0][0], outward[-1][1], span.label, words, span.confidence, span.layer, pieces)


def export_of(corpus: Corpus) -> Export:
    """The pages of a corpus: what every annotator said, and the gold.

    >>> export = export_of(Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O")})]))
    >>> [annotation.spans for exported in export.documents() for annotation in exported.annotators]
    [[Span(start=0, end=1, label='PER')]]
    """
    tagset = _tagset(corpus)

    def pages() -> Iterator[ExportDocument]:
        return (_exported(document, tagset) for document in corpus)

    return Export(pages, tagset.labels, tagset.scheme, profiles=corpus.profiles)


def export_of_layers(layers: Mapping[str, Corpus]) -> Export:
    """The pages of a corpus in layers: the spans of all of them.

    Where nothing in a document overlaps it has its tags, as without layers.

    >>> inner = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-LOC", "O")})])
    >>> outer = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-ORG", "I-ORG")})])
    >>> export = export_of_layers({"LOC": inner, "ORG": outer})
    >>> [(span.end, span.label) for exported in export.documents() for span in exported.annotators[0].spans]
    [(1, 'LOC'), (2, 'ORG')]
    """
    tagsets = {name: _tagset(corpus) for name, corpus in layers.items()}

    def pages() -> Iterator[ExportDocument]:
        for versions in zip(*layers.values(), strict=True):
            own = [_exported(one, tagset) for one, tagset in zip(versions, tagsets.values(), strict=True)]
            yield _in_one(dict(zip(layers, own, strict=True)))

    profiles = {name: profile for corpus in layers.values() for name, profile in corpus.profiles.items()}
    labels = {name: tagset.labels for name, tagset in tagsets.items()}
    return Export(pages, (), Scheme.BIO, layers=labels, profiles=profiles)


def _in_one(layers: Mapping[str, ExportDocument]) -> ExportDocument:
    """A document with what is said of it in all layers."""
    pages = list(layers.values())
    annotators = [
        _over_layers(dict(zip(layers, parts, strict=True)))
        for parts in zip(*(page.annotators for page in pages), strict=True)
    ]
    gold = {name: page.gold for name, page in layers.items() if page.gold is not None}
    certain = _over_layers(gold) if gold else None
    document = pages[0].document
    every = [*annotators, *([certain] if certain is not None else [])]
    if all(one.tags is not None for one in every):
        tags = {one.name: tuple(one.tags or ()) for one in annotators}
        known = None if certain is None else hard_tags(certain.tags or ())
        document = replace(document, annotations=tags, gold=known)
    return ExportDocument(document, annotators, certain)


def _over_layers(parts: Mapping[str, ExportAnnotation]) -> ExportAnnotation:
    """What one annotator says in all layers; with tags, if no token has two."""
    spans = [span._replace(layer=name) for name, one in parts.items() for span in one.spans]
    columns = [_marked_in(here) for here in zip(*(one.tags or () for one in parts.values()), strict=True)]
    apart = all(len(column) <= 1 for column in columns)
    tags = [column[0] if column else OUTSIDE for column in columns] if apart else None
    name = next(iter(parts.values())).name
    return ExportAnnotation(name, sorted(spans, key=lambda span: (span.start, span.end, span.label)), tags)


def _marked_in(layers: Sequence[Tag | SoftTag]) -> list[Tag | SoftTag]:
    """The tags of a token in layers that mark it; a single ``None`` where it was not seen, which is so in all."""
    if None in layers:
        return [None]
    return [tag for tag in layers if (set(tag) if isinstance(tag, Mapping) else {tag}) != {OUTSIDE}]


def _tagset(corpus: Corpus) -> TagSet:
    """The tags in use, be there only one: nothing is to be learned from them."""
    gold = {tag for document in corpus for tag in document.gold or ()}
    used = (corpus.used_tags() | gold) - {None}
    if used <= {OUTSIDE}:
        return TagSet(Scheme.BIO, (OUTSIDE,))
    if len(used) == 1 and not any(marks_span(str(tag)) for tag in used):
        return TagSet.of_types(Scheme.PLAIN, map(str, used))
    return corpus.tagset(known=gold)


def _exported(document: Document, tagset: TagSet) -> ExportDocument:
    annotators = [_annotation(name, tags, tagset) for name, tags in document.annotations.items()]
    gold = None if document.gold is None else _annotation("gold", document.gold, tagset)
    return ExportDocument(document, annotators, gold)


def _annotation(name: str, tags: Sequence[Tag | SoftTag], tagset: TagSet) -> ExportAnnotation:
    if tagset.scheme is Scheme.PLAIN:
        return ExportAnnotation(name, [], tags)
    best: list[Tag] = []
    scores: list[float | None] = []
    for tag in tags:
        if isinstance(tag, Mapping):
            total = sum(tag.values())
            best.append(max(tag, key=lambda name: tag[name]))
            scores.append(tag[str(best[-1])] / total)
        else:
            best.append(tag)
            scores.append(None)
    spans = []
    for span in find_spans(best):
        given = [score for position in span.tokens if (score := scores[position]) is not None]
        spans.append(span._replace(confidence=min(given)) if given else span)
    return ExportAnnotation(name, spans, tags)
