"""Why a span is (not) in the consensus: its probability with everybody, and without each annotator in turn.

Nothing is fitted again: what was learned about annotators, words and transitions stays, and only the labels of one
annotator in this document are taken away. Of merged duplicates, the others are still one annotator together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Corpus, Document
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme
from quorate.crowd.algebra import labels_of_spans
from quorate.crowd.crowd import Crowd
from quorate.estimators.capabilities import Explains
from quorate.model.consensus_spans import consensus_spans
from quorate.model.engines.factory import Engines
from quorate.model.engines.protocol import Decoded, Engine
from quorate.model.settings import Decode, Settings
from quorate.model.spans import SpanEvidence, given_spans, needs_spans
from quorate.result.result import Result

Floats = NDArray[np.float64]
_LEAST = 1e-6  # a span that the token model finds less probable has probability 0
_ROUNDING = 1e-9
_AT_ONCE = 2_000  # versions of documents that are combined together


class Influence(NamedTuple):
    """What each annotator does to a document.

    ``with_all [S]`` is the probability of each span that was asked about, ``without [A, S]`` that without the labels of
    annotator a in this document, ``with_none [S]`` that without any: from the words and the chain alone.
    ``spans_without`` are, for each annotator, the spans that would be given out without them. In the plain scheme a
    span is one token.
    """

    annotators: tuple[str, ...]
    with_all: Floats
    without: Floats
    with_none: Floats
    spans_without: list[list[Span]]
    spans_with_all: list[Span]


def influences(
    model: Explains, result: Result, positions: Sequence[int], spans: Sequence[Sequence[Span]]
) -> Iterator[Influence]:
    """For each of these documents of a result, the influence of its annotators on some spans and on the consensus.

    Where spans are given out from some probability on, it is taken to be that of the least probable one in these
    documents.

    >>> import quorate
    >>> model = quorate.BSC().fit(quorate.sample())
    >>> one = model.result_[0]
    >>> found = next(influences(model, model.result_, [0], [one.spans]))
    >>> bool(np.allclose(found.with_all, [span.confidence for span in one.spans]))
    True
    """
    reader = _Reader(model, result)
    versions = [_versions(result.corpus[d]) for d in positions]
    least = reader.least(positions)
    for lot in _lots([len(several) for several in versions]):
        read = reader.read(versions[lot], least)
        for several, asked in zip(versions[lot], spans[lot], strict=True):
            (with_all, now), *without, (with_none, _) = (next(read).of(asked) for _ in several)
            names = tuple(sorted(several[0].annotations))
            yield Influence(
                names,
                with_all,
                np.array([probability for probability, _ in without]).reshape(len(names), len(asked)),
                with_none,
                [given for _, given in without],
                now,
            )


def _lots(sizes: Sequence[int]) -> Iterator[slice]:
    """Neighbours whose sizes together are at most so many as are combined at once; or one that is larger alone."""
    first = total = 0
    for place, size in enumerate(sizes):
        if place > first and total + size > _AT_ONCE:
            yield slice(first, place)
            first, total = place, 0
        total += size
    if sizes:
        yield slice(first, len(sizes))


def _versions(document: Document) -> list[Document]:
    """The document with all of its annotators, without each, and with none."""
    given = document.annotations
    without = [{name: tags for name, tags in given.items() if name != gone} for gone in sorted(given)]
    return [replace(document, annotations=kept) for kept in (given, *without, {})]


class _Read(NamedTuple):
    """The probability of every span of a document that has one, and the spans that are given out."""

    probability: dict[Span, float]
    given: list[Span]

    def of(self, asked: Sequence[Span]) -> tuple[Floats, list[Span]]:
        """The probabilities of some spans, and the spans that are given out."""
        return np.array([self.probability.get(span.bare, 0.0) for span in asked]), self.given


class _Columns(NamedTuple):
    """The same for a crowd, a row a span; ``worth`` is what decides which are given out, where there is a choice."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    kind: NDArray[np.int64]
    probability: Floats
    given: NDArray[np.bool_]
    worth: Floats


class _Reader:
    """Documents under a fitted model, as a result was made by it."""

    def __init__(self, model: Explains, result: Result) -> None:
        self._fitted, self._result = model.fitted_, result
        self._engines = Engines(threads=model.engines().threads)
        self._settings = Settings.of(**{each.name: result.settings_[each.name] for each in fields(Settings)})
        self._on_spans = needs_spans(self._settings, self._fitted.tagset)
        sequence = self._settings.decode is Decode.SEQUENCE and not self._settings.dialled
        self._chooses = self._on_spans and not (sequence and self._fitted.spans is not None)

    def least(self, positions: Sequence[int]) -> float:
        """What the span is worth that is given out in these documents and worth least."""
        least, corpus = np.inf, self._result.corpus
        for lot in _lots([1] * len(positions)) if self._chooses else ():
            here = positions[lot]
            crowd = self._crowd([corpus[d] for d in here])
            found = self._columns(crowd, 0.5)
            rows = self._rows(crowd, found)
            for d, own in zip(here, rows, strict=True):
                given = {piece.bare for piece in self._result.pieces(d)}
                least = min([least, *(found.worth[n] for span, n in own if span in given)])
        return float(least) if np.isfinite(least) else 0.5

    def read(self, versions: Sequence[Sequence[Document]], least: float) -> Iterator[_Read]:
        """Every version of every document; the first version of each has all labels."""
        crowd = self._crowd([version for several in versions for version in several])
        found = self._columns(crowd, least)
        for own in self._rows(crowd, found):
            probability = {span: float(found.probability[n]) for span, n in own}
            yield _Read(probability, [span for span, n in own if found.given[n]])

    def _crowd(self, documents: Sequence[Document]) -> Crowd:
        return self._fitted.crowd(Corpus([replace(one, id=str(number)) for number, one in enumerate(documents)]))

    def _rows(self, crowd: Crowd, found: _Columns) -> Iterator[list[tuple[Span, int]]]:
        """The spans of each document, its tokens counted from its first, with their rows."""
        types = crowd.tagset.types
        order = np.lexsort((found.end, found.start))
        first = np.searchsorted(found.start[order], crowd.doc_start)
        for d, token in enumerate(crowd.doc_start[:-1].tolist()):
            here = order[first[d] : first[d + 1]]
            columns = (found.start[here] - token, found.end[here] - token, found.kind[here], here)
            rows = zip(*(column.tolist() for column in columns), strict=True)
            yield [(Span(start, end, types[kind]), n) for start, end, kind, n in rows]

    def _columns(self, crowd: Crowd, least: float) -> _Columns:
        with closing(self._engines.over(crowd, text=self._settings.text)) as engine:
            evidence = self._fitted.evidence(engine, crowd, self._engines) if self._on_spans else None
            decoded = self._fitted.consensus(engine, crowd, self._settings, self._engines, evidence=evidence).decoded
            if evidence is None:
                return self._by_tokens(engine, crowd, decoded)
        return self._by_spans(evidence, decoded.posterior, least)

    def _by_tokens(self, engine: Engine, crowd: Crowd, decoded: Decoded) -> _Columns:
        tagset, T, N = crowd.tagset, len(crowd.tagset.types), crowd.n_tokens + 1
        if tagset.scheme is Scheme.PLAIN:
            token, label = (place.ravel() for place in np.indices(decoded.posterior.shape))
            start, end, kind, probability = token, token + 1, tagset.type_of[label], decoded.posterior.ravel()
        else:
            start, end, kind, probability = engine.likely_spans(*self._fitted.output_tables(crowd), _LEAST)
        chosen = consensus_spans(decoded, tagset)
        given = np.isin((start * N + end) * T + kind, (chosen.start * N + chosen.end) * T + chosen.kind)
        return _Columns(start, end, kind, probability, given, probability)

    def _by_spans(self, evidence: SpanEvidence, posterior: Floats, least: float) -> _Columns:
        crowd, c, spans = evidence.crowd, evidence.candidates, self._fitted.spans
        spans = None if spans is None else spans.grown(len(crowd.annotators))
        most = np.ones(len(c.start))  # nothing is surer than the labels of its tokens
        if len(most):
            first, token, label = labels_of_spans(c.start, c.end, c.kind, crowd.tagset)
            most = np.minimum.reduceat(posterior[token, label], first)
        capped = most if spans is None else 1.0
        found = given_spans(evidence, spans, self._settings, self._fitted.calibration, most=capped)
        worth = found.true if spans is None or self._settings.dialled else found.stated
        given = evidence.engine.best_set(worth - least * (1 - _ROUNDING)) if self._chooses else found.chosen
        return _Columns(c.start, c.end, c.kind, np.minimum(found.true, most), given, worth)
