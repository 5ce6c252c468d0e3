"""The project's own JSONL: one document a line. ``docs/formats.md`` describes it.

In, with tags: ``{"id", "tokens", "annotations": {annotator: [tag | null | {tag: probability}]}, "gold"?, "split"?}``,
or with character spans: ``{"id", "text", "annotations": {annotator: [{"start", "end", "label"}]}, "gold"?}``. An
annotator who is absent has not seen the document; one with ``[]`` spans saw it and marked nothing. A discontinuous span
has ``"pieces": [[start, end], …]`` too. ``"profiles": {annotator: {"kind", …}}`` holds from any line on for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from sys import intern
from typing import IO, Any, Literal, TypeVar

import msgspec

from quorate.corpus.decisions import Review
from quorate.corpus.offsets import Unit
from quorate.corpus.profiles import read_profiles
from quorate.corpus.records import Corpus, Document, SoftTag, Source, Tag
from quorate.corpus.spans import CharSpan, Span
from quorate.errors import InputError, SettingsError
from quorate.formats.corrected import refuse_contradiction, tags_of_spans
from quorate.formats.json_lines import corpus_lines, encoded_lines, write
from quorate.formats.json_records import RepeatedKeys, UnknownKeys, decoded, reason, records
from quorate.formats.marked import Marked, UnitVotes, Words, find_units_of, placed
from quorate.formats.notes import Notes
from quorate.formats.opened import Input
from quorate.storage.files.atomic import written_whole

__all__ = [
    "ConsensusSpan",
    "KnownRecord",
    "in_layers",
    "read",
    "read_known",
    "save_corpus",
    "write",
    "write_corpus",
]


class _Record(msgspec.Struct):
    id: str | int | None = None
    tokens: list[str] | None = None
    text: str | None = None
    offsets: list[tuple[int, int]] | None = None
    annotations: dict[str, Sequence[Any]] = {}
    gold: Sequence[Any] | None = None
    split: str | None = None
    offset_unit: str | None = None
    tags: Any = None  # of a consensus
    spans: Any = None  # likewise
    checked: bool = True  # false in the plan of an audit: its gold is only proposed
    profiles: Any = None


# Those that are written here and mean nothing where annotations are read.
_OWN_KEYS = {
    *_Record.__struct_fields__, "confidence", "token_confidence", "layers", "known", "labels", "probabilities",
    "shares", "ambiguity", "reviewer", "time", "note", "version", "adjudicated", "layer", "audit", "proposals",
}  # fmt: skip


class _JsonSpan(msgspec.Struct):
    start: int
    end: int
    label: str
    text: str | None = None
    score: float | None = None
    pieces: tuple[tuple[int, int], ...] = ()


_AnySpan = TypeVar("_AnySpan", bound=_JsonSpan)


class _TagNames(dict[Any, Tag]):
    """One string object for each tag, so that millions of tags cost a pointer each; refuses what is not a tag."""

    def __missing__(self, tag: object) -> str:
        if not isinstance(tag, str) or not tag:
            raise ValueError(
                f"{tag!r} is not a tag (a tag is a non-empty string, or null where not seen; a span is "
                '{"start", "end", "label"})'
            )
        shared = intern(tag)
        self[shared] = shared
        return shared


class _RecordDecoder:
    """Decodes lines. Tags met before become the same string objects at once, without one object for each token.

    msgspec makes shared objects of strings that a type names; so the tags met so far make up a type. A line with
    another tag is decoded as any line, and its tags are known from then on. After a line with something else
    (probabilities, spans), and where tags are many, all are decoded as any line.
    """

    _MOST_TAGS = 256

    def __init__(self, tags: _TagNames) -> None:
        self._tags = tags
        self._known = len(tags)
        self._any = msgspec.json.Decoder(_Record)
        self._of_tags: msgspec.json.Decoder[_Record] | None = None
        self._given_up = False

    def decode(self, line: bytes) -> _Record:
        if not self._given_up and len(self._tags) > self._known:
            self._known = len(self._tags)
            self._of_tags = msgspec.json.Decoder(_record_of(tuple(self._tags)))
            self._given_up = self._known > self._MOST_TAGS
        if self._given_up or self._of_tags is None:
            return self._any.decode(line)
        try:
            return self._of_tags.decode(line)
        except msgspec.ValidationError:
            record = self._any.decode(line)
            every = (*record.annotations.values(), record.gold or ())
            self._given_up = not any(isinstance(tag, str) and tag not in self._tags for tags in every for tag in tags)
            return record


def _record_of(tags: tuple[Tag, ...]) -> type[_Record]:
    """The type of a record with no other tags than these."""
    sequence: Any = tuple[Literal[tags], ...]  # type: ignore[valid-type]
    fields: list[Any] = [("annotations", dict[str, sequence], {}), ("gold", sequence | None, None)]
    made: Any = msgspec.defstruct("_RecordOfTags", fields, bases=(_Record,))
    return made  # type: ignore[no-any-return]


class _Layered(msgspec.Struct):
    layers: Any = None
    tags: Any = None
    annotations: Any = None

    def is_consensus(self) -> bool:
        return self.layers is not None and self.tags is None and self.annotations is None


_LAYERED = msgspec.json.Decoder(_Layered)


def in_layers(line: bytes, source: Source) -> bool:
    """Whether a line is of a consensus in layers."""
    return b'"layers"' in line and decoded(_LAYERED, line, source, "a document").is_consensus()


def _documents(stream: IO[bytes], name: str, instead: str) -> Iterator[tuple[Source, bytes]]:
    """The lines of a file (or the items of one array), none of which may be of a consensus in layers.

    Such a line has no tags, and would pass for a bare text.
    """
    for source, line in records(stream, name, "document"):
        if in_layers(line, source):
            raise InputError(f"a consensus in layers ({instead})", where=source.at())
        yield source, line


def read(given: Input, notes: Notes, *, proposed: bool = False) -> Iterator[Document | Marked]:
    """The documents of a JSONL file; ``proposed``: what waits to be checked counts as gold too."""
    reader = _DocumentReader(proposed=proposed)
    decoder, repeated, unknown = _RecordDecoder(reader.tag_names), RepeatedKeys(), UnknownKeys(_OWN_KEYS)
    annotated = False
    instead = "evaluate, audit and convert take it; spans to combine go into 'annotations', known ones into 'gold'"
    for number, (source, line) in enumerate(_documents(given.stream, given.name, instead), given.first_number):
        record = decoded(decoder, line, source, "a document")
        given.numbered |= record.id is None
        try:
            repeated.check(line, record.annotations)
            if record.profiles is not None:
                given.profiles.update(read_profiles(_object(record.profiles, "profiles"), given.profiles))
            unknown.look(line)
            annotated |= bool(record.annotations) or record.gold is not None
            yield reader.document(record, source, number)
        except SettingsError as error:
            raise InputError(str(error), where=source.at()) from None
        except (msgspec.ValidationError, ValueError) as error:
            raise InputError(reason(error, "a document"), where=source.at()) from None
    if not annotated and (slip := unknown.meant("annotations")):
        raise InputError(
            f"no document of it has 'annotations', but {slip!r} (rename that, if it has annotations)", where=given.name
        )
    if told := unknown.sentence():
        notes.add(told)


def _object(given: Any, name: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ValueError(f"{name!r} must be an object ({{name: …}})")
    return given


class KnownRecord(msgspec.Struct):
    """Known tags of a document, its tokens if they were given, and who decided so, as far as that is said."""

    id: str
    tags: tuple[Tag, ...]
    tokens: tuple[str, ...] | None
    source: Source
    review: Review = Review()


class _KnownSpan(_JsonSpan, kw_only=True):
    token_start: int | None = None
    token_end: int | None = None
    token_pieces: tuple[tuple[int, int], ...] = ()

    def in_tokens(self) -> Span | None:
        """Its place in tokens, if it says so."""
        if self.token_start is None or self.token_end is None:
            return None
        return Span(self.token_start, self.token_end, self.label, pieces=self.token_pieces)


class _KnownLine(msgspec.Struct):
    id: str | int
    checked: bool = True  # false where a document waits to be checked, as in the plan of an audit
    gold: list[Any] | None = None
    tags: Any = None  # this and spans may be another tool's, beside gold
    spans: Any = None
    tokens: list[str] | None = None
    text: str | None = None
    offsets: list[tuple[int, int]] | None = None
    offset_unit: str | None = None
    reviewer: str | None = None
    time: str | None = None
    note: str | None = None
    version: int | str | None = None
    adjudicated: bool = False
    layer: str = ""  # of a review in layers: its tags are of this one

    def review(self, source: Source) -> Review:
        """Who decided, when, and why."""
        reviewer, note = (self.reviewer or "").strip(), self.note or ""
        return Review(reviewer, self._moment(source), note, self.version, self.adjudicated)

    def _moment(self, source: Source) -> datetime | None:
        if self.time is None:
            return None
        try:
            moment = datetime.fromisoformat(self.time)
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            raise InputError(
                f"time {self.time!r} is not a time with its zone (write it as 2026-11-17T09:30:00+01:00)",
                where=f"{source.at()}: document {str(self.id)!r}",
            )
        return moment


def read_known(stream: IO[bytes], name: str, *, unchecked: list[str] | None = None) -> Iterator[KnownRecord]:
    """The known tags in a JSONL file: ``gold``, or ``tags`` or ``spans`` of a consensus that someone has corrected.

    The ids of documents that wait to be checked, of which nothing is known, are added to ``unchecked``.
    """
    line_decoder, decoder = msgspec.json.Decoder(_KnownLine), msgspec.json.Decoder(_Record)
    reader, votes = _DocumentReader(), UnitVotes()
    found: list[tuple[_KnownLine, KnownRecord | Marked]] = []
    for number, (source, line) in enumerate(_documents(stream, name, "it is known with --layers auto"), 1):
        given = decoded(line_decoder, line, source, "a document with known labels")
        if given.layer:
            raise InputError(f"labels of layer {given.layer!r} (they are known with --layers auto)", where=source.at())
        if not given.checked:
            if unchecked is not None:
                unchecked.append(str(given.id))
            continue
        try:
            if given.gold is not None and (given.tokens is not None or given.text is not None):
                document = reader.document(decoder.decode(line), source, number)
                if isinstance(document, Marked):
                    found.append((given, _with_unit(document, votes)))
                else:
                    found.append((given, KnownRecord(document.id, document.gold or (), document.tokens, source)))
            elif given.gold is not None or given.tags is not None or given.spans is not None:
                found.append((given, _known_record(given, reader, source)))
        except (msgspec.DecodeError, ValueError) as error:
            raise InputError(reason(error, "a document"), where=source.at()) from None
    for given, record in found:
        known = _known_of_spans(record, votes, reader.words) if isinstance(record, Marked) else record
        known.review = given.review(record.source)
        if given.gold is not None:
            _refuse_other_spans(given, known, reader.words)
        yield known


def _with_unit(marked: Marked, votes: UnitVotes) -> Marked:
    """The document with its unit, if its spans tell it."""
    units = find_units_of(marked)
    if len(units) > 1:
        return marked
    votes.count(marked, units[0])
    return replace(marked, unit=units[0])


def _known_of_spans(marked: Marked, votes: UnitVotes, words: Words) -> KnownRecord:
    """What a document's gold spans say, in the unit that the file's documents tell."""
    unit, certain = votes.choose(replace(marked, annotations={}), find_units_of(marked))
    if not certain:
        raise InputError(
            "nothing tells what its offsets count, and it holds emoji or Windows line ends before a span (say it with "
            f"'offset_unit', one of: {', '.join(Unit)})",
            where=marked.where(),
        )
    tokens, tags = tags_of_spans(replace(marked, unit=unit), words)
    return KnownRecord(marked.id, tags, tokens, marked.source)


def _known_record(given: _KnownLine, reader: _DocumentReader, source: Source) -> KnownRecord:
    """The gold of a line, else its tags, which its spans must not contradict, else its spans."""
    name = str(given.id)
    tokens = None if given.tokens is None else tuple(given.tokens)
    if given.gold is not None:
        return KnownRecord(name, reader.gold(given.gold), tokens, source)
    tags = None if given.tags is None else reader.gold(msgspec.convert(given.tags, list[Any]))
    if given.spans is not None:
        spans = _converted(given.spans, _KnownSpan, "known spans")
        if tags is None and given.tokens is None and given.text is None:
            raise ValueError("spans need 'tokens' or 'text' to lie on (give one of them)")
        marked = _marked(given, spans, 0 if tags is None else len(tags), source)
        if tags is None:
            tokens, tags = tags_of_spans(marked, reader.words)
        else:
            refuse_contradiction(tags, marked, reader.words, [span.in_tokens() for span in spans])
    return KnownRecord(name, tags or (), tokens, source)


def _marked(given: _KnownLine, spans: Sequence[_KnownSpan], length: int, source: Source) -> Marked:
    """A line's spans, on its text or its tokens; on ``length`` nameless ones where it has neither."""
    words = [""] * length if given.tokens is None and given.text is None else given.tokens
    marks = [CharSpan(span.start, span.end, span.label, pieces=span.pieces) for span in spans]
    unit = _unit(given.offset_unit or Unit.CODE_POINTS)
    return Marked(str(given.id), given.text, {}, source, marks, None, words, given.offsets, unit)


def _refuse_other_spans(given: _KnownLine, known: KnownRecord, words: Words) -> None:
    """Raise :class:`InputError` if spans beside gold are not those of the gold; what is no span is another tool's."""
    try:
        spans = msgspec.convert(given.spans, list[_KnownSpan])
    except msgspec.ValidationError:
        return
    marked = _marked(given, spans, len(known.tags), known.source)
    refuse_contradiction(known.tags, marked, words, [span.in_tokens() for span in spans], "gold")


class _DocumentReader:
    """Turns decoded records into documents; remembers names of tags and words from line to line."""

    def __init__(self, *, proposed: bool = False) -> None:
        self.tag_names = _TagNames({None: None})
        self.words = Words()
        self._proposed = proposed

    def document(self, record: _Record, source: Source, number: int) -> Document | Marked:
        name = str(number if record.id is None else record.id)
        if not record.checked and not self._proposed:
            record.gold = None
        if record.tokens is None and record.text is None:
            raise ValueError("neither 'tokens' nor 'text' (give one of them)")
        if what := _what_is_nobodys(record):
            raise ValueError(
                f"'{what}' that are nobody's, as in a consensus (evaluate and convert take a consensus, a file at a "
                f"time; {what} to combine go into 'annotations', known ones into 'gold'; if the file is one "
                "annotator's, say --from records; if each line is, call its key 'annotator')"
            )
        sequences = [*record.annotations.values(), *([] if record.gold is None else [record.gold])]
        unit = None if record.offset_unit is None else _unit(record.offset_unit)
        if _has_spans(sequences, record):
            return Marked(
                name,
                record.text,
                {who: _marks(spans, f"spans of annotator {who!r}") for who, spans in record.annotations.items()},
                source,
                None if record.gold is None else _marks(record.gold, "spans of 'gold'"),
                record.split,
                record.tokens,
                record.offsets,
                unit,
            )
        gold = None if record.gold is None else self.gold(record.gold)
        annotations = {who: self._tags(tags) for who, tags in record.annotations.items()}
        unit = unit or Unit.CODE_POINTS
        if record.text is None:
            tokens = self.words.all(record.tokens or ())
            return Document(name, tokens, annotations, gold, record.split, source=source, unit=unit)
        bare = Marked(name, record.text, {}, source, None, record.split, record.tokens, record.offsets, unit)
        return replace(placed(bare, unit, self.words, Notes()).document, annotations=annotations, gold=gold)

    def gold(self, tags: Sequence[Any]) -> tuple[Tag, ...]:
        """Tags that are right, or ``None`` where nobody knows."""
        return tags if isinstance(tags, tuple) else tuple([self._tag(tag) for tag in tags])

    def _tags(self, tags: Sequence[Any]) -> tuple[Tag | SoftTag, ...]:
        if isinstance(tags, tuple):  # already of tags that were met before
            return tags
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


def _what_is_nobodys(record: _Record) -> str:
    """The name of what marks a document that says neither who gave it nor that it is right; empty if nothing does."""
    if record.annotations or record.gold is not None:
        return ""
    if record.tokens is not None and isinstance(record.tags, list) and len(record.tags) == len(record.tokens):
        return "tags"
    return "spans" if isinstance(record.spans, list) and record.spans else ""


def _marks(spans: Sequence[Any], what: str) -> list[CharSpan]:
    return [
        CharSpan(span.start, span.end, span.label, span.text, span.score, pieces=span.pieces)
        for span in _converted(spans, _JsonSpan, what)
    ]


def _converted(spans: Any, kind: type[_AnySpan], what: str) -> list[_AnySpan]:
    """Spans as records of a kind; :class:`ValueError` says what is wrong with them, and what a span is."""
    try:
        return msgspec.convert(spans, list[kind])  # type: ignore[valid-type]
    except msgspec.ValidationError as error:
        raise ValueError(reason(error, what, 'a span is {"start", "end", "label"}')) from None


def _unit(name: str) -> Unit:
    try:
        return Unit(name)
    except ValueError:
        raise ValueError(f"offset_unit {name!r} is not known (one of: {', '.join(Unit)})") from None


def _has_spans(sequences: Sequence[Sequence[Any]], record: _Record) -> bool:
    """Whether a document is annotated with spans; where nobody marked any, whether it came as text."""
    for sequence in sequences:
        for entry in sequence:
            return isinstance(entry, dict) and ("start" in entry or isinstance(entry.get("label"), str))
    return record.tokens is None or (bool(record.tokens) and any(not sequence for sequence in sequences))


class ConsensusSpan(_JsonSpan, kw_only=True, omit_defaults=True):
    """A span in a line of a consensus, in characters and in tokens."""

    confidence: float
    layer: str = ""
    token_start: int | None = None
    token_end: int | None = None
    token_pieces: tuple[tuple[int, int], ...] = ()
    known: bool = False

    def in_tokens(self) -> Span:
        """The span in tokens, as it counts where there is no text."""
        if self.token_start is None or self.token_end is None:
            return Span(self.start, self.end, self.label, self.confidence, pieces=self.pieces)
        return Span(self.token_start, self.token_end, self.label, self.confidence, pieces=self.token_pieces)


def write_corpus(corpus: Corpus, stream: IO[bytes]) -> None:
    """A corpus, a line a document, as :func:`read` takes it."""
    for line in encoded_lines(corpus_lines(corpus)):
        stream.write(line)


def save_corpus(corpus: Corpus, path: str | Path) -> None:
    """The same into a file, whole or not at all; ``-`` is standard output."""
    with written_whole(path) as stream:
        write_corpus(corpus, stream)
