"""Active learning on a crowd whose labels are all known: what would have come of asking for fewer, chosen well.

Algorithm 2 of the paper. A run begins with a random set of labels, the same for all methods. Then it fits, scores, asks
for one more label of each of the documents that its strategy ranks first, and so on. A label is that of one annotator
for a whole document. A document without labels left is not chosen again. Its annotator is drawn at random, in the same
order for all methods, except where the strategy itself names the annotator.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.active.strategies import (
    Strategy,
    Uncertainty,
    document_entropy,
    expected_information,
    matrices_of,
    merged_numbers,
    token_entropy,
    unlabelled,
)
from quorate.corpus.records import Corpus
from quorate.corpus.tags import Invalid, TagSet
from quorate.crowd.algebra import seen_pairs
from quorate.crowd.crowd import Crowd
from quorate.errors import FitError, InputError, SettingsError, knows_its_options
from quorate.estimators.capabilities import FitsInPasses
from quorate.estimators.methods import estimator
from quorate.estimators.voting import MajorityVote
from quorate.evaluate.compare import scored_positions
from quorate.model.consensus_spans import consensus_spans
from quorate.model.engines.factory import Engines
from quorate.model.engines.protocol import Decoded
from quorate.model.fit import fit_and_decode
from quorate.model.kernels.cores import available_threads
from quorate.model.parts.annotators import Annotators
from quorate.model.prepared import crowd_of, encoded_with
from quorate.model.settings import Settings, Ties, check_number, choice
from quorate.model.votes import majority
from quorate.storage.work_log import Store

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_LEAST_PROBABILITY = 1e-100


@dataclass(frozen=True)
class Plan:
    """How a run goes: labels to begin with, documents in a batch, labels to end with, passes of each fit.

    Each fit starts from votes, as one that starts from the fit before would keep to its consensus for long.

    >>> Plan(initial=100, batch=50, max_labels=200).sizes
    [100, 150, 200]
    """

    initial: int = 500
    batch: int = 500
    max_labels: int = 10_000
    passes: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("initial", "batch", "max_labels", "passes"):
            check_number(name.replace("_", "-"), getattr(self, name), whole=True)
            if getattr(self, name) < 1:
                raise SettingsError(f"{name.replace('_', '-')} must be 1 or more, not {getattr(self, name)}")

    @property
    def sizes(self) -> list[int]:
        """How many labels there are at each fit, if they last."""
        return list(range(self.initial, max(self.max_labels, self.initial) + 1, self.batch))


class Run(NamedTuple):
    """One method with one strategy, once: ``labels``, strict ``f1`` and ``cee`` at every fit."""

    method: str
    strategy: str
    repeat: int
    labels: list[int]
    f1: list[float]
    cee: list[float]
    seconds: float


class Curve(NamedTuple):
    """The runs of one method and strategy together: means over repeats, and their standard deviations."""

    method: str
    strategy: str
    repeats: int
    labels: Integers
    f1: Floats
    f1_spread: Floats
    cee: Floats
    cee_spread: Floats

    @property
    def name(self) -> str:
        """For a legend."""
        return f"{self.method}, {self.strategy}"


@dataclass(frozen=True)
class Simulation:
    """All runs of a simulation."""

    runs: tuple[Run, ...]
    plan: Plan
    split: str | None

    @property
    def curves(self) -> list[Curve]:
        """A curve for each method and strategy, in the order in which they were given."""
        groups: dict[tuple[str, str], list[Run]] = {}
        for run in self.runs:
            groups.setdefault((run.method, run.strategy), []).append(run)
        return [_curve(method, strategy, runs) for (method, strategy), runs in groups.items()]


def _curve(method: str, strategy: str, runs: Sequence[Run]) -> Curve:
    shortest = min(len(run.labels) for run in runs)
    f1 = np.array([run.f1[:shortest] for run in runs])
    cee = np.array([run.cee[:shortest] for run in runs])
    labels = np.array(runs[0].labels[:shortest])
    return Curve(method, strategy, len(runs), labels, f1.mean(0), f1.std(0), cee.mean(0), cee.std(0))


@knows_its_options
def simulate_active(
    corpus: Corpus,
    methods: Sequence[str],
    strategies: Sequence[str] = (Strategy.LEAST_CONFIDENCE.value,),
    *,
    repeats: int = 10,
    plan: Plan | None = None,
    split: str | None = None,
    results: str | Path | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Simulation:
    """Every method with every strategy, ``repeats`` times, scored on the gold of ``split`` (all, if not given).

    Runs go in parallel processes. Each is added to the file ``results`` as it ends; what is there already, of the same
    input and plan, is not run again. In a script, call it under ``if __name__ == "__main__":``.

    >>> import quorate
    >>> plan = Plan(initial=100, batch=100, max_labels=300)
    >>> found = simulate_active(quorate.sample(), ["mv"], ["random"], repeats=1, plan=plan, jobs=1)
    >>> found.curves[0].labels.tolist()
    [100, 200, 300]
    """
    plan = plan or Plan()
    if not methods or not strategies:
        raise SettingsError("at least one method and one strategy are needed")
    if repeats < 1:
        raise SettingsError(f"repeats must be 1 or more, not {repeats}")
    for method in methods:
        _learner(method, plan)
    named = [choice(Strategy, "strategy", strategy).value for strategy in strategies]
    pool = _Pool(corpus, split)
    workers = jobs or available_threads()
    if workers < 1:
        raise SettingsError(f"jobs must be 1 or more, not {workers}")
    head = {"plan": asdict(plan), "split": split, "inputs": sorted(corpus.digests.values())}
    store = Store(results, head, "runs")
    known = _runs(store)
    wanted = [(m, s, repeat) for repeat in range(repeats) for m, s in product(methods, named)]
    done = {key: known[key] for key in wanted if key in known}
    waiting = [key for key in wanted if key not in done]

    def keep(run: Run) -> None:
        done[run[:3]] = run
        store.add(run._asdict())
        if progress is not None:
            progress(len(done), len(wanted), f"{run.method}, {run.strategy}: {100 * run.f1[-1]:.1f}")

    if progress is not None:
        progress(len(done), len(wanted), "")
    if workers == 1 or len(waiting) <= 1:
        for key in waiting:
            keep(pool.run(*key, plan))
    else:
        _in_processes(corpus, split, plan, waiting, min(workers, len(waiting)), keep)
    return Simulation(tuple(done[key] for key in sorted(wanted, key=lambda key: wanted.index(key))), plan, split)


def _runs(store: Store) -> dict[tuple[str, str, int], Run]:
    try:
        runs = [Run(**record) for record in store.records]
    except TypeError:
        raise store.damaged() from None
    return {run[:3]: run for run in runs}


_of_this_process: _Pool | None = None


def _begin(corpus: Corpus, split: str | None, open_end: Connection) -> None:
    global _of_this_process
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the process that started this one
    threading.Thread(target=_end_with, args=(open_end,), daemon=True).start()
    _of_this_process = _Pool(corpus, split)


def _end_with(open_end: Connection) -> None:
    """End this process as soon as the other end is closed, be it on purpose or because that process is gone."""
    with suppress(EOFError, OSError):
        open_end.recv()
    os._exit(1)


def _run(method: str, strategy: str, repeat: int, plan: Plan) -> Run:
    assert _of_this_process is not None
    return _of_this_process.run(method, strategy, repeat, plan)


def _in_processes(
    corpus: Corpus,
    split: str | None,
    plan: Plan,
    waiting: Sequence[tuple[str, str, int]],
    workers: int,
    keep: Callable[[Run], None],
) -> None:
    context = multiprocessing.get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(corpus, split, theirs))
    try:
        for finished in as_completed([pool.submit(_run, *key, plan) for key in waiting]):
            keep(finished.result())
    except BrokenProcessPool:
        raise FitError(
            "a process of the simulation ended before its time (if memory is short, take fewer jobs; a script calls "
            'simulate_active under if __name__ == "__main__":)'
        ) from None
    except BaseException:
        ours.close()  # what still runs is of no use
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        ours.close()
        theirs.close()


class _Learned(NamedTuple):
    """The consensus on all documents, with the number of each annotator in ``crowd`` (``merged [K]``).

    ``entropy`` gives that of whole documents.
    """

    crowd: Crowd
    decoded: Decoded
    annotators: Annotators
    merged: Integers
    entropy: Callable[[], Floats]

    def uncertainty(self, strategy: Strategy) -> Uncertainty:
        """The uncertainty of each document, as far as a strategy needs it."""
        doc_start = self.crowd.doc_start
        token = token_entropy(self.decoded.posterior, doc_start)
        sequence = self.entropy() if strategy in (Strategy.SEQUENCE_ENTROPY, Strategy.INFORMATION) else token
        return Uncertainty(self.decoded.log_probability, np.diff(doc_start), token, sequence)


@dataclass(frozen=True)
class _Votes:
    """Majority vote; a document without labels is all ``O``."""

    ties: Ties
    invalid: Invalid

    def learn(self, crowd: Crowd, corpus: Corpus) -> _Learned:
        """The vote on a corpus."""
        decoded, annotators = majority(crowd, ties=self.ties, threads=1)
        if crowd.tagset.outside is not None:
            unseen = np.diff(crowd.event_start) == 0
            decoded.path[unseen], decoded.span_end[unseen] = crowd.tagset.outside, 0
        merged = np.arange(len(crowd.annotators))
        return _Learned(crowd, decoded, annotators, merged, lambda: token_entropy(decoded.posterior, crowd.doc_start))


@dataclass(frozen=True)
class _Model:
    """Bayesian sequence combination; it learns from documents with labels alone, and from their words."""

    settings: Settings
    engines: Engines

    @property
    def invalid(self) -> Invalid:
        """What becomes of tags that cannot follow the one before."""
        return self.settings.invalid

    def learn(self, crowd: Crowd, corpus: Corpus) -> _Learned:
        """The fit to a corpus, and the consensus on it."""
        fitted, seen, (decoded, evidence) = fit_and_decode(crowd, self.settings, self.engines, corpus=corpus)
        merged = merged_numbers(fitted.notes, len(crowd.annotators))

        def entropy() -> Floats:
            with closing(self.engines.over(seen, text=self.settings.text)) as engine:
                return document_entropy(engine, fitted, seen, evidence)

        return _Learned(seen, decoded, fitted.model.annotators, merged, entropy)


def _learner(method: str, plan: Plan) -> _Votes | _Model:
    made = estimator(method)
    if isinstance(made, FitsInPasses):  # on one thread, as runs go side by side
        return _Model(replace(made.checked_settings(), max_iter=plan.passes), replace(made.engines(), threads=1))
    if type(made) is MajorityVote:
        return _Votes(choice(Ties, "ties", made.ties), choice(Invalid, "invalid", made.invalid))
    raise SettingsError(f"method {method!r} cannot be simulated (it goes on from no state, or reads gold)")


class _Pool:
    """A corpus whose labels, pairs of document and annotator, are handed out one by one, and its gold."""

    def __init__(self, corpus: Corpus, split: str | None) -> None:
        scored = [d for d in scored_positions(corpus, split) if None not in (corpus[d].gold or ())]
        if not scored:
            raise InputError("no document to be scored has gold for all its tokens")
        crowd = crowd_of(corpus, None, Invalid.REPAIR)
        self._corpus, self._tagset, self._names = corpus, crowd.tagset, crowd.annotators
        self._doc, self._who = seen_pairs(crowd)
        self._gold = _Gold.of(corpus, scored, crowd)

    def run(self, method: str, strategy: str, repeat: int, plan: Plan) -> Run:
        """One run from the initial labels to the last."""
        began = time.perf_counter()
        learner, ranked_by = _learner(method, plan), Strategy(strategy)
        rng = np.random.default_rng([plan.seed, repeat])
        had = np.zeros(len(self._doc), dtype=np.bool_)
        had[np.argsort(rng.random(len(had)))[: plan.initial]] = True
        order = rng.random(len(had))  # in which annotators are asked
        run = Run(method, strategy, repeat, [], [], [], 0.0)
        while True:
            part = self._with_labels(had)
            learned = learner.learn(encoded_with(part, self._tagset, learner.invalid, {}, self._names), part)
            run.labels.append(int(had.sum()))
            for column, value in zip((run.f1, run.cee), self._gold.score(learned.decoded), strict=True):
                column.append(value)
            if int(had.sum()) + plan.batch > plan.max_labels or had.all():
                return run._replace(seconds=time.perf_counter() - began)
            had[self._next(learned, ranked_by, had, order, plan.batch, rng)] = True

    def _with_labels(self, had: Flags) -> Corpus:
        """The corpus with these labels only."""
        names: list[set[str]] = [set() for _ in self._corpus]
        for d, k in zip(self._doc[had].tolist(), self._who[had].tolist(), strict=True):
            names[d].add(self._names[k])
        documents = [
            replace(one, annotations={name: tags for name, tags in one.annotations.items() if name in mine})
            for one, mine in zip(self._corpus, names, strict=True)
        ]
        return Corpus(documents, profiles=self._corpus.profiles)

    def _next(
        self, learned: _Learned, strategy: Strategy, had: Flags, order: Floats, n: int, rng: np.random.Generator
    ) -> Integers:
        """The pairs to ask for: of each of the documents ranked first, one that is left."""
        uncertainty, left = learned.uncertainty(strategy), np.flatnonzero(~had)
        information = np.zeros(learned.crowd.n_docs)
        favour = -order[left]
        if strategy is Strategy.INFORMATION:
            favour = self._information(learned, uncertainty, left)
            np.maximum.at(information, self._doc[left], favour)
        ranked = left[np.lexsort((-favour, self._doc[left]))]
        first = ranked[np.r_[True, self._doc[ranked[1:]] != self._doc[ranked[:-1]]]]  # by document, whom to ask
        merit = uncertainty.rank_by(strategy, information, rng)[self._doc[first]]
        return np.asarray(first[np.lexsort((order[first], -merit))[:n]])

    def _information(self, learned: _Learned, uncertainty: Uncertainty, pairs: Integers) -> Floats:
        """The expected information of some pairs: none where a duplicate of the annotator has labelled the document."""
        crowd = learned.crowd
        doc, who = self._doc[pairs], learned.merged[self._who[pairs]]
        matrices = matrices_of(learned.annotators, range(len(self._names)))
        found = expected_information(learned.decoded, crowd.doc_start, uncertainty, matrices, self._tagset, doc, who)
        return found * unlabelled(crowd, doc, who)


class _Gold(NamedTuple):
    """The gold of the documents to be scored: its spans (first token, end and type of each), and its labels.

    Of ``n_spans`` those of a type that no annotator used are not among the spans; a label that none used is −1.
    """

    tagset: TagSet
    is_scored: Flags
    spans: Integers
    n_spans: int
    token: Integers
    code: Integers

    @classmethod
    def of(cls, corpus: Corpus, scored: Sequence[int], crowd: Crowd) -> _Gold:
        """That of the ``scored`` documents."""
        tagset, starts = crowd.tagset, crowd.doc_start
        kinds = {kind: number for number, kind in enumerate(tagset.types or tagset.labels)}
        spans: list[tuple[int, int, int]] = []
        tokens, codes = [], list[int]()
        for d in scored:
            gold, first = corpus[d].gold or (), int(starts[d])
            tokens.append(np.arange(first, first + len(gold)))
            codes += [tagset.index.get(str(tag), -1) for tag in gold]
            if tagset.outside is None:
                spans += [(first + p, first + p + 1, kinds.get(str(tag), -1)) for p, tag in enumerate(gold)]
            else:
                found = tagset.pieces(gold, orphans=False)
                spans += [(first + one.start, first + one.end, kinds.get(one.label, -1)) for one in found]
        is_scored = np.zeros(crowd.n_tokens, np.bool_)
        token = np.concatenate(tokens)
        is_scored[token] = True
        known = np.array([span for span in spans if span[2] >= 0], np.int64).reshape(-1, 3)
        return cls(tagset, is_scored, known, len(spans), token, np.array(codes, np.int64))

    def score(self, decoded: Decoded) -> tuple[float, float]:
        """Strict F1 and cross entropy."""
        N, T = len(decoded.path), len(self.tagset.types or self.tagset.labels)
        found = consensus_spans(decoded, self.tagset)
        found = found.where(self.is_scored[found.start])
        start, end, kind = self.spans.T
        right = np.isin(found.key(N, T), (start * (N + 1) + end) * T + kind).sum()
        f1 = 2 * right / max(len(found.start) + self.n_spans, 1)
        probability, known = np.zeros(len(self.code)), self.code >= 0
        probability[known] = decoded.posterior[self.token[known], self.code[known]]
        return float(f1), float(-np.log(np.maximum(probability, _LEAST_PROBABILITY)).mean())
