"""The compiled kernels of a pass over a slice: evidence, forward–backward, counts. Pure functions on arrays.

What was said and the words are turned from logarithms into probabilities once a set and once a word; a token's evidence
is the product of two rows. The recursion is scaled. Where labels are so many nats apart that a token's sum vanishes,
the document is done again in log space. EM and VB use the same kernels: VB only passes rows that sum to less than 1.

Letters: D documents, N tokens, U sets, C cells and V words of a slice, J labels, L tokens of one document. Rows of
labels are filled up with zeros to a multiple of four, their *width*, and lie end to end in flat arrays.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quorate.infer.layout import Slice
from quorate.infer.simd import WIDTH, add, keep, multiply, product_sum, scale, scaled_product, step

__all__ = [
    "Rows",
    "Steps",
    "Sums",
    "cell_sums",
    "chain_pass",
    "gather_evidence",
    "independent_pass",
    "log_forward_backward",
    "log_sum",
    "longest_document",
    "merge",
    "vote_pass",
]

Floats = NDArray[np.float64]
Ints32 = NDArray[np.int32]

# What falls below LOST next to the best label is, or after one more step may be, lost to underflow; where everything
# else then falls almost as far, what was lost might have mattered.
LOST = 1e-300
MARGIN = 115.0


class Rows(NamedTuple):
    """Log-likelihoods of what was observed, by truth: of a cell ``[G, J]``, of a word ``[V, J]`` (empty: no text).

    ``temper`` is how much of a cell's row counts; ``end`` ``[J]`` is 0, or −inf where a document may not end so.
    """

    cells: Floats
    words: Floats
    temper: float
    end: Floats


class Steps(NamedTuple):
    """The truth's first label ``[J]`` and its steps ``[J, J]``: logarithms; and as they are, in rows.

    ``back`` is ``trans`` transposed. ``least`` is the smallest step that is possible at all, and at most 1.
    """

    log_start: Floats
    log_trans: Floats
    start: Floats
    trans: Floats
    back: Floats
    least: float


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
def longest_document(piece: Slice) -> int:
    """The most tokens that a document has."""
    longest = 0
    for d in range(piece.doc_start.shape[0] - 1):
        longest = max(longest, piece.doc_start[d + 1] - piece.doc_start[d])
    return longest


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
def exponentials(logs: Floats, J: int, out: Floats, place: int) -> float:
    """Write exp(logs − their maximum) into a row; returns the maximum."""
    top = -math.inf
    for j in range(J):
        top = max(top, logs[j])
    if top > -math.inf:
        for j in range(J):
            out[place + j] = math.exp(logs[j] - top)
    return top


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
    table, tops = np.zeros(n_sets * width), np.empty(n_sets)
    logs = np.zeros(width)
    for u in range(n_sets):
        for j in range(width):
            logs[j] = 0.0
        for e in range(piece.set_start[u], piece.set_start[u + 1]):
            add(logs, 0, cells, piece.event_cell[e] * width, piece.event_weight[e] if weighted else 1.0, B)
        tops[u] = exponentials(logs, J, table, u * width)
    return table, tops


@njit(nogil=True, cache=True)
def word_rows(piece: Slice, rows: Rows, width: int) -> tuple[Floats, Floats]:
    """The same of each word ``[V]``; ones where a word has no row."""
    n_words, J = piece.words.shape[0], rows.cells.shape[1]
    table, tops = np.zeros(n_words * width), np.zeros(n_words)
    for v in range(n_words):
        if piece.words[v] < rows.words.shape[0]:
            tops[v] = exponentials(rows.words[piece.words[v]], J, table, v * width)
        else:
            for j in range(J):
                table[v * width + j] = 1.0
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
def forward(
    piece: Slice,
    begin: int,
    L: int,
    steps: Steps,
    ends: Floats,
    sets: Floats,
    words: Floats,
    J: int,
    evidence: Floats,
    alpha: Floats,
    totals: Floats,
) -> float:
    """Fills evidence, p(label | evidence up to t) and the sums before normalising; returns Σ ln of these, or nan.

    nan means that too much was lost to underflow.
    """
    B = blocks_of(J)
    width = WIDTH * B
    lost_below = LOST / steps.least
    fall = math.log(lost_below) + MARGIN
    lost = False
    since_loss = 0.0
    log_z = 0.0
    running = 1.0  # a product of sums, of which one logarithm is taken for many tokens
    for t in range(L):
        token = begin + t
        here = t * width
        multiply(evidence, here, sets, piece.token_set[token] * width, words, piece.token_word[token] * width, B)
        if t == 0:
            scale(alpha, 0, steps.start, 0, 1.0, B)
        else:
            step(alpha, here, alpha, here - width, steps.trans, J, B)
        if t == L - 1:
            multiply(evidence, here, evidence, here, ends, 0, B)
            multiply(alpha, here, alpha, here, ends, 0, B)
        if piece.known.shape[0] and piece.known[token] >= 0:
            for j in range(J):
                if j != piece.known[token]:
                    evidence[here + j] = 0.0
                    alpha[here + j] = 0.0
        total = product_sum(alpha, here, evidence, here, lost_below, B)
        if total < 0.0:
            lost = True
            total = -total
        if not total > LOST:
            return math.nan
        if lost:
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
        scaled_product(alpha, here, alpha, here, evidence, here, 1.0 / total, B)
        totals[t] = total
    return log_z + math.log(running)


@njit(nogil=True, cache=True)
def backward(
    L: int, steps: Steps, J: int, evidence: Floats, alpha: Floats, totals: Floats, beta: Floats, unscaled: Floats
) -> None:
    """Turns ``alpha`` into the posterior; adds Σ s without the factor T, which is the same for all tokens."""
    B = blocks_of(J)
    width = WIDTH * B
    now, before = 0, width  # the two rows of beta
    for j in range(width):
        beta[now + j] = 1.0
    for t in range(L - 1, 0, -1):
        here = t * width
        multiply(alpha, here, alpha, here, beta, now, B)
        scaled_product(evidence, here, evidence, here, beta, now, 1.0 / totals[t], B)
        step(beta, before, evidence, here, steps.back, J, B)
        for i in range(J):
            add(unscaled, i * width, evidence, here, alpha[here - width + i], B)
        # A label that cannot be reached has no posterior, however well it would explain the rest.
        keep(beta, before, alpha, here - width, B)
        now, before = before, now
    multiply(alpha, 0, alpha, 0, beta, now, B)


@njit(nogil=True, cache=True)
def chain_pass(piece: Slice, rows: Rows, steps: Steps, posterior: Floats) -> Sums:
    """One pass over a slice. Fills ``posterior`` ``[N, J]`` unless it is empty."""
    J = rows.cells.shape[1]
    B = blocks_of(J)
    width = WIDTH * B
    sets, set_tops = set_rows(piece, rows, width)
    words, word_tops = word_rows(piece, rows, width)
    of_sets, of_words = np.zeros(sets.shape[0]), np.zeros(words.shape[0])
    longest = longest_document(piece)
    evidence, alpha = np.empty(longest * width), np.empty(longest * width)
    beta, totals = np.empty(2 * width), np.empty(longest)
    unscaled = np.zeros(J * width)
    starts, pairs, labels = np.zeros(J), np.zeros((J, J)), np.zeros(width)
    ends = np.zeros(width)
    for j in range(J):
        ends[j] = math.exp(rows.end[j])
    log_z = 0.0
    stuck = -1
    for d in range(piece.doc_start.shape[0] - 1):
        begin = piece.doc_start[d]
        L = piece.doc_start[d + 1] - begin
        if L == 0:
            continue
        log_scale = forward(piece, begin, L, steps, ends, sets, words, J, evidence, alpha, totals)
        if math.isnan(log_scale):
            log_scale = log_chain(piece, rows, steps, d, width, alpha, pairs)
            if not log_scale > -math.inf:
                stuck = d
                break
        else:
            backward(L, steps, J, evidence, alpha, totals, beta, unscaled)
            for t in range(begin, begin + L):
                log_scale += set_tops[piece.token_set[t]] + word_tops[piece.token_word[t]]
        log_z += log_scale
        for j in range(J):
            starts[j] += alpha[j]
        for t in range(L):
            here = t * width
            add(of_sets, piece.token_set[begin + t] * width, alpha, here, 1.0, B)
            add(of_words, piece.token_word[begin + t] * width, alpha, here, 1.0, B)
        if posterior.shape[0]:
            for t in range(L):
                for j in range(J):
                    posterior[begin + t, j] = alpha[t * width + j]
    for i in range(J):
        for j in range(J):
            if steps.trans[i * width + j] > 0.0:
                pairs[i, j] += unscaled[i * width + j] * steps.trans[i * width + j]
    for u in range(piece.set_start.shape[0] - 1):
        add(labels, 0, of_sets, u * width, 1.0, B)
    cells = spread_sets(piece, rows.temper, J, of_sets)
    return Sums(
        log_z, starts, pairs, labels[:J].copy(), cells, unpacked(of_words, piece.words.shape[0], J, width), stuck
    )


@njit(nogil=True, cache=True)
def log_chain(piece: Slice, rows: Rows, steps: Steps, d: int, width: int, posterior: Floats, pairs: Floats) -> float:
    """Posterior (in rows) and Σ s of one document in log space; returns ln Z."""
    J = rows.cells.shape[1]
    L = piece.doc_start[d + 1] - piece.doc_start[d]
    evidence = np.empty((L, J))
    log_alpha = np.empty((L, J))
    log_beta = np.empty((L, J))
    gather_evidence(piece, rows, d, evidence)
    log_z = log_forward_backward(evidence, L, steps, log_alpha, log_beta)
    if log_z > -math.inf:
        for t in range(L):
            for j in range(width):
                posterior[t * width + j] = math.exp(log_alpha[t, j] + log_beta[t, j] - log_z) if j < J else 0.0
        for t in range(1, L):
            for i in range(J):
                for j in range(J):
                    exponent = steps.log_trans[i, j] + evidence[t, j]
                    pairs[i, j] += math.exp(log_alpha[t - 1, i] + exponent + log_beta[t, j] - log_z)
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
    labels = np.zeros(width)
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
        total = product_sum(row, 0, steps.start, 0, 0.0, B)
        if total > 1e-200:
            multiply(row, 0, row, 0, steps.start, 0, B)
            log_total = math.log(total) + set_tops[u] + word_tops[v]
        else:
            gather_token(piece, rows, t, logs)
            for j in range(J):
                logs[j] += steps.log_start[j]
            log_total = exponentials(logs, J, row, 0)
            total = 0.0
            for j in range(J):
                total += row[j]
            log_total += math.log(total)
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
