"""Why a span is (not) in the consensus: its probability with everybody, and without each annotator in turn.

Nothing is fitted again: what was learned about annotators, words and transitions stays, and only what one annotator
said about this document is taken away. The probabilities are exact: where the evidence is spans, the document is
combined again without them; else they are from the kernels that the output pass uses. Where one of several copies is
taken away, the others still say what most of them do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Corpus, Document
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme
from quorate.crowd.algebra import events_of_document
from quorate.model.engines.threads import span_shape
from quorate.model.kernels import output, single
from quorate.model.kernels.spans import best_set
from quorate.model.parts.truth import log_mask
from quorate.model.spans import token_f1_terms

if TYPE_CHECKING:
    from quorate.estimators.capabilities import Explains
    from quorate.model.consensus import SpanProbabilities

__all__ = ["Influence", "influences"]

Floats = NDArray[np.float64]
_ROUNDING = 1e-9
_IMPOSSIBLE = -1e4  # log-likelihood
_AT_ONCE = 2_000  # versions of documents that are combined together


class Influence(NamedTuple):
    """What each annotator does to a document.

    ``with_all [S]`` is the probability of each span that was asked about, ``without [A, S]`` that when annotator a said
    nothing here, ``with_none [S]`` when nobody did: from the words and the chain alone. ``spans_without`` are, for each
    annotator, the spans that would be given out without them. In the plain scheme a span is one token.
    """

    annotators: tuple[str, ...]
    with_all: Floats
    without: Floats
    with_none: Floats
    spans_without: list[list[Span]]
    spans_with_all: list[Span]


def influences(
    model: Explains,
    documents: Sequence[Document],
    spans: Sequence[Sequence[Span]],
    given: Sequence[Sequence[Span]] | None = None,
) -> Iterator[Influence]:
    """For every document, the influence of its annotators on these spans and on the consensus.

    ``given`` are the spans of the consensus, if other spans are asked about too. Where the evidence is spans, those are
    taken to be given out that are worth as much as the least of them.

    >>> import quorate
    >>> model = quorate.BSC().fit(quorate.sample())
    >>> one = model.result_["s001"]
    >>> found = next(influences(model, [one.document], [one.spans]))
    >>> bool(np.allclose(found.with_all, [span.confidence for span in one.spans]))
    True
    """
    versions = [_versions(document) for document in documents]
    least = _least(model, documents, spans if given is None else given)
    for lot in _lots([len(several) for several in versions]):
        corpus = _numbered(versions[lot])
        told = model.span_probabilities(corpus)
        if told is None:
            yield from _by_tokens(_Reader(model, corpus), versions[lot], spans[lot])
        else:
            worth, size = _worth(model, told, corpus)
            gain = worth - least * (1 - _ROUNDING) * size
            yield from _by_spans(model.tagset_.types, told, gain, versions[lot], spans[lot])


def _worth(model: Explains, told: SpanProbabilities, corpus: Corpus) -> tuple[Floats, Floats]:
    """``[C]`` What each span is worth, by itself or by its tokens, and how much of it there is."""
    if not model.for_token_f1:
        return told.chosen_by, np.ones(len(told.chosen_by))
    worth, _, size = token_f1_terms(told.places, told.chosen_by, sum(len(one.tokens) for one in corpus))
    return worth, size


def _least(model: Explains, documents: Sequence[Document], given: Sequence[Sequence[Span]]) -> float:
    """What the given span is worth that is worth least."""
    types, least = {name: kind for kind, name in enumerate(model.tagset_.types)}, np.inf
    for lot in _lots([1] * len(documents)):
        corpus = _numbered([[one] for one in documents[lot]])
        told = model.span_probabilities(corpus) if any(given[lot]) else None
        if told is None:
            continue
        worth, size = _worth(model, told, corpus)
        columns = (column.tolist() for column in (*told.candidates[:3], worth / size))
        of_span = {(start, end, kind): value for start, end, kind, value in zip(*columns, strict=True)}
        first = 0
        for one, spans in zip(corpus, given[lot], strict=True):
            here = ((first + span.start, first + span.end, types[span.label]) for span in spans)
            least = min([least, *(of_span[span] for span in here if span in of_span)])
            first += len(one.tokens)
    return float(least) if np.isfinite(least) else 0.5


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


def _numbered(versions: Sequence[Sequence[Document]]) -> Corpus:
    """All versions as a corpus, in which each has an id of its own."""
    one_by_one = (version for several in versions for version in several)
    return Corpus([replace(version, id=str(number)) for number, version in enumerate(one_by_one)])


def _versions(document: Document) -> list[Document]:
    """The document with all of its annotators, without each, and with none."""
    said = document.annotations
    without = [{name: tags for name, tags in said.items() if name != gone} for gone in sorted(said)]
    return [replace(document, annotations=kept) for kept in (said, *without, {})]


def _by_spans(
    types: Sequence[str],
    told: SpanProbabilities,
    gain: Floats,
    versions: Sequence[Sequence[Document]],
    spans: Sequence[Sequence[Span]],
) -> Iterator[Influence]:
    """Where the evidence is spans: from what is told of every version of every document.

    The spans of the highest ``gain`` are taken to be given out.
    """
    found, probability, as_chosen, _ = told
    chosen = np.zeros(len(probability), np.bool_)
    best_set(as_chosen.start, as_chosen.end, as_chosen.kind, as_chosen.first, as_chosen.apart, gain, chosen)
    token = d = 0
    for several, asked in zip(versions, spans, strict=True):
        looks: list[tuple[list[float], list[Span]]] = []
        for version in several:
            here = slice(int(found.first[d]), int(found.first[d + 1]))
            columns = (found.start[here] - token, found.end[here] - token, found.kind[here])
            places = zip(*(column.tolist() for column in columns), strict=True)
            rows = [Span(start, end, types[kind]) for start, end, kind in places]
            true = dict(zip(rows, probability[here].tolist(), strict=True))
            given = [span for span, is_given in zip(rows, chosen[here].tolist(), strict=True) if is_given]
            looks.append(([true.get(span.bare, 0.0) for span in asked], given))
            token, d = token + len(version.tokens), d + 1
        (with_all, now), *without, (with_none, _) = looks
        names = tuple(sorted(several[0].annotations))
        yield Influence(
            names,
            np.array(with_all),
            np.array([look[0] for look in without]).reshape(len(names), len(asked)),
            np.array(with_none),
            [look[1] for look in without],
            now,
        )


def _by_tokens(
    reader: _Reader, versions: Sequence[Sequence[Document]], spans: Sequence[Sequence[Span]]
) -> Iterator[Influence]:
    """Where the evidence is tokens: ``reader`` has every version of every document."""
    d = 0
    for several, asked in zip(versions, spans, strict=True):
        names, codes = tuple(sorted(several[0].annotations)), reader.codes(asked, len(several[0].tokens))
        looks = [reader.look(reader.evidence(d + number), asked, codes) for number in range(len(several))]
        d += len(several)
        with_all, *without, with_none = looks
        yield Influence(
            names,
            with_all.probability,
            np.array([look.probability for look in without]).reshape(len(names), len(asked)),
            with_none.probability,
            [reader.spans(look.path) for look in without],
            reader.spans(with_all.path),
        )


class _Look(NamedTuple):
    """Under some evidence: the probability of each span asked about, and the best sequence."""

    probability: Floats
    path: tuple[int, ...]


class _Reader:
    """A few documents under a fitted model, one evidence at a time."""

    def __init__(self, model: Explains, corpus: Corpus) -> None:
        encoded = model.encoded(corpus)
        tables, chain = model.output_tables(encoded)
        tagset = encoded.tagset
        self._encoded, self._tagset = encoded, tagset
        self._calibration = model.calibration_
        self._cells, self._words = tables.temper * tables.cells, tables.words
        self._end, self._may_end = chain.end, log_mask(tagset.allowed_last)
        self._steps = self._steps_of(chain.start, chain.trans)
        self._allowed = self._steps_of(
            chain.start + log_mask(tagset.allowed_first), chain.trans + log_mask(tagset.allowed)
        )
        self._shape = output.SpanShape(*span_shape(tagset))
        self._closed = model.closed_labels(encoded)

    def _steps_of(self, start: Floats, trans: Floats) -> Any:
        return single.steps_of(np.ascontiguousarray(start), np.ascontiguousarray(trans))

    def evidence(self, d: int) -> Floats:
        """``[L, J]`` Log-likelihoods from words, the end of the document, and all that annotators said."""
        encoded = self._encoded
        first, last = int(encoded.doc_start[d]), int(encoded.doc_start[d + 1])
        out = np.zeros((last - first, self._cells.shape[1]))
        if len(self._words):
            word = encoded.word[first:last]
            met = word < len(self._words)
            out[met] = self._words[word[met]]
        if last > first:
            out[-1] += self._end
        if self._closed is not None:
            label = self._closed[first:last]
            fixed = np.flatnonzero(label >= 0)
            others = np.arange(out.shape[1]) != label[fixed][:, None]
            out[fixed] += np.where(others, _IMPOSSIBLE, 0.0)
        events, token = events_of_document(encoded, d)
        said = self._cells[encoded.event_cell[events]]
        if encoded.event_weight is not None:
            said = said * encoded.event_weight[events][:, None]
        np.add.at(out, token, said)
        return out

    def codes(self, asked: Sequence[Span], length: int) -> list[NDArray[np.int32]]:
        """For every span the labels of a document that has it; of interest are those inside the span."""
        index = self._tagset.index
        if self._tagset.scheme is Scheme.PLAIN:
            return [np.full(length, index[span.label], np.int32) for span in asked]
        return [np.array([index[tag] for tag in self._tagset.tags([span], length)], np.int32) for span in asked]

    def look(self, evidence: Floats, asked: Sequence[Span], codes: Sequence[NDArray[np.int32]]) -> _Look:
        L, J = evidence.shape
        if L == 0:
            return _Look(np.zeros(len(asked)), ())
        alpha, beta = np.empty((L, J)), np.empty((L, J))
        log_z = single.log_forward_backward(evidence, L, self._steps, alpha, beta)
        path, back = np.zeros(L, np.int32), np.empty((L, J), np.int32)
        single.viterbi(evidence, L, self._allowed, self._may_end, back, path)
        weights = np.zeros(len(asked))
        for s, span in enumerate(asked):
            start, end = span.start, span.end
            if self._tagset.scheme is Scheme.PLAIN:
                weights[s] = alpha[start, codes[s][start]] + beta[start, codes[s][start]]
            else:
                around = (alpha[max(start - 1, 0)], beta[min(end, L - 1)])
                args = (evidence, L, self._steps, self._shape, *around, codes[s], start, end)
                weights[s] = output.span_log_weight(*args)
        return _Look(self._calibration.spans(np.exp(weights - log_z)), tuple(path.tolist()))

    @lru_cache(maxsize=64)  # noqa: B019 (a reader lives as long as its documents are looked at)
    def _spans(self, path: tuple[int, ...]) -> tuple[Span, ...]:
        tags = [self._tagset.labels[code] for code in path]
        if self._tagset.scheme is Scheme.PLAIN:
            return tuple(Span(position, position + 1, tag) for position, tag in enumerate(tags))
        return tuple(self._tagset.pieces(tags))

    def spans(self, path: tuple[int, ...]) -> list[Span]:
        """The spans of a sequence; most are the same with and without someone."""
        return list(self._spans(path))
