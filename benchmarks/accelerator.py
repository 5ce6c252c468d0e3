"""bsc-seq on an accelerator, from file to file: ``python benchmarks/accelerator.py [TOKENS] [PER_DOCUMENT]``.

Needs NumPy, JAX and msgspec. The crowd is simulated as arrays (documents of 10 to 40 tokens, 9 labels, 500 annotators)
and written as an encoded corpus. Then two processes, one after the other, go from that file to the consensus on disk
and say how long each step takes: in the first nothing is compiled yet, the second finds the code on disk. They go the
library's own way, ``BSC.fit`` and ``Result.write``, and the consensus is in JSONL. ``--engine threads`` does so without
an accelerator.

With ``--parts`` two more processes run the parts of the engine one by one, and write the consensus as arrays. Tags are
compared there with those that NumPy finds in log space, in float64, with the parameters of the same fit; with
``--small``, on a smaller corpus, with those of a whole fit in float64.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import arrays
import options
from common import bsc_seq
from quorate.crowd.crowd import Crowd
from quorate.model import loop
from quorate.model.engines import plain
from quorate.model.engines.jax import JaxEngine
from quorate.model.engines.jax.lanes import shares_of
from quorate.model.engines.protocol import Counts, Decoded, Engine, Likely, Tables
from quorate.model.parts.dirichlet import log_mean
from quorate.model.parts.truth import Chain, LabelCounts
from quorate.model.start import Start

Ints = NDArray[np.int64]

TAGS = arrays.TAGS
NEVER = -1.0  # the tolerance with which a fit takes all its passes: in single precision a bound soon gains nothing


class PlainEngine:
    """Passes in log space and float64 with NumPy alone, document by document: slow, and plainly right."""

    rounding = 1e-9

    def __init__(self, encoded: Crowd, votes: Engine) -> None:
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
    encoded: Crowd, model: loop.Model, documents: NDArray[np.int64]
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


class Steps:
    """Seconds of each step, and how many of them JAX compiled, or fetched compiled code from disk."""

    def __init__(self) -> None:
        self.compiling = 0.0
        if "jax" in sys.modules:
            sys.modules["jax"].monitoring.register_event_duration_secs_listener(self._heard)

    def _heard(self, event: str, duration_secs: float, **_: str | int) -> None:
        if event.startswith(("/jax/core/compile/", "/jax/compilation_cache/cache_retrieval")):
            self.compiling += duration_secs

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Print how long what is inside takes."""
        began, busy, compiled = time.perf_counter(), time.process_time(), self.compiling
        yield
        took, cpu = time.perf_counter() - began, time.process_time() - busy
        compiling = self.compiling - compiled
        beside = f", of which compiling {compiling:.2f} s" if compiling > 0.005 else ""
        print(f"accelerator:   {name:<28} {took:7.2f} s, CPU {cpu:7.2f} s{beside}", flush=True)

    def around(self, owner: Any, function: str, name: str) -> None:
        """Print how long each call of a function of the library takes."""
        called = getattr(owner, function)

        @wraps(called)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.step(name):
                return called(*args, **kwargs)

        setattr(owner, function, timed)


def part_by_part(path: str, output: str, started: str) -> None:
    """What the engine does, in a process of its own that was ``started`` then."""
    import jax

    from quorate.corpus.tags import Invalid
    from quorate.storage import arrays as files
    from quorate.storage.corpora import StoredCorpus

    device = jax.devices()[0]
    steps = Steps()
    print(f"accelerator:   {'start of the device':<28} {time.time() - float(started):7.2f} s", flush=True)
    with steps.step("load"):
        corpus = StoredCorpus(path)
        encoded = corpus.encoded_as(TAGS, Invalid.REPAIR)
        assert encoded is not None
    with steps.step("lanes"):
        shares_of(np.diff(encoded.doc_start), len(TAGS.labels))
    with steps.step("transfer, of events"):
        jax.device_put(encoded.event_cell, device).block_until_ready()
    with steps.step("engine, with both"):
        engine = JaxEngine(encoded)
    with steps.step("start from votes"):
        model = loop.initial_model(engine, arrays.model_of(encoded), encoded)
    with steps.step("first pass"):
        loop.fit(engine, model, encoded, start=Start.PRIOR, max_passes=1)
    with steps.step("20 passes"):
        fit = loop.fit(engine, model, encoded, start=Start.PRIOR, max_passes=20, tolerance=NEVER)
    with steps.step("decode"):
        decoded = loop.decode(engine, fit.model, encoded.cells, posteriors=False)
    with steps.step("write"):
        begin = np.flatnonzero(decoded.span_end).astype(np.int32)
        written: files.Arrays = {
            "path": decoded.path.astype(np.int16),
            "sure": np.round(decoded.token_probability * 255).astype(np.uint8),
            "span_start": begin,
            "span_end": decoded.span_end[begin],
            "span_probability": decoded.span_probability[begin],
            "log_probability": decoded.log_probability,
        }
        files.write(output, written, {"labels": TAGS.labels})
    print(f"accelerator:   {'whole':<28} {time.time() - float(started):7.2f} s", flush=True)
    rate = fit.trace.passes * encoded.n_tokens / fit.trace.seconds / 1e6
    print(
        f"accelerator: {fit.trace.passes} passes in {fit.trace.seconds:.3f} s, {rate:.0f} M tokens a second; "
        f"bound {fit.trace.bound:.1f}",
        flush=True,
    )
    memory = device.memory_stats() or {}
    print(f"accelerator: at most {memory.get('peak_bytes_in_use', 0) / 1e9:.1f} GB of the device's memory", flush=True)
    some = np.random.default_rng(0).choice(encoded.n_docs, min(4000, encoded.n_docs), replace=False)
    tokens, tags = paths(encoded, fit.model, some)
    print(f"accelerator: tags alike on {100 * np.mean(decoded.path[tokens] == tags):.4f} % of {len(tokens):,} tokens")


def from_file_to_file(path: str, output: str, started: str, engine: Literal["jax", "threads"]) -> None:
    """The library's own way, in a process of its own that was ``started`` then."""
    if engine == "jax":
        import jax

        jax.devices()
    import quorate
    from quorate.estimators import bsc
    from quorate.model import fit
    from quorate.model.engines.factory import Engines

    steps = Steps()
    print(f"accelerator:   {'start, imports, the device':<28} {time.time() - float(started):7.2f} s", flush=True)
    steps.around(fit, "changed", "  changes of the crowd")
    steps.around(Engines, "over", "  engine, with the transfer")
    steps.around(loop, "fit", "  passes")
    steps.around(loop, "decode", "  decode")
    steps.around(bsc, "summarise", "  summaries of annotators")
    steps.around(bsc, "Result", "  result")
    with steps.step("load"):
        corpus = quorate.read(path)
    with steps.step("BSC.fit, which is"):
        model = bsc_seq(probabilities=False, engine=engine, adapt=True).fit(corpus)
    with steps.step("Result.write, in JSONL"):
        model.result_.write(output)
    print(f"accelerator:   {'file to file':<28} {time.time() - float(started):7.2f} s", flush=True)
    size, trace, most = Path(output).stat().st_size / 1e6, model.trace_, resource.getrusage(resource.RUSAGE_SELF)
    print(
        f"accelerator: {trace.passes} passes, {trace.seconds:.2f} s, bound {trace.bound:.1f}; JSONL of {size:.0f} MB; "
        f"{sum(most[:2]):.1f} s of CPU, at most {most.ru_maxrss / 1e6:.1f} GB of memory",
        flush=True,
    )


def small_fits(per_document: int) -> None:
    """A whole fit here, and one in float64 with NumPy alone."""
    small = arrays.simulated(20_000, per_document, seed=1)
    engine: Engine = JaxEngine(small)
    engines: list[Engine] = [engine, PlainEngine(small, engine)]
    fits = [loop.fit(each, arrays.model_of(small), small, max_passes=20) for each in engines]
    _, theirs = paths(small, fits[1].model, np.arange(small.n_docs))
    decoded = loop.decode(engine, fits[0].model, small.cells).path
    print(
        f"accelerator: {small.n_tokens:,} tokens, 20 passes here against 20 in float64: tags alike on "
        f"{100 * np.mean(decoded == theirs):.4f} % of tokens, "
        f"bound {fits[0].trace.bound:.3f} against {fits[1].trace.bound:.3f}",
        flush=True,
    )


def own_process(function: str, cache: str, *arguments: str) -> None:
    """Call a function of this module in a process of its own, which keeps compiled code in ``cache``."""
    code = f"import sys, accelerator; accelerator.{function}(*sys.argv[1:])"
    own_paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    own = {"PYTHONPATH": own_paths, "XDG_CACHE_HOME": cache}
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, env=os.environ | own)


def main() -> None:
    parser = options.parser_of(__doc__)
    parser.add_argument("tokens", type=int, nargs="?", default=20_000_000, help="about so many tokens")
    parser.add_argument("per_document", type=int, nargs="?", default=5, help="annotators of each document")
    parser.add_argument("--engine", choices=["jax", "threads"], default="jax", help="where passes run")
    parser.add_argument("--parts", action="store_true", help="run the parts of the engine one by one too")
    parser.add_argument(
        "--small", action="store_true", help="compare whole fits on 20,000 tokens too, which takes long"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".", prefix=".accelerator-") as folder:
        began = time.perf_counter()
        encoded = arrays.simulated(given.tokens, given.per_document)
        arrays.stored(encoded, f"{folder}/crowd.qr")
        print(
            f"accelerator: {encoded.n_tokens:,} tokens, {len(encoded.event_cell):,} labels, "
            f"{len(encoded.cells.label):,} cells, {len(encoded.words):,} words, simulated and written in "
            f"{time.perf_counter() - began:.1f} s, {Path(folder, 'crowd.qr').stat().st_size / 1e6:.0f} MB",
            flush=True,
        )
        crowd, cache = f"{folder}/crowd.qr", f"{folder}/cache"
        runs = ("nothing compiled yet", "compiled code on disk")
        for title in runs if given.engine == "jax" else ("on the cores of this machine",):
            print(f"accelerator: {title}", flush=True)
            own_process("from_file_to_file", cache, crowd, f"{folder}/consensus.jsonl", str(time.time()), given.engine)
        if given.parts:
            for title in runs:
                print(f"accelerator: part by part, {title}", flush=True)
                own_process("part_by_part", f"{cache} of parts", crowd, f"{folder}/consensus.qr", str(time.time()))
    if given.small:
        small_fits(given.per_document)


if __name__ == "__main__":
    main()
