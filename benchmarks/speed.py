"""How fast, how large, how it grows: ``python benchmarks/speed.py [PART …] [--plot FILE]``.

The parts are recursion, growth, commands, rivals and disk; all of them if none is named.
Every figure is of one run on this machine; compare figures of one run with each other. ``recursion`` sets the compiled
recursion against hmmlearn's kernels and against a loop in C that is compiled on the spot, all on one core; ``growth``
changes the number of tokens, labels and annotators; ``commands`` times the commands on the real crowds beside the
checkout; ``rivals`` sets ours against crowd-kit; ``disk`` fits 20 million tokens of an encoded corpus.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import arrays
import core
import options
import rivals
from common import bsc_seq
from quorate.corpus.records import Document
from quorate.corpus.tags import Scheme, TagSet
from quorate.crowd.crowd import Crowd
from quorate.model import loop
from quorate.model.engines.threads import ThreadsEngine
from quorate.model.kernels import chain as kernels
from quorate.model.kernels.layout import Slice

C_LOOP = r"""
#include <string.h>
/* Scaled forward-backward over documents, evidence as a product of two rows, with pair counts; J is a constant. */
double pass(long n_docs, const long *start, const int *set, const int *word, const double *sets, const double *words,
            const double *first, const double *trans, double *alpha, double *weight, double *total, double *pairs) {
  double z = 0, back[J * J];
  for (int i = 0; i < J; i++) for (int j = 0; j < J; j++) back[j * J + i] = trans[i * J + j];
  for (long d = 0; d < n_docs; d++) {
    long L = start[d + 1] - start[d];
    const int *s = set + start[d], *w = word + start[d];
    for (long t = 0; t < L; t++) {
      double a[J], sum = 0, *e = weight + t * J;
      for (int j = 0; j < J; j++) e[j] = sets[(long)s[t] * J + j] * words[(long)w[t] * J + j];
      if (t == 0) memcpy(a, first, sizeof a);
      else {
        memset(a, 0, sizeof a);
        for (int i = 0; i < J; i++) for (int j = 0; j < J; j++) a[j] += alpha[(t - 1) * J + i] * trans[i * J + j];
      }
      for (int j = 0; j < J; j++) { a[j] *= e[j]; sum += a[j]; }
      for (int j = 0; j < J; j++) alpha[t * J + j] = a[j] / sum;
      total[t] = sum;
      z += sum;
    }
    double beta[J], before[J];
    for (int j = 0; j < J; j++) beta[j] = 1;
    for (long t = L - 1; t > 0; t--) {
      double *e = weight + t * J;
      memset(before, 0, sizeof before);
      for (int j = 0; j < J; j++) { alpha[t * J + j] *= beta[j]; e[j] *= beta[j] / total[t]; }
      for (int i = 0; i < J; i++) for (int j = 0; j < J; j++) before[j] += e[i] * back[i * J + j];
      for (int i = 0; i < J; i++) for (int j = 0; j < J; j++) pairs[i * J + j] += alpha[(t - 1) * J + i] * e[j];
      memcpy(beta, before, sizeof beta);
    }
    for (int j = 0; j < J; j++) alpha[j] *= beta[j];
  }
  return z;
}
"""


TIMES = 20  # recursions over the same evidence, which takes time of its own to make


def tags_of(n_labels: int) -> TagSet:
    return TagSet.of_types(Scheme.BIO, [f"T{n:02}" for n in range((n_labels - 1) // 2)])


def best_of(work: Callable[[], Any], times: int = 5) -> float:
    """The least seconds of this core: what else the machine does is not counted."""
    work()
    seconds = []
    for _ in range(times):
        began = time.thread_time()
        work()
        seconds.append(time.thread_time() - began)
    return min(seconds)


def evidence_of(piece: Slice, rows: kernels.Rows) -> tuple[Any, Any]:
    """What the recursion goes over: probabilities of what was said, by set, and of words, each up to a factor."""
    J = rows.cells.shape[1]
    sets = np.zeros((len(piece.set_start) - 1, J))
    of_event = np.repeat(np.arange(len(sets)), np.diff(piece.set_start))
    np.add.at(sets, of_event, rows.temper * rows.cells[piece.cells[piece.event_cell]])
    words = rows.words[piece.words] if len(rows.words) else np.zeros((len(piece.words), J))
    return tuple(np.exp(logs - logs.max(axis=1, keepdims=True)) for logs in (sets, words))


def recursion() -> None:
    """One core each: ours, C, hmmlearn."""
    for J in (3, 9, 19, 41):
        encoded = arrays.simulated(60_000, tags=tags_of(J))
        engine = ThreadsEngine(encoded, threads=1)
        model = loop.fit(engine, arrays.model_of(encoded), encoded, max_passes=3).model
        tables, chain = model.tables(encoded.cells), model.truth.chain()
        rows, steps = kernels.Rows(*tables, chain.end), engine._steps(chain.start, chain.trans)
        pieces = [engine._slice(s) for s in engine._every]
        work = [(piece, *evidence_of(piece, rows)) for piece in pieces]

        def ours(pieces: Any = pieces, rows: Any = rows, steps: Any = steps) -> None:
            for piece in pieces:
                kernels.recurse(piece, rows, steps, TIMES)

        seconds = best_of(ours) / TIMES
        line = f"recursion, {J} labels: ours {encoded.n_tokens / seconds / 1e6:.2f} M tokens/s a core"
        limit = c_seconds(work, np.exp(chain.start), np.exp(chain.trans), J)
        if limit is not None:
            line += f", C {encoded.n_tokens / limit / 1e6:.2f} (ours takes {seconds / limit:.2f} times as long)"
        theirs = hmmlearn_seconds(work, np.exp(chain.start), np.exp(chain.trans))
        if theirs is not None:
            line += f", hmmlearn {encoded.n_tokens / theirs / 1e6:.2f} ({theirs / seconds:.1f} times as long as ours)"
        print(line, flush=True)


def c_seconds(work: Any, start: Any, trans: Any, J: int) -> float | None:
    """The loop in C on the same rows; ``None`` without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "loop.c"), Path(folder, "loop.so")
        source.write_text(C_LOOP, encoding="utf-8")
        flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", f"-DJ={J}"]
        subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True, capture_output=True)
        call = ctypes.CDLL(str(library))["pass"]
        call.restype = ctypes.c_double
        pieces = []
        for piece, sets, words in work:
            longest = int(np.diff(piece.doc_start).max())
            buffers = [np.empty(longest * J), np.empty(longest * J), np.empty(longest), np.zeros(J * J)]
            arrays = [piece.doc_start, piece.token_set, piece.token_word, sets, words, start, trans.copy(), *buffers]
            pieces.append((len(piece.doc_start) - 1, arrays))

        def run() -> None:
            for n_docs, arrays in pieces:
                call(ctypes.c_long(n_docs), *(ctypes.c_void_p(array.ctypes.data) for array in arrays))

        return best_of(run)


def hmmlearn_seconds(work: Any, start: Any, trans: Any) -> float | None:
    """hmmlearn's kernels, called for each document; ``None`` where it is not installed."""
    try:
        from hmmlearn import _hmmc
    except ImportError:
        return None
    documents = []
    for piece, sets, words in work:
        rows = sets[piece.token_set] * words[piece.token_word]
        documents += np.split(rows, piece.doc_start[1:-1])

    def run() -> None:
        for rows in documents:
            _, forward, scale = _hmmc.forward_scaling(start, trans, rows)
            backward = _hmmc.backward_scaling(start, trans, rows, scale)
            _hmmc.compute_scaling_xi_sum(forward, trans, backward, rows)

    return best_of(run, 2)


def fit_seconds(encoded: Crowd, passes: int = 5) -> float:
    """Seconds of all cores together for a pass, whole loop: what else the machine does is not counted."""
    engine = ThreadsEngine(encoded)
    seconds = []
    for _ in range(3):
        began = time.process_time()
        loop.fit(engine, arrays.model_of(encoded), encoded, max_passes=passes, tolerance=0.0)
        seconds.append(time.process_time() - began)
    engine.close()
    return min(seconds) / passes


def growth(plot: str | None = None) -> None:
    """Tokens 1×, 4×, 16×; labels; annotators."""
    base, lines = 100_000, dict[str, list[tuple[float, float]]]()

    def measure(what: str, value: int, encoded: Crowd) -> float:
        seconds = fit_seconds(encoded)
        labels = len(encoded.event_cell)
        engine = ThreadsEngine(encoded)
        size = sum(array.nbytes for s in engine._every for array in engine._slice(s))
        engine.close()
        lines.setdefault(what, []).append((value, seconds))
        rate = encoded.n_tokens / seconds / 1e6
        share = f"{rate:.2f} M tokens/s, {size / labels:.1f} bytes a label"
        print(f"growth, {value:,} {what}: {1e3 * seconds:.1f} ms of one core a pass, {share}", flush=True)
        return seconds

    seconds = [measure("tokens", times * base, arrays.simulated(times * base)) for times in (1, 4, 16)]
    print(f"growth: 16 times the tokens take {seconds[2] / seconds[0]:.1f} times as long")
    for J in (3, 9, 19, 41):
        measure("labels", J, arrays.simulated(base, tags=tags_of(J)))
    for K in (50, 500, 5000):
        measure("annotators", K, arrays.simulated(base, n_annotators=K))
    if plot is not None:
        Path(plot).write_text(svg(lines), encoding="utf-8")


def svg(lines: dict[str, list[tuple[float, float]]]) -> str:
    """Milliseconds of one core for a pass against each quantity, both on logarithmic scales, side by side."""
    width, height, gap = 220, 180, 70
    parts = []
    for number, (what, points) in enumerate(lines.items()):
        x, y = np.log10(np.array(points) * [1.0, 1e3]).T
        low, high = np.floor(y.min()), np.ceil(y.max())
        at_x = gap + number * (width + gap) + (x - x.min()) / (x.max() - x.min()) * width
        at_y = 20 + height - (y - low) / max(high - low, 1) * height
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(at_x, at_y, strict=True))
        left = gap + number * (width + gap)
        parts.append(f'<rect x="{left}" y="20" width="{width}" height="{height}" fill="none" stroke="#999"/>')
        parts.append(f'<polyline points="{path}" fill="none" stroke="#0a6" stroke-width="2"/>')
        for (value, seconds), a, b in zip(points, at_x, at_y, strict=True):
            parts.append(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="#0a6"/>')
            parts.append(f'<text x="{a:.1f}" y="{b - 8:.1f}" text-anchor="middle">{1e3 * seconds:.1f}</text>')
            parts.append(f'<text x="{a:.1f}" y="{height + 36}" text-anchor="middle">{value:,.0f}</text>')
        parts.append(
            f'<text x="{left + width / 2}" y="{height + 54}" text-anchor="middle">{what}, ms of one core a pass</text>'
        )
    total = gap + len(lines) * (width + gap)
    style = 'font-family="sans-serif" font-size="11"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{height + 70}" {style}>'
    return f"{head}{''.join(parts)}</svg>\n"


def commands() -> None:
    """The commands as people run them, on the real crowds."""
    for name in ("ner", "pico"):
        path = core.DATA / f"{name}.jsonl.gz"
        if path.exists():
            core.real(path)
        else:
            print(f"{name}: not found in {core.DATA}, skipped")
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "quorate", "--help"], check=True, capture_output=True)
    print(f"--help: {time.perf_counter() - began:.2f} s")


def disk(n_tokens: int = 20_000_000) -> None:
    """An encoded corpus of 20 million tokens, 5 annotators each, 3 labels: 10 passes, and the memory they take."""
    from quorate.storage.corpora import store

    with tempfile.TemporaryDirectory(dir=".", prefix=".speed-") as folder:
        path = f"{folder}/large.qr"
        began = time.perf_counter()
        store(large_documents(n_tokens), path)
        took, size = time.perf_counter() - began, Path(path).stat().st_size
        print(
            f"disk: written in {took:.0f} s, {size / 1e6:.0f} MB, {size / (5 * n_tokens):.1f} bytes a label", flush=True
        )
        code = "import sys; sys.path.insert(0, sys.argv[1]); import speed; speed.disk_fit(sys.argv[2])"
        subprocess.run([sys.executable, "-c", code, str(Path(__file__).parent), path], check=True)


def disk_fit(path: str) -> None:
    """In a process of its own, so that its memory is the fit's."""
    import quorate

    bsc_seq(max_iter=1).fit(quorate.sample())
    corpus = quorate.read(path)
    most = 0.0

    def watch(_: loop.Progress) -> None:
        nonlocal most
        most = max(most, anonymous_megabytes())

    model = bsc_seq(max_iter=10, tol=0.0, probabilities=False).fit(corpus, progress=watch)
    rate = 10 * corpus.n_tokens / model.trace_.seconds / 1e6
    print(
        f"disk: {corpus.n_tokens:,} tokens, {int(model.annotators_.n_labels.sum()):,} labels: 10 passes "
        f"{model.trace_.seconds:.1f} s ({rate:.1f} M tokens/s), anonymous memory in passes {most:.0f} MB, "
        f"with the output {anonymous_megabytes():.0f} MB"
    )


def anonymous_megabytes() -> float:
    """Memory of this process that is not a file's."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    lines = status.read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 1e3


def large_documents(n_tokens: int, first: int = 0) -> Iterator[Document]:
    """Documents of 10 to 40 tokens, numbered from ``first``, made a million tokens at a time."""
    tags = tags_of(3)
    number, made = first, 0
    while made < n_tokens:
        encoded = arrays.simulated(min(1_000_000, n_tokens - made), tags=tags, seed=number)
        who, label = (column[encoded.event_cell].reshape(-1, 5) for column in encoded.cells[::2][:2])
        for first, last in zip(encoded.doc_start[:-1].tolist(), encoded.doc_start[1:].tolist(), strict=True):
            given = {
                encoded.annotators[k]: tuple([tags.labels[j] for j in label[first:last, slot].tolist()])
                for slot, k in enumerate(who[first].tolist())
            }
            words = tuple([encoded.words[v] for v in encoded.word[first:last].tolist()])
            yield Document(str(number), words, given)
            number += 1
        made += encoded.n_tokens


def main() -> None:
    parts: dict[str, Callable[[], None]] = {
        "recursion": recursion,
        "growth": growth,
        "commands": commands,
        "rivals": rivals.compare,
        "disk": disk,
    }
    parser = options.parser_of(__doc__)
    parser.add_argument("parts", metavar="PART", nargs="*", choices=[*parts, "all"], default="all")
    parser.add_argument("--plot", metavar="FILE", help="draw growth there, as SVG")
    given = parser.parse_args()
    parts["growth"] = partial(growth, given.plot)
    for name in parts if "all" in given.parts else given.parts:
        parts[name]()


if __name__ == "__main__":
    main()
