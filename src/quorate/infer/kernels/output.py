"""The compiled kernels of the output pass: posteriors, the best path, the probability of every span in it.

Letters as in :mod:`quorate.infer.kernels.chain`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quorate.infer.kernels.chain import Rows, add_set
from quorate.infer.kernels.layout import Slice, longest_of
from quorate.infer.kernels.single import Steps, log_sum, path_score, posteriors, viterbi

__all__ = ["SpanShape", "decode_slice", "decode_votes_slice"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]

NO_VOTE = 1e-100
TIE = 1e-9


class SpanShape(NamedTuple):
    """For each label: does it always open a span, or always close one (1 or 0), and of which type is it (−1: none)."""

    opens: Ints32
    closes: Ints32
    kind: Ints32


@njit(nogil=True, cache=True)
def span_log_weight(
    evidence: Floats,
    L: int,
    steps: Steps,
    shape: SpanShape,
    log_alpha: Floats,
    log_beta: Floats,
    path: Ints32,
    first: int,
    last: int,
) -> float:
    """ln of the weight of all paths in which tokens ``first`` to ``last`` carry these labels and are one whole span.

    Neither before nor after them may stand a label that continues the span; a label that always opens a span cannot
    have been continued from before, and after one that always closes a span anything may stand. ``log_alpha [J]`` is
    that of the token before, ``log_beta [J]`` that of the token after, where there are such.
    """
    J = steps.log_start.shape[0]
    kind = shape.kind[path[first]]
    terms = np.empty(J)
    label = path[first]
    score: float = steps.log_start[label]
    if first > 0:
        for j in range(J):
            continued = shape.kind[j] == kind and not shape.closes[j] and not shape.opens[label]
            terms[j] = -math.inf if continued else log_alpha[j] + steps.log_trans[j, label]
        score = log_sum(terms)
    score += evidence[first, label]
    for t in range(first + 1, last):
        score += steps.log_trans[path[t - 1], path[t]] + evidence[t, path[t]]
    label = path[last - 1]
    if last < L:
        for j in range(J):
            continues = shape.kind[j] == kind and not shape.opens[j] and not shape.closes[label]
            terms[j] = -math.inf if continues else steps.log_trans[label, j] + evidence[last, j] + log_beta[j]
        score += log_sum(terms)
    return score


@njit(nogil=True, cache=True)
def set_evidence(piece: Slice, rows: Rows) -> Floats:
    """``[sets, J]`` Log-likelihood of all that was said of a token, for each set: there are fewer of them."""
    J = rows.cells.shape[1]
    out = np.zeros((piece.set_start.shape[0] - 1, J))
    for u in range(out.shape[0]):
        add_set(piece, u, rows.cells, out[u])
        for j in range(J):
            out[u, j] *= rows.temper
    return out


@njit(nogil=True, cache=True)
def document_evidence(piece: Slice, rows: Rows, sets: Floats, d: int, out: Floats) -> None:
    """As :func:`quorate.infer.kernels.chain.gather_evidence`, from the evidence of sets."""
    J = rows.cells.shape[1]
    first, last = piece.doc_start[d], piece.doc_start[d + 1]
    for t in range(first, last):
        here, said = out[t - first], sets[piece.token_set[t]]
        word = piece.words[piece.token_word[t]]
        if word < rows.words.shape[0]:
            for j in range(J):
                here[j] = said[j] + rows.words[word, j]
        else:
            for j in range(J):
                here[j] = said[j]
        if piece.known.shape[0] and piece.known[t] >= 0:
            for j in range(J):
                if j != piece.known[t]:
                    here[j] = -math.inf
    if last > first:
        for j in range(rows.end.shape[0]):
            out[last - first - 1, j] += rows.end[j]


class _BothWays(NamedTuple):
    """Where the recursion writes to: ``alpha`` and ``beta`` ``[L, J]``, ``scale`` ``[L]``.

    Scaled, ln of alpha is ln alpha[t] + so_far[t], and that of beta ln beta[t] − so_far[t] + ln Z. Where ``so_far[0]``
    is nan they are logarithms already.
    """

    alpha: Floats
    beta: Floats
    scale: Floats
    so_far: Floats


@njit(nogil=True, cache=True)
def both_ways(evidence: Floats, scaled: Floats, L: int, steps: Steps, out: _BothWays, posterior: Floats) -> float:
    """Posteriors of L tokens of a chain, and the recursion; returns ln Z, −inf if no path is possible.

    ``scaled`` is a copy of ``evidence`` that may be spoilt.
    """
    J = evidence.shape[1]
    log_z, in_logs = posteriors(evidence, scaled, L, steps, False, posterior, out.alpha, out.beta, out.scale)
    if in_logs:
        out.so_far[0] = math.nan
        return log_z
    # From the scaled recursion to logarithms: ln Z up to a token is the running sum of its scales.
    so_far = 0.0
    for t in range(L):
        top = -math.inf
        for j in range(J):
            top = max(top, evidence[t, j])
        so_far += math.log(out.scale[t]) + top
        out.so_far[t] = so_far
    return log_z


@njit(nogil=True, cache=True)
def log_row(ways: _BothWays, values: Floats, t: int, add: float, out: Floats) -> None:
    """Logarithms of alpha (``add`` = so_far[t]) or beta (``add`` = ln Z − so_far[t]) at a token: few are needed."""
    as_it_is = math.isnan(ways.so_far[0])
    for j in range(out.shape[0]):
        value = values[t, j]
        if as_it_is:
            out[j] = value
        else:
            out[j] = math.log(value) + add if value > 0.0 else -math.inf


@njit(nogil=True, cache=True)
def alone(evidence: Floats, L: int, log_start: Floats, posterior: Floats) -> float:
    """Posteriors of L tokens that stand alone; returns ln Z, −inf if one of them can have no label."""
    J = log_start.shape[0]
    log_z = 0.0
    for t in range(L):
        row = posterior[t]
        top = -math.inf
        for j in range(J):
            row[j] = log_start[j] + evidence[t, j]
            top = max(top, row[j])
        if top == -math.inf:
            return top
        z = 0.0
        for j in range(J):
            row[j] = math.exp(row[j] - top)
            z += row[j]
        inverse = 1.0 / z
        for j in range(J):
            row[j] *= inverse
        log_z += math.log(z) + top
    return log_z


@njit(nogil=True, cache=True)
def span_probability_alone(posterior: Floats, L: int, shape: SpanShape, path: Ints32, first: int, last: int) -> float:
    """As :func:`span_log_weight`, where tokens stand alone: the posteriors within, and that no neighbour continues."""
    J = posterior.shape[1]
    kind = shape.kind[path[first]]
    probability = 1.0
    for t in range(first, last):
        probability *= posterior[t, path[t]]
    continued = 0.0
    if first > 0 and not shape.opens[path[first]]:
        for j in range(J):
            if shape.kind[j] == kind and not shape.closes[j]:
                continued += posterior[first - 1, j]
    continues = 0.0
    if last < L and not shape.closes[path[last - 1]]:
        for j in range(J):
            if shape.kind[j] == kind and not shape.opens[j]:
                continues += posterior[last, j]
    return probability * max(0.0, 1.0 - continued) * max(0.0, 1.0 - continues)


@njit(nogil=True, cache=True)
def end_of_span(path: Ints32, first: int, shape: SpanShape) -> int:
    """One past the last token of the span that begins at ``first``; where none does, one past ``first``."""
    kind = shape.kind[path[first]]
    stop = first + 1
    if kind >= 0:
        while (
            stop < path.shape[0]
            and not shape.closes[path[stop - 1]]
            and not shape.opens[path[stop]]
            and shape.kind[path[stop]] == kind
        ):
            stop += 1
    return stop


@njit(nogil=True, cache=True)
def decode_slice(
    piece: Slice,
    rows: Rows,
    steps: Steps,
    coupled: bool,
    allowed: Steps,
    allowed_end: Floats,
    shape: SpanShape,
    by_token: bool,
    posterior: Floats,
    path: Ints32,
    log_probability: Floats,
    log_zs: Floats,
    span_end: Ints32,
    span_probability: Floats,
) -> int:
    """Posterior, decoded path with its probability, its spans with theirs; the first document without a path, or −1.

    All of one slice, its tokens and documents counted from its first. Where labels are not ``coupled``, every token
    stands alone under ``steps.log_start``. ``allowed`` and ``allowed_end`` are for Viterbi: the steps, and the last
    labels, without what the scheme forbids. A span that begins at token t is written to ``span_end[t]`` and
    ``span_probability[t]``.
    """
    J = rows.cells.shape[1]
    longest = longest_of(piece.doc_start)
    evidence = np.empty((longest, J))
    scaled = np.empty((longest, J))
    ways = _BothWays(np.empty((longest, J)), np.empty((longest, J)), np.empty(longest), np.empty(longest))
    before, after = np.empty(J), np.empty(J)
    sets = set_evidence(piece, rows)
    back = np.empty((longest, J), dtype=np.int32)
    for d in range(piece.doc_start.shape[0] - 1):
        begin = piece.doc_start[d]
        L = piece.doc_start[d + 1] - begin
        if L == 0:
            continue
        document_evidence(piece, rows, sets, d, evidence)
        here_posterior = posterior[begin : begin + L]
        if coupled:
            for t in range(L):
                for j in range(J):
                    scaled[t, j] = evidence[t, j]
            log_z = both_ways(evidence, scaled, L, steps, ways, here_posterior)
        else:
            log_z = alone(evidence, L, steps.log_start, here_posterior)
        if not log_z > -math.inf:
            return d
        log_zs[d] = log_z
        here = path[begin : begin + L]
        if by_token:
            for t in range(L):
                here[t] = 0
                for j in range(1, J):
                    if posterior[begin + t, j] > posterior[begin + t, here[t]]:
                        here[t] = j
        else:
            viterbi(evidence, L, allowed, allowed_end, back, here)
        log_probability[d] = path_score(evidence, L, steps, here) - log_z
        t = 0
        while t < L:
            stop = end_of_span(here, t, shape)
            if shape.kind[here[t]] >= 0:
                span_end[begin + t] = begin + stop
                if coupled:
                    if t > 0:
                        log_row(ways, ways.alpha, t - 1, ways.so_far[t - 1], before)
                    if stop < L:
                        log_row(ways, ways.beta, stop, log_z - ways.so_far[stop], after)
                    weight = span_log_weight(evidence, L, steps, shape, before, after, here, t, stop)
                    span_probability[begin + t] = math.exp(weight - log_z)
                else:
                    span_probability[begin + t] = span_probability_alone(here_posterior, L, shape, here, t, stop)
            t = stop
    return -1


@njit(nogil=True, cache=True)
def decode_votes_slice(
    doc_start: Ints,
    shares: Floats,
    rank: Floats,
    allowed: Steps,
    allowed_end: Floats,
    shape: SpanShape,
    by_token: bool,
    first: int,
    last: int,
    path: Ints32,
    log_probability: Floats,
    span_end: Ints32,
    span_probability: Floats,
) -> None:
    """As :func:`decode_slice`, for shares of votes ``[N, J]``. Of labels with equal shares the one of lower rank wins.

    ``rank`` is ``[N, J]``, or ``[1, J]`` for all tokens alike. A label without a vote has a tiny share, not 0.
    """
    J = shares.shape[1]
    longest = 0
    for d in range(first, last):
        longest = max(longest, doc_start[d + 1] - doc_start[d])
    evidence = np.empty((longest, J))
    back = np.empty((longest, J), dtype=np.int32)
    for d in range(first, last):
        begin = doc_start[d]
        L = doc_start[d + 1] - begin
        if L == 0:
            continue
        here_shares = shares[begin : begin + L]
        here = path[begin : begin + L]
        for t in range(L):
            order = rank[begin + t] if rank.shape[0] > 1 else rank[0]
            if by_token:
                most = -1.0
                for j in range(J):
                    share = here_shares[t, j] * (1.0 - TIE * order[j])
                    if share > most:
                        most = share
                        here[t] = j
            else:
                for j in range(J):
                    evidence[t, j] = math.log(max(here_shares[t, j], NO_VOTE)) - TIE * order[j]
        if not by_token:
            viterbi(evidence, L, allowed, allowed_end, back, here)
        for t in range(L):
            log_probability[d] += math.log(max(here_shares[t, here[t]], NO_VOTE))
        t = 0
        while t < L:
            stop = end_of_span(here, t, shape)
            if shape.kind[here[t]] >= 0:
                span_end[begin + t] = begin + stop
                span_probability[begin + t] = span_probability_alone(here_shares, L, shape, here, t, stop)
            t = stop
