"""A pass over a slice: evidence, forward–backward, counts. Pure functions on arrays (``native/chain.c``).

What was said and the words are turned from logarithms into probabilities once a set and once a word; a token's evidence
is the product of two rows. The recursion is scaled. Where labels are so many nats apart that a token's sum vanishes,
the document is done again in log space. EM and VB use the same kernels: VB only passes rows that sum to less than 1.
Documents of like length are worked on side by side (``native/lanes.c``).

Letters: D documents, N tokens, U sets, C cells and V words of a slice, J labels, L tokens of one document.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.layout import Slice
from quorate.model.kernels.native import native
from quorate.model.kernels.single import Steps

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
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

    Also posteriors by the slice's cells ``[C, J]`` and words ``[V, J]``; the first document without a path, or −1; and
    how many documents had to be done in log space.
    """

    log_z: float
    starts: Floats
    pairs: Floats
    labels: Floats
    cells: Floats
    words: Floats
    stuck: int = -1
    redone: int = 0


class Filled(NamedTuple):
    """The arrays of :class:`Sums`, and the posterior of every token ``[N, J]`` (empty: not wanted), to be filled in."""

    starts: Floats
    pairs: Floats
    labels: Floats
    cells: Floats
    words: Floats
    posterior: Floats

    def sums(self, log_z: float, stuck: int = -1, redone: int = 0) -> Sums:
        """Once they are."""
        return Sums(log_z, *self[:-1], stuck, redone)


def _room_for(piece: Slice, J: int, posterior: Floats) -> Filled:
    by_cell, by_word = np.zeros((len(piece.cells), J)), np.zeros((len(piece.words), J))
    return Filled(np.zeros(J), np.zeros((J, J)), np.zeros(J), by_cell, by_word, posterior)


@native
def fill_chain_pass(piece: Slice, rows: Rows, steps: Steps, long_document: int, out: Filled, noted: Ints) -> float:
    """Σ ln Z; ``noted`` becomes the first document without a path, or −1, and how many were done in log space."""


def chain_pass(piece: Slice, rows: Rows, steps: Steps, posterior: Floats) -> Sums:
    """One pass over a slice. Fills ``posterior`` ``[N, J]`` unless it is empty."""
    out, noted = _room_for(piece, rows.cells.shape[1], posterior), np.zeros(2, np.int64)
    log_z = fill_chain_pass(piece, rows, steps, LONG, out, noted)
    return out.sums(log_z, int(noted[0]), int(noted[1]))


@native
def fill_independent_pass(piece: Slice, rows: Rows, steps: Steps, out: Filled) -> float:
    """Σ ln Z."""


def independent_pass(piece: Slice, rows: Rows, steps: Steps, posterior: Floats) -> Sums:
    """One pass in which every token stands alone. Fills ``posterior`` ``[N, J]`` unless it is empty."""
    out = _room_for(piece, rows.cells.shape[1], posterior)
    return out.sums(fill_independent_pass(piece, rows, steps, out))


@native
def fill_vote_pass(piece: Slice, votes: Floats, smoothing: float, temper: float, out: Filled) -> None:
    """Fills the sums."""


def vote_pass(piece: Slice, votes: Floats, smoothing: float, temper: float, posterior: Floats) -> Sums:
    """Shares of votes as posterior: an event votes with its cell's row. Pairs as if tokens stood alone."""
    out = _room_for(piece, votes.shape[1], posterior)
    fill_vote_pass(piece, votes, smoothing, temper, out)
    return out.sums(0.0)


@native
def fill_cell_sums(piece: Slice, posterior: Floats, out: Floats) -> None:
    """Fills ``out`` ``[C, J]``."""


def cell_sums(piece: Slice, posterior: Floats) -> Floats:
    """``[C, J]`` Counts of the slice's cells under a posterior ``[N, J]`` that comes from elsewhere."""
    out = np.empty((len(piece.cells), posterior.shape[1]))
    fill_cell_sums(piece, posterior, out)
    return out


@native
def merge(numbers: Ints32, rows: Floats, out: Floats) -> None:
    """Add a slice's rows to those of the corpus; what is beyond its end is left out."""


@native
def recurse(piece: Slice, rows: Rows, steps: Steps, times: int) -> float:
    """Forward and backward over all documents side by side, and nothing else, again and again: for measurements."""
