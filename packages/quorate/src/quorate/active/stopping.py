"""When to stop: how one more batch of labels should change the expected score, by simulation from the model.

For every document of the batch a truth is drawn, and then the labels that the annotator would give it. With them the
document is decoded again, and its expected score is compared with that before. Many draws give a mean and a spread.
Truth, labels and both scores are those of the token model: drawn from one model and decoded by another, labels would
seem to make the consensus worse. Errors that all annotators share are in no draw.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.active.strategies import matrices_of
from quorate.corpus.records import Corpus, Document
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import label_before
from quorate.model.engines.factory import Engines
from quorate.model.engines.protocol import Tables
from quorate.model.fit import Fitted
from quorate.model.parts.truth import Chain
from quorate.model.settings import Decode
from quorate.result.coherent import coherent
from quorate.result.result import Result
from quorate.result.tallies import SpanTallies, span_tallies

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_LOW, _HIGH = 0.05, 0.95
_SOMEBODY_ELSE = "somebody else"


def somebody_else(taken: Collection[str]) -> str:
    """A free name for an annotator without labels, who is the average of the others to a model.

    >>> somebody_else(["ann"]), somebody_else(["somebody else"])
    ('somebody else', 'somebody else (new)')
    """
    name = _SOMEBODY_ELSE
    while name in taken:
        name += " (new)"
    return name


class Change(NamedTuple):
    """The expected score ``now``, and its change by one more batch of ``labels``: mean, and where 90 % of draws are.

    The expected score is F1 as the model's own probabilities have it, and no measurement of F1. ``share`` is that of
    the batch's documents in the entropy of all documents.

    >>> Change(0.8, 0.001, 0.0005, 0.002, 20, 0.1).all_round
    0.02
    """

    now: float
    mean: float
    low: float
    high: float
    labels: int
    share: float

    @property
    def all_round(self) -> float:
        """The upper end of the change by one more label of every document, at the same gain per nat of entropy."""
        return min(self.high / self.share, 1.0 - self.now) if self.share > 0 else 0.0


def _tallies(tallies: SpanTallies) -> Floats:
    """``[3, D]`` Of every document the expected true positives, the spans given, and the expected true spans."""
    return np.stack([tallies.found, tallies.given, tallies.true])


def _f1(tallies: Floats) -> Floats:
    found, given, true = tallies
    return np.asarray(2 * found / np.maximum(given + true, 1e-9))


def forward_of(evidence: Floats, chain: Chain) -> Floats:
    """``[L, J]`` ln p(labels up to here, truth here), from the ``evidence [L, J]`` at each token, in logarithms."""
    forward = np.empty_like(evidence)
    for t in range(len(evidence)):
        before = chain.start
        if t and chain.coupled:
            before = np.logaddexp.reduce(forward[t - 1][:, None] + chain.trans, axis=0)
        forward[t] = before + evidence[t]
    return forward


def draw_path(forward: Floats, chain: Chain, rng: np.random.Generator) -> list[int]:
    """A sequence of labels, drawn with its posterior probability, backwards from the last one.

    >>> chain = Chain(np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.1, 0.9]]), np.zeros(2), True)
    >>> draw_path(forward_of(np.array([[0.0, -50.0], [0.0, -50.0]]), chain), chain, np.random.default_rng(0))
    [0, 0]
    """
    path: list[int] = []
    for t in range(len(forward) - 1, -1, -1):
        logs = forward[t]
        if t == len(forward) - 1:
            logs = logs + chain.end
        elif chain.coupled:
            logs = logs + chain.trans[:, path[-1]]
        path.append(_drawn(np.exp(logs - logs.max()), rng))
    return path[::-1]


def _drawn(weights: Floats, rng: np.random.Generator) -> int:
    """A number, drawn in proportion to its weight."""
    running = np.cumsum(weights)
    return int(np.searchsorted(running, rng.random() * running[-1], side="right"))


def evidence_of(tables: Tables, crowd: Crowd, d: int) -> Floats:
    """``[L, J]`` Log-likelihood of the labels and of the word at each token of a document."""
    first, last = int(crowd.doc_start[d]), int(crowd.doc_start[d + 1])
    out = np.zeros((last - first, tables.cells.shape[1]))
    for t in range(first, last):
        events = slice(crowd.event_start[t], crowd.event_start[t + 1])
        weight = 1.0 if crowd.event_weight is None else crowd.event_weight[events][:, None]
        out[t - first] = tables.temper * (tables.cells[crowd.event_cell[events]] * weight).sum(axis=0)
        if crowd.word[t] < len(tables.words):
            out[t - first] += tables.words[crowd.word[t]]
    return out


def _clamped(evidence: Floats, known: NDArray[np.int32]) -> Floats:
    """The evidence ``[L, J]`` with no other label than the ``known [L]`` one, where there is one."""
    others = (known >= 0)[:, None] & (np.arange(evidence.shape[1]) != known[:, None])
    return np.where(others, -np.inf, evidence)


def draw_labels(matrix: Floats, path: Sequence[int], before: int, rng: np.random.Generator) -> list[int]:
    """Labels of a true sequence by an annotator with this matrix ``[P, J, J]``."""
    labels: list[int] = []
    own = before
    for truth in path:
        own = _drawn(matrix[own if len(matrix) > 1 else 0, truth], rng)
        labels.append(own)
    return labels


class Draws(NamedTuple):
    """Tallies ``[3, D]``: those of the consensus ``now``, and of the token model ``before``.

    ``after`` ``[3, asked, draws]`` is that of the documents asked for, with drawn labels.
    """

    now: Floats
    before: Floats
    after: Floats


def draw(
    result: Result,
    fitted: Fitted,
    crowd: Crowd,
    asked: Sequence[tuple[int, int]],
    engines: Engines,
    *,
    draws: int = 20,
    seed: int = 0,
) -> Draws:
    """The tallies with labels of some (document, annotator) pairs, which count along ``crowd``, drawn many times."""
    now = _tallies(result.span_tallies())
    if not asked:
        return Draws(now, now, np.zeros((3, 0, draws)))
    rng, tagset = np.random.default_rng(seed), crowd.tagset
    tables, chain = fitted.output_tables(crowd)
    known = np.full(crowd.n_tokens, -1, np.int32) if crowd.known is None else crowd.known
    drawn: list[Document] = []
    certain: list[NDArray[np.int32]] = []
    names = (*crowd.annotators, somebody_else(crowd.annotators))
    for d, k in asked:
        document, matrix = result.corpus[d], matrices_of(fitted.model.annotators, [k])[0]
        own = known[crowd.doc_start[d] : crowd.doc_start[d + 1]]
        forward = forward_of(_clamped(evidence_of(tables, crowd, d), own), chain)
        certain += [own] * draws
        for number in range(draws):
            codes = draw_labels(matrix, draw_path(forward, chain, rng), label_before(tagset), rng)
            annotations = {**document.annotations, names[k]: tuple(tagset.labels[code] for code in codes)}
            drawn.append(replace(document, id=f"{number} {document.id}", annotations=annotations, source=None))
    labelled = replace(fitted.crowd(Corpus(drawn)), known=np.concatenate(certain))
    after = _by_tokens(fitted, labelled, engines).reshape(3, len(asked), draws)
    return Draws(now, _by_tokens(fitted, crowd, engines), after)


def _by_tokens(fitted: Fitted, crowd: Crowd, engines: Engines) -> Floats:
    """``[3, D]`` The tallies of the token model's likeliest sequences."""
    settings = replace(fitted.settings, spans=False, decode=Decode.SEQUENCE, precision=None, recall=None)
    decoded = replace(fitted, spans=None, settings=settings).decode(crowd, engines=engines)
    sure = coherent(decoded, crowd.doc_start, crowd.known)
    spans = sure.tokens if crowd.tagset.outside is None else sure.spans
    return _tallies(span_tallies(decoded, decoded.posterior, crowd.tagset, crowd.doc_start, spans))


def change_of(drawn: Sequence[Draws], documents: Sequence[int], entropy: Floats) -> Change:
    """The change by labels of the first ``documents`` that were asked for, over all layers.

    ``entropy [D]`` is that of all documents.
    """
    now = float(_f1(np.sum([one.now.sum(axis=1) for one in drawn], axis=0)))
    if not documents:
        return Change(now, 0.0, 0.0, 0.0, 0, 0.0)
    before = np.sum([one.before for one in drawn], axis=0)
    total = before.sum(axis=1)
    rest = total - before[:, documents].sum(axis=1)
    after = np.sum([one.after[:, : len(documents)].sum(axis=1) for one in drawn], axis=0)
    changes = _f1(rest[:, None] + after) - _f1(total)
    low, high = np.quantile(changes, [_LOW, _HIGH])
    share = float(entropy[list(documents)].sum() / max(float(entropy.sum()), 1e-12))
    return Change(now, float(changes.mean()), float(low), float(high), len(documents), share)
