"""One worked example of every error kind."""

from typing import Any

import pytest

from quorate.evaluate.metrics import ErrorKinds, error_kinds, strict_tallies

NONE = ErrorKinds._make([*[0] * 12, 0.0])

CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "exact": ("B-X I-X O", "B-X I-X O", {"exact": 1}),
    "wrong type": ("B-Y I-Y O", "B-X I-X O", {"wrong_type": 1}),
    "missed": ("O O O", "B-X I-X O", {"missed": 1}),
    "missed, though another type touches it": ("B-Y O O", "B-X I-X O", {"missed": 1, "length_error": 1.0}),
    "false positive": ("B-X O B-X", "B-X O O", {"exact": 1, "false_positive": 1}),
    "late start": ("O B-X I-X", "B-X I-X I-X", {"partial": 1, "late_start": 1, "length_error": 1.0}),
    "early start": ("B-X I-X O", "O B-X O", {"partial": 1, "early_start": 1, "length_error": 1.0}),
    "late finish": ("B-X I-X I-X", "B-X I-X O", {"partial": 1, "late_finish": 1, "length_error": 1.0}),
    "early finish": ("B-X O O", "B-X I-X O", {"partial": 1, "early_finish": 1, "length_error": 1.0}),
    "too long on both sides": (
        "B-X I-X I-X",
        "O B-X O",
        {"partial": 1, "early_start": 1, "late_finish": 1, "length_error": 2.0},
    ),
    "split": ("B-X B-X I-X", "B-X I-X I-X", {"partial": 1, "split": 1, "length_error": 1.5}),
    "fused": (
        "B-X I-X I-X",
        "B-X O B-X",
        {"partial": 2, "fused": 1, "late_finish": 1, "early_start": 1, "length_error": 2.0},
    ),
    "fused asks for the same type": (
        "B-X I-X I-X",
        "B-X O B-Y",
        {"partial": 1, "missed": 1, "late_finish": 1, "length_error": 2.0},
    ),
    "invalid": ("O I-X O", "B-X I-X O", {"partial": 1, "late_start": 1, "invalid": 1, "length_error": 1.0}),
    "invalid at the beginning": ("I-X I-X O", "B-X I-X O", {"exact": 1, "invalid": 1}),
}


@pytest.mark.parametrize("name", CASES)
def test_worked_example(name: str) -> None:
    predicted, gold, expected = CASES[name]
    assert error_kinds([predicted.split()], [gold.split()]) == NONE._replace(**expected)


def test_without_orphans_a_lost_b_is_a_missed_span() -> None:
    kinds = error_kinds([["O", "I-X"]], [["B-X", "I-X"]], orphans=False)
    assert (kinds.missed, kinds.partial, kinds.invalid) == (1, 0, 1)


def test_gold_spans_open_only_at_b() -> None:
    gold = [["B-X", "O", "I-X"]]
    assert error_kinds(gold, gold).gold_spans == 1


def test_what_follows_a_missing_tag_is_not_called_invalid() -> None:
    assert error_kinds([["B-X", "I-X", "I-X"]], [["B-X", None, "O"]]).invalid == 0


def test_exact_is_what_the_strict_score_calls_right() -> None:
    predicted = [["B-X", "I-X", "O"], ["I-X", "O", "B-X"]]
    gold = [["B-X", "I-X", "O"], ["B-X", "O", "B-X"]]
    assert error_kinds(predicted, gold, orphans=False).exact == strict_tallies(predicted, gold).right_gold.sum() == 2


def test_length_error_is_zero_where_a_side_has_no_span() -> None:
    assert error_kinds([["O", "O"]], [["B-X", "I-X"]]).length_error == 0.0
