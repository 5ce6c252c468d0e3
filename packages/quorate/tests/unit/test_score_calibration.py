"""Scores of probabilities, by hand and at the edges."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from quorate import Span, score
from quorate.errors import InputError, SettingsError

LABELS = ["O", "B-X"]
ROWS = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])


def test_cross_entropy_by_hand() -> None:
    found = score.cross_entropy([ROWS], [["O", "O", None]], LABELS)
    assert found.mean == pytest.approx(-(math.log(0.9) + math.log(0.2)) / 2, rel=1e-12)
    assert (found.tokens, found.unknown) == (2, 0)


def test_brier_by_hand() -> None:
    found = score.brier([ROWS], [["O", "O", None]], LABELS)
    assert found.mean == pytest.approx((0.1**2 + 0.1**2 + 0.8**2 + 0.8**2) / 2, rel=1e-12)


def test_a_gold_label_outside_the_label_set_scores_at_the_clip_and_is_counted() -> None:
    found = score.cross_entropy([ROWS], [["B-Y", None, None]], LABELS)
    assert found.mean == pytest.approx(100 * math.log(10), rel=1e-12)
    assert (found.tokens, found.unknown) == (1, 1)
    assert score.brier([ROWS], [["B-Y", None, None]], LABELS).mean == pytest.approx(0.81 + 0.01 + 1, rel=1e-12)


def test_a_probability_of_zero_scores_at_the_clip() -> None:
    assert score.cross_entropy([np.array([[0.0, 1.0]])], [["O"]], LABELS).mean == pytest.approx(230.2585, abs=1e-4)


def test_documents_without_gold_are_left_out() -> None:
    assert score.cross_entropy([ROWS, ROWS], [None, ["O", None, None]], LABELS).tokens == 1


@pytest.mark.parametrize("measure", [score.cross_entropy, score.brier])
@pytest.mark.parametrize(
    ("rows", "gold", "message"),
    [
        ([ROWS], [[None, None, None]], "no token has a gold tag"),
        ([ROWS], [None], "no token has a gold tag"),
        ([], [], "no token has a gold tag"),
        ([ROWS], [["O"]], r"document 1: probabilities of shape \(3, 2\) for 1 gold tag and 2 labels"),
        ([ROWS], [["O"] * 3, ["O"]], "probabilities of 1 document for 2 of gold"),
        ([np.array([[np.nan, 1.0]])], [["O"]], "nan is not a probability"),
        ([np.array([[np.nan, 1.0]])], [["B-X"]], "nan is not a probability"),
        ([np.array([[-0.5, 1.5]])], [["O"]], "is not a probability"),
    ],
)
def test_what_cannot_be_scored_says_so(
    measure: Callable[..., Any], rows: list[Any], gold: list[Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        measure(rows, gold, LABELS)


def test_reliability_by_hand() -> None:
    found = score.reliability([0.15, 0.2, 0.9, 1.0], [False, True, True, True], bins=5)
    assert [(b.low, b.high, b.count) for b in found.bins] == [(0.0, 0.2, 2), (0.8, 1.0, 2)]
    assert found.count == 4
    assert found.error == pytest.approx((2 * abs(0.175 - 0.5) + 2 * abs(0.95 - 1.0)) / 4, rel=1e-12)


def test_reliability_of_nothing_is_defined() -> None:
    assert score.reliability([], []).error == 0.0
    assert score.reliability([], []).bins == ()


def test_reliability_refuses_what_makes_no_sense() -> None:
    with pytest.raises(InputError, match="nan is not a probability"):
        score.reliability([np.nan], [True])
    with pytest.raises(InputError, match="2 confidences for 1 answers"):
        score.reliability([0.5, 0.5], [True])
    with pytest.raises(SettingsError, match="bins must be 1 or more, not 0"):
        score.reliability([0.5], [True], bins=0)


def test_token_reliability_leaves_out_tokens_without_gold_and_documents_without_gold() -> None:
    found = score.token_reliability(
        [["O", "O", "O"], ["O"]], [[0.9, 0.9, 0.1], [0.2]], [["O", "B-X", None], None], bins=1
    )
    assert found.bins[0].count == 2
    assert found.error == pytest.approx(0.4, rel=1e-12)


def test_token_reliability_wants_one_confidence_a_token() -> None:
    with pytest.raises(InputError, match="document 1: 1 confidence for 2 tags"):
        score.token_reliability([["O", "O"]], [[0.9]], [["O", "O"]])


def test_emitted_confidence_is_that_of_the_tag_and_not_of_the_best_label() -> None:
    assert score.emitted_confidence([["O", "O", "B-X"]], [ROWS], LABELS)[0].tolist() == [0.9, 0.2, 0.5]


def test_span_reliability_counts_exact_spans_with_gold_throughout() -> None:
    gold = [["B-X", "I-X", "O", None, "B-X"]]
    spans = [[Span(0, 2, "X", 0.8), Span(2, 4, "X", 0.1), Span(4, 5, "Y", 0.6)]]
    found = score.span_reliability(spans, gold, bins=1)
    assert (found.count, found.bins[0].right) == (2, 0.5)
    assert found.bins[0].confidence == pytest.approx(0.7, rel=1e-12)


def test_span_reliability_without_gold_or_with_other_documents() -> None:
    with pytest.raises(InputError, match="no token has a gold tag"):
        score.span_reliability([[]], [None])
    with pytest.raises(InputError, match="spans of 1 document for 2 of gold"):
        score.span_reliability([[]], [["O"], ["O"]])
