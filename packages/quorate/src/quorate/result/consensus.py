"""The consensus on one document: tags and spans with their confidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Document
from quorate.corpus.spans import Span
from quorate.formats.exports import ExportAnnotation
from quorate.formats.notes import some
from quorate.wording import counted

Floats = NDArray[np.float64]

_SPANS_SHOWN = 5


@dataclass(frozen=True, repr=False)
class Consensus:
    """The consensus on one document.

    ``confidence`` is the probability of the whole sequence, ``token_confidence`` ``[L]`` that of each tag, and
    ``probabilities`` ``[L, J]`` those of all labels (``[0, J]`` where they were not kept). ``known`` ``[L]`` says which
    tags were given as known labels.

    >>> import quorate
    >>> one = quorate.aggregate(quorate.sample(), method="mv")["s001"]
    >>> len(one.tags) == len(one.document.tokens) == len(one.token_confidence)
    True
    >>> one
    <Consensus on 's001': LOC 'Ellery' 0.40, LOC 'Bergen' 0.60; all tags right 0.04>
    """

    document: Document
    tags: list[str]
    spans: list[Span]
    confidence: float
    token_confidence: Floats
    probabilities: Floats
    known: NDArray[np.bool_]

    def __repr__(self) -> str:
        shown = [f"{span.label} {self.text(span)!r} {span.sure:.2f}" for span in self.spans]
        found = some(shown, _SPANS_SHOWN) or f"{counted(len(self.tags), 'token')}, no span"
        return f"<Consensus on {self.document.id!r}: {found}; all tags right {self.confidence:.2f}>"

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
