"""Who labels what next: for everybody who is there, documents in the order in which to hand them out.

The order is that of the expected information of this person's labels of a document about its truth, per cost. A
service goes down a person's list and skips what others have in hand by then. Before there is a model, documents are
handed out breadth first, with enough overlap to learn annotators.

Some of a person's documents may be training or checks: :mod:`quorate.active.checks`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.active.checks import check_whole, uniform
from quorate.active.view import (
    BITS,
    View,
    check_cost,
    known_of,
    layers_of,
    left_out,
    settled,
    together,
    views_of,
    whole,
)
from quorate.corpus.records import Corpus
from quorate.errors import SettingsError
from quorate.estimators.capabilities import Advises
from quorate.estimators.layered import KnownInLayers, LayeredModel
from quorate.formats.layers import Layers
from quorate.model.prepared import Known, known_tags
from quorate.model.settings import check_number

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

HOLD_BACK = 0.75
"""The share of the median person's expected information below which someone is held back, where that is wanted."""

_FIRST_OVERLAP = 2  # people on a document, before there is a model that says where more are needed
_LIST_PER_CHOICE, _SHORTEST_LIST = 2, 200  # candidate documents for each one listed, and at least
_COMPARED_BY = 100  # documents, those of the highest entropy, by which people are compared
_TRIAL = 10  # documents that everybody may label before they can be held back


class Ranked(NamedTuple):
    """A document, and the expected information of this person's labels in bits per cost (0 before there is a model)."""

    document: str
    gain: float


class Ranking(NamedTuple):
    """What a person should label, the best first.

    ``worth`` is the mean expected information of their labels per cost, over the documents of the highest entropy,
    done or not: the same for everybody. Who is ``held_back`` gets nothing for now.
    """

    documents: tuple[Ranked, ...]
    worth: float = 0.0
    held_back: bool = False


def rankings(
    corpus: Corpus | Mapping[str, Corpus],
    model: Advises | LayeredModel | None,
    people: Iterable[str],
    *,
    n: int = 200,
    cost: Mapping[str, float] | None = None,
    waiting: Mapping[str, Collection[str]] | None = None,
    known: Known | KnownInLayers = None,
    exclude: Iterable[str] = (),
    allowed: Mapping[str, Collection[str]] | None = None,
    per_document_min: int = 0,
    per_document_max: int | None = None,
    per_person_max: int | None = None,
    hold_back: float = 0.0,
    seed: int = 0,
) -> dict[str, Ranking]:
    """For each of the ``people``, the ``n`` documents whose labels by them have most expected information per cost.

    Nobody gets a document that they have labelled or have in hand, or that is decided (its labels are known, or an
    expert has labelled it), or to ``exclude``. ``waiting`` says who has which documents in hand: these labels to come
    count towards ``per_document_max``, and reduce the entropy that is left. Documents with fewer than
    ``per_document_min`` labels come before all others. ``allowed`` are the documents that a person may see, if not all.
    A new person is the average of the others. Documents whose text allows two readings come last.

    With ``hold_back``, a person gets nothing for now if the expected information of their labels per cost is below this
    share of the median person's: never more than half of the people, and nobody before their tenth document.

    Without a ``model``, documents that somebody has begun come first, until two have labelled each, then others.

    >>> import quorate
    >>> corpus = quorate.sample()
    >>> found = rankings(corpus, quorate.BSC("cm", max_iter=5).fit(corpus), [corpus.annotators[0], "zoe"], n=3)
    >>> [len(one.documents) for one in found.values()], found["zoe"].held_back
    ([3, 3], False)
    """
    names = list(dict.fromkeys(people))
    for name, least, whole_number in (
        ("n", 1, n),
        ("per-document-min", 0, per_document_min),
        ("per-document-max", 1, per_document_max),
        ("per-person-max", 0, per_person_max),
    ):
        check_whole(name, whole_number, least)
    check_number("hold-back", hold_back)
    if not 0 <= hold_back <= 1:
        raise SettingsError(f"hold-back must be from 0 to 1, not {hold_back}")
    layers, prices = layers_of(corpus, model), _costs(names, cost or {})
    work = _Work(layers, names, waiting or {}, allowed)
    views = [] if model is None else views_of(corpus, model, known)[1]
    decided = [view.decided for view in views] or [
        settled(one, one.profiles, whole(known_tags(one, known_of(corpus, known, name))))
        for name, one in layers.items()
    ]
    may = work.has_words & ~np.all(decided, axis=0) & ~left_out(layers.corpus, exclude)
    if per_document_max is not None:
        may &= work.labels < per_document_max
    full = np.array([per_person_max is not None and done >= per_person_max for done in work.done], np.bool_)
    if not views:
        order = _breadth_first(layers.corpus, work.labels, max(per_document_min, _FIRST_OVERLAP), seed)
        lists = [work.first(p, order[may[order]], 0 if full[p] else n) for p in range(len(names))]
        return {name: Ranking(_ranked(layers.corpus, mine)) for name, mine in zip(names, lists, strict=True)}
    left, enough = work.left(views), work.labels >= per_document_min
    order = np.lexsort((-_entropy(views) * left, enough))
    order = order[may[order]]
    worth = _worth(views, names, order[:_COMPARED_BY]) * BITS / prices
    held = _held_back(worth, np.array(work.done), hold_back)
    longest = max(_LIST_PER_CHOICE * n, _SHORTEST_LIST)
    lists = [work.first(p, order, 0 if full[p] or held[p] else longest) for p in range(len(names))]
    doc, who = np.concatenate([order[:0], *lists]), np.repeat(np.arange(len(names)), [len(mine) for mine in lists])
    gains = _gains(views, names, doc, who) * left[doc] * BITS / prices[who]
    found = {}
    for p, name in enumerate(names):
        mine = np.flatnonzero(who == p)
        best = mine[np.lexsort((-gains[mine], enough[doc[mine]]))][:n]
        found[name] = Ranking(_ranked(layers.corpus, doc[best], gains[best]), float(worth[p]), bool(held[p]))
    return found


def _ranked(corpus: Corpus, documents: Integers, gains: Floats | None = None) -> tuple[Ranked, ...]:
    own = np.zeros(len(documents)) if gains is None else gains
    return tuple(Ranked(corpus[d].id, gain) for d, gain in zip(documents.tolist(), own.tolist(), strict=True))


class _Work:
    """Who has labelled what, who has what in hand, and who may see what.

    ``labels [D]`` are those that are there and those to come, ``done`` how many documents each of the people labelled.
    """

    def __init__(
        self,
        layers: Layers,
        people: Sequence[str],
        waiting: Mapping[str, Collection[str]],
        allowed: Mapping[str, Collection[str]] | None,
    ) -> None:
        number = {name: p for p, name in enumerate(people)}
        self.in_hand: list[tuple[int, str]] = []
        not_again: list[list[int]] = [[] for _ in people]
        self.labels = np.zeros(len(layers.corpus), np.int64)
        self.has_words = np.array([bool(document.tokens) for document in layers.corpus], np.bool_)
        for d, versions in enumerate(zip(*layers.values(), strict=True)):
            labelled_by = {name for document in versions for name in document.annotations}
            self.labels[d] = len(labelled_by)
            for name in labelled_by & number.keys():
                not_again[number[name]].append(d)
        self.done = [len(documents) for documents in not_again]
        for document, holders in waiting.items():
            d = _position(layers.corpus, document, "in hand")
            for name in sorted(set(holders).difference(*(one[d].annotations for one in layers.values()))):
                self.labels[d] += 1
                self.in_hand.append((d, name))
                if name in number:
                    not_again[number[name]].append(d)
        self._not_again = [np.array(documents, np.int64) for documents in not_again]
        self._allowed = [
            None
            if allowed is None or name not in allowed
            else np.array([_position(layers.corpus, one, "allowed") for one in allowed[name]], np.int64)
            for name in people
        ]

    def first(self, person: int, order: Integers, n: int) -> Integers:
        """The first ``n`` documents of an order that a person may label."""
        not_again, allowed = self._not_again[person], self._allowed[person]
        mine = order[: n + len(not_again)] if allowed is None else order[np.isin(order, allowed)]
        return mine[~np.isin(mine, not_again)][:n]

    def left(self, views: Sequence[View]) -> Floats:
        """``[D]`` The share of each document's entropy that labels to come should leave."""
        left = np.ones(len(self.labels))
        if self.in_hand:
            holders = sorted({name for _, name in self.in_hand})
            doc = np.array([d for d, _ in self.in_hand], np.int64)
            who = np.searchsorted(holders, [name for _, name in self.in_hand])
            entropy, gains = _entropy(views)[doc], _gains(views, holders, doc, who)
            share = np.divide(gains, entropy, out=np.zeros_like(gains), where=entropy > 0)
            np.multiply.at(left, doc, 1 - share.clip(0.0, 1.0))
        return left


def _position(corpus: Corpus, document: str, what: str) -> int:
    try:
        return corpus.position(document)
    except KeyError:
        raise SettingsError(f"document {document!r}, which is {what}, is not in the input") from None


def _costs(people: Sequence[str], cost: Mapping[str, float]) -> Floats:
    """``[P]`` What a document costs with each person; 1 by default."""
    for name, price in cost.items():
        check_cost(name, price)
    return np.array([cost.get(name, 1.0) for name in people], np.float64)


def _entropy(views: Sequence[View]) -> Floats:
    """``[D]`` The entropy of each document that labels can reduce, in nats."""
    return together([view.unsure.reducible(view.reducible) for view in views]).sequence


def _gains(views: Sequence[View], names: Sequence[str], doc: Integers, who: Integers) -> Floats:
    """``[U]`` The expected information, in nats, of new labels of documents by people, counted along ``names``."""
    if not len(doc):
        return np.zeros(0)
    gains = [view.gains(doc, who, names) * view.unlabelled(doc, who, names) for view in views]
    return np.asarray(np.sum(gains, axis=0))


def _worth(views: Sequence[View], names: Sequence[str], documents: Integers) -> Floats:
    """``[P]`` The expected information of everybody's labels of these documents, on average, in nats."""
    D, P = len(documents), len(names)
    if not D or not P:
        return np.zeros(P)
    pairs = np.repeat(documents, P), np.tile(np.arange(P), D)
    gains = np.sum([view.gains(*pairs, names) for view in views], axis=0)
    return np.asarray(gains.reshape(D, P).mean(axis=0))


def _held_back(worth: Floats, done: Integers, share: float) -> Flags:
    """``[P]`` Whose labels have too little expected information per cost, compared with the others.

    >>> _held_back(np.array([1.0, 0.9, 0.3, 0.2]), np.array([50, 50, 50, 5]), 0.6).tolist()
    [False, False, True, False]
    """
    if not len(worth):
        return np.zeros(0, np.bool_)
    return np.asarray((worth < share * np.median(worth)) & (done >= _TRIAL))


def _breadth_first(corpus: Corpus, labels: Integers, overlap: int, seed: int) -> Integers:
    """Documents that somebody has begun, until they have their ``overlap``, then new ones, then the rest, at random."""
    order = np.array([uniform(seed, document.id) for document in corpus])
    full = labels >= overlap
    return np.lexsort((order, np.where(full, labels, 0), labels == 0, full))
