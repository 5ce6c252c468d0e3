"""Mentions are found where they are, whatever the text holds; no answer is too strange to be read."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quorate.corpus.tokens import tokenize
from quorate.formats.answers import Asked, Listed, understood
from quorate.formats.mentions import Found, Mention, Page

PIECES = [
    "Ada",
    "Ng",
    "ada",
    "co-op",
    "👋",
    "👩\u200d🔬",
    "cafe\u0301",
    "हिन्दी",
    "שלום",
    "naïve",
    "3.5",
    ",",
    "“",
    "O’Hara",
]
BLANKS = [" ", "  ", "\r\n", "\n", "\u00a0", " "]
texts = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(BLANKS)), min_size=1, max_size=20).map(
    lambda pairs: "".join(word + blank for word, blank in pairs)
)


@st.composite
def texts_and_places(draw: st.DrawFn) -> tuple[str, int, int]:
    """A text, and the first and last character of some whole tokens of it."""
    text = draw(texts)
    tokens = tokenize(text)
    first = draw(st.integers(0, len(tokens) - 1))
    last = draw(st.integers(first, min(first + 3, len(tokens) - 1)))
    return text, tokens[first][0], tokens[last][1]


def overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


@given(texts_and_places())
def test_words_of_a_text_are_found_in_it(drawn: tuple[str, int, int]) -> None:
    text, start, end = drawn
    words = text[start:end]
    places = Page(text).places(words)
    assert all(text[first:last] == words for first, last in places)
    assert any(place == (start, end) or overlap(place, (start, end)) for place in places)
    assert not any(overlap(one, other) for one, other in pairwise(places))


@given(texts_and_places(), st.sampled_from(["\n", " \u200b", "\t "]), st.sampled_from(["‘", "'", "´"]))
def test_case_blanks_and_quotes_hide_no_words(drawn: tuple[str, int, int], blank: str, quote: str) -> None:
    text, start, end = drawn
    words = blank.join(text[start:end].upper().replace("’", quote).split())
    places = Page(text).places(words)
    assert any(overlap(place, (start, end)) for place in places)
    assert {bare(text[first:last]) for first, last in places} == {bare(text[start:end])}


def bare(words: str) -> str:
    return "".join(words.casefold().replace("’", "“").split())


@given(texts_and_places(), st.integers(1, 6), st.booleans())
def test_words_listed_so_often_are_so_many_first_places(drawn: tuple[str, int, int], times: int, every: bool) -> None:
    text, start, end = drawn
    page = Page(text)
    places = page.places(text[start:end])
    found = page.located([Mention(text[start:end], "X")] * times, every)
    expected = places if every and times == 1 else places[:times]
    assert [span[:2] for span in found.spans] == expected
    assert len(found.surplus) == max(0, times - len(places))
    assert found.lost == []


@given(texts, texts)
def test_a_text_written_once_more_is_aligned_with_characters_that_are_there(text: str, other: str) -> None:
    written = Page(text).aligned(other)
    assert 0 <= written.tail <= written.missing <= written.length == len(tokenize(text))
    assert all(0 <= place < len(text) for place in written.starts.values())
    assert all(0 < place <= len(text) for place in written.ends.values())
    same = Page(text).aligned(text)
    assert same.missing == 0
    assert all(same.starts[start] == start and same.ends[end] == end for start, end in tokenize(text))


keys = st.sampled_from(
    ["text", "label", "entities", "start", "end", "score", "logprob", "PER", "Ada", "tokens", "tags"]
)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 50),
    st.floats(),
    st.sampled_from([*PIECES, "O", "B-PER", "I-PER", "PER", ""]),
)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4))
fragments = st.sampled_from(
    [
        "<PER>",
        "</PER>",
        "<",
        ">",
        "[",
        "](LOC)",
        "]",
        "{",
        "}",
        "```json\n",
        "\n```",
        '"text": ',
        "B-PER\n",
        "@@",
        "##",
        "</think>",
    ]
)
written = st.lists(st.one_of(fragments, st.sampled_from(PIECES), values.map(json.dumps)), max_size=12).map(" ".join)


@given(texts, st.one_of(values, written), st.sampled_from([None, "PER"]))
def test_no_answer_is_too_strange(text: str, answer: Any, label: str | None) -> None:
    page = Page(text)
    said = understood(answer, Asked(page, tokenize(text), label))
    found = page.located(said.mentions, every=True) if isinstance(said, Listed) else said
    if isinstance(found, Found):
        for span in found.spans:
            assert 0 <= span.start < span.end <= len(text)
            assert span.label
            assert span.confidence is None or 0 <= span.confidence <= 1
