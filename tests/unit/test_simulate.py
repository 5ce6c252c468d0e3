"""Simulated annotators do what their probabilities say."""

from __future__ import annotations

import numpy as np
import pytest

from quorate import Corpus, Document
from quorate.corpus.simulate import Behaviour, crowd
from quorate.corpus.spans import Span
from quorate.corpus.tags import find_spans

GOLD = "B-PER I-PER I-PER O O B-LOC I-LOC O B-PER O O B-LOC I-LOC I-LOC O O"
LONG = ("O",) * 200 + ("B-X", *("I-X",) * 199) + ("O",) * 200


def marked(gold: tuple[str, ...], behaviour: Behaviour, times: int = 1, seed: int = 0) -> list[list[Span]]:
    """The spans that someone marks in each of some copies of a document."""
    documents = Corpus(Document(str(n), ("w",) * len(gold), gold=gold) for n in range(times))
    return [find_spans(document.annotations["ann"]) for document in crowd(documents, {"ann": behaviour}, seed=seed)]


def test_a_crowd_of_old_is_drawn_as_ever() -> None:
    """What was measured on a crowd stands only as long as a seed gives the same crowd."""
    people = Behaviour(
        miss=0.3, confuse=0.3, start_late=0.3, start_early=0.3, end_early=0.3, end_late=0.3, split=0.5, invent=0.1,
        spam=0.2,
    )  # fmt: skip
    documents = Corpus(Document(str(n), ("w",) * 16, gold=tuple(GOLD.split())) for n in range(4))
    assert [" ".join(map(str, one.annotations["a"])) for one in crowd(documents, {"a": people}, seed=1)] == [
        "O O O O O B-LOC B-LOC B-PER B-PER O O B-LOC I-LOC I-LOC O O",
        "B-LOC B-LOC I-LOC O O O B-LOC O B-PER O B-PER O B-LOC I-LOC I-LOC B-LOC",
        "O O O B-LOC B-LOC I-LOC I-LOC B-PER I-PER O B-PER B-LOC O O B-PER O",
        "O O O O O O B-LOC O O B-PER O O O O O O",
    ]


@pytest.mark.parametrize("reach", [1.0, 2.5])
def test_vague_boundaries_move_either_way_by_so_many_tokens_on_average(reach: float) -> None:
    spans = [one for (one,) in marked(LONG, Behaviour(vague=0.4, reach=reach), times=3000)]
    for moved in (np.array([span.start - 200 for span in spans]), np.array([span.end - 400 for span in spans])):
        assert np.mean(moved != 0) == pytest.approx(0.4, abs=0.03)
        assert np.mean(np.abs(moved[moved != 0])) == pytest.approx(reach, rel=0.06)
        assert np.mean(moved[moved != 0] > 0) == pytest.approx(0.5, abs=0.05)
        assert (np.abs(moved).max() == 1) == (reach == 1.0)


def test_a_vague_span_keeps_a_token_and_stays_in_its_document() -> None:
    for spans in marked(("O", "B-X", "O"), Behaviour(vague=1.0, reach=4.0), times=300):
        assert len(spans) == 1
        assert 0 <= spans[0].start < spans[0].end <= 3


def test_who_joins_makes_one_of_two_spans_of_a_type_that_are_near() -> None:
    near = ("B-X", "I-X", "O", "B-X", "B-Y", "B-X")
    assert marked(near, Behaviour(join=1.0)) == [[Span(0, 4, "X"), Span(4, 5, "Y"), Span(5, 6, "X")]]
    far = ("B-X", *("O",) * 13, "B-X")
    assert marked(far, Behaviour(join=1.0)) == [[Span(0, 1, "X"), Span(14, 15, "X")]]
    assert marked(("B-X",) * 3, Behaviour(join=1.0)) == [[Span(0, 2, "X"), Span(2, 3, "X")]]
    often = marked(("B-X", "O", "B-X"), Behaviour(join=0.3), times=2000)
    assert np.mean([len(spans) == 1 for spans in often]) == pytest.approx(0.3, abs=0.04)
