"""Going on from a fit against doing it again: counts document by document, and tags against a fit from scratch."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quorate
from by_name import bsc, loaded
from fits import assert_same, people_on, statistics
from problems import random_corpus, tagset
from quorate import BSC, Corpus, Document, Result
from quorate.corpus.tags import Scheme
from quorate.crowd.crowd import AnnotatorPriors
from quorate.crowd.encode import encode
from quorate.errors import InputError, SettingsError
from quorate.estimators.updating import _without
from quorate.formats.jsonl import write_corpus
from quorate.model import loop
from quorate.model.build import parts_of
from quorate.model.engines.factory import Engines
from quorate.model.engines.threads import ThreadsEngine
from simulated_crowds import sentences

MODELS = ["acc", "spam", "cv", "cm", "seq", "pool"]


def agreement(one: Result, other: Result) -> float:
    same = [a == b for mine in one for a, b in zip(mine.tags, other[mine.document.id].tags, strict=True)]
    return float(np.mean(same))


@pytest.mark.parametrize("annotator", ["acc", "cv", "cm", "seq"])
@pytest.mark.parametrize("truth", ["markov", "independent"])
def test_what_a_document_put_in_is_what_is_taken_out(annotator: str, truth: str) -> None:
    """Without some documents a model is what one pass over the others alone makes of the model before."""
    corpus = people_on(sentences(40, seed=3))
    model = bsc("auto", annotator=annotator, truth=truth, max_iter=4).fit(corpus)
    before = model.fitted_.model
    gone, rest = corpus.documents[5:9], Corpus([*corpus.documents[:5], *corpus.documents[9:]])
    left = _without(model.fitted_, Engines(), model._fit_state.opened(), gone).model
    encoded = encode(rest, model.tagset_, annotators=model.fitted_.names, words=model.fitted_.words)
    counts = ThreadsEngine(encoded).run(before.tables(encoded.cells), before.truth.chain())
    expected = before.updated(encoded.cells, counts)
    assert left.text is not None
    assert expected.text is not None
    for one, other in ((left.truth.arrays(), expected.truth.arrays()), (left.text.arrays(), expected.text.arrays())):
        for name, array in one.items():
            np.testing.assert_allclose(array, other[name], rtol=0, atol=1e-9)
    for k in range(len(model.fitted_.names)):
        np.testing.assert_allclose(left.annotators.matrix(k), expected.annotators.matrix(k), rtol=0, atol=1e-12)


@pytest.mark.parametrize("annotator", MODELS)
def test_room_for_more_annotators_leaves_the_others_as_they_were(annotator: str) -> None:
    """Who is new has their prior, by their own trust; so has the model with a history in it."""
    corpus = people_on(sentences(40, seed=3))
    model = bsc("auto", annotator=annotator, max_iter=3).fit(corpus)
    K, J = len(model.fitted_.names), len(model.tagset_.labels)
    parts = [model.fitted_.model.annotators]
    if annotator != "spam":
        parts.append(bsc("auto", annotator=annotator, max_iter=3).fit(corpus, history=model).fitted_.model.annotators)
    for part in parts:
        believed = AnnotatorPriors((1.0,) * K + (1.0, 50.0))
        larger = part.grown(K + 2, believed)
        blank = parts_of(model.fitted_.settings, model.tagset_, K + 2, (), believed).annotators
        for k in range(K + 2):
            expected = part.matrix(k) if k < K else blank.matrix(k)
            np.testing.assert_allclose(larger.matrix(k), expected, rtol=1e-12)
        right = [larger.matrix(k)[:, range(J), range(J)].mean() for k in (K, K + 1)]
        assert right[0] < right[1]
        encoded = encode(corpus, model.tagset_, annotators=[*model.fitted_.names, "x", "y"])
        counts = np.ones((len(encoded.cells.label), J))
        assert np.isfinite(larger.updated(encoded.cells, counts).kl())


@pytest.mark.parametrize("annotator", MODELS)
def test_taking_a_word_back_changes_little(annotator: str) -> None:
    corpus = people_on(sentences(40, seed=3))
    model = bsc("auto", annotator=annotator, max_iter=400, tol=0.0).fit(corpus)
    before = statistics(model)
    again = corpus.documents[5:9]
    silent = [replace(one, annotations={name: ("O",) * len(one.tokens) for name in one.annotations}) for one in again]
    model.update(Corpus(silent)).update(Corpus(again)).update(Corpus(silent[:1])).update(Corpus(again[:1]))
    for name, value in statistics(model).items():
        np.testing.assert_allclose(value, before[name], rtol=0, atol=0.02, err_msg=name)


@pytest.mark.parametrize("annotator", MODELS)
def test_documents_that_have_not_changed_leave_the_fit_alone(annotator: str, tmp_path: Path) -> None:
    """The whole export of every day can be given: what is in the model already is passed over."""
    corpus = people_on(sentences(60, seed=3))
    known = {corpus[0].id: ("O",) * len(corpus[0].tokens)}
    model = bsc("auto", annotator=annotator, max_iter=3).fit(corpus, known=known)
    before, tags = statistics(model), model.result_.tags
    with (tmp_path / "export.jsonl").open("wb") as stream:
        write_corpus(corpus, stream)
    for export in (corpus, quorate.read(tmp_path / "export.jsonl")):
        for labels in (None, known, {**known, corpus[1].id: (None,) * len(corpus[1].tokens)}):
            assert model.update(export, known=labels).updated_ == (0, 0, 60)
            assert model.result_.tags == tags
    for name, value in statistics(model).items():
        np.testing.assert_array_equal(value, before[name])


def test_in_a_whole_export_only_what_is_new_counts() -> None:
    documents = people_on(sentences(60, seed=3)).documents
    less = replace(documents[7], annotations=dict(list(documents[7].annotations.items())[:2]))
    start = Corpus([*documents[:7], less, *documents[8:50]])
    whole, parts = bsc("bsc-cm").fit(start), bsc("bsc-cm").fit(start)
    whole.update(Corpus(documents))
    parts.update(Corpus([documents[7], *documents[50:]]))
    assert whole.updated_ == (10, 1, 49)
    assert parts.updated_ == (10, 1, 0)
    assert_same(whole, parts, atol=0.0)
    assert whole.meta_["documents"] == 60


def test_what_is_newly_known_of_an_old_document_is_a_change() -> None:
    documents = people_on(sentences(30, seed=8)).documents
    model = bsc("bsc-cm").fit(Corpus(documents))
    gold = ("O",) * len(documents[0].tokens)
    assert model.update(Corpus(documents), known={documents[0].id: gold}).updated_ == (0, 1, 29)
    assert tuple(model.result_[0].tags) == gold
    assert model.update(Corpus(documents)).updated_ == (0, 0, 30)
    assert tuple(model.result_[0].tags) == gold


def test_gold_that_came_later_is_there_to_score_against() -> None:
    documents = people_on(sentences(30, seed=8)).documents
    model = bsc("bsc-cm").fit(Corpus([replace(one, gold=None) for one in documents]))
    assert model.update(Corpus(documents)).updated_ == (0, 0, 30)
    assert model.result_.corpus[0].gold == documents[0].gold


@pytest.mark.parametrize("annotator", MODELS)
def test_passes_over_everything_are_those_of_the_loop(annotator: str) -> None:
    documents = people_on(sentences(60, seed=4)).documents
    few = {"annotator": annotator, "max_iter": 3}
    local = bsc("auto", **few).fit(Corpus(documents[:50])).update(Corpus(documents[50:]))
    whole = bsc("auto", **few).fit(Corpus(documents[:50])).update(Corpus(documents[50:]), passes=4)
    encoded = encode(Corpus(documents), local.tagset_, annotators=local.fitted_.names, words=local.fitted_.words)
    more = loop.more_passes(ThreadsEngine(encoded), local.fitted_.model, encoded.cells, 4)
    local.fitted_ = replace(local.fitted_, model=more)
    assert_same(whole, local, atol=1e-9)


@pytest.mark.parametrize("annotator", ["cm", "seq"])
def test_an_update_agrees_with_a_fit_from_scratch(annotator: str) -> None:
    documents = people_on(sentences(400, seed=5)).documents
    changed = [
        replace(one, annotations=dict(sorted(one.annotations.items())[:2])) if number % 50 == 0 else one
        for number, one in enumerate(documents[:396])
    ]
    model = bsc("auto", annotator=annotator).fit(Corpus(changed))
    late = [Document(one.id, one.tokens, dict(sorted(one.annotations.items())[2:])) for one in documents[:396:50]]
    model.update(Corpus([*late, *documents[396:]]))  # new labels of old documents, and new documents
    scratch = bsc("auto", annotator=annotator).fit(Corpus(documents))
    assert agreement(model.result_, scratch.result_) >= 0.997
    assert model.annotators_["a1"].n_labels == scratch.annotators_["a1"].n_labels
    assert model.meta_["documents"] == 400


def test_new_annotators_and_new_words_are_learned() -> None:
    documents = people_on(sentences(80, seed=6)).documents
    model = bsc("bsc-cm").fit(
        Corpus([replace(one, annotations=_annotations_without(one, "a5")) for one in documents[:60]])
    )
    assert "a5" not in model.annotators_.names
    model.update(Corpus(documents[60:]), passes=3)
    assert model.annotators_["a5"].n_labels > 0
    assert {token for one in documents for token in one.tokens} == set(model.fitted_.words)
    assert [one.document.id for one in model.result_] == [one.id for one in documents]


def _annotations_without(document: Document, name: str) -> dict[str, Any]:
    return {who: tags for who, tags in document.annotations.items() if who != name}


def test_labels_that_are_given_again_replace_the_old() -> None:
    documents = people_on(sentences(30, seed=7)).documents
    model = bsc("bsc-cm").fit(Corpus(documents))
    first = documents[0]
    who = min(first.annotations)
    model.update(Corpus([Document(first.id, first.tokens, {who: ("O",) * len(first.tokens)})]))
    assert set(model.result_.corpus[first.id].annotations[who]) == {"O"}
    assert len(model.result_) == 30


def test_known_labels_are_clamped_in_an_update() -> None:
    documents = people_on(sentences(30, seed=8)).documents
    model = bsc("bsc-cm").fit(Corpus(documents))
    gold = tuple("O" for _ in documents[0].tokens)
    model.update(Corpus(documents[:1]), known={documents[0].id: gold})
    assert tuple(model.result_[0].tags) == gold
    model.update(Corpus(documents[1:2]), passes=2)
    assert tuple(model.result_[0].tags) == gold


def test_documents_of_an_update_may_be_without_gold() -> None:
    """``known="inline"`` can be said every day, whether or not gold came that day."""
    documents = people_on(sentences(30, seed=8)).documents
    bare = [replace(one, gold=None) for one in documents[20:25]]
    bare += [replace(one, gold=(None,) * len(one.tokens)) for one in documents[25:]]
    model, other = (bsc("bsc-cm").fit(Corpus(documents[:20]), known="inline") for _ in range(2))
    model.update(Corpus(bare), known="inline")
    assert model.updated_ == (10, 0, 0)
    assert_same(model, other.update(Corpus(bare)), atol=0.0)
    assert model.update(Corpus(documents[20:]), known="inline").updated_ == (0, 10, 0)
    assert [tuple(tags) for tags in model.result_.tags] == [one.gold for one in documents]


def test_a_model_without_its_documents_goes_on(tmp_path: Path) -> None:
    documents = people_on(sentences(60, seed=9)).documents
    bsc("bsc-seq").fit(Corpus(documents[:50])).save(tmp_path / "m", documents=False)
    loaded, whole = quorate.load(tmp_path / "m"), bsc("bsc-seq").fit(Corpus(documents[:50]))
    assert isinstance(loaded, BSC)
    loaded.update(Corpus(documents[50:]))
    whole.update(Corpus(documents[50:]))
    assert_same(loaded, whole, atol=1e-9)
    assert len(loaded.result_) == 10
    np.testing.assert_allclose(loaded.annotators_.n_labels, whole.annotators_.n_labels)
    loaded.save(tmp_path / "again")
    again = quorate.load(tmp_path / "again")
    assert isinstance(again, BSC)
    assert again.meta_["updates"] == 1
    assert again.meta_["documents"] == 60
    with pytest.raises(SettingsError, match="saved without its documents"):
        loaded.update(Corpus(documents[:1]), passes=1)


def test_mistakes_leave_the_fit_as_it_was() -> None:
    documents = people_on(sentences(30, seed=10)).documents
    model = bsc("bsc-cm").fit(Corpus(documents))
    before, tags = statistics(model), model.result_.tags
    with pytest.raises(InputError, match="other tokens"):
        model.update(Corpus([replace(documents[0], tokens=("x",) * len(documents[0].tokens))]))
    strange = Document(documents[1].id, documents[1].tokens, {"a0": ("B-NEW",) * len(documents[1].tokens)})
    with pytest.raises(InputError, match="'B-NEW' is not among the model's labels"):
        model.update(Corpus([strange]))
    assert model.result_.tags == tags
    for name, value in statistics(model).items():
        np.testing.assert_array_equal(value, before[name])
    model.update(Corpus(documents[2:3]))


def test_a_model_that_was_not_fitted_says_so() -> None:
    with pytest.raises(SettingsError, match="not been fitted"):
        BSC().update(quorate.sample())
    assert not hasattr(BSC(), "result_")


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(MODELS), st.sampled_from([Scheme.BIO, Scheme.PLAIN, Scheme.BIOES]))
def test_any_order_of_updates_ends_with_all_documents(seed: int, annotator: str, scheme: Scheme) -> None:
    rng = np.random.default_rng(seed)
    tags = tagset(scheme, 2)
    documents = random_corpus(rng, tags, n_documents=8, n_annotators=3).documents
    model = bsc("auto", annotator=annotator, max_iter=3, scheme=scheme.value)
    try:
        model.fit(Corpus(documents[:4]))
    except quorate.QuorateError:
        return
    for one in rng.permutation(8):
        with suppress(InputError):  # a tag that the first documents did not have
            model.update(Corpus([documents[one]]))
    for part in statistics(model).values():
        assert np.isfinite(part).all()
        assert (part >= 0).all()
    assert {one.document.id for one in model.result_} >= {one.id for one in documents[:4]}


@pytest.mark.realdata
def test_one_evening_on_ner(ner: Corpus) -> None:
    documents = ner.documents
    scratch = bsc("bsc-seq").fit(ner)
    model = bsc("bsc-seq").fit(Corpus(documents[:-60])).update(Corpus(documents[-60:]))
    assert agreement(model.result_, scratch.result_) >= 0.999


def test_a_model_without_its_documents_does_not_count_a_file_twice(tmp_path: Path) -> None:
    export, path = tmp_path / "crowd.jsonl", tmp_path / "model.quorate"
    with export.open("wb") as stream:
        write_corpus(Corpus(list(quorate.sample())[:40]), stream)
    BSC(annotator="cm").fit(quorate.read(export)).save(path, documents=False)
    with pytest.raises(InputError, match="in the model already"):
        loaded(path).update(quorate.read(export))
