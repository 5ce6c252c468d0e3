"""The compiled kernel that finds the spans a token model thinks likely.

Letters as in :mod:`quorate.infer.kernels.chain`, and T types.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quorate.infer.kernels.chain import Rows
from quorate.infer.kernels.layout import Slice, longest_of
from quorate.infer.kernels.output import SpanShape, _BothWays, both_ways, document_evidence, log_row, set_evidence
from quorate.infer.kernels.single import Steps, log_sum

__all__ = ["SpanLabels", "likely_spans_slice"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class SpanLabels(NamedTuple):
    """``[T]`` How the scheme writes a span of each type: alone, or its first, inner and last token."""

    single: Ints
    first: Ints
    inside: Ints
    last: Ints


@njit(nogil=True, cache=True)
def _grown(values: NDArray[Any], size: int) -> NDArray[Any]:
    """The same with room for twice as many."""
    more = np.empty(2 * size, values.dtype)
    more[:size] = values
    return more


@njit(nogil=True, cache=True)
def _before(first: int, label: int, steps: Steps, shape: SpanShape, log_alpha: Floats, terms: Floats) -> float:
    """ln of the weight of all that may stand before a span that begins with ``label`` at token ``first``."""
    if first == 0:
        alone: float = steps.log_start[label]
        return alone
    for j in range(terms.shape[0]):
        continued = shape.kind[j] == shape.kind[label] and not shape.closes[j] and not shape.opens[label]
        terms[j] = -math.inf if continued else log_alpha[j] + steps.log_trans[j, label]
    return log_sum(terms)


@njit(nogil=True, cache=True)
def _behind(
    last: int, L: int, label: int, steps: Steps, shape: SpanShape, evidence: Floats, log_beta: Floats, terms: Floats
) -> float:
    """ln of the weight of all that may stand after a span whose last label is ``label``, before token ``last``."""
    if last == L:
        return 0.0
    for j in range(terms.shape[0]):
        continues = shape.kind[j] == shape.kind[label] and not shape.opens[j] and not shape.closes[label]
        terms[j] = -math.inf if continues else steps.log_trans[label, j] + evidence[last, j] + log_beta[j]
    return log_sum(terms)


@njit(nogil=True, cache=True)
def likely_spans_slice(
    piece: Slice, rows: Rows, steps: Steps, shape: SpanShape, labels: SpanLabels, least: float
) -> tuple[Ints, Ints, Ints, Floats]:
    """Start, end, type and probability of every span that has a probability of at least ``least``, by its end.

    Tokens are counted from the slice's first. A span is looked for where one begins with that probability, and for as
    long as it may go on with it.
    """
    J, T = rows.cells.shape[1], labels.first.shape[0]
    longest = longest_of(piece.doc_start)
    evidence, scaled, posterior = np.empty((longest, J)), np.empty((longest, J)), np.empty((longest, J))
    ways = _BothWays(np.empty((longest, J)), np.empty((longest, J)), np.empty(longest), np.empty(longest))
    before, behind, terms = np.empty(J), np.empty((longest + 1, J)), np.empty(J)
    sets = set_evidence(piece, rows)
    size, n = 64, 0
    start, end, kind, probability = (
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size),
    )
    log_least = math.log(least)
    for d in range(piece.doc_start.shape[0] - 1):
        begin = piece.doc_start[d]
        L = piece.doc_start[d + 1] - begin
        if L == 0:
            continue
        document_evidence(piece, rows, sets, d, evidence)
        for t in range(L):
            for j in range(J):
                scaled[t, j] = evidence[t, j]
        log_z = both_ways(evidence, scaled, L, steps, ways, posterior)
        if not log_z > -math.inf:
            continue
        for t in range(L):
            log_row(ways, ways.beta, t, log_z - ways.so_far[t], behind[t])
        for first in range(L):
            any_before = False
            for k in range(T):
                opening = posterior[first, labels.first[k]]
                if labels.single[k] != labels.first[k]:
                    opening += posterior[first, labels.single[k]]
                if opening < least:
                    continue
                if first > 0 and not any_before:
                    log_row(ways, ways.alpha, first - 1, ways.so_far[first - 1], before)
                    any_before = True
                # A span of one token, then longer ones: `going` is the weight so far of one that goes on.
                label = labels.single[k]
                weight = _before(first, label, steps, shape, before, terms) + evidence[first, label]
                last, here = first + 1, labels.first[k]
                going_on = _before(first, here, steps, shape, before, terms) + evidence[first, here]
                while True:
                    weight += _behind(last, L, label, steps, shape, evidence, behind[last], terms) - log_z
                    if weight >= log_least:
                        if n == size:
                            start, end, kind = _grown(start, size), _grown(end, size), _grown(kind, size)
                            probability = _grown(probability, size)
                            size *= 2
                        start[n], end[n], kind[n] = begin + first, begin + last, k
                        probability[n] = min(math.exp(weight), 1.0)
                        n += 1
                    if last == L or going_on + behind[last - 1, here] - log_z < log_least:
                        break
                    label, inside = labels.last[k], labels.inside[k]
                    weight = going_on + steps.log_trans[here, label] + evidence[last, label]
                    going_on += steps.log_trans[here, inside] + evidence[last, inside]
                    here, last = inside, last + 1
    return start[:n].copy(), end[:n].copy(), kind[:n].copy(), probability[:n].copy()
