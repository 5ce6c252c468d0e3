"""Label Studio's JSON export: an array of tasks, read one by one, so that a large export takes little memory.

Skipped annotations (``was_cancelled``) were not given; one marked ``ground_truth`` is gold; an empty ``result`` means
seen, and nothing marked. The consensus goes back as ``predictions`` with a score for the task and for each region.
It has no discontinuous spans: their pieces are regions, each joined to the next by a relation labelled ``continues``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from quorate.corpus.discontinuous import in_pieces, is_continued, whole_label
from quorate.corpus.records import Source
from quorate.corpus.spans import CharSpan
from quorate.errors import InputError
from quorate.formats.changes import REPLACED
from quorate.formats.exports import Export, ExportAnnotation, ExportDocument, outward_spans, unit_for
from quorate.formats.json_records import decoded, records
from quorate.formats.marked import Marked
from quorate.formats.notes import Notes
from quorate.formats.opened import Input
from quorate.formats.pieces import CONTINUES, NOT_ALIKE, Joining
from quorate.storage.files.atomic import written_whole

OWN_PREFIX = "quorate"
"""Predictions of a model version that begins so are this package's own, and no annotator's."""

_OTHER_REGIONS = (
    "{} {region that is no labelled span of text was|regions that are no labelled spans of text were} left out"
)
_SKIPPED = "{} {annotation was|annotations were} skipped or cancelled in Label Studio, and left out"


Controls = dict[str, tuple[str, str, str]]
"""For each label the control that makes spans of it: its name, the name of what it marks, and its type."""


class _Region(msgspec.Struct):
    type: str = ""
    value: dict[str, Any] = {}
    from_name: str | None = None
    to_name: str | None = None
    score: float | None = None
    id: str | int | None = None
    from_id: str | int | None = None  # this and the next two are of relations
    to_id: str | int | None = None
    labels: Any = None

    def continues(self) -> bool:
        return self.type == "relation" and isinstance(self.labels, list) and CONTINUES in self.labels


class _Annotation(msgspec.Struct):
    id: Any = None
    completed_by: int | str | dict[str, Any] | None = None
    was_cancelled: bool | None = False
    ground_truth: bool | None = False
    result: list[_Region] | None = None


class _Prediction(msgspec.Struct):
    model_version: str | None = None
    score: float | None = None
    result: list[_Region] | None = None


class _Task(msgspec.Struct):
    data: dict[str, Any]
    id: int | str | None = None
    annotations: list[_Annotation] = []
    predictions: list[_Prediction | int] | None = None


def read(given: Input, notes: Notes) -> Iterator[Marked]:
    """The tasks of an export."""
    decoder = msgspec.json.Decoder(_Task)
    controls: Controls = {}
    for number, (source, raw) in enumerate(records(given.stream, given.name, "task"), given.first_number):
        task = decoded(decoder, raw, source, "a task of Label Studio")
        given.numbered |= task.id is None
        yield _document(task, number, _Regions(notes, source, controls), given.predictions)


def _document(task: _Task, number: int, regions: _Regions, predictions: bool) -> Marked:
    notes, source = regions.notes, regions.source
    annotations: dict[str, list[CharSpan]] = {}
    gold: list[CharSpan] | None = None
    for annotation in task.annotations:
        if annotation.was_cancelled:
            notes.count(_SKIPPED, 1)
            continue
        marks = regions.marks(annotation.result or ())
        if annotation.ground_truth:
            gold = marks
            continue
        name = _who(annotation.completed_by)
        notes.count(REPLACED, name in annotations)
        annotations[name] = marks
    models = set()
    for prediction in (task.predictions or ()) if predictions else ():
        if isinstance(prediction, int) or str(prediction.model_version or "").startswith(OWN_PREFIX):
            continue
        name = str(prediction.model_version or "model")
        models.add(name)
        annotations[name] = regions.marks(prediction.result or ())
    key = _text_key(task.data, regions.first, source)
    origin = {"tool": "label-studio", "data": task.data, "key": key, "controls": regions.controls, "id": task.id}
    return Marked(
        str(number if task.id is None else task.id),
        task.data[key],
        annotations,
        source,
        gold,
        origin=origin,
        models=frozenset(models),
    )


def _who(completed_by: int | str | Mapping[str, Any] | None) -> str:
    if isinstance(completed_by, Mapping):
        return str(completed_by.get("email") or completed_by.get("id") or "unknown")
    return "unknown" if completed_by is None else str(completed_by)


class _Regions:
    """Reads the regions of one task, and remembers by which controls of the labelling page they were made."""

    def __init__(self, notes: Notes, source: Source, controls: Controls) -> None:
        self.notes, self.source, self.controls = notes, source, controls
        self.first: CharSpan | None = None

    def marks(self, regions: Iterable[_Region]) -> list[CharSpan]:
        """The spans, those that relations join made one."""
        spans, relations = Joining(), []
        for region in regions:
            if region.continues():
                relations.append(region)
                continue
            labels: Any = region.value.get(region.type)
            start: Any = region.value.get("start")
            end: Any = region.value.get("end")
            if not isinstance(labels, list) or not _is_offset(start) or not _is_offset(end):
                self.notes.count(_OTHER_REGIONS, 1)
                continue
            text = region.value.get("text")
            for label in labels:
                if not isinstance(label, str):
                    raise InputError(f"label {label!r} is not a string", where=self.source.at())
                control = (region.from_name or "label", region.to_name or "text", region.type)
                self.controls.setdefault(label, control)
                mark = CharSpan(start, end, label, text if isinstance(text, str) else None, region.score, control[0])
                spans.add(region.id, mark)
                self.first = self.first or mark
        for relation in relations:
            self.notes.count(NOT_ALIKE, not spans.join(relation.from_id, relation.to_id))
        return spans.spans()


def _is_offset(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _text_key(data: Mapping[str, Any], mark: CharSpan | None, source: Source) -> str:
    """Which field of a task is its text: ``text``, the only string, or the one that holds the first region's words."""
    keys = [key for key, value in data.items() if isinstance(value, str)]
    if "text" in keys:
        return "text"
    if len(keys) > 1 and mark is not None and mark.text:
        keys = [key for key in keys if data[key][mark.start : mark.end] == mark.text] or keys
    if len(keys) != 1:
        raise InputError(
            f"no telling which field of 'data' is the text (fields: {', '.join(data) or 'none'}; name it 'text')",
            where=source.at(),
        )
    return keys[0]


def write(export: Export, path: str) -> None:
    """Tasks for Label Studio's import: the consensus as predictions, annotators as annotations."""
    encoder = msgspec.json.Encoder()
    with written_whole(path) as stream:
        stream.write(b"[")
        for number, exported in enumerate(export.documents()):
            stream.write((b",\n" if number else b"\n") + encoder.encode(_task(exported, export.model)))
        stream.write(b"\n]\n")


def _task(exported: ExportDocument, model: str) -> dict[str, Any]:
    origin = exported.document.origin or {}
    task: dict[str, Any] = {"id": origin.get("id") or exported.document.id}
    task["data"] = origin["data"] if "data" in origin else {"text": exported.text()}
    readings = [(reading, False) for reading in exported.annotators]
    if exported.gold is not None:
        readings.append((exported.gold, True))
    if readings:
        task["annotations"] = [
            {"completed_by": reading.name, "ground_truth": is_gold, "result": regions_of(exported, reading)}
            for reading, is_gold in readings
        ]
    if exported.consensus is not None:
        task["predictions"] = [prediction_of(exported, exported.consensus, model)]
    return task


def prediction_of(exported: ExportDocument, reading: ExportAnnotation, model: str) -> dict[str, Any]:
    """The consensus on a document as a prediction."""
    score = None if reading.confidence is None else round(reading.confidence, 6)
    return {"model_version": model, "score": score, "result": regions_of(exported, reading)}


def regions_of(exported: ExportDocument, reading: ExportAnnotation) -> list[dict[str, Any]]:
    """Spans as regions of the controls that made spans of this label, then the relations between pieces."""
    controls = (exported.document.origin or {}).get("controls", {})
    regions: list[dict[str, Any]] = []
    relations: list[dict[str, Any]] = []
    pieces = reading._replace(spans=[piece for span in reading.spans for piece in in_pieces([span])])
    for number, piece in enumerate(outward_spans(exported, pieces, unit_for(exported, "label-studio")), 1):
        label = whole_label(piece.label)
        from_name, to_name, kind = controls.get(label, ("label", "text", "labels"))
        value = {"start": piece.start, "end": piece.end, "text": piece.text, kind: [label]}
        region = {"id": f"q{number}", "from_name": from_name, "to_name": to_name, "type": kind, "value": value}
        regions.append(region if piece.confidence is None else {**region, "score": round(piece.confidence, 6)})
        if is_continued(piece.label):
            ids = {"from_id": f"q{number - 1}", "to_id": f"q{number}"}
            relations.append({"type": "relation", **ids, "direction": "right", "labels": [CONTINUES]})
    return regions + relations
