"""Who labels what next: for everybody who is there, documents in the order in which to hand them out.

The order is that of the information that this person's labels of a document are expected to give about its truth, by
what they cost. Whoever hands documents out goes down a person's list and passes over what others have in hand by then.
Before there is a model, documents are handed out breadth first, with enough overlap that annotators can be learned.

Some of a person's documents may be no work: :mod:`quorate.active.checks`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.active.checks import check_whole, lot
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

__all__ = ["HOLD_BACK", "Ranked", "Ranking", "rankings"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

HOLD_BACK = 0.75
"""The share of what the median person tells below which someone is held back, where that is wanted.

On the NER crowd's dev split it saves a tenth of the labels and holds back six of 47, with a gap above them; at 1 it
saves more, and by its nature holds back half of any crowd, however good (``docs/active-learning.md``).
"""

_FIRST_OVERLAP = 2  # people on a document, before there is a model that says where more are needed
_LIST_PER_CHOICE, _SHORTEST_LIST = 2, 200  # documents looked at for each one listed: the least known
_JUDGED_BY = 100  # documents, the least known, by which people are compared
_TRIAL = 10  # documents that everybody may label before they can be held back


class Ranked(NamedTuple):
    """A document, and the bits that this person's labels of it should tell, by cost (0 before there is a model)."""

    document: str
    gain: float


class Ranking(NamedTuple):
    """What a person should label, the best first.

    ``worth`` is the mean of what their labels should tell, by cost, of the documents of which least is known, whether
    they have done these or not: it is of the same documents for everybody. Who is ``held_back`` gets nothing for now.
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
    """For each of the ``people`` who are there, the ``n`` documents whose labels by them tell most for their cost.

    Nobody gets a document that they have labelled or have in hand, or that is decided (its labels are known, or an
    expert has labelled it), or to ``exclude``. ``waiting`` says who has which documents in hand: theirs count as
    labels to come, towards ``per_document_max`` and in what is left to be told. Documents with fewer than
    ``per_document_min`` labels come before all others. ``allowed`` are the documents that a person may see, if not all.
    Someone whom the model has not met is taken to be as the others are on average. Where the text allows two readings,
    labels tell nothing new, and such documents come last.

    With ``hold_back``, those get nothing for now whose labels tell less, for their cost, than this share of what those
    of the median person who is there tell: never more than half of the people, and nobody before their tenth document.

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
    desk = _Desk(layers, names, waiting or {}, allowed)
    views = [] if model is None else views_of(corpus, model, known)[1]
    decided = [view.decided for view in views] or [
        settled(one, one.profiles, whole(known_tags(one, known_of(corpus, known, name))))
        for name, one in layers.items()
    ]
    may = desk.has_words & ~np.all(decided, axis=0) & ~left_out(layers.corpus, exclude)
    if per_document_max is not None:
        may &= desk.labels < per_document_max
    full = np.array([per_person_max is not None and done >= per_person_max for done in desk.done], np.bool_)
    if not views:
        order = _breadth_first(layers.corpus, desk.labels, max(per_document_min, _FIRST_OVERLAP), seed)
        lists = [desk.first(p, order[may[order]], 0 if full[p] else n) for p in range(len(names))]
        return {name: Ranking(_ranked(layers.corpus, mine)) for name, mine in zip(names, lists, strict=True)}
    left, enough = desk.left(views), desk.labels >= per_document_min
    order = np.lexsort((-_unknown(views) * left, enough))
    order = order[may[order]]
    worth = _worth(views, names, order[:_JUDGED_BY]) * BITS / prices
    held = _held_back(worth, np.array(desk.done), hold_back)
    longest = max(_LIST_PER_CHOICE * n, _SHORTEST_LIST)
    lists = [desk.first(p, order, 0 if full[p] or held[p] else longest) for p in range(len(names))]
    doc, who = np.concatenate([order[:0], *lists]), np.repeat(np.arange(len(names)), [len(mine) for mine in lists])
    gains = _gains(views, names, doc, who) * left[doc] * BITS / prices[who]
    found = {}
    for p, name in enumerate(names):
        mine = np.flatnonzero(who == p)
        best = mine[np.lexsort((-gains[mine], enough[doc[mine]]))][:n]
        found[name] = Ranking(_ranked(layers.corpus, doc[best], gains[best]), float(worth[p]), bool(held[p]))
    return found


def _ranked(corpus: Corpus, documents: Integers, gains: Floats | None = None) -> tuple[Ranked, ...]:
    told = np.zeros(len(documents)) if gains is None else gains
    return tuple(Ranked(corpus[d].id, gain) for d, gain in zip(documents.tolist(), told.tolist(), strict=True))


class _Desk:
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
            said_by = {name for document in versions for name in document.annotations}
            self.labels[d] = len(said_by)
            for name in said_by & number.keys():
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
        """``[D]`` The share of what is unknown of each document that labels to come should leave unknown."""
        left = np.ones(len(self.labels))
        if self.in_hand:
            holders = sorted({name for _, name in self.in_hand})
            doc = np.array([d for d, _ in self.in_hand], np.int64)
            who = np.searchsorted(holders, [name for _, name in self.in_hand])
            unknown, told = _unknown(views)[doc], _gains(views, holders, doc, who)
            share = np.divide(told, unknown, out=np.zeros_like(told), where=unknown > 0)
            np.multiply.at(left, doc, 1 - share.clip(0.0, 1.0))
        return left


def _position(corpus: Corpus, document: str, what: str) -> int:
    try:
        return corpus.position(document)
    except KeyError:
        raise SettingsError(f"document {document!r}, which is {what}, is not in the input") from None


def _costs(people: Sequence[str], cost: Mapping[str, float]) -> Floats:
    """``[P]`` What a document costs with each person; 1 unless it is said."""
    for name, price in cost.items():
        check_cost(name, price)
    return np.array([cost.get(name, 1.0) for name in people], np.float64)


def _unknown(views: Sequence[View]) -> Floats:
    """``[D]`` What is unknown of each document and can be told, in nats."""
    return together([view.unsure.that_labels_can_tell(view.told) for view in views]).sequence


def _gains(views: Sequence[View], names: Sequence[str], doc: Integers, who: Integers) -> Floats:
    """``[U]`` The nats that labels of documents by people, counted along ``names``, should tell."""
    if not len(doc):
        return np.zeros(0)
    return np.asarray(np.sum([view.gains(doc, who, names) for view in views], axis=0))


def _worth(views: Sequence[View], names: Sequence[str], documents: Integers) -> Floats:
    """``[P]`` The nats that everybody's labels of these documents should tell, on average."""
    D, P = len(documents), len(names)
    gains = _gains(views, names, np.repeat(documents, P), np.tile(np.arange(P), D))
    return np.asarray(gains.reshape(D, P).mean(axis=0)) if D else np.zeros(P)


def _held_back(worth: Floats, done: Integers, share: float) -> Flags:
    """``[P]`` Whose labels tell too little, for their cost, while others are there.

    >>> _held_back(np.array([1.0, 0.9, 0.3, 0.2]), np.array([50, 50, 50, 5]), 0.6).tolist()
    [False, False, True, False]
    """
    if not len(worth):
        return np.zeros(0, np.bool_)
    return np.asarray((worth < share * np.median(worth)) & (done >= _TRIAL))


def _breadth_first(corpus: Corpus, labels: Integers, overlap: int, seed: int) -> Integers:
    """Documents in the order of a lot: those begun until they have their ``overlap``, then new ones, then the rest."""
    drawn = np.array([lot(seed, document.id) for document in corpus])
    full = labels >= overlap
    return np.lexsort((drawn, np.where(full, labels, 0), labels == 0, full))
