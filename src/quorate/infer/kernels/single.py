"""One document by itself: forward–backward, scaled, or in log space where scaling would lose too much; and Viterbi.

Whatever needs the recursion over one document calls :func:`posteriors`, :func:`expectations` or :func:`viterbi`. Many
documents side by side are done by :mod:`quorate.infer.kernels.lanes`, which sends those that lose too much here. What
all of them should give is said by NumPy in :mod:`quorate.infer.engines.plain`, against which they are tested.

Letters as in :mod:`quorate.infer.kernels.chain`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = [
    "LOST",
    "MARGIN",
    "Steps",
    "expectations",
    "forward_backward",
    "log_forward_backward",
    "log_sum",
    "path_score",
    "posteriors",
    "steps_of",
    "viterbi",
]

Floats = NDArray[np.float64]
Ints32 = NDArray[np.int32]

# A label whose scaled probability is below LOST may underflow to 0 in the next step. If the sum over labels
# then falls to within MARGIN nats of LOST, the lost label might have mattered: the document is done in log space.
LOST = 1e-300
MARGIN = 115.0
_LEAST_STEP = 1e-150  # a step less likely than this sends nearly every document to log space anyway


class Steps(NamedTuple):
    """The truth's first label ``[J]`` and its steps ``[J, J]``: logarithms; and as they are, flat.

    ``back`` is ``trans`` transposed. ``least`` is the smallest step that is possible at all, and at most 1. With
    ``in_logs`` some step is possible and yet 0 as a number, so that all must be done in log space.
    """

    log_start: Floats
    log_trans: Floats
    start: Floats
    trans: Floats
    back: Floats
    least: float
    in_logs: bool


@njit(nogil=True, cache=True)
def steps_of(log_start: Floats, log_trans: Floats) -> Steps:
    """The steps from their logarithms ``[J]`` and ``[J, J]``."""
    J = log_start.shape[0]
    start, trans, back = np.empty(J), np.empty(J * J), np.empty(J * J)
    least = 1.0
    in_logs = False
    for i in range(J):
        start[i] = math.exp(log_start[i])
        in_logs |= start[i] == 0.0 and log_start[i] > -math.inf
        for j in range(J):
            chance = math.exp(log_trans[i, j])
            in_logs |= chance == 0.0 and log_trans[i, j] > -math.inf
            if chance > 0.0:
                least = min(least, chance)
            trans[i * J + j] = chance
            back[j * J + i] = chance
    return Steps(log_start, log_trans, start, trans, back, max(least, _LEAST_STEP), in_logs)


@njit(nogil=True, cache=True)
def forward_backward(evidence: Floats, L: int, steps: Steps, alpha: Floats, beta: Floats, scale: Floats) -> float:
    """The scaled recursion over L tokens; returns ln Z, or nan if too much was lost to underflow.

    ``evidence`` becomes exp(evidence − its maximum), in place. ``alpha[t]`` is p(label | evidence up to t), ``beta`` is
    scaled so that alpha·beta is the posterior, ``scale[t]`` the sum before normalising.
    """
    J = steps.log_start.shape[0]
    if steps.in_logs:
        return math.nan
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
                    a[j] += p * steps.trans[i * J + j]
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
                b[j] += w * steps.back[i * J + j]
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
    J = steps.log_start.shape[0]
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
def posteriors(
    evidence: Floats,
    spoilt: Floats,
    L: int,
    steps: Steps,
    in_logs: bool,
    posterior: Floats,
    alpha: Floats,
    beta: Floats,
    scale: Floats,
) -> tuple[float, bool]:
    """``posterior`` ``[L, J]`` of one document; returns ln Z, and whether alpha and beta are logarithms.

    They are if that is asked for, or if scaling would lose too much; else they, ``scale`` and ``spoilt``, which comes
    as a copy of ``evidence``, are as :func:`forward_backward` leaves them. ln Z is −inf if no path is possible.
    """
    J = evidence.shape[1]
    log_z: float = math.nan if in_logs else forward_backward(spoilt, L, steps, alpha, beta, scale)
    if not math.isnan(log_z):
        for t in range(L):
            for j in range(J):
                posterior[t, j] = alpha[t, j] * beta[t, j]
        return log_z, False
    log_z = log_forward_backward(evidence, L, steps, alpha, beta)
    if log_z > -math.inf:
        for t in range(L):
            for j in range(J):
                posterior[t, j] = math.exp(alpha[t, j] + beta[t, j] - log_z)
    return log_z, True


@njit(nogil=True, cache=True)
def expectations(
    evidence: Floats, steps: Steps, in_logs: bool, posterior: Floats, pairs: Floats, alpha: Floats, beta: Floats
) -> float:
    """``posterior`` ``[L, J]`` of one document; expected neighbours are *added* to ``pairs``; returns ln Z.

    It is done in log space if that is asked for, or if too much would be lost otherwise; ln Z is −inf, and nothing is
    added, if no path is possible. ``alpha`` and ``beta`` are room to work in, at least ``[L, J]``.
    """
    L, J = evidence.shape
    weight, totals = evidence.copy(), np.empty(L)
    log_z, lost = posteriors(evidence, weight, L, steps, in_logs, posterior, alpha, beta, totals)
    if not log_z > -math.inf:
        return log_z
    if lost:
        for t in range(1, L):
            for i in range(J):
                for j in range(J):
                    step = steps.log_trans[i, j] + evidence[t, j]
                    pairs[i, j] += math.exp(alpha[t - 1, i] + step + beta[t, j] - log_z)
        return log_z
    for t in range(1, L):
        for i in range(J):
            before = alpha[t - 1, i] / totals[t]
            for j in range(J):
                pairs[i, j] += before * steps.trans[i * J + j] * weight[t, j] * beta[t, j]
    return log_z


@njit(nogil=True, cache=True)
def viterbi(evidence: Floats, L: int, steps: Steps, end: Floats, back: Ints32, path: Ints32) -> None:
    """The best path; ties go to the lower label. ``end`` is added at the last token."""
    J = end.shape[0]
    best = np.empty(J)
    step = np.empty(J)
    for j in range(J):
        best[j] = steps.log_start[j] + evidence[0, j]
    for t in range(1, L):
        for j in range(J):
            top = -math.inf
            argument = 0
            for i in range(J):
                score = best[i] + steps.log_trans[i, j]
                if score > top:
                    top = score
                    argument = i
            step[j] = top + evidence[t, j]
            back[t, j] = argument
        for j in range(J):
            best[j] = step[j]
    top = -math.inf
    for j in range(J):
        if best[j] + end[j] > top:
            top = best[j] + end[j]
            path[L - 1] = j
    for t in range(L - 1, 0, -1):
        path[t - 1] = back[t, path[t]]


@njit(nogil=True, cache=True)
def path_score(evidence: Floats, L: int, steps: Steps, path: Ints32) -> float:
    """ln of the joint weight of a path and the evidence."""
    score: float = steps.log_start[path[0]] + evidence[0, path[0]]
    for t in range(1, L):
        score += steps.log_trans[path[t - 1], path[t]] + evidence[t, path[t]]
    return score
