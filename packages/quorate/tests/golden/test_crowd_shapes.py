"""Automatic settings on crowds of many shapes: never below a vote, never far below the best fixed setting."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

import quorate
import simulated_crowds as crowds
from quorate import Corpus, Result, score
from quorate.corpus.simulate import with_copies


@cache
def default(make: Callable[[], Corpus]) -> Result:
    """On a crowd of which several tests ask."""
    return quorate.aggregate(make())


def f1(result: Result) -> float:
    return 100 * score.strict(result.tags, [document.gold or () for document in result.corpus]).f1


@pytest.mark.parametrize(
    "make",
    [
        crowds.careful_three,
        crowds.sparse,
        crowds.rules,
        crowds.spammer_majority,
        crowds.one_expert,
        crowds.disjoint_batches,
        crowds.vague_boundaries,
        crowds.long_spans,
        crowds.splitters_and_joiners,
        crowds.vague_names,
        crowds.experts_among_vague,
        crowds.vague_and_sparse,
    ],
    ids=lambda make: make.__name__,
)
def test_default_against_votes_and_fixed_settings(make: Callable[[], Corpus]) -> None:
    """One fit, with nothing to choose: hardly below votes, and below the best of models tried by hand by few points."""
    chosen = default(make)
    corpus = chosen.corpus
    fixed = [
        quorate.aggregate(corpus, f"bsc-{model}", epsilon0=strength, max_iter=10)
        for model in ("cm", "seq", "cv")
        for strength in (1.0, 30.0)
    ]
    votes = [quorate.aggregate(corpus, method) for method in ("mv", "span-vote")]
    assert f1(chosen) >= max(map(f1, votes)) - 1.0
    assert f1(chosen) >= max(map(f1, fixed)) - 3.0


def test_duplicates_of_one_model_count_as_one() -> None:
    corpus, single = crowds.copies(), crowds.copies(times=1)
    result = quorate.aggregate(corpus)
    assert result.sources.duplicates == (tuple(f"model{n}" for n in range(5)),)
    assert f1(result) >= f1(quorate.aggregate(single)) - 1.0
    assert f1(result) > f1(quorate.aggregate(corpus, "mv")) + 20
    labels = {row.name: row.n_labels for row in result.annotators}
    assert labels["model0"] == labels["ann"]
    assert result.annotators["model0"].accuracy < result.annotators["ann"].accuracy


def test_variants_of_a_rule_cost_little() -> None:
    """Six of one mind are worth hardly more than one."""
    corpus = crowds.rules()
    result = quorate.aggregate(with_copies(corpus, "rule8", 5, jitter=0.1))
    assert f1(result) >= f1(quorate.aggregate(corpus)) - 1.5
    assert {*result.sources.together[0].names} == {"rule8", *(f"rule8+{n + 1}" for n in range(5))}


def test_a_majority_that_never_marks_a_type() -> None:
    corpus = crowds.colluders()
    gold = [document.gold or () for document in corpus]
    found, voted = (score.strict_by_type(quorate.aggregate(corpus, method).tags, gold) for method in ("auto", "mv"))
    assert found["ORG"].recall > 0.65 > voted["ORG"].recall + 0.2
