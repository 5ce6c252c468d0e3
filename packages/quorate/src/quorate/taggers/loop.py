"""A tagger in the loop: it learns from the consensus, tags every document, and joins the crowd as one more annotator.

Each round trains the tagger on the current posterior and lets it tag documents that it was not trained on (documents
are dealt into folds anew every round); what it says is added to what people said, and the consensus is made again. How
far the tagger is to be trusted is learned as for anyone else. Documents that nobody annotated teach nothing, but are
tagged, and so have a consensus.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Corpus, Document
from quorate.corpus.tags import TagSet
from quorate.crowd.algebra import with_annotator
from quorate.crowd.crowd import Crowd
from quorate.crowd.lots import lots_of
from quorate.errors import InputError, SettingsError
from quorate.model.loop import Progress
from quorate.model.parts.truth import log_mask
from quorate.taggers import Tagger, TaggerChoice, make_tagger

Floats = NDArray[np.float64]
Ints32 = NDArray[np.int32]
Found = tuple[Any, Crowd, Any]

TAGGER = "(tagger)"
"""The name under which a tagger joins the annotators."""

ROUNDS = 2
FOLDS = 3
_LITTLE = 0.001  # a round that moves the posterior by less than this per token is the last


class TaggerRound(NamedTuple):
    """What one round did.

    ``changed`` is how far the consensus moved: the probability, mean over tokens, that went from one label to another.
    ``agreement`` is the share of tokens on which tagger and consensus then agree.

    >>> TaggerRound(1, 0.012, 0.97, 3.4).round
    1
    """

    round: int
    changed: float
    agreement: float
    seconds: float


class Step(NamedTuple):
    """What a progress callback is told: round of rounds, fold of folds (``fold`` = ``folds``: the refit)."""

    round: int
    rounds: int
    fold: int
    folds: int


class _Shown(NamedTuple):
    teach: Callable[[Step], None]
    fit: Callable[[Progress], None]


def rounds_of(tagger: object) -> int:
    """How many rounds a tagger takes part in: as many as it says (``rounds``), or as is usual.

    >>> rounds_of(object())
    2
    """
    rounds: int = getattr(tagger, "rounds", ROUNDS)
    return rounds


def in_rounds(progress: Callable[[Progress], None] | None) -> _Shown | None:
    """Callbacks for rounds and for the fits within them that tell ``progress`` of one long fit.

    Every fit counts as a start, of as many as there are rounds and one more.
    """
    if progress is None:
        return None
    latest = Progress(0, ROUNDS + 1, 0, 1, 0.0)

    def teach(step: Step) -> None:
        nonlocal latest
        what = f"tagger, fold {step.fold + 1} of {step.folds}" if step.fold < step.folds else "consensus"
        latest = latest._replace(n_starts=step.rounds + 1, note=f"round {step.round} of {step.rounds}: {what}")
        progress(latest)
        if step.fold == step.folds:
            latest = latest._replace(start=step.round)

    def fit(step: Progress) -> None:
        nonlocal latest
        done = step.start * step.max_passes + step.passes
        latest = latest._replace(passes=done, max_passes=step.max_passes * step.n_starts, bound=step.bound)
        progress(latest)

    return _Shown(teach, fit)


def joined_fit(
    corpus: Corpus,
    crowd: Crowd,
    choice: TaggerChoice,
    fit: Callable[..., Found],
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[tuple[TaggerRound, ...], Found]:
    """Fits with a tagger that joins the crowd, and what each of its rounds did.

    ``fit(crowd, posteriors=True, progress=…)`` gives what was learned, the crowd it was learned from and the consensus.
    """
    shown, last = in_rounds(progress), None

    def consensus(path: Ints32 | None) -> Floats:
        nonlocal last
        joined = crowd if path is None else with_annotator(crowd, TAGGER, path)
        last = fit(joined, posteriors=True, teaches=labelled, progress=shown.fit if shown else None)
        posterior: Floats = last[2].decoded.posterior
        return posterior

    labelled = np.diff(crowd.event_start[crowd.doc_start]) > 0  # the others teach nothing
    tagger = make_tagger(choice, crowd.tagset)
    rounds = teach(corpus, crowd, tagger, consensus, seed=seed, progress=shown.teach if shown else None)
    assert last is not None
    return rounds, last


def teach(
    corpus: Corpus,
    crowd: Crowd,
    tagger: Tagger,
    consensus: Callable[[Ints32 | None], Floats],
    *,
    rounds: int | None = None,
    folds: int = FOLDS,
    seed: int = 0,
    progress: Callable[[Step], None] | None = None,
) -> tuple[TaggerRound, ...]:
    """Alternate between consensus and tagger, for as many ``rounds`` as the tagger takes part in unless given.

    ``consensus`` gives the posterior ``[N, J]`` with the tagger's labels joined: ``[N]`` a label for every token, or
    ``None`` at first. Its last call is the final one.
    """
    if TAGGER in crowd.annotators:
        raise InputError(f"an annotator is called {TAGGER!r} already (rename it, or leave the tagger out)")
    rounds = rounds_of(tagger) if rounds is None else rounds
    posterior = consensus(None)
    finished: list[TaggerRound] = []
    for number, rng in enumerate(np.random.default_rng(seed).spawn(rounds), start=1):
        began = time.perf_counter()

        def report(fold: int, number: int = number, rounds: int = rounds) -> None:
            if progress is not None:
                progress(Step(number, rounds, fold, folds))

        tagged = cross_fitted(corpus, crowd, tagger, posterior, folds=folds, rng=rng, progress=report)
        path = best_path(crowd.tagset, tagged, crowd.doc_start)
        before, posterior = posterior, consensus(path)
        changed = 0.5 * float(np.abs(posterior - before).sum()) / max(len(posterior), 1)
        agreement = float((posterior.argmax(axis=1) == path).mean()) if len(path) else 1.0
        finished.append(TaggerRound(number, changed, agreement, time.perf_counter() - began))
        if changed < _LITTLE:
            break
    return tuple(finished)


def cross_fitted(
    corpus: Corpus,
    encoded: Crowd,
    tagger: Tagger,
    posterior: Floats,
    *,
    folds: int,
    rng: np.random.Generator,
    progress: Callable[[int], None],
) -> Floats:
    """``[N, J]`` What the tagger says about every document when it was trained on others.

    Documents without any annotator are never trained on: their row is the mean over the folds. Who is in which fold,
    and in which order they are learned from, does not hang on the order of documents.
    """
    doc_start = encoded.doc_start
    labelled = encoded.event_start[doc_start[1:]] > encoded.event_start[doc_start[:-1]]
    teachers = np.flatnonzero(labelled)
    teachers = rng.permutation(teachers[np.argsort(lots_of(encoded).document[teachers], kind="stable")])
    folds = min(folds, len(teachers))
    if folds < 2:
        raise InputError("a tagger learns from some documents and tags others: at least two must have annotations")
    bare = np.flatnonzero(~labelled)
    out = np.zeros_like(posterior)
    for fold in range(folds):
        progress(fold)
        in_fold = np.arange(len(teachers)) % folds == fold
        held_out, trained_on = teachers[in_fold], teachers[~in_fold]
        tagger.fit(_documents(corpus, trained_on), [posterior[doc_start[d] : doc_start[d + 1]] for d in trained_on])
        asked = np.concatenate([held_out, bare])
        answers = tagger.predict(_documents(corpus, asked))
        for position, (d, answer) in enumerate(zip(asked, _checked(tagger, answers, len(asked)), strict=True)):
            share = 1.0 if position < len(held_out) else 1.0 / folds
            rows = out[doc_start[d] : doc_start[d + 1]]
            if answer.shape != rows.shape or not np.isfinite(answer).all() or (answer < 0).any():
                raise SettingsError(
                    f"{corpus[int(d)].where()}: the tagger {type(tagger).__name__} gave probabilities of the shape "
                    f"{answer.shape}, or with numbers that are none (needed: {rows.shape}, 0 or more)"
                )
            rows += share * answer
    progress(folds)
    return out


def _documents(corpus: Corpus, numbers: NDArray[np.int64]) -> list[Document]:
    return [corpus[int(d)] for d in numbers]


def _checked(tagger: Tagger, answers: Sequence[Floats], n_documents: int) -> list[Floats]:
    if len(answers) != n_documents:
        raise SettingsError(
            f"the tagger {type(tagger).__name__} gave {len(answers)} arrays for {n_documents} documents (one for each)"
        )
    return [np.asarray(answer, np.float64) for answer in answers]


def best_path(tagset: TagSet, probabilities: Floats, doc_start: NDArray[np.int64]) -> Ints32:
    """``[N]`` Of all sequences that the scheme allows, the one with the greatest product of probabilities."""
    from quorate.taggers import kernels

    path = np.zeros(len(probabilities), np.int32)
    floor = np.finfo(np.float64).tiny
    kernels.best_paths(
        np.log(np.maximum(probabilities, floor)),
        doc_start,
        log_mask(tagset.allowed_first),
        log_mask(tagset.allowed),
        log_mask(tagset.allowed_last),
        path,
    )
    return path
