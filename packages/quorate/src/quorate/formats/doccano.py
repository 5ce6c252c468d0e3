"""doccano's exports: a zip with one ``USER.jsonl`` for each annotator, or such a file by itself.

Spans are ``"label": [[start, end, label]]``, or ``"entities": [{"start_offset", "end_offset", "label"}]`` where
relations are on. A collaborative project has ``all.jsonl``, in which nobody is named: one annotator, ``all``.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any

import msgspec

from quorate.corpus.records import Source
from quorate.corpus.spans import CharSpan
from quorate.errors import InputError
from quorate.formats.exports import Export, ExportAnnotation, ExportDocument, outward_spans, unit_for
from quorate.formats.json_records import decoded, records
from quorate.formats.marked import Marked
from quorate.formats.notes import Notes
from quorate.formats.opened import Content, Input, most_of, stem
from quorate.formats.zipped import members
from quorate.storage.files.atomic import written_whole


class _Entity(msgspec.Struct):
    start_offset: int
    end_offset: int
    label: str


class _Line(msgspec.Struct):
    text: str
    id: int | str | None = None
    label: list[tuple[int, int, str]] | None = None
    labels: list[tuple[int, int, str]] | None = None
    entities: list[_Entity] | None = None


def read(given: Input, notes: Notes) -> Iterator[Marked]:
    """The documents of an export, a record for each annotator and document."""
    if given.stream.peek(2)[:2] != b"PK":
        yield from _file(given, "")
        return
    for name, content in members(given, (".jsonl", ".json")):
        where = f"{given.name}/{name}"
        inner = Input(Content(io.BytesIO(content), where, most_of(given.stream)), where)
        yield from _file(inner, stem(name))


def _file(given: Input, annotator: str) -> Iterator[Marked]:
    decoder = msgspec.json.Decoder(_Line)
    for source, raw in records(given.stream, given.name, "document"):
        line = decoded(decoder, raw, source, "a document of doccano")
        yield _document(line, source, annotator)


def _document(line: _Line, source: Source, annotator: str) -> Marked:
    if line.label is None and line.labels is None and line.entities is None:
        raise InputError("neither 'label' nor 'entities' (export a sequence labelling project)", where=source.at())
    marks = [CharSpan(*span) for span in line.label or line.labels or ()]
    marks += [CharSpan(entity.start_offset, entity.end_offset, entity.label) for entity in line.entities or ()]
    name = "" if line.id is None else str(line.id)
    return Marked(name, line.text, {annotator: marks}, source, origin={"tool": "doccano", "id": line.id})


def write(export: Export, path: str) -> None:
    """A file for doccano's import; a path that ends in ``.zip`` takes one file for each annotator."""
    export.check_spans("doccano's JSONL")
    encoder = msgspec.json.Encoder()
    if not path.endswith(".zip"):
        with written_whole(path) as stream:
            for exported in export.annotated():
                annotations = list(exported.annotations())
                if len(annotations) > 1:
                    raise InputError(
                        f"{len(annotations)} annotators, where one file holds one (give a name that ends in .zip)",
                        where=exported.document.where(),
                    )
                for annotation in annotations:
                    stream.write(encoder.encode(_line(exported, annotation)) + b"\n")
        return
    files: dict[str, list[bytes]] = {}
    for exported in export.annotated():
        for annotation in exported.annotations():
            files.setdefault(annotation.name, []).append(encoder.encode(_line(exported, annotation)) + b"\n")
    with written_whole(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, written in files.items():
            inner = zipfile.ZipInfo(f"{name.replace('/', '_')}.jsonl")  # without a date: the same bytes tomorrow
            inner.external_attr = 0o644 << 16  # what whoever unpacks it may do with it
            archive.writestr(inner, b"".join(written), zipfile.ZIP_DEFLATED)


def _line(exported: ExportDocument, annotation: ExportAnnotation) -> dict[str, Any]:
    origin = exported.document.origin or {}
    line: dict[str, Any] = {"id": origin.get("id") or exported.document.id, "text": exported.text()}
    line["label"] = [
        [span.start, span.end, span.label]
        for span in outward_spans(exported, annotation.in_pieces(), unit_for(exported, "doccano"))
    ]
    return line if annotation.confidence is None else {**line, "confidence": round(annotation.confidence, 6)}
