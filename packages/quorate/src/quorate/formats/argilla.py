"""Argilla's records (``dataset.records.to_json``), read only: responses of its users to a span question.

``responses`` is ``{question: [{"value": [{"start", "end", "label"}], "user_id"}]}``; ``suggestions`` are what models
said. A response with a status other than submitted does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from quorate.corpus.records import Source
from quorate.corpus.spans import CharSpan
from quorate.errors import InputError
from quorate.formats.json_records import decoded, reason, records
from quorate.formats.marked import Marked
from quorate.formats.notes import Notes
from quorate.formats.opened import Input

_DRAFTS = "{} {response that was not submitted was|responses that were not submitted were} skipped"
_OTHER = "{} {answer|answers} to questions about something other than spans {was|were} skipped"


class _Response(msgspec.Struct):
    value: Any = None
    user_id: str | None = None
    status: str | None = None


class _Suggestion(msgspec.Struct):
    value: Any = None
    agent: str | None = None


class _Record(msgspec.Struct):
    fields: dict[str, Any]
    id: str | int | None = None
    responses: dict[str, list[_Response]] | None = None
    suggestions: dict[str, _Suggestion] | None = None


class _Span(msgspec.Struct):
    start: int
    end: int
    label: str
    score: float | None = None


def read(given: Input, notes: Notes) -> Iterator[Marked]:
    """The records of a dataset."""
    decoder = msgspec.json.Decoder(_Record)
    for number, (source, raw) in enumerate(records(given.stream, given.name, "record"), given.first_number):
        record = decoded(decoder, raw, source, "a record of Argilla")
        given.numbered |= record.id is None
        yield _document(record, source, number, given.predictions, notes)


def _document(record: _Record, source: Source, number: int, predictions: bool, notes: Notes) -> Marked:
    annotations: dict[str, list[CharSpan]] = {}
    models: set[str] = set()
    for question, responses in (record.responses or {}).items():
        for response in responses:
            if response.status not in (None, "submitted"):
                notes.count(_DRAFTS, 1)
                continue
            _add(annotations, response.user_id or "", response.value, question, source, notes)
    if predictions:
        for question, suggestion in (record.suggestions or {}).items():
            name = suggestion.agent or "model"
            if _add(annotations, name, suggestion.value, question, source, notes):
                models.add(name)
    texts = [value for value in record.fields.values() if isinstance(value, str)]
    text = record.fields.get("text")
    if not isinstance(text, str):
        if len(texts) != 1:
            raise InputError(
                f"no telling which field is the text (fields: {', '.join(record.fields) or 'none'}; name it 'text')",
                where=source.at(),
            )
        text = texts[0]
    name = str(number if record.id is None else record.id)
    return Marked(name, text, annotations, source, models=frozenset(models))


def _add(
    annotations: dict[str, list[CharSpan]], name: str, value: Any, question: str, source: Source, notes: Notes
) -> bool:
    """Add the spans of one answer, if it is one about spans."""
    if not isinstance(value, list) or not all(isinstance(span, dict) and "start" in span for span in value):
        notes.count(_OTHER, 1)
        return False
    try:
        spans = msgspec.convert(value, list[_Span])
    except msgspec.ValidationError as error:
        raise InputError(reason(error, "a span of Argilla"), where=source.at()) from None
    marks = annotations.setdefault(name, [])
    marks += [CharSpan(span.start, span.end, span.label, None, span.score, question) for span in spans]
    return True
