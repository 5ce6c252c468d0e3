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

from quorate.encode.algebra import Spans, document_of, labels_of_spans, marked_spans, seen_pairs, token_of
from quorate.encode.encoded import Cells, Encoded

__all__ = ["in_one_voice"]

Integers = NDArray[np.int64]


def in_one_voice(encoded: Encoded, voices: Sequence[Sequence[int]]) -> Encoded:
    """The corpus in which the members of each voice are one annotator: its first member, who alone is left of them.

    Of the spans in a document, it marks those that most of the members who saw it marked; half against half, those of
    the first of them. A member who saw a document alone is heard as they are.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.encode.from_corpus import encode
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
    if outside is None or not np.any(voice[encoded.cells.annotator] != encoded.cells.annotator):
        return encoded
    together = _Together.of(encoded, voice, is_member)
    cells, J, P = encoded.cells, encoded.cells.n_labels, encoded.cells.n_previous
    event = np.flatnonzero(is_member[cells.annotator][encoded.event_cell])
    token, who = token_of(encoded, event), voice[cells.annotator[encoded.event_cell[event]]]
    joins = together.several[together.place(document_of(encoded, token), who)]
    of_voice = np.unique(who[joins] * N + token[joins])
    speaker, spoken = np.divmod(of_voice, N)
    label = np.full(len(of_voice), outside, np.int64)
    spans = together.agreed(encoded, voice, is_member)
    _, marked, of_span = labels_of_spans(spans.start, spans.end, spans.kind, encoded.tagset)
    label[np.searchsorted(of_voice, np.repeat(spans.who, spans.end - spans.start) * N + marked)] = of_span
    goes_on = np.zeros(len(of_voice), np.bool_)
    goes_on[1:] = (np.diff(of_voice) == 1) & (np.diff(document_of(encoded, spoken)) == 0)
    previous = np.where(goes_on, np.concatenate([[outside], label[:-1]]), outside)
    kept = np.ones(len(encoded.event_cell), np.bool_)
    kept[event[joins]] = False
    own = Cells(voice[cells.annotator], cells.previous, cells.label, K, J, P).keys[encoded.event_cell[kept]]
    return _with_events(
        encoded,
        np.concatenate([np.repeat(np.arange(N), np.diff(encoded.event_start))[kept], spoken]),
        np.concatenate([own, (speaker * P + previous) * J + label]),
        None if encoded.event_weight is None else np.concatenate([encoded.event_weight[kept], np.ones(len(of_voice))]),
    )


class _Together(NamedTuple):
    """The members of a voice who saw the same document: ``pair`` (document·K + voice, ascending), how ``many`` they
    are, and who is the ``first`` of them.
    """

    pair: Integers
    many: Integers
    first: Integers
    n_annotators: int

    @classmethod
    def of(cls, encoded: Encoded, voice: Integers, is_member: NDArray[np.bool_]) -> _Together:
        document, who = seen_pairs(encoded)
        mine, K = is_member[who], len(voice)
        pair, first, many = np.unique(document[mine] * K + voice[who[mine]], return_index=True, return_counts=True)
        return cls(pair, many, who[mine][first], K)

    @property
    def several(self) -> NDArray[np.bool_]:
        return np.asarray(self.many > 1)

    def place(self, document: Integers, voice: Integers) -> Integers:
        return np.asarray(np.searchsorted(self.pair, document * self.n_annotators + voice))

    def agreed(self, encoded: Encoded, voice: Integers, is_member: NDArray[np.bool_]) -> Spans:
        """What each voice marks where several of its members are."""
        spans = marked_spans(encoded)
        spans = spans.where(is_member[spans.who])
        place = self.place(document_of(encoded, spans.start), voice[spans.who])
        spans, place = spans.where(self.several[place]), place[self.several[place]]
        order = np.lexsort((spans.who, spans.kind, spans.end, spans.start, place))
        spans, place = spans.where(order), place[order]
        same = np.stack([place, spans.start, spans.end, spans.kind])
        different = np.flatnonzero(np.concatenate([[True], (same[:, 1:] != same[:, :-1]).any(axis=0)])[: len(place)])
        votes = np.diff(np.append(different, len(place)))
        spans, place = spans.where(different), place[different]  # the first who marked each
        most = 2 * votes - self.many[place]
        kept = (most > 0) | ((most == 0) & (spans.who == self.first[place]))
        return spans.where(kept)._replace(who=voice[spans.who[kept]])


def _with_events(encoded: Encoded, token: Integers, key: Integers, weight: NDArray[np.float64] | None) -> Encoded:
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
