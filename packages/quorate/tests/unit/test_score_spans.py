"""Span and token scores on cases small enough to work out by hand, and on input that cannot be scored."""

from collections.abc import Callable
from typing import Any

import pytest

from quorate import score
from quorate.corpus.tags import Scheme
from quorate.errors import InputError

GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-PER"]]
PREDICTED = [["B-PER", "I-PER", "O", "B-PER"], ["B-LOC", "O"]]
SPAN_SCORES = [score.strict, score.relaxed, score.partial, score.typed]


def test_strict_counts_spans_over_all_documents() -> None:
    assert score.strict(PREDICTED, GOLD) == score.PRF.of(1 / 3, 1 / 3)


def test_by_type_and_macro() -> None:
    by_type = score.strict_by_type(PREDICTED, GOLD)
    assert list(by_type) == ["LOC", "PER"]
    assert by_type["PER"] == score.TypeScore(0.5, 0.5, 0.5, support=2)
    assert by_type["LOC"] == score.TypeScore(0.0, 0.0, 0.0, support=1)
    assert score.macro(by_type) == score.PRF(0.25, 0.25, 0.25)


def test_macro_f1_is_the_mean_of_f1s_and_not_the_f1_of_means() -> None:
    by_type = {"A": score.TypeScore(1.0, 0.5, 2 / 3, 2), "B": score.TypeScore(0.5, 1.0, 2 / 3, 2)}
    assert score.macro(by_type).f1 == pytest.approx(2 / 3, abs=1e-12)


def test_relaxed_means_shares_over_spans() -> None:
    predicted = [["B-P", "I-P", "I-P", "I-P", "O", "B-P"]]
    gold = [["O", "B-P", "O", "O", "O", "B-P"]]
    assert score.relaxed(predicted, gold) == score.PRF.of((1 / 4 + 1) / 2, 1.0)


def test_relaxed_asks_for_the_same_type() -> None:
    assert score.relaxed([["B-A", "I-A"]], [["B-B", "I-B"]]) == score.PRF(0.0, 0.0, 0.0)


def test_partial_gives_half_for_an_overlap_whatever_the_type() -> None:
    assert score.partial([["B-A", "I-A", "O"]], [["O", "B-B", "I-B"]]) == score.PRF(0.5, 0.5, 0.5)


def test_typed_takes_the_nearest_gold_span() -> None:
    predicted = [["B-A", "I-A", "I-A", "I-A", "B-A"]]
    gold = [["B-A", "B-A", "I-A", "I-A", "I-A"]]
    # 0-4 is nearer to gold 1-5 (distance 2) than to gold 0-1 (distance 3), so that nothing is left for 4-5
    assert score.typed(predicted, gold) == score.PRF(0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("measure", "default"), [(score.strict, False), (score.relaxed, True), (score.partial, True), (score.typed, True)]
)
def test_every_score_has_its_own_default_for_orphans(measure: Callable[..., Any], default: bool) -> None:
    predicted, gold = [["O", "I-A", "O", "B-A"]], [["O", "B-A", "O", "B-A"]]
    assert measure(predicted, gold) == measure(predicted, gold, orphans=default)
    assert measure(predicted, gold, orphans=True).recall == 1.0
    assert measure(predicted, gold, orphans=False).recall == 0.5


def test_io_tags_keep_their_spans_without_orphans() -> None:
    gold = [["I-A", "I-A", "O", "I-B"]]
    assert score.strict(gold, gold) == score.PRF(1.0, 1.0, 1.0)
    assert score.error_kinds(gold, gold).invalid == 0
    assert score.error_kinds(gold, gold).exact == 2


def test_gold_in_io_keeps_its_spans_against_bio_predictions() -> None:
    assert score.strict([["B-A", "I-A"]], [["I-A", "I-A"]]) == score.PRF(1.0, 1.0, 1.0)


def test_a_scheme_that_is_given_is_not_guessed() -> None:
    tags = [["I-A"]]
    assert score.strict(tags, tags, scheme=Scheme.BIO) == score.PRF(0.0, 0.0, 0.0)
    assert score.strict([["I-A"]], [["B-A"]], scheme=Scheme.IO).f1 == 1.0
    assert score.strict([["I-A"]], [["B-A"]]).f1 == 0.0


def test_bioes_tags() -> None:
    assert score.strict([["B-A", "E-A", "S-A"]], [["B-A", "E-A", "B-A"]]).f1 == 1.0


def test_tokens_without_gold_are_not_scored() -> None:
    assert score.strict([["B-A", "B-A"]], [["B-A", None]]) == score.PRF(1.0, 1.0, 1.0)
    assert score.token_scores([["B-A", "B-A"]], [["B-A", None]]).tokens == 1


def test_documents_without_gold_are_not_scored() -> None:
    assert score.strict([["B-A"], ["B-A", "O"]], [["B-A"], None]) == score.PRF(1.0, 1.0, 1.0)
    assert len(score.strict_tallies([["B-A"], ["B-A", "O"]], [["B-A"], None]).gold) == 1


@pytest.mark.parametrize("measure", SPAN_SCORES)
def test_nothing_predicted_and_nothing_wanted_are_defined(measure: Callable[..., Any]) -> None:
    nothing, something = [["O", "O"]], [["B-A", "O"]]
    assert measure(nothing, something) == score.PRF(0.0, 0.0, 0.0)
    assert measure(something, nothing) == score.PRF(0.0, 0.0, 0.0)
    assert measure(nothing, nothing) == score.PRF(0.0, 0.0, 0.0)
    assert measure([[None, None]], something) == score.PRF(0.0, 0.0, 0.0)


def test_a_document_without_spans_on_either_side_scores_one() -> None:
    tallies = score.strict_tallies([["O"], ["B-A"], ["O"], ["B-A"]], [["O"], ["O"], ["B-A"], ["B-A"]])
    assert tallies.f1().tolist() == [1.0, 0.0, 0.0, 1.0]


def test_token_scores() -> None:
    found = score.token_scores([["B-A", "I-A", "O", None]], [["B-A", "B-A", "O", "B-A"]])
    assert found == score.TokenScores(0.5, 0.5, 1 / 3, found.f1, 4)
    assert found.f1 == pytest.approx(0.4, abs=1e-12)


def test_token_scores_take_plain_tags() -> None:
    assert score.token_scores([["NOUN", "VERB"]], [["NOUN", "NOUN"]]).accuracy == 0.5


@pytest.mark.parametrize("measure", [*SPAN_SCORES, score.token_scores, score.error_kinds, score.strict_by_type])
@pytest.mark.parametrize(
    ("predicted", "gold", "message"),
    [
        ([["O"]], [["O"], ["O"]], "1 predicted document for 2 of gold (give the same documents)"),
        ([["O"], ["O"]], [["O"], ["O", "O"]], "document 2: 1 predicted tag for 2 gold tags (give one tag a token)"),
        ([["O"]], [[None]], "no token has a gold tag, so there is nothing to score (choose documents that have gold)"),
        ([["O"]], [None], "no token has a gold tag, so there is nothing to score (choose documents that have gold)"),
        ([], [], "no token has a gold tag, so there is nothing to score (choose documents that have gold)"),
    ],
)
def test_what_cannot_be_scored_says_so_in_one_line(
    measure: Callable[..., Any], predicted: list[list[str]], gold: list[Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        measure(predicted, gold)
    assert str(caught.value) == message


def test_plain_tags_mark_no_spans() -> None:
    with pytest.raises(InputError, match="tag 'NOUN' marks no span"):
        score.strict([["NOUN"]], [["NOUN"]])


def test_every_public_name_exists_once_and_has_an_example() -> None:
    assert len(set(score.__all__)) == len(score.__all__)
    for name in score.__all__:
        assert ">>>" in getattr(score, name).__doc__, name
