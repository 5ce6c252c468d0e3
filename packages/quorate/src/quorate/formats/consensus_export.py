"""A consensus that was written as JSONL, as pages again: to be written in another format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from quorate.corpus.offsets import Unit
from quorate.corpus.records import Document
from quorate.corpus.spans import Span
from quorate.corpus.tags import OUTSIDE, Scheme, TagSet, marks_span, split_tag
from quorate.corpus.tokens import Places
from quorate.errors import InputError
from quorate.formats.consensus_records import ConsensusRecord, LayeredRecord, by_layer
from quorate.formats.exports import Export, ExportAnnotation, ExportDocument
from quorate.formats.json_records import first_keys
from quorate.formats.opened import files_of, opened


def is_consensus(path: str) -> bool:
    """Whether a file is a consensus, in layers or not, by its first line."""
    keys = keys_of(path)
    return {"tokens", "confidence"} <= keys and ("token_confidence" in keys or _has_layers(keys))


def is_layered(path: str) -> bool:
    """Whether a file, or the first of a folder, is a consensus in layers; of a pipe that cannot be seen."""
    place = Path(path)
    return (place.is_file() or place.is_dir()) and _has_layers(keys_of(files_of(path)[0]))


def _has_layers(keys: set[str]) -> bool:
    return "layers" in keys and not {"tags", "annotations"} & keys


def keys_of(path: str) -> set[str]:
    """Those of the first line, if it is an object."""
    with opened(path) as (stream, _):
        head = stream.peek(1 << 16)[: 1 << 16]
    return first_keys(head) if head.lstrip().startswith(b"{") else set()


def consensus_export(records: Sequence[ConsensusRecord], where: str = "") -> Export:
    """The pages of a consensus."""
    layers = by_layer(records, where)
    if layers is not None:
        return _layered_export(records, layers)
    used = sorted({tag for record in records for tag in record.tags})
    labels = next((tuple(record.labels) for record in records if record.labels is not None), None)
    if labels is None:
        labels = TagSet.infer(used).labels if len(used) > 1 else tuple(dict.fromkeys((OUTSIDE, *used)))
    prefixed = any(map(marks_span, labels))
    scheme = TagSet.infer(labels).scheme if prefixed or len(labels) > 1 else Scheme.BIO
    return Export(lambda: map(_exported, records), labels, scheme)


def _layered_export(records: Sequence[ConsensusRecord], layers: Mapping[str, Sequence[ConsensusRecord]]) -> Export:
    pages = {name: consensus_export(own) for name, own in layers.items()}

    def exported(number: int, record: ConsensusRecord) -> ExportDocument:
        own = {name: _exported(layers[name][number]).consensus for name in layers}
        made = {name: annotation for name, annotation in own.items() if annotation is not None}
        annotation = ExportAnnotation("quorate", record.token_spans(), None, record.confidence, layers=made)
        return ExportDocument(_document(record), consensus=annotation)

    labels = {name: page.labels for name, page in pages.items()}
    first = records[0]
    if isinstance(first, LayeredRecord):  # a layer may take more than is found in it
        types = {name: one.types for name, one in first.layers.items() if one.labels is None}
        used = {name: [split_tag(label)[1] for label in labels[name] if label != OUTSIDE] for name in types}
        labels |= {name: TagSet.of_types(pages[name].scheme, [*of, *used[name]]).labels for name, of in types.items()}
    return Export(lambda: (exported(*pair) for pair in enumerate(records)), (), Scheme.BIO, layers=labels)


def _exported(record: ConsensusRecord) -> ExportDocument:
    spans = record.token_spans()
    if len(record.tags) != len(record.tokens) or not all(_fits(s, len(record.tokens)) for s in spans):
        raise InputError("tags or spans that do not fit the tokens (write it again)", where=f"document {record.id!r}")
    probabilities = None if record.probabilities is None else np.array(record.probabilities)
    annotation = ExportAnnotation(
        "quorate",
        spans,
        record.tags,
        record.confidence,
        record.token_confidence,
        probabilities,
        known=record.known_tokens(),
    )
    return ExportDocument(_document(record), consensus=annotation)


def _document(record: ConsensusRecord) -> Document:
    return Document(
        record.id,
        tuple(record.tokens),
        split=record.split,
        text=record.text,
        offsets=None if record.offsets is None else Places(record.offsets),
        unit=Unit(record.offset_unit or Unit.CODE_POINTS),
    )


def _fits(span: Span, length: int) -> bool:
    """Whether the pieces of a span are parts of so many tokens, one after the other, from its start to its end."""
    edges = [edge for part in span.parts for edge in part]
    in_order = all(edge < other for edge, other in pairwise(edges))
    return in_order and 0 <= span.start == edges[0] and edges[-1] == span.end <= length
