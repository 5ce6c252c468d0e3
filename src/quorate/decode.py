"""From posteriors to what people use: tags and spans with their confidence, document by document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus import Corpus, Document
from quorate.errors import SettingsError
from quorate.files import written_whole
from quorate.formats import jsonl
from quorate.infer.engine import Decoded
from quorate.infer.vb import Trace
from quorate.summaries import AnnotatorSummaries
from quorate.tags import TagSet

__all__ = ["Consensus", "ConsensusSpan", "Result"]

Floats = NDArray[np.float64]


class ConsensusSpan(NamedTuple):
    """Tokens ``start`` to ``end`` (excluded) are one span; ``confidence`` is the probability of exactly this span.

    >>> ConsensusSpan(0, 2, "PER", 0.97).label
    'PER'
    """

    start: int
    end: int
    label: str
    confidence: float


@dataclass(frozen=True)
class Consensus:
    """The consensus on one document.

    ``confidence`` is the probability of the whole sequence, ``token_confidence`` ``[L]`` that of each tag, and
    ``probabilities`` ``[L, J]`` those of all labels (``[0, J]`` where they were not kept).

    >>> import quorate
    >>> one = quorate.aggregate(quorate.sample(), method="mv")["s001"]
    >>> len(one.tags) == len(one.document.tokens) == len(one.token_confidence)
    True
    """

    document: Document = field(repr=False)
    tags: list[str]
    spans: list[ConsensusSpan]
    confidence: float
    token_confidence: Floats = field(repr=False)
    probabilities: Floats = field(repr=False)

    def text(self, span: ConsensusSpan) -> str:
        """The words of a span: from the document's text, or its tokens with blanks between."""
        document = self.document
        if document.text is None or document.offsets is None:
            return " ".join(document.tokens[span.start : span.end])
        return document.text[document.offsets[span.start][0] : document.offsets[span.end - 1][1]]


class Result:
    """The consensus on every document of a corpus, in its order, and how it came about.

    Iterate over it, or take a document by position or id, for :class:`Consensus` records; or take a column:
    ``tags``, ``spans``, ``confidence``, ``probabilities``. ``settings`` says what was used, ``repaired`` how many tags
    of the input were mended.

    >>> import quorate
    >>> result = quorate.aggregate(quorate.sample(), method="mv")
    >>> result[0].tags == result.tags[0]
    True
    """

    def __init__(
        self,
        corpus: Corpus,
        tagset: TagSet,
        doc_start: NDArray[np.int64],
        decoded: Decoded,
        annotators: AnnotatorSummaries,
        trace: Trace | None,
        settings: dict[str, Any],
        repaired: int,
    ) -> None:
        self.corpus, self.tagset = corpus, tagset
        self.annotators, self.trace, self.settings, self.repaired = annotators, trace, settings, repaired
        self._doc_start, self._decoded = doc_start, decoded

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of the columns of ``probabilities``."""
        return self.tagset.labels

    @property
    def tags(self) -> list[list[str]]:
        """For every document, a tag for every token."""
        return [self._tags(d) for d in range(len(self))]

    @property
    def spans(self) -> list[list[ConsensusSpan]]:
        """For every document, its spans."""
        return [self._spans(d) for d in range(len(self))]

    @property
    def confidence(self) -> Floats:
        """``[D]`` The probability of each document's whole sequence."""
        return np.exp(self._decoded.log_probability)

    @property
    def probabilities(self) -> list[Floats]:
        """For every document, ``[L, J]`` the probability of every label at every token."""
        return [self._posterior(d) for d in range(len(self))]

    def _posterior(self, d: int) -> Floats:
        if self._decoded.posterior is None:
            raise SettingsError(
                "the probabilities of all labels were not kept (fit an encoded corpus with probabilities=True)"
            )
        return self._decoded.posterior[self._tokens(d)]

    def _confidences(self, d: int) -> Floats:
        """``[L]`` The probability of every emitted tag."""
        tokens = self._tokens(d)
        if self._decoded.token_probability is not None:
            return self._decoded.token_probability[tokens]
        path = self._decoded.path[tokens]
        return self._posterior(d)[np.arange(len(path)), path]

    def write(self, path: str | Path, *, probabilities: bool = False) -> None:
        """Write the consensus as JSONL, whole or not at all; ``-`` is standard output.

        >>> import quorate, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     quorate.aggregate(quorate.sample(), "mv").write(f"{folder}/votes.jsonl")
        ...     len(Path(folder, "votes.jsonl").read_text().splitlines())
        320
        """
        if probabilities and len(self):
            self._posterior(0)  # says so now if they were not kept
        with written_whole(path) as stream:
            jsonl.write(self, stream, probabilities=probabilities)

    def __len__(self) -> int:
        return len(self.corpus)

    def __iter__(self) -> Iterator[Consensus]:
        return (self[d] for d in range(len(self)))

    def __getitem__(self, key: int | str) -> Consensus:
        """The consensus on a document, by its position or its id."""
        d = self.corpus.position(key) if isinstance(key, str) else range(len(self))[key]
        kept = self._decoded.posterior is not None
        return Consensus(
            self.corpus[d],
            self._tags(d),
            self._spans(d),
            float(np.exp(self._decoded.log_probability[d])),
            self._confidences(d),
            self._posterior(d) if kept else np.zeros((0, len(self.labels))),
        )

    def __repr__(self) -> str:
        return f"<Result: {len(self)} documents, {len(self.annotators)} annotators, {self.settings.get('method')}>"

    def _tokens(self, d: int) -> slice:
        return slice(self._doc_start[d], self._doc_start[d + 1])

    def _tags(self, d: int) -> list[str]:
        labels = self.labels
        return [labels[label] for label in self._decoded.path[self._tokens(d)].tolist()]

    def _spans(self, d: int) -> list[ConsensusSpan]:
        first = int(self._doc_start[d])
        ends = self._decoded.span_end[self._tokens(d)]
        spans = []
        for start in np.flatnonzero(ends).tolist():
            label = self.tagset.parts[self._decoded.path[first + start]][1]
            confidence = float(self._decoded.span_probability[first + start])
            spans.append(ConsensusSpan(start, int(ends[start]) - first, label, confidence))
        return spans
