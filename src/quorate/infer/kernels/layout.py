"""A corpus cut into slices that fit into a core's cache, each with its own short numbers.

A slice numbers the words, the cells and the *sets* that occur in it: a set is everything that was said about a token.
In a crowd most tokens of a document are ``O`` to the same few annotators, so that a slice has several times fewer sets
than tokens, and what is computed of annotators is computed once a set.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["Slice", "lay_out", "longest_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]


class Slice(NamedTuple):
    """Some documents. Document d of it has tokens ``doc_start[d]`` to ``doc_start[d + 1]``, counted from its first.

    Token t has the word ``words[token_word[t]]`` and the set ``token_set[t]``; set u has the events ``set_start[u]`` to
    ``set_start[u + 1]``, each of the cell ``cells[event_cell[e]]``. ``event_weight`` may be empty (all events count 1),
    and so may ``known`` (no label is known; else −1 where not) and ``times`` (every token occurs once; only for
    documents of one token). ``by_length`` are the documents, longest first.
    """

    doc_start: Ints
    token_word: Ints32
    token_set: Ints32
    set_start: Ints
    event_cell: Ints32
    event_weight: Floats
    words: Ints32
    cells: Ints32
    known: Ints32
    times: Floats
    by_length: Ints


@njit(nogil=True, cache=True)
def longest_of(doc_start: Ints) -> int:
    """The most tokens that a document has."""
    longest = 0
    for d in range(doc_start.shape[0] - 1):
        longest = max(longest, doc_start[d + 1] - doc_start[d])
    return longest


@njit(nogil=True, cache=True)
def _same(event_cell: Ints32, event_weight: Floats, one: int, other: int, length: int) -> bool:
    """Whether two runs of events are alike."""
    for e in range(length):
        if event_cell[one + e] != event_cell[other + e]:
            return False
        if event_weight.shape[0] and event_weight[one + e] != event_weight[other + e]:
            return False
    return True


@njit(nogil=True, cache=True)
def _numbered(global_numbers: Ints32, size: int) -> tuple[Ints32, Ints32]:
    """Short numbers in the order of the first time, and what each stands for."""
    short = np.full(size, -1, np.int32)
    out = np.empty(global_numbers.shape[0], np.int32)
    met = np.empty(min(size, global_numbers.shape[0]), np.int32)
    n = 0
    for place in range(global_numbers.shape[0]):
        number = global_numbers[place]
        if short[number] < 0:
            short[number] = n
            met[n] = number
            n += 1
        out[place] = short[number]
    return out, met[:n].copy()


@njit(nogil=True, cache=True)
def lay_out(
    event_start: Ints, event_cell: Ints32, event_weight: Floats, word: Ints32, n_cells: int, n_words: int
) -> tuple[Ints32, Ints32, Ints, Ints32, Floats, Ints32, Ints32]:
    """The fields of a :class:`Slice` from ``token_word`` to ``cells``, of the tokens that are given.

    ``event_start`` (one more than tokens) points into ``event_cell`` and ``event_weight``.
    """
    n_tokens = word.shape[0]
    room = 16
    while room < 2 * n_tokens:
        room *= 2
    table = np.full(room, -1, np.int32)  # set by hash, open addressing
    token_set = np.empty(n_tokens, np.int32)
    first_token = np.empty(n_tokens, np.int32)
    n_sets = 0
    n_events = 0
    for t in range(n_tokens):
        begin, end = event_start[t], event_start[t + 1]
        key = np.uint64(end - begin)
        for e in range(begin, end):
            key = (key ^ np.uint64(event_cell[e])) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(29)
        slot = np.int64(key & np.uint64(room - 1))
        while True:
            found = table[slot]
            if found < 0:
                table[slot] = n_sets
                first_token[n_sets] = t
                token_set[t] = n_sets
                n_sets += 1
                n_events += end - begin
                break
            start = event_start[first_token[found]]
            length = event_start[first_token[found] + 1] - start
            if length == end - begin and _same(event_cell, event_weight, start, begin, length):
                token_set[t] = found
                break
            slot = (slot + 1) & (room - 1)
    set_start = np.zeros(n_sets + 1, np.int64)
    said = np.empty(n_events, np.int32)
    weight = np.empty(n_events if event_weight.shape[0] else 0)
    n = 0
    for u in range(n_sets):
        for e in range(event_start[first_token[u]], event_start[first_token[u] + 1]):
            said[n] = event_cell[e]
            if event_weight.shape[0]:
                weight[n] = event_weight[e]
            n += 1
        set_start[u + 1] = n
    short_cells, cells = _numbered(said, n_cells)
    short_words, words = _numbered(word, n_words)
    return short_words, token_set, set_start, short_cells, weight, words, cells
