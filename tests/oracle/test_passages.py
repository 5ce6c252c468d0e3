"""Passages: of what is believed of a span beforehand, what is said of its tokens counts more than elsewhere."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import simulated_crowds as crowds
import quorate
from quorate import BSC, Corpus, Result
from quorate.choose.evidence import span_benches
from quorate.choose.hidden import hide
from quorate.crowd.encode import encode
from quorate.crowd.sharing import Sharing
from quorate.estimators.options import EvidenceName
from quorate.model import loop
from quorate.model.candidates import looked_up, voted_spans
from quorate.model.consensus import conclude
from quorate.model.engines.factory import Engines
from quorate.model.parts.responses import Responses
from quorate.model.places import without_types
from quorate.model.settings import Evidence
from quorate.model.span_model import WEIGHTS_OF_PASSAGES, SpanModel, prior_log_odds
from quorate.model.spans import Heard
from quorate.model.calibration import AS_STATED

CLOSE: Any = {"rtol": 1e-9, "atol": 1e-9}
FIXED: dict[str, Any] = {"annotator": "cm", "epsilon0": 10.0, "temper": 0.6, "max_iter": 3, "tagger": None}


@pytest.fixture(scope="module")
def jury() -> Corpus:
    return without_types(crowds.jury(8, 5, 4))


def log_odds(p: float) -> float:
    return log(p) - log(1 - p)


def test_beliefs_of_spans_and_of_passages_are_what_the_page_says() -> None:
    p, words, vote, middle = 0.4, 3.0, 0.8, -1.2
    by_text_and_bounds = 0.5 * words + 0.5 * middle
    likely, said = np.array([p]), np.array([words])
    assert prior_log_odds(likely, said, vote, middle) == pytest.approx(
        0.5 * log_odds(0.7 * p + 0.3 * vote) + by_text_and_bounds
    )
    as_passage = prior_log_odds(likely, said, vote, middle, WEIGHTS_OF_PASSAGES)
    assert as_passage == pytest.approx(log_odds(0.5 * p + 0.5 * vote) + by_text_and_bounds)


def priors(corpus: Corpus, kind: EvidenceName) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Of every candidate: what is believed of it beforehand, what the token model says, and a vote on its tokens."""
    model = BSC(**FIXED, evidence=kind).fit(corpus)
    encoded = encode(corpus, model.tagset_)
    with closing(Engines().over(encoded)) as engine:
        heard, spans = model._heard(encoded, encoded), SpanModel(Responses.of(len(encoded.annotators)))
        found = conclude(engine, model._model, heard, model._settings, AS_STATED, spans=spans).evidence
    assert found is not None
    return found.engine.prior, found.candidates.likely, looked_up(found.candidates, voted_spans(encoded), encoded)


def test_a_fit_hears_passages_as_such(jury: Corpus) -> None:
    of_spans, likely, voted = priors(jury, "spans")
    of_passages, same, _ = priors(jury, "passages")
    np.testing.assert_array_equal(likely, same)  # the token model is the same
    spans, passages = (np.clip((1 - share) * likely + share * voted, 0.001, 0.999) for share in (0.3, 0.5))
    more = np.log(passages / (1 - passages)) - 0.5 * np.log(spans / (1 - spans))
    np.testing.assert_allclose(of_passages - of_spans, more, **CLOSE)


def test_hidden_annotators_judge_passages_as_such(jury: Corpus) -> None:
    model = BSC(**FIXED, evidence="passages").fit(jury)
    hidden = hide(encode(jury, model.tagset_))
    assert hidden is not None
    with closing(Engines().over(hidden.rest)) as engine:
        tokens = loop.decode(engine, model._model, hidden.rest.cells)
        for kind in (Evidence.SPANS, Evidence.PASSAGES):
            (bench,) = span_benches([hidden], [engine], [model._model], [tokens], kind, 1.0, None, Sharing.of())
            heard = Heard(hidden.rest, hidden.rest)
            whole = conclude(engine, model._model, heard, replace(model._settings, evidence=kind), AS_STATED).evidence
            assert whole is not None
            expected = whole.only(hidden.documents, hidden.sample).engine.prior
            np.testing.assert_allclose(bench.evidence.engine.prior, expected, **CLOSE)


def test_a_saved_model_of_passages_goes_on_as_it_was(jury: Corpus, tmp_path: Path) -> None:
    model = BSC(**FIXED, evidence="passages").fit(jury)
    model.save(tmp_path / "jury.quorate")
    again = quorate.load(tmp_path / "jury.quorate")
    assert isinstance(again, BSC)
    assert again.settings_["evidence"] == "passages"
    same(again.combine(jury), model.result_)
    other = BSC(**FIXED, evidence="spans").fit(jury).result_
    assert [one.spans for one in other] != [one.spans for one in model.result_]


def same(one: Result, other: Result) -> None:
    assert one.tags == other.tags
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_allclose(mine.token_confidence, theirs.token_confidence, **CLOSE)
