"""A consensus that was written as JSONL, as pages again: to be written in another format."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from quorate.corpus.offsets import Unit
from quorate.corpus.records import Document
from quorate.corpus.spans import Span
from quorate.corpus.tags import OUTSIDE, Scheme, TagSet, marks_span
from quorate.corpus.tokens import Places
from quorate.errors import InputError
from quorate.formats.exports import Export, ExportAnnotation, ExportDocument
from quorate.formats.json_records import first_keys
from quorate.formats.jsonl import ConsensusRecord
from quorate.formats.opened import opened

__all__ = ["consensus_export", "is_consensus"]


def is_consensus(path: str) -> bool:
    """Whether a file is a consensus, by its first line."""
    with opened(path) as (stream, _):
        head = stream.peek(1 << 16)[: 1 << 16]
    return head.lstrip().startswith(b"{") and {"tokens", "confidence", "token_confidence"} <= first_keys(head)


def consensus_export(records: Sequence[ConsensusRecord]) -> Export:
    """The pages of a consensus."""
    used = sorted({tag for record in records for tag in record.tags})
    labels = next((tuple(record.labels) for record in records if record.labels is not None), None)
    if labels is None:
        labels = TagSet.infer(used).labels if len(used) > 1 else tuple(dict.fromkeys((OUTSIDE, *used)))
    prefixed = any(map(marks_span, labels))
    scheme = TagSet.infer(labels).scheme if prefixed or len(labels) > 1 else Scheme.BIO
    return Export(lambda: map(_exported, records), labels, scheme)


def _exported(record: ConsensusRecord) -> ExportDocument:
    spans = record.token_spans()
    if len(record.tags) != len(record.tokens) or not all(_fits(s, len(record.tokens)) for s in spans):
        raise InputError("tags or spans that do not fit the tokens (write it again)", where=f"document {record.id!r}")
    document = Document(
        record.id,
        tuple(record.tokens),
        split=record.split,
        text=record.text,
        offsets=None if record.offsets is None else Places(record.offsets),
        unit=Unit(record.offset_unit or Unit.CODE_POINTS),
    )
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
    return ExportDocument(document, consensus=annotation)


def _fits(span: Span, length: int) -> bool:
    """Whether the pieces of a span are parts of so many tokens, one after the other, from its start to its end."""
    edges = [edge for part in span.parts for edge in part]
    in_order = all(edge < other for edge, other in pairwise(edges))
    return in_order and 0 <= span.start == edges[0] and edges[-1] == span.end <= length
