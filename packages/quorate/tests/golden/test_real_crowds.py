"""Scores of the default settings on the real crowds. No gold is read in fitting; it is only scored against."""

from __future__ import annotations

import pytest

import quorate
from quorate import Corpus, Result, score
from quorate.corpus.tags import find_spans

pytestmark = pytest.mark.realdata


def on_split(result: Result, split: str) -> tuple[list[list[str]], list[tuple[str | None, ...]], float]:
    """Predicted and gold tags of a split, and the cross entropy there."""
    chosen = [consensus for consensus in result if consensus.document.split == split]
    gold = [consensus.document.gold or () for consensus in chosen]
    entropy = score.cross_entropy([consensus.probabilities for consensus in chosen], gold, result.labels)
    return [consensus.tags for consensus in chosen], gold, entropy.mean


@pytest.fixture(scope="module")
def ner_result(ner: Corpus) -> Result:
    """The default's, of which both splits are scored."""
    return quorate.aggregate(ner)


@pytest.fixture(scope="module")
def pico_result(pico: Corpus) -> Result:
    """The default's, of which both splits are scored."""
    return quorate.aggregate(pico)


def test_ner_by_the_paper(ner: Corpus) -> None:
    result = quorate.aggregate(ner, "bsc-seq")
    assert result.repaired == 671
    tags, gold, entropy = on_split(result, "test")
    assert score.strict(tags, gold).f1 == pytest.approx(0.769, abs=0.002)
    assert entropy == pytest.approx(0.508, abs=0.01)
    assert all(result.tagset.is_valid(sequence) for sequence in result.tags)


def test_pico_by_the_paper(pico: Corpus) -> None:
    result = quorate.aggregate(pico, "bsc-seq")
    tags, gold, entropy = on_split(result, "test")
    assert score.relaxed(tags, gold).f1 == pytest.approx(0.703, abs=0.003)
    assert score.strict(tags, gold).f1 == pytest.approx(0.455, abs=0.005)
    assert entropy == pytest.approx(0.304, abs=0.01)
    assert all(result.tagset.is_valid(sequence) for sequence in result.tags)


def test_ner_default(ner_result: Result) -> None:
    tags, gold, entropy = on_split(ner_result, "test")
    assert score.strict(tags, gold).f1 > 0.775
    assert entropy < 0.45
    assert all(ner_result.tagset.is_valid(sequence) for sequence in ner_result.tags)


def test_pico_default(pico_result: Result) -> None:
    tags, gold, entropy = on_split(pico_result, "test")
    assert score.relaxed(tags, gold).f1 > 0.69
    assert score.strict(tags, gold).f1 > 0.50
    assert entropy < 0.45
    assert all(pico_result.tagset.is_valid(sequence) for sequence in pico_result.tags)


def test_default_on_the_dev_split_of_ner(ner_result: Result) -> None:
    tags, gold, _ = on_split(ner_result, "dev")
    assert score.strict(tags, gold).f1 >= 0.79


def test_default_on_the_dev_split_of_pico(pico_result: Result) -> None:
    tags, gold, _ = on_split(pico_result, "dev")
    assert score.strict(tags, gold).f1 >= 0.62
    assert score.relaxed(tags, gold).f1 >= 0.73


def test_ner_majority_vote_is_the_papers(ner: Corpus) -> None:
    result = quorate.aggregate(ner, "mv", invalid="keep", decode="token")
    tags, gold, entropy = on_split(result, "test")
    precision, recall, f1 = score.strict(tags, gold)
    assert (100 * precision, 100 * recall, 100 * f1) == pytest.approx((79.9, 55.3, 65.4), abs=0.3)
    assert entropy == pytest.approx(6.24, abs=0.1)


@pytest.mark.parametrize(("rules", "by_token", "valid"), [("wikigold_rules", 52.1, 54.9), ("laptop_rules", 61.9, 61.9)])
def test_the_vote_of_rules_that_speak_has_its_figures(
    request: pytest.FixtureRequest, rules: str, by_token: float, valid: float
) -> None:
    """Token by token, with an I that nothing goes before opening a span, it is the vote known from elsewhere."""
    corpus: Corpus = request.getfixturevalue(rules)
    tags, gold, _ = on_split(quorate.aggregate(corpus, "mv-abstain", decode="token"), "test")
    tagset = corpus.tagset()
    repaired = [tagset.tags(find_spans(mine), len(mine)) for mine in tags]
    assert 100 * score.strict(repaired, gold).f1 == pytest.approx(by_token, abs=0.5)
    tags, gold, _ = on_split(quorate.aggregate(corpus, "mv-abstain"), "test")
    assert 100 * score.strict(tags, gold).f1 == pytest.approx(valid, abs=0.5)
