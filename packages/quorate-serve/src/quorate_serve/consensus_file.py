"""The consensus as it stands, as the records of a file that ``quorate aggregate`` writes."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Connection, func, select

from quorate.corpus.records import Document
from quorate.corpus.tokens import Places
from quorate.formats.consensus_export import consensus_export
from quorate.formats.consensus_records import ConsensusRecord, LayeredRecord
from quorate.formats.exports import Export
from quorate.formats.json_lines import place_fields
from quorate_serve.database import tables
from quorate_serve.problems import BusyError, NotFoundError


def consensus_version(connection: Connection) -> int:
    """The version of the consensus that stands; 0 before the first."""
    return int(connection.execute(select(func.max(tables.consensus.c.version))).scalar() or 0)


def consensus_records(connection: Connection) -> list[ConsensusRecord]:
    """The consensus on every document that has one, in the order of their numbers.

    A confidence has as many digits as those of tokens in a file, and is as it was when it last changed to be seen.
    """
    newest = int(connection.execute(select(func.max(tables.snapshots.c.version))).scalar() or 0)
    if consensus_version(connection) > newest:  # the worker is half way through giving out a fit
        raise BusyError("the consensus is just being given out (try again in a moment)")
    held, placed = tables.consensus.c, tables.documents.c
    query = (
        select(
            placed.id, placed.text, placed.tokens, placed.split, held.spans, held.confidence, held.known, held.layers
        )
        .join(tables.documents, placed.number == held.document)
        .order_by(held.document)
    )
    return [_record(row) for row in connection.execute(query)]


def consensus_of(connection: Connection) -> Export:
    """The consensus as writers take it; :class:`NotFoundError` while there is none."""
    records = consensus_records(connection)
    if not records:
        raise NotFoundError("there is no consensus yet (it comes with the first labels)")
    return consensus_export(records, "the service")


def _record(row: Any) -> ConsensusRecord:
    offsets = Places((start, end) for start, end in row.tokens)
    document = Document(
        row.id, tuple(row.text[start:end] for start, end in offsets), split=row.split, text=row.text, offsets=offsets
    )
    starts = {start: position for position, (start, _) in enumerate(offsets)}
    ends = {end: position for position, (_, end) in enumerate(offsets, 1)}
    line: dict[str, Any] = {"id": row.id, "tokens": document.tokens, "confidence": row.confidence}
    line["spans"] = [
        {
            **span,
            "text": row.text[span["start"] : span["end"]],
            "token_start": starts[span["start"]],
            "token_end": ends[span["end"]],
        }
        for span in row.spans
    ]
    if row.known:
        line["known"] = True
    line |= place_fields(document)
    if "" in row.layers:
        own = row.layers[""]
        return msgspec.convert(
            line | {name: own[name] for name in ("tags", "token_confidence")}, ConsensusRecord, strict=False
        )
    return msgspec.convert(line | {"layers": row.layers}, LayeredRecord, strict=False)
