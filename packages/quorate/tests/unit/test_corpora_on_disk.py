"""Encoded corpora on disk: they give back what was put in, and a fit from disk is a fit from memory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import quorate
from by_name import bsc
from problems import random_corpus, tagset
from quorate.cli import app
from quorate.corpus.tags import Invalid, Scheme
from quorate.crowd.encode import encode
from quorate.formats.jsonl import write_corpus
from quorate.model.engines.protocol import Tables
from quorate.model.engines.threads import ThreadsEngine
from quorate.model.parts.truth import Markov
from quorate.storage.corpora import StoredCorpus, store


def odd_documents() -> quorate.Corpus:
    """Probabilities, text, gold on some, an empty document, one that nobody saw, a tag that must be mended."""
    return quorate.Corpus(
        [
            quorate.Document("ä/1", ("Ada", "sang"), {"b": ("B-X", {"O": 0.7, "B-X": 0.3}), "a": ("O", None)}),
            quorate.Document("2", (), {"a": ()}),
            quorate.Document("3", ("so", "it"), {}, ("O", None), "dev", "so  it", ((0, 2), (4, 6))),
            quorate.Document(
                "4", ("Ada", "is", "in"), {"b": ("I-Y", "O", "O"), "c": (None, "B-X", "I-X")}, None, "test"
            ),
        ]
    )


def test_documents_come_back_as_they_were(tmp_path: Path) -> None:
    corpus = odd_documents()
    store(corpus, tmp_path / "odd.qr")
    stored = quorate.read(tmp_path / "odd.qr")
    assert isinstance(stored, StoredCorpus)
    assert list(stored) == list(corpus)
    assert stored["3"] == corpus["3"]
    assert stored.documents == corpus.documents
    assert (len(stored), stored.n_tokens, stored.annotators) == (len(corpus), corpus.n_tokens, corpus.annotators)
    assert stored.tagset() == corpus.tagset()
    assert stored.has_gold
    assert stored.unannotated() == corpus.unannotated() == ["3"]
    assert list(tmp_path.iterdir()) == [tmp_path / "odd.qr"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6), scheme=st.sampled_from(list(Scheme)))
def test_arrays_are_those_that_encode_gives(tmp_path: Path, seed: int, scheme: Scheme) -> None:
    rng = np.random.default_rng(seed)
    tags = tagset(scheme)
    corpus = random_corpus(rng, tags, n_documents=int(rng.integers(1, 30)), missing=0.3)
    if not any(tag for document in corpus for given in document.annotations.values() for tag in given):
        return
    try:
        labels = corpus.tagset(scheme)
    except quorate.InputError:
        return
    store(corpus, tmp_path / "random.qr", scheme=scheme)
    stored = StoredCorpus(tmp_path / "random.qr")
    ours, theirs = encode(stored, labels), encode(corpus, labels)
    assert ours.slices is not None
    assert (ours.annotators, ours.words, ours.repaired) == (theirs.annotators, theirs.words, theirs.repaired)
    for name in ("doc_start", "word", "event_start", "event_cell"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    np.testing.assert_array_equal(ours.cells.keys, theirs.cells.keys)
    np.testing.assert_array_equal(ours.cell_weights(), theirs.cell_weights())
    if scheme is not Scheme.PLAIN:  # another rule is not in the file: it is laid out afresh
        assert encode(stored, labels, invalid=Invalid.KEEP).slices is None


def test_a_fit_from_disk_is_a_fit_from_memory(tmp_path: Path) -> None:
    for name, corpus in (("sample", quorate.sample()), ("odd", odd_documents())):
        store(corpus, tmp_path / f"{name}.qr")
        memory = bsc("bsc-seq", max_iter=5).fit(corpus)
        disk = bsc("bsc-seq", max_iter=5, probabilities=False).fit(quorate.read(tmp_path / f"{name}.qr"))
        assert disk.trace_.bounds == memory.trace_.bounds
        assert disk.result_.tags == memory.result_.tags
        for ours, theirs in zip(disk.result_, memory.result_, strict=True):
            np.testing.assert_array_equal(ours.token_confidence, theirs.token_confidence)
            assert ours.spans == theirs.spans
        np.testing.assert_array_equal(disk.annotators_.table, memory.annotators_.table)
        with pytest.raises(quorate.SettingsError, match="were not kept"):
            disk.result_.probabilities  # noqa: B018
        kept = bsc("bsc-seq", max_iter=5).fit(quorate.read(tmp_path / f"{name}.qr"))
        for a, b in zip(kept.result_.probabilities, memory.result_.probabilities, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("method", ["mv", "mv-abstain", "span-vote", "ds", "best-worker"])
def test_other_methods_take_it_too(tmp_path: Path, method: str) -> None:
    corpus = quorate.sample()
    store(corpus, tmp_path / "sample.qr")
    assert (
        quorate.aggregate(quorate.read(tmp_path / "sample.qr"), method).tags == quorate.aggregate(corpus, method).tags
    )


def test_commands_take_an_encoded_corpus(tmp_path: Path) -> None:
    plain, encoded = str(tmp_path / "crowd.jsonl"), str(tmp_path / "crowd.qr")
    with open(plain, "wb") as stream:
        write_corpus(quorate.sample(), stream)
    runner = CliRunner()

    def run(*arguments: str) -> str:
        result = runner.invoke(app, list(arguments), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    run("encode", plain, "-o", encoded)
    for command in ("check", "agreement"):
        assert run(command, encoded) == run(command, plain).replace(plain, encoded)
    lines = []
    for source in (plain, encoded):
        out = str(tmp_path / "out.jsonl")
        run("aggregate", source, "-o", out, "--max-passes", "3", "--probabilities", "-q")
        lines.append([json.loads(line) for line in Path(out).read_text().splitlines()])
    assert lines[0] == lines[1]
    run("compare", encoded, "--methods", "mv,bsc-cm")


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "sample.qr"
    store(quorate.sample(), path)
    content = path.read_bytes()
    for cut in (len(content) // 2, len(content) - 1, 100):
        path.write_bytes(content[:cut])
        with pytest.raises(quorate.InputError, match=r"sample\.qr"):
            quorate.read(path)
    path.write_bytes(content)
    with pytest.raises(quorate.InputError, match="occurs twice in these files"):
        quorate.read(path, path)
    (tmp_path / "plain.jsonl").write_text('{"id": "1", "tokens": ["a"]}')
    with pytest.raises(quorate.SettingsError, match="encode all files, or none"):
        quorate.read(path, tmp_path / "plain.jsonl")


def test_several_files_are_the_corpus_that_their_documents_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    tags = tagset(Scheme.BIO, 3)
    documents = random_corpus(rng, tags, n_documents=60).documents
    fewer_labels = tuple(without_type(document, tags.types[1]) for document in documents[:7])
    shards = [fewer_labels, documents[7:30], documents[30:]]
    for number, shard in enumerate(shards):
        store(shard, tmp_path / f"{number}.qr", scheme=Scheme.BIO)
    whole = quorate.Corpus(document for shard in shards for document in shard)
    joined = quorate.read(tmp_path)
    assert list(joined) == list(whole)
    assert joined[-1] == whole[-1] == joined[whole[-1].id]
    assert joined.annotators == whole.annotators
    assert joined.tagset(Scheme.BIO) == whole.tagset(Scheme.BIO)
    expected, found = (encode(corpus, corpus.tagset(Scheme.BIO)) for corpus in (whole, joined))
    assert found.slices is not None
    assert found.slices.fits(found)
    J = len(found.tagset.labels)
    tables = Tables(rng.normal(size=(len(expected.cells.label), J)), rng.normal(size=(len(expected.words), J)))
    counts = [ThreadsEngine(each).run(tables, Markov.of(found.tagset, 1.0).chain()) for each in (expected, found)]
    np.testing.assert_allclose(counts[1].cells, counts[0].cells, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(counts[1].words, counts[0].words, rtol=1e-12, atol=1e-12)
    assert (found.words, found.annotators, found.repaired) == (expected.words, expected.annotators, expected.repaired)
    for name in ("doc_start", "word", "event_start", "event_cell", "event_weight"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    for ours, theirs in zip(found.cells, expected.cells, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def without_type(document: quorate.Document, kind: str) -> quorate.Document:
    said = {
        name: tuple("O" if isinstance(tag, str) and tag.endswith(f"-{kind}") else tag for tag in given)
        for name, given in document.annotations.items()
    }
    return replace(document, annotations=said)


def test_nothing_is_left_behind_when_encoding_fails(tmp_path: Path) -> None:
    twice = [quorate.Document("1", ("a",), {"x": ("O",)})] * 2
    with pytest.raises(quorate.InputError, match="ids must be unique"):
        store(twice, tmp_path / "twice.qr")
    assert list(tmp_path.iterdir()) == []
