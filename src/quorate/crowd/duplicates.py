"""Duplicates: annotators who marked nearly the same wherever both looked are one annotator.

An account that was exported twice, or samples of one prompt, would outvote everybody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.algebra import (
    Spans,
    document_of,
    labels_of_spans,
    marked_spans,
    seen_pairs,
    token_of,
    token_of_events,
)
from quorate.crowd.crowd import Cells, Crowd
from quorate.crowd.together import ENOUGH, groups_of, in_common

__all__ = ["Duplicates", "duplicates", "merge_duplicates"]

Integers = NDArray[np.int64]

_NEARLY_THE_SAME = 0.98  # cosine of their spans; of people who are independent it is lower on any task with doubts


def merge_duplicates(crowd: Crowd) -> Crowd:
    """The crowd in which duplicates are one annotator."""
    note = duplicates(crowd)
    return crowd.noting(note) if note.groups else crowd


def duplicates(crowd: Crowd) -> Duplicates:
    """The annotators who marked nearly the same spans, group by group.

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
    near = pairs.where(pairs.cosine >= _NEARLY_THE_SAME)
    if not len(near.one):
        return Duplicates(())
    return Duplicates(tuple(map(tuple, groups_of(near.one, near.other, len(crowd.annotators)))))


class Duplicates(NamedTuple):
    """Annotators who are one, group by group; the first of each stands for all."""

    groups: tuple[tuple[int, ...], ...]

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

    @property
    def first(self) -> dict[int, int]:
        """Of every other member of a group, the first."""
        return {k: first for first, *others in self.groups for k in others}

    def dependent(self, document: Integers, who: Integers) -> tuple[Integers, Integers]:
        """The other members of their groups."""
        members = {k: [n for n in group if n != k] for group in self.groups for k in group}
        others = [members.get(k, []) for k in who.tolist()]
        place = np.repeat(np.arange(len(who)), [len(one) for one in others])
        return document[place], np.array([k for one in others for k in one], np.int64)

    def applied(self, crowd: Crowd) -> Crowd:
        """The crowd in which the members of each group are one annotator: the first, who alone is left of them.

        It marks the spans that most of the members marked, of those who labelled the first token of the span. Half
        against half, it marks them, and of two that overlap the one that begins first (the longer one if both do).
        Where only one member saw a document, its labels are the group's.

        >>> from quorate.corpus.records import Corpus, Document
        >>> from quorate.crowd.encode import encode
        >>> tags = {"a": ("O", "B-PER"), "b": ("B-PER", "B-PER"), "c": ("B-PER", "O"), "eva": ("O", "O")}
        >>> crowd = encode(corpus := Corpus([Document("1", ("Ada", "Ng"), tags)]), corpus.tagset())
        >>> merged = Duplicates(((0, 1, 2),)).applied(crowd)
        >>> spans = marked_spans(merged)
        >>> spans.start.tolist(), [merged.annotators[k] for k in spans.who]
        ([0, 1], ['a', 'a'])
        """
        K, N, outside = len(crowd.annotators), crowd.n_tokens, crowd.tagset.outside
        group, is_member = np.arange(K), np.zeros(K, np.bool_)
        for members in self.groups:
            group[list(members)], is_member[list(members)] = min(members), True
        cells, J, P = crowd.cells, crowd.cells.n_labels, crowd.cells.n_previous
        if outside is None or not np.any(group[cells.annotator] != cells.annotator):
            return crowd
        shared = _Shared.of(crowd, group, is_member)
        who, token = np.divmod(shared.place, N)
        label = np.full(len(token), outside, np.int64)
        spans = shared.agreed(crowd, group, is_member)
        _, marked, of_span = labels_of_spans(spans.start, spans.end, spans.kind, crowd.tagset)
        label[np.searchsorted(shared.place, np.repeat(spans.who, spans.end - spans.start) * N + marked)] = of_span
        goes_on = np.zeros(len(token), np.bool_)
        goes_on[1:] = (np.diff(shared.place) == 1) & (np.diff(document_of(crowd, token)) == 0)
        previous = np.where(goes_on, np.concatenate([[outside], label[:-1]]), outside)
        kept = np.ones(len(crowd.event_cell), np.bool_)
        kept[shared.event] = False
        own = Cells(group[cells.annotator], cells.previous, cells.label, K, J, P).keys[crowd.event_cell[kept]]
        weight = crowd.event_weight
        return _with_events(
            crowd,
            np.concatenate([token_of_events(crowd)[kept], token]),
            np.concatenate([own, (who * P + previous) * J + label]),
            None if weight is None else np.concatenate([weight[kept], np.ones(len(token))]),
        )


class _Shared(NamedTuple):
    """The events of groups in documents that several of their members saw.

    ``place`` is group·N + token of all tokens that one of these labelled, ascending, and ``many`` how many did;
    ``pair`` is document·K + group of those documents, ascending.
    """

    event: Integers
    place: Integers
    many: Integers
    pair: Integers

    @classmethod
    def of(cls, crowd: Crowd, group: Integers, is_member: NDArray[np.bool_]) -> _Shared:
        K, N = len(group), crowd.n_tokens
        document, who = seen_pairs(crowd)
        mine = is_member[who]
        pair, members = np.unique(document[mine] * K + group[who[mine]], return_counts=True)
        pair = pair[members > 1]
        event = np.flatnonzero(is_member[crowd.cells.annotator][crowd.event_cell])
        token, who = token_of(crowd, event), crowd.cells.annotator[crowd.event_cell[event]]
        joins = np.isin(document_of(crowd, token) * K + group[who], pair)
        event, token, who = event[joins], token[joins], who[joins]
        again = np.zeros(len(event), np.bool_)  # of somebody's probabilities for a token
        again[1:] = (np.diff(token) == 0) & (np.diff(who) == 0)
        place, many = np.unique((group[who] * N + token)[~again], return_counts=True)
        return cls(event, place, many, pair)

    def agreed(self, crowd: Crowd, group: Integers, is_member: NDArray[np.bool_]) -> Spans:
        """What each group marks in them."""
        spans = marked_spans(crowd)
        spans = spans.where(is_member[spans.who])
        spans = spans._replace(who=group[spans.who])
        spans = spans.where(np.isin(document_of(crowd, spans.start) * len(group) + spans.who, self.pair))
        spans = spans.where(np.lexsort((spans.kind, -spans.end, spans.start, spans.who)))
        same = np.stack(spans)
        different = np.flatnonzero(np.concatenate([[True], (same[:, 1:] != same[:, :-1]).any(axis=0)])[: same.shape[1]])
        votes = np.diff(np.append(different, same.shape[1]))
        spans = spans.where(different)
        first = np.searchsorted(self.place, spans.who * crowd.n_tokens + spans.start)
        more = 2 * votes - self.many[first]
        spans, first, more = spans.where(more >= 0), first[more >= 0], more[more >= 0]
        return spans.where(_without_overlaps(first, first + spans.end - spans.start, more > 0, len(self.place)))


def _without_overlaps(first: Integers, end: Integers, sure: NDArray[np.bool_], n: int) -> NDArray[np.bool_]:
    """Which to keep of spans among ``n`` places: those that are ``sure`` before the others, and in their order."""
    times = np.cumsum(np.bincount(first, minlength=n + 1) - np.bincount(end, minlength=n + 1))
    crowded = np.concatenate([[0], np.cumsum(times > 1)])
    kept = crowded[end] == crowded[first]
    taken = np.zeros(n, np.bool_)
    for number in sorted(np.flatnonzero(~kept).tolist(), key=lambda number: not sure[number]):  # few
        here = slice(int(first[number]), int(end[number]))
        if not taken[here].any():
            kept[number] = taken[here] = True
    return np.asarray(kept)


def _with_events(crowd: Crowd, token: Integers, key: Integers, weight: NDArray[np.float64] | None) -> Crowd:
    """The corpus with these events in place of its own; ``key`` is that of the cell of each."""
    order = np.lexsort((key, token))
    keys, cell = np.unique(key[order], return_inverse=True)
    return replace(
        crowd,
        event_start=np.searchsorted(token[order], np.arange(crowd.n_tokens + 1)),
        event_cell=cell.astype(np.int32),
        event_weight=None if weight is None else weight[order],
        cells=Cells.of_keys(keys, *crowd.cells[3:]),
        slices=None,
    )
