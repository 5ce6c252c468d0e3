"""Copies speak with one voice: what most of them say, once, in the name of the first of them.

Samples of one prompt, or copies of somebody that were changed here and there, say the same but for mistakes that each
makes alone. The vote among them takes those away, and leaves what a single annotator would have said; weights that
make them count as one would keep the mistakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

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

__all__ = ["in_one_voice"]

Integers = NDArray[np.int64]


def in_one_voice(encoded: Crowd, voices: Sequence[Sequence[int]]) -> Crowd:
    """The corpus in which the members of each voice are one annotator: its first member, who alone is left of them.

    It marks the spans that most of the members marked, of those who labelled the first token of the span. Half against
    half, it marks them, and of two that overlap the one that begins first (the longer one if both do). Where only one
    member saw a document, they are heard as they are.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.crowd.encode import encode
    >>> tags = {"a": ("O", "B-PER"), "b": ("B-PER", "B-PER"), "c": ("B-PER", "O"), "eva": ("O", "O")}
    >>> encoded = encode(corpus := Corpus([Document("1", ("Ada", "Ng"), tags)]), corpus.tagset())
    >>> heard = in_one_voice(encoded, [[0, 1, 2]])
    >>> spans = marked_spans(heard)
    >>> spans.start.tolist(), [heard.annotators[k] for k in spans.who]
    ([0, 1], ['a', 'a'])
    """
    K, N, outside = len(encoded.annotators), encoded.n_tokens, encoded.tagset.outside
    voice, is_member = np.arange(K), np.zeros(K, np.bool_)
    for members in voices:
        voice[list(members)], is_member[list(members)] = min(members), True
    cells, J, P = encoded.cells, encoded.cells.n_labels, encoded.cells.n_previous
    if outside is None or not np.any(voice[cells.annotator] != cells.annotator):
        return encoded
    spoken = _Spoken.of(encoded, voice, is_member)
    speaker, token = np.divmod(spoken.place, N)
    label = np.full(len(token), outside, np.int64)
    spans = spoken.agreed(encoded, voice, is_member)
    _, marked, of_span = labels_of_spans(spans.start, spans.end, spans.kind, encoded.tagset)
    label[np.searchsorted(spoken.place, np.repeat(spans.who, spans.end - spans.start) * N + marked)] = of_span
    goes_on = np.zeros(len(token), np.bool_)
    goes_on[1:] = (np.diff(spoken.place) == 1) & (np.diff(document_of(encoded, token)) == 0)
    previous = np.where(goes_on, np.concatenate([[outside], label[:-1]]), outside)
    kept = np.ones(len(encoded.event_cell), np.bool_)
    kept[spoken.event] = False
    own = Cells(voice[cells.annotator], cells.previous, cells.label, K, J, P).keys[encoded.event_cell[kept]]
    weight = encoded.event_weight
    return _with_events(
        encoded,
        np.concatenate([token_of_events(encoded)[kept], token]),
        np.concatenate([own, (speaker * P + previous) * J + label]),
        None if weight is None else np.concatenate([weight[kept], np.ones(len(token))]),
    )


class _Spoken(NamedTuple):
    """The events of voices in documents that several of their members saw.

    ``place`` is voice·N + token of all tokens that one of these labelled, ascending, and ``many`` how many did;
    ``pair`` is document·K + voice of those documents, ascending.
    """

    event: Integers
    place: Integers
    many: Integers
    pair: Integers

    @classmethod
    def of(cls, encoded: Crowd, voice: Integers, is_member: NDArray[np.bool_]) -> _Spoken:
        K, N = len(voice), encoded.n_tokens
        document, who = seen_pairs(encoded)
        mine = is_member[who]
        pair, members = np.unique(document[mine] * K + voice[who[mine]], return_counts=True)
        pair = pair[members > 1]
        event = np.flatnonzero(is_member[encoded.cells.annotator][encoded.event_cell])
        token, who = token_of(encoded, event), encoded.cells.annotator[encoded.event_cell[event]]
        joins = np.isin(document_of(encoded, token) * K + voice[who], pair)
        event, token, who = event[joins], token[joins], who[joins]
        again = np.zeros(len(event), np.bool_)  # of somebody's probabilities for a token
        again[1:] = (np.diff(token) == 0) & (np.diff(who) == 0)
        place, many = np.unique((voice[who] * N + token)[~again], return_counts=True)
        return cls(event, place, many, pair)

    def agreed(self, encoded: Crowd, voice: Integers, is_member: NDArray[np.bool_]) -> Spans:
        """What each voice marks in them."""
        spans = marked_spans(encoded)
        spans = spans.where(is_member[spans.who])
        spans = spans._replace(who=voice[spans.who])
        spans = spans.where(np.isin(document_of(encoded, spans.start) * len(voice) + spans.who, self.pair))
        spans = spans.where(np.lexsort((spans.kind, -spans.end, spans.start, spans.who)))
        same = np.stack(spans)
        different = np.flatnonzero(np.concatenate([[True], (same[:, 1:] != same[:, :-1]).any(axis=0)])[: same.shape[1]])
        votes = np.diff(np.append(different, same.shape[1]))
        spans = spans.where(different)
        first = np.searchsorted(self.place, spans.who * encoded.n_tokens + spans.start)
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


def _with_events(encoded: Crowd, token: Integers, key: Integers, weight: NDArray[np.float64] | None) -> Crowd:
    """The corpus with these events in place of its own; ``key`` is that of the cell of each."""
    order = np.lexsort((key, token))
    keys, cell = np.unique(key[order], return_inverse=True)
    return replace(
        encoded,
        event_start=np.searchsorted(token[order], np.arange(encoded.n_tokens + 1)),
        event_cell=cell.astype(np.int32),
        event_weight=None if weight is None else weight[order],
        cells=Cells.of_keys(keys, *encoded.cells[3:]),
        slices=None,
    )
