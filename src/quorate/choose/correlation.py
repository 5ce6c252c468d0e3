"""Annotators who err together: prompts of one language model, variants of one rule, accounts of one person, copies.

What annotators k and l have in common is the cosine of their sets of spans, A_kl = |both| / √(|k|·|l|), type by type,
in the documents that both saw. If they erred independently, it would be g_k·g_l, where g² is the product of someone's
precision and recall. A g for everybody, by least absolute differences over all pairs but those who have much in common
and those in groups that stand apart from everybody else, shows which pairs agree more than their reliability explains:

    ρ_kl = (A_kl − g_k·g_l) / (1 − g_k·g_l),

mean over types. Three standard errors are taken off before anything is held against somebody. A group whose members
agree may also merely be right; then outsiders would agree with one another only as far as each of them agrees with the
group. Once a group is found to err together, what its members agree on tells nothing of their reliability, and ρ is
estimated again without it. The share ρ² / (ρ² + (1 − ρ)²) of what two say is one piece of evidence: of those who mostly
copy, hardly more than one vote is left, while a little in common costs little. Of those whom the user declared to be a
group ρ is A: being right explains nothing of what samples of one model agree on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import combinations, groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.choose.alike import ENOUGH, Pairs, in_common, tokens_in_common
from quorate.choose.copies import FEWEST_COPIES, copies_of_one, copies_unseen, nearly_the_same
from quorate.crowd.algebra import document_of, laid_end_to_end, marked_spans, seen_pairs
from quorate.crowd.crowd import Crowd
from quorate.crowd.sharing import Sharing
from quorate.crowd.voices import in_one_voice

__all__ = ["shared_mistakes"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

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
_DIGITS = 9
_LEVELS = np.arange(0.5, 1.0, 0.05)  # of agreement, at which groups that stand apart are looked for
# By how much those outside a group must agree beyond what they would if it were merely right. Beside three independent
# experts, simulated annotators with vague bounds come to 0.14; beside copies, in simulated crowds and in a jury of
# language models, to 0.16 and more.
_CONTRADICTS = 0.15
_CONTRADICTS_IN_ALL = 0.05  # the same over all pairs alike: a few who share a habit among many others tell little


def shared_mistakes(encoded: Crowd, groups: Sequence[str | None] = (), *, among_rules: bool = False) -> Sharing:
    """How much annotators have in common beyond what their reliability explains; ``groups`` are those declared.

    ``among_rules``, of which each knows something else, those who agree are variants of each other, and nobody knows
    more than it marks.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.crowd.encode import encode
    >>> tags = ("B-PER", "O")
    >>> corpus = Corpus([Document(str(n), ("Ada", "sang"), {"a": tags, "b": tags}) for n in range(50)])
    >>> shared_mistakes(encode(corpus, corpus.tagset()), ["llm", "llm"]).pairs()
    [(0, 1, 1.0)]
    """
    K, links, heard = len(encoded.annotators), list[tuple[int, int, float]](), encoded
    while True:
        shares, voices = _shares(heard, groups, among_rules=among_rules)
        if not voices:
            break
        links += [(voice[0], k, 1.0) for voice in voices for k in voice[1:]]
        heard = in_one_voice(heard, voices)  # what they have in common with others is told by what all of them say
    copies = Sharing.of(links).groups(K)
    for voice in copies:
        shares |= dict.fromkeys(combinations(voice, 2), 1.0)
    return Sharing.of([(k, n, share) for (k, n), share in sorted(shares.items()) if share >= _LITTLE], copies)


def _shares(
    encoded: Crowd, groups: Sequence[str | None], *, among_rules: bool
) -> tuple[dict[tuple[int, int], float], list[list[int]]]:
    """How much of what two say is one piece of evidence, and who are copies of each other, three or more."""
    K = len(encoded.annotators)
    teams: dict[str, list[int]] = {}
    for k, name in enumerate(groups):
        if name is not None:
            teams.setdefault(name, []).append(k)
    declared = sorted(pair for members in teams.values() for pair in combinations(members, 2))
    if encoded.tagset.outside is None:  # plain labels are few, and the same by chance
        return dict.fromkeys(declared, 1.0), []
    known = np.array([k * K + n for k, n in declared], np.int64)

    def not_declared(pairs: Pairs) -> Pairs:
        return pairs.where(np.isin(pairs.one * K + pairs.other, known, invert=True))

    independent = not_declared(in_common(encoded, range(len(encoded.tagset.types)), _SOME))
    both = in_common(encoded, [None], 0.0 if declared else ENOUGH)
    copies = nearly_the_same(both, K)
    shares: dict[tuple[int, int], float] = {}
    if len(np.unique(independent.one * K + independent.other)) >= _LEAST_PAIRS:
        most = _most_known(encoded) if among_rules else np.full((K, len(encoded.tagset.types)), _MOST_G)
        none = np.zeros(len(independent.one), np.bool_)
        found = _beyond_reliability(independent, most, none if among_rules else _stand_apart(independent, K))
        loosely = cache(lambda: not_declared(tokens_in_common(encoded)))  # is seldom needed
        one, other = np.divmod(found.pair, K)
        voices = _copies_beyond_doubt(encoded, both, found, copies)
        if voices:
            return shares, voices
        rho = found.surely if among_rules else _held_against(independent, found, most, loosely)
        shares = {(k, n): _share(r) for k, n, r in zip(one.tolist(), other.tolist(), rho.tolist(), strict=True)}
    if declared:
        one, other, _, cosine, spans = both
        # Where they have marked nothing yet, they are taken at the user's word.
        alike = (cosine * spans + 1) / (spans + 1)
        agreed = dict(zip(zip(one.tolist(), other.tolist(), strict=True), alike.tolist(), strict=True))
        marks, saw = (np.bincount(who, minlength=K) > 0 for who in (marked_spans(encoded).who, seen_pairs(encoded)[1]))
        heard = [(k, n) for k, n in declared if saw[k] and saw[n]]  # copies are not there any more
        shares |= {(k, n): _share(agreed.get((k, n), 0.0 if marks[k] or marks[n] else 1.0)) for k, n in heard}
    much = [(k, n, 1.0) for (k, n), share in shares.items() if share >= _share(_MUCH) and copies[k] == copies[n] >= 0]
    return shares, [voice for voice in Sharing.of(much).groups(K) if len(voice) >= FEWEST_COPIES]


def _copies_beyond_doubt(encoded: Crowd, pairs: Pairs, found: _Beyond, copies: Integers) -> list[list[int]]:
    """Those who are nearly the same and copies of one of them, or nearly the same where nobody else marks anything."""
    one, other = np.divmod(found.pair, len(copies))
    number = np.where(_same(copies, one, other), copies[one], -1)
    voices = []
    for n in np.unique(copies[copies >= 0]).tolist():
        members, rho = np.flatnonzero(copies == n), found.rho[number == n]
        from_one = copies_of_one(encoded, pairs, members) if len(rho) and rho.mean() >= _MUCH else []
        voices.append(from_one or copies_unseen(encoded, pairs, members))
    return [voice for voice in voices if voice]


def _share(rho: float) -> float:
    """How much of what two say is one piece of evidence."""
    return rho**2 / (rho**2 + (1 - rho) ** 2)


def _most_known(encoded: Crowd) -> Floats:
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


class _Beyond(NamedTuple):
    """Every ``pair`` of annotators (k·K + l), once, and how much more they agree than their reliability explains (ρ).

    ``rho`` is the likeliest value, ``surely`` what is left of it when chance is taken off.
    """

    pair: Integers
    rho: Floats
    surely: Floats


def _beyond_reliability(pairs: Pairs, most: Floats, aside: NDArray[np.bool_]) -> _Beyond:
    """How much more annotators agree than their reliability explains.

    ``most [K, T]`` is how reliable each can be at most. The pairs that are left ``aside`` tell nothing of it.
    """
    one, other, kind, cosine, n = pairs
    K, T = most.shape
    mine, theirs = one * T + kind, other * T + kind  # everybody has a g for each type
    pair, place = np.unique(one * K + other, return_inverse=True)
    usual = np.clip([_low(cosine[kind == t], n[kind == t]) for t in range(T)], _LEAST_G**2, _MOST_G**2)
    error = np.sqrt(_variance(cosine) / n)
    spans = np.bincount(place, n)

    def beyond(explained: Floats) -> _Beyond:
        """The mean over types."""
        rho = np.bincount(place, n * (cosine - explained) / (1 - explained)) / spans
        chance = np.sqrt(np.bincount(place, (n * error / (1 - explained)) ** 2)) / spans
        surely = np.where(spans >= ENOUGH, np.clip(rho - _ERRORS * chance, 0.0, 1.0), 0.0)
        return _Beyond(pair, np.clip(rho, 0.0, 1.0), surely)

    found, g = beyond(usual[kind]), np.tile(np.sqrt(usual), K)
    for _ in range(_ROUNDS):
        # What two have in common tells nothing of how reliable they are, and several who are alike tell it once.
        alike = found.surely
        crowd = 1 + np.bincount(pair // K, alike, minlength=K) + np.bincount(pair % K, alike, minlength=K)
        weight = ~aside * np.sqrt(n) * (1 - alike[place]) ** 2 / (crowd[one] * crowd[other])
        for _ in range(_STEPS):
            off = weight / np.maximum(np.abs(cosine - g[mine] * g[theirs]), _LEAST_DIFFERENCE)
            agreed = _sums(mine, off * g[theirs] * cosine, theirs, off * g[mine] * cosine, K * T)
            whole = _sums(mine, off * g[theirs] ** 2, theirs, off * g[mine] ** 2, K * T)
            of_all = agreed.reshape(K, T).sum(axis=0) / np.maximum(whole.reshape(K, T).sum(axis=0), 1e-9)
            prior = np.sqrt(_AS_OTHERS)
            best = (agreed + prior * np.tile(of_all, K)) / (whole + prior)
            g = (g + np.clip(best, _LEAST_G, most.ravel())) / 2  # both sides of a pair move at once: half a step each
        found = beyond(g[mine] * g[theirs])
    return found


def _held_against(pairs: Pairs, found: _Beyond, most: Floats, loosely: Callable[[], Pairs]) -> Floats:
    """``[pairs]`` ρ where it is held against two that they agree, 0 where they may merely be right.

    The groups that are most alike, and that others bear out least, token by token, come first; those who are found to
    err together tell nothing of the groups that come after. Among the members of a group that may merely be right, the
    same is asked again: some may be copies of one of them. ``loosely`` gives what pairs have in common of the tokens
    that they marked, which tells more where hardly any two mark the same span.
    """
    K = len(most)
    one, other = np.divmod(found.pair, K)
    groups = Sharing(one, other, found.surely).at_least(_MUCH).groups(K)
    group, err_together = _numbered(groups, K), np.zeros(len(groups) + 1, np.bool_)  # the last is for those in none
    borne_out = _borne_out(loosely(), group, len(groups)) if len(groups) > 1 else np.zeros(len(groups))
    present, strictly = len(np.unique([pairs.one, pairs.other])), _Outsiders(pairs, K)
    by_tokens = cache(lambda: _Outsiders(loosely(), K))
    held = np.where(found.surely < _MUCH, found.surely, 0.0)
    for _, alike in groupby(np.argsort(borne_out, kind="stable").tolist(), lambda number: borne_out[number]):
        told, contradicted = np.where(err_together[group], group, -1), []
        for number in alike:
            members = groups[number]
            if strictly.contradict(members, told) or by_tokens().contradict(members, told):
                contradicted.append(number)
                continue
            if len(members) == present or len(members) * (len(members) - 1) // 2 < _LEAST_PAIRS:
                continue  # without a look at all pairs: most groups are small
            here = pairs.within(members)
            if len(np.unique(here.one * K + here.other)) >= _LEAST_PAIRS:
                among = _beyond_reliability(here, most, _stand_apart(here, K))
                of_members = partial(_within, loosely, members)
                held[np.searchsorted(found.pair, among.pair)] = _held_against(here, among, most, of_members)
        err_together[contradicted] = True
    told = np.where(err_together[group], group, -1)
    if (told >= 0).any():
        again = _beyond_reliability(pairs, most, _same(told, pairs.one, pairs.other))
        these = _same(told, one, other) & (found.surely >= _MUCH)
        held[these] = again.rho[these]
    return held


def _within(pairs: Callable[[], Pairs], members: Sequence[int]) -> Pairs:
    return pairs().within(members)


def _numbered(groups: Sequence[list[int]], K: int) -> Integers:
    """``[K]`` The number of everybody's group, −1 for those in none."""
    group = np.full(K, -1)
    for number, members in enumerate(groups):
        group[members] = number
    return group


def _same(group: Integers, one: Integers, other: Integers) -> NDArray[np.bool_]:
    """Whether two are in the same group."""
    return np.asarray((group[one] >= 0) & (group[one] == group[other]))


def _alike(group: Integers, one: Integers, other: Integers) -> Integers:
    """How many pairs there are of members of their groups; those in none stand for themselves."""
    members = np.append(np.bincount(group[group >= 0]), 1)  # −1, for those in none, is the last
    return np.asarray(members[group[one]] * members[group[other]])


def _borne_out(pairs: Pairs, group: Integers, n_groups: int) -> Floats:
    """``[groups]`` How far those in no group agree with each, less how far its members agree."""
    one, other = group[pairs.one], group[pairs.other]
    across, within = (one < 0) != (other < 0), _same(group, pairs.one, pairs.other)
    agreed, alike = (
        np.nan_to_num(_means(np.maximum(one, other)[rows], pairs.cosine[rows], pairs.spans[rows], n_groups))
        for rows in (across, within)
    )
    return np.round(agreed - alike, _DIGITS)  # later ones hang on the order of adding up


def _stand_apart(pairs: Pairs, K: int) -> NDArray[np.bool_]:
    """Of every row, whether both are in a group whose members are clearly closer to each other than to anybody else.

    However good its members are, it is for others to tell: copies of somebody would vouch for each other.
    """
    pair, place = np.unique(pairs.one * K + pairs.other, return_inverse=True)
    of_pair = np.bincount(place, pairs.spans)
    is_told = of_pair >= ENOUGH
    one, other = np.divmod(pair[is_told], K)
    spans: Floats = of_pair[is_told].astype(np.float64)
    cosine: Floats = np.bincount(place, pairs.spans * pairs.cosine)[is_told] / spans
    mine, theirs = np.concatenate([one, other]), np.concatenate([other, one])
    spans, cosine = np.tile(spans, 2), np.tile(cosine, 2)
    apart = np.full(K, -1)
    for number, level in enumerate(_LEVELS):
        groups = Sharing(mine, theirs, cosine).at_least(level).groups(K)
        group = _numbered([members for members in groups if (apart[members] < 0).all()], K)
        inside = group[mine] >= 0
        within, across = _same(group, mine, theirs), inside & (group[mine] != group[theirs])
        total = np.bincount(mine[within], spans[within], minlength=K)
        own = np.bincount(mine[within], (spans * cosine)[within], minlength=K) / np.maximum(total, 1)
        chance = np.sqrt(_variance(cosine) / spans + (_variance(own) / np.maximum(total, 1))[mine])
        is_closer = own[mine] - cosine > _ERRORS * chance
        outsiders = np.unique(group[mine][across] * K + theirs[across]) // K
        stands = np.bincount(outsiders, minlength=K) > 1
        stands[group[mine][across & ~is_closer]] = False
        found = (group >= 0) & stands[group]
        apart[found] = number * K + group[found]
    return _same(apart, pairs.one, pairs.other)


def _variance(share: Floats) -> Floats:
    """Of what is found of a share by looking once; never nothing, however clear it is."""
    return np.maximum(share * (1 - share), 0.01)


class _Outsiders:
    """What those outside a group say of it; only the pairs around the group are looked at."""

    def __init__(self, pairs: Pairs, K: int) -> None:
        ends = np.concatenate([pairs.one, pairs.other])
        self._pairs, self._row = pairs, np.argsort(ends, kind="stable")
        self._first = np.searchsorted(ends[self._row], np.arange(K + 1))
        self._row %= max(len(pairs.one), 1)

    def contradict(self, members: Sequence[int], told: Integers) -> bool:
        """Whether they do not bear out that the group is merely right.

        Were it, with members who agree by w, and outsider l with them by c_l, then outsiders k and l would agree by
        c_k·c_l / w. Where they agree more, they know something that the group does not. Those who have the same number
        in ``told [K]`` tell nothing together, and count as one.
        """
        around = self._of(members)
        ends = np.unique(np.concatenate([around.one, around.other, np.asarray(members)]))
        near = self._of(ends)
        near = near.where(np.isin(near.one, ends) & np.isin(near.other, ends) & ~_same(told, near.one, near.other))
        T, K = int(near.kind.max(initial=0)) + 1, len(ends)
        one, other = np.searchsorted(ends, near.one), np.searchsorted(ends, near.other)
        is_member = np.isin(ends, members)
        inside = is_member[one].astype(np.int64) + is_member[other]
        within, across, beside = (inside == times for times in (2, 1, 0))
        w = _means(near.kind[within], near.cosine[within], near.spans[within], T)
        outsider = np.where(is_member[one], other, one)
        c = _means((outsider * T + near.kind)[across], near.cosine[across], near.spans[across], K * T)
        implied = (c[one * T + near.kind] * c[other * T + near.kind] / np.maximum(w, _LEAST_G)[near.kind])[beside]
        comparable = np.isfinite(implied)
        cosine, n = (
            near.cosine[beside][comparable],
            (near.spans / _alike(told, near.one, near.other))[beside][comparable],
        )
        implied = implied[comparable]
        weight = n * np.maximum(cosine, implied)  # of those who know nothing, agreement tells nothing
        excess = cosine - implied
        return bool(
            n.sum() >= ENOUGH
            and (n * excess).sum() > _CONTRADICTS_IN_ALL * n.sum()
            and (weight * excess).sum() > _CONTRADICTS * weight.sum()
        )

    def _of(self, annotators: Sequence[int] | Integers) -> Pairs:
        """The pairs of these, in their order."""
        first = self._first[np.asarray(annotators, np.int64)]
        _, place = laid_end_to_end(first, self._first[np.asarray(annotators, np.int64) + 1] - first)
        return self._pairs.where(np.unique(self._row[place]))


def _means(place: Integers, value: Floats, weight: Floats, size: int) -> Floats:
    """Weighted means, nan where there is nothing."""
    total = np.bincount(place, weight, minlength=size)
    sums = np.bincount(place, weight * value, minlength=size)
    return np.asarray(np.divide(sums, total, out=np.full(size, np.nan), where=total > 0))


def _low(cosine: Floats, n: Floats) -> float:
    """A low quantile of agreement, in which pairs with enough spans count alike, and the others less."""
    if not len(cosine):
        return 0.0
    order, weight = np.argsort(cosine), np.minimum(n, ENOUGH)
    return float(cosine[order][np.searchsorted(np.cumsum(weight[order]), _LOW * weight.sum())])


def _sums(one: Integers, of_one: Floats, other: Integers, of_other: Floats, n: int) -> Floats:
    return np.asarray(np.bincount(one, of_one, minlength=n) + np.bincount(other, of_other, minlength=n))
