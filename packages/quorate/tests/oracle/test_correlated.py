"""Correlated errors: agreement and weights by loops; independent sources share nothing, and copies much."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import sqrt

import numpy as np
import pytest

import simulated_crowds as crowds
from problems import certain, random_corpus, tagset
from quorate.corpus.profiles import Profile
from quorate.corpus.records import Corpus, Document
from quorate.corpus.simulate import with_copies
from quorate.corpus.tags import Scheme, find_spans
from quorate.crowd import correlated as module
from quorate.crowd.abstaining import account_for_abstaining
from quorate.crowd.changes import with_notes
from quorate.crowd.correlated import MUCH, Correlated, correlated, downweight_correlated
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode
from quorate.crowd.together import in_common

Named = dict[frozenset[str], float]


def encoded(corpus: Corpus) -> Crowd:
    return replace(encode(corpus, corpus.tagset()), profiles=corpus.profiles)


def named(crowd: Crowd) -> Named:
    """What was found, by the names of both."""
    pairs = correlated(crowd).pairs()
    return {frozenset((crowd.annotators[k], crowd.annotators[n])): share for k, n, share in pairs}


def grouped(corpus: Corpus, groups: dict[str, str]) -> Corpus:
    return Corpus(corpus, profiles={name: Profile.of(group=group) for name, group in groups.items()})


def random_shares(rng: np.random.Generator, K: int) -> Correlated:
    pairs = [(k, n, float(rng.uniform(0.01, 1))) for k, n in combinations(range(K), 2) if rng.random() < 0.5]
    return Correlated.of(pairs)


@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.IO])
@pytest.mark.parametrize("seed", range(3))
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
        assert len(keys) == len(set(keys)) > 5
        assert set(keys) == set(expected)
        values = [expected[key] for key in keys]
        np.testing.assert_allclose(np.stack([found.cosine, found.spans], axis=1), values, rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_weights_by_loops(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, K = np.random.default_rng(seed), 6
    note = random_shares(rng, K)
    seen = [(d, k) for d in range(20) for k in range(K) if rng.random() < 0.6]
    document, who = np.array(seen).T
    common = np.zeros((K, K))
    for k, n, share in note.pairs():
        common[k, n] = common[n, k] = share
    expected = [1 / (1 + sum(common[k, n] for e, n in seen if e == d and n != k)) for d, k in seen]
    np.testing.assert_allclose(note.weights(document, who), expected, rtol=1e-12)
    np.testing.assert_array_equal(Correlated.of().weights(document, who), np.ones(len(who)))
    assert len(note.weights(document[:0], who[:0])) == 0
    monkeypatch.setattr(module, "_PARTNERS_AT_ONCE", 7)
    np.testing.assert_allclose(note.weights(document, who), expected, rtol=1e-12)
    there, partner = note.dependent(document, who)
    depend = sorted((d, n) for d, k in seen for n in range(K) if common[k, n] >= MUCH)
    assert sorted(zip(there.tolist(), partner.tolist(), strict=True)) == depend
    assert Correlated.of_plain(note.plain()).pairs() == note.pairs()


@pytest.mark.parametrize("soft", [False, True])
def test_weighed_labels_by_loops(soft: bool) -> None:
    """Every label of an annotator in a document has the weight that they have there, times its own."""
    rng = np.random.default_rng(3)
    corpus = random_corpus(rng, tagset(Scheme.BIO), n_documents=15, n_annotators=4, missing=0.3)
    if soft:
        first = corpus[0]
        rows = tuple({"O": 0.25, "B-T0": 0.75} for _ in first.tokens)
        corpus = Corpus([replace(first, annotations={**first.annotations, "a0": rows}), *corpus.documents[1:]])
    crowd, note = encoded(corpus), random_shares(rng, 4)
    weighed = note.applied(crowd)
    common = {frozenset((k, n)): share for k, n, share in note.pairs()}
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
    once_more = with_notes(crowd, [note])
    np.testing.assert_array_equal(once_more.event_weight, weighed.event_weight)
    assert once_more.as_given is crowd


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.5, 0.8, 1.0])
def test_the_share_of_two(rho: float) -> None:
    """Odds of ρ² to (1 − ρ)²: one half of those who are half alike, all of those who always are."""
    share = float(module._share(np.array(rho)))
    assert share * (1 - rho) ** 2 == pytest.approx((1 - share) * rho**2, rel=1e-12, abs=1e-12)
    assert (share > rho) is (0.5 < rho < 1)


@pytest.mark.parametrize("make", [crowds.one_expert, crowds.careful_three, crowds.disjoint_batches])
def test_people_are_taken_to_be_independent(make) -> None:  # type: ignore[no-untyped-def]
    crowd = encoded(with_copies(make(100), "ann" if make is crowds.careful_three else make(2).annotators[0], 3))
    assert downweight_correlated(crowd) is crowd


def test_variants_of_a_rule_share_much_and_other_rules_hardly_anything() -> None:
    rules = account_for_abstaining(encoded(crowds.rules(300)))
    assert rules.abstains
    assert max(named(rules).values(), default=0.0) < MUCH
    copied = account_for_abstaining(encoded(with_copies(crowds.rules(300), "rule3", 2, jitter=0.1)))
    found = {pair: share for pair, share in named(copied).items() if share >= MUCH}
    assert set(found) == {frozenset(pair) for pair in combinations(("rule3", "rule3+1", "rule3+2"), 2)}
    weighed = downweight_correlated(copied)
    assert weighed.event_weight is not None
    mine = copied.cells.annotator[copied.event_cell] == copied.annotators.index("rule3")
    assert weighed.event_weight[mine].mean() < 0.6
    assert weighed.event_weight[~mine].max() == 1.0


def test_nobody_is_more_reliable_than_the_share_of_different_spans_that_they_mark() -> None:
    """Where they looked: two of the rules ran on every third document alone."""
    made = Corpus(
        replace(one, annotations={who: tags for who, tags in one.annotations.items() if n % 3 == 0 or who > "rule1"})
        for n, one in enumerate(crowds.rules(60))
    )
    crowd = encoded(made)
    found = module._most_reliable(crowd)
    for k, name in enumerate(crowd.annotators):
        for t, type_ in enumerate(crowd.tagset.types):
            mine, everybodys = set(), set()
            for document in (one for one in made if name in one.annotations):
                for who, tags in document.annotations.items():
                    spans = {(document.id, span) for span in find_spans(certain(tags)) if span.label == type_}
                    everybodys |= spans
                    mine |= spans if who == name else set()
            share = len(mine) / max(len(everybodys), 1)
            assert found[k, t] == pytest.approx(min(max(share**0.5, 0.01), 0.999))


def test_declared_groups_share_what_they_agree_on() -> None:
    """Of those whom the user declared, ρ is the cosine with one span in common beforehand; others are independent."""
    corpus = Corpus(crowds.one_expert(60))
    groups = {"a0": "llm", "a2": "llm", "a3": "other", "a4": "other"}
    found = named(encoded(grouped(corpus, groups)))
    assert set(found) == {frozenset(("a0", "a2")), frozenset(("a3", "a4"))}
    for pair, share in found.items():
        one, other = (
            {(d, *span) for d, document in enumerate(corpus) for span in find_spans(certain(document.annotations[who]))}
            for who in sorted(pair)
        )
        rho = (len(one & other) + 1) / (sqrt(len(one) * len(other)) + 1)
        assert share == pytest.approx(rho**2 / (rho**2 + (1 - rho) ** 2), rel=1e-12)
    assert named(encoded(corpus)) == {}


def test_in_a_declared_group_only_those_who_marked_nothing_are_taken_at_the_users_word() -> None:
    marks, nothing = ("B-PER", "O"), ("O", "O")
    said = {"a": marks, "b": nothing, "c": nothing, "d": marks}
    corpus = Corpus([Document(str(n), ("Ada", "sang"), said) for n in range(50)])
    shares = named(encoded(grouped(corpus, dict.fromkeys("abcd", "g"))))
    assert frozenset("ab") not in shares
    assert shares[frozenset("bc")] == 1.0
    assert shares[frozenset("ad")] == 1.0


def test_plain_labels_share_what_was_declared() -> None:
    corpus = random_corpus(
        np.random.default_rng(0), tagset(Scheme.PLAIN, 2), n_documents=100, n_annotators=4, missing=0.0
    )
    crowd = encode(with_copies(corpus, "a0", 3, jitter=0.0), tagset(Scheme.PLAIN, 2))
    assert correlated(crowd).pairs() == []
    llm = Profile.of(group="llm")
    assert correlated(replace(crowd, profiles={"a0": llm, "a1": llm})).pairs() == [
        (crowd.annotators.index("a0"), crowd.annotators.index("a1"), 1.0)
    ]


def test_names_and_order_change_nothing() -> None:
    corpus = with_copies(crowds.rules(200), "rule2", 3, jitter=0.2)
    rng = np.random.default_rng(0)
    new = dict(zip(corpus.annotators, map(str, rng.permutation(len(corpus.annotators))), strict=True))
    shuffled = Corpus(
        [
            replace(one, annotations={new[name]: tags for name, tags in one.annotations.items()})
            for one in (corpus[int(d)] for d in rng.permutation(len(corpus)))
        ]
    )
    found, again = (named(account_for_abstaining(encoded(each))) for each in (corpus, shuffled))
    assert found
    renamed = {frozenset(new[name] for name in pair): share for pair, share in found.items()}
    assert again == pytest.approx(renamed, rel=1e-6)
