"""Where types are disputed, places come first: fits, files, updates, known and soft labels, dials, advice, reports."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulated_crowds as crowds
import quorate
from by_name import loaded, streamed
from problems import certain
from quorate import BSC, Corpus, Document, Result
from quorate.choose.kept import as_plain, from_plain
from quorate.corpus.records import SoftTag, Tag
from quorate.corpus.simulate import Behaviour, crowd
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme, TagSet, find_spans
from quorate.estimators.options import DecodeName, EvidenceName
from quorate.estimators.streaming import batches
from quorate.model.places import without_types
from quorate.report import write_report
from quorate.report.data import collect
from quorate.report.influence import Influence, influences
from quorate.storage.corpora import StoredCorpus, store

FIXED: dict[str, Any] = {
    "annotator": "cm",
    "epsilon0": 10.0,
    "temper": 0.6,
    "max_iter": 3,
    "evidence": "places",
    "tagger": None,
}
CLOSE: Any = {"rtol": 0, "atol": 1e-9}


@pytest.fixture(scope="module")
def jury() -> Corpus:
    return crowds.jury(10, 5, 4)


@pytest.fixture(scope="module")
def fitted(jury: Corpus) -> BSC:
    """To be looked at, not changed."""
    return BSC(**FIXED).fit(jury)


@pytest.fixture(scope="module")
def chosen(jury: Corpus) -> BSC:
    """The same by default; to be looked at, not changed."""
    model = quorate.aggregate(jury).model
    assert isinstance(model, BSC)
    return model


def fit(documents: Sequence[Document], **settings: Any) -> BSC:
    return BSC(**{**FIXED, **settings}).fit(Corpus(documents))


def moved(model: BSC, path: Path, **options: Any) -> BSC:
    """The model after a stay in a file."""
    model.save(path, **options)
    return loaded(path)


def assert_same(one: Result, other: Result) -> None:
    """All that is given out, whatever the order of the documents."""
    assert {each.document.id for each in one} == {each.document.id for each in other}
    for each in one:
        again = other[each.document.id]
        assert again.tags == each.tags
        np.testing.assert_allclose(again.probabilities, each.probabilities, **CLOSE)
        np.testing.assert_allclose(again.token_confidence, each.token_confidence, **CLOSE)
        assert again.confidence == pytest.approx(each.confidence, abs=1e-9)
        assert [span.sure for span in again.spans] == pytest.approx([span.sure for span in each.spans], abs=1e-9)


def gold_of(documents: Sequence[Document]) -> dict[str, tuple[Tag, ...]]:
    return {one.id: one.gold or () for one in documents}


# --- what is chosen -----------------------------------------------------------------------------------------------


def test_a_jury_that_disputes_types_gets_places_by_default_and_is_told_so(chosen: BSC) -> None:
    result = chosen.result_
    assert result.settings_["evidence"] == "places"
    [told] = [reason for reason in result.settings_["why"] if reason.startswith("evidence: ")]
    assert "where spans are, whatever their type, then the type of each" in told


def test_to_ask_for_places_gives_what_is_given_where_they_are_chosen(jury: Corpus, chosen: BSC) -> None:
    asked_for = quorate.aggregate(jury, evidence="places")
    assert asked_for.settings_ == chosen.result_.settings_
    assert asked_for.tags == chosen.result_.tags


def test_where_types_are_clear_places_do_not_come_first() -> None:
    people = {name: Behaviour(miss=0.2, start_late=0.1) for name in ("ann", "bob", "cem")}
    model = BSC(tagger=None).fit(crowd(crowds.sentences(60), people, seed=1))
    assert model.settings_["evidence"] != "places"
    assert model.choice_ is not None
    assert model.choice_.places is None


def test_a_choice_of_places_is_taken_over(
    jury: Corpus, chosen: BSC, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = moved(chosen, tmp_path / "model").choice_
    assert kept is not None
    assert kept.places is not None
    monkeypatch.setattr("quorate.estimators.bsc.choose", _never)
    again = BSC(method="auto").fit(jury, choice=kept)
    assert again.result_.tags == chosen.result_.tags
    assert again.settings_ == chosen.settings_
    np.testing.assert_array_equal(again.result_.confidence, chosen.result_.confidence)


def _never(*_: Any, **__: Any) -> None:
    raise AssertionError("nothing is to be chosen")


def test_a_choice_of_places_is_kept_as_plain_values(chosen: BSC) -> None:
    before = chosen.choice_
    assert before is not None
    assert before.places is not None
    after = from_plain(as_plain(before)).places
    assert after is not None
    assert after.settings == before.places.settings
    assert after.calibration == before.places.calibration
    assert after.reasons == before.places.reasons


def test_labels_without_spans_have_no_places() -> None:
    corpus = Corpus([Document("1", ("good", "bad"), {"ann": ("pos", "neg"), "bob": ("pos", "pos")})])
    with pytest.raises(quorate.SettingsError, match="evidence places is for spans, and labels of the plain scheme"):
        quorate.aggregate(corpus, scheme="plain", evidence="places")
    with pytest.raises(quorate.SettingsError, match="with decode 'token' the evidence is 'tokens'"):
        BSC(evidence="places", decode="token").fit(corpus)


# --- what is given out --------------------------------------------------------------------------------------------


def test_a_fit_and_the_combination_of_its_documents_are_the_same(jury: Corpus, fitted: BSC) -> None:
    assert fitted.result_.n_spans > 20
    assert_same(fitted.result_, fitted.combine(jury))


def test_a_document_by_itself_is_combined_as_among_others(jury: Corpus, fitted: BSC) -> None:
    for document in jury.documents[:3]:
        assert fitted.combine(Corpus([document]))[0].tags == fitted.result_[document.id].tags


@pytest.mark.parametrize("scheme", ["bio", "bioes", "io"])
@pytest.mark.parametrize("decode", ["best", "f1", "token-f1", "sequence"])
def test_probabilities_are_coherent_and_tags_are_valid(jury: Corpus, scheme: str, decode: str) -> None:
    tagset = TagSet.of_types(Scheme(scheme), jury.tagset().types)
    documents = [
        replace(one, annotations={name: written(tagset, certain(tags)) for name, tags in one.annotations.items()})
        for one in jury.documents[:5]
    ]
    model = fit(documents, scheme=scheme, decode=decode)
    result = model.result_
    assert_same(result, model.combine(Corpus(documents)))
    for one in result:
        assert result.tagset.is_valid(one.tags)
        assert [span.bare for span in one.spans] == find_spans(one.tags)
        np.testing.assert_allclose(one.probabilities.sum(axis=1), 1.0, **CLOSE)
        assert 0 <= one.confidence <= min((span.sure for span in one.spans), default=1.0)
        for span in one.spans:
            assert span.sure <= one.token_confidence[span.start : span.end].min()


def written(tagset: TagSet, tags: Sequence[Tag]) -> tuple[str, ...]:
    return tuple(tagset.tags(find_spans(tags), len(tags)))


def test_one_type_is_combined_as_passages_are(jury: Corpus) -> None:
    one = without_types(jury)
    by_places, by_passages = (BSC(**{**FIXED, "evidence": name}).fit(one) for name in ("places", "passages"))
    assert_same(by_places.result_, by_passages.result_)


@pytest.mark.parametrize(
    ("evidence", "decode"),
    [("places", "best"), ("places", "f1"), ("spans", "best"), ("spans", "token-f1")],
)
def test_what_the_report_takes_for_given_out_is_what_is_given_out(
    evidence: EvidenceName, decode: DecodeName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From there it says what would be lost without someone. It asks about spans that are not given out, too."""
    found: list[Influence] = []

    def kept(*given: Any) -> Iterator[Influence]:
        found.extend(influences(*given))
        return iter(found)

    monkeypatch.setattr("quorate.report.documents.influences", kept)
    corpus = crowds.passages(how_many=30)
    model = BSC(**{**FIXED, "max_iter": 6, "evidence": evidence}, decode=decode).fit(corpus)
    rows = collect(model, model.result_, title="", documents=None).documents.list
    given = {row.id: {Span(*span[:3]) for span in row.spans} for row in rows}
    assert sum(map(len, given.values())) > 200
    assert sum(len(each.with_all) for each in found) > sum(map(len, given.values()))
    assert [set(each.spans_with_all) for each in found] == [given[row.id] for row in rows]


def test_names_and_the_order_of_documents_change_nothing(jury: Corpus, chosen: BSC) -> None:
    rng = np.random.default_rng(5)
    name = dict(zip(jury.annotators, ["zoe", "k", "ann", "m", "b"], strict=True))
    documents = [jury[int(d)] for d in rng.permutation(len(jury))]
    other = Corpus(
        [replace(one, annotations={name[old]: tags for old, tags in one.annotations.items()}) for one in documents]
    )
    again = BSC().fit(other)
    assert again.settings_["evidence"] == "places"
    for one in chosen.result_:
        found = again.result_[one.document.id]
        assert found.tags == one.tags
        assert found.confidence == pytest.approx(one.confidence, rel=1e-6)


def test_pieces_of_entities_stay_pieces() -> None:
    rng = np.random.default_rng(0)
    documents = []
    for number in range(30):
        kinds = rng.choice(["ADR", "DRUG"], 3)
        said = {name: ("O", f"B-{kind}", "O", "O", f"B-{kind}…", "O") for name, kind in zip("abc", kinds, strict=True)}
        documents.append(Document(str(number), ("severe", "muscle", "and", "joint", "pain", "today"), said))
    for one in fit(documents).result_:
        [entity] = one.spans
        assert entity.parts == ((1, 2), (4, 5))
        assert f"B-{entity.label}" in {tags[1] for tags in one.document.annotations.values()}


def test_soft_labels_are_heard(tmp_path: Path) -> None:
    """Whoever is torn between two types says that there is something; others say which of them it is."""
    torn: tuple[Tag | SoftTag, ...] = ({"O": 0.1, "B-T00": 0.45, "B-T01": 0.45}, "O", "O")
    documents = []
    for number in range(40):
        first = f"B-{('T00', 'T01')[number % 2]}"
        said: dict[str, tuple[Tag | SoftTag, ...]] = {"soft": torn, "ann": (first, "O", "O"), "bob": (first, "O", "O")}
        documents.append(Document(str(number), ("w", "v", "u"), said))
    model = fit(documents)
    assert model.result_.tags == [[f"B-{('T00', 'T01')[number % 2]}", "O", "O"] for number in range(40)]
    again = moved(model, tmp_path / "model")
    assert_same(again.result_, model.result_)
    assert_same(again.combine(Corpus(documents)), model.result_)


def test_known_labels_are_kept_to(jury: Corpus, fitted: BSC) -> None:
    known = gold_of(jury.documents[:3])
    for result in (BSC(**FIXED).fit(jury, known=known).result_, fitted.combine(jury, known=known)):
        for name, gold in known.items():
            assert result[name].tags == list(gold)
            assert result[name].confidence == 1.0
            assert all(span.confidence == 1.0 for span in result[name].spans)


def test_a_document_may_be_known_in_part(jury: Corpus) -> None:
    document = jury.documents[0]
    gold = [tag if place % 3 == 0 else None for place, tag in enumerate(document.gold or ())]
    tags = BSC(**FIXED).fit(jury, known={document.id: gold}).result_[document.id].tags
    assert all(tag == true for tag, true in zip(tags, gold, strict=True) if true is not None)


def test_known_labels_teach_where_spans_are(jury: Corpus, fitted: BSC) -> None:
    known = gold_of(jury.documents[:7])
    taught = BSC(**FIXED).fit(jury, known=known)
    rest = Corpus(jury.documents[7:])
    before, after = (model.combine(rest) for model in (fitted, taught))
    assert np.abs(before.posterior - after.posterior).max() > 0.01


def test_a_recall_is_expected_of_what_a_consensus_of_tokens_expects_it_of(jury: Corpus) -> None:
    by_places, by_tokens = (quorate.aggregate(jury, recall=0.3, evidence=one) for one in ("places", "tokens"))
    assert by_places.n_spans
    assert by_places.tags == by_tokens.tags
    assert [one.confidence for one in by_places] == [one.confidence for one in by_tokens]
    assert by_places.spans == by_tokens.spans


def test_the_fit_of_places_is_told_too(chosen: BSC) -> None:
    assert any(reason.startswith("places: cm") for reason in chosen.result_.settings_["why"])


def test_a_precision_is_kept_to_by_spans_with_their_types(jury: Corpus, fitted: BSC) -> None:
    by_tokens = BSC(**{**FIXED, "evidence": "tokens"}, precision=0.9).fit(jury).result_
    sure = BSC(**FIXED, precision=0.9).fit(jury)
    assert sure.result_.tags == by_tokens.tags
    assert np.mean([span.sure for spans in by_tokens.spans for span in spans]) >= 0.9 - 1e-9
    assert 0 < sure.result_.n_spans < fitted.result_.n_spans
    assert_same(sure.combine(jury), sure.result_)
    assert_same(sure.set_params(precision=None).combine(jury), fitted.result_)
    assert copy(fitted).set_params(precision=0.9).combine(jury).tags == by_tokens.tags
    few, many = (copy(fitted).set_params(recall=recall).combine(jury).n_spans for recall in (0.1, 0.5))
    assert few < many


def test_another_decoding_may_be_asked_for_after_the_fit(jury: Corpus, fitted: BSC) -> None:
    expected = BSC(**FIXED, decode="sequence").fit(jury).combine(jury)
    assert expected.tags != fitted.result_.tags
    assert_same(copy(fitted).set_params(decode="sequence").combine(jury), expected)


def test_probabilities_that_are_not_asked_for_are_not_kept(jury: Corpus, fitted: BSC) -> None:
    model = BSC(**FIXED, probabilities=False).fit(jury)
    for result in (model.result_, model.combine(jury)):
        assert result.tags == fitted.result_.tags
        np.testing.assert_allclose(result.confidence, fitted.result_.confidence, **CLOSE)
        with pytest.raises(quorate.SettingsError, match="not kept"):
            result.probabilities  # noqa: B018


def test_a_tagger_that_is_asked_for_joins(jury: Corpus) -> None:
    model = BSC(**{**FIXED, "tagger": "crf"}).fit(jury)
    assert model.tagger_rounds_
    assert model.result_.n_spans


# --- files and updates --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("documents", [True, False])
def test_a_model_from_a_file_gives_the_same(jury: Corpus, fitted: BSC, tmp_path: Path, documents: bool) -> None:
    again = moved(fitted, tmp_path / "model", documents=documents)
    assert_same(again.combine(jury), fitted.result_)
    if documents:
        assert_same(again.result_, fitted.result_)
    with zipfile.ZipFile(tmp_path / "model") as archive:
        assert any("documents" in name for name in archive.namelist()) == documents


def test_what_was_chosen_is_in_the_file_too(jury: Corpus, chosen: BSC, tmp_path: Path) -> None:
    again = moved(chosen, tmp_path / "model")
    assert_same(again.result_, chosen.result_)
    assert again.settings_ == chosen.settings_


@pytest.mark.parametrize("passes", [0, 2])
def test_an_update_from_a_file_is_an_update_in_memory(jury: Corpus, tmp_path: Path, passes: int) -> None:
    documents, known = jury.documents, gold_of(jury.documents[5:7])
    here = fit(documents[:6])
    there = moved(here, tmp_path / "model")
    here.update(Corpus(documents[4:]), known=known, passes=passes)
    there.update(Corpus(documents[4:]), known=known, passes=passes)
    assert there.updated_ == here.updated_
    assert_same(there.result_, here.result_)
    assert here.result_["5"].tags == list(known["5"])
    assert_same(moved(there, tmp_path / "model").result_, here.result_)


def test_a_model_without_its_documents_goes_on_with_new_ones(jury: Corpus, tmp_path: Path) -> None:
    documents = jury.documents
    here = fit(documents[:6])
    there = moved(here, tmp_path / "model", documents=False).update(Corpus(documents[6:]))
    assert [one.document.id for one in there.result_] == [one.id for one in documents[6:]]
    assert_same(there.combine(jury), moved(here, tmp_path / "whole").update(Corpus(documents[6:])).combine(jury))


def test_an_update_brings_documents_and_annotators(jury: Corpus) -> None:
    documents = jury.documents
    fewer = [
        replace(one, annotations={name: tags for name, tags in one.annotations.items() if name != "model4"})
        for one in documents[:6]
    ]
    model = fit(fewer)
    before = model.combine(jury)
    model.update(jury)
    assert model.updated_ == (4, 6, 0)
    assert [one.document.id for one in model.result_] == [one.id for one in documents]
    assert "model4" in model.annotators_.names
    assert_same(model.combine(jury), model.result_)
    assert np.abs(model.result_.posterior - before.posterior).max() > 0.01
    tags = model.result_.tags
    assert model.update(jury).updated_ == (0, 0, 10)
    assert model.result_.tags == tags


def test_whoever_is_met_after_the_fit_is_like_the_others(jury: Corpus, fitted: BSC) -> None:
    new = [replace(one, annotations={f"{name}?": tags for name, tags in one.annotations.items()}) for one in jury]
    assert fitted.combine(Corpus(new)).n_spans > 10


def test_labels_that_the_model_does_not_know_leave_it_as_it_was(jury: Corpus) -> None:
    model = fit(jury.documents[:6])
    before = model.combine(jury)
    with pytest.raises(quorate.InputError, match="'B-VESSEL' is not among the model's labels"):
        model.update(Corpus([Document("new", ("Ada",), {"model0": ("B-VESSEL",)})]))
    assert_same(model.combine(jury), before)


def test_a_copy_stays_as_it_is_whatever_updates_do_to_the_model(jury: Corpus) -> None:
    """A running service makes one, to look at it in the background."""
    model = fit(jury.documents[:6])
    still, before = copy(model), model.combine(jury)
    model.update(jury)
    assert_same(still.combine(jury), before)
    assert len(still.result_) == 6


def test_a_model_of_a_corpus_on_disk_goes_on_from_its_file(jury: Corpus, tmp_path: Path) -> None:
    """The file has none of the documents, which lie on disk already; so it goes on with new ones alone."""
    documents = jury.documents
    store(Corpus(documents[:6]), tmp_path / "corpus.qr")
    model = BSC(**FIXED).fit(StoredCorpus(tmp_path / "corpus.qr"))
    assert_same(model.result_, fit(documents[:6]).result_)
    there = moved(model, tmp_path / "model")
    with zipfile.ZipFile(tmp_path / "model") as archive:
        assert not any("documents" in name for name in archive.namelist())
    there.update(Corpus(documents[6:]))
    assert [one.document.id for one in there.result_] == [one.id for one in documents[6:]]


def test_an_earlier_project_tells_of_annotators(jury: Corpus, tmp_path: Path) -> None:
    documents = jury.documents
    past = fit(documents[:6])
    later, alone = Corpus(documents[6:]), fit(documents[6:])
    model = BSC(**FIXED).fit(later, history=past)
    assert np.abs(model.result_.posterior - alone.result_.posterior).max() > 0.01
    assert_same(moved(model, tmp_path / "model").result_, model.result_)


# --- streams ------------------------------------------------------------------------------------------------------


def stream_of(corpus: Corpus) -> BSC:
    settings = {name: FIXED[name] for name in ("epsilon0", "temper", "max_iter", "evidence", "tagger")}
    return streamed(batches(corpus, 4), "bsc-cm", **settings)


def test_a_stream_is_combined(jury: Corpus, tmp_path: Path) -> None:
    model = stream_of(jury)
    assert model.settings_["evidence"] == "places"
    result = model.combine(jury)
    assert result.n_spans > 20
    assert_same(moved(model, tmp_path / "model").combine(jury), result)


def test_a_stream_keeps_no_document(jury: Corpus, tmp_path: Path) -> None:
    stream_of(jury).save(tmp_path / "model")
    with zipfile.ZipFile(tmp_path / "model") as archive:
        assert not any("documents" in name for name in archive.namelist())


def test_all_of_a_stream_tells_where_spans_are(jury: Corpus) -> None:
    """Not its first batch alone: whoever marks nothing after that is no longer taken for somebody who does."""
    nothing = [
        replace(one, annotations={**one.annotations, "model0": ("O",) * len(one.tokens)}) for one in jury.documents[4:]
    ]
    one, other = stream_of(jury), stream_of(Corpus([*jury.documents[:4], *nothing]))
    outside = [model.combine(jury).posterior[:, 0] for model in (one, other)]
    assert np.abs(outside[0] - outside[1]).max() > 0.001


def test_a_stream_goes_on_with_an_update(jury: Corpus) -> None:
    model = stream_of(jury)
    model.update(Corpus([replace(one, id=f"new {one.id}") for one in jury.documents[:2]]))
    assert [one.document.id for one in model.result_] == ["new 0", "new 1"]


# --- explanations, advice, reports --------------------------------------------------------------------------------


def test_influences_start_from_the_confidence_that_is_given_out(jury: Corpus, chosen: BSC) -> None:
    asked = [[span.bare for span in one.spans] for one in chosen.result_]
    for one, found in zip(chosen.result_, influences(chosen, list(jury), asked), strict=True):
        np.testing.assert_allclose(found.with_all, [span.sure for span in one.spans], **CLOSE)
        assert found.without.shape == (len(one.document.annotations), len(one.spans))


def test_a_span_without_someone_is_as_likely_as_in_a_consensus_without_them(jury: Corpus, fitted: BSC) -> None:
    one, compared = fitted.result_[2], 0
    [found] = influences(fitted, [one.document], [[span.bare for span in one.spans]])
    for a, name in enumerate(found.annotators):
        rest = {who: tags for who, tags in one.document.annotations.items() if who != name}
        [again] = fitted.combine(Corpus([replace(one.document, annotations=rest)]))
        given = {span.bare: span.sure for span in again.spans}
        for s, span in enumerate(one.spans):
            if span.bare in given:
                assert found.without[a, s] == pytest.approx(given[span.bare], abs=1e-9)
                compared += 1
    assert compared > 3


def test_what_to_label_next_is_told(jury: Corpus) -> None:
    documents = []
    for number, one in enumerate(jury.documents[:5]):
        said = {name: tags[:50] for name, tags in one.annotations.items() if name != f"model{number}"}
        documents.append(Document(one.id, one.tokens[:50], said))
    advice = quorate.next_labels(Corpus(documents), fit(documents), n=3)
    assert len(advice.suggestions) == 3
    for each in advice.suggestions:
        assert each.annotator not in documents[int(each.document)].annotations


def test_a_report_is_written(chosen: BSC, tmp_path: Path) -> None:
    write_report(chosen, tmp_path / "report.html")
    assert "whatever their type" in (tmp_path / "report.html").read_text(encoding="utf-8")
    rows = collect(chosen, chosen.result_, title="", documents=10).documents.list
    assert all(row.why is not None for row in rows)
    assert sum(len(row.spans) for row in rows) == chosen.result_.n_spans


def test_every_shape_of_the_result_can_be_had(fitted: BSC, tmp_path: Path) -> None:
    result = fitted.result_
    result.write(tmp_path / "consensus.jsonl")
    assert (tmp_path / "consensus.jsonl").read_text(encoding="utf-8").count("\n") == len(result)
    assert 0 < result.expected.f1 < 1
    assert 0 < result.surest(0.5).n_spans < result.n_spans
    assert [one.tags for one in result.only([3, 1])] == [result[3].tags, result[1].tags]
