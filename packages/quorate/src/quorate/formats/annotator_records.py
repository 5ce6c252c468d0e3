"""JSON with a record for each annotator and document, as lines or one array; those with the same id are one document.

``{"id", "text" or "tokens", "annotator", "spans"}``, where ``spans`` may be called ``entities`` or ``labels`` too, and
a span is ``{"start", "end", "label"}`` or ``[start, end, label]``; or ``tags``, one a token. An empty list says that
the annotator marked nothing. If a record names nobody, its file does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from quorate.corpus.offsets import Unit
from quorate.corpus.records import Document, Source
from quorate.corpus.spans import CharSpan
from quorate.errors import InputError
from quorate.formats.json_records import decoded, records
from quorate.formats.marked import Marked, Words, placed
from quorate.formats.notes import Notes
from quorate.formats.opened import Input

WHO = ("annotator", "annotator_id", "annotated_by", "worker", "worker_id", "user", "username")
"""Keys that tell who gave a record."""
SPANS = ("spans", "entities", "ents", "labels", "label", "annotations")
"""Keys under which it has its spans."""
_TAGS = ("tags", "ner_tags")
_STARTS = ("start", "start_offset", "start_char", "begin")
_ENDS = ("end", "end_offset", "end_char", "stop")
_LABELS = ("label", "labels", "type", "entity", "entity_type", "entity_group", "tag", "category")
_A_SPAN = 'a span is {"start", "end", "label"} or [start, end, label]'


def read(given: Input, notes: Notes) -> Iterator[Marked | Document]:
    """The documents of a file, once for each of their annotators."""
    decoder = msgspec.json.Decoder(dict[str, Any])
    ids: dict[str, str] = {}
    words = Words()
    known: dict[str, tuple[str | None, list[str] | None]] = {}
    for number, (source, raw) in enumerate(records(given.stream, given.name, "record"), given.first_number):
        record = decoded(decoder, raw, source, "a record of an annotator")
        try:
            text, tokens = _words_of(record)
            is_bare = text is None and tokens is None
            if record.get("id") is not None:
                name = str(record["id"])
                text, tokens = known.get(name, (None, None)) if is_bare else (text, tokens)
            else:  # without an id, the same text is the same document
                name = ids.setdefault(text if text is not None else "\0".join(tokens or ()), str(number))
            if text is None and tokens is None:
                raise ValueError("neither 'text' nor 'tokens' (give one of them)")
            known.setdefault(name, (text, tokens))
            yield _document(record, name, text, tokens, source, words)
        except ValueError as error:
            raise InputError(str(error), where=source.at()) from None
    given.numbered = bool(ids)


def _words_of(record: Mapping[str, Any]) -> tuple[str | None, list[str] | None]:
    text, tokens = record.get("text"), record.get("tokens")
    if text is not None and not isinstance(text, str):
        raise ValueError("'text' must be a text in quotes")
    if tokens is not None and not (isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)):
        raise ValueError("'tokens' must be a list of texts in quotes")
    return text, tokens


def _document(
    record: Mapping[str, Any], name: str, text: str | None, tokens: list[str] | None, source: Source, words: Words
) -> Marked | Document:
    who = _who(record)
    key = next((key for key in SPANS if isinstance(record.get(key), list)), None)
    tags = next((record[key] for key in _TAGS if isinstance(record.get(key), list)), None)
    if key is not None:
        marks = [_span(value, number) for number, value in enumerate(record[key], 1)]
        return Marked(name, text, {who: marks}, source, tokens=tokens)
    if tags is None or tokens is None:
        raise ValueError(f"no list of spans (in 'spans', 'entities' or 'labels'; {_A_SPAN})")
    if len(tags) != len(tokens) or not all(tag is None or (isinstance(tag, str) and tag) for tag in tags):
        raise ValueError(f"tags must be texts in quotes, one for each of {len(tokens):,} tokens (null where not seen)")
    bare = placed(Marked(name, text, {}, source, tokens=tokens), Unit.CODE_POINTS, words, Notes()).document
    return Document(name, bare.tokens, {who: tuple(tags)}, text=bare.text, offsets=bare.offsets, source=source)


def _who(record: Mapping[str, Any]) -> str:
    """Whom a record names; an empty name if there is nothing that could."""
    key = next((key for key in WHO if key in record), None)
    if key is None:
        return ""
    value = record[key]
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ValueError(f"{key!r} must be a name, not {value!r} (leave it out if the file is one annotator's)")
    return str(value)


def _span(value: Any, number: int) -> CharSpan:
    match value:
        case [int(start), int(end), str(label)] if label:
            return CharSpan(start, end, label)
        case dict():
            match [_first_of(keys, value) for keys in (_STARTS, _ENDS, _LABELS)]:
                case [int(start), int(end), str(label) | [str(label)]] if label:
                    return CharSpan(start, end, label, _words_told(value), _score_told(value))
    raise ValueError(f"span {number} is none: {value!r} ({_A_SPAN})")


def _first_of(keys: Sequence[str], value: Mapping[str, Any]) -> Any:
    return next((value[key] for key in keys if key in value), None)


def _words_told(value: Mapping[str, Any]) -> str | None:
    """The words that a span says it holds."""
    return next((value[key] for key in ("text", "word", "surface") if isinstance(value.get(key), str)), None)


def _score_told(value: Mapping[str, Any]) -> float | None:
    score = next((value[key] for key in ("score", "confidence") if value.get(key) is not None), None)
    return float(score) if isinstance(score, int | float) and not isinstance(score, bool) else None
