"""Slices of corpora on disk under other numbers: several files as one corpus, or a few slices as a corpus of its own.

The short numbers of a slice stay as they are. Only what each stands for changes, a word or a cell, so that nothing is
laid out again, and the long arrays of a corpus are not read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.crowd import Crowd, CrowdWhenAsked, PartOnDisk, Shard, SlicesOnDisk

Integers = NDArray[np.int64]

_WORDS, _CELLS = 5, 6  # where a slice has the words and the cells that its short numbers stand for


class Renumbered(NamedTuple):
    """Slices ``first`` to ``last`` of a corpus on disk, and the number that each of its cells and words gets."""

    encoded: Crowd
    first: int
    last: int
    cell_of: Integers
    word_of: Integers

    @property
    def slices(self) -> SlicesOnDisk:
        """All slices of the corpus."""
        assert self.encoded.slices is not None
        return self.encoded.slices

    @property
    def bounds(self) -> list[int]:
        """The documents at which the slices begin, and the end."""
        return self.slices.bounds[self.first : self.last + 1]

    @property
    def tokens(self) -> slice:
        """Its tokens among those of the corpus."""
        first, last = self.encoded.doc_start[[self.bounds[0], self.bounds[-1]]].tolist()
        return slice(first, last)

    @property
    def events(self) -> slice:
        """Its events among those of the corpus."""
        tokens = self.tokens
        return slice(int(self.encoded.event_start[tokens.start]), int(self.encoded.event_start[tokens.stop]))

    def doc_start(self) -> Integers:
        """Where documents begin, counted from the first."""
        return _from_nought(self.encoded.doc_start[self.bounds[0] : self.bounds[-1] + 1])

    def event_start(self) -> Integers:
        """Where the events of tokens begin, counted from the first."""
        return _from_nought(self.encoded.event_start[self.tokens.start : self.tokens.stop + 1])

    def word(self) -> NDArray[np.int32]:
        """The word of each token."""
        return self.word_of[self.encoded.word[self.tokens]].astype(np.int32)

    def event_cell(self) -> NDArray[np.int32]:
        """The cell of each event."""
        return self.cell_of[self.encoded.event_cell[self.events]].astype(np.int32)

    def event_weight(self) -> NDArray[np.float64]:
        """How much each event counts."""
        weight, events = self.encoded.event_weight, self.events
        return np.ones(events.stop - events.start) if weight is None else weight[events]


class RenumberedSlices:
    """The slices of several pieces, one after the other: see :class:`quorate.crowd.crowd.SlicesOnDisk`."""

    def __init__(self, pieces: Sequence[Renumbered]) -> None:
        self._pieces = tuple(pieces)
        self.bounds, self.files = [0], [0]
        for piece in self._pieces:
            shift = self.bounds[-1] - piece.bounds[0]
            self.bounds += [bound + shift for bound in piece.bounds[1:]]
            self.files.append(len(self.bounds) - 1)
        identity = [(piece.slices.digest, piece.first, piece.last) for piece in self._pieces]
        self.digest = sha256(repr(identity).encode()).hexdigest()
        self.of: Crowd | None = None

    def fits(self, encoded: Crowd) -> bool:
        """Whether this is a layout of these very arrays."""
        return isinstance(encoded, CrowdWhenAsked) and self.of is not None and encoded.makes_as(self.of)

    def __getitem__(self, s: int) -> tuple[NDArray[Any], ...]:
        piece, own = self._place(s)
        laid_out = list(piece.slices[own])
        laid_out[_WORDS] = piece.word_of[laid_out[_WORDS]].astype(np.int32)
        laid_out[_CELLS] = piece.cell_of[laid_out[_CELLS]].astype(np.int32)
        return tuple(laid_out)

    def part(self, first: int, last: int) -> PartOnDisk:
        """Slices ``first`` to ``last``, which lie in one file, for another process to open."""
        piece, own = self._place(first)
        return piece.slices.part(own, own + last - first)

    def numbers_here(self, first: int, cells: Integers, words: Integers) -> tuple[Integers, Integers]:
        """The cells and words of a file, that of slice ``first``, by their numbers in the corpus."""
        piece, own = self._place(first)
        cells, words = piece.slices.numbers_here(own, cells, words)
        return piece.cell_of[cells], piece.word_of[words]

    def _place(self, s: int) -> tuple[Renumbered, int]:
        """The piece that a slice is of, and its number there."""
        number = bisect_right(self.files, s) - 1
        piece = self._pieces[number]
        return piece, s - self.files[number] + piece.first


def renumbered(pieces: Sequence[Renumbered], **fields: Any) -> Crowd:
    """Pieces one after the other as a corpus; ``fields`` are tag set, names, words and cells, which they share."""
    slices = RenumberedSlices(pieces)

    def end_to_end(make: Callable[[Renumbered], NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate([make(piece) for piece in pieces])

    def starts(make: Callable[[Renumbered], Integers]) -> Integers:
        lengths = end_to_end(lambda piece: np.diff(make(piece)))
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    long_arrays: dict[str, Callable[[], NDArray[Any]]] = {
        "word": partial(end_to_end, Renumbered.word),
        "event_start": partial(starts, Renumbered.event_start),
        "event_cell": partial(end_to_end, Renumbered.event_cell),
        "event_weight": partial(end_to_end, Renumbered.event_weight),
    }
    if all(piece.encoded.event_weight is None for piece in pieces):
        fields["event_weight"] = None
    fields["soft"] = "event_weight" not in fields
    slices.of = CrowdWhenAsked.of(long_arrays, doc_start=starts(Renumbered.doc_start), slices=slices, **fields)
    return slices.of


def shard_of_slices(encoded: Crowd, first: int, last: int) -> Shard:
    """Slices ``first`` to ``last`` of a corpus on disk, with short numbers of their own."""
    slices = encoded.slices
    assert slices is not None
    laid_out = [slices[s] for s in range(first, last)]
    words, cells = (
        np.unique(np.concatenate([each[place] for each in laid_out])).astype(np.int64) for place in (_WORDS, _CELLS)
    )
    word_of, cell_of = np.zeros(len(encoded.words), np.int64), np.zeros(len(encoded.cells.label), np.int64)
    word_of[words], cell_of[cells] = np.arange(len(words)), np.arange(len(cells))
    own = encoded.cells._replace(
        annotator=encoded.cells.annotator[cells],
        previous=encoded.cells.previous[cells],
        label=encoded.cells.label[cells],
    )
    piece = Renumbered(encoded, first, last, cell_of, word_of)
    fields = {"tagset": encoded.tagset, "annotators": encoded.annotators, "words": ("",) * len(words)}
    return Shard(renumbered([piece], **fields, cells=own, repaired=encoded.repaired), cells, words)


def _from_nought(starts: Integers) -> Integers:
    counted: Integers = starts - starts[0]
    return counted
