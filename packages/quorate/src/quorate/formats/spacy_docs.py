"""spaCy's DocBin (``.spacy``): ``doc.spans`` with a group for each annotator, or ``doc.ents`` for one alone.

Where there are span groups, ``doc.ents`` is gold. Tokens are spaCy's own, blank ones apart. The consensus is written as
``doc.ents``, ready for ``spacy train``, and again as the group ``quorate`` with a score for each span.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from quorate.corpus.offsets import Unit
from quorate.corpus.records import Source
from quorate.corpus.spans import CharSpan
from quorate.corpus.tokens import Places
from quorate.errors import InputError, OutputError
from quorate.formats.exports import Export, ExportAnnotation, ExportDocument, outward_spans
from quorate.formats.marked import Marked
from quorate.formats.notes import Notes
from quorate.formats.opened import Input, check_unpacked, most_of
from quorate.storage.files.atomic import written_whole

_ID = "quorate_id"
_PIECE = 1 << 16  # zlib copies what it has not come to yet, each time
_MISSING = "the DocBin format needs spaCy (pip install 'quorate[spacy]')"


def read(given: Input, notes: Notes) -> Iterator[Marked]:
    """The documents of a DocBin."""
    try:
        from spacy.tokens import DocBin
        from spacy.vocab import Vocab
    except ImportError:
        raise InputError(_MISSING, where=given.name) from None
    try:
        content = given.stream.read()
        _check_size(content, given)
        docs = list(DocBin().from_bytes(content).get_docs(Vocab()))
        documents = [_document(doc, given.name, number) for number, doc in enumerate(docs, given.first_number)]
    except InputError:
        raise
    except Exception as error:  # spaCy checks nothing: a damaged file may raise anything
        raise InputError(f"not a DocBin: {type(error).__name__} {error} (write it again)", where=given.name) from None
    yield from documents


def _check_size(content: bytes, given: Input) -> None:
    """Unpack piece by piece first, and keep nothing: spaCy would unpack all at once, whatever it is."""
    unpacking, total = zlib.decompressobj(), 0
    for start in range(0, len(content), _PIECE):
        rest: bytes | memoryview = memoryview(content)[start : start + _PIECE]
        while rest and not unpacking.eof:
            total += len(unpacking.decompress(rest, 1 << 20))
            rest = unpacking.unconsumed_tail
            check_unpacked(total, len(content), given.name, most_of(given.stream))


def _document(doc: Any, name: str, number: int) -> Marked:
    annotations = {}
    for group, spans in doc.spans.items():
        scores = spans.attrs.get("scores")
        scores = scores if isinstance(scores, list) and len(scores) == len(spans) else [None] * len(spans)
        annotations[group] = [_mark(span, score) for span, score in zip(spans, scores, strict=True)]
    ents = [_mark(span, None) for span in doc.ents] if doc.has_annotation("ENT_IOB") else None
    gold = None
    if annotations:
        gold = ents
    elif ents is not None:
        annotations[""] = ents
    return Marked(
        str(doc.user_data.get(_ID, "")),
        doc.text,
        annotations,
        Source(name, number, record="document"),
        gold,
        offsets=Places((token.idx, token.idx + len(token)) for token in doc if not token.text.isspace()),
        unit=Unit.CODE_POINTS,
    )


def _mark(span: Any, score: float | None) -> CharSpan:
    return CharSpan(span.start_char, span.end_char, span.label_, None, score)


def write(export: Export, path: str) -> None:
    """A DocBin: the consensus as entities; or annotators as span groups, and gold as entities."""
    export.check_spans("a DocBin")
    try:
        from spacy.tokens import DocBin
        from spacy.vocab import Vocab
    except ImportError:
        raise OutputError(_MISSING) from None
    vocab, docs = Vocab(), DocBin(store_user_data=True)
    for exported in export.documents():
        docs.add(_doc(exported, vocab))
    with written_whole(path, pack=False) as stream:
        stream.write(docs.to_bytes())


def _doc(exported: ExportDocument, vocab: Any) -> Any:
    from spacy.tokens import Doc, SpanGroup

    words, spaces = _words(exported)
    doc = Doc(vocab, words=words, spaces=spaces)
    doc.user_data[_ID] = exported.document.id
    groups: Mapping[str, ExportAnnotation] = {annotation.name: annotation for annotation in exported.annotations()}
    for name, annotation in groups.items():
        spans = list(outward_spans(exported, annotation.in_pieces(), Unit.CODE_POINTS))
        found = [_char_span(doc, span) for span in spans]
        scores = [1.0 if span.confidence is None else round(span.confidence, 6) for span in spans]
        attrs = {"scores": scores} if any(span.confidence is not None for span in spans) else {}
        doc.spans[name] = SpanGroup(doc, name=name, spans=found, attrs=attrs)
    certain = exported.consensus or exported.gold
    if certain is not None:
        spans = list(outward_spans(exported, certain.in_pieces(), Unit.CODE_POINTS))
        doc.set_ents([_char_span(doc, span) for span in _apart(spans)])
    return doc


def _char_span(doc: Any, span: CharSpan) -> Any:
    return doc.char_span(span.start, span.end, label=span.label)


def _apart(spans: list[CharSpan]) -> list[CharSpan]:
    """Spans that do not overlap, which is all that entities may be: the longest first."""
    kept: list[CharSpan] = []
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
        if all(span.end <= other.start or other.end <= span.start for other in kept):
            kept.append(span)
    return kept


def _words(exported: ExportDocument) -> tuple[list[str], list[bool]]:
    """The text as spaCy cuts it: tokens, each with a blank after it or not, and what is left of longer gaps."""
    text, cursor = exported.text(), 0
    words: list[str] = []
    spaces: list[bool] = []
    for start, end in [*exported.offsets(), (len(text), len(text))]:
        gap = text[cursor:start]
        if gap.startswith(" ") and words:
            spaces[-1] = True
            gap = gap[1:]
        if gap:
            words.append(gap)
            spaces.append(False)
        if end > start:
            words.append(text[start:end])
            spaces.append(False)
        cursor = end
    return words, spaces
