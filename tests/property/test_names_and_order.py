"""What annotators are called, and in which order documents come, changes nothing that is given out."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import simulated_crowds as crowds
import quorate
from quorate import Corpus, Result
from quorate.choose.hidden import draws
from quorate.crowd.encode import encode
from quorate.crowd.lots import lots_of

CROWDS = {
    "a few documents": lambda: Corpus(list(quorate.sample())[:48]),
    "sparse": lambda: crowds.sparse(120, 40),
    "copies": lambda: crowds.copies(120),
    "rules": lambda: crowds.rules(150),
    "careful three": lambda: crowds.careful_three(40),
}


@cache
def crowd(name: str) -> Corpus:
    return CROWDS[name]()


@cache
def consensus(name: str) -> Result:
    return quorate.aggregate(crowd(name))


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


@pytest.mark.parametrize("name", CROWDS)
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_tags_expected_scores_and_accepted_documents_stay(name: str, seed: int) -> None:
    first = consensus(name)
    other = quorate.aggregate(disguised(crowd(name), seed)[0])
    assert first.choice is not None
    assert other.choice is not None
    assert other.choice.settings == first.choice.settings
    assert first.choice.vote is not None  # annotators were hidden
    for one in first:
        assert other[one.document.id].tags == one.tags
    np.testing.assert_allclose(other.expected, first.expected, rtol=1e-6)
    for precision in (0.5, 0.8, 0.9, 0.95):
        accepted = [{r.corpus[d].id for d in r.accept(precision).documents} for r in (first, other)]
        assert accepted[0] == accepted[1]


@pytest.mark.parametrize("name", sorted(set(CROWDS) - {"copies"}))  # who are one and the same may change places
def test_the_same_annotators_are_hidden(name: str) -> None:
    corpus = crowd(name)
    other, old_name = disguised(corpus, 1)
    first, second = (draws(encode(one, one.tagset())) for one in (corpus, other))
    assert len(first) == len(second) > 1

    def hidden(of: Corpus, draw: int) -> set[tuple[str, str]]:
        one = (first if of is corpus else second)[draw]
        return {(of[int(one.documents[d])].id, of.annotators[k]) for d, k in zip(one.document, one.who, strict=True)}

    together: set[tuple[str, str]] = set()
    for draw in range(len(first)):
        chosen = hidden(corpus, draw)
        assert chosen == {(document, old_name[who]) for document, who in hidden(other, draw)}
        assert not chosen & together  # every draw hides others
        together |= chosen


def test_lots_tell_annotators_and_documents_apart() -> None:
    corpus = crowds.sparse(120, 40)
    lots = lots_of(encode(corpus, corpus.tagset()))
    assert all(len(np.unique(lot)) == len(lot) for lot in lots)
    assert not np.array_equal(lots.pair, lots_of(encode(corpus, corpus.tagset()), seed=1).pair)
    shares = [np.mean(lot >= 1 << 63) for lot in lots]
    assert all(abs(share - 0.5) < 3 * 0.5 / np.sqrt(len(lot)) for share, lot in zip(shares, lots, strict=True))
