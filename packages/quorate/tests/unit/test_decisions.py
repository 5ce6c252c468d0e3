"""Decisions of several reviewers put together: later words, agreement, disputes, adjudication."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.corpus.decisions import Decision, Review, by_reviewer, last_words, settle
from quorate.corpus.records import Source, Tag
from quorate.corpus.tags import find_spans

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


def said(who: str, *tags: Tag, line: int = 1, hour: int | None = None, adjudicated: bool = False) -> Decision:
    time = None if hour is None else NOON + timedelta(hours=hour)
    return Decision(tags, Source(f"{who or 'nobody'}.jsonl", line), Review(who, time, adjudicated=adjudicated))


def test_a_reviewers_later_word_counts_where_it_says_something() -> None:
    early, late = said("ann", "B-PER", "O", "O"), said("ann", None, "O", "B-LOC", line=2)
    assert settle([early, late]) == (("B-PER", "O", "B-LOC"), (), True)
    assert settle([late, early]) == (("B-PER", "O", "O"), (), True)
    timed = [said("ann", "B-LOC", hour=2), said("ann", "O", hour=1)]
    assert settle(timed).tags == ("B-LOC",)
    assert settle([timed[0], said("ann", "O")]).tags == ("O",)  # without a time, the order counts
    assert not settle([early, early]).revised


def test_of_a_span_that_a_later_word_cuts_no_rest_is_known() -> None:
    early = said("ann", "O", "B-PER", "I-PER", "I-PER", "O")
    assert settle([early, said("ann", None, "O", None, None, None)]).tags == ("O", "O", None, None, "O")
    assert settle([early, said("ann", None, "B-PER", None, None, "O")]).tags == early.tags


def test_reviewers_who_agree_are_merged_and_nobody_is_lost() -> None:
    ann, bob = said("ann", "B-PER", "I-PER", None), said("bob", None, "I-PER", "O")
    assert settle([ann, bob]) == (("B-PER", "I-PER", "O"), (), False)
    assert settle([ann]) == (ann.tags, (), False)
    assert settle([said("ann")]) == ((), (), False)


@pytest.mark.parametrize("names", [("ann", "bob"), ("", ""), ("ann", "")])
def test_what_two_disagree_about_is_not_known_with_its_whole_spans(names: tuple[str, str]) -> None:
    one = said(names[0], "O", "B-PER", "I-PER", "O", "B-LOC", "O", line=1)
    other = said(names[1], "O", "O", "B-PER", "I-PER", "B-LOC", "O", line=2)
    for pair in ([one, other], [other, one]):
        assert settle(pair) == (("O", None, None, None, "B-LOC", "O"), (1, 2, 3), False)


def test_a_dispute_grows_from_span_to_span() -> None:
    one = said("ann", "B-X", "I-X", "O", "B-X", "I-X", "O")
    other = said("bob", "O", "B-X", "I-X", "I-X", "B-X", "O")
    assert settle([one, other]) == ((None,) * 5 + ("O",), (0, 1, 2, 3, 4), False)
    silent = said("bob", None, "I-X", "I-X", "O", None, None)  # its span began where it says nothing
    assert settle([said("ann", "B-X", "I-X", "O", "O", "O", "O"), silent]).tags == (None, None, None, "O", "O", "O")


def test_a_dispute_in_the_gap_of_a_discontinuous_span_leaves_the_span_known() -> None:
    ann, bob = said("ann", "B-ADR", "O", "B-ADR…", "O"), said("bob", "B-ADR", "B-PER", "B-ADR…", "O")
    assert settle([ann, bob]) == (("B-ADR", None, "B-ADR…", "O"), (1,), False)
    shorter = said("bob", "B-ADR", "O", "O", "O")  # of the entity itself, the other piece is in dispute too
    assert settle([ann, shorter]) == ((None, "O", None, "O"), (0, 2), False)


def test_a_later_piece_that_began_where_nothing_is_said_holds_that_token_too() -> None:
    ann, bob = said("ann", "B-ADR", "O", None, "I-ADR…"), said("bob", "B-ADR", "O", "B-ADR…", "O")
    assert settle([ann, bob]) == ((None, "O", None, None), (0, 2, 3), False)
    silent = said("bob", "O", None, "O", None)
    assert settle([ann, silent]).disputed == (0, 2, 3)


def test_plain_labels_are_in_dispute_token_by_token() -> None:
    assert settle([said("ann", "NOUN", "VERB"), said("bob", "NOUN", "NOUN")]) == (("NOUN", None), (1,), False)


def test_an_adjudication_wins_and_two_that_differ_are_in_dispute_again() -> None:
    ann, bob = said("ann", "B-PER", "I-PER", "O"), said("bob", "B-PER", "O", "O")
    final = said("cat", "B-LOC", "I-LOC", None, adjudicated=True)
    assert settle([final, ann, bob]) == (("B-LOC", "I-LOC", "O"), (), False)
    assert settle([said("cat", "O", None, None, adjudicated=True), ann, bob]) == (("O", None, "O"), (1,), False)
    other = said("dan", "B-LOC", "O", None, adjudicated=True)
    assert settle([final, other, ann, bob]) == ((None, None, "O"), (0, 1), False)
    assert settle([final, said("cat", "O", "O", None, adjudicated=True, line=2), ann]).tags == ("O", "O", "O")
    assert settle([said("ann", "O", "O", "O", adjudicated=True), ann]) == (("O", "O", "O"), (), False)


def test_each_line_without_a_reviewer_speaks_for_itself() -> None:
    assert list(by_reviewer([said("", "O"), said("", "O", line=3)])) == ["nobody.jsonl", "nobody.jsonl:3"]
    notes = [said("ann", "O")._replace(review=Review("ann", note=note)) for note in ("why", "")]
    assert last_words(notes) == {"ann": (("O",), "why", False)}


TAGS = st.sampled_from(["O", "O", "B-X", "I-X", "B-X…", "I-X…", "B-Y", "I-Y", None])


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.tuples(*[TAGS] * n), min_size=1, max_size=4)))
def test_nothing_is_known_that_somebody_denies_and_no_half_span(versions: list[tuple[Tag, ...]]) -> None:
    decisions = [said(f"r{n}", *tags) for n, tags in enumerate(versions)]
    outcome = settle(decisions)
    for position, tag in enumerate(outcome.tags):
        told = {tags[position] for tags in versions} - {None}
        assert tag is None or told == {tag}
        assert (position in outcome.disputed) <= (tag is None)
        assert tag is not None or not told or position in outcome.disputed
    for tags in versions:
        for span in find_spans(tags):
            known = [outcome.tags[position] is not None for position in span.tokens]
            assert all(known) or not any(known)
    assert settle(decisions[::-1]) == outcome
