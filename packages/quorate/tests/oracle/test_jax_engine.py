"""The engine on JAX against the compiled one; all on the CPU, in single precision."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from by_name import bsc
from problems import random_corpus, tagset
from quorate.active.strategies import sequence_entropy
from quorate.corpus.records import Corpus
from quorate.corpus.tags import Invalid, Scheme, TagSet
from quorate.crowd import hold_out
from quorate.crowd.crowd import AnnotatorPriors
from quorate.crowd.encode import encode, encode_known
from quorate.estimators.bsc import BSC
from quorate.model import fit, loop
from quorate.model.engines import factory, plain
from quorate.model.engines.protocol import Counts, Decoded, Engine, Tables
from quorate.model.engines.threads import ThreadsEngine
from quorate.model.kernels import special
from quorate.model.parts.annotators import Accuracy, AnnotatorPrior
from quorate.model.parts.confusions import ConfusionMatrix, Sequential
from quorate.model.parts.text import Shapes, Words
from quorate.model.parts.truth import Chain, Markov

pytest.importorskip("jax", reason="the extra 'jax' is not installed")

import jax

from quorate.model.engines.jax import JaxEngine, lanes, tables
from quorate.model.engines.jax.device import advice, roomy
from quorate.model.engines.jax.lanes import shares_of
from quorate.model.engines.jax.sums import rows_of, summed, sums_by

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
    device = bsc("bsc-seq", max_iter=10, engine="jax").fit(corpus)
    assert device.result_.tags == threads.result_.tags
    np.testing.assert_allclose(device.trace_.bounds, threads.trace_.bounds, rtol=1e-5)


@pytest.mark.parametrize("lengths", [(0, 700), (10, 41), (120, 129)])
def test_lanes_hold_every_document_once_with_little_room_empty(lengths: tuple[int, int]) -> None:
    of_documents = np.random.default_rng(0).integers(*lengths, 9000)
    shares = shares_of(of_documents, 9)
    every = np.sort(np.concatenate([share.documents for share in shares]))
    np.testing.assert_array_equal(every, np.flatnonzero(of_documents))
    for share in shares:
        taken = np.zeros(share.places, np.int64)
        for d, first in zip(share.documents.tolist(), share.first.tolist(), strict=True):
            taken[first + np.arange(of_documents[d]) * share.lanes] += 1
        assert taken.max() == 1
    assert sum(share.places for share in shares) < 1.2 * of_documents.sum()


def test_a_few_long_documents_do_not_make_all_lanes_long() -> None:
    shares = shares_of(np.array([20] * 20_000 + [6000] * 50), 3)
    short, long = sorted(share.length for share in shares)
    assert short <= 160
    assert long == 6000


def test_large_corpora_are_done_in_parts_of_one_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "_MOST", 20_000)
    shares = shares_of(np.random.default_rng(0).integers(10, 41, 1000), 3)
    assert len(shares) > 3
    assert len({share[2:] for share in shares}) == 1


def test_sizes_are_few_and_hardly_larger() -> None:
    sizes = [roomy(n) for n in range(1000, 64_000)]
    assert all(n <= size <= 1.125 * n + 1 for n, size in zip(range(1000, 64_000), sizes, strict=True))
    assert len(set(sizes)) < 8 * 7
    assert [roomy(size) for size in sizes] == sizes


@pytest.mark.parametrize("weighted", [False, True])
def test_trees_add_up_the_rows_of_each_group(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    groups = [np.minimum(rng.geometric(0.05, (2, 30, 50)), 40), rng.integers(0, 41, (1, 20, 16))]
    weights = [rng.random(each.shape).astype(np.float32) if weighted else np.ones(each.shape) for each in groups]
    values = rng.random((30 * 50 + 20 * 16, 2))
    with jax.enable_x64(True):
        on_device = [jax.device_put(each.astype(np.int32)) for each in groups]
        sums = sums_by(on_device, [jax.device_put(each) for each in weights] if weighted else None, 39)
        found = np.asarray(summed(rows_of([jax.device_put(values)]), sums))
    place = np.concatenate([np.tile(np.arange(1500), 2), 1500 + np.arange(320)])
    group, weight = (np.concatenate([each.ravel() for each in columns]) for columns in (groups, weights))
    for j in range(2):
        expected = np.bincount(group, weight * values[place, j], minlength=41)[:39]
        np.testing.assert_allclose(found[:, j], expected, rtol=1e-6)


def test_tables_are_made_of_the_same_functions_as_on_cores() -> None:
    rng = np.random.default_rng(0)
    x, step = 10.0 ** rng.uniform(-3, 7, 2000), 10.0 ** rng.uniform(-3, 7, 2000)
    x[0], step[1], x[2], step[2] = 0.0, 0.0, 0.0, 0.0
    with jax.enable_x64(True):
        psi, bend = tables.psi(jax.numpy.asarray(x)), tables.bend(jax.numpy.asarray(x), jax.numpy.asarray(step))
    np.testing.assert_allclose(psi, special.psi(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(bend, special.gammaln_bend(x, step), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_shapes", [1, 3])
@pytest.mark.parametrize("annotators", [Sequential, ConfusionMatrix])
def test_a_model_that_lives_on_the_device_is_the_same(annotators: Any, n_shapes: int) -> None:
    problem = Problem(4, Scheme.BIO)
    encoded, J = problem.encoded, len(problem.tags.labels)
    written = np.arange(len(encoded.words)) % max(n_shapes - 1, 1)  # one of several shapes is that of no word
    prior = AnnotatorPrior(
        problem.tags,
        1.0,
        5.0,
        of_each=AnnotatorPriors((0.5,) * len(encoded.annotators), (0.3,) * len(encoded.annotators)),
    )
    blank = loop.Model(
        Markov.of(problem.tags, 1.0),
        annotators.of(prior, len(encoded.annotators)),
        Words.of(len(encoded.words), J, 0.3, shapes=Shapes(written.astype(np.int8), n_shapes)),
        0.6,
    )
    assert problem.jax.resident(loop.initial_model(problem.jax, blank, encoded), encoded.cells) is not None
    ours, theirs = (loop.fit(each, blank, encoded, max_passes=4) for each in (problem.jax, problem.threads))
    np.testing.assert_allclose(ours.trace.bounds, theirs.trace.bounds, rtol=1e-6)
    np.testing.assert_allclose(ours.model.kl(), theirs.model.kl(), rtol=1e-5)
    for name, array in theirs.model.annotators.arrays().items():
        np.testing.assert_allclose(ours.model.annotators.arrays()[name], array, **SINGLE)


def test_a_model_with_other_parts_goes_round_here() -> None:
    problem = Problem(4, Scheme.BIO)
    prior = AnnotatorPrior(problem.tags, 1.0, 5.0)
    blank = loop.Model(Markov.of(problem.tags, 1.0), Accuracy.of(prior, len(problem.encoded.annotators)), None, 0.6)
    assert problem.jax.resident(blank, problem.encoded.cells) is None


def test_several_batches_weights_and_long_documents_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "_SHORTEST", 8)
    monkeypatch.setattr(lanes, "_ENOUGH", 16)
    monkeypatch.setattr(lanes, "_APART", 2)
    monkeypatch.setattr(lanes, "_MOST", 400)
    rng = np.random.default_rng(0)
    tags = tagset(Scheme.BIO)
    corpus = random_corpus(rng, tags, n_documents=24, shortest=1, longest=14, n_words=6)
    encoded = encode(corpus, tags)
    encoded = replace(encoded, event_weight=rng.random(len(encoded.event_cell)))
    G, J = len(encoded.cells.label), len(tags.labels)
    given = Tables(rng.normal(0, 1, (G, J)), rng.normal(0, 1, (len(encoded.words), J)), 0.6)
    chain = random_chain(rng, tags)
    jax_engine, threads = JaxEngine(encoded), ThreadsEngine(encoded)
    ours, theirs = (engine.run(given, chain) for engine in (jax_engine, threads))
    np.testing.assert_allclose(ours.log_z, theirs.log_z, rtol=1e-6)
    np.testing.assert_allclose(ours.cells, theirs.cells, **SINGLE)
    np.testing.assert_allclose(ours.labels.pairs, theirs.labels.pairs, **SINGLE)
    same_decoding(*(engine.decode(given, chain, by_token=False) for engine in (jax_engine, threads)))
    ours_alone, theirs_alone = (
        engine.decode(given, chain, by_token=False, posteriors=False) for engine in (jax_engine, threads)
    )
    assert ours_alone.posterior.shape == theirs_alone.posterior.shape
    np.testing.assert_allclose(ours_alone.token_probability, theirs_alone.token_probability, **SINGLE)


def test_needs_no_file_format() -> None:
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('msgspec', 'typer', 'rich', 'dask'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "import quorate.model.loop, quorate.model.parts.annotators, quorate.model.parts.text\n"
        "import quorate.model.engines.jax\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_default_method_chooses_and_updates_on_the_engine_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = hold_out.folds
    monkeypatch.setattr(fit, "folds", lambda *given, **more: list(own(*given, **more))[:1])  # each is compiled for
    monkeypatch.setattr(factory, "ThreadsEngine", None)  # whoever makes one fails
    runs: list[Any] = []
    passed = JaxEngine.passed

    def counted(engine: JaxEngine, *given: Any) -> Counts:
        runs.append(given)
        return passed(engine, *given)

    monkeypatch.setattr(JaxEngine, "passed", counted)
    rng = np.random.default_rng(0)
    corpus = random_corpus(rng, tagset(Scheme.BIO), n_documents=210, shortest=4, longest=4)
    model = bsc(engine="jax")
    assert isinstance(model, BSC)
    model.fit(Corpus(corpus.documents[:200]))
    assert len(runs) > model.trace_.passes  # the folds that it is calibrated on, too
    before = len(runs)
    model.update(Corpus(corpus.documents[200:]), passes=2)
    assert len(runs) == before + 3 + 2  # over the new documents, then over all


def test_the_entropy_of_sequences_does_not_hang_on_single_precision() -> None:
    problem = Problem(3, Scheme.BIO)

    def entropy(engine: Engine) -> Floats:
        def log_z(power: float) -> Floats:
            tables = problem.tables._replace(cells=power * problem.tables.cells, words=power * problem.tables.words)
            chain = problem.chain._replace(start=power * problem.chain.start, trans=power * problem.chain.trans)
            return engine.decode(tables, chain, by_token=False).log_z

        return sequence_entropy(log_z, rounding=engine.rounding)

    np.testing.assert_allclose(entropy(problem.jax), entropy(problem.threads), atol=0.005)


@pytest.mark.parametrize(("backend", "lines"), [("cpu", 1), ("gpu", 0)])
def test_whoever_has_no_accelerator_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, backend: str, lines: int
) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    said = advice()
    assert len(said) == lines
    assert all("--engine threads is faster" in line for line in said)
