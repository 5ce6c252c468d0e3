"""Lines of tags are decoded in a faster way once their tags were met: what is read is the same."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quorate

FEW_TAGS = st.sampled_from(["O", "B-PER", "I-PER", None])
MANY_TAGS = st.integers(0, 400).map(lambda number: f"tag {number}")
SOFT_TAGS = st.dictionaries(st.sampled_from(["O", "B-PER", "B-LOC"]), st.floats(0.1, 1.0), min_size=1)


@st.composite
def lines(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Documents of tags, some with tags that come late, or very many, or with probabilities."""
    records = []
    for number in range(draw(st.integers(1, 12))):
        length = draw(st.integers(1, 5))
        tag = draw(st.sampled_from([FEW_TAGS, FEW_TAGS, FEW_TAGS | SOFT_TAGS, FEW_TAGS | MANY_TAGS]))
        sequence = st.lists(tag, min_size=length, max_size=length)
        record: dict[str, Any] = {"id": str(number), "tokens": [f"w{number}"] * length}
        record["annotations"] = draw(st.dictionaries(st.sampled_from(["ann", "bob", "cho"]), sequence))
        if draw(st.booleans()):
            hard = st.lists(FEW_TAGS | MANY_TAGS, min_size=length, max_size=length)
            record["gold"] = draw(hard)
        records.append(record)
    return records


def read(records: list[dict[str, Any]]) -> quorate.Corpus:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "crowd.jsonl").write_text("\n".join(map(json.dumps, records)))
        return quorate.read(f"{folder}/crowd.jsonl")


@given(lines())
def test_tags_are_read_as_they_stand(records: list[dict[str, Any]]) -> None:
    for document, record in zip(read(records), records, strict=True):
        assert document.tokens == tuple(record["tokens"])
        assert document.annotations == {name: tuple(tags) for name, tags in record["annotations"].items()}
        assert document.gold == (tuple(record["gold"]) if "gold" in record else None)


def test_more_tags_than_are_decoded_the_faster_way() -> None:
    records = [{"id": str(n), "tokens": ["a"], "annotations": {"ann": [f"tag {n % 900}"]}} for n in range(1000)]
    assert [document.annotations["ann"] for document in read(records)] == [(f"tag {n % 900}",) for n in range(1000)]


@pytest.mark.parametrize("wrong", [[""], [7], [["O"]], "O", [{"O": -1}]])
def test_a_wrong_tag_after_right_ones_is_refused(wrong: Any) -> None:
    right = {"tokens": ["a"], "annotations": {"ann": ["O"]}}
    with pytest.raises(quorate.InputError, match=r"crowd\.jsonl:4"):
        read([right, right, right, {"tokens": ["a"], "annotations": {"ann": wrong}}])
