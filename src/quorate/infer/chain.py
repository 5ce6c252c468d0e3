"""The compiled kernels of a pass: evidence, forward–backward, votes, counts. Pure functions on arrays.

The recursion is scaled: one exp per token and label, one log per token. Where labels are so many nats apart that a
token's sum vanishes, the document is done again in log space. EM and VB use the same kernels: VB only passes rows that
sum to less than 1.

Letters: D documents, N tokens, E events, G cells, V words, J labels, L tokens of one document.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = [
    "Data",
    "Rows",
    "Steps",
    "chain_slice",
    "count_slice",
    "group_members",
    "independent_slice",
    "vote_slice",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]

# What falls below LOST next to the best label is, or after one more step may be, lost to underflow; where everything
# else then falls almost as far, what was lost might have mattered.
LOST = 1e-300
MARGIN = 115.0


class Data(NamedTuple):
    """What was observed. Document d has tokens ``doc_start[d]`` to ``doc_start[d + 1]``; token t has events likewise.

    ``event_weight`` may be empty (all events count 1), and so may ``known`` (no label is known; else −1 where not) and
    ``times`` (every token occurs once; only for documents of one token).
    """

    doc_start: Ints
    event_start: Ints
    event_cell: Ints32
    event_weight: Floats
    word: Ints32
    known: Ints32
    times: Floats


class Rows(NamedTuple):
    """Log-likelihoods of what was observed, by truth: of a cell ``[G, J]``, of a word ``[V, J]`` (empty: no text).

    ``temper`` is how much of a cell's row counts; ``end`` ``[J]`` is 0, or −inf where a document may not end so.
    """

    cells: Floats
    words: Floats
    temper: float
    end: Floats


class Steps(NamedTuple):
    """The truth's first label ``[J]`` and its steps ``[J, J]``: logarithms, and as they are (``back``: transposed).

    ``least`` is the smallest step that is possible at all, and at most 1.
    """

    log_start: Floats
    log_trans: Floats
    start: Floats
    trans: Floats
    back: Floats
    least: float


@njit(nogil=True, cache=True)
def longest_document(data: Data, first: int, last: int) -> int:
    """The most tokens that a document has."""
    longest = 0
    for d in range(first, last):
        longest = max(longest, data.doc_start[d + 1] - data.doc_start[d])
    return longest


@njit(nogil=True, cache=True)
def gather_evidence(data: Data, rows: Rows, d: int, out: Floats) -> None:
    """``out[t, j]``: log-likelihood of all that was observed at token t of document d, were its label j.

    Its events' rows and its word's row, added up; −inf off a known label. What may end a document is taken as evidence
    at its last token.
    """
    J = rows.cells.shape[1]
    weighted = data.event_weight.shape[0] > 0
    n_words = rows.words.shape[0]
    first, last = data.doc_start[d], data.doc_start[d + 1]
    for t in range(first, last):
        row = out[t - first]
        for j in range(J):
            row[j] = 0.0
        for e in range(data.event_start[t], data.event_start[t + 1]):
            said = rows.cells[data.event_cell[e]]
            if weighted:
                w = data.event_weight[e]
                for j in range(J):
                    row[j] += w * said[j]
            else:
                for j in range(J):
                    row[j] += said[j]
        for j in range(J):
            row[j] *= rows.temper
        if n_words and data.word[t] < n_words:
            stands = rows.words[data.word[t]]
            for j in range(J):
                row[j] += stands[j]
        if data.known.shape[0] and data.known[t] >= 0:
            for j in range(J):
                if j != data.known[t]:
                    row[j] = -math.inf
    if last > first:
        for j in range(J):
            out[last - first - 1, j] += rows.end[j]


@njit(nogil=True, cache=True)
def forward_backward(evidence: Floats, L: int, steps: Steps, alpha: Floats, beta: Floats, scale: Floats) -> float:
    """The scaled recursion over L tokens; returns ln Z, or nan if too much was lost to underflow.

    ``evidence`` becomes exp(evidence − its maximum), in place. ``alpha[t]`` is p(label | evidence up to t), ``beta`` is
    scaled so that alpha·beta is the posterior, ``scale[t]`` the sum before normalising.
    """
    J = steps.start.shape[0]
    trans, back = steps.trans, steps.back
    lost_below = LOST / steps.least
    fall = math.log(lost_below) + MARGIN
    log_z = 0.0
    lost = False
    since_loss = 0.0
    for t in range(L):
        here = evidence[t]
        a = alpha[t]
        top = -math.inf
        for j in range(J):
            top = max(top, here[j])
        if top == -math.inf:
            return math.nan
        if t == 0:
            for j in range(J):
                a[j] = steps.start[j]
        else:
            before = alpha[t - 1]
            for j in range(J):
                a[j] = 0.0
            for i in range(J):
                p = before[i]
                for j in range(J):
                    a[j] += p * trans[i, j]
        total = 0.0
        for j in range(J):
            weight = math.exp(here[j] - top)
            product = a[j] * weight
            if product < lost_below and a[j] > 0.0 and here[j] > -math.inf:
                lost = True
            here[j] = weight
            a[j] = product
            total += product
        if not total > LOST:
            return math.nan
        log_total = math.log(total)
        if lost:
            since_loss += log_total
            if since_loss < fall:
                return math.nan
        inverse = 1.0 / total
        for j in range(J):
            a[j] *= inverse
        scale[t] = total
        log_z += log_total + top
    for j in range(J):
        beta[L - 1, j] = 1.0
    for t in range(L - 1, 0, -1):
        b = beta[t - 1]
        for j in range(J):
            b[j] = 0.0
        inverse = 1.0 / scale[t]
        for i in range(J):
            w = evidence[t, i] * beta[t, i] * inverse
            for j in range(J):
                b[j] += w * back[i, j]
        # A label that cannot be reached has no posterior, however well it would explain the rest.
        for j in range(J):
            if alpha[t - 1, j] == 0.0:
                b[j] = 0.0
    return log_z


@njit(nogil=True, cache=True)
def log_sum(values: Floats) -> float:
    """ln Σ e^x, −inf for all −inf."""
    top = -math.inf
    for j in range(values.shape[0]):
        top = max(top, values[j])
    if top == -math.inf:
        return top
    total = 0.0
    for j in range(values.shape[0]):
        total += math.exp(values[j] - top)
    return top + math.log(total)


@njit(nogil=True, cache=True)
def log_forward_backward(evidence: Floats, L: int, steps: Steps, log_alpha: Floats, log_beta: Floats) -> float:
    """The recursion in log space; returns ln Z, −inf if no path is possible. ``evidence`` is left as it is."""
    J = steps.start.shape[0]
    terms = np.empty(J)
    for t in range(L):
        for j in range(J):
            if t == 0:
                log_alpha[0, j] = steps.log_start[j] + evidence[0, j]
            else:
                for i in range(J):
                    terms[i] = log_alpha[t - 1, i] + steps.log_trans[i, j]
                log_alpha[t, j] = log_sum(terms) + evidence[t, j]
    for j in range(J):
        log_beta[L - 1, j] = 0.0
    for t in range(L - 1, 0, -1):
        for i in range(J):
            for j in range(J):
                terms[j] = steps.log_trans[i, j] + evidence[t, j] + log_beta[t, j]
            log_beta[t - 1, i] = log_sum(terms)
    return log_sum(log_alpha[L - 1])


@njit(nogil=True, cache=True)
def chain_slice(
    data: Data, rows: Rows, steps: Steps, first: int, last: int, posterior: Floats, starts: Floats, pairs: Floats
) -> tuple[float, int]:
    """One pass over documents ``first`` to ``last``: Σ ln Z, and the first document without a path, or −1.

    Fills ``posterior``; adds the first tokens' posteriors to ``starts`` and Σ s to ``pairs``.
    """
    J = rows.cells.shape[1]
    longest = longest_document(data, first, last)
    evidence = np.empty((longest, J))
    alpha = np.empty((longest, J))
    beta = np.empty((longest, J))
    scale = np.empty(longest)
    unscaled = np.zeros((J, J))  # Σ s without the factor T, which is the same for all tokens
    weight = np.empty(J)
    total = 0.0
    for d in range(first, last):
        begin = data.doc_start[d]
        L = data.doc_start[d + 1] - begin
        if L == 0:
            continue
        gather_evidence(data, rows, d, evidence)
        log_z = forward_backward(evidence, L, steps, alpha, beta, scale)
        if math.isnan(log_z):
            log_z = log_chain(data, rows, steps, d, posterior, pairs)
            if not log_z > -math.inf:
                return total, d
        else:
            for t in range(L):
                for j in range(J):
                    posterior[begin + t, j] = alpha[t, j] * beta[t, j]
            for t in range(1, L):
                inverse = 1.0 / scale[t]
                for j in range(J):
                    weight[j] = evidence[t, j] * beta[t, j] * inverse
                for i in range(J):
                    p = alpha[t - 1, i]
                    for j in range(J):
                        unscaled[i, j] += p * weight[j]
        for j in range(J):
            starts[j] += posterior[begin, j]
        total += log_z
    for i in range(J):
        for j in range(J):
            if steps.trans[i, j] > 0.0:
                pairs[i, j] += unscaled[i, j] * steps.trans[i, j]
    return total, -1


@njit(nogil=True, cache=True)
def log_chain(data: Data, rows: Rows, steps: Steps, d: int, posterior: Floats, pairs: Floats) -> float:
    """Posterior and Σ s of one document in log space; returns ln Z."""
    J = rows.cells.shape[1]
    begin = data.doc_start[d]
    L = data.doc_start[d + 1] - begin
    evidence = np.empty((L, J))
    log_alpha = np.empty((L, J))
    log_beta = np.empty((L, J))
    gather_evidence(data, rows, d, evidence)
    log_z = log_forward_backward(evidence, L, steps, log_alpha, log_beta)
    if log_z > -math.inf:
        for t in range(L):
            for j in range(J):
                posterior[begin + t, j] = math.exp(log_alpha[t, j] + log_beta[t, j] - log_z)
        for t in range(1, L):
            for i in range(J):
                for j in range(J):
                    step = steps.log_trans[i, j] + evidence[t, j]
                    pairs[i, j] += math.exp(log_alpha[t - 1, i] + step + log_beta[t, j] - log_z)
    return log_z


@njit(nogil=True, cache=True)
def independent_slice(
    data: Data, rows: Rows, steps: Steps, first: int, last: int, posterior: Floats, labels: Floats
) -> float:
    """One pass in which every token stands alone: Σ ln Z. Fills ``posterior`` and adds it up in ``labels``."""
    J = rows.cells.shape[1]
    total = 0.0
    for d in range(first, last):
        begin, end = data.doc_start[d], data.doc_start[d + 1]
        gather_evidence(data, rows, d, posterior[begin:end])
        for t in range(begin, end):
            row = posterior[t]
            top = -math.inf
            for j in range(J):
                row[j] += steps.log_start[j]
                top = max(top, row[j])
            z = 0.0
            for j in range(J):
                row[j] = math.exp(row[j] - top)
                z += row[j]
            inverse = 1.0 / z
            times = data.times[t] if data.times.shape[0] else 1.0
            for j in range(J):
                row[j] *= inverse
                labels[j] += times * row[j]
            total += times * (math.log(z) + top)
    return total


@njit(nogil=True, cache=True)
def vote_slice(
    data: Data,
    votes: Floats,
    smoothing: float,
    first: int,
    last: int,
    posterior: Floats,
    starts: Floats,
    pairs: Floats,
) -> None:
    """Fill ``posterior`` with shares of votes: an event votes with its cell's row. Pairs as if tokens stood alone."""
    J = votes.shape[1]
    weighted = data.event_weight.shape[0] > 0
    for d in range(first, last):
        for t in range(data.doc_start[d], data.doc_start[d + 1]):
            row = posterior[t]
            for j in range(J):
                row[j] = smoothing
            for e in range(data.event_start[t], data.event_start[t + 1]):
                w = data.event_weight[e] if weighted else 1.0
                for j in range(J):
                    row[j] += w * votes[data.event_cell[e], j]
            if data.known.shape[0] and data.known[t] >= 0:
                for j in range(J):
                    row[j] = 1.0 if j == data.known[t] else 0.0
            total = 0.0
            for j in range(J):
                total += row[j]
            for j in range(J):
                row[j] = row[j] / total if total > 0.0 else 1.0 / J
            if t == data.doc_start[d]:
                times = data.times[t] if data.times.shape[0] else 1.0
                for j in range(J):
                    starts[j] += times * row[j]
            else:
                for i in range(J):
                    for j in range(J):
                        pairs[i, j] += posterior[t - 1, i] * row[j]


@njit(nogil=True, cache=True)
def group_members(member_of: Ints32, start: Ints, weight: Floats, n_groups: int) -> tuple[Ints, Ints32, Floats]:
    """From "token → groups" to "group → tokens": where each group's tokens start, the tokens, and their weights.

    Token t is a member of the groups ``member_of[start[t]:start[t + 1]]``; those beyond ``n_groups`` are left out.
    """
    places = np.zeros(n_groups + 1, np.int64)
    for e in range(member_of.shape[0]):
        if member_of[e] < n_groups:
            places[member_of[e] + 1] += 1
    for g in range(n_groups):
        places[g + 1] += places[g]
    begin = places.copy()
    token = np.empty(begin[n_groups], np.int32)
    weights = np.empty(begin[n_groups] if weight.shape[0] else 0)
    for t in range(start.shape[0] - 1):
        for e in range(start[t], start[t + 1]):
            group = member_of[e]
            if group < n_groups:
                token[places[group]] = t
                if weight.shape[0]:
                    weights[places[group]] = weight[e]
                places[group] += 1
    return begin, token, weights


@njit(nogil=True, cache=True)
def count_slice(
    start: Ints, token: Ints32, weight: Floats, temper: float, first: int, last: int, posterior: Floats, counts: Floats
) -> None:
    """``counts[g]`` = ``temper``·Σ of the posteriors of group g's tokens ``token[start[g]:start[g + 1]]``, weighted."""
    J = posterior.shape[1]
    weighted = weight.shape[0] > 0
    for g in range(first, last):
        row = counts[g]
        for j in range(J):
            row[j] = 0.0
        for e in range(start[g], start[g + 1]):
            here = posterior[token[e]]
            w = weight[e] if weighted else 1.0
            for j in range(J):
                row[j] += w * here[j]
        for j in range(J):
            row[j] *= temper
