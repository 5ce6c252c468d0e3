"""Annotators who say the same: one model run five times, one person with two accounts, someone who copies.

Their labels are one piece of evidence, not several. Two annotators count as one if nearly all the spans that either
marked, in documents that both saw, are the same. Two people who agree that far are both nearly always right, so that
little is lost where they did work alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quorate.choose.lots import lots_of
from quorate.encode.algebra import document_of, marked_spans, number_pairs, seen_pairs, without
from quorate.encode.encoded import Encoded

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["groups_alike", "one_of_each"]


Integers = NDArray[np.int64]
_SAME = 0.92  # share of their spans that must be the same
_ENOUGH = 40  # spans in common below which nothing can be told


def groups_alike(encoded: Encoded) -> Integers:
    """``[K]`` The number of each annotator's group: those who say the same share one.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.encode.from_corpus import encode
    >>> tags = ("B-PER", "O")
    >>> corpus = Corpus([Document(str(n), ("Ada", "sang"), {"a": tags, "b": tags, "c": ("O", "O")}) for n in range(50)])
    >>> groups_alike(encode(corpus, corpus.tagset())).tolist()
    [0, 0, 1]
    """
    from scipy.sparse import csr_array  # slow to load, and needed only where settings are chosen
    from scipy.sparse.csgraph import connected_components

    K, D = len(encoded.annotators), encoded.n_docs
    if encoded.tagset.outside is None:  # plain labels are few, and the same by chance
        return np.arange(K)
    spans = marked_spans(encoded)
    doc = document_of(encoded, spans.start)
    _, which = np.unique(spans.key(encoded.n_tokens, len(encoded.tagset.types)), return_inverse=True)
    marked = csr_array((np.ones(len(which)), (spans.who, which)), shape=(K, int(which.max(initial=-1)) + 1))
    common = (marked @ marked.T).tocoo()
    one, other = common.coords
    likely = (one < other) & (common.data >= _ENOUGH)
    one, other, same = one[likely], other[likely], common.data[likely]
    if not len(one):
        return np.arange(K)
    per_document = csr_array((np.ones(len(doc)), (spans.who, doc)), shape=(K, D))
    seen = _seen(encoded)
    mine, theirs = _in_common(per_document, seen, one, other), _in_common(per_document, seen, other, one)
    alike = same >= _SAME * (mine + theirs - same)
    links = csr_array((np.ones(int(alike.sum())), (one[alike], other[alike])), shape=(K, K))
    return np.asarray(connected_components(links, directed=False)[1], np.int64)


def _seen(encoded: Encoded) -> csr_array:
    """``[K, D]`` 1 where an annotator labelled something in a document."""
    from scipy.sparse import csr_array

    doc, who = seen_pairs(encoded)
    return csr_array((np.ones(len(doc)), (who, doc)), shape=(len(encoded.annotators), encoded.n_docs))


def _in_common(spans: csr_array, seen: csr_array, one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """How many spans one marked in documents that the other saw, for every pair."""
    return np.asarray(spans[one].multiply(seen[other]).sum(axis=1)).ravel()


def one_of_each(encoded: Encoded, group: Integers) -> Encoded:
    """Without the labels of all but one of each group in every document: whoever's lot is the lowest."""
    doc, who, pair_of_event = number_pairs(encoded)
    team = doc * (int(group.max()) + 1) + group[who]
    order = np.lexsort((lots_of(encoded).annotator[who], team))
    kept = np.zeros(len(doc), np.bool_)
    kept[order[np.unique(team[order], return_index=True)[1]]] = True
    return without(encoded, ~kept[pair_of_event])
