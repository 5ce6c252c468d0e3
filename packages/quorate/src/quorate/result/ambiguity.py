"""Ambiguity, apart from error: where annotators differ because the text allows two readings.

Each token t has two readings, i and j: the labels that most annotators gave it. Either one of them is the truth, and
another label is an error, or the text allows both, and a share ρ ~ Beta(2, 2) of annotators reads i, the others j.
With π_k[i, y] the probability that annotator k, who reads i, says y,

    p(labels | ρ) = Π_k (ρ π_k[i, y_k] + (1 − ρ) π_k[j, y_k]),

the truth being i is ρ = 1, being j is ρ = 0, and ambiguity is the integral over ρ. A truth i is as likely beforehand as
it is common, c_i, and two readings as c_i c_j. How often tokens are ambiguous, and how often each annotator slips, are
learned together by EM; so a careless annotator's lone opinion is error, and a split among careful ones is ambiguity.
Time is linear in labels. A document with one annotator has no differences: of it, only the crowd's share is known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import TagSet
from quorate.crowd.algebra import label_counts, laid_end_to_end, only_documents
from quorate.crowd.crowd import Crowd
from quorate.crowd.lots import hashed, lots_of
from quorate.wording import counted

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_PASSES = 200
_SETTLED = 1e-6  # change of the share of ambiguous tokens at which passes end
_MOST_EVENTS = 300_000  # by which habits are learned; more labels tell nothing new of them
_START = 0.05  # of tokens ambiguous, and of labels slips, before the first pass: where it ends does not hang on it
_LABELS_BEHIND = 10.0  # pseudo-labels of the crowd's mean in everyone's rate of slips
_EDGES = np.polynomial.legendre.leggauss(5)
_NODES = (_EDGES[0] + 1) / 2
_WEIGHTS = 3 * _EDGES[1] * _NODES * (1 - _NODES)  # ρ ~ Beta(2, 2): both readings have a following; these sum to 1
_RHO = np.concatenate([[1.0, 0.0], _NODES])


class Ambiguity(NamedTuple):
    """How ambiguous the text is, apart from annotators' slips.

    ``tokens [N]`` is the probability that a token allows two readings, of all documents end to end; ``documents [D]``
    how many tokens of each document do, as expected; ``share`` of all tokens; ``by_type`` of the tokens that someone
    gave this type, which share.

    >>> found = Ambiguity(np.array([0.1, 0.7, 0.0]), np.array([0.8, 0.0]), 0.27, {"PER": 0.4}, np.array([0, 2, 3]))
    >>> found.of(0), found.only(np.array([1])).tokens
    (array([0.1, 0.7]), array([0.]))
    """

    tokens: Floats
    documents: Floats
    share: float
    by_type: dict[str, float]
    doc_start: Integers

    def __repr__(self) -> str:
        documents = counted(len(self.documents), "document")
        return f"<Ambiguity: {self.share:.1%} of the tokens of {documents} allow two readings>"

    def of(self, d: int) -> Floats:
        """``[L]`` The probabilities of one document's tokens."""
        return self.tokens[self.doc_start[d] : self.doc_start[d + 1]]

    def only(self, documents: Integers) -> Ambiguity:
        """That of some of the documents; ``share`` and ``by_type`` stay those of all."""
        doc_start, token = laid_end_to_end(self.doc_start[documents], np.diff(self.doc_start)[documents])
        return self._replace(tokens=self.tokens[token], documents=self.documents[documents], doc_start=doc_start)


class _Observed(NamedTuple):
    """Tokens that the same people labelled the same are one, ``times`` over, and have two readings.

    ``token``, ``who``, ``label`` and ``weight`` are the labels of each; ``row [N]`` is which of them a token is.
    """

    row: Integers
    times: Floats
    token: Integers
    who: Integers
    label: Integers
    weight: Floats
    one: Integers
    other: Integers


class _Habits(NamedTuple):
    """``careful [K, 2]``: the share of labels as read, by annotator, outside of spans and in them. ``slip [J, J]``:
    labels given in place of a reading. ``common [J]`` how common each reading is, ``ambiguous`` how common two are."""

    careful: Floats
    slip: Floats
    common: Floats
    ambiguous: float


def ambiguity_of(encoded: Crowd) -> Ambiguity:
    """Separate ambiguity from error in the labels given.

    >>> import quorate
    >>> from quorate.crowd.encode import encode
    >>> corpus = quorate.sample()
    >>> found = ambiguity_of(encode(corpus, corpus.tagset()))
    >>> len(found.documents), 0 <= found.share < 0.1
    (320, True)
    """
    observed, counts = _observed(encoded)
    tokens = np.zeros(encoded.n_tokens)
    if len(observed.token) and len(encoded.tagset.labels) > 1:
        marked = _marked(encoded.tagset)
        habits = _learned(encoded, marked)
        habits = _passed(observed, habits, marked)[1]._replace(
            ambiguous=habits.ambiguous
        )  # everybody's, of all their labels
        tokens = _passed(observed, habits, marked)[0][observed.row]
        tokens[counts.sum(axis=1) == 0] = habits.ambiguous  # nothing is known of it but the crowd
    running = np.concatenate([[0.0], np.cumsum(tokens)])
    return Ambiguity(
        tokens,
        np.diff(running[encoded.doc_start]),
        float(tokens.mean()) if len(tokens) else 0.0,
        _by_type(tokens, counts, encoded.tagset),
        encoded.doc_start,
    )


def _learned(encoded: Crowd, marked: Integers) -> _Habits:
    """Habits by EM, of as many documents as tell them."""
    drawn = np.argsort(lots_of(encoded).document, kind="stable")
    many = np.cumsum(np.diff(encoded.event_start[encoded.doc_start])[drawn])
    n = int(np.searchsorted(many, _MOST_EVENTS)) + 1
    observed, counts = _observed(encoded if n >= encoded.n_docs else only_documents(encoded, np.sort(drawn[:n])))
    J, K = len(marked), len(encoded.annotators)
    common = (counts.sum(axis=0) + 1.0) / (counts.sum() + J)
    slip = np.where(np.eye(J, dtype=np.bool_), 0.0, common)
    slip /= slip.sum(axis=1, keepdims=True)
    habits = _Habits(np.full((K, 2), 1 - _START), slip, common, _START)
    for _ in range(_PASSES):
        before = habits.ambiguous
        habits = _passed(observed, habits, marked)[1]
        if abs(habits.ambiguous - before) < _SETTLED:
            break
    return habits


def _observed(encoded: Crowd) -> tuple[_Observed, Floats]:
    """The labels given, and ``[N, J]`` how many gave each token each label."""
    J = len(encoded.tagset.labels)
    label, who = encoded.cells.label[encoded.event_cell], encoded.cells.annotator[encoded.event_cell]
    weight = np.ones(len(label)) if encoded.event_weight is None else encoded.event_weight
    counts = label_counts(encoded)
    key = hashed(hashed(who * J + label) + np.rint(1e6 * weight).astype(np.uint64))
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(key)])  # sums wrap around, and so do differences
    start = encoded.event_start
    _, one, row, times = np.unique(
        running[start[1:]] - running[start[:-1]], return_index=True, return_inverse=True, return_counts=True
    )
    _, event = laid_end_to_end(start[one], np.diff(start)[one])
    common = (counts.sum(axis=0) + 1.0) / (counts.sum() + J)
    of = np.repeat(np.arange(len(one)), np.diff(start)[one])
    readings = _readings(counts[one], common)
    return _Observed(row, times.astype(np.float64), of, who[event], label[event], weight[event], *readings), counts


def _marked(tagset: TagSet) -> Integers:
    """``[J]`` 1 for labels in spans."""
    inside = np.ones(len(tagset.labels), np.bool_) if tagset.outside is None else tagset.in_span
    return np.asarray(inside, np.int64)


def _readings(counts: Floats, common: Floats) -> tuple[Integers, Integers]:
    """The two labels that most gave each token; where there is none, the commoner."""
    ranked = counts + common / 2  # a half at most: less than one label
    first = ranked.argmax(axis=1)
    ranked[np.arange(len(ranked)), first] = -1.0
    return first, ranked.argmax(axis=1)


def _passed(observed: _Observed, habits: _Habits, marked: Integers) -> tuple[Floats, _Habits]:
    """How likely each token is ambiguous, and habits learned with that: one pass of EM."""
    N, J = len(observed.one), len(marked)
    readings = observed.one[observed.token], observed.other[observed.token]
    of_first, of_second = (_label_if_read(habits, marked, one, observed) for one in readings)
    log = np.zeros((N, len(_RHO)))
    for node, rho in enumerate(_RHO):
        mixed = observed.weight * np.log(rho * of_first + (1 - rho) * of_second)
        log[:, node] = np.bincount(observed.token, mixed, minlength=N)
    first, second = habits.common[observed.one], habits.common[observed.other]
    of_pair = habits.ambiguous * 2 * first * second / (1 - (habits.common**2).sum())
    alone = (1 - habits.ambiguous) * np.stack([first, second], axis=1)
    prior = np.concatenate([alone, of_pair[:, None] * _WEIGHTS], axis=1)
    log -= log.max(axis=1, keepdims=True)
    belief = prior * np.exp(log)
    belief /= belief.sum(axis=1, keepdims=True)
    found = belief[:, 2:].sum(axis=1)

    took_first = np.zeros(len(observed.token))
    for node, rho in enumerate(_RHO):
        took_first += belief[observed.token, node] * rho * of_first / (rho * of_first + (1 - rho) * of_second)
    right, read = np.zeros_like(habits.careful), np.zeros_like(habits.careful)
    slip, common = np.zeros((J, J)), np.zeros(J)
    for one, share in zip(readings, (took_first, 1 - took_first), strict=True):
        took, as_read = share * observed.weight * observed.times[observed.token], one == observed.label
        whose = observed.who * 2 + marked[one]
        read += np.bincount(whose, took, minlength=read.size).reshape(read.shape)
        right += np.bincount(whose[as_read], took[as_read], minlength=read.size).reshape(read.shape)
        slip += np.bincount(one * J + observed.label, np.where(as_read, 0.0, took), minlength=J * J).reshape(J, J)
        common += np.bincount(one, took, minlength=J)
    usual = (right.sum(axis=0) + 1 - _START) / (read.sum(axis=0) + 1)
    careful = (right + _LABELS_BEHIND * usual) / (read + _LABELS_BEHIND)
    slip += habits.common * (1 - np.eye(J))
    slip /= slip.sum(axis=1, keepdims=True)
    there = np.bincount(observed.token, minlength=N) > 0
    ambiguous = float(((found * observed.times)[there].sum() + _START) / (observed.times[there].sum() + 1))
    return found, _Habits(careful, slip, (common + 1) / (common.sum() + J), ambiguous)


def _label_if_read(habits: _Habits, marked: Integers, reading: Integers, observed: _Observed) -> Floats:
    """``[E]`` The probability of every label if its annotator read this."""
    careful = habits.careful[observed.who, marked[reading]]
    as_read = reading == observed.label
    return np.where(as_read, careful, (1 - careful) * habits.slip[reading, observed.label]) + np.finfo(np.float64).tiny


def _by_type(found: Floats, counts: Floats, tagset: TagSet) -> dict[str, float]:
    """Of the tokens that someone gave a type, the share that is ambiguous."""
    names = tagset.labels if tagset.outside is None else tagset.span_types
    shares = {}
    for name in names:
        columns = [j for j, (_, kind) in enumerate(tagset.parts) if kind == name and j != tagset.outside]
        given = counts[:, columns].sum(axis=1) > 0
        shares[name] = float(found[given].mean()) if given.any() else 0.0
    return shares
