"""Annotators who err together: prompts of one language model, variants of one rule, accounts of one person, copies.

What annotators k and l have in common is the cosine of their sets of spans, A_kl = |both| / √(|k|·|l|), type by type,
in the documents that both saw. If they erred independently, it would be g_k·g_l, where g² is the product of someone's
precision and recall; a g for everybody that explains most pairs (least absolute differences, in which those who seem
to have much in common weigh less) shows which pairs agree more than their reliability explains:

    ρ_kl = (A_kl − g_k·g_l) / (1 − g_k·g_l),

three standard errors taken off, mean over types. The share ρ² of what they say is then one piece of evidence. Of those
whom the user declared to be a group it is A²: being right explains nothing of what samples of one model agree on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.encode.algebra import document_of, marked_spans, seen_pairs
from quorate.encode.encoded import Encoded
from quorate.encode.sharing import Sharing

__all__ = ["shared_mistakes"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_ENOUGH = 40  # spans that two must have, on average, before anything is told of them
_ERRORS = 3.0  # standard errors that are taken off: among thousands of pairs, some agree by chance
_LITTLE = 0.01  # a share below this is none
_LEAST_PAIRS = 6  # of four annotators; three can always be explained
_ROUNDS, _STEPS = 8, 20
_LEAST_DIFFERENCE = 0.02  # below which differences weigh alike
_LEAST_G, _MOST_G = 0.01, 0.999


class _Pairs(NamedTuple):
    """What two annotators marked, in documents that both saw, by type: the cosine, and the mean number of spans."""

    one: Integers
    other: Integers
    kind: Integers
    cosine: Floats
    spans: Floats

    def where(self, chosen: NDArray[np.bool_]) -> _Pairs:
        return _Pairs(*(column[chosen] for column in self))  # type: ignore[arg-type]


def shared_mistakes(encoded: Encoded, groups: Sequence[str | None] = ()) -> Sharing:
    """How much annotators have in common beyond what their reliability explains; ``groups`` are those declared.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.encode.from_corpus import encode
    >>> tags = ("B-PER", "O")
    >>> corpus = Corpus([Document(str(n), ("Ada", "sang"), {"a": tags, "b": tags}) for n in range(50)])
    >>> shared_mistakes(encode(corpus, corpus.tagset()), ["llm", "llm"]).pairs()
    [(0, 1, 1.0)]
    """
    K = len(encoded.annotators)
    if encoded.tagset.outside is None:  # plain labels are few, and the same by chance
        return Sharing.of()
    team = [name if name is not None else k for k, name in enumerate(groups or [None] * K)]
    declared = [(k, n) for k, n in combinations(range(K), 2) if team[k] == team[n]] if any(groups) else []
    independent = _comparable(encoded)
    independent = independent.where(~np.isin(independent.one * K + independent.other, [k * K + n for k, n in declared]))
    shares: dict[tuple[int, int], float] = {}
    if len(np.unique(independent.one * K + independent.other)) >= _LEAST_PAIRS:
        one, other, rho = _beyond_reliability(independent, K)
        shares = {(k, n): r**2 for k, n, r in zip(one.tolist(), other.tolist(), rho.tolist(), strict=True)}
    if declared:
        both = _in_common(encoded, [None], 0.0)
        # Where they have marked nothing yet, they are taken at the user's word.
        alike = (both.cosine * both.spans + 1) / (both.spans + 1)
        agreed = dict(zip(zip(both.one.tolist(), both.other.tolist(), strict=True), alike.tolist(), strict=True))
        shares |= {pair: agreed.get(pair, 1.0) ** 2 for pair in declared}
    return Sharing.of([(k, n, share) for (k, n), share in sorted(shares.items()) if share >= _LITTLE])


def _comparable(encoded: Encoded) -> _Pairs:
    """Pairs with enough spans, type by type; of those who have too few of every type, all types together."""
    T, K = len(encoded.tagset.types), len(encoded.annotators)
    by_type, all_types = _in_common(encoded, range(T), _ENOUGH), _in_common(encoded, [None], _ENOUGH)
    few = ~np.isin(all_types.one * K + all_types.other, by_type.one * K + by_type.other)
    others = all_types.where(few)._replace(kind=np.full(int(few.sum()), T, np.int64))
    return _Pairs(*(np.concatenate(column) for column in zip(by_type, others, strict=True)))


def _in_common(encoded: Encoded, kinds: Iterable[int | None], least: float) -> _Pairs:
    """All pairs of annotators with at least so many spans of a type (``None``: of all) where both looked."""
    from scipy.sparse import csr_array, triu  # slow to load, and needed only where settings are chosen

    K, D, T = len(encoded.annotators), encoded.n_docs, len(encoded.tagset.types)
    spans = marked_spans(encoded)
    seen_doc, seen_by = seen_pairs(encoded)
    seen = csr_array((np.ones(len(seen_doc)), (seen_doc, seen_by)), shape=(D, K))
    found = []
    for kind in kinds:
        these = spans if kind is None else spans.where(spans.kind == kind)
        _, which = np.unique(these.key(encoded.n_tokens, T), return_inverse=True)
        marked = csr_array((np.ones(len(which)), (these.who, which)), shape=(K, int(which.max(initial=0)) + 1))
        per_document = csr_array((np.ones(len(which)), (these.who, document_of(encoded, these.start))), shape=(K, D))
        mine = per_document @ seen  # [k, l]: how many k marked where l looked too
        mean = triu(mine.multiply(mine.T).sqrt(), 1, format="coo")
        enough = mean.data >= least
        one, other = (side[enough].astype(np.int64) for side in mean.coords)
        n = mean.data[enough]
        both = np.asarray((marked @ marked.T).tocsr()[one, other]).ravel() if len(one) else np.zeros(0)
        found.append(_Pairs(one, other, np.full(len(one), kind or 0, np.int64), both / n, n))
    return _Pairs(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _beyond_reliability(pairs: _Pairs, K: int) -> tuple[Integers, Integers, Floats]:
    """Of every pair of annotators, once, how much more they agree than their reliability explains (ρ)."""
    one, other, kind, cosine, n = pairs
    T = int(kind.max()) + 1
    mine, theirs = one * T + kind, other * T + kind  # everybody has a g for each type
    pair, place = np.unique(one * K + other, return_inverse=True)
    usual = np.array([np.median(cosine[kind == t]) if (kind == t).any() else 0.0 for t in range(T)])
    rho = np.clip((cosine - usual[kind]) / (1 - np.minimum(usual[kind], _MOST_G)), 0.0, 1.0)
    g = np.tile(np.sqrt(np.clip(usual, _LEAST_G, _MOST_G)), K)
    error = np.sqrt(np.maximum(cosine * (1 - cosine), 0.01) / n)
    spans = np.bincount(place, n)
    for _ in range(_ROUNDS):
        common = np.bincount(place, n * rho) / spans
        crowd = 1 + np.bincount(pair // K, common, minlength=K) + np.bincount(pair % K, common, minlength=K)
        weight = np.sqrt(n) / (crowd[one] * crowd[other])
        for _ in range(_STEPS):
            off = weight / np.maximum(np.abs(cosine - g[mine] * g[theirs]), _LEAST_DIFFERENCE)
            agreed = _sums(mine, off * g[theirs] * cosine, theirs, off * g[mine] * cosine, K * T)
            whole = _sums(mine, off * g[theirs] ** 2, theirs, off * g[mine] ** 2, K * T)
            best = np.divide(agreed, whole, out=g.copy(), where=whole > 0)
            g = (g + np.clip(best, _LEAST_G, _MOST_G)) / 2  # both sides of a pair move at once: half a step each
        explained = g[mine] * g[theirs]
        rho = np.clip((cosine - _ERRORS * error - explained) / (1 - explained), 0.0, 1.0)
    return pair // K, pair % K, np.bincount(place, n * rho) / spans


def _sums(one: Integers, of_one: Floats, other: Integers, of_other: Floats, n: int) -> Floats:
    return np.asarray(np.bincount(one, of_one, minlength=n) + np.bincount(other, of_other, minlength=n))
