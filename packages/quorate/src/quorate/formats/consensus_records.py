"""A consensus that was written as JSONL, read back line by line: with one tag a token, or in layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

import msgspec

from quorate.corpus.spans import Span
from quorate.errors import InputError
from quorate.formats.json_records import decoded, lines
from quorate.formats.jsonl import ConsensusSpan, in_layers


class ConsensusRecord(msgspec.Struct, omit_defaults=True):
    """A line of a consensus, as it stands."""

    id: str
    tags: list[str]
    spans: list[ConsensusSpan] = []
    tokens: list[str] = []
    text: str | None = None
    offsets: list[tuple[int, int]] | None = None
    offset_unit: str | None = None
    split: str | None = None
    confidence: float | None = None
    token_confidence: list[float] | None = None
    labels: list[str] | None = None
    probabilities: list[list[float]] | None = None
    shares: list[list[float]] | None = None
    ambiguity: float | None = None
    known: bool = False

    def token_spans(self) -> list[Span]:
        """Its spans, in tokens."""
        return [span.in_tokens() for span in self.spans]

    def known_tokens(self) -> list[bool]:
        """Of every token, whether its tag is written to be a known label: all of them are, or those of known spans."""
        if self.known:
            return [True] * len(self.tags)
        known = {position for span in self.spans if span.known for position in span.in_tokens().tokens}
        return [position in known for position in range(len(self.tags))]


class LayerRecord(msgspec.Struct, omit_defaults=True):
    """What a line says of one layer; ``types`` are those of the spans that the layer takes."""

    tags: list[str]
    types: list[str] = []
    confidence: float | None = None
    token_confidence: list[float] | None = None
    labels: list[str] | None = None
    probabilities: list[list[float]] | None = None
    shares: list[list[float]] | None = None
    ambiguity: float | None = None


class LayeredRecord(ConsensusRecord, omit_defaults=True, kw_only=True):
    """A line of a consensus in layers, as it stands: tags are in its ``layers``, and its spans know theirs."""

    tags: list[str] = msgspec.field(default_factory=list)
    layers: dict[str, LayerRecord]

    def is_whole(self) -> bool:
        """Whether every span is of one of the layers."""
        return bool(self.layers) and {span.layer for span in self.spans} <= set(self.layers)

    def token_spans(self) -> list[Span]:
        """The spans of all layers, in tokens."""
        return [span._replace(layer=own.layer) for span, own in zip(super().token_spans(), self.spans, strict=True)]

    def of_layer(self, name: str) -> ConsensusRecord:
        """One layer of it, as a consensus without layers has it."""
        own = {key: getattr(self.layers[name], key) for key in LayerRecord.__struct_fields__ if key != "types"}
        place = {key: getattr(self, key) for key in ("id", "tokens", "text", "offsets", "offset_unit", "split")}
        return ConsensusRecord(
            spans=[span for span in self.spans if span.layer == name], known=self.known, **place, **own
        )


def read_consensus(stream: IO[bytes], name: str) -> Iterator[ConsensusRecord]:
    """The lines of a file that ``aggregate`` wrote; those of a consensus in layers are :class:`LayeredRecord`."""
    plain, layered = msgspec.json.Decoder(ConsensusRecord), msgspec.json.Decoder(LayeredRecord)
    what = "a line of a consensus, which 'quorate aggregate' writes"
    for source, line in lines(stream, name):
        record = decoded(layered if in_layers(line, source) else plain, line, source, what)
        if isinstance(record, LayeredRecord) and not record.is_whole():
            raise InputError("spans of layers that it does not have (write it again)", where=source.at())
        yield record


def by_layer(records: Sequence[ConsensusRecord], where: str) -> dict[str, list[ConsensusRecord]] | None:
    """The records of each layer; ``None`` for a consensus without layers.

    >>> by_layer([ConsensusRecord("1", ["O"])], "consensus.jsonl") is None
    True
    """
    layered = [record for record in records if isinstance(record, LayeredRecord)]
    if not layered:
        return None
    names = list(layered[0].layers)
    strange = next((one for one in records if not isinstance(one, LayeredRecord) or [*one.layers] != names), None)
    if strange is not None:
        raise InputError(f"document {strange.id!r} has other layers than the first (write it again)", where=where)
    return {name: [record.of_layer(name) for record in layered] for name in names}
