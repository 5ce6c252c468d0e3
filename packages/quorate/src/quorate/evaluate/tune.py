"""Choosing settings by gold: a grid, each point fitted without gold and scored on the dev split; resumable."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

from quorate.corpus.records import Corpus
from quorate.corpus.tags import Scheme
from quorate.crowd.crowd import Crowd
from quorate.errors import SettingsError
from quorate.estimators.capabilities import Tunes
from quorate.estimators.methods import estimator
from quorate.evaluate import metrics
from quorate.evaluate.compare import scored_positions
from quorate.model.fit import fit_and_decode
from quorate.model.kernels.cores import available_threads
from quorate.model.prepared import crowd_of
from quorate.storage.work_log import Store

DEFAULT_GRID: dict[str, tuple[float, ...]] = {
    "alpha0": (0.3, 1.0, 3.0),
    "epsilon0": (1.0, 10.0, 30.0, 100.0),
    "gamma0": (0.1, 1.0, 10.0),
    "kappa0": (0.3, 1.0),
    "temper": (0.6, 1.0),
}
GOALS = ("f1", "relaxed-f1", "cee")


class Trial(NamedTuple):
    """One point of the grid and its scores on the split.

    >>> Trial({"alpha0": 1.0}, 0.8, 0.82, 0.5).f1
    0.8
    """

    settings: dict[str, float]
    f1: float
    relaxed_f1: float
    cee: float


class Tuned(NamedTuple):
    """All trials, the best first."""

    method: str
    goal: str
    split: str | None
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        """The trial to take."""
        return self.trials[0]


def tune(
    corpus: Corpus,
    method: str = "bsc-seq",
    *,
    split: str | None = "dev",
    goal: str = "f1",
    grid: Mapping[str, Sequence[float]] | None = None,
    fixed: Mapping[str, Any] | None = None,
    results: str | Path | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Tuned:
    """Try every point of a grid of settings on gold of a split, and rank them.

    ``goal`` is ``f1`` (strict), ``relaxed-f1`` or ``cee``. ``fixed`` settings hold for all. Each trial is added to the
    file ``results`` as it ends; what is there already, of the same input and settings, is not fitted again.

    >>> import quorate
    >>> corpus = quorate.sample()
    >>> found = tune(corpus, "bsc-cm", split=None, grid={"temper": [0.6, 1.0]}, fixed={"max_iter": 3})
    >>> len(found.trials), found.best.f1 >= found.trials[1].f1
    (2, True)
    """
    if goal not in GOALS:
        raise SettingsError(f"goal {goal!r} is not known (one of: {', '.join(GOALS)})")
    points = _points(method, DEFAULT_GRID if grid is None else grid, fixed or {})
    chosen = scored_positions(corpus, split)
    settings = _model(method, fixed or {}).checked_settings()
    crowd = crowd_of(corpus, settings.scheme, settings.invalid)
    if crowd.tagset.scheme is Scheme.PLAIN and goal != "cee":
        raise SettingsError("plain tags mark no spans to score (use the goal cee)")
    head = {"method": method, "fixed": dict(fixed or {}), "split": split, "inputs": corpus.digests}
    store = Store(results, head, "trials")
    known = _trials(store)
    done = [known[key] for key in map(_key, points) if key in known]
    waiting = [point for point in points if _key(point) not in known]
    workers = jobs or available_threads()
    if workers < 1:
        raise SettingsError(f"jobs must be 1 or more, not {workers}")
    pool = ThreadPoolExecutor(workers)
    try:
        running = [pool.submit(_trial, corpus, crowd, chosen, method, fixed or {}, point) for point in waiting]
        for finished in as_completed(running):
            done.append(finished.result())
            store.add(done[-1]._asdict())
            if progress is not None:
                progress(len(done), len(points), f"best {_shown(min(done, key=_rank(goal)), goal)}")
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return Tuned(method, goal, split, tuple(sorted(done, key=_rank(goal))))


def _points(method: str, grid: Mapping[str, Sequence[float]], fixed: Mapping[str, Any]) -> list[dict[str, float]]:
    axes = {name: values for name, values in grid.items() if name not in fixed}
    points = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    for point in points:
        _model(method, {**fixed, **point}).checked_settings()
    return points


def _model(method: str, settings: Mapping[str, Any]) -> Tunes:
    model = estimator(method, **settings)
    if not isinstance(model, Tunes):
        raise SettingsError(f"method {method!r} has nothing to tune")
    return model


def _trial(
    corpus: Corpus,
    crowd: Crowd,
    chosen: Sequence[int],
    method: str,
    fixed: Mapping[str, Any],
    point: dict[str, float],
) -> Trial:
    model = _model(method, {**fixed, **point, "n_jobs": 1})
    fitted, _, found = fit_and_decode(crowd, model.checked_settings(), model.engines(), corpus=corpus)
    tagset, decoded, first = fitted.tagset, found.decoded, crowd.doc_start.tolist()
    gold = [corpus[d].gold for d in chosen]
    places = [slice(first[d], first[d + 1]) for d in chosen]
    entropy = metrics.cross_entropy([decoded.posterior[place] for place in places], gold, tagset.labels).mean
    if tagset.scheme is Scheme.PLAIN:
        return Trial(point, 0.0, 0.0, entropy)
    tags = [[tagset.labels[label] for label in decoded.path[place].tolist()] for place in places]
    return Trial(point, metrics.strict(tags, gold).f1, metrics.relaxed(tags, gold).f1, entropy)


def _rank(goal: str) -> Callable[[Trial], tuple[float, str]]:
    """Best first; between equals the order is that of the settings, whatever finished first."""

    def rank(trial: Trial) -> tuple[float, str]:
        loss = {"f1": -trial.f1, "relaxed-f1": -trial.relaxed_f1, "cee": trial.cee}[goal]
        return loss, _key(trial.settings)

    return rank


def _shown(trial: Trial, goal: str) -> str:
    return f"{trial.cee:.3f}" if goal == "cee" else f"{100 * (trial.f1 if goal == 'f1' else trial.relaxed_f1):.2f}"


def _key(point: Mapping[str, float]) -> str:
    return json.dumps(dict(point), sort_keys=True)


def _trials(store: Store) -> dict[str, Trial]:
    """The trials of a file, by their settings."""
    try:
        return {_key(record["settings"]): Trial(**record) for record in store.records}
    except (KeyError, TypeError, ValueError):
        raise store.damaged() from None
