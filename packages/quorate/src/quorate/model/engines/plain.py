"""One document in log space, with NumPy alone: what other engines fall back on, and can be checked against."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import TagSet
from quorate.model.parts.truth import Chain, log_mask

if TYPE_CHECKING:
    from quorate.crowd.crowd import Crowd
    from quorate.model.engines.protocol import Tables

Floats = NDArray[np.float64]


class Passed(NamedTuple):
    """Forward–backward: ln Z, posterior ``[L, J]``, Σ s ``[J, J]``, and the logarithms behind them ``[L, J]``."""

    log_z: float
    posterior: Floats
    pairs: Floats
    log_alpha: Floats
    log_beta: Floats


class Read(NamedTuple):
    """The decoded path ``[L]``, its log-probability, and (start, end, probability) of its spans."""

    path: NDArray[np.int32]
    log_probability: float
    spans: list[tuple[int, int, float]]


class Document(NamedTuple):
    """Where a document's tokens begin and end."""

    first: int
    last: int


def evidence_of(
    encoded: Crowd, tables: Tables, chain: Chain, known: NDArray[np.int32] | None, document: Document
) -> Floats:
    """``[L, J]`` Log-likelihood of all that was observed at each token, were its label j."""
    out = np.zeros((document.last - document.first, len(chain.start)))
    for row, t in zip(out, range(document.first, document.last), strict=True):
        events = slice(encoded.event_start[t], encoded.event_start[t + 1])
        said = tables.cells[encoded.event_cell[events]]
        if encoded.event_weight is not None:
            said = said * encoded.event_weight[events, None]
        row += tables.temper * said.sum(axis=0)
        if encoded.word[t] < len(tables.words):
            row += tables.words[encoded.word[t]]
        if known is not None and known[t] >= 0:
            row[np.arange(len(row)) != known[t]] = -np.inf
    out[-1] += chain.end
    return out


def passed(evidence: Floats, chain: Chain) -> Passed:
    """Forward–backward of one document; ln Z is −inf where no path is possible.

    >>> chain = Chain(np.log([0.5, 0.5]), np.log([[0.5, 0.5], [0.5, 0.5]]), np.zeros(2), True)
    >>> passed(np.log([[0.9, 0.1], [0.2, 0.8]]), chain).posterior.round(3)
    array([[0.9, 0.1],
           [0.2, 0.8]])
    """
    L, J = evidence.shape
    log_alpha, log_beta = np.empty((L, J)), np.zeros((L, J))
    log_alpha[0] = chain.start + evidence[0]
    for t in range(1, L):
        log_alpha[t] = np.logaddexp.reduce(log_alpha[t - 1][:, None] + chain.trans, axis=0) + evidence[t]
    for t in range(L - 1, 0, -1):
        log_beta[t - 1] = np.logaddexp.reduce(chain.trans + (evidence[t] + log_beta[t]), axis=1)
    log_z = float(np.logaddexp.reduce(log_alpha[-1]))
    pairs = np.zeros((J, J))
    if log_z == -np.inf:
        return Passed(log_z, np.zeros((L, J)), pairs, log_alpha, log_beta)
    for t in range(1, L):
        pairs += np.exp(log_alpha[t - 1][:, None] + chain.trans + (evidence[t] + log_beta[t]) - log_z)
    return Passed(log_z, np.exp(log_alpha + log_beta - log_z), pairs, log_alpha, log_beta)


def read_off(evidence: Floats, chain: Chain, tagset: TagSet, result: Passed, *, by_token: bool) -> Read:
    """The best valid sequence, or each token's best label, with its spans and their probabilities."""
    path = result.posterior.argmax(axis=1) if by_token else _viterbi(evidence, chain, tagset)
    inner = np.concatenate([[chain.start[path[0]]], chain.trans[path[:-1], path[1:]]])
    inner += evidence[np.arange(len(path)), path]
    spans = []
    for start, end in _spans(path, tagset):
        weight = inner[start + 1 : end].sum() + evidence[start, path[start]]
        weight += _opening(chain, tagset, result.log_alpha, path, start)
        weight += _closing(evidence, chain, tagset, result.log_beta, path, end)
        spans.append((start, end, float(np.exp(weight - result.log_z))))
    return Read(path.astype(np.int32), float(inner.sum() - result.log_z), spans)


def _viterbi(evidence: Floats, chain: Chain, tagset: TagSet) -> NDArray[np.int64]:
    L, J = evidence.shape
    trans = chain.trans + log_mask(tagset.allowed)
    best = chain.start + log_mask(tagset.allowed_first) + evidence[0]
    back = np.zeros((L, J), np.int64)
    for t in range(1, L):
        scores = best[:, None] + trans
        back[t] = scores.argmax(axis=0)
        best = scores.max(axis=0) + evidence[t]
    path = np.empty(L, np.int64)
    path[-1] = (best + log_mask(tagset.allowed_last)).argmax()
    for t in range(L - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path


def _spans(path: NDArray[np.int64], tagset: TagSet) -> list[tuple[int, int]]:
    goes_on = tagset.continues
    in_span = tagset.in_span
    spans, start = [], 0
    for t in range(1, len(path) + 1):
        if t == len(path) or not goes_on[path[t - 1], path[t]]:
            if in_span[path[start]]:
                spans.append((start, t))
            start = t
    return spans


def _opening(chain: Chain, tagset: TagSet, log_alpha: Floats, path: NDArray[np.int64], start: int) -> float:
    """ln of the weight of all that may stand before a span which begins at ``start``."""
    if start == 0:
        return float(chain.start[path[0]])
    before = log_alpha[start - 1] + chain.trans[:, path[start]]
    return float(np.logaddexp.reduce(np.where(tagset.continues[:, path[start]], -np.inf, before)))


def _closing(
    evidence: Floats, chain: Chain, tagset: TagSet, log_beta: Floats, path: NDArray[np.int64], end: int
) -> float:
    """ln of the weight of all that may stand after a span which ends before ``end``."""
    if end == len(path):
        return 0.0
    after = chain.trans[path[end - 1]] + evidence[end] + log_beta[end]
    return float(np.logaddexp.reduce(np.where(tagset.continues[path[end - 1]], -np.inf, after)))
