"""Annotators who err together: what they have in common weighs once, not once for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.algebra import laid_end_to_end, paired, seen_pairs
from quorate.crowd.crowd import WORKED_OUT, Crowd
from quorate.crowd.kernels import weigh_pairs
from quorate.crowd.voices import in_one_voice

__all__ = ["Sharing"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_PARTNERS_AT_ONCE = 1 << 22
_MOST_KEPT = 1 << 24  # bytes


class Sharing(NamedTuple):
    """``share`` (above 0, at most 1) is how much annotators ``one`` and ``other`` have in common beyond the truth.

    In a document, the word of annotator k counts 1 / (1 + Σ_l share_kl) over the others who saw it: of five who always
    say the same each counts a fifth. ``voices`` are copies, who share everything, and are heard as one annotator.

    >>> sharing = Sharing.of([(0, 1, 1.0), (1, 2, 0.5)])
    >>> sharing.weights(np.array([0, 0, 1]), np.array([0, 1, 1])).tolist()
    [0.5, 0.5, 1.0]
    """

    one: Integers
    other: Integers
    share: Floats
    voices: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(cls, pairs: Sequence[tuple[int, int, float]] = (), voices: Iterable[Sequence[int]] = ()) -> Self:
        """From pairs of annotators, each pair once; without any, everybody stands for themselves."""
        one, other, share = zip(*pairs, strict=True) if pairs else ((), (), ())
        columns = (np.array(one, np.int64), np.array(other, np.int64), np.array(share, np.float64))
        return cls(*columns, tuple(tuple(sorted(copies)) for copies in voices))

    @classmethod
    def within(cls, group: Sequence[int]) -> Self:
        """Annotators who share a number count as one.

        >>> Sharing.within([0, 1, 0]).pairs()
        [(0, 2, 1.0)]
        """
        return cls.of([(k, n, 1.0) for n in range(len(group)) for k in range(n) if group[k] == group[n]])

    def pairs(self) -> list[tuple[int, int, float]]:
        """As a list, for a file."""
        return list(zip(self.one.tolist(), self.other.tolist(), self.share.tolist(), strict=True))

    def __bool__(self) -> bool:
        return len(self.one) > 0 or bool(self.voices)

    def weights(self, document: NDArray[np.integer], who: NDArray[np.integer]) -> Floats:
        """How much each annotator's word counts in a document; the two say who saw which, each pair once."""
        if not len(self.one) or not len(who):
            return np.ones(len(who))
        K = int(max(who.max(), self.one.max(), self.other.max())) + 1
        pair = document.astype(np.int64) * K + who
        seen, in_common = np.sort(pair), np.zeros(len(who))
        most = int(np.bincount(np.concatenate([self.one, self.other])).max())
        at_once = max(_PARTNERS_AT_ONCE // most, 1)  # everybody's partners take much more room than those who are there
        for first in range(0, len(who), at_once):
            here = slice(first, first + at_once)
            number, partner, share = self._partners(who[here])
            wanted = pair[here][number] - who[here][number] + partner
            place = np.minimum(np.searchsorted(seen, wanted), len(seen) - 1)
            in_common[here] = np.bincount(number, share * (seen[place] == wanted), minlength=len(who[here]))
        return 1.0 / (1.0 + in_common)

    @property
    def speaker(self) -> dict[int, int]:
        """Of every copy but the first of a voice, which has the name of all, that first one.

        >>> Sharing.of(voices=[(1, 2, 4)]).speaker
        {2: 1, 4: 1}
        """
        return {k: first for first, *others in self.voices for k in others}

    def heard(self, encoded: Crowd) -> Crowd:
        """What was said, in which copies are one annotator, who says what most of them do.

        >>> from quorate.corpus.records import Corpus, Document
        >>> from quorate.crowd.encode import encode
        >>> said = {name: ("B-PER",) for name in ("a", "a+1", "a+2", "bob")}
        >>> encoded = encode(corpus := Corpus([Document("1", ("Ada",), said)]), corpus.tagset())
        >>> len(Sharing.of(voices=[(0, 1, 2)]).heard(encoded).event_cell)
        2
        """
        if not self.voices:
            return encoded
        worked_out = vars(encoded).setdefault(WORKED_OUT, {})
        found: Crowd | None = worked_out.get(self.voices)
        if found is None:
            found = in_one_voice(encoded, self.voices)
            if found.event_cell.nbytes <= _MOST_KEPT:  # several ask for it; of a large corpus, room is dearer than time
                worked_out[self.voices] = found
        return found

    def weighed(self, encoded: Crowd) -> Crowd:
        """What is :meth:`heard`, each label with the weight of its annotator in its document."""
        encoded = self.heard(encoded)
        if not len(self.one):
            return encoded
        document, who = seen_pairs(encoded)
        weight = np.empty(len(encoded.event_cell))
        weigh_pairs(paired(encoded, document, who), self.weights(document, who), weight)
        return replace(encoded, event_weight=weight)

    def at_least(self, share: float) -> Self:
        """Only the pairs that have so much in common, and copies, who share everything."""
        much = self.share >= share
        return type(self)(self.one[much], self.other[much], self.share[much], self.voices)

    def partners(self, document: Integers, who: Integers) -> tuple[Integers, Integers]:
        """Everybody who has something in common with one of these, beside the document: (document, annotator)."""
        number, partner, _ = self._partners(who)
        return document[number], partner

    def _partners(self, who: NDArray[np.integer]) -> tuple[Integers, Integers, Floats]:
        """Everybody who has something in common with one of these: the number of that one, who it is, how much."""
        ends, partner = np.concatenate([self.one, self.other]), np.concatenate([self.other, self.one])
        order = np.argsort(ends, kind="stable")
        ends, partner, share = ends[order], partner[order], np.concatenate([self.share, self.share])[order]
        first = np.searchsorted(ends, who)
        times = np.searchsorted(ends, who, side="right") - first
        _, position = laid_end_to_end(first, times)
        return np.repeat(np.arange(len(who)), times), partner[position], share[position]

    def groups(self, n_annotators: int) -> list[list[int]]:
        """Annotators linked by these pairs, group by group, two or more in each.

        >>> Sharing.of([(0, 3, 1.0), (3, 1, 0.2)]).groups(5)
        [[0, 1, 3]]
        """
        group = np.arange(n_annotators)  # by its lowest member
        copy, speaker = np.array(list(self.speaker.items()), np.int64).reshape(-1, 2).T
        one, other = np.concatenate([self.one, copy]), np.concatenate([self.other, speaker])
        while True:
            lower = group.copy()
            np.minimum.at(lower, one, group[other])
            np.minimum.at(lower, other, group[one])
            lower = lower[lower]  # a member's member is a member
            if (lower == group).all():
                break
            group = lower
        members: dict[int, list[int]] = {}
        for annotator, n in enumerate(group.tolist()):
            members.setdefault(n, []).append(annotator)
        return [group for group in members.values() if len(group) > 1]
