"""Time and memory of the core: ``python benchmarks/core.py [ner] [pico] [sparse]``.

Reads the real crowds beside the checkout (../shared/data) where they are; the sparse corpus is simulated. Every figure
is of one run on this machine, the least of several: compare figures of one run with each other.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import options
import quorate
from common import bsc_seq
from quorate.crowd.encode import encode

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CROWDS = ("ner", "pico", "sparse")


def main() -> None:
    parser = options.parser_of(__doc__)
    parser.add_argument("crowds", nargs="*", choices=[*CROWDS, "all"], default="all")
    wanted = parser.parse_args().crowds
    for name in CROWDS if "all" in wanted else wanted:
        if name == "sparse":
            sparse()
        elif (DATA / f"{name}.jsonl.gz").exists():
            real(DATA / f"{name}.jsonl.gz")
        else:
            print(f"{name}: not found in {DATA}, skipped")


def real(path: Path) -> None:
    """A real crowd: fit alone (kernels warm), whole command by bsc-seq and by default (warm), and compiling."""
    name = path.name.split(".")[0]
    began = time.perf_counter()
    corpus = quorate.read(path)
    read = time.perf_counter() - began
    began = time.perf_counter()
    encoded = encode(corpus, corpus.tagset())
    encoding = time.perf_counter() - began
    bsc_seq(max_iter=1).fit(corpus)
    fits = [bsc_seq(tol=0.0).fit(corpus).trace_.seconds for _ in range(3)]
    fit = min(fits)
    labels, cells = len(encoded.event_cell), len(encoded.cells.label)
    print(f"{name}: {len(corpus):,} documents, {encoded.n_tokens:,} tokens, {labels:,} labels, {cells:,} cells")
    print(f"{name}: read {read:.2f} s, encode {encoding:.2f} s")
    print(
        f"{name}: 20 passes of bsc-seq {fit:.3f} s (of 3 runs {min(fits):.3f} to {max(fits):.3f}), "
        f"{20 / fit:.0f} passes/s, {20 * encoded.n_tokens / fit / 1e6:.2f} M tokens/s"
    )
    tags, votes = (
        bsc_seq(max_iter=1).fit(corpus).result_.tags,
        quorate.aggregate(corpus, "mv").tags,
    )
    print(f"{name}: strict F1 of all {len(corpus):,} documents {best_of_five(tags, votes):.3f} s")
    commands = {"bsc-seq": ("--method", "bsc-seq"), "default (auto)": ()}
    for what, flags in commands.items():
        command(path, *flags)  # what it needs is in the file cache
        runs = [command(path, *flags) for _ in range(3)]
        warm, cpu, peak = (min(figures) for figures in zip(*runs, strict=True))
        print(f"{name}: whole command, {what}, {warm:.2f} s ({cpu:.2f} s of CPU), peak {peak:.0f} MB")


def best_of_five(tags: list[list[str]], gold: list[list[str]]) -> float:
    """Seconds of scoring one method's tags against another's, as if those were gold."""
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        quorate.score.strict(tags, gold)
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def command(path: Path, *flags: str) -> tuple[float, float, float]:
    """Seconds, seconds of CPU and peak megabytes of ``quorate aggregate`` as people run it."""
    code = (
        f"import sys; sys.path.append({str(Path(__file__).parent)!r})\n"
        "from quorate.cli import main\n"
        "try: main()\n"
        "finally: import core; print(core.peak_megabytes())"
    )
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["aggregate", str(path), *flags, "-o", f"{folder}/out.jsonl", "-q"]
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, env=environment
        )
        took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return took, cpu, float(run.stdout.splitlines()[-1])


def peak_megabytes() -> float:
    """The most memory this process has had. (ru_maxrss would count what its parent had when it was started.)"""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def sparse() -> None:
    """2,000 annotators, 41 labels, a million labels in all: counts must grow with the labels, not with K·J³."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); import core; core.sparse_fit()"
    run = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent)], capture_output=True, text=True, check=True
    )
    print(run.stdout, end="")


def sparse_fit() -> None:
    corpus = sparse_corpus()
    began = time.perf_counter()
    model = bsc_seq(max_iter=5, tol=0.0).fit(corpus)
    took = time.perf_counter() - began
    cells = len(model.fitted_.model.annotators.arrays()["annotators"])
    print(
        f"sparse: {len(corpus.annotators):,} annotators, {len(model.tagset_.labels)} labels, "
        f"{int(model.annotators_.n_labels.sum()):,} labels given, {cells:,} cells"
    )
    print(f"sparse: 5 passes {model.trace_.seconds:.1f} s, with encoding and summaries {took:.1f} s")
    print(f"sparse: peak of the process, corpus included, {peak_megabytes():.0f} MB")


def sparse_corpus() -> quorate.Corpus:
    """Documents of 20 tokens, 5 annotators each of 2,000, 20 span types; annotators err at random."""
    rng = np.random.default_rng(0)
    tags = quorate.TagSet.of_types(quorate.Scheme.BIO, [f"T{n:02}" for n in range(20)])
    documents = []
    for number in range(10_000):
        spans = [
            quorate.Span(start, start + int(rng.integers(1, 4)), f"T{rng.integers(20):02}")
            for start in range(1, 17, 4)
            if rng.random() < 0.5
        ]
        gold = tags.tags(spans, 20)
        annotations = {}
        for k in rng.choice(2000, 5, replace=False).tolist():
            seen = [
                quorate.Span(s.start, s.end, s.label if rng.random() < 0.8 else f"T{rng.integers(20):02}")
                for s in spans
                if rng.random() < 0.8
            ]
            annotations[f"a{k:04}"] = tuple(tags.tags(seen, 20))
        words = tuple(f"w{rng.integers(5000)}" for _ in gold)
        documents.append(quorate.Document(str(number), words, annotations, tuple(gold)))
    return quorate.Corpus(documents)


if __name__ == "__main__":
    main()
