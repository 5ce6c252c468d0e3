"""Prodigy's JSONL: a line for each answer of each annotator; lines with the same ``_input_hash`` are one document.

Only accepted answers count: ``ignore`` means not seen, and ``reject`` says that something in the answer is wrong, not
what is right. Offsets are characters; tokens are the file's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quorate.corpus.offsets import Unit, ruler
from quorate.corpus.records import Source
from quorate.corpus.spans import CharSpan
from quorate.corpus.tokens import Offsets, Places
from quorate.errors import InputError
from quorate.formats.exports import Export, ExportAnnotation, ExportDocument, outward_spans, unit_for
from quorate.formats.json_records import decoded, lines
from quorate.formats.marked import Marked
from quorate.formats.notes import Notes
from quorate.formats.opened import Input
from quorate.storage.files.atomic import written_whole

_IGNORED = "{} {answer 'ignore' was|answers 'ignore' were} skipped"
_REJECTED = (
    "{} {answer 'reject' was|answers 'reject' were} skipped: {it says|they say} that something is wrong, not "
    "what is right"
)
_CUT = (
    "{} {document has tokens that are no pieces of its|documents have tokens that are no pieces of their} text, "
    "which was cut anew"
)


class _Span(msgspec.Struct):
    start: int
    end: int
    label: str
    text: str | None = None
    score: float | None = None


class _Token(msgspec.Struct):
    text: str
    start: int
    end: int


class _Line(msgspec.Struct):
    text: str
    spans: list[_Span] | None = None
    tokens: list[_Token] | None = None
    answer: str | None = None
    annotator: str | None = msgspec.field(default=None, name="_annotator_id")
    session: str | None = msgspec.field(default=None, name="_session_id")
    input_hash: int | str | None = msgspec.field(default=None, name="_input_hash")
    id: int | str | None = None
    meta: dict[str, Any] | None = None


def read(given: Input, notes: Notes) -> Iterator[Marked]:
    """The answers of a dataset."""
    decoder = msgspec.json.Decoder(_Line)
    hashed: dict[str, str] = {}
    for number, (source, raw) in enumerate(lines(given.stream, given.name), given.first_number):
        line = decoded(decoder, raw, source, "an answer of Prodigy")
        if line.answer not in (None, "accept"):
            if line.answer not in ("ignore", "reject"):
                raise InputError(
                    f"answer {line.answer!r} is not known (accept, reject or ignore; of a language model: --from llm)",
                    where=source.at(),
                )
            notes.count(_IGNORED if line.answer == "ignore" else _REJECTED, 1)
            continue
        yield _document(line, source, number, hashed, notes)
    given.numbered = bool(hashed)


def _document(line: _Line, source: Source, number: int, hashed: dict[str, str], notes: Notes) -> Marked:
    if line.input_hash is not None:
        name = str(line.input_hash)
    elif line.id is not None:
        name = str(line.id)
    else:  # without a hash, the same text is the same document
        name = hashed.setdefault(line.text, str(number))
    offsets, unit = _offsets(line.tokens or (), line.text)
    notes.count(_CUT, line.tokens is not None and offsets is None)
    marks = [CharSpan(span.start, span.end, span.label, span.text, span.score) for span in line.spans or ()]
    return Marked(
        name,
        line.text,
        {line.annotator or line.session or "": marks},
        source,
        offsets=offsets,
        unit=unit,
        origin={"tool": "prodigy", "id": line.id, "_input_hash": line.input_hash, "meta": line.meta},
    )


def _offsets(tokens: Sequence[_Token], text: str) -> tuple[Offsets | None, Unit | None]:
    """The file's own tokens without blank ones, and what they count; nothing if they are no pieces of the text."""
    for unit in Unit:
        measure = ruler(text, unit)
        found: list[tuple[int, int]] = []
        cursor = 0
        for token in tokens:
            start, end = measure.inward(token.start), measure.inward(token.end)
            if start is None or end is None or not cursor <= start < end or text[start:end] != token.text:
                break
            cursor = end
            found += [] if token.text.isspace() else [(start, end)]
        else:
            return (Places(found), unit) if tokens else (None, None)
    return None, None


def write(export: Export, path: str) -> None:
    """Answers for Prodigy's ``db-in`` or ``ner.manual``: the consensus, or every annotator's."""
    export.check_spans("Prodigy's JSONL")
    encoder = msgspec.json.Encoder()
    with written_whole(path) as stream:
        for exported in export.annotated():
            for annotation in exported.annotations():
                stream.write(encoder.encode(_answer(exported, annotation)) + b"\n")


def _answer(exported: ExportDocument, annotation: ExportAnnotation) -> dict[str, Any]:
    origin = exported.document.origin or {}
    text, offsets = exported.text(), exported.offsets()
    answer: dict[str, Any] = {"text": text}
    answer |= {key: origin[key] for key in ("id", "_input_hash") if origin.get(key) is not None}
    if "_input_hash" not in answer:
        answer["id"] = exported.document.id
    answer["tokens"] = [
        {"text": text[start:end], "start": start, "end": end, "id": number, "ws": text[end : end + 1].isspace()}
        for number, (start, end) in enumerate(offsets)
    ]
    answer["spans"] = []
    pieces = annotation.in_pieces()
    outward = outward_spans(exported, pieces, unit_for(exported, "prodigy"))
    for span, in_tokens in zip(outward, pieces.spans, strict=True):
        record: dict[str, Any] = {"start": span.start, "end": span.end, "token_start": in_tokens.start}
        record |= {"token_end": in_tokens.end - 1, "label": span.label}
        answer["spans"].append(record if span.confidence is None else {**record, "score": round(span.confidence, 6)})
    meta = dict(origin.get("meta") or {})
    if annotation.confidence is not None:
        meta["score"] = round(annotation.confidence, 6)
    answer |= {"meta": meta, "_annotator_id": annotation.name, "_view_id": "ner_manual", "answer": "accept"}
    return answer
