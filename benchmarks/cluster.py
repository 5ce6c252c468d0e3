"""A Dask cluster on this machine: how it scales, and what becomes of a fit when a worker or the scheduler is killed.

Crowd files of a simulated crowd (three labels, five annotators a document) are read by workers in processes of their
own, one thread each. One run times passes on one thread of this process, on one worker and on all of them; and kills a
worker in the middle of a pass, then the scheduler. All results are compared: with the cluster's own to the last bit,
with those of one machine by tags and bounds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import starmap
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

import numpy as np
from distributed import Client

import options
import quorate
import speed
from common import bsc_seq
from quorate.model.kernels.cores import available_threads
from quorate.model.loop import Progress
from quorate.storage.corpora import store

_ANNOTATORS_A_DOCUMENT = 5


class Cluster(NamedTuple):
    """A scheduler and workers, by their processes."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]


class Timed(NamedTuple):
    """A fit, when each of its passes ended, and how long all of it took."""

    model: quorate.BSC
    ends: list[float]
    seconds: float

    @property
    def a_pass(self) -> float:
        """Seconds, without the first pass, in which files are opened."""
        return (self.ends[-1] - self.ends[0]) / (len(self.ends) - 1)


@contextmanager
def cluster(n_workers: int, folder: Path) -> Iterator[Cluster]:
    """A scheduler and workers on loopback, ended in the end."""
    place = Path(tempfile.mkdtemp(dir=folder)) / "scheduler.json"
    common = ("--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(place))
    processes: list[subprocess.Popen[bytes]] = []

    def start(program: str, *arguments: str) -> None:
        code = f"import sys; from distributed.cli import dask_{program} as c; sys.argv[0] = 'dask-{program}'; c.main()"
        command = [sys.executable, "-c", code, *common, *arguments]
        processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    try:
        start("scheduler", "--port", "0")
        while not place.exists():
            time.sleep(0.1)
        for number in range(n_workers):
            start("worker", "--no-nanny", "--nthreads", "1", "--local-directory", str(place.parent / str(number)))
        with Client(scheduler_file=str(place), set_as_default=False) as client:  # type: ignore[no-untyped-call]
            client.wait_for_workers(n_workers)
            address = client.scheduler.address
        yield Cluster(address, processes[0], processes[1:])
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def written(folder: Path, n_tokens: int, n_files: int) -> None:
    """Files of like size."""
    began = time.perf_counter()
    for number in range(n_files):
        store(speed.large_documents(n_tokens // n_files, number * 100_000_000), folder / f"{number:03}.qr")
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"cluster: {n_files} files, {size / 1e6:.0f} MB, written in {time.perf_counter() - began:.0f} s", flush=True)


def fitted(
    corpus: quorate.Corpus, passes: int, after_pass: Callable[[int], None] = lambda _: None, **where: Any
) -> Timed:
    """One fit of bsc-seq; ``after_pass`` is told the number of each pass as it ends."""
    ends: list[float] = []

    def watch(step: Progress) -> None:
        ends.append(time.perf_counter())
        after_pass(step.passes)

    model = bsc_seq(max_iter=passes, tol=0.0, probabilities=False, n_jobs=1, **where)
    began = time.perf_counter()
    model.fit(corpus, progress=watch)
    return Timed(model, ends, time.perf_counter() - began)


def alike(ours: quorate.BSC, theirs: quorate.BSC) -> str:
    """In words."""
    ours_out, theirs_out = ours.result_._decoded, theirs.result_._decoded
    if ours.trace_.bounds == theirs.trace_.bounds and all(
        starmap(np.array_equal, zip(ours_out, theirs_out, strict=True))
    ):
        return "the same to the last bit"
    share = float(np.mean(ours_out.path == theirs_out.path))
    off = abs(ours.trace_.bound / theirs.trace_.bound - 1)
    return f"tags alike on {share:.4%} of tokens, bounds to a share of {off:.0e}"


def measure(folder: Path, files: Path, passes: int, n_workers: int) -> None:
    """All of it, on files that are there."""
    corpus = quorate.read(files)
    labels, cores = _ANNOTATORS_A_DOCUMENT * corpus.n_tokens, available_threads()
    print(f"cluster: {corpus.n_tokens:,} tokens, {labels:,} labels; this machine has {cores} cores", flush=True)

    def told(name: str, found: Timed) -> Timed:
        rate = corpus.n_tokens / found.a_pass / 1e6
        print(
            f"cluster: {name}: {found.a_pass:.2f} s a pass ({rate:.1f} M tokens/s), whole {found.seconds:.1f} s",
            flush=True,
        )
        return found

    alone = told("one thread, no cluster", fitted(corpus, passes))
    with cluster(1, folder) as one:
        single = told("1 worker", fitted(corpus, passes, cluster=one.address))
    with ExitStack() as stack:
        many = stack.enter_context(cluster(n_workers, folder))
        together = told(f"{n_workers} workers", fitted(corpus, passes, cluster=many.address))
        times = single.a_pass / together.a_pass
        possible = min(n_workers, cores) / n_workers
        print(
            f"cluster: {n_workers} workers are {times:.2f} times as fast as 1: efficiency {times / n_workers:.0%}, "
            f"where {cores} cores allow {possible:.0%}; a pass on 1 worker takes {single.a_pass / alone.a_pass:.2f} "
            "times as long as on a thread without a cluster"
        )
        print(f"cluster: {n_workers} workers and 1: {alike(together.model, single.model)}")
        print(f"cluster: {n_workers} workers and no cluster: {alike(together.model, alone.model)}", flush=True)

        def kill(process: subprocess.Popen[bytes], in_pass: int) -> Callable[[int], None]:
            def after_pass(number: int) -> None:
                if number == in_pass - 1:
                    Timer(together.a_pass / 2, process.kill).start()

            return after_pass

        middle = 1 + passes // 2
        bereft = fitted(corpus, passes, kill(many.workers[0], middle), cluster=many.address)
        print(
            f"cluster: a worker killed in pass {middle}: {alike(bereft.model, together.model)}, {bereft.seconds:.1f} s"
        )
        try:
            fitted(corpus, passes, kill(many.scheduler, middle), cluster=many.address)
        except quorate.FitError as error:
            print(f"cluster: the scheduler killed in pass {middle}: {error}", flush=True)


def main() -> None:
    parser = options.parser_of(__doc__)
    parser.add_argument("--labels", type=int, default=1_000_000, help="how many labels (1,000,000)")
    parser.add_argument("--workers", type=int, default=4, help="how many workers (4)")
    parser.add_argument("--passes", type=int, default=6, help="how many passes a fit takes (6)")
    parser.add_argument("--files", type=int, default=8, help="how many files the crowd is in (8)")
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory(dir=".", prefix=".cluster-") as place:
        files = Path(place, "files")
        files.mkdir()
        written(files, given.labels // _ANNOTATORS_A_DOCUMENT, given.files)
        measure(Path(place), files, given.passes, given.workers)


if __name__ == "__main__":
    main()
