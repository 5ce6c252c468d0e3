"""Ambiguity told from error, and shares of annotators, on crowds whose true shares are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import quorate
from quorate.active.suggest import next_labels
from quorate.corpus.records import Corpus, Document
from quorate.corpus.tags import TagSet
from quorate.crowd.encode import encode
from quorate.result import shares
from quorate.result.ambiguity import ambiguity_of
from quorate.result.readings import most_ambiguous
from quorate.result.shares import ShareModel

Floats = NDArray[np.float64]
DATA = Path(__file__).resolve().parents[5] / "shared" / "data"
LENGTH = 12
TAGS = ("O", "B-X", "I-X")


def crowd(
    *,
    documents: int = 150,
    people: int = 12,
    each: int = 7,
    ambiguous: float = 0.3,
    careful: float = 0.93,
    careless: int = 0,
    more: int = 0,
    seed: int = 0,
) -> tuple[Corpus, NDArray[np.bool_], Floats]:
    """Two spans in each document; where it is ambiguous half of the readers see only one of them.

    ``careless`` people miss most spans. Returns also which tokens are ambiguous, and the share of people that would
    mark each token. The last ``more`` documents are not ambiguous and have three annotators.
    """
    rng = np.random.default_rng(seed)
    found, two_readings, shares = [], [], []
    care = np.where(np.arange(people) < careless, 0.3, careful)
    for d in range(documents + more):
        starts = rng.choice([1, 4, 7], 2, replace=False)
        open_end = d < documents and rng.random() < ambiguous
        share, allowed = np.zeros(LENGTH), np.zeros(LENGTH, np.bool_)
        for n, start in enumerate(starts):
            share[start : start + 2] = care.mean() * (0.5 if open_end and n == 0 else 1.0)
            allowed[start : start + 2] = open_end and n == 0
        said = {}
        for k in rng.choice(people, each if d < documents else 3, replace=False).tolist():
            labels = np.zeros(LENGTH, np.int64)
            reads_less = open_end and rng.random() < 0.5
            for start in starts[1:] if reads_less else starts:
                if rng.random() < care[k]:
                    labels[start], labels[start + 1] = 1, 2
            said[f"p{k:02}"] = tuple(TAGS[label] for label in labels)
        words = tuple(f"w{word}" for word in rng.integers(0, 60, LENGTH))
        found.append(Document(f"d{d:03}", words, said))
        two_readings.append(allowed)
        shares.append(share)
    return Corpus(found), np.concatenate(two_readings), np.concatenate(shares)


def test_tokens_with_two_readings_are_found_and_their_share_is_right() -> None:
    corpus, allowed, _ = crowd()
    told = ambiguity_of(encode(corpus, corpus.tagset()))
    assert told.tokens[allowed].mean() > 0.55
    assert told.tokens[~allowed].mean() < 0.03
    assert told.share == pytest.approx(allowed.mean(), abs=0.03)
    by_document = allowed.reshape(-1, LENGTH).sum(axis=1)
    assert np.corrcoef(told.documents, by_document)[0, 1] > 0.75


@pytest.mark.parametrize(("careful", "careless"), [(0.93, 0), (0.75, 0), (0.93, 4)])
def test_errors_alone_are_not_taken_for_ambiguity(careful: float, careless: int) -> None:
    corpus, _, _ = crowd(ambiguous=0.0, careful=careful, careless=careless)
    assert ambiguity_of(encode(corpus, corpus.tagset())).share < 0.01


def test_shares_are_those_that_the_crowd_was_made_with() -> None:
    corpus, allowed, share = crowd(documents=300)
    model = ShareModel.learned(encode(corpus, corpus.tagset()))
    assert model is not None
    marks = 1 - model.shares()[:, 0]
    counts = np.stack([[tag != "O" for tag in tags] for one in corpus for tags in one.annotations.values()])
    counted = counts.reshape(300, 7, LENGTH).mean(axis=1).ravel()
    assert np.mean((marks - share) ** 2) < np.mean((counted - share) ** 2)
    assert marks[allowed].mean() == pytest.approx(share[allowed].mean(), abs=0.15)
    assert marks[share == 0].mean() < 0.02


def test_who_marks_little_is_expected_to_mark_little() -> None:
    corpus, _, _ = crowd(ambiguous=0.0, careless=3, documents=300)
    result = quorate.aggregate(corpus, "mv")
    marked = {name: sum(float((1 - one[:, 0]).sum()) for one in result.shares_of(name)) for name in ("p00", "p11")}
    assert marked["p00"] < 0.6 * marked["p11"]


def test_shares_are_distributions_and_hang_on_neither_names_nor_order() -> None:
    corpus, _, _ = crowd(documents=60)
    turned = Corpus(
        [
            Document(one.id, one.tokens, {name[::-1]: tags for name, tags in one.annotations.items()})
            for one in list(corpus)[::-1]
        ]
    )
    result, again = quorate.aggregate(corpus, "mv"), quorate.aggregate(turned, "mv")
    shares = np.concatenate(result.shares)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=0, atol=1e-9)
    assert (shares >= 0).all()
    np.testing.assert_allclose(np.concatenate(again.shares[::-1]), shares, rtol=0, atol=1e-4)
    np.testing.assert_allclose(again.ambiguity.documents[::-1], result.ambiguity.documents, rtol=0, atol=1e-6)
    part = result.only([5, 2])
    np.testing.assert_array_equal(part.shares[0], result.shares[5])
    np.testing.assert_array_equal(part.ambiguity.of(1), result.ambiguity.of(2))


def test_where_nobody_can_be_hidden_shares_are_the_posterior_through_the_crowds_confusion() -> None:
    corpus, _, _ = crowd(each=1)
    result = quorate.aggregate(corpus, "mv")
    np.testing.assert_allclose(np.concatenate(result.shares).sum(axis=1), 1.0, rtol=0, atol=1e-9)
    assert result.ambiguity.share < 0.1


def test_plain_labels_and_documents_without_labels_have_shares_too() -> None:
    rng = np.random.default_rng(0)
    said = [{f"p{k}": tuple(rng.choice(["N", "V", "D"], 5, p=[0.6, 0.3, 0.1])) for k in range(3)} for _ in range(40)]
    corpus = Corpus([Document(f"{d}", tuple("abcde"), one) for d, one in enumerate([*said, {}])])
    result = quorate.aggregate(corpus, "mv")
    assert [one.shape for one in result.shares] == [(5, 3)] * 41
    assert np.concatenate(result.shares).mean(axis=0)[list(result.labels).index("N")] == pytest.approx(0.6, abs=0.08)


@pytest.mark.parametrize("strategy", ["information", "least-confidence", "sequence-entropy"])
def test_documents_with_two_readings_are_not_asked_for_for_ever(strategy: str) -> None:
    corpus, allowed, _ = crowd(documents=120, each=10, more=60)
    two_readings = np.asarray(allowed.reshape(-1, LENGTH).any(axis=1))
    split = {one.id for one, two in zip(corpus, two_readings.tolist(), strict=True) if two}
    model = quorate.BSC("cm", max_iter=10).fit(corpus)
    asked = next_labels(corpus, model, n=20, strategy=strategy, diversity=0.0, annotators=["p00", "p01", "p02"])
    assert len(split) > 35  # by chance, four of the twenty would be among them
    found = [one.document for one in asked.suggestions if one.document in split]
    assert len(found) <= (strategy == "least-confidence")  # which looks at one reading alone


@pytest.mark.skipif(not (DATA / "hallucination-zh.jsonl.gz").exists(), reason="the crowd is not here")
def test_what_held_out_people_say_is_predicted_by_their_names() -> None:
    corpus = quorate.read(DATA / "hallucination-zh.jsonl.gz")  # the English one: docs/ambiguity.md
    rng = np.random.default_rng(0)
    kept, held = [], []
    for one in corpus:
        chosen = set(rng.choice(sorted(one.annotations), 3, replace=False).tolist())
        parts = [{n: tags for n, tags in one.annotations.items() if (n in chosen) is among} for among in (True, False)]
        kept.append(Document(one.id, one.tokens, parts[0]))
        held.append(parts[1])
    result = quorate.aggregate(Corpus(kept), "mv")
    number = {label: j for j, label in enumerate(result.labels)}
    counts = np.concatenate(
        [sum(np.eye(3)[[number[str(tag)] for tag in tags]] for tags in one.annotations.values()) for one in kept]
    )
    prior = counts.sum(axis=0) / counts.sum()
    smoothed = [(counts + a * prior) / (3 + a) for a in (1.0, 2.0, 3.0, 4.0, 6.0, 10.0)]
    start = np.cumsum([0, *(len(one.tokens) for one in kept)])
    lost, by_shares = 0.0, np.zeros(len(smoothed))
    for name in sorted({name for one in held for name in one}):
        expected = result.shares_of(name)
        for d, said in enumerate(held):
            if name in said:
                label = np.array([number[str(tag)] for tag in said[name]])
                at = start[d] + np.arange(len(label))
                lost -= float(np.log(expected[d][np.arange(len(label)), label]).sum())
                by_shares -= [np.log(p[at, label]).sum() for p in smoothed]
    assert lost <= 0.8 * by_shares.min()


def test_blocks_hold_as_many_numbers_however_many_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Features are laid out for a few documents at once, fewer where there are many labels; shares stay the same."""
    corpus = quorate.sample()
    model = ShareModel.learned(encode(corpus, corpus.tagset()))
    assert model is not None
    whole, largest = model.shares(), []

    def seen(view: shares._View, tagset: TagSet, prior: Floats, target: Floats) -> Floats:
        largest.append(view.counts.size)
        return features(view, tagset, prior, target)

    features, longest = shares._features, max(len(one.tokens) for one in corpus)
    monkeypatch.setattr(shares, "_features", seen)
    monkeypatch.setattr(shares, "_BLOCK", 2_000)
    np.testing.assert_allclose(model.shares(), whole, rtol=0, atol=1e-9)
    assert len(largest) > 10
    assert max(largest) <= 2_000 + longest * len(corpus.tagset().labels)


def test_documents_that_allow_two_readings_are_listed_first() -> None:
    corpus, ambiguous, _ = crowd(ambiguous=0.2)
    in_document = ambiguous.reshape(len(corpus), LENGTH).sum(axis=1)
    found = most_ambiguous(corpus, 15)
    assert len(found) == 15
    assert np.mean([in_document[corpus.position(one.id)] > 0 for one in found]) > 0.9
    assert [one.tokens for one in found] == sorted((one.tokens for one in found), reverse=True)
    for one in found:
        document = corpus[one.id]
        for word in one.words:
            assert word.word == document.tokens[word.place]
            assert sum(word.given.values()) == len(document.annotations)
            assert word.given[max(word.given, key=lambda label: word.given[label])] < len(document.annotations)
    assert most_ambiguous(crowd(ambiguous=0.0)[0], 20) == []
