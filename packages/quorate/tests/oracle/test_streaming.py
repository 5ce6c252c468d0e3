"""A stream against a fit of everything at once, and the step against plain sums."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from by_name import bsc, from_file, streamed
from quorate import Corpus, InputError, SettingsError, score
from quorate.corpus.simulate import Behaviour, crowd
from quorate.estimators.streaming import batches, fit_stream
from simulated_crowds import sentences


@pytest.fixture(scope="module")
def stream() -> Corpus:
    people = {f"a{n}": Behaviour(miss=0.1 + 0.08 * n, confuse=0.03 * n, invent=0.005) for n in range(5)}
    return crowd(sentences(600, seed=41), people, per_document=4, seed=6)


@pytest.mark.parametrize("annotator", ["acc", "spam", "cv", "cm", "seq"])
def test_a_stream_is_nearly_as_good_as_everything_at_once(stream: Corpus, annotator: str) -> None:
    gold = [one.gold for one in stream]
    whole = bsc(f"bsc-{annotator}", max_iter=10).fit(stream)
    piecewise = streamed(batches(stream, 60), f"bsc-{annotator}", max_iter=10)
    one, other = (score.strict(tags, gold).f1 for tags in (whole.result_.tags, piecewise.predict(stream)))
    assert other > one - 0.02
    np.testing.assert_allclose(piecewise.annotators_.n_labels, whole.annotators_.n_labels)
    np.testing.assert_allclose(piecewise.annotators_.accuracy, whole.annotators_.accuracy, rtol=0, atol=0.03)


def test_without_forgetting_counts_are_sums(stream: Corpus) -> None:
    """ρ = 1/t with batches of one size: every batch weighs the same, so that all labels given are there."""
    model = streamed(batches(stream, 100), "bsc-cm", forgetting=1.0, temper=1.0)
    tokens = sum(len(one.tokens) for one in stream)
    assert model.fitted_.model.text is not None
    words = model.fitted_.model.text.counts
    assert words.sum() == pytest.approx(tokens)
    number = {word: place for place, word in enumerate(model.fitted_.words)}
    seen = np.bincount([number[token] for one in stream for token in one.tokens], minlength=len(number))
    np.testing.assert_allclose(words.sum(axis=1), seen, rtol=0, atol=1e-6)
    given = sum(len(one.tokens) * len(one.annotations) for one in stream)
    assert model.fitted_.model.annotators.arrays()["annotators"].sum() == pytest.approx(given)


def test_the_stream_is_taken_once_and_the_model_can_be_kept(stream: Corpus, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    model = streamed(batches(iter(stream), 250), "bsc-seq", progress=lambda *step: told.append(step), max_iter=5)
    assert told == [(1, 250), (2, 500), (3, 600)]
    assert model.meta_["documents"] == 600
    model.save(tmp_path / "m")
    again = from_file(tmp_path / "m")
    part = Corpus(stream.documents[:20])
    assert again.predict(part) == model.predict(part)
    with pytest.raises(AttributeError, match="kept no documents"):
        _ = model.result_


def test_mistakes_say_what_to_do(stream: Corpus) -> None:
    with pytest.raises(InputError, match="no document"):
        fit_stream([])
    with pytest.raises(SettingsError, match="'mv' cannot be fitted to a stream"):
        fit_stream([stream], "mv")
    with pytest.raises(SettingsError, match="forgetting must be above"):
        fit_stream([stream], forgetting=0.2)
    with pytest.raises(SettingsError, match="size of a batch"):
        list(batches(stream, 0))
