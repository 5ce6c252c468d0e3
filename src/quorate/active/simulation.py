"""Active learning on a crowd whose labels are all known: what would have come of asking for fewer, chosen well.

Algorithm 2 of the paper. A run begins with a random set of labels, the same for all methods. Then it fits, scores, asks
for one more label of each of the documents that its strategy ranks first, and so on. A label is what one annotator said
of one document. A document of which every label has been asked for is not chosen again. Who labels a document is drawn
by lot, the same lot for all methods, except where the strategy itself names the annotator.
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
    token_entropy,
)
from quorate.choose.choice import choose, settings_left_open
from quorate.choose.silence import Silence, coverage, first_votes, silent_votes
from quorate.corpus.records import Corpus
from quorate.corpus.tags import Invalid
from quorate.crowd.algebra import number_pairs, only_documents, without
from quorate.crowd.crowd import Crowd
from quorate.crowd.sharing import Sharing
from quorate.errors import FitError, InputError, SettingsError, knows_its_options
from quorate.estimators.capabilities import FitsInPasses
from quorate.estimators.methods import estimator
from quorate.estimators.voting import MajorityVote
from quorate.evaluate.compare import scored_positions
from quorate.model import loop
from quorate.model.build import model_of
from quorate.model.calibration import AS_STATED
from quorate.model.consensus import conclude
from quorate.model.consensus_spans import consensus_spans
from quorate.model.engines.protocol import Decoded, Engine
from quorate.model.kernels.cores import available_threads
from quorate.model.parts.annotators import Annotators
from quorate.model.prepared import Prepared, prepare
from quorate.model.settings import Ties, check_number, choice
from quorate.model.spans import Heard
from quorate.model.votes import majority
from quorate.storage.work_log import Store

__all__ = ["Curve", "Plan", "Run", "Simulation", "simulate_active"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_LEAST_PROBABILITY = 1e-100
_CHOSEN_AGAIN = 2  # times as many labels as settings were chosen by: all choices together take twice the last


@dataclass(frozen=True)
class Plan:
    """How a run goes: labels to begin with, documents in a batch, labels to end with, passes of each fit.

    Each fit starts from votes: what a fit before it believed of a document would stay believed for long. Settings that
    are chosen are chosen again whenever there are twice as many labels, and then say how many passes.

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
        _learner(method)
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
    """What a method makes of the labels so far; ``entropy`` gives that of whole documents."""

    decoded: Decoded
    annotators: Annotators
    entropy: Callable[[], Floats] | None = None
    engine: Engine | None = None

    def uncertainty(self, doc_start: Integers, strategy: Strategy) -> Uncertainty:
        token = token_entropy(self.decoded.posterior, doc_start)
        by_sequence = strategy in (Strategy.SEQUENCE_ENTROPY, Strategy.INFORMATION)
        whole = self.entropy() if by_sequence and self.entropy is not None else token
        return Uncertainty(self.decoded.log_probability, np.diff(doc_start), token, whole)

    def close(self) -> None:
        """Let go of the engine."""
        if self.engine is not None:
            self.engine.close()


class _Votes:
    """Majority vote; a document that nobody labelled is all ``O``."""

    def __init__(self, method: MajorityVote) -> None:
        self._ties = choice(Ties, "ties", method.ties)
        self.invalid = choice(Invalid, "invalid", method.invalid)

    def learn(self, prepared: Prepared, plan: Plan) -> _Learned:
        encoded, outside = prepared.encoded, prepared.tagset.outside
        decoded, annotators = majority(encoded, ties=self._ties, threads=1)
        if outside is not None:
            unseen = np.diff(encoded.event_start) == 0
            decoded.path[unseen], decoded.span_end[unseen] = outside, 0
        return _Learned(decoded, annotators)


class _Model:
    """Bayesian sequence combination; open settings are chosen again whenever there are twice as many labels.

    It learns from documents that someone labelled, and from their words. Left to itself, the text of all the others
    would teach it classes of words that are not the labels.
    """

    def __init__(self, method: FitsInPasses) -> None:
        self._settings, self._free = method.checked_settings(), settings_left_open(method.get_params())
        self.invalid = self._settings.invalid
        self._engines = replace(method.engines(), threads=1)  # runs go side by side
        self._calibration, self._sharing = AS_STATED, Sharing.of()
        self._fits = self._chosen_by = 0  # how many fits there were, and by how many labels settings were chosen

    def learn(self, prepared: Prepared, plan: Plan) -> _Learned:
        everything, labelled = _with_words_met(prepared.encoded)
        if self._free:
            self._choose(prepared._replace(encoded=labelled))
        weighed, labelled = self._sharing.weighed(everything), self._sharing.weighed(labelled)
        settings, calibration = self._settings, self._calibration
        profiles = prepared.corpus.profiles
        of_silence = silent_votes(labelled, profiles, coverage(labelled, self._sharing), beside_rules=bool(self._free))
        silence = Silence.of(labelled, of_silence) if self._free else Silence()
        with closing(self._engines.over(labelled, known=silence.closed(labelled, None), text=settings.text)) as engine:
            blank = model_of(settings, prepared.tagset, labelled, silence.believed(labelled.annotators, profiles))
            votes = first_votes(labelled, profiles, settings.start, of_silence=of_silence)
            start = loop.initial_model(engine, blank, labelled.cells, settings.start, first_votes=votes)
            passes = settings.max_iter if self._chosen_by else plan.passes
            model = loop.more_passes(engine, start, labelled.cells, passes)
        self._fits += 1
        output = self._engines.over(weighed, known=silence.closed(weighed, None), text=settings.text)
        heard = Heard(self._sharing.heard(everything), weighed, sharing=self._sharing, threads=1)
        found = conclude(output, model, heard, settings, calibration)

        def entropy() -> Floats:
            return document_entropy(output, weighed.cells, found, calibration)

        return _Learned(found.decoded, found.model.annotators, entropy, output)

    def _choose(self, prepared: Prepared) -> None:
        """The settings that are open, as soon as enough annotators share documents to choose by, then now and again."""
        labels = len(number_pairs(prepared.encoded)[0])
        if labels < _CHOSEN_AGAIN * self._chosen_by:
            return
        found = choose(prepared, self._settings, self._free, engines=self._engines)
        if found.vote is not None or not self._fits:
            self._settings = found.settings
        if found.vote is not None:
            self._chosen_by, self._calibration = labels, found.calibration
            self._sharing = found.sharing


def _with_words_met(encoded: Crowd) -> tuple[Crowd, Crowd]:
    """All documents, and those with labels, in both of which only words of the latter are known."""
    labelled = only_documents(encoded, np.flatnonzero(np.diff(encoded.event_start[encoded.doc_start])))
    met = np.unique(labelled.word)
    number = np.full(len(encoded.words), len(met), np.int32)
    number[met] = np.arange(len(met))
    words = tuple(encoded.words[w] for w in met.tolist())
    return (
        replace(encoded, words=words, word=number[encoded.word]),
        replace(labelled, words=words, word=number[labelled.word]),
    )


def _learner(method: str) -> _Votes | _Model:
    made = estimator(method)
    if isinstance(made, FitsInPasses):
        return _Model(made)
    if type(made) is MajorityVote:
        return _Votes(made)
    raise SettingsError(f"method {method!r} cannot be simulated (it goes on from no state, or reads gold)")


class _Pool:
    """A corpus whose labels are handed out one by one."""

    def __init__(self, corpus: Corpus, split: str | None) -> None:
        self._corpus = corpus
        self._scored = [d for d in scored_positions(corpus, split) if None not in (corpus[d].gold or ())]
        if not self._scored:
            raise InputError("no document to be scored has gold for all its tokens")
        self._prepared: dict[Invalid, _Labels] = {}

    def run(self, method: str, strategy: str, repeat: int, plan: Plan) -> Run:
        """One run from the initial labels to the last."""
        began = time.perf_counter()
        learner, chosen_by = _learner(method), Strategy(strategy)
        if learner.invalid not in self._prepared:
            self._prepared[learner.invalid] = _Labels(prepare(self._corpus, None, learner.invalid), self._scored)
        labels = self._prepared[learner.invalid]
        rng = np.random.default_rng([plan.seed, repeat])
        lot = rng.random(len(labels.doc))
        had = np.zeros(len(lot), dtype=np.bool_)
        had[np.argsort(lot)[: plan.initial]] = True
        lot = rng.random(len(lot))
        run = Run(method, strategy, repeat, [], [], [], 0.0)
        while True:
            prepared = labels.those(had)
            with closing(learner.learn(prepared, plan)) as learned:
                run.labels.append(int(had.sum()))
                for column, value in zip((run.f1, run.cee), labels.score(learned.decoded), strict=True):
                    column.append(value)
                left = min(plan.batch, plan.max_labels - int(had.sum()))
                if left < plan.batch or had.all():
                    return run._replace(seconds=time.perf_counter() - began)
                had[labels.next(learned, chosen_by, had, lot, left, rng)] = True


class _Labels:
    """All labels of a corpus, as pairs of document and annotator, and the gold."""

    def __init__(self, prepared: Prepared, scored: Sequence[int]) -> None:
        self._all, encoded = prepared, prepared.encoded
        self.doc, self.who, self._pair = number_pairs(encoded)
        self._gold_of(prepared, scored)

    def _gold_of(self, prepared: Prepared, scored: Sequence[int]) -> None:
        tagset, starts = prepared.tagset, prepared.encoded.doc_start
        kinds = {kind: number for number, kind in enumerate(tagset.types or tagset.labels)}
        spans, tokens, codes = [], [], []
        for d in scored:
            gold, first = prepared.corpus[d].gold or (), int(starts[d])
            tokens.append(np.arange(first, first + len(gold)))
            codes += [tagset.index.get(str(tag), -1) for tag in gold]
            if tagset.outside is None:
                spans += [(first + p, first + p + 1, kinds.get(str(tag), -1)) for p, tag in enumerate(gold)]
            else:
                found = tagset.pieces(gold, orphans=False)
                spans += [(first + one.start, first + one.end, kinds.get(one.label, -1)) for one in found]
        self._gold_spans = np.array([span for span in spans if span[2] >= 0], np.int64).reshape(-1, 3)
        self._n_gold = len(spans)
        self._gold_token, self._gold_code = np.concatenate(tokens), np.array(codes)
        self._is_scored = np.zeros(prepared.encoded.n_tokens, dtype=np.bool_)
        self._is_scored[self._gold_token] = True

    def those(self, had: NDArray[np.bool_]) -> Prepared:
        """The corpus with these labels only."""
        return self._all._replace(encoded=without(self._all.encoded, ~had[self._pair]))

    def score(self, decoded: Decoded) -> tuple[float, float]:
        """Strict F1 and cross entropy."""
        N, T = len(decoded.path), len(self._all.tagset.types or self._all.tagset.labels)
        found = consensus_spans(decoded, self._all.tagset)
        found = found.where(self._is_scored[found.start])
        start, end, kind = self._gold_spans.T
        right = np.isin(found.key(N, T), (start * (N + 1) + end) * T + kind).sum()
        f1 = 2 * right / max(len(found.start) + self._n_gold, 1)
        known = self._gold_code >= 0
        probability = np.zeros(len(known))
        probability[known] = decoded.posterior[self._gold_token[known], self._gold_code[known]]
        return float(f1), float(-np.log(np.maximum(probability, _LEAST_PROBABILITY)).mean())

    def next(
        self,
        learned: _Learned,
        strategy: Strategy,
        had: NDArray[np.bool_],
        lot: Floats,
        n: int,
        rng: np.random.Generator,
    ) -> Integers:
        """The pairs to ask for: of each of the documents ranked first, one that is left."""
        encoded: Crowd = self._all.encoded
        uncertainty = learned.uncertainty(encoded.doc_start, strategy)
        left = np.flatnonzero(~had)
        information = np.zeros(encoded.n_docs)
        favour = -lot[left]
        if strategy is Strategy.INFORMATION:
            matrices = matrices_of(learned.annotators, range(len(encoded.annotators)))
            favour = expected_information(
                learned.decoded,
                encoded.doc_start,
                uncertainty,
                matrices,
                self._all.tagset,
                self.doc[left],
                self.who[left],
            )
            np.maximum.at(information, self.doc[left], favour)
        order = left[np.lexsort((-favour, self.doc[left]))]
        first = order[np.r_[True, self.doc[order[1:]] != self.doc[order[:-1]]]]  # the pair to ask for, by document
        merit = uncertainty.rank_by(strategy, information, rng)[self.doc[first]]
        return np.asarray(first[np.lexsort((lot[first], -merit))[:n]])
