"""Automatic settings on crowds of many shapes: never below a vote, never far below the best fixed setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import pytest

import simulated_crowds as crowds
import quorate
from quorate import Corpus, Result, score
from quorate.corpus.records import hard_tags
from quorate.corpus.simulate import with_copies
from quorate.estimators.options import EvidenceName

LONGEST_MARK = "the token model prefers the longest mark where spans are overlooked whole: 0.7 behind a token vote"


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
        pytest.param(crowds.long_spans, marks=pytest.mark.xfail(strict=True, reason=LONGEST_MARK)),
        crowds.splitters_and_joiners,
        crowds.vague_names,
        crowds.experts_among_vague,
        crowds.vague_and_sparse,
    ],
    ids=lambda make: make.__name__,
)
def test_default_against_votes_and_fixed_settings(make: Callable[[], Corpus]) -> None:
    chosen = default(make)
    corpus = chosen.corpus
    fixed = [
        quorate.aggregate(corpus, f"bsc-{model}", epsilon0=strength, temper=temper, max_iter=10)
        for model in ("cm", "seq", "cv")
        for strength in (1.0, 30.0)
        for temper in (0.7, 1.0)
    ]
    # To ask for the evidence that was chosen gives the same once more: the test below.
    kinds: tuple[EvidenceName, ...] = ("spans", "tokens")
    evidence = [quorate.aggregate(corpus, evidence=kind) for kind in kinds if kind != chosen.settings_["evidence"]]
    votes = [quorate.aggregate(corpus, method) for method in ("mv", "span-vote")]
    assert f1(chosen) >= max(map(f1, votes))
    assert f1(chosen) >= max(map(f1, [*fixed, *evidence])) - 1.0
    assert chosen.choice is not None
    assert not chosen.choice.worse_than_vote


@pytest.mark.parametrize(
    "make", [crowds.careful_three, crowds.rules, crowds.long_spans], ids=lambda make: make.__name__
)
def test_to_ask_for_the_evidence_that_is_chosen_gives_the_same(make: Callable[[], Corpus]) -> None:
    chosen = default(make)
    asked_for = quorate.aggregate(chosen.corpus, evidence=chosen.settings_["evidence"])
    assert asked_for.settings_ == chosen.settings_
    assert asked_for.tags == chosen.tags


def test_a_jury_that_disputes_types_is_asked_first_where_spans_are() -> None:
    """Of its spans with types hardly any agree; it agrees more on where something is than on what it is."""
    chosen = default(crowds.jury)
    corpus = chosen.corpus
    assert chosen.settings_["evidence"] == "places"
    gold = [document.gold or () for document in corpus]
    others: tuple[EvidenceName, ...] = ("spans", "tokens")
    for evidence in others:
        other = quorate.aggregate(corpus, evidence=evidence)
        assert f1(chosen) > f1(other) + 4
        assert score.relaxed(chosen.tags, gold).f1 > score.relaxed(other.tags, gold).f1 + 0.01
        assert any_type_f1(chosen.tags, corpus) > any_type_f1(other.tags, corpus) + 5
    members = {name for document in corpus for name in document.annotations}
    single = {name: [hard_tags(document.annotations[name]) for document in corpus] for name in members}
    assert any_type_f1(chosen.tags, corpus) > max(any_type_f1(tags, corpus) for tags in single.values()) + 5


@pytest.mark.parametrize("models", [5, 10])
def test_models_that_mark_the_same_passages_be_they_true_or_not(models: int) -> None:
    """What two of eight marked is not true for that; votes know it, and a model of spans did not."""
    chosen = quorate.aggregate(crowds.passages(seed=models, models=models))
    corpus = chosen.corpus
    assert chosen.settings_["evidence"] == "places"
    votes = [quorate.aggregate(corpus, method) for method in ("mv", "silent-vote", "span-vote", "ds")]
    assert f1(chosen) > max(map(f1, votes))
    assert any_type_f1(chosen.tags, corpus) > max(any_type_f1(vote.tags, corpus) for vote in votes)


def any_type_f1(given: Sequence[Sequence[str | None]], corpus: Corpus) -> float:
    """Of tokens in spans, whatever their type."""
    pairs = [
        (tag != "O", true != "O")
        for tags, document in zip(given, corpus, strict=True)
        for tag, true in zip(tags, document.gold or (), strict=True)
    ]
    return 200 * sum(tag and true for tag, true in pairs) / sum(tag + true for tag, true in pairs)


def test_copies_of_one_model_count_as_one() -> None:
    corpus, single = crowds.copies(), crowds.copies(times=1)
    result = quorate.aggregate(corpus)
    assert result.choice is not None
    assert [one.names for one in result.choice.together] == [tuple(f"model{n}" for n in range(5))]
    assert f1(result) >= f1(quorate.aggregate(single)) - 1.0
    assert f1(result) > f1(quorate.aggregate(corpus, "mv")) + 20
    labels = {row.name: row.n_labels for row in result.annotators}
    assert labels["model0"] == labels["ann"]
    assert result.annotators["model0"].accuracy < result.annotators["ann"].accuracy


@pytest.mark.parametrize(
    ("make", "weak"),
    [(crowds.rules, "rule8"), (crowds.one_expert, "a0"), (crowds.splitters_and_joiners, "w00")],
    ids=lambda given: getattr(given, "__name__", given),
)
def test_noisy_copies_of_a_weak_annotator_cost_little(make: Callable[[], Corpus], weak: str) -> None:
    """Six of one mind are worth hardly more than one; counted as six, they cost 15 to 25 points."""
    corpus = make()
    copied = with_copies(corpus, weak, 5, jitter=0.1)
    result = quorate.aggregate(copied, tagger=None)
    assert f1(result) >= f1(quorate.aggregate(corpus, tagger=None)) - 0.7
    assert result.choice is not None
    assert [one.names for one in result.choice.together] == [(weak, *(f"{weak}+{n + 1}" for n in range(5)))]
    if make is not crowds.rules:
        assert f1(quorate.aggregate(copied, "mv")) < f1(quorate.aggregate(corpus, "mv")) - 10


def test_a_majority_that_never_marks_a_type() -> None:
    corpus = crowds.colluders()
    gold = [document.gold or () for document in corpus]
    found, voted = (score.strict_by_type(quorate.aggregate(corpus, method).tags, gold) for method in ("auto", "mv"))
    assert found["ORG"].recall > 0.85 > voted["ORG"].recall
