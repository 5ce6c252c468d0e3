"""What changes nothing that is given out: names, order, types, duplicates, and what nobody labelled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import quorate
import simulated_crowds as crowds
from by_name import bsc
from quorate import Corpus, Document, Result
from quorate.corpus.records import SoftTag, Tag
from quorate.corpus.simulate import with_copies
from quorate.crowd.encode import encode
from quorate.crowd.hold_out import folds
from quorate.crowd.lots import lots_of
from quorate.estimators.methods import estimator

CROWDS: dict[str, Callable[[], Corpus]] = {
    "a few documents": lambda: Corpus(list(quorate.sample())[:48]),
    "sparse": lambda: crowds.sparse(60, 20),
    "copies": lambda: crowds.copies(60),
    "rules": lambda: crowds.rules(80),
    "careful three": lambda: crowds.careful_three(30),
}
METHODS = ["auto", "bsc-seq", "mace"]
FEW = settings(
    max_examples=1,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    phases=[Phase.generate],  # a smaller seed is no smaller case
)
every_crowd = pytest.mark.parametrize("name", CROWDS)
every_method = pytest.mark.parametrize("method", METHODS)


@cache
def crowd(name: str) -> Corpus:
    return CROWDS[name]()


@cache
def consensus(name: str, method: str) -> Result:
    return estimator(method).fit(crowd(name)).result_


def disguised(corpus: Corpus, seed: int) -> tuple[Corpus, dict[str, str]]:
    """The same annotations with other names, in another order; and the old name of each."""
    rng = np.random.default_rng(seed)
    named = {name: f"w{number}" for name, number in zip(corpus.annotators, rng.permutation(10**6), strict=False)}
    documents = [
        replace(document, annotations={named[name]: document.annotations[name] for name in order})
        for document in (corpus[int(d)] for d in rng.permutation(len(corpus)))
        for order in [rng.permutation(list(document.annotations)).tolist()]
    ]
    return Corpus(documents), {new: old for old, new in named.items()}


def assert_the_same(first: Result, other: Result, tags: Callable[[str], str] = str) -> None:
    """Of every document of the ``first``, whatever else there is."""
    for one in first:
        same = other[one.document.id]
        assert [tags(tag) for tag in same.tags] == one.tags, one.document.id
        np.testing.assert_allclose(same.token_confidence, one.token_confidence, rtol=1e-5, atol=1e-9)
        assert same.confidence == pytest.approx(one.confidence, rel=1e-5, abs=1e-9)


@every_method
@every_crowd
@FEW
@given(seed=st.integers(0, 10_000))
def test_names_of_annotators_and_order_of_documents(name: str, method: str, seed: int) -> None:
    first, corpus = consensus(name, method), crowd(name)
    other, old_name = disguised(corpus, seed)
    result = estimator(method).fit(other).result_
    assert_the_same(first, result)
    if method == "auto":
        np.testing.assert_allclose(result.expected, first.expected, rtol=1e-5)
        for precision in (0.5, 0.8, 0.9, 0.95):
            accepted = [{r.corpus[d].id for d in r.accept(precision).documents} for r in (first, result)]
            assert accepted[0] == accepted[1]
    if name == "copies" and method == "auto":
        return  # whichever comes first stands for all
    for row in result.annotators:
        assert row.accuracy == pytest.approx(first.annotators[old_name[row.name]].accuracy, rel=1e-5)


def retyped(corpus: Corpus, new: dict[str, str]) -> Corpus:
    def tag(old: Tag | SoftTag) -> Tag | SoftTag:
        assert old is None or isinstance(old, str)
        return old if old in (None, "O") else f"{str(old)[:2]}{new[str(old)[2:]]}"

    return Corpus(
        replace(
            one,
            annotations={who: tuple(map(tag, tags)) for who, tags in one.annotations.items()},
            gold=None if one.gold is None else tuple(str(tag(each)) for each in one.gold),
        )
        for one in corpus
    )


@every_method
@every_crowd
@FEW
@given(seed=st.integers(0, 10_000))
def test_names_of_types(name: str, method: str, seed: int) -> None:
    corpus, rng = crowd(name), np.random.default_rng(seed)
    types = corpus.tagset().types
    new = dict(zip(types, (f"T{n}" for n in rng.permutation(1000)), strict=False))
    back = {each: old for old, each in new.items()}
    result = estimator(method).fit(retyped(corpus, new)).result_
    assert_the_same(consensus(name, method), result, lambda tag: tag if tag == "O" else f"{tag[:2]}{back[tag[2:]]}")


@every_crowd
def test_names_of_types_do_not_matter_to_a_span_vote(name: str) -> None:
    corpus = crowd(name)
    types = corpus.tagset().types
    new = dict(zip(types, reversed(types), strict=True))
    back = {each: old for old, each in new.items()}
    first, other = (quorate.aggregate(each, "span-vote") for each in (corpus, retyped(corpus, new)))
    assert_the_same(first, other, lambda tag: tag if tag == "O" else f"{tag[:2]}{back[tag[2:]]}")


@pytest.mark.parametrize("name", sorted(set(CROWDS) - {"copies"}))
@FEW
@given(seed=st.integers(0, 10_000))
def test_duplicates_of_an_annotator(name: str, seed: int) -> None:
    """By default; a method with ``adapt=False`` takes everybody for somebody else."""
    corpus, rng = crowd(name), np.random.default_rng(seed)
    spans = dict.fromkeys(corpus.annotators, 0)
    for document in corpus:
        for who, tags in document.annotations.items():
            spans[who] += sum(str(tag).startswith("B-") for tag in tags)
    known = [who for who, marks in spans.items() if marks >= 40]  # of fewer spans it cannot be told
    if not known:
        pytest.skip("nobody marked enough")
    copied = with_copies(corpus, str(rng.choice(known)), int(rng.integers(1, 4)), jitter=0.0)
    assert_the_same(consensus(name, "auto"), quorate.aggregate(copied))


@every_method
@pytest.mark.parametrize("name", ["a few documents", "sparse", "rules"])
@FEW
@given(seed=st.integers(0, 10_000))
def test_documents_that_nobody_labelled(name: str, method: str, seed: int) -> None:
    corpus, rng = crowd(name), np.random.default_rng(seed)
    tokens = [document.tokens for document in crowds.sentences(40, seed=seed)]
    more = [Document(f"nobody's {n}", each) for n, each in enumerate(tokens)]
    place = rng.permutation(len(corpus) + len(more))
    every = [*corpus, *more]
    result = estimator(method).fit(Corpus(every[int(n)] for n in place)).result_
    assert_the_same(consensus(name, method), result)


@every_method
@pytest.mark.parametrize("name", ["a few documents", "sparse", "rules"])
def test_annotators_whose_labels_are_all_null(name: str, method: str) -> None:
    corpus = crowd(name)
    more = Corpus(
        replace(
            one,
            annotations={
                **one.annotations,
                **{who: (None,) * len(one.tokens) for who in ("Aaron", "zoe") if who == "zoe" or n % 2},
            },
        )
        for n, one in enumerate(corpus)
    )
    assert_the_same(consensus(name, method), estimator(method).fit(more).result_)


@pytest.mark.parametrize("annotator", ["pool", "cm", "seq"])
def test_a_hundred_unlabelled_documents_change_nothing_of_sixty(annotator: str) -> None:
    documents = crowds.sparse(160, 20).documents
    labelled = Corpus(documents[:60])
    bare = [replace(one, annotations={}, gold=None) for one in documents[60:]]
    every = Corpus([*bare[:50], *labelled, *bare[50:]])
    alone, beside = (bsc("auto", annotator=annotator).fit(each) for each in (labelled, every))
    assert beside.trace_.bounds == pytest.approx(alone.trace_.bounds, rel=1e-12)
    assert beside.calibration_.plain() == pytest.approx(alone.calibration_.plain(), rel=1e-9)
    for one in alone.result_:
        other = beside.result_[one.document.id]
        assert other.tags == one.tags
        np.testing.assert_allclose(other.probabilities, one.probabilities, rtol=1e-9, atol=1e-12)
        assert other.confidence == pytest.approx(one.confidence, rel=1e-9)
        assert [span.sure for span in other.spans] == pytest.approx([span.sure for span in one.spans], rel=1e-9)
    assert len(beside.result_) == 160
    assert len(beside.result_[bare[0].id].tags) == len(bare[0].tokens)


@pytest.mark.parametrize("name", sorted(set(CROWDS) - {"copies"}))  # who are one and the same may change places
def test_the_same_annotators_are_held_out(name: str) -> None:
    corpus = crowd(name)
    other, old_name = disguised(corpus, 1)
    first, second = (list(folds(encode(one, one.tagset()))) for one in (corpus, other))
    assert len(first) == len(second) > 1

    def held_out(of: Corpus, fold: int) -> set[tuple[str, str]]:
        held = (first if of is corpus else second)[fold][1]
        documents = held.documents[held.document].tolist()
        return {(of[d].id, of.annotators[k]) for d, k in zip(documents, held.who.tolist(), strict=True)}

    together: set[tuple[str, str]] = set()
    for fold in range(len(first)):
        chosen = held_out(corpus, fold)
        assert chosen == {(document, old_name[who]) for document, who in held_out(other, fold)}
        assert not chosen & together  # every fold holds out others
        together |= chosen


def test_lots_tell_annotators_and_documents_apart() -> None:
    corpus = crowds.sparse(120, 40)
    lots = lots_of(encode(corpus, corpus.tagset()))
    assert all(len(np.unique(lot)) == len(lot) for lot in lots)
    assert not np.array_equal(lots.pair, lots_of(encode(corpus, corpus.tagset()), seed=1).pair)
    shares = [np.mean(lot >= 1 << 63) for lot in lots]
    assert all(abs(share - 0.5) < 3 * 0.5 / np.sqrt(len(lot)) for share, lot in zip(shares, lots, strict=True))
