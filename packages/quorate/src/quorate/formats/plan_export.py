"""The plan of an audit as pages for a tool: its documents, with the consensus as what a person corrects there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from quorate.formats import jsonl
from quorate.formats.assemble import Assembly, Options
from quorate.formats.consensus_export import keys_of
from quorate.formats.exports import Export, ExportDocument, export_of, export_of_layers
from quorate.formats.opened import Input, opened
from quorate.limits import size_named

PROPOSER = "quorate"
"""Who proposes what a person corrects: no annotator."""


def is_plan(path: str) -> bool:
    """Whether a file is the plan of an audit, by its first line."""
    return {"audit", "gold"} <= keys_of(path)


def plan_export(path: str, *, max_size: int | str | None = None) -> Export:
    """The pages of a plan; what is in ``"gold"``, corrected or not, is proposed as the consensus."""
    assembly = Assembly(Options(layers=True))
    with opened(path, size_named(max_size)) as (stream, _):
        assembly.add(jsonl.read(Input(stream, path), assembly.notes, proposed=True), path, merge=False)
    layers = assembly.layers(None)
    export = export_of_layers(layers) if layers.single is None else export_of(layers.single)

    def pages() -> Iterator[ExportDocument]:
        for page in export.documents():
            proposed = None if page.gold is None else page.gold._replace(name=PROPOSER)
            yield ExportDocument(replace(page.document, gold=None), consensus=proposed)

    return replace(export, documents=pages)
