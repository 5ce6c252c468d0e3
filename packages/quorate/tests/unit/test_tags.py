"""Schemes, spans ⇄ tags, repair."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme, TagSet, find_spans
from quorate.errors import InputError


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["O", "B-X", "I-X"], Scheme.BIO),
        (["O", "I-X"], Scheme.IO),
        (["O", "B-X", "E-X"], Scheme.BIOES),
        (["S-X"], Scheme.BIOES),
        (["NOUN", "VERB"], Scheme.PLAIN),
        (["O", "NOUN"], Scheme.PLAIN),
    ],
)
def test_scheme_is_inferred(tags: list[str], scheme: Scheme) -> None:
    assert TagSet.infer([*tags, "O"] if scheme is not Scheme.PLAIN else tags).scheme is scheme


def test_a_stray_tag_is_an_error_and_not_a_plain_scheme() -> None:
    with pytest.raises(InputError, match="'PER' is not of the scheme BIO"):
        TagSet.infer(["O", "B-PER", "PER"])


def test_nothing_but_outside_is_an_error() -> None:
    with pytest.raises(InputError, match="every tag is 'O'"):
        TagSet.infer(["O"], Scheme.BIO)


def test_forbidden_transitions_of_bio() -> None:
    tags = TagSet.of_types(Scheme.BIO, ["X", "Y"])
    forbidden = {(tags.labels[i], tags.labels[j]) for i, j in np.argwhere(~tags.allowed)}
    assert forbidden == {
        ("O", "I-X"), ("O", "I-Y"), ("B-X", "I-Y"), ("I-X", "I-Y"), ("B-Y", "I-X"), ("I-Y", "I-X"),
    }  # fmt: skip


def test_forbidden_transitions_of_bioes() -> None:
    tags = TagSet.of_types(Scheme.BIOES, ["X", "Y"])
    may_follow = {
        before: {tags.labels[j] for j in np.flatnonzero(tags.allowed[i])} for i, before in enumerate(tags.labels)
    }
    outside = {"O", "B-X", "S-X", "B-Y", "S-Y"}
    assert may_follow["O"] == may_follow["E-X"] == may_follow["S-Y"] == outside
    assert may_follow["B-X"] == may_follow["I-X"] == {"I-X", "E-X"}
    assert {tags.labels[j] for j in np.flatnonzero(~tags.allowed_last)} == {"B-X", "I-X", "B-Y", "I-Y"}


@st.composite
def spans_of_a_document(draw: st.DrawFn) -> tuple[list[Span], int]:
    length = draw(st.integers(1, 12))
    cuts = sorted(draw(st.sets(st.integers(0, length))) | {0, length})
    spans = [Span(a, b, draw(st.sampled_from(["X", "Y"]))) for a, b in pairwise(cuts) if draw(st.booleans())]
    return spans, length


@given(spans_of_a_document(), st.sampled_from([Scheme.BIO, Scheme.BIOES]))
def test_spans_to_tags_and_back(document: tuple[list[Span], int], scheme: Scheme) -> None:
    spans, length = document
    tagset = TagSet.of_types(scheme, ["X", "Y"])
    tags = tagset.tags(spans, length)
    assert tagset.is_valid(tags)
    assert tagset.spans(tags) == spans
    assert find_spans(tags, orphans=False) == spans


@given(st.lists(st.sampled_from([None, "O", "B-X", "I-X", "B-Y", "I-Y"]), min_size=1, max_size=10))
def test_repair_of_bio_turns_orphans_into_beginnings(tags: list[str | None]) -> None:
    tagset = TagSet.of_types(Scheme.BIO, ["X", "Y"])
    codes = np.array([-1 if tag is None else tagset.index[tag] for tag in tags], np.int16)
    starts = np.array([0, len(codes)])
    repaired = tagset.repaired(codes, starts)
    assert not tagset.invalid_positions(repaired.codes, starts).size
    expected, before = [], None
    for tag in tags:
        if tag and tag[0] == "I" and (before is None or before[1:] != tag[1:]):
            tag = "B" + tag[1:]
        expected.append(tag)
        before = tag
    assert [None if code < 0 else tagset.labels[code] for code in repaired.codes] == expected
    assert repaired.changed == sum(a != b for a, b in zip(tags, expected, strict=True))


@given(st.lists(st.sampled_from(["O", "B-X", "I-X", "E-X", "S-X", "I-Y", "E-Y"]), min_size=1, max_size=10))
def test_repair_of_bioes_is_valid_and_leaves_valid_tags_alone(tags: list[str]) -> None:
    tagset = TagSet.of_types(Scheme.BIOES, ["X", "Y"])
    codes = np.array([tagset.index[tag] for tag in tags], np.int16)
    repaired = tagset.repaired(codes, np.array([0, len(codes)]))
    mended = [tagset.labels[code] for code in repaired.codes]
    assert tagset.is_valid(mended)
    assert mended == tags or not tagset.is_valid(tags)


def test_repair_leaves_the_rest_of_a_sequence_alone() -> None:
    tagset = TagSet.of_types(Scheme.BIOES, ["X"])
    tags = ["B-X", None, "O", "I-X"]
    codes = np.array([-1 if tag is None else tagset.index[tag] for tag in tags], np.int16)
    repaired = tagset.repaired(codes, np.array([0, 4]))
    assert [None if code < 0 else tagset.labels[code] for code in repaired.codes] == ["B-X", None, "O", "S-X"]
    assert repaired.changed == 1


def test_tags_without_a_type_get_a_hint() -> None:
    with pytest.raises(InputError, match="tags B, I, O carry no type"):
        TagSet.infer(["B", "I", "O"])
    assert TagSet.infer(["B", "I", "O"], Scheme.PLAIN).scheme is Scheme.PLAIN


def test_sequences_laid_end_to_end_do_not_touch() -> None:
    tagset = TagSet.of_types(Scheme.BIO, ["X"])
    codes = np.array([1, 2, 2, 0], np.int16)  # B-X | (empty) | I-X I-X O
    assert tagset.invalid_positions(codes, np.array([0, 1, 1, 4])).tolist() == [1]
