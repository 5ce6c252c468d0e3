"""The engine on JAX against the compiled one; all on the CPU, in single precision."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from by_name import bsc
from problems import random_corpus, tagset
from quorate.active.strategies import sequence_entropy
from quorate.choose import hidden
from quorate.corpus.records import Corpus
from quorate.corpus.tags import Invalid, Scheme, TagSet
from quorate.encode.from_corpus import encode, encode_known
from quorate.estimators.bsc import BSC
from quorate.infer.engines import factory, plain
from quorate.infer.engines.protocol import Counts, Decoded, Engine, Tables
from quorate.infer.engines.threads import ThreadsEngine
from quorate.infer.parts.truth import Chain

pytest.importorskip("jax", reason="the extra 'jax' is not installed")

from quorate.infer.engines.jax import JaxEngine, _batches_of, _tree

Floats = NDArray[np.float64]
SINGLE: dict[str, Any] = {"rtol": 2e-5, "atol": 2e-5}


def random_chain(rng: np.random.Generator, tags: TagSet, spread: float = 1.0) -> Chain:
    J = len(tags.labels)
    trans = np.where(tags.allowed, rng.normal(-1.0, spread, (J, J)), -np.inf)
    start = np.where(tags.allowed_first, rng.normal(-1.0, spread, J), -np.inf)
    return Chain(start, trans, np.where(tags.allowed_last, 0.0, -np.inf), True)


class Problem:
    def __init__(self, seed: int, scheme: Scheme, *, known: bool = False, spread: float = 1.0) -> None:
        rng = np.random.default_rng(seed)
        self.tags = tagset(scheme, 1 if scheme is Scheme.BIOES else 2)
        # Few lengths: each is compiled for.
        self.corpus = random_corpus(rng, self.tags, n_documents=40, shortest=4, longest=5, n_words=6)
        self.encoded = encode(self.corpus, self.tags)
        self.known = None
        if known:
            clamp = {d.id: d.gold or () for d in self.corpus if rng.random() < 0.5}
            self.known = encode_known(self.corpus, self.tags, clamp, Invalid.REPAIR)
        J = len(self.tags.labels)
        self.tables = Tables(
            rng.normal(0, spread, (len(self.encoded.cells.label), J)),
            rng.normal(0, spread, (len(self.encoded.words), J)),
            0.6,
        )
        self.chain = random_chain(rng, self.tags)
        self.threads = ThreadsEngine(self.encoded, known=self.known)
        self.jax = JaxEngine(self.encoded, known=self.known)


def same_decoding(ours: Decoded, theirs: Decoded) -> None:
    for name in ("posterior", "log_probability", "log_z", "span_probability", "cells"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), err_msg=name, **SINGLE)
    np.testing.assert_array_equal(ours.path, theirs.path)
    np.testing.assert_array_equal(ours.span_end, theirs.span_end)


@pytest.mark.parametrize(("scheme", "known"), [(Scheme.BIO, False), (Scheme.BIOES, True), (Scheme.PLAIN, False)])
def test_pass_votes_and_decoding_equal_the_threads_engine(scheme: Scheme, known: bool) -> None:
    problem = Problem(1, scheme, known=known)
    ours, theirs = (engine.run(problem.tables, problem.chain) for engine in (problem.jax, problem.threads))
    np.testing.assert_allclose(ours.log_z, theirs.log_z, rtol=1e-6)
    for name in ("cells", "words"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), err_msg=name, **SINGLE)
    for a, b in zip(ours.labels, theirs.labels, strict=True):
        np.testing.assert_allclose(a, b, **SINGLE)
    votes = np.eye(len(problem.tags.labels))[problem.encoded.cells.label]
    ours, theirs = (engine.vote(votes, 0.1, 0.6) for engine in (problem.jax, problem.threads))
    for a, b in zip((ours.cells, ours.words, *ours.labels), (theirs.cells, theirs.words, *theirs.labels), strict=True):
        np.testing.assert_allclose(a, b, **SINGLE)
    for by_token in (False, True) if scheme is Scheme.BIO else (False,):
        same_decoding(
            *(e.decode(problem.tables, problem.chain, by_token=by_token) for e in (problem.jax, problem.threads))
        )


def test_what_single_precision_cannot_hold_is_done_in_log_space() -> None:
    problem = Problem(2, Scheme.BIOES, known=True, spread=300.0)
    ours, theirs = (engine.run(problem.tables, problem.chain) for engine in (problem.jax, problem.threads))
    np.testing.assert_allclose(ours.log_z, theirs.log_z, rtol=1e-6)
    np.testing.assert_allclose(ours.cells, theirs.cells, **SINGLE)
    np.testing.assert_allclose(ours.labels.pairs, theirs.labels.pairs, **SINGLE)
    same_decoding(*(e.decode(problem.tables, problem.chain, by_token=False) for e in (problem.jax, problem.threads)))


def test_plain_recursion_equals_the_compiled_one() -> None:
    problem = Problem(3, Scheme.BIO, known=True)
    decoded = problem.threads.decode(problem.tables, problem.chain, by_token=False)
    for d in range(problem.encoded.n_docs):
        document = plain.Document(*map(int, problem.encoded.doc_start[d : d + 2]))
        evidence = plain.evidence_of(problem.encoded, problem.tables, problem.chain, problem.known, document)
        found = plain.passed(evidence, problem.chain)
        read = plain.read_off(evidence, problem.chain, problem.tags, found, by_token=False)
        np.testing.assert_allclose(found.posterior, decoded.posterior[slice(*document)], atol=1e-10)
        np.testing.assert_array_equal(read.path, decoded.path[slice(*document)])
        np.testing.assert_allclose(read.log_probability, decoded.log_probability[d], atol=1e-9)
        for start, end, probability in read.spans:
            assert decoded.span_end[document.first + start] == document.first + end
            np.testing.assert_allclose(decoded.span_probability[document.first + start], probability, atol=1e-10)


def test_a_fit_gives_the_same_tags() -> None:
    import quorate

    corpus = quorate.sample()
    threads = bsc("bsc-seq", max_iter=10).fit(corpus)
    jax = bsc("bsc-seq", max_iter=10, engine="jax").fit(corpus)
    assert jax.result_.tags == threads.result_.tags
    np.testing.assert_allclose(jax.trace_.bounds, threads.trace_.bounds, rtol=1e-5)


def test_batches_hold_every_document_once_with_little_room_empty() -> None:
    lengths = np.random.default_rng(0).integers(0, 700, 9000)
    batches = _batches_of(lengths)
    every = np.sort(np.concatenate([documents for documents, _ in batches]))
    np.testing.assert_array_equal(every, np.flatnonzero(lengths))
    assert all(lengths[documents].max() <= width for documents, width in batches)
    assert len({width for _, width in batches}) <= 8
    assert sum(len(documents) * width for documents, width in batches) < 1.2 * lengths.sum()


def test_trees_add_up_the_rows_of_each_group() -> None:
    rng = np.random.default_rng(0)
    group = np.minimum(rng.geometric(0.05, 3000), 40).astype(np.int32)
    row = rng.permutation(3000)
    values = np.append(rng.random(3000), 0.0)
    totals = values
    for level in _tree(group, row, 39, 3000).levels:
        totals = np.append(totals[np.asarray(level)].sum(axis=1), 0.0)
    np.testing.assert_allclose(totals[:-1], np.bincount(group, values[row], minlength=41)[:39])


def test_needs_no_file_format() -> None:
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('msgspec', 'typer', 'rich', 'dask'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "import quorate.infer.loop, quorate.infer.parts.annotators, quorate.infer.parts.text\n"
        "import quorate.infer.engines.jax\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_default_method_chooses_and_updates_on_the_engine_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hidden, "_SPANS_WANTED", 1)  # one draw: each is compiled for
    monkeypatch.setattr(factory, "ThreadsEngine", None)  # whoever makes one fails
    tables_of_runs: list[Tables] = []
    run = JaxEngine.run

    def counted(engine: JaxEngine, tables: Tables, chain: Chain) -> Counts:
        tables_of_runs.append(tables)
        return run(engine, tables, chain)

    monkeypatch.setattr(JaxEngine, "run", counted)
    rng = np.random.default_rng(0)
    corpus = random_corpus(rng, tagset(Scheme.BIO), n_documents=210, shortest=4, longest=4)
    model = bsc(engine="jax")
    assert isinstance(model, BSC)
    model.fit(Corpus(corpus.documents[:200]))
    assert model.choice_ is not None
    assert model.choice_.vote is not None
    assert len(tables_of_runs) > model.trace_.passes + len(model.choice_.trials)
    before = len(tables_of_runs)
    model.update(Corpus(corpus.documents[200:]), passes=2)
    assert len(tables_of_runs) == before + 3 + 2  # over the new documents, then over all


def test_the_entropy_of_sequences_does_not_hang_on_single_precision() -> None:
    problem = Problem(3, Scheme.BIO)

    def entropy(engine: Engine) -> Floats:
        def log_z(power: float) -> Floats:
            tables = problem.tables._replace(cells=power * problem.tables.cells, words=power * problem.tables.words)
            chain = problem.chain._replace(start=power * problem.chain.start, trans=power * problem.chain.trans)
            return engine.decode(tables, chain, by_token=False).log_z

        return sequence_entropy(log_z, rounding=engine.rounding)

    np.testing.assert_allclose(entropy(problem.jax), entropy(problem.threads), atol=0.005)
