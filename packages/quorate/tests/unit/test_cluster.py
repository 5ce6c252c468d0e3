"""A real scheduler and workers in processes on this machine: shards, files, sums; workers and schedulers killed."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import quorate
from by_name import bsc
from problems import random_corpus, tagset
from processes import Start
from quorate.active.suggest import next_labels
from quorate.api import BSC
from quorate.corpus.tags import Invalid, Scheme
from quorate.crowd.encode import encode, encode_known
from quorate.crowd.hold_out import folds
from quorate.model.engines.cluster import ClusterEngine, shard_of
from quorate.model.engines.factory import EngineName, Engines
from quorate.model.engines.protocol import Tables
from quorate.model.engines.threads import ThreadsEngine
from quorate.model.parts.truth import Markov
from quorate.storage.corpora import store

distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")

pytestmark = pytest.mark.filterwarnings("default")


class Cluster(NamedTuple):
    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]


Clusters = Callable[[int], Cluster]


def dask(program: str, *arguments: str) -> list[str]:
    """The command line of one of Dask's programs."""
    code = f"import sys; from distributed.cli import dask_{program} as c; sys.argv[0] = 'dask-{program}'; c.main()"
    return [sys.executable, "-c", code, *arguments]


@pytest.fixture
def clusters(tmp_path: Path, start: Start) -> Clusters:
    """Starts a scheduler and so many workers, each in a process of its own."""
    numbers = itertools.count()

    def begin(n_workers: int) -> Cluster:
        place = tmp_path / f"scheduler-{next(numbers)}.json"
        common = ("--host", "127.0.0.1", "--no-dashboard")
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        scheduler = start(dask("scheduler", *common, "--port", "0", "--scheduler-file", str(place)), **quiet)
        until = time.monotonic() + 120
        while not place.exists() and time.monotonic() < until:
            time.sleep(0.1)
        worker = dask("worker", *common, "--no-nanny", "--nthreads", "1", "--scheduler-file", str(place))
        folders = [str(tmp_path / f"{place.stem}-{number}") for number in range(n_workers)]
        workers = [start([*worker, "--local-directory", folder], **quiet) for folder in folders]
        with distributed.Client(scheduler_file=str(place), set_as_default=False, timeout=120) as client:
            client.wait_for_workers(n_workers, timeout=120)
            return Cluster(client.scheduler.address, scheduler, workers)

    return begin


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """The corpora here are small, and yet of several shards: the sample has 8 of them."""
    monkeypatch.setattr("quorate.model.engines.cluster._LEAST_TOKENS", 600)


@pytest.fixture
def cluster(clusters: Clusters) -> Cluster:
    return clusters(2)


def after_results(monkeypatch: pytest.MonkeyPatch, number: int, what: Callable[[], None]) -> None:
    """Do something when the client has taken so many results of shards: in the middle of a pass, as there are 8."""
    own, taken = ClusterEngine._result, itertools.count(1)

    def result(*arguments: Any) -> Any:
        found = own(*arguments)
        if next(taken) == number:
            what()
        return found

    monkeypatch.setattr(ClusterEngine, "_result", result)


def same(ours: BSC, theirs: BSC) -> None:
    """To the last bit."""
    assert ours.trace_.bounds == theirs.trace_.bounds
    np.testing.assert_array_equal(ours.result_.posterior, theirs.result_.posterior)
    assert ours.result_.tags == theirs.result_.tags


def close(ours: quorate.Result, theirs: quorate.Result) -> None:
    assert ours.tags == theirs.tags
    for a, b in zip(ours.probabilities, theirs.probabilities, strict=True):
        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(ours.confidence, theirs.confidence, rtol=0.0, atol=1e-6)
    assert [[s.bare for s in spans] for spans in ours.spans] == [[s.bare for s in spans] for spans in theirs.spans]


def test_a_cluster_gives_what_one_machine_gives_even_if_a_worker_is_killed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = quorate.sample()
    alone = bsc("bsc-seq", max_iter=8, tol=0.0).fit(corpus)
    together = bsc("bsc-seq", max_iter=8, tol=0.0, cluster=cluster.address).fit(corpus)
    close(together.result_, alone.result_)
    np.testing.assert_allclose(together.trace_.bounds, alone.trace_.bounds, rtol=1e-9)

    after_results(monkeypatch, 8 * 3 + 2, cluster.workers[0].kill)
    bereft = bsc("bsc-seq", max_iter=8, tol=0.0, cluster=cluster.address).fit(corpus)
    assert cluster.workers[0].wait(10) != 0
    same(bereft, together)

    impossible = quorate.Corpus([quorate.Document("7", ("a", "b"), {"x": ("O", "O"), "y": ("B-X", "I-X")})])
    tags = impossible.tagset()
    with distributed.Client(cluster.address, set_as_default=False) as client:
        crowd = replace(encode(impossible, tags), known=np.array([0, 2], np.int32))
        engine = bsc("bsc-seq", cluster=client).engines().over(crowd, text=True, corpus=impossible)
        tables = Tables(np.zeros((len(encode(impossible, tags).cells.label), 3)), np.zeros((2, 3)))
        with pytest.raises(quorate.FitError, match="document '7': no tag sequence is possible"):
            engine.run(tables, Markov.of(tags, 1.0).chain())


def test_the_default_method_is_fitted_and_calibrated_on_the_cluster_and_leaves_it(
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
    how_many = len(list(folds(encode(corpus, corpus.tagset()))))
    assert used["close"] == 2 * how_many + 1  # two of each fold, and that of the fit
    assert used["run"] == 5 * (how_many + 1)


def test_workers_read_the_files_themselves_even_if_one_of_them_is_killed(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, folder = quorate.sample().documents, tmp_path / "shards"
    folder.mkdir()
    for number, first in enumerate(range(0, 320, 80)):
        store(documents[first : first + 80], folder / f"{number}.qr")
    options: dict[str, Any] = {"max_iter": 5, "tol": 0.0, "start": "votes"}
    known = {document.id: document.gold or () for document in documents[::40]}
    alone = bsc("bsc-seq", **options).fit(quorate.read(folder), known=known)
    with monkeypatch.context() as patch:
        patch.setattr("quorate.model.engines.cluster.shard_of", None)  # nothing can be sent
        corpus = quorate.read(folder)
        together = bsc("bsc-seq", **options, cluster=cluster.address).fit(corpus, known=known)
        after_results(patch, 8 * 3 + 2, cluster.workers[1].kill)
        bereft = bsc("bsc-seq", **options, cluster=cluster.address).fit(corpus, known=known)
        assert cluster.workers[1].wait(10) != 0
    close(together.result_, alone.result_)
    np.testing.assert_allclose(together.trace_.bounds, alone.trace_.bounds, rtol=1e-9)
    same(bereft, together)

    corpus = quorate.read(folder)
    folder.rename(tmp_path / "elsewhere")  # as on workers that do not see the client's folders
    sent = bsc("bsc-seq", **options, cluster=cluster.address).fit(corpus, known=known)
    np.testing.assert_allclose(sent.trace_.bounds, alone.trace_.bounds, rtol=1e-9)


def test_a_fit_whose_scheduler_is_lost_says_so(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    first = clusters(2)
    with monkeypatch.context() as patch:
        after_results(patch, 8 * 4 + 2, first.scheduler.kill)
        with pytest.raises(quorate.FitError, match="the scheduler of the cluster is lost"):
            bsc("bsc-seq", max_iter=6, tol=0.0, cluster=first.address).fit(quorate.sample())


def test_what_to_label_next_is_found_on_the_cluster(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = quorate.Corpus(quorate.sample().documents[:40])
    alone = next_labels(corpus, bsc("bsc-seq", max_iter=3).fit(corpus), n=5)
    model = bsc("bsc-seq", max_iter=3, cluster=cluster.address).fit(corpus)
    calls: list[str] = []
    own = ClusterEngine.decode

    def decode(*given: Any, **named: Any) -> Any:
        calls.append("decode")
        return own(*given, **named)

    monkeypatch.setattr(ClusterEngine, "decode", decode)
    together = next_labels(corpus, model, n=5)
    assert calls
    assert [(one.document, one.annotator) for one in together.suggestions] == [
        (one.document, one.annotator) for one in alone.suggestions
    ]


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
        shard, tokens = shard_of(encoded, first, last), slice(encoded.doc_start[first], encoded.doc_start[last])
        local = tables._replace(cells=tables.cells[shard.cells], words=tables.words[shard.words])
        part = ThreadsEngine(shard.encoded, known=None if known is None else known[tokens]).run(local, chain)
        cells[shard.cells] += part.cells
        words[shard.words] += part.words
        log_z += part.log_z
    np.testing.assert_allclose(cells, whole.cells)
    np.testing.assert_allclose(words, whole.words)
    np.testing.assert_allclose(log_z, whole.log_z)


class Here:
    """A client whose only worker is this process."""

    def __init__(self, workers: tuple[str, ...] = ("here",)) -> None:
        self.workers, self.status = workers, "running"

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.workers, 1)

    def scatter(self, held: Any, **_: Any) -> Any:
        return held

    def submit(self, function: Callable[..., Any], *arguments: Any, **_: Any) -> Any:
        return SimpleNamespace(result=lambda: function(*arguments))

    def run(self, function: Callable[..., Any], *arguments: Any, **_: Any) -> None:
        function(*arguments)

    def close(self, **_: Any) -> None:
        self.status = "closed"


def test_a_worker_that_lacks_the_files_is_sent_its_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(quorate.sample().documents, tmp_path / "corpus.qr")
    corpus, options = quorate.read(tmp_path / "corpus.qr"), {"max_iter": 4, "tol": 0.0, "start": "votes"}
    alone = bsc("bsc-seq", **options).fit(corpus)
    monkeypatch.setattr("quorate.model.engines.cluster._client_of", lambda _: Here())

    def replaced() -> None:
        """From now on, the worker is another, with no engine and no file."""
        monkeypatch.setattr("quorate.model.engines.cluster._engines", {})
        monkeypatch.setattr("quorate.model.engines.cluster._OnDisk.shard", None)

    after_results(monkeypatch, 8 * 3 + 2, replaced)  # the first 8 are the rows of the files
    together = bsc("bsc-seq", **options, cluster=Here()).fit(corpus)
    close(together.result_, alone.result_)
    np.testing.assert_allclose(together.trace_.bounds, alone.trace_.bounds, rtol=1e-9)


def test_an_engine_that_cannot_start_leaves_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Here(workers=())
    monkeypatch.setattr("quorate.model.engines.cluster._client_of", lambda _: client)
    with pytest.raises(quorate.FitError, match="the cluster has no worker"):
        bsc("bsc-cm", cluster="tcp://somewhere:1").fit(quorate.sample())
    assert client.status == "closed"


@pytest.mark.parametrize("engine", ["threads", "jax"])
def test_an_error_of_a_shard_names_the_document_as_the_corpus_does(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "jax":
        pytest.importorskip("jax", reason="the extra 'jax' is not installed")
    monkeypatch.setattr("quorate.model.engines.cluster._client_of", lambda _: Here())
    corpus = quorate.Corpus(quorate.sample().documents[:160])
    tags = corpus.tagset(None)
    encoded = encode(corpus, tags)
    stuck = 150
    known = np.full(encoded.n_tokens, -1, np.int32)
    first = int(encoded.doc_start[stuck])
    known[first : first + 2] = [tags.labels.index("O"), tags.labels.index("I-PER")]  # which cannot follow
    name, J = EngineName(engine), len(tags.labels)
    tables = Tables(np.zeros((len(encoded.cells.label), J)), np.zeros((len(encoded.words), J)), 1.0)
    with (
        closing(Engines(name, None, Here()).over(replace(encoded, known=known), corpus=corpus)) as on_a_cluster,
        pytest.raises(quorate.FitError, match=f"document '{corpus[stuck].id}': no tag sequence is possible"),
    ):
        on_a_cluster.run(tables, Markov.of(tags, 1.0).chain())


def test_an_address_where_nobody_answers_is_one_line() -> None:
    with pytest.raises(quorate.SettingsError, match="no scheduler answers there"):
        quorate.BSC(cluster="nonsense://nowhere").fit(quorate.sample())
    with pytest.raises(quorate.SettingsError, match="must be an address"):
        quorate.BSC(cluster=7).fit(quorate.sample())
