"""A consensus, or a corpus, as lines of JSON: what the project's own JSONL writes. ``docs/formats.md`` describes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from quorate.corpus.offsets import Unit
from quorate.corpus.profiles import Profile
from quorate.corpus.records import Corpus, Document
from quorate.corpus.spans import CharSpan, Span
from quorate.corpus.tags import OUTSIDE, split_tag
from quorate.formats.exports import Export, ExportAnnotation, ExportDocument, outward_spans
from quorate.storage.files.atomic import written_whole

DIGITS = 6
"""Decimals of the confidence of tokens."""


def write(export: Export, path: str) -> None:
    """The consensus, a line a document, in the order of the input; or, of a corpus, what everybody said."""
    if export.lines is None:
        _write(encoded_lines(consensus_lines(export)), path)
    else:
        _write((piece for _, piece in export.lines()), path)


def write_lines(lines: Iterable[dict[str, Any]], path: str | Path) -> None:
    """Values, a line each, whole or not at all; ``-`` is standard output."""
    _write(encoded_lines(lines), path)


def _write(pieces: Iterable[bytes | memoryview], path: str | Path) -> None:
    with written_whole(path) as stream:
        for piece in pieces:
            stream.write(piece)


def encoded_lines(lines: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Values as lines of JSON.

    >>> list(encoded_lines([{"id": "1"}]))
    [b'{"id":"1"}\\n']
    """
    encoder = msgspec.json.Encoder()
    return (encoder.encode(line) + b"\n" for line in lines)


def consensus_lines(export: Export) -> Iterator[dict[str, Any]]:
    """The lines that :func:`write` writes, as values."""
    untold = dict(export.profiles)
    for exported in export.documents():
        annotations = [*exported.annotators, *([] if exported.gold is None else [exported.gold])]
        if exported.consensus is None and any(one.tags is None for one in annotations):
            yield _introduced(_spans_line(exported), untold)
        elif exported.consensus is None:
            yield _introduced(corpus_line(exported.document), untold)
        else:
            yield _consensus_line(exported, exported.consensus, export)


def corpus_lines(corpus: Corpus) -> Iterator[dict[str, Any]]:
    """The same of a corpus."""
    untold = dict(corpus.profiles)
    return (_introduced(corpus_line(document), untold) for document in corpus)


def _introduced(line: dict[str, Any], untold: dict[str, Profile]) -> dict[str, Any]:
    """With the profiles of annotators who said nothing of the documents before, which are ``untold`` no longer."""
    first = {name: untold.pop(name).plain() for name in line["annotations"] if name in untold}
    return line | {"profiles": first} if first else line


def _consensus_line(exported: ExportDocument, annotation: ExportAnnotation, export: Export) -> dict[str, Any]:
    document = exported.document
    line: dict[str, Any] = {"id": document.id, "tokens": document.tokens}
    if annotation.tags is not None:
        line["tags"] = annotation.tags
    line["confidence"] = annotation.confidence
    if annotation.token_confidence is not None:
        line["token_confidence"] = _rounded(annotation.token_confidence)
    if annotation.layers:
        line["layers"] = {name: _layer_record(layer, export, name) for name, layer in annotation.layers.items()}
    line["spans"] = _span_records(exported, annotation)
    if annotation.is_known:
        line["known"] = True
    line |= place_fields(document)
    if export.probabilities and annotation.probabilities is not None:
        line["labels"] = export.labels
        line["probabilities"] = annotation.probabilities.tolist()
    return line | _share_fields(annotation, export.labels)


def _share_fields(annotation: ExportAnnotation, labels: Sequence[str]) -> dict[str, Any]:
    """What annotators would say, if asked for."""
    if annotation.shares is None or annotation.ambiguity is None:
        return {}
    shares = [_rounded(row) for row in annotation.shares]
    return {"labels": labels, "shares": shares, "ambiguity": round(annotation.ambiguity, 6)}


def _layer_record(layer: ExportAnnotation, export: Export, name: str) -> dict[str, Any]:
    types = sorted({split_tag(label)[1] for label in export.layers[name] if label != OUTSIDE})
    record: dict[str, Any] = {"types": types, "tags": layer.tags, "confidence": layer.confidence}
    record["token_confidence"] = _rounded(() if layer.token_confidence is None else layer.token_confidence)
    if export.probabilities and layer.probabilities is not None:
        record |= {"labels": export.layers[name], "probabilities": layer.probabilities.tolist()}
    return record | _share_fields(layer, export.layers[name])


def _rounded(values: Sequence[float] | NDArray[np.float64]) -> list[float]:
    rounded: list[float] = np.round(values, DIGITS).tolist()
    return rounded


def _span_records(exported: ExportDocument, annotation: ExportAnnotation) -> list[dict[str, Any]]:
    """Offsets are characters where there is text, and tokens elsewhere."""
    document = exported.document
    if document.text is None:
        words = [" ".join(document.tokens[position] for position in span.tokens) for span in annotation.spans]
        found = [_span_record(span, held, None) for span, held in zip(annotation.spans, words, strict=True)]
    else:
        pairs = zip(outward_spans(exported, annotation), annotation.spans, strict=True)
        found = [_span_record(span, span.text, in_tokens) for span, in_tokens in pairs]
    if not annotation.is_known:  # where all is known, the document says so
        for record, span in zip(found, annotation.spans, strict=True):
            record |= {"known": True} if annotation.knows(span) else {}
    return found


def _span_record(span: Span | CharSpan, words: str | None, in_tokens: Span | None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "start": span.start,
        "end": span.end,
        "label": span.label,
        "confidence": span.confidence,
        "text": words,
    }
    if span.pieces:
        record["pieces"] = span.pieces
    if in_tokens is not None:
        record |= {"token_start": in_tokens.start, "token_end": in_tokens.end}
        if in_tokens.pieces:
            record["token_pieces"] = in_tokens.pieces
    return {**record, "layer": span.layer} if span.layer else record


def place_fields(document: Document) -> dict[str, Any]:
    """Where the document's tokens stand: offsets of tokens are code points, those of spans in the document's unit."""
    fields: dict[str, Any] = {}
    if document.text is not None:
        fields["text"] = document.text
        if document.offsets is not None:
            fields["offsets"] = list(document.offsets)
    if document.unit is not Unit.CODE_POINTS:
        fields["offset_unit"] = document.unit.value
    if document.split is not None:
        fields["split"] = document.split
    return fields


def corpus_line(document: Document) -> dict[str, Any]:
    """What everybody said of a document."""
    line: dict[str, Any] = {"id": document.id, "tokens": document.tokens, "annotations": document.annotations}
    if document.gold is not None:
        line["gold"] = document.gold
    return line | place_fields(document)


def _spans_line(exported: ExportDocument) -> dict[str, Any]:
    """A document whose spans overlap, so that no tags can hold them."""
    document = exported.document

    def spans(annotation: ExportAnnotation) -> list[dict[str, Any]]:
        records = _span_records(exported, annotation)
        return [
            {key: record[key] for key in ("start", "end", "label", "text", "pieces") if key in record}
            | ({} if record["confidence"] is None else {"score": record["confidence"]})
            for record in records
        ]

    line: dict[str, Any] = {"id": document.id, "tokens": document.tokens}
    line["annotations"] = {annotation.name: spans(annotation) for annotation in exported.annotators}
    if exported.gold is not None:
        line["gold"] = spans(exported.gold)
    return line | place_fields(document)
