"""Who errs together: agreement and weights by loops, and copies and independent annotators that were made so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

import simulated_crowds as crowds
from problems import certain, random_corpus, tagset
from quorate.choose import alike, correlation
from quorate.choose.alike import in_common
from quorate.choose.correlation import shared_mistakes
from quorate.corpus.records import Corpus, Document, Tag
from quorate.corpus.simulate import Behaviour, crowd, with_copies
from quorate.corpus.tags import Scheme, find_spans
from quorate.crowd.algebra import seen_pairs
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode
from quorate.crowd.sharing import Sharing

Named = dict[frozenset[str], float]


def encoded(corpus: Corpus) -> Crowd:
    return encode(corpus, corpus.tagset())


def named(corpus: Corpus, groups: Sequence[str | None] = (), *, among_rules: bool = False) -> Named:
    """What was found, by the names of both."""
    crowd = encoded(corpus)
    found = shared_mistakes(crowd, groups, among_rules=among_rules)
    return {frozenset((crowd.annotators[k], crowd.annotators[n])): share for k, n, share in found.pairs()}


def people(seed: int, *, how_many: int = 6, documents: int = 250, per_document: int | None = None) -> Corpus:
    """Annotators of very different quality, who err independently."""
    rng = np.random.default_rng(seed)
    kinds = {
        f"a{k}": Behaviour(
            miss=rng.uniform(0.02, 0.5), confuse=rng.uniform(0, 0.3), start_late=rng.uniform(0, 0.3),
            end_early=rng.uniform(0, 0.3), invent=rng.uniform(0, 0.02),
        )
        for k in range(how_many)
    }  # fmt: skip
    return crowd(crowds.sentences(documents, seed=seed), kinds, per_document=per_document, seed=seed)


def pairs_of(name: str, times: int) -> set[frozenset[str]]:
    """Every pair of somebody and their copies."""
    names = [name, *(f"{name}+{n + 1}" for n in range(times))]
    return {frozenset(pair) for pair in combinations(names, 2)}


def worth(corpus: Corpus, name: str) -> float:
    """How many votes somebody and their copies have together in a document, on average."""
    crowd = encoded(corpus)
    document, who = seen_pairs(crowd)
    weight = shared_mistakes(crowd).weights(document, who)
    mine = [crowd.annotators[k].split("+")[0] == name for k in who.tolist()]
    return float(weight[mine].sum()) / len(set(document[mine].tolist()))


@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.IO])
@pytest.mark.parametrize("seed", range(4))
def test_what_two_have_in_common_by_loops(scheme: Scheme, seed: int) -> None:
    """|both| / √(|one|·|other|) over the documents in which both looked, type by type, and over all types."""
    rng = np.random.default_rng(seed)
    corpus = random_corpus(rng, tagset(scheme, 2), n_documents=25, longest=4, n_annotators=5, missing=0.1 * seed)
    crowd = encoded(corpus)
    names, types, least = corpus.annotators, crowd.tagset.types, 3
    for kinds in (range(len(types)), [None]):
        found = in_common(crowd, kinds, least)
        expected = {}
        for kind in kinds:
            for k, n in combinations(range(len(names)), 2):
                one, other = set[tuple[object, ...]](), set[tuple[object, ...]]()
                for d, document in enumerate(corpus):
                    said = [document.annotations.get(names[who], ()) for who in (k, n)]
                    if all(set(tags) - {None} for tags in said):
                        for marked, tags in zip((one, other), said, strict=True):
                            spans = find_spans(certain(tags))
                            marked |= {(d, *s) for s in spans if kind is None or s.label == types[kind]}
                mean = sqrt(len(one) * len(other))
                if mean >= least:
                    expected[k, n, kind or 0] = (len(one & other) / mean, mean)
        keys = list(zip(found.one.tolist(), found.other.tolist(), found.kind.tolist(), strict=True))
        assert len(keys) == len(set(keys))
        assert set(keys) == set(expected)
        assert len(keys) > 5
        values = [expected[key] for key in keys]
        np.testing.assert_allclose(np.stack([found.cosine, found.spans], axis=1), values, rtol=1e-12)


@pytest.mark.parametrize("most", [None, 40], ids=["all documents", "every so many documents"])
def test_tokens_in_common_by_loops(most: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cosine of sets of marked tokens, beyond √(p·q) where the two mark shares p and q of what they saw."""
    if most is not None:
        monkeypatch.setattr(alike, "_MOST_TOKENS", most)
    rng = np.random.default_rng(1)
    corpus = random_corpus(rng, tagset(Scheme.BIO, 2), n_documents=120, longest=6, n_annotators=4, missing=0.2)
    found = alike.tokens_in_common(encoded(corpus))
    marked: dict[str, set[tuple[int, int]]] = {name: set() for name in corpus.annotators}
    saw: dict[str, set[int]] = {name: set() for name in corpus.annotators}
    for d, document in enumerate(corpus):
        for name, tags in document.annotations.items():
            if set(tags) - {None}:
                saw[name].add(d)
                marked[name] |= {(d, t) for span in find_spans(certain(tags)) for t in range(span.start, span.end)}
    every = 1 if most is None else sum(map(len, marked.values())) // most + 1
    assert (every > 1) is (most is not None)
    marked = {name: {(d, t) for d, t in places if d % every == 0} for name, places in marked.items()}
    share = {
        name: len(places) / sum(len(corpus[d].tokens) for d in saw[name] if d % every == 0)
        for name, places in marked.items()
    }
    expected = {}
    for (k, one), (n, other) in combinations(enumerate(corpus.annotators), 2):
        mine, theirs = ({place for place in marked[name] if place[0] in saw[one] & saw[other]} for name in (one, other))
        mean = sqrt(len(mine) * len(theirs))
        if mean >= alike.ENOUGH:
            chance = sqrt(share[one] * share[other])
            expected[k, n] = max((len(mine & theirs) / mean - chance) / (1 - chance), 0.0)
    pairs = zip(found.one.tolist(), found.other.tolist(), strict=True)
    assert dict(zip(pairs, found.cosine.tolist(), strict=True)) == pytest.approx(expected)
    assert (len(expected) > 1) is (most is None)


CROWD, TYPES, GROUP, ALIKE = 8, 2, (1, 4, 6), (0, 7)
NOBODY_TOLD = np.full(CROWD, -1)
TOLD = np.where(np.isin(np.arange(CROWD), ALIKE), 3, -1)


def pairs_around_a_group(seed: int) -> alike.Pairs:
    """Some of all pairs, of some types: a group whose members agree, and two others who agree most, on most spans."""
    rng = np.random.default_rng(seed)
    rows = []
    for k, n in combinations(range(CROWD), 2):
        low, high = (0.8, 1.0) if (k, n) == ALIKE else (0.5, 0.9) if {k, n} <= set(GROUP) else (0.2, 0.8)
        spans = (240, 720) if (k, n) == ALIKE else (30, 90)
        rows += [
            (k, n, t, rng.uniform(low, high), float(rng.integers(*spans))) for t in range(TYPES) if rng.random() < 0.8
        ]
    return alike.Pairs(*map(np.array, zip(*rows, strict=True)))


def contradicted_by_loops(pairs: alike.Pairs, told: NDArray[np.int64]) -> bool:
    """c_k·c_l / w is what outsiders would agree by, were the group right; those in one told group are one outsider."""
    rows = [(int(k), int(n), int(t), float(c), float(s)) for k, n, t, c, s in zip(*pairs, strict=True)]
    rows = [row for row in rows if told[row[0]] < 0 or told[row[0]] != told[row[1]]]
    members = set(GROUP)

    def mean(chosen: list[tuple[int, int, int, float, float]]) -> float | None:
        return sum(c * s for *_, c, s in chosen) / sum(s for *_, s in chosen) if chosen else None

    of_all, by_weight, spans, weights = 0.0, 0.0, 0.0, 0.0
    for k, n, t, cosine, s in rows:
        if k in members or n in members:
            continue
        w = mean([row for row in rows if row[2] == t and {row[0], row[1]} <= members])
        mine, theirs = (
            mean([row for row in rows if row[2] == t and outsider in row[:2] and {*row[:2]} - {outsider} <= members])
            for outsider in (k, n)
        )
        if w is None or mine is None or theirs is None:
            continue
        implied = mine * theirs / w
        for outsider in (k, n):
            s /= 1 if told[outsider] < 0 else list(told).count(told[outsider])
        of_all, spans = of_all + s * (cosine - implied), spans + s
        weight = s * max(cosine, implied)
        by_weight, weights = by_weight + weight * (cosine - implied), weights + weight
    return of_all > 0.05 * spans and by_weight > 0.15 * weights


@pytest.mark.parametrize("seed", range(40))
def test_what_outsiders_say_of_a_group_by_loops(seed: int) -> None:
    pairs = pairs_around_a_group(seed)
    for told in (TOLD, NOBODY_TOLD):
        found = correlation._Outsiders(pairs, CROWD).contradict(GROUP, told)
        assert found is contradicted_by_loops(pairs, told)


def test_outsiders_of_these_pairs_say_either_and_who_is_told_matters() -> None:
    """Otherwise a comparison with loops would hardly tell anything."""
    every = [pairs_around_a_group(seed) for seed in range(40)]
    told, nobody = ([contradicted_by_loops(pairs, of) for pairs in every] for of in (TOLD, NOBODY_TOLD))
    assert 10 <= sum(told) <= 30
    assert sum(one is not other for one, other in zip(told, nobody, strict=True)) >= 10


@pytest.mark.parametrize("missing", [set(), {(0, 3)}], ids=["six pairs", "five pairs"])
def test_copies_in_a_group_are_looked_for_where_enough_pairs_are(missing: set[tuple[int, int]]) -> None:
    """Four who may merely be right, of whom two are copies: five pairs of them can always be explained."""
    K, members = 8, range(4)
    rows = [
        (k, n, 0, 0.97 if n == 1 else 0.7 if n in members else 0.5 if k in members else 0.3, 400.0)
        for k, n in combinations(range(K), 2)
        if (k, n) not in missing
    ]
    pairs = alike.Pairs(*map(np.array, zip(*rows, strict=True)))
    surely = np.where(pairs.other < len(members), 0.5, 0.0)
    found = correlation._Beyond(pairs.one * K + pairs.other, surely, surely)
    held = correlation._held_against(pairs, found, np.full((K, 1), 0.999), lambda: pairs)
    assert [row[:2] for row, rho in zip(rows, held.tolist(), strict=True) if rho] == ([] if missing else [(0, 1)])


@pytest.mark.parametrize("seed", range(20))
def test_who_stands_apart_by_loops(seed: int) -> None:
    """At some level a group hangs together of whom nobody is as close to anybody outside, where two are at least."""
    rng = np.random.default_rng(seed)
    K = 9
    close = rng.permutation(K)[: int(rng.integers(2, 5))].tolist()
    rows = [
        (k, n, 0, rng.uniform(0.8, 0.95) if {k, n} <= set(close) else rng.uniform(0.1, 0.85 - 0.02 * seed), 400.0)
        for k, n in combinations(range(K), 2)
        if rng.random() < 0.9
    ]
    pairs = alike.Pairs(*map(np.array, zip(*rows, strict=True)))
    cosine = {frozenset(row[:2]): row[3] for row in rows}
    apart: dict[int, int] = {}
    for level in np.arange(0.5, 1.0, 0.05):
        graph = np.zeros((K, K))
        for pair, value in cosine.items():
            graph[min(pair), max(pair)] = value >= level
        _, label = connected_components(csr_array(graph), directed=False)
        for number in set(label.tolist()):
            group = [k for k in range(K) if label[k] == number]
            if len(group) < 2 or any(k in apart for k in group):
                continue
            stands, outside = True, set()
            for k in group:
                own = [cosine[frozenset((k, n))] for n in group if n != k and frozenset((k, n)) in cosine]
                usual = sum(own) / len(own)
                for n in set(range(K)) - set(group):
                    if frozenset((k, n)) not in cosine:
                        continue
                    value = cosine[frozenset((k, n))]
                    outside.add(n)
                    error = sqrt(max(value * (1 - value), 0.01) / 400 + max(usual * (1 - usual), 0.01) / 400 / len(own))
                    stands &= usual - value > 3 * error
            if stands and len(outside) > 1:
                apart |= dict.fromkeys(group, group[0])
    expected = [row[0] in apart and apart[row[0]] == apart.get(row[1], -1) for row in rows]
    assert correlation._stand_apart(pairs, K).tolist() == expected
    assert any(expected) or seed < 10


def random_sharing(rng: np.random.Generator, K: int) -> Sharing:
    return Sharing.of([(k, n, float(rng.uniform(0.01, 1))) for k, n in combinations(range(K), 2) if rng.random() < 0.5])


@pytest.mark.parametrize("seed", range(5))
def test_weights_by_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K = 6
    sharing = random_sharing(rng, K)
    seen = [(d, k) for d in range(20) for k in range(K) if rng.random() < 0.6]
    document, who = np.array(seen).T
    common = np.zeros((K, K))
    for k, n, share in sharing.pairs():
        common[k, n] = common[n, k] = share
    expected = [1 / (1 + sum(common[k, n] for e, n in seen if e == d and n != k)) for d, k in seen]
    np.testing.assert_allclose(sharing.weights(document, who), expected, rtol=1e-12)
    np.testing.assert_array_equal(Sharing.of().weights(document, who), np.ones(len(who)))
    assert len(sharing.weights(document[:0], who[:0])) == 0


@pytest.mark.parametrize("soft", [False, True])
def test_weighed_labels_by_loops(soft: bool) -> None:
    """Every label of an annotator in a document has the weight that they have there, times its own."""
    rng = np.random.default_rng(3)
    corpus = random_corpus(rng, tagset(Scheme.BIO), n_documents=15, n_annotators=4, missing=0.3)
    if soft:
        first = corpus[0]
        rows = tuple({"O": 0.25, "B-T0": 0.75} for _ in first.tokens)
        corpus = Corpus([replace(first, annotations={**first.annotations, "a0": rows}), *corpus.documents[1:]])
    crowd, sharing = encoded(corpus), random_sharing(rng, 4)
    weighed = sharing.weighed(crowd)
    common = {frozenset((k, n)): share for k, n, share in sharing.pairs()}
    own = np.ones(len(crowd.event_cell)) if crowd.event_weight is None else crowd.event_weight
    assert (crowd.event_weight is not None) is soft
    assert weighed.event_weight is not None
    for d, document in enumerate(corpus):
        looked = [
            k
            for k, name in enumerate(corpus.annotators)
            if any(tag is not None for tag in document.annotations.get(name, ()))
        ]
        tokens = slice(crowd.doc_start[d], crowd.doc_start[d + 1] + 1)
        for event in range(crowd.event_start[tokens][0], crowd.event_start[tokens][-1]):
            k = int(crowd.cells.annotator[crowd.event_cell[event]])
            shared = sum(common.get(frozenset((k, n)), 0.0) for n in looked if n != k)
            assert weighed.event_weight[event] == pytest.approx(own[event] / (1 + shared), rel=1e-12)
    assert Sharing.of().weighed(crowd) is crowd


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.5, 0.8, 1.0])
def test_the_share_of_two(rho: float) -> None:
    """Odds of ρ² to (1 − ρ)²: one half of those who are half alike, all of those who always are."""
    share = correlation._share(rho)
    assert share * (1 - rho) ** 2 == pytest.approx((1 - share) * rho**2, rel=1e-12, abs=1e-12)
    assert (share > rho) is (0.5 < rho < 1)


@pytest.mark.parametrize(("how_many", "per_document"), [(4, None), (6, None), (8, 4), (12, None)])
@pytest.mark.parametrize("seed", range(5))
def test_who_errs_independently_shares_nothing(how_many: int, per_document: int | None, seed: int) -> None:
    assert named(people(seed, how_many=how_many, per_document=per_document)) == {}


@pytest.mark.parametrize("make", [crowds.one_expert, crowds.vague_names, crowds.disjoint_batches, crowds.rules])
def test_nor_do_those_of_other_crowds(make: Callable[[int], Corpus]) -> None:
    assert named(make(300)) == {}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["a0", "a3"])
def test_noisy_copies_are_found_and_nobody_else(name: str, seed: int) -> None:
    corpus = with_copies(people(seed), name, 5, jitter=0.1, seed=seed)
    found = named(corpus)
    assert set(found) == pairs_of(name, 5)
    assert min(found.values()) > 0.4
    assert worth(corpus, name) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["ann", "bob", "cem"])
def test_copies_are_found_where_they_are_the_majority(name: str) -> None:
    """Six of eight agree, and are not taken for those who are right: the other two agree more than that explains."""
    corpus = with_copies(crowds.careful_three(80), name, 5, jitter=0.1)
    assert set(named(corpus)) == pairs_of(name, 5)
    assert worth(corpus, name) == pytest.approx(1.0)
    assert worth(corpus, next(other for other in ("ann", "bob", "cem") if other != name)) == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_groups_are_the_components_of_a_graph(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K = 40
    pairs = {tuple(sorted(rng.choice(K, 2, replace=False).tolist())) for _ in range(25)}
    sharing = Sharing.of([(k, n, 0.5) for k, n in sorted(pairs)])
    one, other = np.array(sorted(pairs)).T
    linked = csr_array((np.ones(len(one)), (one, other)), shape=(K, K))
    number = connected_components(linked, directed=False)[1]
    components = [np.flatnonzero(number == n).tolist() for n in dict.fromkeys(number.tolist())]
    assert sharing.groups(K) == [members for members in components if len(members) > 1]
    chain = Sharing.of([(k, k + 1, 0.5) for k in range(K - 1)])
    assert chain.groups(K) == [list(range(K))]
    assert Sharing.of().groups(K) == []


def test_weights_in_pieces_are_those_of_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    document, who = (column.ravel() for column in np.meshgrid(np.arange(50), np.arange(6), indexing="ij"))
    seen = rng.random(len(who)) < 0.6
    sharing = Sharing.of([(0, 1, 0.7), (1, 2, 0.4), (4, 5, 1.0)])
    at_once = sharing.weights(document[seen], who[seen])
    monkeypatch.setattr("quorate.crowd.sharing._PARTNERS_AT_ONCE", 7)
    np.testing.assert_array_equal(sharing.weights(document[seen], who[seen]), at_once)


def test_copies_of_two_annotators_are_two_groups() -> None:
    corpus = with_copies(with_copies(people(1), "a0", 2), "a1", 2, seed=1)
    assert set(named(corpus)) == pairs_of("a0", 2) | pairs_of("a1", 2)


def test_copies_are_found_where_annotators_see_some_documents() -> None:
    corpus = with_copies(people(2, how_many=8, documents=500, per_document=4), "a0", 3, jitter=0.1)
    assert set(named(corpus)) == pairs_of("a0", 3)


@pytest.mark.parametrize("seed", range(3))
def test_the_more_a_copy_is_spoiled_the_less_it_shares(seed: int) -> None:
    made = people(seed)
    shares = []
    for jitter in (0.0, 0.05, 0.1, 0.3, 0.6):
        found = named(with_copies(made, "a0", 3, jitter=jitter, seed=seed))
        assert set(found) <= pairs_of("a0", 3)
        shares.append(sum(found.values()) / len(pairs_of("a0", 3)))
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.99
    assert shares[1] > 0.85
    assert 0.1 < shares[3] < 0.6
    assert shares[4] < 0.1


@pytest.mark.parametrize("how_many", [200, 500])
def test_the_few_who_read_among_spammers_share_no_mistakes(how_many: int) -> None:
    """They agree far more than anybody else, as they are right: spammers do not know better together."""
    assert named(crowds.spammer_majority(how_many)) == {}


@pytest.mark.parametrize("seed", range(3))
def test_copies_of_a_spammer_are_not_held_against_the_few_who_read(seed: int) -> None:
    """That the copies agree is no sign that those who read are wrong together."""
    assert set(named(with_copies(crowds.spammer_majority(), "spam4", 5, seed=seed))) == pairs_of("spam4", 5)


@pytest.mark.parametrize("seed", range(3))
def test_copies_of_one_of_the_few_who_read_are_found(seed: int) -> None:
    """Beside spammers all who read are alike; among themselves, copies are more alike than the others."""
    assert set(named(with_copies(crowds.spammer_majority(), "good2", 5, seed=seed))) == pairs_of("good2", 5)


@pytest.mark.parametrize("name", ["model1", "model2"])
def test_copies_are_found_in_a_jury_where_hardly_any_two_mark_the_same_span(name: str) -> None:
    """That others agree on where something is, if not on its bounds and type, tells that the copies are not right."""
    corpus = with_copies(crowds.jury(), name, 5)
    assert set(named(corpus)) == pairs_of(name, 5)
    assert named(crowds.jury()) == {}


@pytest.mark.parametrize("reach", [1.0, 2.0])
@pytest.mark.parametrize("seed", range(2))
def test_experts_are_not_held_to_copy_where_the_others_have_vague_bounds(seed: int, reach: float) -> None:
    """Those who are vague agree beyond the truth, as there are few bounds beside it; yet the experts are right."""
    assert named(crowds.experts_among_vague(reach=reach, seed=seed)) == {}


def test_three_who_start_late_do_not_show_that_those_who_are_right_copy(sample: Corpus) -> None:
    """Beside spammers and others they are few, and what they agree on is their habit."""
    assert max(named(sample).values(), default=0.0) < 0.1


@pytest.mark.parametrize("seed", range(4))
def test_two_experts_stand_apart_from_the_others_and_share_next_to_nothing(seed: int) -> None:
    weak = {f"weak{k}": Behaviour(miss=0.3 + 0.05 * k, confuse=0.1, start_late=0.2) for k in range(4)}
    experts = dict.fromkeys(("ann", "bob"), Behaviour(miss=0.02, confuse=0.01))
    found = named(crowd(crowds.sentences(300, seed=seed), {**experts, **weak}, seed=seed))
    assert max(found.values(), default=0.0) < 0.1


def test_what_is_sure_to_be_shared_is_not_reckoned_small() -> None:
    """Chance is taken off before copies are found, not once they are: six of them are worth little more than one."""
    corpus = with_copies(crowds.copies(), "bob", 5)
    assert worth(corpus, "bob") < 1.5


def test_variants_of_a_rule_are_found_among_rules() -> None:
    corpus = with_copies(crowds.rules(400), "rule3", 2, jitter=0.1)
    assert set(named(corpus, among_rules=True)) == pairs_of("rule3", 2)


def test_copies_of_a_rule_are_found_where_others_know_the_same_or_something_else() -> None:
    """Six who agree, and whom the others bear out where they speak, look as if they knew everything."""
    texts = crowds.sentences(600, seed=3)
    odd, even = (only_words(texts, rest) for rest in (1, 0))
    same = {f"same{n}": Behaviour(miss=0.9) for n in range(12)}
    made = crowd(odd, {"best": Behaviour(miss=0.02), **same}, seed=3)
    more = crowd(even, {f"else{n}": Behaviour(miss=0.9) for n in range(3)}, seed=4)
    both = [
        replace(one, annotations={**one.annotations, **other.annotations})
        for one, other in zip(made, more, strict=True)
    ]
    with_five = with_copies(Corpus(both), "best", 5, jitter=0.1)
    assert set(named(with_five, among_rules=True)) == pairs_of("best", 5)


def only_words(texts: Corpus, rest: int) -> Corpus:
    """The same texts, in which only those names count whose first word has a number with this rest by 2."""
    documents = []
    for document in texts:
        tags: list[Tag] = ["O"] * len(document.tokens)
        for span in find_spans(certain(document.gold or ())):
            if int(document.tokens[span.start][3:]) % 2 == rest:
                tags[span.start : span.end] = certain(document.gold or ())[span.start : span.end]
        documents.append(replace(document, gold=tuple(tags)))
    return Corpus(documents)


def test_nobody_knows_more_than_the_share_of_different_spans_that_they_mark() -> None:
    """Where they looked: two of the rules ran on every third document alone."""
    made = Corpus(
        replace(one, annotations={who: tags for who, tags in one.annotations.items() if n % 3 == 0 or who > "rule1"})
        for n, one in enumerate(crowds.rules(80))
    )
    crowd = encoded(made)
    for k, name in enumerate(crowd.annotators):
        for t, type_ in enumerate(crowd.tagset.types):
            mine, everybodys = set(), set()
            for document in (one for one in made if name in one.annotations):
                for who, tags in document.annotations.items():
                    found = {(document.id, span) for span in find_spans(certain(tags)) if span.label == type_}
                    everybodys |= found
                    mine |= found if who == name else set()
            share = len(mine) / max(len(everybodys), 1)
            assert correlation._most_known(crowd)[k, t] == pytest.approx(min(max(share**0.5, 0.01), 0.999))


def test_declared_groups_share_what_they_agree_on() -> None:
    """Of those whom the user declared, ρ is the cosine with one span in common beforehand; others stay as they are."""
    corpus = people(3, how_many=5, documents=60)
    names, crowd = corpus.annotators, encoded(corpus)
    groups = ["llm", None, "llm", "other", "other"]
    found = named(corpus, groups)
    assert set(found) == {frozenset(("a0", "a2")), frozenset(("a3", "a4"))}
    for k, n in ((0, 2), (3, 4)):
        one, other = (
            {(d, *span) for d, document in enumerate(corpus) for span in find_spans(certain(document.annotations[who]))}
            for who in (names[k], names[n])
        )
        mean = sqrt(len(one) * len(other))
        rho = (len(one & other) + 1) / (mean + 1)
        expected = rho**2 / (rho**2 + (1 - rho) ** 2)
        assert found[frozenset((names[k], names[n]))] == pytest.approx(expected, rel=1e-12)
    assert shared_mistakes(crowd, [None] * 5).pairs() == shared_mistakes(crowd).pairs()


def test_declared_samples_are_taken_at_their_word_where_they_marked_nothing() -> None:
    corpus = people(0, how_many=3, documents=20)
    silent = Corpus(
        [
            replace(one, annotations={**one.annotations, **{name: ("O",) * len(one.tokens) for name in ("a1", "a2")}})
            for one in corpus
        ]
    )
    assert named(silent, [None, "llm", "llm"]) == {frozenset(("a1", "a2")): 1.0}


def test_a_declared_group_does_not_hide_copies_of_others() -> None:
    corpus = with_copies(people(1), "a0", 3, jitter=0.1)
    groups = ["llm" if name in ("a1", "a2") else None for name in corpus.annotators]
    assert set(named(corpus, groups)) == pairs_of("a0", 3) | {frozenset(("a1", "a2"))}


def test_of_few_spans_or_annotators_nothing_is_told() -> None:
    few = with_copies(people(0, documents=15), "a0", 3, jitter=0.1)
    assert len(few) == 15
    assert named(few) == {}
    three = with_copies(people(0, how_many=1), "a0", 2, jitter=0.1)
    assert named(three) == {}


def test_plain_labels_have_none_but_what_was_declared() -> None:
    rng = np.random.default_rng(0)
    corpus = random_corpus(rng, tagset(Scheme.PLAIN, 2), n_documents=200, n_annotators=4, missing=0.0)
    copied = with_copies(corpus, "a0", 3, jitter=0.0)
    crowd = encode(copied, tagset(Scheme.PLAIN, 2))
    assert not shared_mistakes(crowd)
    declared = shared_mistakes(crowd, ["llm", "llm", *[None] * (len(crowd.annotators) - 2)])
    assert declared.pairs() == [(0, 1, 1.0)]


@pytest.mark.parametrize("seed", range(2))
def test_names_and_order_change_nothing(seed: int) -> None:
    corpus = with_copies(people(seed), "a2", 3, jitter=0.2)
    rng = np.random.default_rng(seed)
    new = dict(zip(corpus.annotators, map(str, rng.permutation(len(corpus.annotators))), strict=True))
    shuffled = Corpus(
        [
            replace(one, annotations={new[name]: tags for name, tags in one.annotations.items()})
            for one in (corpus[int(d)] for d in rng.permutation(len(corpus)))
        ]
    )
    found, again = named(corpus), named(shuffled)
    assert found
    renamed = {frozenset(new[name] for name in pair): share for pair, share in found.items()}
    assert again == pytest.approx(renamed, rel=1e-6)


def test_in_a_declared_group_only_those_who_marked_nothing_are_taken_at_the_users_word() -> None:
    marks, nothing = ("B-PER", "O"), ("O", "O")
    said = {"a": marks, "b": nothing, "c": nothing, "d": marks}
    corpus = Corpus([Document(str(n), ("Ada", "sang"), said) for n in range(50)])
    shares = {(k, n): share for k, n, share in shared_mistakes(encode(corpus, corpus.tagset()), ["g"] * 4).pairs()}
    assert (0, 1) not in shares
    assert shares[1, 2] == 1.0
    assert shares[0, 3] == 1.0


@pytest.mark.parametrize("name", ["vague0", "vague4"])
def test_copies_of_somebody_vague_are_not_held_against_experts(name: str) -> None:
    """Experts hardly mark a span just as the others do, so that by whole spans nobody bears them out either."""
    corpus = with_copies(crowds.experts_among_vague(), name, 5, jitter=0.1)
    encoded = encode(corpus, corpus.tagset())
    found = {encoded.annotators[k] for one, other, _ in shared_mistakes(encoded).pairs() for k in (one, other)}
    assert found == {each for each in encoded.annotators if each.startswith(name)}
