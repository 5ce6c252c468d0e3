"""How many spans nobody touched: what documents and dials expect beyond what was marked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import quorate
from quorate import Corpus, Document
from quorate.corpus.simulate import Behaviour, crowd
from quorate.corpus.tags import find_spans
from quorate.model.spans import _unseen_rate
from simulated_crowds import sentences


def expected(corpus: Corpus) -> tuple[float, float]:
    """How many spans a consensus on spans expects, and how many there are."""
    result = quorate.aggregate(corpus, "bsc-cm")
    true = sum(len(result.tagset.spans(document.gold or ())) for document in corpus)
    return float(result.span_tallies().true.sum()), float(true)


def test_spans_that_nobody_touched_are_expected() -> None:
    people = {f"a{n}": Behaviour(miss=0.5, invent=0.002) for n in range(3)}
    corpus = crowd(sentences(400, seed=3), people, seed=3)
    spans = quorate.BSC("cm").fit(corpus).fitted_.spans
    assert spans is not None
    untouched = 0
    for document in corpus:
        touched = [any(tags[n] != "O" for tags in document.annotations.values()) for n in range(len(document.tokens))]
        untouched += sum(not any(touched[span.start : span.end]) for span in find_spans(document.gold or ()))
    assert untouched > 40
    assert spans.unseen * corpus.n_tokens == pytest.approx(untouched, rel=0.4)


def test_what_the_candidates_have_of_them_is_not_expected_once_more() -> None:
    """By hand: 60 spans that one of three found, 40 that two did, and 10 that nobody marked but the text tells."""
    touched = np.repeat([1.0, 2.0, 0.0], [60, 40, 10])
    candidates: Any = SimpleNamespace(pair_start=np.array([0, 3]), document=np.zeros(110, np.int64), touched=touched)
    rate = _unseen_rate(candidates, np.ones(110), np.array([0, 1000]))
    assert rate == pytest.approx((2 / 3 * 60 * 59 / (2 * 41) - 10) / 1000)
    assert _unseen_rate(candidates, np.where(touched == 1, 0.5, 1.0), np.array([0, 1000])) == 0.0


def test_one_annotator_a_document_says_nothing_of_what_others_would_have_found() -> None:
    people = {f"a{n}": Behaviour(miss=0.2, invent=0.002) for n in range(3)}
    corpus = crowd(sentences(200, seed=4), people, per_document=1, seed=4)
    found, true = expected(corpus)
    assert found < 1.2 * true
    result = quorate.aggregate(corpus)
    assert np.median(result.confidence) > 0.2


def test_a_handful_of_documents_is_not_swamped_by_what_nobody_saw() -> None:
    said = {"ann": ("B-X", "O", "O"), "bob": ("O", "O", "O")}
    corpus = Corpus([Document(str(n), ("a", "b", "c"), said) for n in range(4)])
    result = quorate.aggregate(corpus, "bsc-cm")
    assert result.span_tallies().true.sum() <= 2 * sum(one.probabilities[:, 1].sum() for one in result) + 1e-9
