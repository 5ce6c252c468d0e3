"""Documents, spans and tokens have one coherent set of probabilities: nothing is surer than what it contains."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quorate
from problems import random_corpus, tagset
from quorate import Corpus, Result
from quorate.corpus.tags import Scheme
from quorate.model import fit
from quorate.model.calibration import Calibration
from quorate.model.correction import FEATURES, Correction

FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)

fitted = st.fixed_dictionaries(
    {
        "annotator": st.sampled_from(["cm", "seq", "acc", "pool"]),
        "spans": st.booleans(),
        "decode": st.sampled_from(["best", "f1", "sequence"]),
        "temper": st.sampled_from([1.0, 0.6, 0.2]),
        "truth": st.sampled_from(["markov", "independent"]),
        "probabilities": st.booleans(),
    }
)
dial = st.sampled_from([{}, {}, {"precision": 0.9}, {"recall": 0.9}])
scheme = st.sampled_from([Scheme.BIO, Scheme.BIOES, Scheme.IO])
powers = st.builds(
    Calibration,
    tokens=st.sampled_from([1.0, 0.4]),
    spans=st.sampled_from([1.0, 0.3]),
    correction=st.none(),
    matched=st.none(),
)
corrections = st.none() | st.builds(
    Correction,
    documents=st.just(30),
    weights=st.tuples(*[st.floats(-2, 2)] * len(FEATURES)),
    missed=st.floats(0, 2),
    chooses=st.booleans(),
    f1=st.just((0.6, 0.5, 0.7)),
    beliefs=st.just(()),
)


def check_coherent(result: Result) -> None:
    for one, confidence in zip(result, result.confidence, strict=True):
        assert one.confidence == confidence
        assert 0 <= confidence <= min((span.sure for span in one.spans), default=1.0)
        assert confidence <= one.token_confidence.min(initial=1.0)
        assert (one.token_confidence <= 1).all()
        for span in one.spans:
            assert span.sure <= one.token_confidence[span.start : span.end].min()


def check_known_is_certain(result: Result, known: set[str]) -> None:
    for one in result:
        if one.document.id in known:
            assert one.tags == list(one.document.gold or ())
            assert one.confidence == 1.0
            assert all(span.confidence == 1.0 for span in one.spans)
            assert (one.token_confidence == 1.0).all()


@FEW
@given(st.integers(0, 10_000), scheme, fitted, dial, powers, corrections, st.booleans())
def test_nothing_is_surer_than_what_it_contains(
    seed: int,
    scheme: Scheme,
    case: dict[str, Any],
    dial: dict[str, Any],
    powers: Calibration,
    correction: Correction | None,
    some: bool,
) -> None:
    rng = np.random.default_rng(seed)
    corpus = random_corpus(rng, tagset(scheme, 2), n_documents=8, longest=5, n_annotators=4)
    known = {one.id: one.gold or () for one in corpus.documents[::3]} if some else None
    model = quorate.BSC(**case, **dial, epsilon0=1.0, max_iter=3, scheme=scheme.value)
    with pytest.MonkeyPatch.context() as patched:  # any calibration
        patched.setattr(fit, "_calibrated", lambda *_: powers)
        patched.setattr(fit, "_correction", lambda *_: correction)
        result = model.fit(corpus, known=known).result_
    assert model.calibration_ == powers._replace(correction=correction if case["spans"] else None)
    check_coherent(result)
    check_known_is_certain(result, set(known or ()))
    check_coherent(result.only([5, 2, 0]))
    check_coherent(model.combine(corpus))


@cache
def part_of_the_sample() -> Corpus:
    return Corpus(quorate.sample().documents[:60])


@pytest.mark.parametrize("spans", [True, False])
def test_defaults_and_their_calibration_give_coherent_probabilities(spans: bool) -> None:
    corpus = part_of_the_sample()
    known = {one.id: one.gold or () for one in corpus.documents[:10]}
    model = quorate.BSC(spans=spans).fit(corpus, known=known)
    result = model.result_
    check_coherent(result)
    check_known_is_certain(result, set(known))
    tallies = result.span_tallies()
    assert tallies.found.sum() == pytest.approx(sum(span.sure for spans in result.spans for span in spans))


def test_the_same_probabilities_are_written() -> None:
    result = quorate.aggregate(part_of_the_sample(), spans=False)
    with redirect_stdout(io.TextIOWrapper(io.BytesIO())) as stream:
        result.write("-")
        stream.flush()
        lines = stream.buffer.getvalue().splitlines()
    for line, one in zip(map(json.loads, lines), result, strict=True):
        assert line["confidence"] == one.confidence
        assert [span["confidence"] for span in line["spans"]] == [span.confidence for span in one.spans]
        assert line["token_confidence"] == pytest.approx(one.token_confidence.tolist(), abs=1e-6)


@pytest.mark.parametrize("spans", [False, True])
@pytest.mark.parametrize("decode", ["f1", "sequence"])
def test_probabilities_do_not_hang_on_whether_those_of_all_labels_are_kept(spans: bool, decode: str) -> None:
    given: dict[str, Any] = {
        "annotator": "cm",
        "epsilon0": 10.0,
        "temper": 0.6,
        "max_iter": 5,
        "spans": spans,
        "decode": decode,
    }
    kept, dropped = (quorate.aggregate(part_of_the_sample(), **given, probabilities=each) for each in (True, False))
    assert kept.tags == dropped.tags
    for one, other in zip(kept, dropped, strict=True):
        np.testing.assert_allclose(other.token_confidence, one.token_confidence, atol=1e-12)
        assert other.confidence == pytest.approx(one.confidence, abs=1e-12)
        assert [span.sure for span in other.spans] == pytest.approx([span.sure for span in one.spans], abs=1e-12)
    with pytest.raises(quorate.SettingsError, match="not kept"):
        dropped.probabilities  # noqa: B018
