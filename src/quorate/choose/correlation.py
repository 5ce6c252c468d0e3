"""Annotators who err together: prompts of one language model, variants of one rule, accounts of one person, copies.

What annotators k and l have in common is the cosine of their sets of spans, A_kl = |both| / √(|k|·|l|), type by type,
in the documents that both saw. If they erred independently, it would be g_k·g_l, where g² is the product of someone's
precision and recall. A g for everybody, by least absolute differences over all pairs but those who have much in common,
shows which pairs agree more than their reliability explains:

    ρ_kl = (A_kl − g_k·g_l) / (1 − g_k·g_l),

mean over types, three standard errors taken off. A group whose members agree may also merely be right; then outsiders
would agree with one another only as far as each of them agrees with the group, and nothing is held against it. The
share ρ² / (ρ² + (1 − ρ)²) of what two say is one piece of evidence: of those who mostly copy, hardly more than one
vote is left, while a little in common costs little. Of those whom the user declared to be a group ρ is A: being right
explains nothing of what samples of one model agree on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.choose.kernels import Marked, marked_together
from quorate.encode.algebra import document_of, marked_spans, seen_pairs
from quorate.encode.encoded import Encoded
from quorate.encode.sharing import Sharing

__all__ = ["shared_mistakes"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_ENOUGH = 40  # spans that two must have, on average, before anything is told of them
_SOME = 3  # spans that two must have before they tell something of how reliable both are
_ERRORS = 3.0  # standard errors that are taken off: among thousands of pairs, some agree by chance
_LITTLE = 0.01  # a share below this is none
_MUCH = 0.25  # ρ from which on two belong to a group
_LEAST_PAIRS = 6  # of four annotators; three can always be explained
_LOW = 0.25  # quantile of agreement that is taken for that of independent annotators at first
_ROUNDS, _STEPS = 8, 20
_LEAST_DIFFERENCE = 0.02  # below which differences weigh alike
_AS_OTHERS = 10.0  # spans, of someone like the others, that everybody has beforehand
_LEAST_G, _MOST_G = 0.01, 0.999
_CONTRADICTS = 0.05  # by how much those outside a group must agree beyond what they would if it were merely right


class _Pairs(NamedTuple):
    """What two annotators marked, in documents that both saw, by type: the cosine, and the mean number of spans."""

    one: Integers
    other: Integers
    kind: Integers
    cosine: Floats
    spans: Floats

    def where(self, chosen: NDArray[np.bool_]) -> _Pairs:
        one, other, kind, cosine, spans = self
        return _Pairs(one[chosen], other[chosen], kind[chosen], cosine[chosen], spans[chosen])


def shared_mistakes(encoded: Encoded, groups: Sequence[str | None] = (), *, among_rules: bool = False) -> Sharing:
    """How much annotators have in common beyond what their reliability explains; ``groups`` are those declared.

    ``among_rules``, of which each knows something else, those who agree are variants of each other, and nobody knows
    more than it marks.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.encode.from_corpus import encode
    >>> tags = ("B-PER", "O")
    >>> corpus = Corpus([Document(str(n), ("Ada", "sang"), {"a": tags, "b": tags}) for n in range(50)])
    >>> shared_mistakes(encode(corpus, corpus.tagset()), ["llm", "llm"]).pairs()
    [(0, 1, 1.0)]
    """
    K = len(encoded.annotators)
    team = [name if name is not None else k for k, name in enumerate(groups or [None] * K)]
    declared = [(k, n) for k, n in combinations(range(K), 2) if team[k] == team[n]] if any(groups) else []
    if encoded.tagset.outside is None:  # plain labels are few, and the same by chance
        return Sharing.of([(k, n, 1.0) for k, n in declared])
    independent = _in_common(encoded, range(len(encoded.tagset.types)), _SOME)
    independent = independent.where(~np.isin(independent.one * K + independent.other, [k * K + n for k, n in declared]))
    shares: dict[tuple[int, int], float] = {}
    if len(np.unique(independent.one * K + independent.other)) >= _LEAST_PAIRS:
        most = _most_known(encoded) if among_rules else np.full((K, len(encoded.tagset.types)), _MOST_G)
        pair, rho = _beyond_reliability(independent, most)
        if not among_rules:
            rho = np.where(_contradicted(independent, pair, rho, K), rho, 0.0)
        one, other = pair // K, pair % K
        shares = {(k, n): _share(r) for k, n, r in zip(one.tolist(), other.tolist(), rho.tolist(), strict=True)}
    if declared:
        both = _in_common(encoded, [None], 0.0)
        # Where they have marked nothing yet, they are taken at the user's word.
        alike = (both.cosine * both.spans + 1) / (both.spans + 1)
        agreed = dict(zip(zip(both.one.tolist(), both.other.tolist(), strict=True), alike.tolist(), strict=True))
        marks = np.bincount(marked_spans(encoded).who, minlength=K)
        shares |= {(k, n): _share(agreed.get((k, n), 0.0 if marks[k] or marks[n] else 1.0)) for k, n in declared}
    return Sharing.of([(k, n, share) for (k, n), share in sorted(shares.items()) if share >= _LITTLE])


def _share(rho: float) -> float:
    """How much of what two say is one piece of evidence."""
    return rho**2 / (rho**2 + (1 - rho) ** 2)


def _in_common(encoded: Encoded, kinds: Iterable[int | None], least: float) -> _Pairs:
    """All pairs of annotators with at least so many spans of a type (``None``: of all) where both looked."""
    K, D, T = len(encoded.annotators), encoded.n_docs, len(encoded.tagset.types)
    spans = marked_spans(encoded)
    document, who = seen_pairs(encoded)
    by_annotator = np.argsort(who, kind="stable")
    pairs = (
        document,
        who,
        np.searchsorted(document, np.arange(D + 1)),
        by_annotator,
        np.searchsorted(who[by_annotator], np.arange(K + 1)),
    )
    found = []
    for kind in kinds:
        these = spans if kind is None else spans.where(spans.kind == kind)
        pair = np.searchsorted(document * K + who, document_of(encoded, these.start) * K + these.who)
        marks = np.bincount(pair, minlength=len(who)).astype(np.float64)
        different, span = np.unique(these.key(encoded.n_tokens, T), return_inverse=True)
        order = np.argsort(span, kind="stable")
        first_marker = np.searchsorted(span[order], np.arange(len(different) + 1))
        own = np.searchsorted(these.who, np.arange(K + 1))  # they come annotator by annotator
        one, other, mean, both = marked_together(
            Marked(*pairs, marks, these.who[order], first_marker, span, own), least
        )
        found.append(_Pairs(one, other, np.full(len(one), kind or 0, np.int64), both / mean, mean))
    return _Pairs(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _most_known(encoded: Encoded) -> Floats:
    """``[K, T]`` How reliable each can be at most, type by type, where everybody knows something else.

    g² is precision times recall, and of all the different spans that were marked where one looked, what one marks is as
    much as it can know. Without this, copies of a source that hardly overlaps with others would look as if they knew
    everything.
    """
    K, D, T = len(encoded.annotators), encoded.n_docs, len(encoded.tagset.types)
    spans = marked_spans(encoded)
    _, first = np.unique(spans.key(encoded.n_tokens, T), return_index=True)
    there = np.bincount(document_of(encoded, spans.start[first]) * T + spans.kind[first], minlength=D * T).reshape(D, T)
    document, who = seen_pairs(encoded)
    different = np.zeros((K, T))
    np.add.at(different, who, there[document])
    marked = np.bincount(spans.who * T + spans.kind, minlength=K * T).reshape(K, T)
    return np.clip(np.sqrt(marked / np.maximum(different, 1)), _LEAST_G, _MOST_G)


def _beyond_reliability(pairs: _Pairs, most: Floats) -> tuple[Integers, Floats]:
    """Every pair of annotators (k·K + l), once, and how much more they agree than their reliability explains (ρ).

    ``most [K, T]`` is how reliable each can be at most.
    """
    one, other, kind, cosine, n = pairs
    K, T = most.shape
    mine, theirs = one * T + kind, other * T + kind  # everybody has a g for each type
    pair, place = np.unique(one * K + other, return_inverse=True)
    usual = np.clip([_low(cosine[kind == t], n[kind == t]) for t in range(T)], _LEAST_G**2, _MOST_G**2)
    error = np.sqrt(np.maximum(cosine * (1 - cosine), 0.01) / n)
    spans = np.bincount(place, n)

    def in_common(explained: Floats) -> Floats:
        """``[pairs]`` The mean over types, less what may be chance."""
        excess = np.bincount(place, n * (cosine - explained) / (1 - explained)) / spans
        chance = np.sqrt(np.bincount(place, (n * error / (1 - explained)) ** 2)) / spans
        return np.where(spans >= _ENOUGH, np.clip(excess - _ERRORS * chance, 0.0, 1.0), 0.0)

    rho, g = in_common(usual[kind]), np.tile(np.sqrt(usual), K)
    for _ in range(_ROUNDS):
        # What two have in common tells nothing of how reliable they are, and several who are alike tell it once.
        crowd = 1 + np.bincount(pair // K, rho, minlength=K) + np.bincount(pair % K, rho, minlength=K)
        weight = np.sqrt(n) * (1 - rho[place]) ** 2 / (crowd[one] * crowd[other])
        for _ in range(_STEPS):
            off = weight / np.maximum(np.abs(cosine - g[mine] * g[theirs]), _LEAST_DIFFERENCE)
            agreed = _sums(mine, off * g[theirs] * cosine, theirs, off * g[mine] * cosine, K * T)
            whole = _sums(mine, off * g[theirs] ** 2, theirs, off * g[mine] ** 2, K * T)
            of_all = agreed.reshape(K, T).sum(axis=0) / np.maximum(whole.reshape(K, T).sum(axis=0), 1e-9)
            prior = np.sqrt(_AS_OTHERS)
            best = (agreed + prior * np.tile(of_all, K)) / (whole + prior)
            g = (g + np.clip(best, _LEAST_G, most.ravel())) / 2  # both sides of a pair move at once: half a step each
        rho = in_common(g[mine] * g[theirs])
    return pair, rho


def _contradicted(pairs: _Pairs, pair: Integers, rho: Floats, K: int) -> NDArray[np.bool_]:
    """Of every pair, whether those outside its group do not bear out that the group is merely right.

    Were it, with members who agree by w, and outsider l with them by c_l, then outsiders k and l would agree by
    c_k·c_l / w. Where they agree more, they know something that the group does not.
    """
    T = int(pairs.kind.max()) + 1
    told = rho < _MUCH
    for members in Sharing(pair // K, pair % K, rho).at_least(_MUCH).groups(K):
        inside = np.isin(pairs.one, members).astype(np.int64) + np.isin(pairs.other, members)
        within, across, beside = (pairs.where(inside == times) for times in (2, 1, 0))
        w = _means(within.kind, within.cosine, within.spans, T)
        outsider = np.where(np.isin(across.one, members), across.other, across.one)
        c = _means(outsider * T + across.kind, across.cosine, across.spans, K * T)
        implied = (
            c[beside.one * T + beside.kind] * c[beside.other * T + beside.kind] / np.maximum(w, _LEAST_G)[beside.kind]
        )
        comparable = np.isfinite(implied)
        excess, n = (beside.cosine - implied)[comparable], beside.spans[comparable]
        if n.sum() >= _ENOUGH and float((n * excess).sum() / n.sum()) > _CONTRADICTS:
            told |= np.isin(pair // K, members) & np.isin(pair % K, members)
    return told


def _means(place: Integers, value: Floats, weight: Floats, size: int) -> Floats:
    """Weighted means, nan where there is nothing."""
    total = np.bincount(place, weight, minlength=size)
    sums = np.bincount(place, weight * value, minlength=size)
    return np.asarray(np.divide(sums, total, out=np.full(size, np.nan), where=total > 0))


def _low(cosine: Floats, n: Floats) -> float:
    """A low quantile of agreement, in which pairs with enough spans count alike, and the others less."""
    if not len(cosine):
        return 0.0
    order, weight = np.argsort(cosine), np.minimum(n, _ENOUGH)
    return float(cosine[order][np.searchsorted(np.cumsum(weight[order]), _LOW * weight.sum())])


def _sums(one: Integers, of_one: Floats, other: Integers, of_other: Floats, n: int) -> Floats:
    return np.asarray(np.bincount(one, of_one, minlength=n) + np.bincount(other, of_other, minlength=n))
