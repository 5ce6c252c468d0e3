"""Annotators are judged by the consensus on spans: what the token model knows of them is counted once more under it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import simulated_crowds as crowds
import quorate
from quorate import Corpus, score
from quorate.choose.silence import first_votes
from quorate.corpus.profiles import Believed
from quorate.corpus.records import hard_tags
from quorate.corpus.tags import Invalid
from quorate.crowd.algebra import with_annotator
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode, encode_known
from quorate.crowd.sharing import Sharing
from quorate.model import loop
from quorate.model.build import model_of
from quorate.model.consensus import conclude, counted_again
from quorate.model.engines.threads import ThreadsEngine
from quorate.model.settings import AnnotatorModel, Evidence, Settings
from quorate.model.span_model import SpanModel
from quorate.model.spans import Heard, fit_spans, likely_spans, span_evidence
from quorate.model.calibration import AS_STATED
from quorate.taggers.loop import TAGGER

CLOSE: Any = {"rtol": 1e-9, "atol": 1e-9}


def fitted(
    weighed: Crowd, known: NDArray[np.int32] | None, annotator: AnnotatorModel
) -> tuple[ThreadsEngine, loop.Model]:
    engine = ThreadsEngine(weighed, known=known)
    settings = Settings(annotator=annotator, temper=0.8)
    blank = model_of(settings, weighed.tagset, weighed, Believed())
    return engine, loop.more_passes(engine, loop.initial_model(engine, blank, weighed.cells), weighed.cells, 2)


@pytest.mark.parametrize("annotator", [AnnotatorModel.CM, AnnotatorModel.SEQ])
@pytest.mark.parametrize("sharing", [Sharing.of(), Sharing.of([(0, 1, 0.6)])], ids=["alone", "copies"])
def test_what_annotators_said_is_counted_under_the_consensus_that_is_given_out(
    annotator: AnnotatorModel, sharing: Sharing
) -> None:
    corpus = Corpus(quorate.sample().documents[:60])
    encoded = encode(corpus, corpus.tagset())
    gold = {one.id: hard_tags(one.gold) for one in corpus.documents[:5] if one.gold is not None}
    assert gold
    known = encode_known(corpus, encoded.tagset, gold, Invalid.REPAIR)
    weighed = sharing.weighed(encoded)
    engine, model = fitted(weighed, known, annotator)
    with closing(engine):
        heard = Heard(encoded, weighed, known, sharing)
        again = counted_again(engine, model, heard)
        evidence = span_evidence(model, heard, likely_spans(engine, model, heard))
        first = SpanModel(fit_spans(evidence).responses)  # counts nothing again
        settings = Settings(annotator=annotator, evidence=Evidence.SPANS)
        given_out = conclude(engine, model, heard, settings, AS_STATED, spans=first)
        whole = conclude(engine, model, heard, settings, AS_STATED)
    counts = np.zeros((len(weighed.cells.label), len(encoded.tagset.labels)))
    for token in range(encoded.n_tokens):
        for event in range(encoded.event_start[token], encoded.event_start[token + 1]):
            weight = 1.0 if weighed.event_weight is None else weighed.event_weight[event]
            counts[encoded.event_cell[event]] += weight * given_out.decoded.posterior[token]
    expected = replace(model, annotators=model.annotators.updated(weighed.cells, 0.8 * counts))
    np.testing.assert_allclose(again.tables(encoded.cells).cells, expected.tables(encoded.cells).cells, **CLOSE)
    for found in (whole.model, whole.spans.informs(model) if whole.spans is not None else model):
        np.testing.assert_array_equal(found.tables(encoded.cells).cells, again.tables(encoded.cells).cells)
    assert again.truth is model.truth
    assert again.text is model.text
    assert not np.allclose(again.tables(encoded.cells).cells, model.tables(encoded.cells).cells)


def test_a_fit_on_spans_keeps_it_and_one_on_tokens_is_left_alone() -> None:
    corpus = Corpus(quorate.sample().documents[:80])
    for evidence in ("spans", "tokens"):
        model = quorate.BSC("cm", epsilon0=10.0, temper=0.9, max_iter=3, evidence=evidence, tagger=None).fit(corpus)
        encoded = model.encoded(corpus)
        with closing(ThreadsEngine(encoded)) as engine:
            blank = model_of(model.checked_settings(), encoded.tagset, encoded, Believed())
            votes = first_votes(encoded, {}, model.checked_settings().start)
            start = loop.initial_model(engine, blank, encoded.cells, model.checked_settings().start, None, votes)
            expected = loop.more_passes(engine, start, encoded.cells, 3)
            if evidence == "spans":
                expected = counted_again(engine, expected, Heard(encoded, encoded))
        found = model.model_state().output_model
        np.testing.assert_allclose(found.tables(encoded.cells).cells, expected.tables(encoded.cells).cells, **CLOSE)


def test_it_finds_more_where_bounds_are_vague_and_annotators_many(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = crowds.vague_and_sparse()
    gold = [hard_tags(one.gold or ()) for one in corpus]

    def f1() -> float:
        return score.strict(quorate.aggregate(corpus, tagger=None).tags, gold).f1

    counted = f1()
    for module in ("quorate.model.consensus", "quorate.choose.evidence"):
        monkeypatch.setattr(f"{module}.counted_again", lambda engine, model, heard, sharpness: model)
    assert counted > f1() + 0.005


def test_a_saved_model_keeps_it_and_an_update_makes_it_anew(tmp_path: Path) -> None:
    documents = quorate.sample().documents
    model = quorate.BSC("cm", epsilon0=10.0, temper=0.9, max_iter=3, evidence="spans", tagger=None)
    model.fit(Corpus(documents[:100]))
    model.save(tmp_path / "model.quorate")
    loaded = quorate.load(tmp_path / "model.quorate")
    assert isinstance(loaded, quorate.BSC)
    new = Corpus(documents[100:150])
    assert loaded.combine(new).spans == model.combine(new).spans
    found, kept = (one.model_state().output_model for one in (model, loaded))
    cells = model.encoded(new).cells
    np.testing.assert_array_equal(found.tables(cells).cells, kept.tables(cells).cells)
    model.update(new)
    state = model.model_state()
    assert state.spans is not None
    assert state.spans.annotators is None
    _ = model.result_
    assert model.model_state().output_model is not model.model_state().model


def test_one_changed_label_leaves_other_documents_alone() -> None:
    corpus = crowds.vague_and_sparse()
    model = quorate.BSC("cm", epsilon0=10.0, temper=0.9, max_iter=5, evidence="spans", tagger=None).fit(corpus)
    before = model.result_.tags
    one = corpus[0]
    name = next(iter(one.annotations))
    nothing = ("O",) * len(one.tokens)
    model.update(Corpus([replace(one, annotations={name: nothing})]))
    changed = [d for d, (old, new) in enumerate(zip(before, model.result_.tags, strict=True)) if old != new]
    assert len(changed) <= 0.01 * len(corpus)


def test_with_a_tagger_nothing_is_counted_again() -> None:
    corpus = Corpus(quorate.sample().documents[:60])
    encoded = encode(corpus, corpus.tagset())
    heard = with_annotator(encoded, TAGGER, np.full(encoded.n_tokens, encoded.tagset.outside, np.int32))
    engine, model = fitted(heard, None, AnnotatorModel.CM)
    with closing(engine):
        assert counted_again(engine, model, Heard(encoded, heard)) is model
