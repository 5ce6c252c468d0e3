"""The compiled kernels of a pass over a slice: evidence, forward–backward, counts. Pure functions on arrays.

What was said and the words are turned from logarithms into probabilities once a set and once a word; a token's evidence
is the product of two rows. The recursion is scaled. Where labels are so many nats apart that a token's sum vanishes,
the document is done again in log space. EM and VB use the same kernels: VB only passes rows that sum to less than 1.
Documents of like length are worked on side by side (:mod:`quorate.infer.kernels.lanes`).

Letters: D documents, N tokens, U sets, C cells and V words of a slice, J labels, L tokens of one document. Rows of
labels are filled up with zeros to a multiple of four, their *width*, and lie end to end in flat arrays.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quorate.infer.kernels import lanes
from quorate.infer.kernels.layout import Slice
from quorate.infer.kernels.simd import LANES, WIDTH, add, exp, load_lanes, multiply, product_sum, scale, store, sum_of
from quorate.infer.kernels.single import Steps, expectations, log_sum

__all__ = [
    "Rows",
    "Steps",
    "Sums",
    "cell_sums",
    "chain_pass",
    "gather_evidence",
    "independent_pass",
    "merge",
    "vote_pass",
]

Floats = NDArray[np.float64]
Ints32 = NDArray[np.int32]

LONG = 5_000  # tokens of a document from which on it is done by itself


class Rows(NamedTuple):
    """Log-likelihoods of what was observed, by truth: of a cell ``[G, J]``, of a word ``[V, J]`` (empty: no text).

    ``temper`` is how much of a cell's row counts; ``end`` ``[J]`` is 0, or −inf where a document may not end so.
    """

    cells: Floats
    words: Floats
    temper: float
    end: Floats


class Sums(NamedTuple):
    """What a pass over a slice adds up: ln Z; posteriors of first tokens ``[J]``, Σ s ``[J, J]``, of all ``[J]``.

    Also posteriors by the slice's cells ``[C, J]`` and words ``[V, J]``; and the first document without a path, or −1.
    """

    log_z: float
    starts: Floats
    pairs: Floats
    labels: Floats
    cells: Floats
    words: Floats
    stuck: int


@njit(nogil=True, cache=True)
def blocks_of(n_labels: int) -> int:
    """How many vectors a row of labels takes."""
    return (n_labels + WIDTH - 1) // WIDTH


@njit(nogil=True, cache=True)
def add_set(piece: Slice, u: int, table: Floats, out: Floats) -> None:
    """Add the table's rows of all that is in a set."""
    J = table.shape[1]
    weighted = piece.event_weight.shape[0] > 0
    for e in range(piece.set_start[u], piece.set_start[u + 1]):
        said = table[piece.cells[piece.event_cell[e]]]
        if weighted:
            w = piece.event_weight[e]
            for j in range(J):
                out[j] += w * said[j]
        else:
            for j in range(J):
                out[j] += said[j]


@njit(nogil=True, cache=True)
def gather_token(piece: Slice, rows: Rows, t: int, out: Floats) -> None:
    """``out[j]``: log-likelihood of all that was observed at a token, were its label j; −inf off a known label."""
    J = rows.cells.shape[1]
    for j in range(J):
        out[j] = 0.0
    add_set(piece, piece.token_set[t], rows.cells, out)
    for j in range(J):
        out[j] *= rows.temper
    word = piece.words[piece.token_word[t]]
    if word < rows.words.shape[0]:
        for j in range(J):
            out[j] += rows.words[word, j]
    if piece.known.shape[0] and piece.known[t] >= 0:
        for j in range(J):
            if j != piece.known[t]:
                out[j] = -math.inf


@njit(nogil=True, cache=True)
def gather_evidence(piece: Slice, rows: Rows, d: int, out: Floats) -> None:
    """:func:`gather_token` for a document; what may end it is taken as evidence at its last token."""
    first, last = piece.doc_start[d], piece.doc_start[d + 1]
    for t in range(first, last):
        gather_token(piece, rows, t, out[t - first])
    if last > first:
        for j in range(rows.end.shape[0]):
            out[last - first - 1, j] += rows.end[j]


@njit(nogil=True, cache=True)
def row_table(n_rows: int, width: int) -> Floats:
    """Room for rows of logarithms, −inf, and for one more row without any evidence; in whole vectors."""
    return np.full(((n_rows + 1) * width + LANES - 1) // LANES * LANES, -math.inf)


@njit(nogil=True, cache=True)
def place_logs(logs: Floats, J: int, table: Floats, place: int) -> float:
    """Write logs − their maximum into a row, which is left if all are −inf; returns the maximum."""
    top = -math.inf
    for j in range(J):
        top = max(top, logs[j])
    if top > -math.inf:
        for j in range(J):
            table[place + j] = logs[j] - top
    return top


@njit(nogil=True, cache=True)
def exponentiate(table: Floats) -> None:
    """Turn logarithms into numbers, in place."""
    for place in range(0, table.shape[0], LANES):
        store(table, place, exp(load_lanes(table, place)))


@njit(nogil=True, cache=True)
def set_rows(piece: Slice, rows: Rows, width: int) -> tuple[Floats, Floats]:
    """Probabilities of what is in each set, up to a factor, and the factor's logarithm ``[U]``."""
    n_sets, J = piece.set_start.shape[0] - 1, rows.cells.shape[1]
    B = blocks_of(J)
    weighted = piece.event_weight.shape[0] > 0
    cells = np.zeros(piece.cells.shape[0] * width)  # those of the slice alone, close together
    for c in range(piece.cells.shape[0]):
        for j in range(J):
            cells[c * width + j] = rows.temper * rows.cells[piece.cells[c], j]
    table, tops = row_table(n_sets, width), np.empty(n_sets)
    logs = np.zeros(width)
    for u in range(n_sets):
        for j in range(width):
            logs[j] = 0.0
        for e in range(piece.set_start[u], piece.set_start[u + 1]):
            add(logs, 0, cells, piece.event_cell[e] * width, piece.event_weight[e] if weighted else 1.0, B)
        tops[u] = place_logs(logs, J, table, u * width)
    exponentiate(table)
    return table, tops


@njit(nogil=True, cache=True)
def word_rows(piece: Slice, rows: Rows, width: int) -> tuple[Floats, Floats]:
    """The same of each word ``[V]``; ones where a word has no row."""
    n_words, J = piece.words.shape[0], rows.cells.shape[1]
    table, tops = row_table(n_words, width), np.zeros(n_words)
    for v in range(n_words):
        if piece.words[v] < rows.words.shape[0]:
            tops[v] = place_logs(rows.words[piece.words[v]], J, table, v * width)
        else:
            for j in range(J):
                table[v * width + j] = 0.0
    exponentiate(table)
    return table, tops


@njit(nogil=True, cache=True)
def spread_sets(piece: Slice, temper: float, J: int, of_sets: Floats) -> Floats:
    """``[C, J]`` For each cell the rows of all sets that it is in, tempered and added up."""
    B = blocks_of(J)
    width = WIDTH * B
    weighted = piece.event_weight.shape[0] > 0
    out = np.zeros(piece.cells.shape[0] * width)
    for u in range(piece.set_start.shape[0] - 1):
        for e in range(piece.set_start[u], piece.set_start[u + 1]):
            w = temper * piece.event_weight[e] if weighted else temper
            add(out, piece.event_cell[e] * width, of_sets, u * width, w, B)
    return unpacked(out, piece.cells.shape[0], J, width)


@njit(nogil=True, cache=True)
def unpacked(rows: Floats, n_rows: int, J: int, width: int) -> Floats:
    """Rows without what fills them up."""
    out = np.empty((n_rows, J))
    for row in range(n_rows):
        for j in range(J):
            out[row, j] = rows[row * width + j]
    return out


@njit(nogil=True, cache=True)
def chain_pass(piece: Slice, rows: Rows, steps: Steps, posterior: Floats) -> Sums:
    """One pass over a slice. Fills ``posterior`` ``[N, J]`` unless it is empty."""
    J = rows.cells.shape[1]
    width = WIDTH * blocks_of(J)
    sets, set_tops = set_rows(piece, rows, width)
    words, word_tops = word_rows(piece, rows, width)
    of_sets, of_words = np.zeros(sets.shape[0]), np.zeros(words.shape[0])
    D = piece.by_length.shape[0]
    alone = documents_alone(piece, steps)
    longest = 0 if alone == D else document_length(piece, piece.by_length[alone])
    buffers = lanes.buffers_for(longest, J, width)
    starts, pairs, labels = np.zeros(J), np.zeros((J, J)), np.zeros(width)
    ends = np.empty(J)
    for j in range(J):
        ends[j] = math.exp(rows.end[j])
    log_z = 0.0
    stuck = piece.doc_start.shape[0]
    for n in range(alone):
        d = piece.by_length[n]
        log_scale = one_chain(piece, rows, steps, d, steps.in_logs, starts, pairs, of_sets, of_words, posterior)
        if not log_scale > -math.inf:
            stuck = min(stuck, d)
        log_z += log_scale
    for first in range(alone, D, LANES):
        L = lanes.load_batch(buffers, piece, first)
        lanes.forward(buffers, piece, L, steps, ends, sets, words, J, width)
        for lane in range(min(LANES, D - first)):
            d = piece.by_length[first + lane]
            log_scale = lanes.log_totals(buffers, lane, steps.least)
            if math.isnan(log_scale):
                lanes.drop_lane(buffers, lane, J, width)
                log_scale = one_chain(piece, rows, steps, d, True, starts, pairs, of_sets, of_words, posterior)
                if not log_scale > -math.inf:
                    stuck = min(stuck, d)
            else:
                for t in range(piece.doc_start[d], piece.doc_start[d + 1]):
                    log_scale += set_tops[piece.token_set[t]] + word_tops[piece.token_word[t]]
            log_z += log_scale
        lanes.backward(buffers, L, steps, J, width)
        lanes.add_up(buffers, piece, L, width, of_sets, of_words)
        for lane in range(LANES):
            if buffers.length[lane]:
                for j in range(J):
                    starts[j] += buffers.alpha[j * LANES + lane]
            if posterior.shape[0]:
                for t in range(buffers.length[lane]):
                    for j in range(J):
                        posterior[buffers.begin[lane] + t, j] = buffers.alpha[(t * width + j) * LANES + lane]
    for i in range(J):
        for j in range(J):
            if steps.trans[i * J + j] > 0.0:
                lanes_of_pair = load_lanes(buffers.pairs, (i * J + j) * LANES)
                pairs[i, j] += sum_of(lanes_of_pair) * steps.trans[i * J + j]
    for u in range(piece.set_start.shape[0] - 1):
        add(labels, 0, of_sets, u * width, 1.0, blocks_of(J))
    cells = spread_sets(piece, rows.temper, J, of_sets)
    by_word = unpacked(of_words, piece.words.shape[0], J, width)
    return Sums(log_z, starts, pairs, labels[:J].copy(), cells, by_word, stuck if stuck < D else -1)


@njit(nogil=True, cache=True)
def document_length(piece: Slice, d: int) -> int:
    """How many tokens a document has."""
    return int(piece.doc_start[d + 1] - piece.doc_start[d])


@njit(nogil=True, cache=True)
def documents_alone(piece: Slice, steps: Steps) -> int:
    """How many, of the longest documents, are not done side by side: those for which lanes would take much room."""
    D: int = piece.by_length.shape[0]
    if steps.in_logs:
        return D
    n = 0
    while n < D and document_length(piece, piece.by_length[n]) > LONG:
        n += 1
    return n


@njit(nogil=True, cache=True)
def one_chain(
    piece: Slice,
    rows: Rows,
    steps: Steps,
    d: int,
    in_logs: bool,
    starts: Floats,
    pairs: Floats,
    of_sets: Floats,
    of_words: Floats,
    posterior: Floats,
) -> float:
    """One document by itself: adds what it has to the sums, fills its posterior; returns ln Z."""
    J = rows.cells.shape[1]
    width = WIDTH * blocks_of(J)
    begin = piece.doc_start[d]
    L = piece.doc_start[d + 1] - begin
    if L == 0:
        return 0.0
    evidence, shares, alpha, beta = np.empty((L, J)), np.empty((L, J)), np.empty((L, J)), np.empty((L, J))
    gather_evidence(piece, rows, d, evidence)
    log_z = expectations(evidence, steps, in_logs, shares, pairs, alpha, beta)
    if not log_z > -math.inf:
        return log_z
    for t in range(L):
        for j in range(J):
            of_sets[piece.token_set[begin + t] * width + j] += shares[t, j]
            of_words[piece.token_word[begin + t] * width + j] += shares[t, j]
            if t == 0:
                starts[j] += shares[0, j]
            if posterior.shape[0]:
                posterior[begin + t, j] = shares[t, j]
    return log_z


@njit(nogil=True, cache=True)
def independent_pass(piece: Slice, rows: Rows, steps: Steps, posterior: Floats) -> Sums:
    """One pass in which every token stands alone. Fills ``posterior`` ``[N, J]`` unless it is empty."""
    J = rows.cells.shape[1]
    B = blocks_of(J)
    width = WIDTH * B
    sets, set_tops = set_rows(piece, rows, width)
    words, word_tops = word_rows(piece, rows, width)
    of_sets, of_words = np.zeros(sets.shape[0]), np.zeros(words.shape[0])
    labels, start = np.zeros(width), np.zeros(width)
    for j in range(J):
        start[j] = steps.start[j]
    row, logs = np.zeros(width), np.empty(J)
    log_z = 0.0
    # Where neither words nor known labels tell tokens of one set apart, each set is one token that occurs often.
    alike = rows.words.shape[0] == 0 and piece.known.shape[0] == 0 and posterior.shape[0] == 0
    often = np.zeros(piece.set_start.shape[0] - 1)
    standing_for = np.empty(often.shape[0], np.int64)
    if alike:
        for t in range(piece.token_set.shape[0]):
            often[piece.token_set[t]] += piece.times[t] if piece.times.shape[0] else 1.0
            standing_for[piece.token_set[t]] = t
    for n in range(often.shape[0] if alike else piece.token_set.shape[0]):
        t = standing_for[n] if alike else n
        u, v = piece.token_set[t], piece.token_word[t]
        known = piece.known[t] if piece.known.shape[0] else -1
        multiply(row, 0, sets, u * width, words, v * width, B)
        if known >= 0:
            for j in range(J):
                if j != known:
                    row[j] = 0.0
        total = product_sum(row, 0, start, 0, B)
        if total > 1e-200 and not steps.in_logs:
            multiply(row, 0, row, 0, start, 0, B)
            log_total = math.log(total) + set_tops[u] + word_tops[v]
        else:
            gather_token(piece, rows, t, logs)
            for j in range(J):
                logs[j] += steps.log_start[j]
            log_total = log_sum(logs)
            total = 1.0
            for j in range(J):
                row[j] = math.exp(logs[j] - log_total)
        times = piece.times[t] if piece.times.shape[0] else 1.0
        if alike:
            times = often[n]
        scale(row, 0, row, 0, times / total, B)
        log_z += times * log_total
        add(labels, 0, row, 0, 1.0, B)
        add(of_sets, u * width, row, 0, 1.0, B)
        add(of_words, v * width, row, 0, 1.0, B)
        if posterior.shape[0]:
            for j in range(J):
                posterior[t, j] = row[j] / times
    cells = spread_sets(piece, rows.temper, J, of_sets)
    by_word = unpacked(of_words, piece.words.shape[0], J, width)
    return Sums(log_z, np.zeros(J), np.zeros((J, J)), labels[:J].copy(), cells, by_word, -1)


@njit(nogil=True, cache=True)
def vote_pass(piece: Slice, votes: Floats, smoothing: float, temper: float, posterior: Floats) -> Sums:
    """Shares of votes as posterior: an event votes with its cell's row. Pairs as if tokens stood alone."""
    J = votes.shape[1]
    n_sets, width = piece.set_start.shape[0] - 1, WIDTH * blocks_of(J)
    shares, of_sets = np.full((n_sets, J), smoothing), np.zeros(n_sets * width)
    of_words = np.zeros((piece.words.shape[0], J))
    starts, pairs, labels = np.zeros(J), np.zeros((J, J)), np.zeros(J)
    for u in range(n_sets):
        row = shares[u]
        add_set(piece, u, votes, row)
        total = row.sum()
        for j in range(J):
            row[j] = row[j] / total if total > 0.0 else 1.0 / J
    row, before = np.empty(J), np.empty(J)
    for d in range(piece.doc_start.shape[0] - 1):
        for t in range(piece.doc_start[d], piece.doc_start[d + 1]):
            known = piece.known[t] if piece.known.shape[0] else -1
            times = piece.times[t] if piece.times.shape[0] else 1.0
            u, v = piece.token_set[t], piece.token_word[t]
            for j in range(J):
                row[j] = shares[u, j] if known < 0 else (1.0 if j == known else 0.0)
                labels[j] += times * row[j]
                of_sets[u * width + j] += times * row[j]
                of_words[v, j] += times * row[j]
            if t == piece.doc_start[d]:
                for j in range(J):
                    starts[j] += times * row[j]
            else:
                for i in range(J):
                    if before[i] > 0.0:
                        for j in range(J):
                            pairs[i, j] += before[i] * row[j]
            for j in range(J):
                before[j] = row[j]
            if posterior.shape[0]:
                for j in range(J):
                    posterior[t, j] = row[j]
    cells = spread_sets(piece, temper, J, of_sets)
    return Sums(0.0, starts, pairs, labels, cells, of_words, -1)


@njit(nogil=True, cache=True)
def cell_sums(piece: Slice, posterior: Floats) -> Floats:
    """``[C, J]`` Counts of the slice's cells under a posterior ``[N, J]`` that comes from elsewhere."""
    J = posterior.shape[1]
    width = WIDTH * blocks_of(J)
    of_sets = np.zeros((piece.set_start.shape[0] - 1) * width)
    for t in range(piece.token_set.shape[0]):
        times = piece.times[t] if piece.times.shape[0] else 1.0
        for j in range(J):
            of_sets[piece.token_set[t] * width + j] += times * posterior[t, j]
    return spread_sets(piece, 1.0, J, of_sets)


@njit(nogil=True, cache=True)
def merge(numbers: Ints32, rows: Floats, out: Floats) -> None:
    """Add a slice's rows to those of the corpus; what is beyond its end is left out."""
    for n in range(numbers.shape[0]):
        if numbers[n] < out.shape[0]:
            for j in range(out.shape[1]):
                out[numbers[n], j] += rows[n, j]
