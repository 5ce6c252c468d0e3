"""Correlated errors among sources that abstain, and in groups that profiles declare: their labels count less.

What sources k and l have in common is the cosine of their sets of spans, A_kl = |both| / √(|k|·|l|), type by type, in
documents that both saw. If they erred independently it would be g_k·g_l, where g² is the product of precision and
recall of a source. A g for every source and type, by least absolute differences over all pairs, shows which pairs agree
more than their reliability explains:

    ρ_kl = (A_kl − g_k·g_l) / (1 − g_k·g_l),

mean over types, less three standard errors. Among sources that abstain nobody can be more reliable than what it marks,
as a share of all that was marked, allows. The share ρ² / (ρ² + (1 − ρ)²) of what two say is one piece of evidence: in a
document the labels of k count 1 / (1 + Σ_l share_kl) over the others who saw it. In a declared group ρ is A.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.profiles import Profile
from quorate.crowd.algebra import document_of, laid_end_to_end, marked_spans, paired, seen_pairs
from quorate.crowd.crowd import Crowd
from quorate.crowd.kernels import weigh_pairs
from quorate.crowd.together import ENOUGH, Pairs, in_common

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MUCH = 0.25
"""The share from which on two have much in common."""
_SOME = 3  # spans that two must have before their agreement bears on how reliable both are
_ERRORS = 3.0  # standard errors that are taken off: among many pairs, some agree by chance
_LITTLE = 0.01  # a share below this is none
_LEAST_PAIRS = 6  # of four sources; three can always be explained
_LOW = 0.25  # quantile of agreement that is taken for that of independent sources at first
_ROUNDS, _STEPS = 8, 20
_LEAST_DIFFERENCE = 0.02  # below which differences weigh alike
_AS_OTHERS = 10.0  # spans of the average source that everybody has beforehand
_LEAST_G, _MOST_G = 0.01, 0.999
_PARTNERS_AT_ONCE = 1 << 22


def downweight_correlated(crowd: Crowd) -> Crowd:
    """The crowd in which labels of sources whose errors are correlated count less."""
    note = correlated(crowd)
    return crowd.noting(note) if len(note.one) else crowd


class Correlated(NamedTuple):
    """How much of what ``one`` and ``other`` say is one piece of evidence: ``share``, above 0 and at most 1.

    >>> found = Correlated.of([(0, 1, 1.0), (1, 2, 0.5)])
    >>> found.weights(np.array([0, 0, 1]), np.array([0, 1, 1])).tolist()
    [0.5, 0.5, 1.0]
    """

    one: Integers
    other: Integers
    share: Floats

    @classmethod
    def of(cls, pairs: Sequence[tuple[int, int, float]] = ()) -> Correlated:
        """From pairs of annotators, each pair once."""
        one, other, share = zip(*pairs, strict=True) if pairs else ((), (), ())
        return cls(np.array(one, np.int64), np.array(other, np.int64), np.array(share, np.float64))

    def pairs(self) -> list[tuple[int, int, float]]:
        """As a list, for a file."""
        return list(zip(self.one.tolist(), self.other.tolist(), self.share.tolist(), strict=True))

    @property
    def merges(self) -> bool:
        """It does not."""
        return False

    @property
    def adds(self) -> tuple[str, ...]:
        """None."""
        return ()

    def plain(self) -> dict[str, Any]:
        """As plain values, for a file."""
        return {"pairs": self.pairs()}

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Correlated:
        """What :meth:`plain` gave."""
        return cls.of([(int(one), int(other), float(share)) for one, other, share in plain["pairs"]])

    def applied(self, crowd: Crowd) -> Crowd:
        """With these weights of labels."""
        document, who = seen_pairs(crowd)
        weight = np.empty(len(crowd.event_cell))
        weigh_pairs(paired(crowd, document, who), self.weights(document, who), weight)
        return replace(crowd, event_weight=weight)

    def weights(self, document: Integers, who: Integers) -> Floats:
        """How much the labels of each annotator count in a document; the two say who saw which, each pair once."""
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

    def dependent(self, document: Integers, who: Integers) -> tuple[Integers, Integers]:
        """Whoever has much in common with one of these."""
        number, partner, share = self._partners(who)
        much = share >= MUCH
        return document[number[much]], partner[much]

    def at_least(self, share: float) -> Correlated:
        """Only the pairs with a share of at least this."""
        much = self.share >= share
        return Correlated(self.one[much], self.other[much], self.share[much])

    def _partners(self, who: Integers) -> tuple[Integers, Integers, Floats]:
        """Everybody correlated with one of these: the place of that one, who it is, the share."""
        ends, partner = np.concatenate([self.one, self.other]), np.concatenate([self.other, self.one])
        order = np.argsort(ends, kind="stable")
        ends, partner, share = ends[order], partner[order], np.concatenate([self.share, self.share])[order]
        first = np.searchsorted(ends, who)
        times = np.searchsorted(ends, who, side="right") - first
        _, position = laid_end_to_end(first, times)
        return np.repeat(np.arange(len(who)), times), partner[position], share[position]


def correlated(crowd: Crowd) -> Correlated:
    """Who errs together: sources that abstain, by what they marked; others where profiles put them in one group.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.crowd.encode import encode
    >>> tags, group = ("B-PER", "O"), Profile(group="llm")
    >>> corpus = Corpus([Document(str(n), ("Ada", "sang"), {"a": tags, "b": tags}) for n in range(50)])
    >>> crowd = replace(encode(corpus, corpus.tagset()), profiles={"a": group, "b": group})
    >>> correlated(crowd).pairs()
    [(0, 1, 1.0)]
    """
    declared = _declared(crowd)
    shares: dict[tuple[int, int], float] = {}
    if crowd.abstains:
        pairs = in_common(crowd, range(len(crowd.tagset.types)), _SOME)
        K = len(crowd.annotators)
        pairs = pairs.where(~np.isin(pairs.one * K + pairs.other, [k * K + n for k, n in declared]))
        if len(np.unique(pairs.one * K + pairs.other)) >= _LEAST_PAIRS:
            one, other, rho = _beyond_reliability(pairs, _most_reliable(crowd))
            shares = dict(zip(zip(one.tolist(), other.tolist(), strict=True), _share(rho).tolist(), strict=True))
    if declared:
        shares |= _within_groups(crowd, declared)
    return Correlated.of([(k, n, share) for (k, n), share in sorted(shares.items()) if share >= _LITTLE])


def _declared(crowd: Crowd) -> list[tuple[int, int]]:
    """Pairs of annotators whose profiles name the same group."""
    groups: dict[str, list[int]] = {}
    for k, name in enumerate(crowd.annotators):
        group = crowd.profiles.get(name, Profile()).group
        if group is not None:
            groups.setdefault(group, []).append(k)
    return sorted(pair for members in groups.values() for pair in combinations(members, 2))


def _within_groups(crowd: Crowd, declared: Sequence[tuple[int, int]]) -> dict[tuple[int, int], float]:
    """The shares of declared pairs; 1 of those who marked nothing yet, and in the plain scheme."""
    K, saw = len(crowd.annotators), np.bincount(seen_pairs(crowd)[1], minlength=len(crowd.annotators)) > 0
    there = [(k, n) for k, n in declared if saw[k] and saw[n]]
    if crowd.tagset.outside is None:  # plain labels are few, and the same by chance
        return dict.fromkeys(there, 1.0)
    one, other, _, cosine, spans = in_common(crowd, [None], 0.0)
    alike = _share((cosine * spans + 1) / (spans + 1))  # as if one more span were the same
    found = dict(zip(zip(one.tolist(), other.tolist(), strict=True), alike.tolist(), strict=True))
    marks = np.bincount(marked_spans(crowd).who, minlength=K) > 0
    return {(k, n): found.get((k, n), 0.0 if marks[k] or marks[n] else 1.0) for k, n in there}


def _share(rho: Floats) -> Floats:
    """How much of what two say is one piece of evidence."""
    return rho**2 / (rho**2 + (1 - rho) ** 2)


def _most_reliable(crowd: Crowd) -> Floats:
    """``[K, T]`` The greatest g: √ of what one marks as a share of all different spans marked where it looked.

    Without this, copies of a source that hardly overlaps with others would look as if they were always right.
    """
    K, D, T = len(crowd.annotators), crowd.n_docs, len(crowd.tagset.types)
    spans = marked_spans(crowd)
    _, first = np.unique(spans.key(crowd.n_tokens, T), return_index=True)
    there = np.bincount(document_of(crowd, spans.start[first]) * T + spans.kind[first], minlength=D * T).reshape(D, T)
    document, who = seen_pairs(crowd)
    different = np.zeros((K, T))
    np.add.at(different, who, there[document])
    marked = np.bincount(spans.who * T + spans.kind, minlength=K * T).reshape(K, T)
    return np.clip(np.sqrt(marked / np.maximum(different, 1)), _LEAST_G, _MOST_G)


def _beyond_reliability(pairs: Pairs, most: Floats) -> tuple[Integers, Integers, Floats]:
    """Every two annotators, and by how much they surely agree more than their reliability explains: ρ.

    ``most [K, T]`` is how reliable each can be.
    """
    one, other, kind, cosine, n = pairs
    K, T = most.shape
    mine, theirs = one * T + kind, other * T + kind  # everybody has a g for each type
    pair, place = np.unique(one * K + other, return_inverse=True)
    usual = np.clip([_low(cosine[kind == t], n[kind == t]) for t in range(T)], _LEAST_G**2, _MOST_G**2)
    error = np.sqrt(np.maximum(cosine * (1 - cosine), 0.01) / n)
    spans = np.bincount(place, n)

    def surely(explained: Floats) -> Floats:
        rho = np.bincount(place, n * (cosine - explained) / (1 - explained)) / spans
        chance = np.sqrt(np.bincount(place, (n * error / (1 - explained)) ** 2)) / spans
        return np.where(spans >= ENOUGH, np.clip(rho - _ERRORS * chance, 0.0, 1.0), 0.0)

    found, g = surely(usual[kind]), np.tile(np.sqrt(usual), K)
    for _ in range(_ROUNDS):
        # What two have in common says nothing of how reliable they are, and several who are alike say it once.
        crowd = 1 + np.bincount(pair // K, found, minlength=K) + np.bincount(pair % K, found, minlength=K)
        weight = np.sqrt(n) * (1 - found[place]) ** 2 / (crowd[one] * crowd[other])
        for _ in range(_STEPS):
            off = weight / np.maximum(np.abs(cosine - g[mine] * g[theirs]), _LEAST_DIFFERENCE)
            agreed = _sums(mine, off * g[theirs] * cosine, theirs, off * g[mine] * cosine, K * T)
            whole = _sums(mine, off * g[theirs] ** 2, theirs, off * g[mine] ** 2, K * T)
            of_all = agreed.reshape(K, T).sum(axis=0) / np.maximum(whole.reshape(K, T).sum(axis=0), 1e-9)
            prior = np.sqrt(_AS_OTHERS)
            best = (agreed + prior * np.tile(of_all, K)) / (whole + prior)
            g = (g + np.clip(best, _LEAST_G, most.ravel())) / 2  # both sides of a pair move at once: half a step each
        found = surely(g[mine] * g[theirs])
    return *np.divmod(pair, K), found


def _low(cosine: Floats, n: Floats) -> float:
    """A low quantile of agreement, in which pairs with enough spans count alike, and the others less."""
    if not len(cosine):
        return 0.0
    order, weight = np.argsort(cosine), np.minimum(n, ENOUGH)
    return float(cosine[order][np.searchsorted(np.cumsum(weight[order]), _LOW * weight.sum())])


def _sums(one: Integers, of_one: Floats, other: Integers, of_other: Floats, n: int) -> Floats:
    return np.asarray(np.bincount(one, of_one, minlength=n) + np.bincount(other, of_other, minlength=n))
