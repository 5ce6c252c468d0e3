"""Corpora of odd shapes work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import quorate
from by_name import bsc
from problems import certain
from quorate import Corpus, Document
from quorate.corpus.records import SoftTag, Tag
from quorate.corpus.simulate import from_matrices
from quorate.corpus.tags import Scheme, TagSet
from quorate.estimators.options import SchemeName

NEED_NO_GOLD = [name for name in quorate.METHODS if not name.endswith("-worker")]


def check(result: quorate.Result) -> None:
    assert all(result.tagset.is_valid(tags) for tags in result.tags)
    assert all(np.isfinite(rows).all() for rows in result.probabilities)


def share_right(result: quorate.Result) -> float:
    pairs = [pair for c in result for pair in zip(c.tags, c.document.gold or (), strict=True)]
    return sum(tag == gold for tag, gold in pairs) / len(pairs)


@pytest.mark.parametrize("method", NEED_NO_GOLD)
def test_one_annotator_one_document_one_token(method: str) -> None:
    result = quorate.aggregate(Corpus([Document("1", ("Ada",), {"ann": ("B-PER",)})]), method)
    assert result.tags == [["B-PER"]]


@pytest.mark.parametrize("method", NEED_NO_GOLD)
def test_empty_documents_among_others(method: str) -> None:
    corpus = Corpus(
        [Document("0", ()), Document("1", ("Ada", "sang"), {"a": ("B-P", "O")}), Document("2", (), {"a": ()})]
    )
    result = quorate.aggregate(corpus, method)
    assert result.tags == [[], ["B-P", "O"], []]
    assert result.confidence[0] == 1.0


def test_very_long_document_and_length_one() -> None:
    rng = np.random.default_rng(0)
    tags = tuple(rng.choice(["O", "B-X"], 20_000, p=[0.9, 0.1]).tolist())
    corpus = Corpus(
        [Document("long", ("w",) * 20_000, {"a": tags, "b": tags}), Document("short", ("w",), {"a": ("O",)})]
    )
    result = quorate.aggregate(corpus)
    check(result)
    assert result.tags[0] == list(tags)
    assert 0.0 <= result.confidence[0] <= 1.0


def test_forty_labels() -> None:
    tags = TagSet.of_types(Scheme.BIO, [f"T{n:02}" for n in range(20)])
    J = len(tags.labels)
    transitions = np.where(tags.allowed, 1.0, 0.0)
    transitions[:, 0] += 20.0
    transitions /= transitions.sum(axis=1, keepdims=True)
    matrix = (0.8 * np.eye(J) + 0.2 / J)[None]
    corpus = from_matrices(
        tags, {f"a{n}": matrix for n in range(5)}, transitions=transitions, n_documents=150, length=12
    )
    for annotator in ("acc", "spam", "cv", "cm", "seq"):
        check(bsc(f"bsc-{annotator}", max_iter=3).fit(corpus).result_)


def test_a_hundred_and_twenty_annotators_on_every_token() -> None:
    """Labels end up more than 745 nats apart."""
    tags = TagSet.of_types(Scheme.BIO, ["X"])
    transitions = np.array([[0.8, 0.2, 0.0], [0.4, 0.1, 0.5], [0.4, 0.1, 0.5]])
    matrix = (0.97 * np.eye(3) + 0.01)[None]
    corpus = from_matrices(
        tags, {f"a{n:03}": matrix for n in range(120)}, transitions=transitions, n_documents=20, length=30
    )
    for alpha0 in (0.01, 1.0):
        model = bsc("bsc-seq", temper=1.0, alpha0=alpha0, max_iter=5).fit(corpus)
        check(model.result_)
        right = [tuple(tags) == corpus[d].gold for d, tags in enumerate(model.result_.tags)]
        assert np.mean(right) > 0.9


def test_an_annotator_without_a_label_is_reported_as_such() -> None:
    corpus = Corpus([Document("1", ("Ada", "sang"), {"a": ("B-P", "O"), "idle": (None, None)})])
    for method in NEED_NO_GOLD:
        idle = quorate.aggregate(corpus, method).annotators["idle"]
        assert idle.n_labels == 0
        assert np.isnan(idle.accuracy)
        assert idle.informativeness == 0.0


@pytest.mark.parametrize("scheme", ["bioes", "io", "plain"])
def test_other_schemes_end_to_end(scheme: SchemeName, sample: Corpus) -> None:
    from dataclasses import replace

    tagset = sample.tagset()
    other = TagSet.of_types(Scheme(scheme), tagset.types if scheme != "plain" else tagset.labels)

    def rewrite(said: Sequence[Tag | SoftTag]) -> tuple[Tag, ...]:
        tags = certain(said)
        return tags if scheme == "plain" else tuple(other.tags(tagset.spans(tags), len(tags)))

    corpus = Corpus(
        replace(d, annotations={a: rewrite(t) for a, t in d.annotations.items()}, gold=rewrite(d.gold or ()))
        for d in sample
    )
    result = quorate.aggregate(corpus, scheme=scheme)
    check(result)
    assert share_right(result) > max(0.95, share_right(quorate.aggregate(corpus, "mv", scheme=scheme)))
