"""Going on from a model file against going on in memory: the same labels, in whatever order, end in the same fit."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quorate
from by_name import bsc, loaded
from fits import assert_same, people_on
from quorate import BSC, Corpus, Document
from quorate.corpus.offsets import Unit
from quorate.corpus.records import Source
from quorate.corpus.simulate import Behaviour, crowd
from quorate.errors import InputError, SettingsError
from quorate.formats.jsonl import write_corpus
from quorate.storage.corpora import StoredCorpus, store
from quorate.storage.model_documents import kept_documents, packed_documents
from simulated_crowds import every_kind, sentences


def moved(model: BSC, path: Path, **options: Any) -> BSC:
    """The model after a stay in a file."""
    model.save(path, **options)
    return loaded(path)


def assert_alike(one: BSC, other: BSC) -> None:
    """Everything that was learned, and everything that is given out."""
    assert_same(one, other, atol=1e-9)
    mine, theirs = one.result_, other.result_
    assert [each.document.id for each in mine] == [each.document.id for each in theirs]
    assert mine.tags == theirs.tags
    np.testing.assert_allclose(mine.posterior, theirs.posterior, rtol=0, atol=1e-9)
    np.testing.assert_allclose(mine.confidence, theirs.confidence, rtol=0, atol=1e-9)
    np.testing.assert_allclose(one.annotators_.table, other.annotators_.table, rtol=0, atol=1e-7)
    assert one.calibration_ == other.calibration_
    assert one.sources_ == other.sources_
    assert (one.fitted_.spans is None) == (other.fitted_.spans is None)
    if one.fitted_.spans is not None and other.fitted_.spans is not None:
        for name, array in one.fitted_.spans.grown(len(one.fitted_.names)).arrays().items():
            found = other.fitted_.spans.grown(len(other.fitted_.names)).arrays()[name]
            np.testing.assert_allclose(found, array, rtol=0, atol=1e-7, err_msg=name)


def day(rng: np.random.Generator, documents: tuple[Document, ...]) -> tuple[Corpus, Mapping[str, Any] | None, int]:
    """What one day brings: some documents, of some with part of their annotators or a label known; and passes."""
    chosen = [documents[n] for n in rng.choice(len(documents), 6, replace=False)]
    fewer = [
        replace(one, annotations={name: tags for name, tags in one.annotations.items() if rng.random() < 0.6})
        for one in chosen
    ]
    known = {one.id: one.gold for one in chosen[:1] if one.gold is not None and rng.random() < 0.3}
    return Corpus(fewer), known or None, int(rng.random() < 0.2)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("annotator", ["acc", "cm", "seq", "pool"])
def test_any_order_of_labels_ends_in_the_same_fit(seed: int, annotator: str, tmp_path: Path) -> None:
    """New documents, new annotators, more labels and known ones, with the model in a file overnight."""
    rng = np.random.default_rng(seed)
    documents = people_on(sentences(60, seed=seed)).documents
    here = bsc("auto", annotator=annotator, max_iter=4).fit(
        Corpus(documents[:30]), known="inline" if seed == 3 else None
    )
    there = moved(here, tmp_path / "model")
    for _ in range(5):
        labels, known, passes = day(rng, documents)
        here.update(labels, known=known, passes=passes)
        there = moved(there, tmp_path / "model").update(labels, known=known, passes=passes)
        assert there.updated_ == here.updated_
        assert_alike(here, there)
    assert there.meta_ == here.meta_


@pytest.mark.parametrize("spans", [False, True])
def test_what_is_learned_of_spans_follows(spans: bool, tmp_path: Path) -> None:
    """Only that of annotators who are new: the others' habits are those of the fit, until there is another."""
    documents = people_on(sentences(80, seed=2)).documents
    here = bsc("bsc-seq", spans=spans, max_iter=4).fit(Corpus(documents[:50]))
    there = moved(here, tmp_path / "model")
    assert (there.fitted_.spans is not None) is spans
    for labels in (Corpus(documents[40:70]), Corpus(documents[:20]), Corpus(documents)):
        here.update(labels)
        there = moved(there, tmp_path / "model").update(labels)
        assert_alike(here, there)


def test_a_history_stays_in_the_fit(tmp_path: Path) -> None:
    """A pass over everything forgets no earlier project."""
    documents = people_on(sentences(60, seed=3)).documents
    past = bsc("bsc-cm", max_iter=3).fit(people_on(sentences(40, seed=9)))
    here = bsc("bsc-cm", max_iter=3).fit(Corpus(documents[:40]), history=past)
    there = moved(here, tmp_path / "model")
    for labels, passes in ((Corpus(documents[40:]), 0), (Corpus(documents[:3]), 0), (Corpus(documents[5:]), 2)):
        known = {labels[0].id: ("O",) * len(labels[0].tokens)}
        here.update(labels, known=known, passes=passes)
        there = moved(there, tmp_path / "model").update(labels, known=known, passes=passes)
        assert_alike(here, there)


def test_labels_with_probabilities_go_on(tmp_path: Path) -> None:
    documents = people_on(sentences(30, seed=1)).documents
    soft = [
        replace(
            one, annotations={**one.annotations, "model": ({"O": 0.3, "B-PER": 0.7}, *["O"] * (len(one.tokens) - 1))}
        )
        for one in documents
    ]
    here = bsc("bsc-cm", max_iter=3, scheme="bio").fit(Corpus(soft[:20]))
    there = moved(here, tmp_path / "model")
    assert there.update(Corpus(soft[:20])).updated_ == (0, 0, 20)
    here.update(Corpus(soft[10:]))
    assert_alike(here, there.update(Corpus(soft[10:])))


def test_the_same_labels_again_change_nothing(tmp_path: Path) -> None:
    documents = people_on(sentences(40, seed=5)).documents
    model = moved(bsc("bsc-seq", max_iter=3).fit(Corpus(documents[:30])), tmp_path / "model")
    model = moved(model.update(Corpus(documents)), tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    with (tmp_path / "export.jsonl").open("wb") as stream:
        write_corpus(Corpus(documents), stream)
    again = model.update(quorate.read(tmp_path / "export.jsonl"))
    assert again.updated_ == (0, 0, 40)
    again.meta_ = loaded(tmp_path / "model").meta_  # which tells of every update, and of what it was given
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == content


def test_without_its_documents_a_model_adds_to_what_it_knows(tmp_path: Path) -> None:
    documents = people_on(sentences(60, seed=9)).documents
    here = bsc("bsc-seq").fit(Corpus(documents[:50]))
    there = moved(here, tmp_path / "model", documents=False)
    raw = (tmp_path / "model").read_bytes()
    moved(here, tmp_path / "with")
    assert len(raw) < (tmp_path / "with").stat().st_size
    with zipfile.ZipFile(tmp_path / "model") as archive:
        assert not any("documents" in name for name in archive.namelist())
        assert "documents" not in json.loads(archive.read("meta.json"))
    there.update(Corpus(documents[50:]))
    assert_same(there, here.update(Corpus(documents[50:])), atol=1e-9)
    with pytest.raises(SettingsError, match="without its documents"):
        there.update(Corpus(documents[:1]), passes=1)


def test_an_encoded_corpus_is_not_copied_into_the_model(tmp_path: Path) -> None:
    """It may be larger than memory, and lies on disk already."""
    documents = people_on(sentences(30, seed=9)).documents
    store(Corpus(documents), tmp_path / "corpus.qr")
    model = moved(bsc("bsc-cm", max_iter=2).fit(StoredCorpus(tmp_path / "corpus.qr")), tmp_path / "model")
    assert not model._fit_state.whole


def test_a_document_is_kept_as_it_was_given(tmp_path: Path) -> None:
    """With its text, its gold, its split and the unit of its offsets; but for where it was read."""
    document = Document(
        "ü 👋/1",
        ("Ada", "👋", "sang"),
        {"ann": ("B-PER", None, "O"), "bob": ("O", {"O": 0.25, "I-PER": 0.75}, "B-LOC"), "": (None, None, None)},
        ("B-ORG", None, "O"),
        "dev",
        "Ada  👋\r\nsang",
        ((0, 3), (5, 6), (8, 12)),
        Source("here.json", 7, record="task"),
        Unit.UTF16_LF,
        {"tool": "label-studio", "id": 7},
    )
    empty = Document("", ())
    words, names = ("sang", "Ada", "👋"), ("bob", "ann", "", "eve")
    known = {"ü 👋/1": np.array([2, -1, 0], np.int32)}
    packed = packed_documents([document, empty], known, words, names)
    kept = kept_documents(*packed, words, names, 3)
    assert kept.corpus.documents == (replace(document, source=None, origin=None), empty)
    assert kept.known is not None
    assert kept.known.tolist() == [2, -1, 0]


def arrays_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path: Path, content: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, raw in content.items():
            archive.writestr(name, raw)


def test_documents_that_do_not_fit_the_model_are_refused(tmp_path: Path) -> None:
    """Whatever array is made up: one line says what is wrong, and nothing is looked up by a wrong number."""
    path = tmp_path / "model"
    documents = people_on(sentences(12, seed=1)).documents
    model = bsc("bsc-cm", max_iter=2).fit(Corpus(documents[:8]), known="inline")
    moved(model.update(Corpus(documents[:2]), known={documents[1].id: (None,) * len(documents[1].tokens)}), path)
    good = arrays_of(path)
    names = [name for name in good if name.startswith(("documents.", "source"))]
    assert {"documents.word.npy", "documents.codes.npy", "documents.known.npy", "documents.came_from.npy"} <= set(names)
    survived, refused = set(), []
    counts = {name.removesuffix(".npy") for name in names if name.startswith("source") and "rows" not in name}
    for name in names:
        array = np.load(io.BytesIO(good[name]))
        if not array.size:
            continue
        far = array + (10_000 if array.dtype.itemsize > 1 else 200)
        for other in (far, array[:-1], array[None]):
            buffer = io.BytesIO()
            np.save(buffer, other.astype(array.dtype))
            written(path, {**good, name: buffer.getvalue()})
            try:
                found = loaded(path)
            except quorate.ModelFileError as error:
                refused.append(str(error))
            else:
                survived.add(name.removesuffix(".npy"))
                found.update(Corpus(documents))
    assert all("a damaged model file: " in line and "\n" not in line for line in refused)
    assert survived <= {"documents.offsets", *counts}  # a count may be any, and so may a place
    for name in names:
        written(path, {each: raw for each, raw in good.items() if each != name})
        with pytest.raises(quorate.ModelFileError, match="damaged model file"):
            loaded(path)


def test_labels_that_the_model_does_not_know_leave_it_as_it_was(tmp_path: Path) -> None:
    documents = people_on(sentences(20, seed=1)).documents
    model = moved(bsc("bsc-cm", max_iter=2).fit(Corpus(documents)), tmp_path / "model")
    strange = Document("new", ("Ada",), {"ann": ("B-VESSEL",)})
    with pytest.raises(InputError, match="'B-VESSEL' is not among the model's labels"):
        model.update(Corpus([strange]))
    other = replace(documents[0], tokens=("x",) * len(documents[0].tokens))
    with pytest.raises(InputError, match="other tokens than when this document was fitted"):
        model.update(Corpus([other]))
    assert model.update(Corpus(documents)).updated_ == (0, 0, 20)


def test_crowds_of_plain_labels_go_on(tmp_path: Path) -> None:
    people = {"a": Behaviour(miss=0.1), "b": Behaviour(confuse=0.2)}
    spans = crowd(sentences(20, seed=2), people, seed=1).documents
    plain = [
        Document(
            one.id,
            one.tokens,
            {who: tuple("x" if tag == "O" else "y" for tag in tags) for who, tags in one.annotations.items()},
        )
        for one in spans
    ]
    here = bsc("bsc-cm", max_iter=3, scheme="plain").fit(Corpus(plain[:10]))
    there = moved(here, tmp_path / "model").update(Corpus(plain))
    assert_alike(here.update(Corpus(plain)), there)


def test_a_fit_whose_crowd_was_changed_goes_on_from_its_file(tmp_path: Path) -> None:
    """Sources that abstain with the helper that marks their ends, correlated samples of a model, and a duplicate."""
    corpus = every_kind(160)
    twice = Corpus(
        [replace(one, annotations={**one.annotations, "again": one.annotations["parser"]}) for one in corpus],
        profiles=corpus.profiles,
    )
    first, more = Corpus(twice.documents[:120], profiles=twice.profiles), Corpus(twice.documents[120:])
    model = BSC().fit(first)
    assert model.fitted_.helpers
    assert {type(note).__name__ for note in model.fitted_.notes} >= {"Abstaining", "Correlated", "Duplicates"}
    kept = moved(model, tmp_path / "model.quorate")
    assert_alike(kept, model)
    assert kept.combine(more).spans == model.combine(more).spans
    kept.update(more)
    model.update(more)
    assert_alike(moved(kept, tmp_path / "again.quorate"), model)
    assert len(model.result_) == 160
