"""When to stop asking: how much F1 is expected to change by one more batch, drawn from the model itself.

A truth is drawn for every document of the batch, then the labels that the annotator would give it; with them the
document is decoded again, and what F1 is expected from the probabilities, before and after, is compared. Many such
draws give a mean and an interval. What every annotator gets wrong alike no draw can show.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from quorate.active.strategies import matrices_of
from quorate.corpus.records import Corpus, Document, Tag
from quorate.corpus.tags import TagSet
from quorate.crowd.crowd import Crowd
from quorate.model import loop
from quorate.model.parts.dirichlet import log_mean
from quorate.model.parts.truth import Chain
from quorate.model.prepared import Known
from quorate.result.result import Result

__all__ = ["Change", "Draws", "change_of", "draw", "draw_path", "expected_change", "somebody_else"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_LOW, _HIGH = 0.05, 0.95
_SOMEBODY_ELSE = "somebody else"


def somebody_else(taken: Collection[str]) -> str:
    """A name for whoever has labelled nothing yet, which nobody has: a model takes them for the average.

    >>> somebody_else(["ann"]), somebody_else(["somebody else"])
    ('somebody else', 'somebody else (new)')
    """
    name = _SOMEBODY_ELSE
    while name in taken:
        name += " (new)"
    return name


class Combine(Protocol):
    """Gives the consensus on a corpus, with what was learned and what is known."""

    def __call__(self, corpus: Corpus, *, known: Known = None) -> Result:
        """The consensus."""


class Change(NamedTuple):
    """Expected F1 ``now``, and its change by one more batch of ``labels``: mean, and 90 % interval over draws.

    ``share`` is the part of all that is not known (the entropies of all documents) that is in the batch's documents.

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
        """The upper end of the change, were every document labelled once more with as much gain for what is unknown."""
        return min(self.high / self.share, 1.0 - self.now) if self.share > 0 else 0.0


def _tallies(result: Result) -> Floats:
    """``[3, D]`` Spans expected to be right, spans given, and true spans expected, of every document."""
    tallies = result.span_tallies()
    return np.stack([tallies.found, tallies.given, tallies.true])


def _f1(tallies: Floats) -> Floats:
    found, given, true = tallies
    return np.asarray(2 * found / np.maximum(given + true, 1e-9))


def draw_path(evidence: Floats, chain: Chain, rng: np.random.Generator) -> list[int]:
    """A sequence of labels, drawn with its posterior probability; ``evidence`` is ``[L, J]``, in logarithms.

    Forward, then backward from the last label to the first.

    >>> chain = Chain(np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.1, 0.9]]), np.zeros(2), True)
    >>> draw_path(np.array([[0.0, -50.0], [0.0, -50.0]]), chain, np.random.default_rng(0))
    [0, 0]
    """
    forward = np.empty_like(evidence)
    for t in range(len(evidence)):
        if t == 0 or not chain.coupled:
            before = chain.start
        else:
            before = logsumexp(forward[t - 1][:, None] + chain.trans, axis=0)
        forward[t] = before + evidence[t]
    path: list[int] = []
    for t in range(len(evidence) - 1, -1, -1):
        logs = forward[t]
        if t == len(evidence) - 1:
            logs = logs + chain.end
        elif chain.coupled:
            logs = logs + chain.trans[:, path[-1]]
        weights = np.exp(logs - logs.max())
        path.append(int(rng.choice(len(weights), p=weights / weights.sum())))
    return path[::-1]


def evidence_of(model: loop.Model, encoded: Crowd, d: int, sharpness: float) -> Floats:
    """``[L, J]`` Log-likelihood of what was observed at each token of a document, under posterior means."""
    rows = model.annotators.log_lik(encoded.cells, log_mean)
    words = None if model.text is None else model.text.log_lik(log_mean)
    first, last = int(encoded.doc_start[d]), int(encoded.doc_start[d + 1])
    out = np.zeros((last - first, rows.shape[1]))
    for t in range(first, last):
        events = slice(encoded.event_start[t], encoded.event_start[t + 1])
        said = rows[encoded.event_cell[events]]
        weight = 1.0 if encoded.event_weight is None else encoded.event_weight[events][:, None]
        out[t - first] = model.temper * (said * weight).sum(axis=0)
        if words is not None and encoded.word[t] < len(words):
            out[t - first] += words[encoded.word[t]]
    return out * sharpness


def _bound_by(known: Sequence[Tag], evidence: Floats, tagset: TagSet) -> Floats:
    """The evidence ``[L, J]`` with no other label than the known one, where there is one."""
    bound = evidence.copy()
    for t, tag in enumerate(known):
        if tag is not None:
            bound[t, np.arange(bound.shape[1]) != tagset.index[tag]] = -np.inf
    return bound


def draw_labels(matrix: Floats, path: Sequence[int], before: int, rng: np.random.Generator) -> list[int]:
    """Labels that an annotator with this matrix ``[P, J, J]`` gives a true sequence."""
    labels: list[int] = []
    own = before
    for truth in path:
        row = matrix[own if len(matrix) > 1 else 0, truth]
        own = int(rng.choice(len(row), p=row / row.sum()))
        labels.append(own)
    return labels


def expected_change(
    result: Result,
    model: loop.Model,
    encoded: Crowd,
    asked: Sequence[tuple[int, int]],
    unknown: Floats,
    combine: Combine,
    *,
    draws: int = 20,
    seed: int = 0,
) -> Change:
    """How F1 is expected to change by labels of some (document, annotator) pairs, which count along ``encoded``.

    ``unknown [D]`` is the entropy of each document. ``combine`` gives the consensus on a corpus with what was learned.
    What is known in ``result`` is known of what is drawn, too.
    """
    drawn = draw(result, model, encoded, asked, combine, draws=draws, seed=seed)
    return change_of([drawn], [d for d, _ in asked], unknown)


class Draws(NamedTuple):
    """Tallies ``[3, D]`` as they are, and ``[3, asked, draws]`` of the documents asked for, with new labels."""

    now: Floats
    after: Floats


def draw(
    result: Result,
    model: loop.Model,
    encoded: Crowd,
    asked: Sequence[tuple[int, int]],
    combine: Combine,
    *,
    draws: int = 20,
    seed: int = 0,
) -> Draws:
    """What becomes of tallies with labels of some pairs, drawn again and again; see :func:`expected_change`."""
    tallies = _tallies(result)
    if not asked:
        return Draws(tallies, np.zeros((3, 0, draws)))
    rng = np.random.default_rng(seed)
    tagset, sharpness = result.tagset, result.calibration.sharpness
    chain = model.truth.chain(log_mean)
    chain = chain._replace(start=chain.start * sharpness, trans=chain.trans * sharpness)
    before = len(tagset.labels) if tagset.outside is None else tagset.outside
    drawn: list[Document] = []
    known: dict[str, list[Tag]] = {}
    names = (*encoded.annotators, somebody_else(encoded.annotators))
    for d, k in asked:
        document, matrix = result.corpus[d], matrices_of(model.annotators, [k])[0]
        certain = [tag if is_known else None for tag, is_known in zip(result[d].tags, result[d].known, strict=True)]
        evidence = _bound_by(certain, evidence_of(model, encoded, d, sharpness), tagset)
        for number in range(draws):
            labels = draw_labels(matrix, draw_path(evidence, chain, rng), before, rng)
            said = tuple(tagset.labels[label] for label in labels)
            annotations = {**document.annotations, names[k]: said}
            drawn.append(replace(document, id=f"{number} {document.id}", annotations=annotations, source=None))
            if any(tag is not None for tag in certain):
                known[drawn[-1].id] = certain
    return Draws(tallies, _tallies(combine(Corpus(drawn), known=known)).reshape(3, len(asked), draws))


def change_of(drawn: Sequence[Draws], documents: Sequence[int], unknown: Floats) -> Change:
    """The change by labels of the first ``documents`` that were asked for: of all layers, if there are several."""
    tallies = np.sum([one.now for one in drawn], axis=0)
    total = tallies.sum(axis=1)
    now = float(_f1(total))
    if not documents:
        return Change(now, 0.0, 0.0, 0.0, 0, 0.0)
    rest = total - tallies[:, documents].sum(axis=1)
    after = np.sum([one.after[:, : len(documents)].sum(axis=1) for one in drawn], axis=0)
    changes = _f1(rest[:, None] + after) - now
    low, high = np.quantile(changes, [_LOW, _HIGH])
    share = float(unknown[list(documents)].sum() / max(float(unknown.sum()), 1e-12))
    return Change(now, float(changes.mean()), float(low), float(high), len(documents), share)
