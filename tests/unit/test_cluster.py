"""A real scheduler and two worker processes on this machine: shards, sums, and a worker that is killed in mid-fit."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import quorate
from by_name import bsc
from problems import random_corpus, tagset
from processes import Start
from quorate.choose.hidden import draws
from quorate.corpus.tags import Invalid, Scheme
from quorate.encode.from_corpus import encode, encode_known
from quorate.infer.engines.cluster import ClusterEngine, shard_of
from quorate.infer.engines.protocol import Tables
from quorate.infer.engines.threads import ThreadsEngine
from quorate.infer.loop import Progress
from quorate.infer.parts.truth import Markov

distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")

pytestmark = pytest.mark.filterwarnings("default")


class Cluster(NamedTuple):
    address: str
    workers: list[subprocess.Popen[bytes]]


def dask(program: str, *arguments: str) -> list[str]:
    """The command line of one of Dask's programs."""
    code = f"import sys; from distributed.cli import dask_{program} as c; sys.argv[0] = 'dask-{program}'; c.main()"
    return [sys.executable, "-c", code, *arguments]


@pytest.fixture
def cluster(tmp_path: Path, start: Start) -> Iterator[Cluster]:
    place = tmp_path / "scheduler.json"
    common = ("--host", "127.0.0.1", "--no-dashboard")
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    start(dask("scheduler", *common, "--port", "0", "--scheduler-file", str(place)), **quiet)
    until = time.monotonic() + 120
    while not place.exists() and time.monotonic() < until:
        time.sleep(0.1)
    worker = dask("worker", *common, "--no-nanny", "--nthreads", "1", "--scheduler-file", str(place))
    workers = [start([*worker, "--local-directory", str(tmp_path / name)], **quiet) for name in ("one", "two")]
    with distributed.Client(scheduler_file=str(place), set_as_default=False, timeout=120) as client:
        client.wait_for_workers(2, timeout=120)
        yield Cluster(client.scheduler.address, workers)


def close(ours: quorate.Result, theirs: quorate.Result) -> None:
    assert ours.tags == theirs.tags
    for a, b in zip(ours.probabilities, theirs.probabilities, strict=True):
        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(ours.confidence, theirs.confidence, rtol=0.0, atol=1e-6)
    assert [[s.bare for s in spans] for spans in ours.spans] == [[s.bare for s in spans] for spans in theirs.spans]


def test_a_cluster_gives_what_one_machine_gives_even_if_a_worker_is_killed(cluster: Cluster) -> None:
    corpus = quorate.sample()
    alone = bsc("bsc-seq", max_iter=8, tol=0.0).fit(corpus)
    together = bsc("bsc-seq", max_iter=8, tol=0.0, cluster=cluster.address).fit(corpus)
    close(together.result_, alone.result_)
    np.testing.assert_allclose(together.trace_.bounds, alone.trace_.bounds, rtol=1e-9)

    passes = []

    def kill_one(step: Progress) -> None:
        passes.append(step.passes)
        if step.passes == 3:
            cluster.workers[0].kill()

    bereft = bsc("bsc-seq", max_iter=8, tol=0.0, cluster=cluster.address)
    bereft.fit(corpus, progress=kill_one)
    assert passes == list(range(1, 9))
    assert cluster.workers[0].wait(10) != 0
    close(bereft.result_, alone.result_)

    impossible = quorate.Corpus([quorate.Document("7", ("a", "b"), {"x": ("O", "O"), "y": ("B-X", "I-X")})])
    tags = impossible.tagset()
    with distributed.Client(cluster.address, set_as_default=False) as client:
        model = bsc("bsc-seq", cluster=client)
        engine = model._engine(impossible, encode(impossible, tags), np.array([0, 2], np.int32))
        tables = Tables(np.zeros((len(encode(impossible, tags).cells.label), 3)), np.zeros((2, 3)))
        with pytest.raises(quorate.FitError, match="document '7': no tag sequence is possible"):
            engine.run(tables, Markov.of(tags, 1.0).chain())


def test_the_default_method_chooses_on_the_cluster_and_leaves_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = dict.fromkeys(("vote", "run", "decode", "close"), 0)

    def counted(method: str) -> None:
        own = getattr(ClusterEngine, method)

        def call(*arguments: Any, **options: Any) -> Any:
            used[method] += 1
            return own(*arguments, **options)

        monkeypatch.setattr(ClusterEngine, method, call)

    for method in used:
        counted(method)
    corpus = quorate.Corpus(quorate.sample().documents[:80])
    alone = quorate.aggregate(corpus)
    together = quorate.aggregate(corpus, cluster=cluster.address)
    assert together.settings_ == alone.settings_
    assert together.tags == alone.tags
    n_draws = len(draws(encode(corpus, corpus.tagset())))
    assert used["close"] == 2 * n_draws + 1  # two of each draw, and that of the fit
    assert used["run"] > 10 * n_draws
    assert used["decode"] > 10 * n_draws


def test_shards_add_up_to_the_whole() -> None:
    rng = np.random.default_rng(0)
    tags = tagset(Scheme.BIO, 2)
    corpus = random_corpus(rng, tags, n_documents=20)
    encoded = encode(corpus, tags, words=["w0", "w1"])  # w2 is not in the vocabulary
    known = encode_known(corpus, tags, {"d3": corpus["d3"].gold or ()}, Invalid.REPAIR)
    J = len(tags.labels)
    tables = Tables(rng.normal(size=(len(encoded.cells.label), J)), rng.normal(size=(2, J)), 0.7)
    chain = Markov.of(tags, 1.0).chain()
    whole = ThreadsEngine(encoded, known=known).run(tables, chain)
    cells, words, log_z = np.zeros_like(whole.cells), np.zeros_like(whole.words), 0.0
    for first, last in ((0, 7), (7, 8), (8, 20)):
        shard = shard_of(encoded, known, first, last)
        local = tables._replace(cells=tables.cells[shard.cells], words=tables.words[shard.words])
        part = ThreadsEngine(shard.encoded, known=shard.known).run(local, chain)
        cells[shard.cells] += part.cells
        words[shard.words] += part.words
        log_z += part.log_z
    np.testing.assert_allclose(cells, whole.cells)
    np.testing.assert_allclose(words, whole.words)
    np.testing.assert_allclose(log_z, whole.log_z)


def test_an_address_where_nobody_answers_is_one_line() -> None:
    with pytest.raises(quorate.SettingsError, match="no scheduler answers there"):
        quorate.BSC(cluster="nonsense://nowhere").fit(quorate.sample())
    with pytest.raises(quorate.SettingsError, match="must be an address"):
        quorate.BSC(cluster=7).fit(quorate.sample())
