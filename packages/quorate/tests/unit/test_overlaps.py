"""Which spans may be there together, against a look at every pair; and the layers of those that overlap."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quorate
from quorate.corpus.overlaps import MOST_DEEP, OverlapRule, Overlaps, conflict, part
from quorate.corpus.records import Document
from quorate.corpus.spans import CharSpan, Span
from quorate.errors import InputError
from quorate.formats.layering import Layering, deal, deal_into, named
from quorate.formats.marked import Placed

TOKENS = [(start, start + 3) for start in range(0, 40, 4)]
MARKS = st.tuples(st.integers(0, 30), st.integers(1, 12), st.sampled_from("AB"))
SPANS = st.lists(MARKS.map(lambda mark: CharSpan(mark[0], mark[0] + mark[1], mark[2])), max_size=12, unique=True)


def may(one: CharSpan, other: CharSpan, allowed: Overlaps) -> bool:
    """Whether two spans may be there together."""
    shares = one.start < other.end and other.start < one.end
    inside = (one.start <= other.start and other.end <= one.end) or (other.start <= one.start and one.end <= other.end)
    return not shares or allowed is Overlaps.ANY or (allowed is Overlaps.NESTED and inside)


def deepest(spans: list[CharSpan]) -> int:
    """The most spans on one token."""
    return max((sum(one.start < end and start < one.end for one in spans) for start, end in TOKENS), default=0)


@given(SPANS, st.sampled_from(list(Overlaps)), st.integers(1, 4))
def test_what_is_kept_may_be_there_and_what_is_left_may_not(
    spans: list[CharSpan], allowed: Overlaps, limit: int
) -> None:
    rule = OverlapRule(allowed, limit)
    kept, left = part(spans, rule, TOKENS)
    assert sorted([*kept, *left]) == sorted(spans)
    assert all(may(one, other, allowed) for one in kept for other in kept if one is not other)
    if allowed is not Overlaps.NONE:
        assert deepest(kept) <= limit
    for span in left:
        with_it = [*kept, span]
        crowded = allowed is not Overlaps.NONE and deepest(with_it) > limit
        assert crowded or not all(may(span, other, allowed) for other in kept)
        against = conflict(span, kept, rule).other
        assert against is None or not may(span, against, allowed)
        assert against is not None or crowded


def placed(*spans: Span, number: int = 0, length: int = 60) -> Placed:
    return Placed(Document(str(number), ("w",) * length), {"ann": list(spans)}, None)


ORG, LOC, FLAT = Span(0, 5, "ORG"), Span(1, 3, "LOC"), Span(8, 9, "LOC")


def test_types_part_from_one_in_fifty_documents_on_and_from_five_on() -> None:
    def layers(nested: int, others: int) -> list[str]:
        documents = [placed(ORG, LOC, number=n) for n in range(nested)]
        documents += [placed(ORG, FLAT, number=nested + n) for n in range(others)]
        return [layer.name for layer, _ in deal(documents)]

    assert layers(1, 0) == layers(1, 9) == layers(2, 18) == layers(5, 245) == ["LOC", "ORG"]
    assert layers(1, 10) == layers(4, 46) == layers(5, 246) == ["LOC+ORG", "LOC (1 deep)"]


def test_one_mark_changes_the_layers_of_its_document_alone() -> None:
    documents = [placed(ORG, FLAT, number=n) for n in range(60)]
    ((_, before),) = deal(documents)
    documents[7] = placed(ORG, LOC, FLAT, number=7)
    layering = Layering[int]()
    for n, document in enumerate(documents):
        layering.put(n, document)
    (base, after), (deep, rest) = deal(documents)
    assert [document.annotations for n, document in enumerate(after) if n != 7] == [
        document.annotations for n, document in enumerate(before) if n != 7
    ]
    assert sum(len(document.annotations["ann"]) for document in rest) == 1
    assert (base.depth, deep.depth, sorted(layering.layers(), key=lambda layer: layer.depth)) == (0, 1, [base, deep])
    assert (layering.rare, layering.needing_rare) == ({deep}, {7})


def test_layers_follow_from_the_documents_and_not_from_what_they_were() -> None:
    chance = random.Random(3)
    layering, stands = Layering[int](), dict[int, Placed]()

    def some() -> Placed:
        spans = {
            Span(start, start + chance.randrange(1, 6), chance.choice("ABC"))
            for start in (chance.randrange(40) for _ in range(chance.randrange(6)))
        }
        return placed(*sorted(spans))

    for _ in range(300):
        number = chance.randrange(12)
        stands[number] = some()
        layering.put(number, stands[number])
        fresh = Layering[int]()
        for n, document in stands.items():
            fresh.put(n, document)
        assert layering.layers() == fresh.layers() == [layer for layer, _ in deal(list(stands.values()))]
        assert layering.rare == fresh.rare


def test_no_span_is_lost_and_none_overlaps_in_a_layer() -> None:
    chance = random.Random(5)
    for _ in range(100):
        spans = sorted({
            Span(start, start + chance.randrange(1, 12), chance.choice("AB"))
            for start in (chance.randrange(40) for _ in range(15))
        })  # fmt: skip
        dealt = deal([placed(*spans)])
        own = [document.annotations["ann"] for _, (document,) in dealt]
        assert sorted(span for each in own for span in each) == spans
        assert not any(one.overlaps(other) for each in own for one in each for other in each if one is not other)
        crowded = max(sum(span.start <= token < span.end for span in spans) for token in range(60))
        deepest_layer = max(layer.depth for layer, _ in dealt)
        assert deepest_layer <= crowded  # the first layer, and the colours of the rest
        held = named(layer for layer, _ in dealt)
        again = deal_into(held, [placed(*spans)])
        assert [document.annotations["ann"] for (document,) in again.values()] == own


def test_too_many_spans_on_a_token_are_refused() -> None:
    many = [Span(0, 1 + n, "A") for n in range(MOST_DEEP + 1)]
    with pytest.raises(InputError, match=f"{MOST_DEEP + 1} spans of one annotator share a token"):
        deal([placed(*many, length=100)])
    assert len(deal([placed(*many[:-1], length=100)])) == MOST_DEEP


def test_layers_are_found_in_a_time_that_grows_as_spans_do() -> None:
    def seconds(n: int) -> float:
        spans = [Span(8 * k, 8 * k + 8 - depth, "AB"[depth % 2]) for k in range(n) for depth in range(4)]
        began = time.process_time()
        deal([placed(*spans, length=8 * n)])
        return time.process_time() - began

    seconds(100)
    few, many = (min(seconds(n) for _ in range(3)) for n in (2_000, 16_000))
    assert many < 24 * max(few, 0.01)


def test_rare_layers_are_kept_and_not_combined() -> None:
    documents = [
        quorate.Document(str(n), tuple("abcdefgh"), {"x": ("B-A", "I-A", "I-A", "O", "B-B", "O", "O", "O")})
        for n in range(20)
    ]
    inner = [
        quorate.Document(str(n), tuple("abcdefgh"), {"x": ("O", "B-B" if n == 3 else "O", *["O"] * 6)})
        for n in range(20)
    ]
    layers = quorate.Layers({"A+B": quorate.Corpus(documents), "B": quorate.Corpus(inner)}, rare=["B"])
    assert set(layers.marked) == {"A+B"}
    assert set(quorate.LayeredModel(quorate.BSC("cm", max_iter=3)).fit(layers).models_) == {"A+B"}
