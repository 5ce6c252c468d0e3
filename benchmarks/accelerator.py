"""Passes of bsc-seq on an accelerator: ``python benchmarks/accelerator.py [tokens] [annotators per document]``.

Needs NumPy, SciPy and JAX alone. The crowd is simulated as arrays: documents of 10 to 40 tokens, 9 labels, 500
annotators. Tags are compared with those that NumPy finds in log space, in float64, with the parameters of the same fit;
on a smaller corpus, with those of a whole fit in float64.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from numpy.typing import NDArray

from quorate.encode import Cells, Encoded
from quorate.infer import plain, vb
from quorate.infer.annotators import AnnotatorPrior, Sequential
from quorate.infer.dirichlet import log_mean
from quorate.infer.engine import Counts, Decoded, Engine, Tables
from quorate.infer.jax_engine import JaxEngine
from quorate.infer.text import Words
from quorate.infer.truth import Chain, LabelCounts, Markov
from quorate.tags import Scheme, TagSet

Ints = NDArray[np.int64]

TAGS = TagSet.of_types(Scheme.BIO, ["LOC", "MISC", "ORG", "PER"])
N_ANNOTATORS, N_WORDS = 500, 50_000


def simulated(n_tokens: int, per_document: int, seed: int = 0) -> Encoded:
    """Truth from a chain, words from a Zipf law shifted by the label, labels right in 60 to 95 of 100 cases."""
    rng = np.random.default_rng(seed)
    J = len(TAGS.labels)
    lengths = rng.integers(10, 41, n_tokens // 25 + 1)
    doc_start = np.concatenate([[0], np.cumsum(lengths)])
    N = int(doc_start[-1])
    trans = np.where(TAGS.allowed, 0.03, 0.0)
    for i, (prefix, kind) in enumerate(TAGS.parts):
        trans[i, 0] = 0.45 if prefix else 0.85
        if prefix:
            trans[i, TAGS.index[f"I-{kind}"]] = 0.45
    cumulated = np.cumsum(trans / trans.sum(axis=1, keepdims=True), axis=1)
    truth = np.zeros(N, np.int64)
    draws = rng.random(N, np.float32)
    for position in range(int(lengths.max())):
        tokens = doc_start[:-1][lengths > position] + position
        before = truth[tokens - 1] if position else np.zeros(len(tokens), np.int64)
        truth[tokens] = np.minimum((draws[tokens, None] > cumulated[before]).sum(axis=1), J - 1)
    word = ((rng.zipf(1.3, N) * 7 + truth * rng.integers(0, 40, N)) % N_WORDS).astype(np.int32)
    skill = rng.uniform(0.6, 0.95, N_ANNOTATORS)
    who = rng.integers(0, N_ANNOTATORS, (len(lengths), per_document))
    keys = np.empty((N, per_document), np.int32)
    starts = np.zeros(N, np.bool_)
    starts[doc_start[:-1]] = True
    for slot in range(per_document):
        annotator = np.repeat(who[:, slot], lengths)
        label = np.where(rng.random(N, np.float32) < skill[annotator], truth, rng.integers(0, J, N))
        before = np.where(starts, 0, np.roll(label, 1))
        # An annotator's own sequence follows the scheme: what cannot follow opens a span, as repair would have it.
        label = np.where(TAGS.allowed[before, label], label, label - 1)
        before = np.where(starts, 0, np.roll(label, 1))
        label = np.where(TAGS.allowed[before, label], label, 0)
        before = np.where(starts, 0, np.roll(label, 1))
        label = np.where(TAGS.allowed[before, label], label, 0)
        keys[:, slot] = (annotator * J + np.where(starts, 0, np.roll(label, 1))) * J + label
    flat = keys.ravel()
    occurs = np.zeros(N_ANNOTATORS * J * J, np.bool_)
    occurs[flat] = True
    rank = np.cumsum(occurs, dtype=np.int32) - 1
    row, label = np.divmod(np.flatnonzero(occurs), J)
    annotator, previous = np.divmod(row, J)
    return Encoded(
        TAGS,
        tuple(f"a{k}" for k in range(N_ANNOTATORS)),
        tuple(f"w{v}" for v in range(N_WORDS)),
        doc_start,
        word,
        np.arange(N + 1) * per_document,
        rank[flat],
        None,
        Cells(annotator, previous, label, N_ANNOTATORS, J, J),
        0,
    )


def model_of(encoded: Encoded) -> vb.Model:
    """bsc-seq with its default settings."""
    prior = AnnotatorPrior(TAGS, 1.0, 30.0)
    words = Words.of(len(encoded.words), len(TAGS.labels), 0.3)
    return vb.Model(Markov.of(TAGS, 1.0), Sequential.of(prior, N_ANNOTATORS), words, 0.6)


class PlainEngine:
    """Passes in log space and float64 with NumPy alone, document by document: slow, and plainly right."""

    rounding = 1e-9

    def __init__(self, encoded: Encoded, votes: Engine) -> None:
        self._encoded, self._votes = encoded, votes

    def vote(self, table: NDArray[np.float64], smoothing: float, temper: float = 1.0) -> Counts:
        """As the other engine does: it is the same start for both."""
        return self._votes.vote(table, smoothing, temper)

    def decode(self, tables: Tables, chain: Chain, *, by_token: bool, posteriors: bool = True) -> Decoded:
        """Not asked for: see :func:`paths`."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is held."""

    def run(self, tables: Tables, chain: Chain) -> Counts:
        """One pass."""
        encoded, J = self._encoded, len(chain.start)
        log_z, first, pairs, every = 0.0, np.zeros(J), np.zeros((J, J)), np.zeros(J)
        posterior = np.empty((encoded.n_tokens, J))
        for d in range(encoded.n_docs):
            document = plain.Document(*map(int, encoded.doc_start[d : d + 2]))
            found = plain.passed(plain.evidence_of(encoded, tables, chain, None, document), chain)
            posterior[slice(*document)] = found.posterior
            log_z, pairs, first = log_z + found.log_z, pairs + found.pairs, first + found.posterior[0]
        cells, words = np.zeros_like(tables.cells), np.zeros_like(tables.words)
        np.add.at(cells, encoded.event_cell, np.repeat(posterior, np.diff(encoded.event_start), axis=0))
        np.add.at(words, encoded.word, posterior)
        return Counts(log_z, tables.temper * cells, words, LabelCounts(first, pairs, posterior.sum(axis=0) + every))


def paths(
    encoded: Encoded, model: vb.Model, documents: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tokens of some documents, and their tags by NumPy."""
    tables, chain = model.tables(encoded.cells, log_mean), model.truth.chain(log_mean)
    tokens, tags = [], []
    for d in documents.tolist():
        document = plain.Document(*map(int, encoded.doc_start[d : d + 2]))
        evidence = plain.evidence_of(encoded, tables, chain, None, document)
        found = plain.passed(evidence, chain)
        tokens.append(np.arange(*document))
        tags.append(plain.read_off(evidence, chain, TAGS, found, by_token=False).path)
    return np.concatenate(tokens), np.concatenate(tags)


def main() -> None:
    import jax

    n_tokens, per_document = (int(sys.argv[1]) if len(sys.argv) > 1 else 20_000_000), 5
    print(f"accelerator: {jax.devices()[0].device_kind}, JAX {jax.__version__}", flush=True)

    small = simulated(20_000, per_document, seed=1)
    engine: Engine = JaxEngine(small)
    engines: list[Engine] = [engine, PlainEngine(small, engine)]
    fits = [vb.fit(each, model_of(small), small.cells, max_passes=20) for each in engines]
    _, theirs = paths(small, fits[1].model, np.arange(small.n_docs))
    decoded = vb.decode(engine, fits[0].model, small.cells).path
    print(
        f"accelerator: {small.n_tokens:,} tokens, 20 passes here against 20 in float64: tags alike on "
        f"{100 * np.mean(decoded == theirs):.4f} % of tokens, "
        f"bound {fits[0].trace.bound:.3f} against {fits[1].trace.bound:.3f}",
        flush=True,
    )

    began = time.perf_counter()
    encoded = simulated(n_tokens, per_document)
    print(
        f"accelerator: {encoded.n_tokens:,} tokens, {len(encoded.event_cell):,} labels, "
        f"{len(encoded.cells.label):,} cells, {len(encoded.words):,} words, "
        f"simulated in {time.perf_counter() - began:.1f} s",
        flush=True,
    )
    began = time.perf_counter()
    engine = JaxEngine(encoded)
    print(f"accelerator: loaded in {time.perf_counter() - began:.1f} s", flush=True)
    began = time.perf_counter()
    vb.fit(engine, model_of(encoded), encoded.cells, max_passes=1)
    print(f"accelerator: first pass, with compiling, {time.perf_counter() - began:.1f} s", flush=True)
    for _ in range(3):
        fit = vb.fit(engine, model_of(encoded), encoded.cells, max_passes=20, tolerance=0.0)
        rate = 20 * encoded.n_tokens / fit.trace.seconds / 1e6
        print(f"accelerator: 20 passes of bsc-seq {fit.trace.seconds:.2f} s, {rate:.0f} M tokens/s", flush=True)
    began = time.perf_counter()
    tables, chain = fit.model.tables(encoded.cells), fit.model.truth.chain()
    print(f"accelerator: tables alone {time.perf_counter() - began:.3f} s", end=", ")
    began = time.perf_counter()
    fit.model.kl()
    print(f"KL alone {time.perf_counter() - began:.3f} s", end=", ")
    began = time.perf_counter()
    engine.run(tables, chain)
    print(f"one pass alone {time.perf_counter() - began:.3f} s", flush=True)
    began = time.perf_counter()
    decoded = vb.decode(engine, fit.model, encoded.cells).path
    print(f"accelerator: decoding {time.perf_counter() - began:.1f} s, with compiling", flush=True)
    some = np.random.default_rng(0).choice(encoded.n_docs, min(8000, encoded.n_docs), replace=False)
    tokens, tags = paths(encoded, fit.model, some)
    print(f"accelerator: tags alike on {100 * np.mean(decoded[tokens] == tags):.4f} % of {len(tokens):,} tokens")


if __name__ == "__main__":
    main()
