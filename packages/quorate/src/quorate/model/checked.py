"""Learning from checked documents how far to correct the confidence of spans (:mod:`quorate.model.correction`).

A fit that does not know their labels predicts the checked documents, so that what it states there is what it would
state of any other. The weights are those of the highest posterior. Whether spans are given out by corrected
probabilities is decided by F1 of the checked documents, in folds: each is predicted by the weights of the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.algebra import document_of, spans_of_path, sums_between
from quorate.crowd.crowd import Crowd
from quorate.model.candidates import Candidates, looked_up
from quorate.model.correction import LEVEL, Correction, KindOfSpan, corrected, features
from quorate.model.engines.protocol import Likely
from quorate.model.spans import GivenSpans, SpanEvidence, chosen_by

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
LEAST_DOCUMENTS = 10
"""Checked documents from which on anything is learned: from fewer, chance would decide."""
_FOLDS = 10
_STEPS = 50
_STILL = 1e-8  # of weights that change no more
_PRIOR_DOCUMENTS = 10.0  # checked documents that the expected number of missed spans counts as
_FEW_MISTAKES = 5  # documents with one


def checked_documents(crowd: Crowd) -> Integers:
    """The documents of which every label is known, and which somebody labelled."""
    if crowd.known is None:
        return np.zeros(0, np.int64)
    open_labels = sums_between(crowd.known < 0, crowd.doc_start)
    events = np.diff(crowd.event_start[crowd.doc_start])
    return np.flatnonzero((open_labels == 0) & (events > 0))


class _Checked(NamedTuple):
    """The candidates that are in checked documents, and which are ``right [C]``; ``true [D]`` spans, −1: not known."""

    evidence: SpanEvidence
    given: GivenSpans
    inputs: Floats
    right: Flags
    true: Integers

    def weights(self, documents: Integers) -> Floats:
        """Learned from some of the documents."""
        here = np.isin(self.evidence.candidates.document, documents)
        return _regression(self.inputs[here], self.given.stated[here], self.right[here])

    def missed(self, documents: Integers) -> float:
        """How many true spans a token is expected to have that are no candidates."""
        counts = _counts(self.evidence.candidates, self.right)[0]
        lost = float((self.true - counts)[documents].sum())
        length = np.diff(self.evidence.crowd.doc_start)
        prior = _PRIOR_DOCUMENTS * float(length.mean())  # tokens
        usual = float(self.given.elsewhere.sum() / max(length.sum(), 1))
        return (lost + prior * usual) / max(float(length[documents].sum()) + prior, 1.0)

    def correction(self, documents: Integers) -> Correction:
        """What some of the documents say, if it is to choose the spans."""
        weights = tuple(self.weights(documents).tolist())
        return Correction(len(documents), weights, self.missed(documents), True, (0.0, 0.0, 1.0))

    def counts(self, chosen: Flags, documents: Integers) -> Floats:
        """``[3, documents]`` Spans right, given and true, if these are given out."""
        right, given = _counts(self.evidence.candidates, chosen & self.right, chosen)
        return np.stack([right[documents], given[documents], self.true[documents]]).astype(np.float64)


def learned_correction(crowd: Crowd, evidence: SpanEvidence, given: GivenSpans) -> Correction | None:
    """What the checked documents of a ``crowd`` say of spans; ``None`` if they are too few, or show no span.

    ``evidence`` and ``given`` are those of a fit that does not know them.
    """
    documents = checked_documents(crowd)
    if len(documents) < LEAST_DOCUMENTS:
        return None
    right, true = _truth(crowd, evidence.candidates, documents)
    checked = _Checked(evidence, given, features(evidence.candidates, given.stated), right, true)
    by_correction, by_default = [], []
    for fold in _folds(evidence.candidates, given.stated, documents):
        chosen = chosen_by(checked.correction(np.setdiff1d(documents, fold)), evidence, given)
        by_correction.append(checked.counts(chosen, fold))
        by_default.append(checked.counts(given.chosen, fold))
    with_it, without = np.concatenate(by_correction, axis=1), np.concatenate(by_default, axis=1)
    if not (without[1] + without[2]).sum():
        return None
    chooses = bool(_f1(with_it.sum(axis=1)) > _f1(without.sum(axis=1)))
    correction = checked.correction(documents)
    now = corrected(given.stated, correction.log_odds(evidence.candidates, given.stated))
    return correction._replace(
        chooses=chooses,
        f1=_interval(with_it if chooses else without),
        kinds=_kinds(evidence.candidates, given.stated, now),
    )


def _truth(crowd: Crowd, candidates: Candidates, documents: Integers) -> tuple[Flags, Integers]:
    """Which candidates are true, and how many true spans each document has: −1 where that is not known."""
    assert crowd.known is not None
    outside = crowd.tagset.outside or 0
    found = spans_of_path(np.where(crowd.known < 0, outside, crowd.known), crowd)
    document = document_of(crowd, found.start)
    found = found.where(np.isin(document, documents))
    true = np.full(crowd.n_docs, -1)
    true[documents] = np.bincount(document, minlength=crowd.n_docs)[documents]
    as_likely = Likely(found.start, found.end, found.kind, np.ones(len(found.start)))
    return looked_up(candidates, as_likely, crowd) > 0, true


def _regression(inputs: Floats, stated: Floats, right: Flags) -> Floats:
    """``[F]`` Weights of the highest posterior, by Newton's method: the loss is convex."""
    weights = np.zeros(inputs.shape[1])
    for _ in range(_STEPS):
        p = corrected(stated, inputs @ weights)
        slope = inputs.T @ (right - p) - weights
        bend = inputs.T @ (inputs * (p * (1 - p))[:, None]) + np.eye(len(weights))
        step = np.linalg.solve(bend, slope)
        weights += step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < _STILL:
            break
    return weights


def _folds(candidates: Candidates, stated: Floats, documents: Integers) -> list[Integers]:
    """The checked documents in folds that are alike in how many spans are expected, whatever their order."""
    expected = np.bincount(candidates.document, stated, len(candidates.first) - 1)[documents]
    order = documents[np.argsort(expected, kind="stable")]
    return [order[n::_FOLDS] for n in range(_FOLDS)]


def _counts(candidates: Candidates, *chosen: Flags) -> list[Integers]:
    """``[D]`` How many of each document's candidates are chosen, for each choice."""
    D = len(candidates.first) - 1
    return [np.bincount(candidates.document[one], minlength=D) for one in chosen]


def _f1(counts: Floats) -> Floats:
    """F1 of spans right, given and true; 0 where there are none."""
    right, given, true = counts
    return np.asarray(2 * right / np.maximum(given + true, 1.0))


def _interval(counts: Floats) -> tuple[float, float, float]:
    """F1, and its interval for documents drawn alike: Wilson's, for as many spans as the jackknife's error is worth.

    Where fewer than five documents have a mistake, their variance is not to be trusted, and there are at most as many
    independent spans as documents with spans.
    """
    from scipy.special import stdtrit  # takes longer to import than a small fit

    right, given, true = counts
    n = counts.shape[1]
    total = counts.sum(axis=1)
    value = float(_f1(total))
    without_one = _f1(total[:, None] - counts)
    variance = (n - 1) / n * float(((without_one - without_one.mean()) ** 2).sum())
    size = value * (1 - value) / variance if variance > 0 else np.inf
    if (given + true > 2 * right).sum() < _FEW_MISTAKES or not np.isfinite(size):
        size = min(size, float((given + true > 0).sum()))
    reach = float(stdtrit(n - 1, (1 + LEVEL) / 2)) ** 2 / size
    middle, spread = (value + reach / 2) / (1 + reach), np.sqrt(reach * (value * (1 - value) + reach / 4)) / (1 + reach)
    return value, float(max(middle - spread, 0.0)), float(min(middle + spread, 1.0))


def _kinds(candidates: Candidates, stated: Floats, now: Floats) -> tuple[KindOfSpan, ...]:
    """What becomes of kinds of spans that somebody marked."""
    marked, several = candidates.marked >= 1, candidates.seen >= 2
    kinds = {
        "alone": marked & several & (candidates.marked <= 1),
        "majority": marked & several & (candidates.votes() > 0.5),
        "single": marked & (candidates.end - candidates.start == 1),
        "several": marked & (candidates.end - candidates.start > 1),
    }
    return tuple(
        KindOfSpan(kind, float(stated[which].mean()), float(now[which].mean()))
        for kind, which in kinds.items()
        if which.any()
    )
