"""The tokenizer, and character spans to token spans."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.corpus.tokens import locate, place_span, tokenize
from quorate.errors import InputError


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in tokenize(text)]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Ada's co-op: 3.5%!", ["Ada", "'", "s", "co", "-", "op", ":", "3", ".", "5", "%", "!"]),
        ("cafe\u0301 noir", ["cafe\u0301", "noir"]),
        ("हिन्दी शब्द", ["हिन्दी", "शब्द"]),
        ("a 👩\u200d🔬 b", ["a", "👩\u200d🔬", "b"]),
        ("שלום, عالم", ["שלום", ",", "عالم"]),
        ("line\r\nend", ["line", "end"]),
        ("", []),
        ("   ", []),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert words(text) == tokens


@given(st.text(max_size=60))
def test_tokens_are_ordered_and_lose_nothing_but_blanks(text: str) -> None:
    offsets = tokenize(text)
    cursor = 0
    for start, end in offsets:
        assert cursor <= start < end
        assert not text[cursor:start].strip()
        cursor = end
    assert not text[cursor:].strip()


@given(st.text(alphabet="ab .-é", max_size=40), st.data())
def test_span_on_token_boundaries_comes_back(text: str, data: st.DataObject) -> None:
    offsets = tokenize(text)
    if not offsets:
        return
    first = data.draw(st.integers(0, len(offsets) - 1))
    last = data.draw(st.integers(first, len(offsets) - 1))
    starts, ends = zip(*offsets, strict=True)
    assert place_span(offsets[first][0], offsets[last][1], starts, ends) == (first, last + 1, False, False)


def test_spans_are_trimmed_widened_and_dropped() -> None:
    starts, ends = zip(*tokenize("Ada Lovelace sang"), strict=True)
    assert place_span(1, 6, starts, ends) == (0, 2, False, True)
    assert place_span(3, 12, starts, ends) == (1, 2, True, False)
    assert place_span(3, 6, starts, ends) == (1, 2, True, True)
    assert place_span(4, 13, starts, ends) == (1, 2, True, False)
    assert place_span(3, 4, starts, ends) is None
    assert place_span(5, 5, starts, ends) is None


def test_tokens_that_are_not_in_the_text() -> None:
    with pytest.raises(InputError, match=r"x\.jsonl:3: token 2, 'Bob', does not occur"):
        locate(["Ada", "Bob"], "Ada sang", where="x.jsonl:3")
