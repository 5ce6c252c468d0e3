"""Layers of spans that overlap: the results of all, put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quorate import formats
from quorate.corpus.records import Corpus, Document
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme
from quorate.formats.exports import Export, ExportAnnotation, ExportDocument
from quorate.formats.frames import arrow_table, pandas_frame
from quorate.result.consensus import Consensus
from quorate.result.result import Result
from quorate.result.tables import ResultTable, layered_columns

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["LayeredConsensus", "LayeredResult"]


@dataclass(frozen=True, repr=False)
class LayeredConsensus:
    """The consensus on one document, by layer. ``confidence`` is the probability that every layer is right.

    >>> from quorate import Corpus, Document, aggregate_layers
    >>> inner = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-LOC", "O")})])
    >>> outer = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-ORG", "I-ORG")})])
    >>> one = aggregate_layers({"LOC": inner, "ORG": outer})["1"]
    >>> [(span.start, span.end, span.label, span.layer) for span in one.spans]
    [(0, 1, 'LOC', 'LOC'), (0, 2, 'ORG', 'ORG')]
    """

    document: Document
    layers: Mapping[str, Consensus]

    def __repr__(self) -> str:
        found = ", ".join(f"{name} {len(one.spans)}" for name, one in self.layers.items())
        return f"<LayeredConsensus on {self.document.id!r}: spans {found}; all right {self.confidence:.2f}>"

    @property
    def confidence(self) -> float:
        """Layers are independent, so that the probabilities multiply."""
        return float(np.prod([one.confidence for one in self.layers.values()]))

    @property
    def spans(self) -> list[Span]:
        """The spans of all layers, by their place; each knows its layer."""
        found = [span._replace(layer=layer) for layer, one in self.layers.items() for span in one.spans]
        return sorted(found, key=lambda span: (span.start, span.end, span.label))

    def annotation(self, layers: Mapping[str, ExportAnnotation] | None = None) -> ExportAnnotation:
        """The consensus as writers take it; ``layers`` are those of it, if they are known already."""
        layers = layers or {name: one.annotation() for name, one in self.layers.items()}
        return ExportAnnotation("quorate", self.spans, None, self.confidence, layers=layers)


class LayeredResult:
    """The consensus on every document in every layer; ``layers`` are the results by layer.

    >>> from quorate import Corpus, Document, aggregate_layers
    >>> inner = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-LOC", "O")})])
    >>> outer = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-ORG", "I-ORG")})])
    >>> aggregate_layers({"LOC": inner, "ORG": outer})
    <LayeredResult: 1 documents, 2 spans, layers LOC, ORG>
    """

    def __init__(self, layers: Mapping[str, Result]) -> None:
        self.layers = dict(layers)
        self.corpus: Corpus = next(iter(self.layers.values())).corpus

    def __len__(self) -> int:
        return len(self.corpus)

    def __iter__(self) -> Iterator[LayeredConsensus]:
        return (self[d] for d in range(len(self)))

    def __getitem__(self, key: int | str) -> LayeredConsensus:
        """The consensus on a document, by its position or its id."""
        return LayeredConsensus(self.corpus[key], {name: result[key] for name, result in self.layers.items()})

    def __repr__(self) -> str:
        n_spans = sum(result.n_spans for result in self.layers.values())
        return f"<LayeredResult: {len(self)} documents, {n_spans} spans, layers {', '.join(self.layers)}>"

    def write(
        self, path: str | Path, format: str | None = None, *, probabilities: bool = False, shares: bool = False
    ) -> None:
        """Write the consensus, whole or not at all, as :meth:`quorate.Result.write` does."""
        formats.write(self.export(probabilities=probabilities, shares=shares), path, format)

    def to_pandas(self, kind: ResultTable = "spans") -> pandas.DataFrame:
        """The consensus in all layers as a table, as :meth:`quorate.Result.to_pandas` gives it, with a ``layer``."""
        return pandas_frame(layered_columns(self, kind))

    def to_arrow(self, kind: ResultTable = "spans") -> pyarrow.Table:
        """The same table of Arrow."""
        return arrow_table(layered_columns(self, kind))

    def export(self, *, probabilities: bool = False, shares: bool = False) -> Export:
        """The consensus as writers take it."""
        first = next(iter(self.layers.values()))
        return Export(
            lambda: self._exported(shares=shares),
            (),
            Scheme.BIO,
            first.export().model,
            probabilities,
            {name: result.labels for name, result in self.layers.items()},
        )

    def _exported(self, *, shares: bool) -> Iterator[ExportDocument]:
        columns = zip(*(result.annotations(shares=shares) for result in self.layers.values()), strict=True)
        for one, own in zip(self, columns, strict=True):
            annotation = one.annotation(dict(zip(self.layers, own, strict=True)))
            yield ExportDocument(one.document, consensus=annotation)
