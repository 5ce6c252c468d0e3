"""The consensus on one document: tags and spans with their confidence."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Document
from quorate.corpus.spans import Span
from quorate.formats.exports import ExportAnnotation

__all__ = ["Consensus"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Consensus:
    """The consensus on one document.

    ``confidence`` is the probability of the whole sequence, ``token_confidence`` ``[L]`` that of each tag, and
    ``probabilities`` ``[L, J]`` those of all labels (``[0, J]`` where they were not kept). ``known`` ``[L]`` says which
    tags were given as known labels.

    >>> import quorate
    >>> one = quorate.aggregate(quorate.sample(), method="mv")["s001"]
    >>> len(one.tags) == len(one.document.tokens) == len(one.token_confidence)
    True
    """

    document: Document = field(repr=False)
    tags: list[str]
    spans: list[Span]
    confidence: float
    token_confidence: Floats = field(repr=False)
    probabilities: Floats = field(repr=False)
    known: NDArray[np.bool_] = field(repr=False)

    def text(self, span: Span) -> str:
        """The words of a span: from the document's text, or its tokens with blanks between; so are its pieces."""
        document = self.document
        if document.text is None or document.offsets is None:
            return " ".join(document.tokens[position] for position in span.tokens)
        return " ".join(
            document.text[document.offsets[start][0] : document.offsets[end - 1][1]] for start, end in span.parts
        )

    def annotation(self) -> ExportAnnotation:
        """The consensus as writers take it."""
        return ExportAnnotation(
            "quorate",
            self.spans,
            self.tags,
            self.confidence,
            self.token_confidence,
            self.probabilities,
            known=self.known,
        )

    def _repr_html_(self) -> str:
        from quorate.result import notebook

        return notebook.consensus_html(self)
