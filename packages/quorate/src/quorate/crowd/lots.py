"""Lots that depend on labels and words, not on names or the order of documents.

A draw by lots is the same when annotators or types are renamed, or lines shuffled. A lot is a hash: of a document's
words, of the labels in it, and of all labels that its annotator gave elsewhere, so that only those with the same labels
share one. Sums of hashes stand for sets, as a sum has no order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.algebra import paired, seen_pairs, worked_out_once
from quorate.crowd.crowd import Crowd
from quorate.crowd.kernels import add_hashes

Hashes = NDArray[np.uint64]


class Lots(NamedTuple):
    """A random number for every annotator ``[K]``, document ``[D]``, and pair of them, as ``seen_pairs`` has them."""

    annotator: Hashes
    document: Hashes
    pair: Hashes


def lots_of(crowd: Crowd, seed: int = 0) -> Lots:
    """Draw a lot for everyone.

    >>> import quorate
    >>> from quorate.crowd.encode import encode
    >>> corpus = quorate.sample()
    >>> lots = lots_of(encode(corpus, corpus.tagset()))
    >>> shuffled = quorate.Corpus(list(corpus)[::-1])
    >>> again = lots_of(encode(shuffled, corpus.tagset()))
    >>> bool((lots.document == again.document[::-1]).all())
    True
    """
    start = hashed(np.array([seed]))
    return Lots(*(hashed(lot + start) for lot in _without_seed(crowd)))


@worked_out_once
def _without_seed(crowd: Crowd) -> Lots:
    """The lots before a seed shuffles them."""
    doc, who = seen_pairs(crowd)
    words, labels = _words_and_labels(crowd, _of_labels(crowd))
    pair = hashed(words[doc] + labels)
    annotator = hashed(_sums(who, hashed(pair), len(crowd.annotators)))
    pair = hashed(pair + annotator[who])
    document = hashed(words + _sums(doc, pair, crowd.n_docs))
    pair = hashed(pair + document[doc])
    return Lots(annotator, document, pair)


def labels_of_pairs(crowd: Crowd) -> Hashes:
    """A number for the labels of each pair that ``seen_pairs`` has: two that are alike have the same number."""
    return _words_and_labels(crowd, hashed(np.arange(crowd.cells.n_labels)))[1]


def _words_and_labels(crowd: Crowd, of_label: Hashes) -> tuple[Hashes, Hashes]:
    """Hashes of each document's words, and of the labels in each pair; ``of_label [J]`` is that of every label."""
    doc, who = seen_pairs(crowd)
    words, labels = np.zeros(crowd.n_docs, np.uint64), np.zeros(len(doc), np.uint64)
    events = paired(crowd, doc, who)
    if (events.weight == 1).all():  # probabilities that are certain are labels
        events = events._replace(weight=np.zeros(0))
    add_hashes(events, crowd.word, of_label[crowd.cells.label], words, labels)
    return words, labels


def _of_labels(crowd: Crowd) -> Hashes:
    """``[J]`` A number for every label that depends on how often it was given, and not on its name."""
    cells = crowd.cells
    return hashed(np.round(np.bincount(cells.label, crowd.cell_weights(), minlength=cells.n_labels)))


def _sums(number: NDArray[np.integer], hashes: Hashes, n: int) -> Hashes:
    """Sums of the hashes that have the same number, below ``n``."""
    sums = np.zeros(n, np.uint64)
    np.add.at(sums, number, hashes)
    return sums


def hashed(values: NDArray[np.generic]) -> Hashes:
    """Integers scattered over all of 64 bits (the finaliser of SplitMix64); overflow is meant."""
    x = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
