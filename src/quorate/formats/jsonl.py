"""The project's own JSONL: one document a line. ``docs/formats.md`` describes it.

In, with tags: ``{"id", "tokens", "annotations": {annotator: [tag | null | {tag: probability}]}, "gold"?, "split"?}``,
or with character spans: ``{"id", "text", "annotations": {annotator: [{"start", "end", "label"}]}, "gold"?}``. An
annotator who is absent has not seen the document; one with ``[]`` spans saw it and marked nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

import msgspec

from quorate.corpus import Document, SoftTag, Source, Tag
from quorate.errors import InputError
from quorate.formats.notes import Notes
from quorate.tags import Scheme, Span, TagSet
from quorate.tokens import Offsets, locate, to_token_spans, tokenize

if TYPE_CHECKING:
    from quorate.corpus import Corpus
    from quorate.decode import Consensus, ConsensusSpan, Result

__all__ = ["ConsensusRecord", "KnownRecord", "read", "read_consensus", "read_known", "write", "write_corpus"]


class _Record(msgspec.Struct):
    id: str | int | None = None
    tokens: list[str] | None = None
    text: str | None = None
    offsets: list[tuple[int, int]] | None = None
    annotations: dict[str, list[Any]] = {}
    gold: list[Any] | None = None
    split: str | None = None


class _JsonSpan(msgspec.Struct):
    start: int
    end: int
    label: str


class _TagNames(dict[Any, Tag]):
    """One string object for each tag, so that millions of tags cost a pointer each; refuses what is not a tag."""

    def __missing__(self, tag: object) -> str:
        if not isinstance(tag, str) or not tag:
            raise ValueError(
                f"{tag!r} is not a tag (a tag is a non-empty string, or null where not seen; a span is "
                '{"start", "end", "label"})'
            )
        self[tag] = tag
        return tag


_SPANS_WIDENED = "{} spans were widened to whole tokens"
_SPANS_DROPPED = "{} spans that held no token were left out"
_SPANS_OVERLAPPING = "{} spans overlapped a longer one of the same annotator and were left out"


def read(stream: IO[bytes], name: str, first_number: int, notes: Notes) -> Iterator[Document]:
    """The documents of a JSONL file."""
    decoder = msgspec.json.Decoder(_Record)
    reader = _DocumentReader(notes)
    number = first_number
    for line_number, line in enumerate(stream, 1):
        source = Source(name, line_number)
        text = line.removeprefix(b"\xef\xbb\xbf") if line_number == 1 else line
        if not text.strip():
            continue
        try:
            record = decoder.decode(text)
            yield reader.document(record, source, number)
        except (msgspec.DecodeError, ValueError) as error:
            raise InputError(_reason(error), where=source.at()) from None
        number += 1


def _reason(error: Exception) -> str:
    """What is wrong with a line."""
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8 text (save the file as UTF-8)"
    if isinstance(error, msgspec.ValidationError):
        return f"not a document: {error} (see docs/formats.md)"
    if isinstance(error, msgspec.DecodeError):
        return f"not JSON: {error} (one whole JSON object a line)"
    return str(error)


class KnownRecord(msgspec.Struct):
    """Known tags of a document, and its tokens if they were given."""

    id: str
    tags: tuple[Tag, ...]
    tokens: tuple[str, ...] | None
    source: Source


class _GoldLine(msgspec.Struct):
    id: str | int
    gold: list[Any] | None = None
    tags: list[Any] | None = None
    tokens: list[str] | None = None
    text: str | None = None


def read_known(stream: IO[bytes], name: str, notes: Notes) -> Iterator[KnownRecord]:
    """The known tags in a JSONL file: ``gold``, or the ``tags`` of a consensus that someone has corrected."""
    line_decoder, decoder = msgspec.json.Decoder(_GoldLine), msgspec.json.Decoder(_Record)
    reader = _DocumentReader(notes)
    for line_number, line in enumerate(stream, 1):
        source = Source(name, line_number)
        if not line.strip():
            continue
        try:
            given = line_decoder.decode(line)
            if given.gold is None and given.tags is None:
                continue
            if given.gold is not None and (given.tokens is not None or given.text is not None):
                document = reader.document(decoder.decode(line), source, line_number)
                yield KnownRecord(document.id, document.gold or (), document.tokens, source)
            else:
                tags = given.gold if given.tags is None else given.tags
                tokens = None if given.tokens is None else tuple(given.tokens)
                yield KnownRecord(str(given.id), tuple([reader._tag(tag) for tag in tags or ()]), tokens, source)
        except (msgspec.DecodeError, ValueError) as error:
            raise InputError(_reason(error), where=source.at()) from None


class _DocumentReader:
    """Turns decoded records into documents; remembers names of tags and words from line to line."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.tag_names = _TagNames({None: None})
        self.words: dict[str, str] = {}

    def document(self, record: _Record, source: Source, number: int) -> Document:
        offsets = self._offsets(record, source)
        if record.tokens is not None:
            words = record.tokens
        elif record.text is not None and offsets is not None:
            words = [record.text[start:end] for start, end in offsets]
        else:
            raise ValueError("neither 'tokens' nor 'text' (give one of them)")
        tokens = tuple([self.words.setdefault(word, word) for word in words])
        sequences = [*record.annotations.values(), *([] if record.gold is None else [record.gold])]
        annotations: dict[str, tuple[Tag | SoftTag, ...]]
        gold: tuple[Tag, ...] | None = None
        if _has_spans(sequences, record):
            places = offsets or tuple((position, position + 1) for position in range(len(tokens)))
            end = len(tokens) if record.text is None else len(record.text)
            annotations = {name: self._tags_of_spans(spans, places, end) for name, spans in record.annotations.items()}
            if record.gold is not None:
                gold = self._tags_of_spans(record.gold, places, end)
        else:
            annotations = {name: self._tags(tags) for name, tags in record.annotations.items()}
            if record.gold is not None:
                gold = tuple([self._tag(tag) for tag in record.gold])
        return Document(
            str(number if record.id is None else record.id),
            tokens,
            annotations,
            gold,
            record.split,
            record.text,
            offsets,
            source,
        )

    def _offsets(self, record: _Record, source: Source) -> Offsets | None:
        if record.text is None:
            return None
        if record.offsets is not None:
            return _checked_offsets(record.offsets, record.text)
        return tokenize(record.text) if record.tokens is None else locate(record.tokens, record.text, where=source.at())

    def _tags(self, tags: list[Any]) -> tuple[Tag | SoftTag, ...]:
        try:
            return tuple([self.tag_names[tag] for tag in tags])
        except TypeError:  # a dictionary of probabilities is not hashable
            return tuple([self._soft(tag) if isinstance(tag, dict) else self._tag(tag) for tag in tags])

    def _tag(self, given: Any) -> Tag:
        """A tag, or ``None``; anything else is refused, hashable or not."""
        return self.tag_names[given] if isinstance(given, str | None) else self.tag_names.__missing__(given)

    def _soft(self, given: dict[str, Any]) -> SoftTag:
        soft: dict[str, float] = {}
        for tag, probability in given.items():
            if isinstance(probability, bool) or not isinstance(probability, int | float) or not probability >= 0:
                raise ValueError(f"{probability!r} is not a probability of tag {tag!r} (a number, 0 or more)")
            if probability > 0:
                soft[self.tag_names[tag]] = float(probability)  # type: ignore[index]
        if not soft:
            raise ValueError("a tag with probabilities needs one above 0 (null where not seen)")
        return soft

    def _tags_of_spans(self, spans: list[Any], places: Offsets, end: int) -> tuple[Tag, ...]:
        given = [Span(span.start, span.end, span.label) for span in msgspec.convert(spans, list[_JsonSpan])]
        for start, stop, label in given:
            if not 0 <= start < stop or not label:
                raise ValueError(f"span {start}–{stop} {label!r} is not a span (0 ≤ start < end, and a label)")
            if stop > end:
                raise ValueError(f"span {start}–{stop} {label!r} ends after the text, which ends at {end}")
        found = to_token_spans(given, places)
        self.notes.count(_SPANS_WIDENED, found.widened)
        self.notes.count(_SPANS_DROPPED, found.dropped)
        self.notes.count(_SPANS_OVERLAPPING, found.overlapping)
        tags = TagSet.of_types(Scheme.BIO, (span.label for span in found.spans)).tags(found.spans, len(places))
        return tuple([self.tag_names[tag] for tag in tags])


def _checked_offsets(offsets: list[tuple[int, int]], text: str) -> Offsets:
    """The offsets, if each is a piece of the text after the one before."""
    cursor = 0
    for number, (start, end) in enumerate(offsets, 1):
        if not cursor <= start < end <= len(text):
            raise ValueError(
                f"offsets {start}–{end} of token {number} are not a piece of the text after {cursor} "
                f"(its length is {len(text)})"
            )
        cursor = end
    return tuple(offsets)


def _has_spans(sequences: Sequence[list[Any]], record: _Record) -> bool:
    """Whether a document is annotated with spans; where nobody marked any, whether it came as text."""
    for sequence in sequences:
        for entry in sequence:
            return isinstance(entry, dict) and "start" in entry
    return record.tokens is None or (bool(record.tokens) and any(not sequence for sequence in sequences))


def write(result: Result, stream: IO[bytes], *, probabilities: bool = False) -> None:
    """The consensus, a line a document, in the order of the input."""
    encoder = msgspec.json.Encoder()
    for consensus in result:
        document = consensus.document
        line: dict[str, Any] = {
            "id": document.id,
            "tokens": document.tokens,
            "tags": consensus.tags,
            "confidence": consensus.confidence,
            "token_confidence": consensus.token_confidence.round(6).tolist(),
            "spans": [_span_record(consensus, span) for span in consensus.spans],
        }
        if document.text is not None:
            line["text"] = document.text
            line["offsets"] = document.offsets
        if document.split is not None:
            line["split"] = document.split
        if probabilities:
            line["labels"] = result.labels
            line["probabilities"] = consensus.probabilities.tolist()
        stream.write(encoder.encode(line) + b"\n")


def _span_record(consensus: Consensus, span: ConsensusSpan) -> dict[str, Any]:
    """Offsets are characters where there is text, and tokens elsewhere."""
    record = {**span._asdict(), "text": consensus.text(span)}
    offsets = consensus.document.offsets
    if offsets is not None:
        characters = {"start": offsets[span.start][0], "end": offsets[span.end - 1][1]}
        record |= {**characters, "token_start": span.start, "token_end": span.end}
    return record


class _JsonConsensusSpan(_JsonSpan, kw_only=True):
    confidence: float
    token_start: int | None = None
    token_end: int | None = None


class ConsensusRecord(msgspec.Struct):
    """A line that :func:`write` wrote, as it stands."""

    id: str
    tags: list[str]
    spans: list[_JsonConsensusSpan] = []
    token_confidence: list[float] | None = None
    labels: list[str] | None = None
    probabilities: list[list[float]] | None = None

    def token_spans(self) -> list[tuple[int, int, str, float]]:
        """Start and end in tokens, label and confidence of every span."""
        return [
            (
                span.start if span.token_start is None else span.token_start,
                span.end if span.token_end is None else span.token_end,
                span.label,
                span.confidence,
            )
            for span in self.spans
        ]


def read_consensus(stream: IO[bytes], name: str) -> Iterator[ConsensusRecord]:
    """The lines of a file that :func:`write` wrote."""
    decoder = msgspec.json.Decoder(ConsensusRecord)
    for line_number, line in enumerate(stream, 1):
        if line.strip():
            try:
                yield decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise InputError(
                    f"not a line of a consensus: {error} (give a file that 'quorate aggregate' wrote)",
                    where=f"{name}:{line_number}",
                ) from None


def write_corpus(corpus: Corpus, stream: IO[bytes]) -> None:
    """A corpus, a line a document, as :func:`read` takes it."""
    encoder = msgspec.json.Encoder()
    for document in corpus:
        line: dict[str, Any] = {
            "id": document.id,
            "tokens": document.tokens,
            "annotations": document.annotations,
        }
        for key in ("gold", "split", "text", "offsets"):
            if getattr(document, key) is not None:
                line[key] = getattr(document, key)
        stream.write(encoder.encode(line) + b"\n")
