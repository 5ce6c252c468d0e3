"""Duplicates are one annotator: who is one, and what they say then, by loops over documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

import quorate
import simulated_crowds as crowds
from problems import certain, random_corpus, tagset
from quorate.corpus.records import Corpus, Document
from quorate.corpus.simulate import with_copies
from quorate.corpus.tags import Scheme, TagSet, find_spans
from quorate.crowd.algebra import token_of_events
from quorate.crowd.crowd import Crowd
from quorate.crowd.duplicates import Duplicates, duplicates, merge_duplicates
from quorate.crowd.encode import encode
from quorate.crowd.together import ENOUGH, groups_of

Event = tuple[int, str, int, int, float]


def encoded(corpus: Corpus) -> Crowd:
    return encode(corpus, corpus.tagset())


def labelled(document: Document, name: str) -> bool:
    return any(tag is not None for tag in document.annotations.get(name, ()))


def events(crowd: Crowd) -> list[Event]:
    """Token, annotator, own label before, label and weight of all that was said."""
    cell, cells = crowd.event_cell, crowd.cells
    weight = np.ones(len(cell)) if crowd.event_weight is None else crowd.event_weight
    names = [crowd.annotators[k] for k in cells.annotator[cell].tolist()]
    columns = (token_of_events(crowd), names, cells.previous[cell], cells.label[cell], weight)
    return sorted(zip(*(list(column) for column in columns), strict=True))


def once(corpus: Corpus, members: Sequence[str]) -> Corpus:
    """The corpus in which the first of the members has the labels of the first of them who labelled a document."""
    documents = []
    for document in corpus:
        here = [name for name in members if labelled(document, name)]
        said = {name: found for name, found in document.annotations.items() if name not in members}
        if here:
            said[members[0]] = document.annotations[here[0]]
        documents.append(replace(document, annotations=said))
    return Corpus(documents)


def groups_by_loops(corpus: Corpus) -> set[tuple[str, ...]]:
    """Who marked the same spans wherever both looked, if that are enough of them, linked with one another."""
    names, linked = corpus.annotators, set[frozenset[str]]()
    for one, other in combinations(names, 2):
        mine, theirs = set[object](), set[object]()
        for d, document in enumerate(corpus):
            if labelled(document, one) and labelled(document, other):
                mine |= {(d, span) for span in find_spans(certain(document.annotations[one]))}
                theirs |= {(d, span) for span in find_spans(certain(document.annotations[other]))}
        if mine == theirs and sqrt(len(mine) * len(theirs)) >= ENOUGH:
            linked.add(frozenset((one, other)))
    graph = csr_array([[float({a, b} in linked) for b in names] for a in names])
    group = connected_components(graph, directed=False)[1].tolist()
    members = [tuple(name for name, own in zip(names, group, strict=True) if own == n) for n in set(group)]
    return {each for each in members if len(each) > 1}


@pytest.mark.parametrize("seed", range(4))
def test_duplicates_are_those_who_marked_the_same_by_loops(seed: int) -> None:
    """Copies that saw a part each, near copies, copies of few spans, and somebody with two accounts."""
    rng = np.random.default_rng(seed)
    made = with_copies(with_copies(crowds.careful_three(60), "ann", 2, jitter=0.0), "cem", 1, jitter=0.02, seed=seed)
    corpus = Corpus(
        replace(
            one,
            annotations={
                who: tags for who, tags in one.annotations.items() if not who.startswith("ann+") or rng.random() < 0.7
            }
            | ({"bob2": one.annotations["bob"]} if n % 7 == 0 and "bob" in one.annotations else {}),
        )
        for n, one in enumerate(made)
    )
    crowd = encoded(corpus)
    found = {tuple(crowd.annotators[k] for k in group) for group in duplicates(crowd).groups}
    assert found == groups_by_loops(corpus)
    assert ("ann", "ann+1", "ann+2") in found
    assert merge_duplicates(crowd).notes == (duplicates(crowd),)


def test_where_nobody_is_a_duplicate_the_crowd_is_as_it_was() -> None:
    for corpus in (crowds.careful_three(40), Corpus([Document("1", ("a",), {"x": ("B-P",), "y": ("B-P",)})])):
        crowd = encoded(corpus)
        assert merge_duplicates(crowd) is crowd


@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.IO, Scheme.BIOES])
@pytest.mark.parametrize("seed", range(4))
def test_of_a_group_only_the_labels_of_the_first_who_is_there_are_left(scheme: Scheme, seed: int) -> None:
    """Whatever the others said."""
    rng, tags = np.random.default_rng(seed), tagset(scheme, 2)
    corpus = random_corpus(rng, tags, n_documents=40, longest=4, n_annotators=6, missing=0.3)
    members = sorted(rng.choice(6, 2 + seed % 3, replace=False).tolist())
    crowd = encode(corpus, tags)
    merged = Duplicates((tuple(members),)).applied(crowd)
    expected = once(corpus, [f"a{k}" for k in members])
    assert events(merged) == events(encode(expected, tags, annotators=crowd.annotators, words=crowd.words))
    assert (np.diff(merged.cells.keys) > 0).all()
    assert events(Duplicates((tuple(members),)).applied(merged)) == events(merged)


def test_two_groups_are_merged_beside_each_other() -> None:
    tags = tagset(Scheme.BIO, 2)
    corpus = random_corpus(np.random.default_rng(0), tags, n_documents=40, n_annotators=7, missing=0.3)
    crowd = encode(corpus, tags)
    both = Duplicates(((0, 2, 3), (1, 5, 6))).applied(crowd)
    assert events(both) == events(Duplicates(((1, 5, 6),)).applied(Duplicates(((0, 2, 3),)).applied(crowd)))
    assert {name for _, name, *_ in events(both)} == {"a0", "a1", "a4"}


def test_soft_labels_stay_soft() -> None:
    soft = ({"B-T0": 0.7, "O": 0.3},)
    corpus = Corpus(
        [Document("1", ("w",), {"a": soft, "b": soft, "d": ("O",)}), Document("2", ("w",), {"b": soft, "d": ("O",)})]
    )
    crowd = encode(corpus, tagset(Scheme.BIO, 1))
    merged = Duplicates(((0, 1),)).applied(crowd)
    expected = encode(once(corpus, ["a", "b"]), crowd.tagset, annotators=crowd.annotators, words=crowd.words)
    assert events(merged) == events(expected)


def test_plain_labels_have_no_duplicates() -> None:
    same = ("x", "y", "x")
    corpus = Corpus([Document(str(n), ("u", "v", "w"), dict.fromkeys("abc", same)) for n in range(100)])
    assert duplicates(encode(corpus, TagSet(Scheme.PLAIN, ("x", "y")))).groups == ()


def test_the_others_of_a_group_depend_on_whoever_is_held_out() -> None:
    note = Duplicates(((0, 2, 4), (1, 5)))
    document, other = note.dependent(np.array([7, 8, 9]), np.array([2, 3, 5]))
    assert sorted(zip(document.tolist(), other.tolist(), strict=True)) == [(7, 0), (7, 4), (9, 1)]
    assert Duplicates.of_plain(note.plain()) == note


@pytest.mark.parametrize("seed", range(5))
def test_groups_are_the_components_of_a_graph(seed: int) -> None:
    rng, K = np.random.default_rng(seed), 40
    one, other = np.array(sorted({tuple(sorted(rng.choice(K, 2, replace=False).tolist())) for _ in range(25)})).T
    number = connected_components(csr_array((np.ones(len(one)), (one, other)), shape=(K, K)), directed=False)[1]
    components = [np.flatnonzero(number == n).tolist() for n in dict.fromkeys(number.tolist())]
    assert groups_of(one, other, K) == [members for members in components if len(members) > 1]


def test_duplicates_have_the_labels_and_confusions_of_one_and_change_nothing() -> None:
    corpus = crowds.one_expert(120)
    alone, copied = (quorate.aggregate(each) for each in (corpus, with_copies(corpus, "expert", 3, jitter=0.0)))
    assert copied.tags == alone.tags
    np.testing.assert_allclose(copied.confidence, alone.confidence, rtol=1e-9)
    assert copied.sources.duplicates == (("expert", "expert+1", "expert+2", "expert+3"),)
    assert copied.annotators["expert+2"].accuracy == pytest.approx(alone.annotators["expert"].accuracy, rel=1e-9)
    first, last = (copied.annotators[name].matrix for name in ("expert", "expert+3"))
    np.testing.assert_allclose(last, first, atol=0.06)  # what was known and what guessed is split anew
