"""SageMaker Ground Truth, read only: a manifest line with ``annotationsFromAllWorkers``, or a consolidation request.

A worker's ``annotationData.content`` is JSON in a string, with ``entities: [{"startOffset", "endOffset", "label"}]``
somewhere in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from quorate.corpus.records import Source
from quorate.corpus.spans import CharSpan
from quorate.errors import InputError
from quorate.formats.json_records import decoded, plain, reason, records
from quorate.formats.marked import Marked
from quorate.formats.notes import Notes
from quorate.formats.opened import Input

_WORKERS = "annotationsFromAllWorkers"


class _Data(msgspec.Struct):
    content: str


class _Answer(msgspec.Struct):
    workerId: str  # noqa: N815
    annotationData: _Data  # noqa: N815


class _Entity(msgspec.Struct):
    startOffset: int  # noqa: N815
    endOffset: int  # noqa: N815
    label: str


def read(given: Input, notes: Notes) -> Iterator[Marked]:
    """The lines of a manifest."""
    decoder: msgspec.json.Decoder[Mapping[str, Any]] = msgspec.json.Decoder(dict[str, Any])
    for number, (source, raw) in enumerate(records(given.stream, given.name, "object"), given.first_number):
        line = decoded(decoder, raw, source, "an object of a manifest")
        given.numbered |= _id_of(line) is None
        yield _document(line, source, number)


def _document(line: Mapping[str, Any], source: Source, number: int) -> Marked:
    data = line.get("dataObject")
    text = line.get("source", data.get("content") if isinstance(data, Mapping) else None)
    if not isinstance(text, str):
        raise InputError(
            "no text in 'source' (a manifest with 'source-ref' names files; put their text in)", where=source.at()
        )
    try:
        answers = msgspec.convert(_answers(line, source), list[_Answer])
    except msgspec.ValidationError as error:
        raise InputError(reason(error, "an answer of a worker"), where=source.at()) from None
    annotations = {answer.workerId: _marks(answer.annotationData.content, source) for answer in answers}
    name = _id_of(line)
    return Marked(str(number if name is None else name), text, annotations, source)


def _id_of(line: Mapping[str, Any]) -> Any:
    return line.get("datasetObjectId", line.get("id"))


def _answers(line: Mapping[str, Any], source: Source) -> Any:
    if "dataObject" in line:
        return line.get("annotations", [])
    for place in (line, *(value for value in line.values() if isinstance(value, Mapping))):
        if _WORKERS in place:
            return place[_WORKERS]
    raise InputError(
        f"no {_WORKERS!r} in this line (a manifest of consolidated labels has lost them)", where=source.at()
    )


def _marks(content: str, source: Source) -> list[CharSpan]:
    try:
        value = plain(content.encode(), source)
        entities = msgspec.convert(_entities(value), list[_Entity])
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise InputError(reason(error, "a worker's content"), where=source.at()) from None
    return [CharSpan(entity.startOffset, entity.endOffset, entity.label) for entity in entities]


def _entities(value: Any) -> Any:
    """The list of entities in a worker's answer, however deep."""
    while isinstance(value, Mapping):
        if "entities" in value:
            return value["entities"]
        value = next((inner for inner in value.values() if isinstance(inner, Mapping)), None)
    return []
