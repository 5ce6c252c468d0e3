"""Forward–backward over eight documents of like length at once, each in a lane of the vectors.

Every vector holds one number of each document, so that a step costs eight documents what it would cost one. Arrays are
flat: the vector of label j at position t begins at ``(t · width + j) · LANES``. A lane that has come to its end, or has
no document, has no evidence there, and adds nothing. Letters as in :mod:`quorate.infer.kernels.chain`.

Steps that the scheme forbids are not skipped: to look for them costs as much as they do.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quorate.infer.kernels.layout import Slice
from quorate.infer.kernels.simd import (
    LANES,
    WIDTH,
    collect,
    distribute,
    fused,
    load_lanes,
    lost_lanes,
    spread_lanes,
    store,
    where_above,
)
from quorate.infer.kernels.single import LOST, MARGIN, Steps

__all__ = [
    "LaneBuffers",
    "add_up",
    "backward",
    "buffers_for",
    "drop_lane",
    "forward",
    "load_batch",
    "log_totals",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class LaneBuffers(NamedTuple):
    """Where a batch is worked on: what it needs for L positions, and what batches add up.

    ``evidence`` and ``alpha`` hold a vector a position and label, ``totals`` and ``inverses`` one a position, ``beta``
    one a label for two positions, ``pairs`` one a pair of labels. A lane has the tokens ``begin`` to
    ``begin + length``; ``lost`` is the first position where something may have been lost to underflow, or −1.
    ``set_row`` and ``word_row`` are places in the tables for the position at hand.
    """

    evidence: Floats
    alpha: Floats
    totals: Floats
    inverses: Floats
    beta: Floats
    pairs: Floats
    begin: Ints
    length: Ints
    lost: Ints
    set_row: Ints
    word_row: Ints


@njit(nogil=True, cache=True)
def buffers_for(L: int, J: int, width: int) -> LaneBuffers:
    """For documents of up to L tokens."""
    return LaneBuffers(
        np.empty(L * width * LANES),
        np.zeros(L * width * LANES),
        np.empty(L * LANES),
        np.empty(L * LANES),
        np.empty(2 * J * LANES),
        np.zeros(J * J * LANES),
        np.zeros(LANES, np.int64),
        np.zeros(LANES, np.int64),
        np.zeros(LANES, np.int64),
        np.zeros(LANES, np.int64),
        np.zeros(LANES, np.int64),
    )


@njit(nogil=True, cache=True)
def load_batch(buffers: LaneBuffers, piece: Slice, first: int) -> int:
    """Give the lanes the documents from number ``first`` of those by length; returns the tokens of the longest."""
    L = 0
    for lane in range(LANES):
        buffers.lost[lane] = -1
        buffers.length[lane] = 0
        if first + lane < piece.by_length.shape[0]:
            d = piece.by_length[first + lane]
            buffers.begin[lane] = piece.doc_start[d]
            buffers.length[lane] = piece.doc_start[d + 1] - piece.doc_start[d]
        L = max(L, buffers.length[lane])
    return L


@njit(nogil=True, cache=True)
def _point_at_rows(buffers: LaneBuffers, piece: Slice, t: int, width: int) -> None:
    """Each lane's rows of sets and words at a position; past its end those that follow all others."""
    for lane in range(LANES):
        if t < buffers.length[lane]:
            buffers.set_row[lane] = piece.token_set[buffers.begin[lane] + t] * width
            buffers.word_row[lane] = piece.token_word[buffers.begin[lane] + t] * width
        else:
            buffers.set_row[lane] = (piece.set_start.shape[0] - 1) * width
            buffers.word_row[lane] = piece.words.shape[0] * width


@njit(nogil=True, cache=True)
def _gather(
    buffers: LaneBuffers, piece: Slice, t: int, ends: Floats, sets: Floats, words: Floats, J: int, width: int
) -> None:
    """Evidence of a position: what was said, the word, what is known, and what may end a document."""
    here = t * width * LANES
    _point_at_rows(buffers, piece, t, width)
    for j in range(0, width, WIDTH):
        collect(buffers.evidence, here + j * LANES, sets, buffers.set_row, words, buffers.word_row, j)
    for lane in range(LANES):
        if t == buffers.length[lane] - 1:
            for j in range(J):
                buffers.evidence[here + j * LANES + lane] *= ends[j]
        if piece.known.shape[0] and t < buffers.length[lane]:
            known = piece.known[buffers.begin[lane] + t]
            if known >= 0:
                for j in range(J):
                    if j != known:
                        buffers.evidence[here + j * LANES + lane] = 0.0


@njit(nogil=True, cache=True)
def forward(
    buffers: LaneBuffers,
    piece: Slice,
    L: int,
    steps: Steps,
    ends: Floats,
    sets: Floats,
    words: Floats,
    J: int,
    width: int,
) -> None:
    """Fills evidence, p(label | evidence up to t) and the sums before normalising."""
    evidence, alpha = buffers.evidence, buffers.alpha
    zero, one, least_total = spread_lanes(0.0), spread_lanes(1.0), spread_lanes(LOST)
    lost_below = spread_lanes(LOST / steps.least)
    for t in range(L):
        _gather(buffers, piece, t, ends, sets, words, J, width)
        here, before = t * width * LANES, (t - 1) * width * LANES
        total = zero
        lost = 0
        for j in range(J):
            if t == 0:
                reached = spread_lanes(steps.start[j])
            else:
                reached = zero
                for i in range(J):
                    reached = fused(load_lanes(alpha, before + i * LANES), spread_lanes(steps.back[j * J + i]), reached)
            product = reached * load_lanes(evidence, here + j * LANES)
            lost |= lost_lanes(reached, product, lost_below)
            total = total + product
            store(alpha, here + j * LANES, product)
        if lost:
            _note_lost(buffers, piece, t, lost)
        inverse = where_above(total, least_total, one / total, zero)
        store(buffers.totals, t * LANES, total)
        store(buffers.inverses, t * LANES, inverse)
        for j in range(J):
            store(alpha, here + j * LANES, load_lanes(alpha, here + j * LANES) * inverse)


@njit(nogil=True, cache=True)
def _note_lost(buffers: LaneBuffers, piece: Slice, t: int, lost: int) -> None:
    """What is lost at the end of a document, or because another label is known, will not be missed."""
    for lane in range(LANES):
        noted = not lost & (1 << lane) or buffers.lost[lane] >= 0
        if (
            noted
            or t >= buffers.length[lane] - 1
            or (piece.known.shape[0] and piece.known[buffers.begin[lane] + t] >= 0)
        ):
            continue
        buffers.lost[lane] = t


@njit(nogil=True, cache=True)
def log_totals(buffers: LaneBuffers, lane: int, least: float) -> float:
    """Σ ln of a lane's sums; nan if too much was lost to underflow."""
    fall = math.log(LOST / least) + MARGIN
    log_z, since_loss = 0.0, 0.0
    running = 1.0  # a product of sums, of which one logarithm is taken for many tokens
    for t in range(buffers.length[lane]):
        total = buffers.totals[t * LANES + lane]
        if not total > LOST:
            return math.nan
        if 0 <= buffers.lost[lane] <= t:
            since_loss += math.log(total)
            if since_loss < fall:
                return math.nan
        if total < 1e-100:
            log_z += math.log(total)
        else:
            running *= total
            if running < 1e-150 or running > 1e150:
                log_z += math.log(running)
                running = 1.0
    return log_z + math.log(running)


@njit(nogil=True, cache=True)
def drop_lane(buffers: LaneBuffers, lane: int, J: int, width: int) -> None:
    """Take a lane's document out of what follows."""
    for t in range(buffers.length[lane]):
        buffers.inverses[t * LANES + lane] = 0.0
        for j in range(J):
            buffers.alpha[(t * width + j) * LANES + lane] = 0.0
    buffers.length[lane] = 0


@njit(nogil=True, cache=True)
def backward(buffers: LaneBuffers, L: int, steps: Steps, J: int, width: int) -> None:
    """Turns ``alpha`` into the posterior; adds Σ s without the factor T, which is the same for all tokens."""
    evidence, alpha, beta, pairs = buffers.evidence, buffers.alpha, buffers.beta, buffers.pairs
    zero = spread_lanes(0.0)
    now, next_to = 0, J * LANES  # the two rows of beta
    for j in range(J):
        store(beta, j * LANES, zero)
    for t in range(L - 1, -1, -1):
        here, before = t * width * LANES, (t - 1) * width * LANES
        for lane in range(LANES):
            if buffers.length[lane] == t + 1:
                for j in range(J):
                    beta[now + j * LANES + lane] = 1.0
        inverse = load_lanes(buffers.inverses, t * LANES)
        for j in range(J):
            weight = load_lanes(beta, now + j * LANES)
            store(alpha, here + j * LANES, load_lanes(alpha, here + j * LANES) * weight)
            store(evidence, here + j * LANES, load_lanes(evidence, here + j * LANES) * weight * inverse)
        if t == 0:
            return
        for i in range(J):
            share = load_lanes(alpha, before + i * LANES)
            weight = zero
            for j in range(J):
                shown = load_lanes(evidence, here + j * LANES)
                pair = (i * J + j) * LANES
                weight = fused(shown, spread_lanes(steps.trans[i * J + j]), weight)
                store(pairs, pair, fused(share, shown, load_lanes(pairs, pair)))
            # A label that cannot be reached has no posterior, however well it would explain the rest.
            store(beta, next_to + i * LANES, where_above(share, zero, weight, zero))
        now, next_to = next_to, now


@njit(nogil=True, cache=True)
def add_up(buffers: LaneBuffers, piece: Slice, L: int, width: int, of_sets: Floats, of_words: Floats) -> None:
    """Add the posteriors of all lanes to their sets and words."""
    for t in range(L):
        _point_at_rows(buffers, piece, t, width)
        for j in range(0, width, WIDTH):
            place = (t * width + j) * LANES
            distribute(of_sets, buffers.set_row, buffers.alpha, place, j)
            distribute(of_words, buffers.word_row, buffers.alpha, place, j)
