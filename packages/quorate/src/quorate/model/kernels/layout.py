"""A corpus cut into slices that fit into a core's cache, each with its own short numbers.

A slice numbers the words, the cells and the *sets* that occur in it: a set is everything that was said about a token.
In a crowd most tokens of a document are ``O`` to the same few annotators, so that a slice has several times fewer sets
than tokens, and what is computed of annotators is computed once a set.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.algebra import laid_end_to_end
from quorate.model.kernels.native import native

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


def longest_of(doc_start: Ints) -> int:
    """The most tokens that a document has."""
    return int(np.diff(doc_start).max(initial=0))


def lay_out(
    event_start: Ints, event_cell: Ints32, event_weight: Floats, word: Ints32, n_cells: int, n_words: int
) -> tuple[Ints32, Ints32, Ints, Ints32, Floats, Ints32, Ints32]:
    """The fields of a :class:`Slice` from ``token_word`` to ``cells``, of the tokens that are given.

    ``event_start`` (one more than tokens) points into ``event_cell`` and ``event_weight``.
    """
    token_set, first_token = np.empty(len(word), np.int32), np.empty(len(word), np.int64)
    n_sets = find_sets(event_start, event_cell, event_weight, token_set, first_token)
    first_token = first_token[:n_sets]
    begin = event_start[first_token]
    set_start, events = laid_end_to_end(begin, event_start[first_token + 1] - begin)
    short_cells, cells = _numbered(event_cell[events], n_cells)
    short_words, words = _numbered(word, n_words)
    weight = event_weight[events] if len(event_weight) else np.empty(0)
    return short_words, token_set, set_start, short_cells, weight, words, cells


@native
def find_sets(event_start: Ints, event_cell: Ints32, event_weight: Floats, token_set: Ints32, first_token: Ints) -> int:
    """Each token's set, and the first token of each set, in their order; returns how many sets there are."""


def _numbered(numbers: Ints32, size: int) -> tuple[Ints32, Ints32]:
    """Short numbers in the order of the first time, and what each stands for."""
    short_numbers, met = np.empty(len(numbers), np.int32), np.empty(min(size, len(numbers)), np.int32)
    n = number_anew(numbers, size, short_numbers, met)
    return short_numbers, met[:n].copy()


@native
def number_anew(numbers: Ints32, size: int, short_numbers: Ints32, met: Ints32) -> int:
    """The same, into the room that is given; returns how many short numbers there are."""
