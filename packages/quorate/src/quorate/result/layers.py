"""Layers of spans that overlap: the results of all, put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quorate import formats
from quorate.corpus.records import Corpus, Document
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme
from quorate.errors import knows_its_options
from quorate.formats.exports import Export, ExportAnnotation, ExportDocument
from quorate.formats.frames import arrow_table, pandas_frame
from quorate.result.acceptance import Accepted, accepted
from quorate.result.annotators import AnnotatorSummaries
from quorate.result.consensus import Consensus
from quorate.result.result import Result
from quorate.result.tables import ResultTable, layered_columns
from quorate.result.tallies import Expected, SpanTallies, expected_scores
from quorate.wording import counted

if TYPE_CHECKING:
    import pandas
    import pyarrow


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

    def text(self, span: Span) -> str:
        """The words of a span: from the document's text, or its tokens with blanks between."""
        return next(iter(self.layers.values())).text(span)

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
    <LayeredResult: 1 document, 2 spans, 1 annotator, auto, layers LOC, ORG>
    """

    def __init__(self, layers: Mapping[str, Result]) -> None:
        self.layers = dict(layers)

    @property
    def _first(self) -> Result:
        return next(iter(self.layers.values()))

    @property
    def single(self) -> Result | None:
        """The result, where there is a single layer; ``None`` where there are several."""
        return self._first if len(self.layers) == 1 else None

    @property
    def corpus(self) -> Corpus:
        """The documents, with what annotators say in the first layer."""
        return self._first.corpus

    @property
    def settings_(self) -> dict[str, Any]:
        """The method, and for every layer its settings as plain values and, where they were chosen, ``why``."""
        return {
            "method": self._first.settings_.get("method"),
            "layers": {name: result.settings_ for name, result in self.layers.items()},
        }

    @property
    def annotators(self) -> dict[str, AnnotatorSummaries]:
        """What is known about each annotator, by layer: who is good at one may be bad at another."""
        return {name: result.annotators for name, result in self.layers.items()}

    @property
    def spans(self) -> list[list[Span]]:
        """For every document the spans of all layers, by their place; each knows its layer."""
        return [one.spans for one in self]

    @property
    def confidence(self) -> NDArray[np.float64]:
        """``[D]`` The probability that every layer of a document is right."""
        return np.asarray(np.prod([result.confidence for result in self.layers.values()], axis=0))

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """The labels of each layer."""
        return {name: result.labels for name, result in self.layers.items()}

    def span_tallies(self) -> SpanTallies:
        """Of every document, over the spans of all layers: those given, expected to be right, and true."""
        columns = zip(*(result.span_tallies() for result in self.layers.values()), strict=True)
        return SpanTallies(*(np.sum(column, axis=0) for column in columns))

    @cached_property
    def expected(self) -> Expected:
        """The precision, recall and F1 that this consensus expects of itself, over the spans of all layers."""
        return expected_scores(self.span_tallies())

    def accept(self, precision: float) -> Accepted:
        """Part the documents as :meth:`quorate.Result.accept` does, by the spans of all layers together.

        >>> from quorate import Corpus, Document, aggregate_layers
        >>> inner = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-LOC", "O")})])
        >>> outer = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-ORG", "I-ORG")})])
        >>> aggregate_layers({"LOC": inner, "ORG": outer}, "mv").accept(0.9).documents
        [0]
        """
        return accepted(self.spans, self.confidence, precision, np.diff(self._first._doc_start))

    def only(self, documents: Sequence[int]) -> LayeredResult:
        """The same for some of the documents, by their positions."""
        return LayeredResult({name: result.only(documents) for name, result in self.layers.items()})

    def surest(self, least: float) -> LayeredResult:
        """The same without the spans of any layer that are less sure than that."""
        return LayeredResult({name: result.surest(least) for name, result in self.layers.items()})

    def __len__(self) -> int:
        return len(self.corpus)

    def __iter__(self) -> Iterator[LayeredConsensus]:
        return (self[d] for d in range(len(self)))

    def __getitem__(self, key: int | str) -> LayeredConsensus:
        """The consensus on a document, by its position or its id."""
        return LayeredConsensus(self.corpus[key], {name: result[key] for name, result in self.layers.items()})

    def __repr__(self) -> str:
        names = {name for annotators in self.annotators.values() for name in annotators.names}
        n_spans = sum(result.n_spans for result in self.layers.values())
        counts = (len(self), "document"), (n_spans, "span"), (len(names), "annotator")
        about = f"{', '.join(counted(*each) for each in counts)}, {self.settings_['method']}"
        return f"<LayeredResult: {about}, layers {', '.join(self.layers)}>"

    @knows_its_options
    def write(
        self,
        path: str | Path,
        format: str | None = None,
        *,
        probabilities: bool = False,
        shares: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[str]:
        """Write the consensus, whole or not at all, as :meth:`quorate.Result.write` does."""
        if probabilities and len(self):
            for result in self.layers.values():
                _ = result.probabilities  # says so now if they were not kept
        export = self.export(probabilities=probabilities, shares=shares)
        if progress is not None:
            export = export.watched(lambda done: progress(done, len(self)))
        return formats.write(export, path, format)

    def to_pandas(self, kind: ResultTable = "spans") -> pandas.DataFrame:
        """The consensus in all layers as a table, as :meth:`quorate.Result.to_pandas` gives it, with a ``layer``."""
        return pandas_frame(layered_columns(self, kind))

    def to_arrow(self, kind: ResultTable = "spans") -> pyarrow.Table:
        """The same table of Arrow."""
        return arrow_table(layered_columns(self, kind))

    def export(self, *, probabilities: bool = False, shares: bool = False) -> Export:
        """The consensus as writers take it."""
        return Export(
            lambda: self._exported(shares=shares),
            (),
            Scheme.BIO,
            self._first.export().model,
            probabilities,
            self.labels,
        )

    def _exported(self, *, shares: bool) -> Iterator[ExportDocument]:
        columns = zip(*(result.annotations(shares=shares) for result in self.layers.values()), strict=True)
        for one, own in zip(self, columns, strict=True):
            annotation = one.annotation(dict(zip(self.layers, own, strict=True)))
            yield ExportDocument(one.document, consensus=annotation)
