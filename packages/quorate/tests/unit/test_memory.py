"""Memory: what a fit needs is known before it is taken, and what does not fit is left out or refused by its size."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from by_name import bsc
from quorate import Corpus, Document, memory
from quorate.active import strategies
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode
from quorate.errors import SettingsError
from quorate.limits import size_in_words, size_named
from quorate.model import build
from quorate.model.build import bytes_needed
from quorate.model.settings import AnnotatorModel, Settings
from quorate.model.votes import one_worker_a_document
from quorate.report.data import collect


def encoded(corpus: Corpus) -> Crowd:
    return encode(corpus, corpus.tagset())


def many_labels(n_labels: int, n_annotators: int, n_documents: int, length: int = 10) -> Corpus:
    """Plain labels that are as often one as another."""
    rng = np.random.default_rng(0)
    documents = []
    for d in range(n_documents):
        truth = rng.integers(n_labels, size=length)
        annotations = {}
        for k in rng.choice(n_annotators, size=3, replace=False):
            said = np.where(rng.random(length) < 0.8, truth, rng.integers(n_labels, size=length))
            annotations[f"a{k}"] = tuple(f"L{label}" for label in said)
        documents.append(Document(str(d), tuple(f"w{w}" for w in rng.integers(50, size=length)), annotations))
    return Corpus(documents)


@pytest.mark.parametrize("given", ["1,000 bytes", "64 KB", "1.5 MB", "2 GB", "3 TB"])
def test_sizes_are_said_in_the_units_in_which_they_are_given(given: str) -> None:
    number, unit = given.replace(",", "").removesuffix("bytes").split(" ")
    size = int(float(number) * size_named(f"1{unit}"))
    assert size_in_words(size) == given
    assert f"would need {given} of memory, and {given} are free" in str(memory.too_large(size, size, "it", "no"))


def only(monkeypatch: pytest.MonkeyPatch, free: int | None) -> None:
    """As if so many bytes were free."""
    for module in (memory, build):
        monkeypatch.setattr(module, "free_memory", lambda: free)


def test_free_memory_is_that_of_the_machine_within_the_limit_of_its_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CONTAINER", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:    8000 kB\n")
    assert memory.free_memory() == 8000 * 1024
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.stat").write_text("anon 1000\nfile 50000\n")
    assert memory.free_memory() == 8000 * 1024
    (tmp_path / "memory.max").write_text("51000\n")
    assert memory.free_memory() == 50_000
    (tmp_path / "meminfo").unlink()
    (tmp_path / "memory.max").unlink()
    assert (memory.free_memory() or 1) > 0  # what the system says of itself, or nothing


@pytest.mark.parametrize("annotator", ["acc", "spam", "cv", "cm", "seq", "pool"])
def test_a_model_that_cannot_fit_is_refused_with_its_size(
    annotator: str, sample: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, 1000)
    said = rf"annotator model '{annotator}' .* would need [\d.,]+ [KM]B of memory, and 1,000 bytes are free"
    with pytest.raises(SettingsError, match=said):
        bsc("auto", annotator=annotator).fit(sample)
    only(monkeypatch, None)  # where it cannot be known, everything is tried
    assert bsc("auto", annotator=annotator, max_iter=1).fit(sample).trace_.passes == 1


@pytest.mark.parametrize("annotator", ["spam", "cv", "cm", "seq"])
@pytest.mark.parametrize(("n_labels", "n_annotators"), [(300, 5), (40, 3_000)])
def test_what_a_fit_is_said_to_need_is_about_what_it_takes(annotator: str, n_labels: int, n_annotators: int) -> None:
    corpus = many_labels(n_labels, n_annotators, 200 if n_labels == 300 else 1500)
    bsc("auto", annotator=annotator, max_iter=1).fit(Corpus(corpus.documents[:5]))  # what is loaded once does not count
    tracemalloc.start()
    try:
        arrays = encoded(corpus)
        before = tracemalloc.get_traced_memory()[0]
        bsc("auto", annotator=annotator, max_iter=3).fit(corpus)
        taken = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    said = bytes_needed(Settings(annotator=AnnotatorModel(annotator)), arrays, posteriors=True)
    assert 0.6 * taken < said < 2.5 * taken


def test_many_annotators_take_memory_by_what_they_said() -> None:
    """A table of every annotator, truth and label would take 1.1 GB."""
    rng = np.random.default_rng(0)
    labels = [f"L{label}" for label in range(41)]
    documents = [
        Document(str(d), ("w",) * 2, {f"a{3 * d + k}": tuple(rng.choice(labels, 2)) for k in range(3)})
        for d in range(27_000)
    ]
    corpus = Corpus(documents)
    gold = np.zeros(54_000, np.int32)
    arrays = encoded(corpus)
    tracemalloc.start()
    try:
        bsc("bsc-cm", max_iter=2).fit(corpus)
        one_worker_a_document(encoded(Corpus(documents[:200])), gold[:400], best=True)
        assert tracemalloc.get_traced_memory()[1] < 9 * 8 * 41 * len(arrays.cells.label) + 100e6
    finally:
        tracemalloc.stop()


def test_many_labels_are_fitted_reported_and_asked_about_in_little_memory() -> None:
    """A table of label after label on every truth would take 1.0 GB of each annotator."""
    corpus = many_labels(500, 4, 60, 12)
    tracemalloc.start()
    try:
        model = bsc("bsc-seq", max_iter=2).fit(corpus)
        page = collect(model, model.result_, title="many", documents=5)
        told = strategies.matrices_of(model.fitted_.model.annotators, range(4))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    J = len(model.tagset_.labels)
    assert J > 400
    assert peak < 8 * J**3 / 4
    assert told.shape == (4, 1, J, J)
    np.testing.assert_allclose(told.sum(axis=-1), 1.0, rtol=1e-9)
    assert [len(matrix) for matrix in page.matrices.of.values()] == [J * J]


def test_a_matrix_that_cannot_fit_is_refused(sample: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    model = bsc("bsc-seq", max_iter=1).fit(sample)
    only(monkeypatch, 1000)
    with pytest.raises(SettingsError, match="matrices of 9 labels, for 1 annotator would need"):
        _ = model.annotators_[0].matrix
