"""What annotators would say: the share of them that would give each label to each token, learned without gold.

Hold out each annotator of a document in turn, and learn their labels from those of the others. The score of label j at
token t is linear in a few features of it, with weights for each role of a label (outside, first of a span, inner …):

    p(y = j) ∝ exp(w_role(j) · φ(t, j)),

where φ holds the smoothed log share of j and of its type among those present, their shares in rings of tokens to the
left and to the right and in the document, how much those present use j in general, and, where someone is asked for by
name, how much that one does (*habit*: the log ratio of their labels j to others' of the same documents, this document
left out). Features are of labels, not of pairs of labels, so that there are some sixty weights however many labels
there are; a ridge holds them, as strong as predicts labels in other documents best.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import TagSet
from quorate.crowd.algebra import label_counts, laid_end_to_end, number_pairs, token_of_events
from quorate.crowd.crowd import Crowd
from quorate.crowd.lots import lots_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_RINGS = ((1, 1), (2, 4), (5, 16))  # tokens to either side whose mean shares are features
_NUMBERS = 180_000  # tokens times labels that are learned from: half as many cost 4 % of cross entropy on NER
_RIDGES = (10.0, 100.0, 1000.0)
_PASSES, _FEW_PASSES = 60, 20  # of descent: for the weights, and to choose a ridge
_FEWEST_PAIRS = 20  # of a document and an annotator who can be held out of it, below which nothing is learned
_HABIT_PRIOR = 1.0  # documents of the crowd's mean in each annotator's habit
_OF_TARGET = 2  # features that say who is asked, the last
_BLOCK = 1 << 17  # tokens times labels that are predicted at once


class _View(NamedTuple):
    """Documents as seen by who is there: ``counts [N, J]`` of labels, ``habits [D, J]`` the mean of those present."""

    counts: Floats
    doc_start: Integers
    habits: Floats


class _Fit(NamedTuple):
    """Weights ``[roles, F + 1]``, the last a constant, of features less ``mean`` over ``spread``."""

    weights: Floats
    mean: Floats
    spread: Floats


class ShareModel:
    """What was learned of a crowd, to say what anybody, or somebody by name, would say of its documents.

    >>> import quorate
    >>> from quorate.crowd.encode import encode
    >>> corpus = quorate.Corpus(quorate.sample().documents[:40])
    >>> model = ShareModel.learned(encode(corpus, corpus.tagset()))
    >>> model.shares().shape == (sum(len(one.tokens) for one in corpus), len(corpus.tagset().labels))
    True
    """

    def __init__(self, encoded: Crowd, view: _View, everyone: Floats, prior: Floats, fits: tuple[_Fit, _Fit]) -> None:
        self.encoded, self._view, self._habits, self._prior = encoded, view, everyone, prior
        self._of_anybody, self._of_somebody = fits

    @classmethod
    def learned(cls, encoded: Crowd) -> Self | None:
        """Learn from all documents with two annotators or more; ``None`` if they are too few."""
        doc, who, pair_of_event = number_pairs(encoded)
        J, lengths = len(encoded.tagset.labels), np.diff(encoded.doc_start)
        label, token = encoded.cells.label[encoded.event_cell], token_of_events(encoded)
        weight = np.ones(len(label)) if encoded.event_weight is None else encoded.event_weight
        counts = label_counts(encoded)
        prior = (counts.sum(axis=0) + 1) / (counts.sum() + J)
        given = np.bincount(pair_of_event * J + label, weight, minlength=len(doc) * J).astype(float).reshape(-1, J)
        present = np.bincount(doc, minlength=encoded.n_docs)
        if J < 2 or (present[doc] > 1).sum() < _FEWEST_PAIRS:
            return None
        habits, everyone = _habits(given, doc, who, present, len(encoded.annotators), prior)
        summed = _summed(habits, doc, encoded.n_docs)
        view = _View(counts, encoded.doc_start, summed / np.maximum(present, 1)[:, None])
        lots = lots_of(encoded)
        able = np.flatnonzero(present[doc] > 1)
        able = able[np.argsort(lots.pair[able], kind="stable")]
        n = int(np.searchsorted(np.cumsum(lengths[doc[able]]), max(_NUMBERS // J, 1))) + 1
        able = np.sort(able[:n])

        doc_start, place = laid_end_to_end(encoded.doc_start[doc[able]], lengths[doc[able]])
        number = np.full(len(doc), -1)
        number[able] = np.arange(len(able))
        mine = number[pair_of_event] >= 0
        of = number[pair_of_event[mine]]
        at = token[mine] - encoded.doc_start[doc[able]][of] + doc_start[of]
        observed = (
            np.bincount(at * J + label[mine], weight[mine], minlength=len(place) * J).astype(float).reshape(-1, J)
        )
        others = (summed[doc[able]] - habits[able]) / (present[doc[able]] - 1)[:, None]
        rest = _View(np.maximum(counts[place] - observed, 0.0), doc_start, others)
        features = _features(rest, encoded.tagset, prior, habits[able])
        fold = np.repeat(lots.document[doc[able]] % np.uint64(2) == 0, np.diff(doc_start))
        roles = _roles(encoded.tagset)
        return cls(encoded, view, everyone, prior, _fitted(features, observed, roles, fold))

    def shares(self) -> Floats:
        """``[N, J]`` The share of annotators that would give each label to each token."""
        return _softmax(self._scored(self._of_anybody)[0])

    def of(self, name: str) -> Floats:
        """``[N, J]`` The probability that this annotator gives each label to each token; of a stranger, anybody's.

        The own labels of an annotator who labelled a document count among those that are known of it.
        """
        if name not in self.encoded.annotators:
            return self.shares()
        scores, share = self._of_average
        fit, roles = self._of_somebody, _roles(self.encoded.tagset)
        habit = self._habits[self.encoded.annotators.index(name)]
        slope = fit.weights[roles, -1 - _OF_TARGET : -1] / fit.spread[-_OF_TARGET:]
        return _softmax(scores + habit * (slope[:, 0] + slope[:, 1] * share))

    @cached_property
    def _of_average(self) -> tuple[Floats, Floats]:
        """The scores of someone whose habits are the crowd's, to which those of others are added."""
        return self._scored(self._of_somebody)

    def _scored(self, fit: _Fit) -> tuple[Floats, Floats]:
        """``[N, J]`` Scores for nobody's habits, and the share of each label's type among those present."""
        roles, view = _roles(self.encoded.tagset), self._view
        scores, shares = np.zeros_like(view.counts), np.zeros_like(view.counts)
        for first, last in _blocks(view.doc_start, max(_BLOCK // len(roles), 1)):
            start = view.doc_start[first : last + 1]
            here = slice(start[0], start[-1])
            part = _View(view.counts[here], start - start[0], view.habits[first:last])
            features = _features(part, self.encoded.tagset, self._prior, np.ones_like(part.habits))
            shares[here] = features[..., -1]
            features[..., -_OF_TARGET:] = 0.0
            used = features[..., : fit.weights.shape[1] - 1]
            scores[here] = _scores((used - fit.mean) / fit.spread, fit.weights, roles)
        return scores, shares


def through_confusion(encoded: Crowd, posterior: Floats) -> Floats:
    """``[N, J]`` What annotators would say where none can be held out: the posterior through the crowd's confusion.

    >>> import quorate
    >>> from quorate.crowd.encode import encode
    >>> corpus = quorate.sample()
    >>> result = quorate.aggregate(corpus, "mv")
    >>> shares = through_confusion(encode(corpus, corpus.tagset()), result.posterior)
    >>> bool(np.allclose(shares.sum(axis=1), 1))
    True
    """
    confusion = posterior.T @ label_counts(encoded) + np.eye(posterior.shape[1])
    return np.asarray(posterior @ (confusion / confusion.sum(axis=1, keepdims=True)))


def _habits(
    given: Floats, doc: Integers, who: Integers, present: Integers, K: int, prior: Floats
) -> tuple[Floats, Floats]:
    """``[U, J]`` The habit of each document's annotators, the document left out, and ``[K, J]`` of everybody.

    A long document counts as the square root of its length, since labels of its tokens are correlated.
    """
    length = given.sum(axis=1, keepdims=True)
    given = given / np.sqrt(np.maximum(length, 1.0))
    others = _summed(given, doc, len(present))[doc] - given
    expected = others * (given.sum(axis=1) / np.maximum(others.sum(axis=1), 1e-9))[:, None]
    compared = (present[doc] > 1)[:, None]
    given, expected = given * compared, expected * compared
    usual = _HABIT_PRIOR * prior * (given.sum() / max(int(compared.sum()), 1))
    observed, of_others = _summed(given, who, K), _summed(expected, who, K)
    without = np.log((observed[who] - given + usual) / (of_others[who] - expected + usual))
    return without, np.log((observed + usual) / (of_others + usual))


def _summed(rows: Floats, number: Integers, n: int) -> Floats:
    """``[n, J]`` Sums of the rows with the same number."""
    J = rows.shape[1]
    sums = np.bincount((number[:, None] * J + np.arange(J)).ravel(), rows.ravel(), minlength=n * J)
    return np.asarray(sums, np.float64).reshape(n, J)


def _roles(tagset: TagSet) -> Integers:
    """``[J]`` Labels of one role share weights: those with the same prefix; plain labels all do."""
    prefixes = [prefix for prefix, _ in tagset.parts]
    return np.array([sorted(set(prefixes)).index(prefix) for prefix in prefixes])


def _features(view: _View, tagset: TagSet, prior: Floats, target: Floats) -> Floats:
    """``[N, J, F]`` Of every label at every token; the last two say who is asked."""
    lengths = np.diff(view.doc_start)
    doc = np.repeat(np.arange(len(lengths)), lengths)
    start, end = view.doc_start[doc], view.doc_start[doc + 1]
    n = view.counts.sum(axis=1, keepdims=True)
    same_type = (tagset.type_of[:, None] == tagset.type_of).astype(np.float64)
    both = (
        [(view.counts, prior)]
        if tagset.outside is None
        else [
            (view.counts, prior),
            (view.counts @ same_type, prior @ same_type),
        ]
    )
    columns = [np.broadcast_to(np.log(prior), view.counts.shape)]
    for counts, usual in both:
        share = counts / np.maximum(n, 1.0)
        columns += [share, np.log((counts + usual) / (n + 1))]
        running = np.concatenate([np.zeros((1, share.shape[1])), np.cumsum(share, axis=0)])
        columns += [_mean(running, *where) for near, far in _RINGS for where in _sides(start, end, near, far)]
        columns.append(_mean(running, start, end))
    at = np.arange(len(doc))
    columns += [np.broadcast_to((at == edge)[:, None], share.shape) for edge in (start, end - 1)]
    columns += [view.habits[doc], target[doc], target[doc] * share]
    return np.stack(columns, axis=-1)


def _sides(start: Integers, end: Integers, near: int, far: int) -> Iterator[tuple[Integers, Integers]]:
    """First token and the one after the last, ``near`` to ``far`` tokens to the left, and to the right."""
    at = np.arange(len(start))
    yield np.maximum(at - far, start), np.maximum(at - near + 1, start)
    yield np.minimum(at + near, end), np.minimum(at + far + 1, end)


def _mean(running: Floats, first: Integers, last: Integers) -> Floats:
    return np.asarray((running[last] - running[first]) / np.maximum(last - first, 1)[:, None])


def _scores(features: Floats, weights: Floats, roles: Integers) -> Floats:
    """``[N, J]``."""
    scores = np.zeros(features.shape[:2])
    for role, row in enumerate(weights):
        here = roles == role
        scores[:, here] = np.einsum("njf,f->nj", features[:, here], row[:-1]) + row[-1]
    return scores


def _softmax(scores: Floats) -> Floats:
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _fitted(features: Floats, observed: Floats, roles: Integers, fold: NDArray[np.bool_]) -> tuple[_Fit, _Fit]:
    """Weights without and with who is asked; ``fold`` parts the tokens in two by documents, to choose the ridge by."""
    mean, spread = features.mean(axis=(0, 1)), features.std(axis=(0, 1)) + 1e-6
    features = (features - mean) / spread

    def off(ridge: float) -> float:
        if fold.all() or not fold.any():
            return float(abs(np.log(ridge / _RIDGES[1])))
        wrong = 0.0
        for part in (fold, ~fold):
            weights = _descended(features[part], observed[part], roles, ridge / 2, _FEW_PASSES)
            p = _softmax(_scores(features[~part], weights, roles))
            wrong -= float((observed[~part] * np.log(np.maximum(p, 1e-12))).sum())
        return wrong

    ridge = min(_RIDGES, key=off)
    anybody, somebody = (
        _Fit(_descended(features[..., :n], observed, roles, ridge, _PASSES), mean[:n], spread[:n])
        for n in (features.shape[2] - _OF_TARGET, features.shape[2])
    )
    return anybody, somebody


def _descended(features: Floats, observed: Floats, roles: Integers, ridge: float, passes: int) -> Floats:
    """``[roles, F + 1]`` The weights of the least loss: −Σ ln p(observed) + ridge/2 Σ w²."""
    from scipy.optimize import minimize  # slow to load, and needed only here

    shape = (int(roles.max()) + 1, features.shape[2] + 1)
    flat_rows = [features[:, roles == role].reshape(-1, features.shape[2]) for role in range(shape[0])]
    seen = observed.sum(axis=1, keepdims=True)

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(shape)
        scores = np.zeros(observed.shape)
        for role, (row, own) in enumerate(zip(weights, flat_rows, strict=True)):
            scores[:, roles == role] = (np.einsum("nf,f->n", own, row[:-1]) + row[-1]).reshape(len(observed), -1)
        p = _softmax(scores)
        off = seen * p - observed
        slope = np.zeros(shape)
        for role, own in enumerate(flat_rows):
            here = off[:, roles == role]
            slope[role, :-1] = np.einsum("nf,n->f", own, here.ravel())  # not BLAS, whose threads wait for each other
            slope[role, -1] = here.sum()
        value = -float((observed * np.log(np.maximum(p, 1e-12))).sum()) + ridge / 2 * float((flat**2).sum())
        return value, slope.ravel() + ridge * flat

    found = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": passes})
    return np.asarray(found.x).reshape(shape)


def _blocks(doc_start: Integers, tokens: int) -> Iterator[tuple[int, int]]:
    """Documents that are looked at together, some ``tokens`` of them, from the first to before the last."""
    edges = np.unique(np.searchsorted(doc_start, np.arange(0, doc_start[-1] + tokens, tokens)))
    edges = np.unique(np.concatenate([[0], np.minimum(edges, len(doc_start) - 1), [len(doc_start) - 1]]))
    yield from zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
