"""The tokenizer, and character spans to token spans."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.errors import InputError
from quorate.tags import Span
from quorate.tokens import locate, to_token_spans, tokenize


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
    span = Span(offsets[first][0], offsets[last][1], "X")
    found = to_token_spans([span], offsets)
    assert found == ([Span(first, last + 1, "X")], 0, 0, 0)


def test_spans_are_widened_dropped_and_kept_apart() -> None:
    offsets = tokenize("Ada Lovelace sang")
    given = [Span(1, 6, "PER"), Span(3, 4, "PER"), Span(4, 12, "ORG"), Span(13, 17, "X")]
    found = to_token_spans(given, offsets)
    assert found.spans == [Span(0, 2, "PER"), Span(2, 3, "X")]
    assert (found.widened, found.dropped, found.overlapping) == (1, 1, 1)


def test_tokens_that_are_not_in_the_text() -> None:
    with pytest.raises(InputError, match=r"x\.jsonl:3: token 2, 'Bob', does not occur"):
        locate(["Ada", "Bob"], "Ada sang", where="x.jsonl:3")
