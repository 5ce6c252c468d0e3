"""Duplicates: annotators who gave the same labels wherever two of them looked are one annotator.

An account that was exported twice, or one prompt asked again, would outvote everybody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, starmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.algebra import seen_pairs, without_pairs
from quorate.crowd.crowd import Cells, Crowd
from quorate.crowd.lots import labels_of_pairs
from quorate.crowd.together import ENOUGH, groups_of, in_common

Integers = NDArray[np.int64]

_THE_SAME = 1 - 1e-9  # cosine of their spans, but for rounding


def merge_duplicates(crowd: Crowd) -> Crowd:
    """The crowd in which duplicates are one annotator."""
    note = duplicates(crowd)
    return crowd.noting(note) if note.groups else crowd


def duplicates(crowd: Crowd) -> Duplicates:
    """The annotators who gave the same labels wherever two of them looked, group by group.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.crowd.encode import encode
    >>> tags = {"ann": ("B-X", "O"), "ann2": ("B-X", "O"), "bob": ("O", "B-X")}
    >>> corpus = Corpus([Document(str(n), ("Ada", "sang"), tags) for n in range(50)])
    >>> duplicates(encode(corpus, corpus.tagset())).groups
    ((0, 1),)
    """
    if crowd.tagset.outside is None:
        return Duplicates(())
    pairs = in_common(crowd, [None], ENOUGH)
    near = pairs.where(pairs.cosine >= _THE_SAME)
    if not len(near.one):
        return Duplicates(())
    document, who = seen_pairs(crowd)
    labels = labels_of_pairs(crowd)

    def agree(one: int, other: int) -> bool:
        mine, theirs = np.flatnonzero(who == one), np.flatnonzero(who == other)
        _, here, there = np.intersect1d(document[mine], document[theirs], assume_unique=True, return_indices=True)
        return bool((labels[mine[here]] == labels[theirs[there]]).all())

    linked = groups_of(near.one, near.other, len(crowd.annotators))
    return Duplicates(tuple(tuple(group) for group in linked if all(starmap(agree, combinations(group, 2)))))


class Duplicates(NamedTuple):
    """Annotators who are one, group by group; the first of each stands for all."""

    groups: tuple[tuple[int, ...], ...]

    @property
    def merges(self) -> bool:
        """It does."""
        return True

    @property
    def adds(self) -> tuple[str, ...]:
        """None."""
        return ()

    def plain(self) -> dict[str, Any]:
        """As plain values, for a file."""
        return {"groups": [list(group) for group in self.groups]}

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Duplicates:
        """What :meth:`plain` gave."""
        return cls(tuple(tuple(map(int, group)) for group in plain["groups"]))

    def dependent(self, document: Integers, who: Integers) -> tuple[Integers, Integers]:
        """The other members of their groups."""
        members = {k: [n for n in group if n != k] for group in self.groups for k in group}
        others = [members.get(k, []) for k in who.tolist()]
        place = np.repeat(np.arange(len(who)), [len(one) for one in others])
        return document[place], np.array([k for one in others for k in one], np.int64)

    def applied(self, crowd: Crowd) -> Crowd:
        """The crowd in which the members of each group are one annotator, the first, with their labels once.

        In each document they are those of the first member who labelled it: the others gave the same.

        >>> from quorate.corpus.records import Corpus, Document
        >>> from quorate.crowd.encode import encode
        >>> both = Document("1", ("Ada",), {"a": ("B-X",), "b": ("B-X",)})
        >>> one = Document("2", ("Bo",), {"b": ("O",)})
        >>> merged = Duplicates(((0, 1),)).applied(encode(corpus := Corpus([both, one]), corpus.tagset()))
        >>> merged.event_start.tolist(), merged.cells.annotator[merged.event_cell].tolist()
        ([0, 1, 2], [0, 0])
        """
        cells, group = crowd.cells, np.arange(len(crowd.annotators))
        for first, *others in self.groups:
            group[others] = first
        document, who = seen_pairs(crowd)
        _, first_of_group = np.unique(document * max(len(group), 1) + group[who], return_index=True)
        again = np.ones(len(who), np.bool_)
        again[first_of_group] = False
        left = without_pairs(crowd, again)
        keys, place = np.unique(cells._replace(annotator=group[cells.annotator]).keys, return_inverse=True)
        merged = Cells.of_keys(keys, *cells[3:])
        return replace(left, cells=merged, event_cell=place.astype(np.int32)[left.event_cell], slices=None)
