"""Passes of bsc-seq on an accelerator: ``python benchmarks/accelerator.py [TOKENS] [PER_DOCUMENT]``.

Needs NumPy, SciPy and JAX alone. The crowd is simulated as arrays: documents of 10 to 40 tokens, 9 labels, 500
annotators. Tags are compared with those that NumPy finds in log space, in float64, with the parameters of the same fit;
on a smaller corpus, with those of a whole fit in float64.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

import arrays
import options
from quorate.encode.encoded import Encoded
from quorate.infer import loop
from quorate.infer.engines import plain
from quorate.infer.engines.jax import JaxEngine
from quorate.infer.engines.protocol import Counts, Decoded, Engine, Likely, Tables
from quorate.infer.parts.dirichlet import log_mean
from quorate.infer.parts.truth import Chain, LabelCounts

Ints = NDArray[np.int64]

TAGS = arrays.TAGS


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

    def likely_spans(self, tables: Tables, chain: Chain, least: float) -> Likely:
        """Not asked for."""
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
    encoded: Encoded, model: loop.Model, documents: NDArray[np.int64]
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
    parser = options.parser_of(__doc__)
    parser.add_argument("tokens", type=int, nargs="?", default=20_000_000, help="about so many tokens")
    parser.add_argument("per_document", type=int, nargs="?", default=5, help="annotators of each document")
    given = parser.parse_args()
    import jax

    n_tokens, per_document = given.tokens, given.per_document
    print(f"accelerator: {jax.devices()[0].device_kind}, JAX {jax.__version__}", flush=True)

    small = arrays.simulated(20_000, per_document, seed=1)
    engine: Engine = JaxEngine(small)
    engines: list[Engine] = [engine, PlainEngine(small, engine)]
    fits = [loop.fit(each, arrays.model_of(small), small.cells, max_passes=20) for each in engines]
    _, theirs = paths(small, fits[1].model, np.arange(small.n_docs))
    decoded = loop.decode(engine, fits[0].model, small.cells).path
    print(
        f"accelerator: {small.n_tokens:,} tokens, 20 passes here against 20 in float64: tags alike on "
        f"{100 * np.mean(decoded == theirs):.4f} % of tokens, "
        f"bound {fits[0].trace.bound:.3f} against {fits[1].trace.bound:.3f}",
        flush=True,
    )

    began = time.perf_counter()
    encoded = arrays.simulated(n_tokens, per_document)
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
    loop.fit(engine, arrays.model_of(encoded), encoded.cells, max_passes=1)
    print(f"accelerator: first pass, with compiling, {time.perf_counter() - began:.1f} s", flush=True)
    for _ in range(3):
        fit = loop.fit(engine, arrays.model_of(encoded), encoded.cells, max_passes=20, tolerance=0.0)
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
    decoded = loop.decode(engine, fit.model, encoded.cells).path
    print(f"accelerator: decoding {time.perf_counter() - began:.1f} s, with compiling", flush=True)
    some = np.random.default_rng(0).choice(encoded.n_docs, min(8000, encoded.n_docs), replace=False)
    tokens, tags = paths(encoded, fit.model, some)
    print(f"accelerator: tags alike on {100 * np.mean(decoded[tokens] == tags):.4f} % of {len(tokens):,} tokens")


if __name__ == "__main__":
    main()
