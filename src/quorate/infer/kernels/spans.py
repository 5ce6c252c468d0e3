"""The compiled kernels of the span model: what annotators did with each candidate, sums over sets of candidates.

Letters: D documents, C candidates, Q pairs of a document and an annotator who saw it, M marks, R responses (one for
each pair and candidate of a document, pair by pair), K annotators. Candidates of a document are sorted by end, then
start; those that overlap, directly or through others, are a *cluster*, and clusters stand side by side.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quorate.infer.kernels.likely import SpanLabels

__all__ = [
    "EXACT",
    "MISSED",
    "N_RESPONSES",
    "OTHER_TYPE",
    "OTHER_TYPE_SHIFTED",
    "SHIFTED",
    "SPLIT",
    "UNSEEN",
    "Problem",
    "SpanSums",
    "best_set",
    "cluster_of",
    "likeliest_set",
    "log_weight_of_set",
    "overlapping",
    "responses",
    "span_pass",
    "word_support",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]

# What an annotator did with a true span.
EXACT, SHIFTED, SPLIT, OTHER_TYPE, OTHER_TYPE_SHIFTED, MISSED = range(6)
N_RESPONSES = 6
UNSEEN = 6  # was not shown all of its tokens: says nothing


class Problem(NamedTuple):
    """Candidates, and what everybody did with each: what a pass goes over.

    Document d has the candidates ``first[d]`` to ``first[d + 1]``, the pairs ``pair_start[d]`` to ``pair_start[d + 1]``
    and responses from ``response_start[d]`` on. Annotator ``who[p]`` of a pair counts ``weight[p]``. ``spread`` is ln
    of the number of candidates among which a boundary that is off is chosen, ``prior`` the log odds of a candidate
    before anybody is asked. ``by_start`` are the candidates of each cluster sorted by start, counted from the cluster's
    first. ``apart`` is how many tokens must lie between two spans of one type.
    """

    start: Ints
    end: Ints
    kind: Ints
    cluster: Ints
    by_start: Ints
    first: Ints
    pair_start: Ints
    who: Ints
    weight: Floats
    response_start: Ints
    response: Codes
    spread: Floats
    prior: Floats
    apart: int


class SpanSums(NamedTuple):
    """What a pass over some documents brings back: Σ ln Z, and counts of responses and of marks ``[K, ...]``."""

    log_z: float
    responses: Floats
    marks: Floats


@njit(nogil=True, cache=True)
def cluster_of(start: Ints, end: Ints, first: Ints, apart: int) -> Ints:
    """``[C]`` The number of each candidate's cluster, ascending; candidates are sorted by end."""
    cluster = np.zeros(start.shape[0], np.int64)
    number = -1
    for d in range(first.shape[0] - 1):
        leftmost = 1 << 62
        # From the right: a cluster ends where everything that follows begins behind it.
        for c in range(first[d + 1] - 1, first[d] - 1, -1):
            if end[c] + apart <= leftmost:
                number += 1
                leftmost = start[c]
            leftmost = min(leftmost, start[c])
            cluster[c] = number
        # Numbers ascend with the candidates.
        low, high = first[d], first[d + 1] - 1
        if high >= low:
            bottom, top = cluster[high], cluster[low]
            for c in range(low, high + 1):
                cluster[c] = bottom + top - cluster[c]
    return cluster


@njit(nogil=True, cache=True)
def overlapping(start: Ints, end: Ints, kind: Ints, cluster: Ints) -> Ints:
    """``[C]`` How many other candidates of the same type overlap each."""
    C = start.shape[0]
    count = np.zeros(C, np.int64)
    low = 0
    for c in range(C):
        if cluster[c] != cluster[low]:
            low = c
        for other in range(low, c):
            if kind[other] == kind[c] and start[other] < end[c] and start[c] < end[other]:
                count[c] += 1
                count[other] += 1
    return count


@njit(nogil=True, cache=True)
def responses(
    start: Ints,
    end: Ints,
    kind: Ints,
    first: Ints,
    pair_start: Ints,
    response_start: Ints,
    mark_start: Ints,
    mark_from: Ints,
    mark_to: Ints,
    mark_kind: Ints,
    run_start: Ints,
    run_from: Ints,
    run_to: Ints,
    out: Codes,
) -> None:
    """What each annotator did with each candidate of the documents they saw.

    Pair p marked ``mark_start[p]`` to ``mark_start[p + 1]``, and saw the runs of tokens ``run_start[p]`` to
    ``run_start[p + 1]``. Of several marks on one candidate the one of its type that overlaps it most counts.
    """
    for d in range(first.shape[0] - 1):
        r = response_start[d]
        for p in range(pair_start[d], pair_start[d + 1]):
            for c in range(first[d], first[d + 1]):
                seen = False
                for run in range(run_start[p], run_start[p + 1]):
                    if run_from[run] <= start[c] and end[c] <= run_to[run]:
                        seen = True
                        break
                if not seen:
                    out[r] = UNSEEN
                    r += 1
                    continue
                best, shared, same, pieces = -1, 0, False, 0
                # Marks of one annotator are sorted and do not overlap: those before the first that ends behind
                # the candidate's start cannot touch it.
                low, high = mark_start[p], mark_start[p + 1]
                while low < high:
                    middle = (low + high) // 2
                    if mark_to[middle] <= start[c]:
                        low = middle + 1
                    else:
                        high = middle
                for m in range(low, mark_start[p + 1]):
                    if mark_from[m] >= end[c]:
                        break
                    common = min(mark_to[m], end[c]) - max(mark_from[m], start[c])
                    if common <= 0:
                        continue
                    alike = mark_kind[m] == kind[c]
                    pieces += alike
                    if best < 0 or (alike and not same) or (alike == same and common > shared):
                        best, shared, same = m, common, alike
                if best < 0:
                    out[r] = MISSED
                else:
                    bounds = mark_from[best] == start[c] and mark_to[best] == end[c]
                    if same:
                        out[r] = EXACT if bounds else (SPLIT if pieces > 1 else SHIFTED)
                    else:
                        out[r] = OTHER_TYPE if bounds else OTHER_TYPE_SHIFTED
                r += 1


@njit(nogil=True, cache=True)
def word_support(
    start: Ints, end: Ints, kind: Ints, word: NDArray[np.int32], rows: Floats, labels: SpanLabels, outside: int
) -> Floats:
    """``[C]`` By how much the words of each candidate speak for its type, and not for ``O``, in nats.

    ``rows [V, J]`` is ln of each word's probability by label; ``labels`` are those that a span is written with.
    """
    support = np.zeros(start.shape[0])
    for c in range(start.shape[0]):
        begin, final = start[c], end[c] - 1
        for t in range(begin, end[c]):
            if word[t] >= rows.shape[0]:
                continue
            if begin == final:
                label = labels.single[kind[c]]
            elif t == begin:
                label = labels.first[kind[c]]
            elif t == final:
                label = labels.last[kind[c]]
            else:
                label = labels.inside[kind[c]]
            support[c] += rows[word[t], label] - rows[word[t], outside]
    return support


@njit(nogil=True, cache=True)
def _weigh(p: Problem, d: int, of_true: Floats, of_free: Floats, temper: float, true: Floats, free: Floats) -> None:
    """The log weights of document d's candidates: of being true, and of overlapping nothing that is."""
    a, b = p.first[d], p.first[d + 1]
    for c in range(a, b):
        true[c - a] = 0.0
        free[c - a] = 0.0
    r = p.response_start[d]
    for pair in range(p.pair_start[d], p.pair_start[d + 1]):
        k, weight = p.who[pair], p.weight[pair]
        for c in range(a, b):
            said = p.response[r]
            r += 1
            if said == UNSEEN:
                continue
            score = of_true[k, said]
            if said in (SHIFTED, SPLIT, OTHER_TYPE_SHIFTED):
                score -= p.spread[c]
            true[c - a] += weight * score
            free[c - a] += weight * of_free[k, 1 if said == EXACT else 0]
    for c in range(a, b):
        true[c - a] = temper * true[c - a] + p.prior[c]
        free[c - a] *= temper


@njit(nogil=True, cache=True)
def _log_sum(values: Floats, n: int) -> float:
    top = -math.inf
    for i in range(n):
        top = max(top, values[i])
    if top == -math.inf:
        return top
    total = 0.0
    for i in range(n):
        total += math.exp(values[i] - top)
    return top + math.log(total)


@njit(nogil=True, cache=True)
def _cluster(
    start: Ints,
    end: Ints,
    kind: Ints,
    by_start: Ints,
    apart: int,
    true: Floats,
    free: Floats,
    after: Floats,
    values: Floats,
    is_true: Floats,
    is_free: Floats,
) -> float:
    """Σ over the sets of a cluster's candidates that do not overlap; returns ln Z.

    A set weighs the product of its own ``true`` and of ``free`` of every candidate that overlaps none of it. So two
    true spans that follow each other weigh, besides themselves, what is free in the gap between them. ``is_true`` and
    ``is_free`` become the probabilities; ``after[i]`` is ln of the weight of all that may follow true candidate i.
    Two sweeps: candidate −1 stands for the left end, n for the right one.
    """
    n = start.shape[0]
    log_z: float = 0.0
    if n == 1:
        top = max(true[0], free[0])
        log_z = top + math.log(math.exp(true[0] - top) + math.exp(free[0] - top))
        is_true[0] = math.exp(true[0] - log_z)
        is_free[0] = math.exp(free[0] - log_z)
        return log_z
    for i in range(n - 1, -2, -1):
        bound = end[i] if i >= 0 else -(1 << 62)
        gap, c, count = 0.0, max(i, 0), 0
        for place in range(n):
            j = by_start[place]
            if start[j] < bound + (apart if i >= 0 and kind[i] == kind[j] else 0):
                continue
            while c < n and end[c] <= start[j]:
                if start[c] >= bound:
                    gap += free[c]
                c += 1
            values[count] = gap + true[j] + after[j]
            count += 1
        while c < n:
            if start[c] >= bound:
                gap += free[c]
            c += 1
        values[count] = gap
        total = _log_sum(values, count + 1)
        if i >= 0:
            after[i] = total
        else:
            log_z = total
    for c in range(n):
        is_true[c] = 0.0
        is_free[c] = 0.0
    for i in range(-1, n):
        if i >= 0 and is_true[i] <= 0.0:
            continue
        until = 0.0 if i < 0 else math.log(is_true[i]) + log_z - after[i]
        bound = end[i] if i >= 0 else -(1 << 62)
        gap, c, reached = 0.0, max(i, 0), 0.0
        for place in range(n):
            j = by_start[place]
            if start[j] < bound + (apart if i >= 0 and kind[i] == kind[j] else 0):
                continue
            while c < n and end[c] <= start[j]:
                if start[c] >= bound:
                    gap += free[c]
                    is_free[c] -= reached  # the next true span is one that begins before c ends
                c += 1
            step = math.exp(until + gap + true[j] + after[j] - log_z)
            is_true[j] += step
            reached += step
        while c < n:
            if start[c] >= bound:
                gap += free[c]
                is_free[c] -= reached
            c += 1
        total = reached + math.exp(until + gap - log_z)
        for c in range(max(i, 0), n):
            if start[c] >= bound:
                is_free[c] += total
    for c in range(n):
        is_true[c] = min(is_true[c], 1.0)
        is_free[c] = min(max(is_free[c], 0.0), 1.0)
    return log_z


@njit(nogil=True, cache=True)
def span_pass(
    p: Problem,
    of_true: Floats,
    of_free: Floats,
    temper: float,
    sharpness: float,
    low: int,
    high: int,
    is_true: Floats,
    log_zs: Floats,
) -> SpanSums:
    """One pass over the documents ``low`` to ``high``.

    ``of_true [K, N_RESPONSES]`` and ``of_free [K, 2]`` (not marked, marked) are log probabilities of what annotators do
    with a true span, and with one that overlaps nothing true. Weights are raised to ``sharpness``. ``is_true [C]`` and
    ``log_zs [D]`` are filled in.
    """
    K = of_true.shape[0]
    counted, marked = np.zeros((K, N_RESPONSES)), np.zeros((K, 2))
    most = 0
    for d in range(low, high):
        most = max(most, p.first[d + 1] - p.first[d])
    true, free, is_free = np.empty(most), np.empty(most), np.empty(most)
    after, values = np.empty(most), np.empty(most + 1)
    total = 0.0
    for d in range(low, high):
        a, b = p.first[d], p.first[d + 1]
        log_zs[d] = 0.0
        if a == b:
            continue
        _weigh(p, d, of_true, of_free, temper, true, free)
        for c in range(b - a):
            true[c] *= sharpness
            free[c] *= sharpness
        i = a
        while i < b:
            j = i + 1
            while j < b and p.cluster[j] == p.cluster[i]:
                j += 1
            here = slice(i - a, j - a)
            log_zs[d] += _cluster(
                p.start[i:j], p.end[i:j], p.kind[i:j], p.by_start[i:j], p.apart, true[here], free[here], after,
                values, is_true[i:j], is_free[here],
            )  # fmt: skip
            i = j
        total += log_zs[d]
        r = p.response_start[d]
        for pair in range(p.pair_start[d], p.pair_start[d + 1]):
            k, weight = p.who[pair], temper * p.weight[pair]
            for c in range(a, b):
                said = p.response[r]
                r += 1
                if said != UNSEEN:
                    counted[k, said] += weight * is_true[c]
                    marked[k, 1 if said == EXACT else 0] += weight * is_free[c - a]
    return SpanSums(total, counted, marked)


@njit(nogil=True, cache=True)
def best_set(
    start: Ints, end: Ints, kind: Ints, first: Ints, apart: int, gain: Floats, chosen: NDArray[np.bool_]
) -> None:
    """Of every document the set of candidates that do not overlap with the highest sum of ``gain``, if above 0.

    Weighted interval scheduling over candidates sorted by end; of sets with the same sum, the one with fewer spans.
    """
    most = 0
    for d in range(first.shape[0] - 1):
        most = max(most, first[d + 1] - first[d])
    # Of the best set of the first j candidates: its worth, how many they are, and the last (−1: none).
    value, many, last = np.zeros(most + 1), np.zeros(most + 1, np.int64), np.full(most + 1, -1)
    # Of the best set that ends with candidate j: the same, and the candidate before it.
    ending, members, before = np.zeros(most), np.zeros(most, np.int64), np.full(most, -1)
    for d in range(first.shape[0] - 1):
        a, n = first[d], first[d + 1] - first[d]
        for j in range(n):
            chosen[a + j] = False
            value[j + 1], many[j + 1], last[j + 1] = value[j], many[j], last[j]
            if not gain[a + j] > 0.0:
                continue
            fits = j
            while fits > 0 and end[a + fits - 1] > start[a + j]:
                fits -= 1
            touching = fits
            while fits > 0 and end[a + fits - 1] + apart > start[a + j]:
                fits -= 1
            ending[j], members[j], before[j] = value[fits], many[fits], last[fits]
            for i in range(fits, touching):  # closer than spans of one type may be
                if kind[a + i] == kind[a + j] or not gain[a + i] > 0.0:
                    continue
                if ending[i] > ending[j] or (ending[i] == ending[j] and members[i] < members[j]):
                    ending[j], members[j], before[j] = ending[i], members[i], i
            ending[j] += gain[a + j]
            members[j] += 1
            if ending[j] > value[j] or (ending[j] == value[j] and members[j] < many[j]):
                value[j + 1], many[j + 1], last[j + 1] = ending[j], members[j], j
        j = last[n]
        while j >= 0:
            chosen[a + j] = True
            j = before[j]


@njit(nogil=True, cache=True)
def likeliest_set(p: Problem, of_true: Floats, of_free: Floats, temper: float, chosen: NDArray[np.bool_]) -> None:
    """Of every document the set of candidates with the highest weight: as the sums, with the largest in their place."""
    most = 0
    for d in range(p.first.shape[0] - 1):
        most = max(most, p.first[d + 1] - p.first[d])
    true, free, after, next_true = np.empty(most), np.empty(most), np.empty(most), np.empty(most + 1, np.int64)
    for d in range(p.first.shape[0] - 1):
        a, b = p.first[d], p.first[d + 1]
        _weigh(p, d, of_true, of_free, temper, true, free)
        i = a
        while i < b:
            j = i + 1
            while j < b and p.cluster[j] == p.cluster[i]:
                j += 1
            here = slice(i - a, j - a)
            _likeliest(
                p.start[i:j], p.end[i:j], p.kind[i:j], p.by_start[i:j], p.apart, true[here], free[here], after,
                next_true, chosen[i:j],
            )  # fmt: skip
            i = j


@njit(nogil=True, cache=True)
def _likeliest(
    start: Ints,
    end: Ints,
    kind: Ints,
    by_start: Ints,
    apart: int,
    true: Floats,
    free: Floats,
    after: Floats,
    next_true: Ints,
    chosen: NDArray[np.bool_],
) -> None:
    """The likeliest set of a cluster; ``next_true[i + 1]`` is the true candidate that best follows i (n: none)."""
    n = start.shape[0]
    for i in range(n - 1, -2, -1):
        bound = end[i] if i >= 0 else -(1 << 62)
        gap, c, best, place_of_best = 0.0, max(i, 0), -math.inf, n
        for place in range(n):
            j = by_start[place]
            if start[j] < bound + (apart if i >= 0 and kind[i] == kind[j] else 0):
                continue
            while c < n and end[c] <= start[j]:
                if start[c] >= bound:
                    gap += free[c]
                c += 1
            if gap + true[j] + after[j] > best:
                best, place_of_best = gap + true[j] + after[j], j
        while c < n:
            if start[c] >= bound:
                gap += free[c]
            c += 1
        if gap >= best:
            best, place_of_best = gap, n
        if i >= 0:
            after[i] = best
        next_true[i + 1] = place_of_best
    for c in range(n):
        chosen[c] = False
    c = next_true[0]
    while c < n:
        chosen[c] = True
        c = next_true[c + 1]


@njit(nogil=True, cache=True)
def log_weight_of_set(
    p: Problem,
    of_true: Floats,
    of_free: Floats,
    temper: float,
    sharpness: float,
    chosen: NDArray[np.bool_],
    out: Floats,
) -> None:
    """``out [D]``: ln of the weight of the chosen set of every document (less ln Z: of its probability)."""
    most = 0
    for d in range(out.shape[0]):
        most = max(most, p.first[d + 1] - p.first[d])
    true, free = np.empty(most), np.empty(most)
    for d in range(out.shape[0]):
        a, b = p.first[d], p.first[d + 1]
        out[d] = 0.0
        if a == b:
            continue
        _weigh(p, d, of_true, of_free, temper, true, free)
        low, high = a, a  # the cluster
        for c in range(a, b):
            if c == high:
                low = c
                while high < b and p.cluster[high] == p.cluster[low]:
                    high += 1
            if chosen[c]:
                out[d] += sharpness * true[c - a]
                continue
            alone = True
            for other in range(low, high):
                if chosen[other] and p.start[other] < p.end[c] and p.start[c] < p.end[other]:
                    alone = False
                    break
            if alone:
                out[d] += sharpness * free[c - a]
