"""Settings without gold: candidates are fitted with some annotators hidden, and judged by those (:mod:`hidden`).

First every annotator model runs a few passes, and those that are within chance of the best one do so at other
strengths of their prior; the best go on, also with less trust in the annotators' evidence, and are judged again as they
go, until they are found clearly worse. More trust than usual is never tried: annotators share mistakes, so
the hidden ones applaud a consensus that repeats them. Where differences are within
chance the usual settings stay. Where hiding one leaves two or fewer, what is best for those need not be best for all,
and where most are silent, whoever is hidden knows little: another model than the usual one must be clearly better. What
the hidden annotators say then calibrates the confidence (:mod:`calibration`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.choose.evidence import SpanBench, agreement_on, better_evidence, calibrated_spans, usual_evidence
from quorate.choose.hidden import TO_CALIBRATE, HiddenLabels, agreement_over
from quorate.choose.silence import hardly_meet, hardly_overlap, mostly_silent, only_rules, silent_votes
from quorate.choose.sources import coverage_and_sharing
from quorate.choose.trials import (
    Bench,
    Run,
    Trial,
    benches_over,
    calibrated_tokens,
    hidden_in,
    sharpness_on,
    span_benches_of,
)
from quorate.encode.algebra import seen_pairs
from quorate.encode.encoded import Encoded
from quorate.encode.sharing import Sharing
from quorate.formats.notes import people
from quorate.infer import loop
from quorate.infer.engines.factory import Engines
from quorate.models.build import those_that_fit, why_no_spans
from quorate.models.prepared import Prepared
from quorate.models.settings import AnnotatorModel, Decode, Evidence, Inference, Settings
from quorate.models.votes import majority
from quorate.result.calibration import AS_STATED, Calibration
from quorate.result.sources import Together, err_together, votes_in_words

__all__ = ["AUTO", "CHOSEN", "Choice", "choose", "settings_left_open"]

AUTO = "auto"
"""The value of a setting that is to be chosen."""

CHOSEN = ("annotator", "epsilon0", "temper", "max_iter", "evidence")
"""The settings that can be chosen."""

_USUAL: dict[str, Any] = {
    "annotator": AnnotatorModel.CM,
    "epsilon0": 10.0,
    "temper": 0.9,
    "max_iter": 5,
    "evidence": Evidence.SPANS,
}
_MODELS = (AnnotatorModel.CM, AnnotatorModel.SEQ, AnnotatorModel.CV, AnnotatorModel.SPAM)
_MODELS_OF_SILENCE = (AnnotatorModel.CM, AnnotatorModel.SEQ)  # the others take an O for a mistake like any other
_STRENGTHS = (1.0, 10.0, 100.0)
_LESS_TRUST = 0.6
_CHECKS = (4, 8, 16)  # passes after which a candidate is judged
_FINALISTS = 2
_FEW_DRAWS = 2  # enough to tell which candidates are out of the question
_FITS_AT_ONCE = 2  # about what the models of all finalists take, beside the fit that runs
_MUCH_HIDDEN = 0.3  # share of what was said, from which on another model must be clearly better
_CLEARLY = 2.5  # standard errors
_IN_WORDS = {
    Evidence.TOKENS: "tokens",
    Evidence.SPANS: "whole spans, with tokens beside them",
    Evidence.PASSAGES: "passages, of which what is said of their tokens counts more",
    Evidence.VOTES: "votes for exact spans",
    Evidence.PLACES: "where spans are, whatever their type, then the type of each, for annotators who dispute types",
}
_FOR_RULES = "the settings for rules, as annotators look like rules"
_BESIDE_RULES = (
    "all annotators are taken for rules: they have read everything, and {} as little of what others mark as rules do "
    "(if some are people, a profile can say so: --annotators)"
)
_NOT_CALIBRATED = (
    "confidence is not calibrated and may be too high: too little was labelled by several annotators to check it"
)
_GROUPS_TOLD = 3
_FEWER = 0.95  # of the annotators' number; not worth a word above that
_ENOUGH_SPANS = 50  # hidden spans below which nothing can be told


class Choice(NamedTuple):
    """What was chosen, why, and how confidence is to be read.

    ``sharing`` is what annotators have in common beyond the truth, which counts once (:mod:`correlation`), and
    ``votes`` how many of them see a document, on average, and how many independent ones they are worth.
    ``of_silence [K]`` is how much an ``O`` of each counted in the first votes (:mod:`silence`), and ``silent`` are
    those who mark so little that theirs says next to nothing, as rules do.
    ``vote`` is the score of a plain vote against the same hidden annotators; ``gain`` how much better the chosen model
    is, with its standard ``error``. Without enough to compare, all are ``None``. ``trials`` are the finalists', best
    first, then the others', ``left_out`` says of models that were not tried why not, and who was taken for rules.
    ``with_tagger`` is how confidence is to be read where a tagger has joined, ``None`` where none has. ``places`` is
    what was chosen for where spans are, if that comes first (``None``: it does not).
    """

    settings: Settings
    calibration: Calibration
    annotators: tuple[str, ...]
    sharing: Sharing
    votes: tuple[float, float]
    of_silence: NDArray[np.float64]
    silent: tuple[str, ...]
    trials: tuple[Trial, ...]
    vote: float | None
    gain: float | None
    error: float | None
    left_out: tuple[str, ...] = ()
    with_tagger: Calibration | None = None
    places: Choice | None = None

    def __repr__(self) -> str:
        return f"<Choice: {self.reasons[0]}>"

    @property
    def worse_than_vote(self) -> bool:
        """Whether a plain vote does clearly better against hidden annotators, who cannot tell of disputed types."""
        if self.settings.evidence is Evidence.PLACES:
            return False
        return self.gain is not None and self.error is not None and self.gain < -_CLEARLY * self.error

    @property
    def is_calibrated(self) -> bool:
        """Whether confidence was checked by hidden annotators; too few labels cannot."""
        return self.vote is not None

    @property
    def together(self) -> list[Together]:
        """Annotators who err together, group by group, the largest first."""
        return err_together(self.annotators, self.sharing)

    @property
    def reasons(self) -> list[str]:
        """How it was chosen, in the words of the field; then :attr:`notes`."""
        of_places = [] if self.places is None else [f"places: {self.places.reasons[0]}"]
        return [*self._why(), *of_places, *self.notes]

    @property
    def notes(self) -> list[str]:
        """What everybody who uses the consensus should know, in plain words, each with ``warning:`` or ``note:``."""
        together = self.together
        notes = [] if self.is_calibrated else [_NOT_CALIBRATED]
        notes += [*self.left_out, *map(str, together[:_GROUPS_TOLD])]
        if len(together) > _GROUPS_TOLD:
            notes.append(f"{len(together) - _GROUPS_TOLD} more groups make the same mistakes")
        if self.silent:
            notes.append(f"what {people(self.silent)} leave unmarked counts little, as they mark little")
        given, worth = self.votes
        if worth < _FEWER * given:
            notes.append(votes_in_words(given, worth))
        return [*self._warning(), *(f"note: {note}" for note in notes)]

    def _warning(self) -> list[str]:
        if not self.worse_than_vote:
            return []
        return ["warning: a plain vote may do better here (try --method mv, or span-vote)"]

    def _why(self) -> list[str]:
        chosen = self.settings
        what = f"{chosen.annotator.value}, epsilon0 {chosen.epsilon0:g}, temper {chosen.temper:g}"
        usual = _FOR_RULES if hardly_overlap(self.of_silence) else "the usual settings"
        if self.vote is None or self.gain is None or self.error is None:
            return [
                f"{what}: {usual}, and confidence as the model states it (to check these, quorate needs "
                f"documents with several annotators, and {_ENOUGH_SPANS} spans to hide)",
                f"evidence: {_IN_WORDS[chosen.evidence]}",
            ]
        score = 100 * (self.vote + self.gain)
        evidence = f"evidence: {_IN_WORDS[chosen.evidence]}"
        sharpness = _sharpness_in_words(self._sharpness)
        if hardly_overlap(self.of_silence):
            return [
                f"{what}, {chosen.max_iter} passes: {_FOR_RULES}",
                evidence,
                sharpness,
            ]
        first = self.trials[0].settings
        is_first = (first.annotator, first.epsilon0, first.temper) == (chosen.annotator, chosen.epsilon0, chosen.temper)
        how = "best of" if is_first else "about as good as the best of"
        return [
            f"{what}: {how} {len({t.settings for t in self.trials})} candidates, judged by "
            f"hidden annotators ({score:.1f}; a plain vote {100 * self.vote:.1f})",
            evidence,
            sharpness,
        ]

    @property
    def _sharpness(self) -> float:
        if self.places is not None:
            return self.places._sharpness
        on_spans = self.settings.by_spans
        return self.calibration.span_sharpness if on_spans else self.calibration.sharpness


def choose(
    prepared: Prepared,
    settings: Settings,
    free: tuple[str, ...],
    *,
    engines: Engines | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Choice:
    """The settings named in ``free`` are chosen, the others stay as they are.

    ``engines`` is where candidates are fitted and judged: on all cores unless it is given.

    >>> import quorate
    >>> from quorate.models.prepared import prepare
    >>> from quorate.corpus.tags import Invalid
    >>> prepared = prepare(quorate.sample(), None, Invalid.REPAIR)
    >>> choose(prepared, Settings(), CHOSEN).settings.temper
    0.9
    """
    if prepared.tagset.outside is None or settings.decode is Decode.TOKEN:  # there are no spans to look at
        free = tuple(name for name in free if name != "evidence")
    no_room = why_no_spans(prepared.encoded) if "evidence" in free else None
    if no_room is not None:
        free = tuple(name for name in free if name != "evidence")
    names, profiles = prepared.encoded.annotators, prepared.corpus.profiles
    covered, sharing = coverage_and_sharing(prepared.encoded, profiles)
    heard = sharing.heard(prepared.encoded)
    of_silence = silent_votes(heard, profiles, covered, beside_rules=True)
    by_rules = hardly_overlap(of_silence)
    beside = by_rules and not only_rules(heard, profiles, covered)
    votes = _votes(prepared.encoded, heard, sharing)
    defaults = _among_rules(of_silence) if by_rules else _USUAL
    usual = replace(settings, **{name: value for name, value in defaults.items() if name in free})
    open_models = _MODELS if "annotator" in free else (usual.annotator,)
    models, left_out = those_that_fit(open_models, usual, prepared.encoded, at_once=_FITS_AT_ONCE)
    if mostly_silent(of_silence):
        models = tuple(model for model in models if model in _MODELS_OF_SILENCE) or models
    left_out = left_out if no_room is None else (*left_out, no_room)
    if beside:
        few = [name for k, name in enumerate(names) if covered.like_rules[sharing.speaker.get(k, k)]]
        left_out = (*left_out, _BESIDE_RULES.format(f"{people(few)} {'marks' if len(few) == 1 else 'mark'}"))
    usual = replace(usual, annotator=usual.annotator if usual.annotator in models else models[0])
    open_evidence = "evidence" in free
    if by_rules:
        free, models = (), (usual.annotator,)
    silent = tuple(name for k, name in enumerate(names) if covered.silent[sharing.speaker.get(k, k)])
    hidden = hidden_in(prepared, sharing, settings)
    if not hidden and "temper" in free:  # nobody shares a document, so nobody shares its mistakes
        usual = replace(usual, temper=1.0)
    if sum(len(one.spans.start) for one in hidden) < _ENOUGH_SPANS:
        return Choice(usual, AS_STATED, names, sharing, votes, of_silence, silent, (), None, None, None, left_out)
    engines = engines or Engines()
    checks = _CHECKS if "max_iter" in free else (usual.max_iter,)
    models = tuple(one for one in models if one is not AnnotatorModel.SEQ or usual.inference is Inference.VB) or models
    much_hidden = hidden[0].share >= _MUCH_HIDDEN or mostly_silent(of_silence)
    n_done, expected = 0, len(models) + len(_STRENGTHS) - 1 + (1 + len(checks)) * _FINALISTS

    def judged(run: Run, *passes: int) -> Run:
        """The run after these passes, or those after which it was found clearly worse than before."""
        nonlocal n_done
        for until in passes:
            if run.got_worse:
                break
            run.go_on(until)
            n_done += 1
            if progress is not None:
                note = f"choosing: {run.settings.annotator.value}, {until} passes, {100 * run.agreement.f1:.1f}"
                progress(n_done, max(n_done, expected), note)
        return run

    with benches_over(hidden, prepared, settings, engines, sharing, of_silence) as benches:
        tried: list[Run] = []

        def screen(candidates: Iterable[Settings]) -> list[Run]:
            """The best of those that were tried so far, after a few passes of these too."""
            for candidate in candidates:
                tried.append(judged(Run(candidate, benches[:_FEW_DRAWS]), checks[0]))
                best = _finalists(tried, usual, much_hidden=much_hidden)
                for run in tried:
                    if run not in best:
                        run.forget_models()
            return _finalists(tried, usual, much_hidden=much_hidden)

        finalists = screen(replace(usual, annotator=model) for model in models)
        if "epsilon0" in free:
            finalists = screen(list(_other_strengths(tried, usual)))
        runs: list[Run] = []
        for finalist in finalists:
            goes_on = bool(finalist.models) and len(benches) <= _FEW_DRAWS
            run = finalist if goes_on else Run(finalist.settings, benches)
            runs.append(judged(run, *checks[len(run.trials) :]))
            if "temper" in free and finalist.settings.temper > _LESS_TRUST:
                less = replace(finalist.settings, temper=_LESS_TRUST)
                milder = judged(Run(less, benches), checks[0])
                if milder.agreement.f1 > runs[-1].trials[0].f1:
                    runs.append(judged(milder, *checks[1:]))
                else:
                    tried.append(milder)
                    milder.forget_models()
        winner = _usual_within_chance(runs, usual, much_hidden=much_hidden)
        sharpness = sharpness_on(benches, winner.best_models, engines.threads)
        agreement, chosen = winner.agreement, winner.settings
        vote = agreement_over(hidden, [majority(one.sample, threads=engines.threads).decoded for one in hidden])
        with _further(winner, hidden, prepared, engines, sharing, of_silence) as (more, further):
            every, fitted = [*benches, *more], [*winner.best_models, *further]
            spans: list[SpanBench] = []
            if not usual.by_tokens:
                spans = span_benches_of(every, fitted, usual.evidence, sharpness, engines, sharing)
                first, undialled = spans[: len(hidden)], replace(chosen, precision=None, recall=None)
                evidence: Evidence = usual.evidence
                if open_evidence:
                    speak = not mostly_silent(of_silence)
                    evidence = (
                        usual_evidence(first) if by_rules else better_evidence(first, undialled, most_speak=speak)
                    )
                chosen = replace(chosen, evidence=evidence)
                agreement = agreement_on(first, replace(undialled, evidence=evidence))
                of_spans = agreement_on(first, replace(undialled, evidence=Evidence.VOTES))
                vote = max(vote, of_spans, key=lambda one: one.f1)
            calibration = Calibration(sharpness)
            if chosen.by_spans:
                calibration = calibrated_spans(spans, chosen, sharpness)
            elif chosen.by_tokens:
                calibration = calibrated_tokens(every, fitted, sharpness)
    gain, error = agreement.gain_over(vote)
    among = {run.settings for run in runs}
    others = [run for run in tried if run.settings not in among]  # judged by fewer draws, so not side by side
    return Choice(
        replace(chosen, max_iter=winner.best_passes),
        calibration,
        names,
        sharing,
        votes,
        of_silence,
        silent,
        (*_best_first(runs), *_best_first(others)),
        vote.f1,
        gain,
        error,
        left_out,
    )


def _sharpness_in_words(exponent: float) -> str:
    """What was done to confidence.

    >>> _sharpness_in_words(0.57)
    'confidence was lowered, as hidden annotators show it too high (exponent 0.57)'
    """
    if f"{exponent:.2f}" == "1.00":
        return "confidence is as the model states it: hidden annotators confirm it"
    done, wrong = ("lowered", "high") if exponent < 1 else ("raised", "low")
    return f"confidence was {done}, as hidden annotators show it too {wrong} (exponent {exponent:.2f})"


@contextmanager
def _further(
    winner: Run,
    hidden: Sequence[HiddenLabels],
    prepared: Prepared,
    engines: Engines,
    sharing: Sharing,
    of_silence: NDArray[np.float64],
) -> Iterator[tuple[list[Bench], list[loop.Model]]]:
    """More draws than settings are chosen by, for what is chosen: benches, and its fit on each of them."""
    more = hidden_in(prepared, sharing, winner.settings, enough=TO_CALIBRATE, before=hidden)[len(hidden) :]
    if not more:
        yield [], []
        return
    with benches_over(more, prepared, winner.settings, engines, sharing, of_silence) as benches:
        run = Run(winner.settings, benches)
        run.go_on(winner.best_passes)
        yield benches, run.models


def _best_first(runs: Sequence[Run]) -> list[Trial]:
    return sorted((trial for run in runs for trial in run.trials), key=lambda trial: -trial.f1)


def _finalists(runs: Sequence[Run], usual: Settings, *, much_hidden: bool) -> list[Run]:
    """The run that would be chosen if it ended here, and the best one of another model, if that is within chance."""
    safest = _usual_within_chance(runs, usual, much_hidden=much_hidden)
    others = [run for run in runs if run.settings.annotator is not safest.settings.annotator]
    if others:
        other = max(others, key=lambda run: run.agreement.f1)
        gain, error = safest.agreement.gain_over(other.agreement)
        if gain <= error:
            return [safest, other]
    return [safest]


def _usual_within_chance(runs: Sequence[Run], usual_settings: Settings, *, much_hidden: bool) -> Run:
    """The best run, or among those of its model that are within a standard error of it, the most usual.

    Where much was hidden, a run of the usual model counts as the best unless others are clearly better.
    """
    best = max(runs, key=lambda run: run.agreement.f1)
    usual = [run for run in runs if run.settings.annotator is _USUAL["annotator"]]
    if much_hidden and usual and best not in usual:
        best_usual = max(usual, key=lambda run: run.agreement.f1)
        better = [run for run in runs if _is_clearly_better(run, best_usual)]  # of which one may be tied with the best
        best = max(better, key=lambda run: run.agreement.f1, default=best_usual)

    def strangeness(run: Run) -> tuple[int, float]:
        chosen = run.settings
        unusual = (chosen.epsilon0 != _USUAL["epsilon0"]) + (chosen.temper != usual_settings.temper)
        return unusual, -run.agreement.f1

    def within_chance(run: Run) -> bool:
        gain, error = best.agreement.gain_over(run.agreement)
        return run.settings.annotator is best.settings.annotator and gain <= error

    return min((run for run in runs if run is best or within_chance(run)), key=strangeness)


def _is_clearly_better(run: Run, other: Run) -> bool:
    gain, error = run.agreement.gain_over(other.agreement)
    return gain > _CLEARLY * error


def _other_strengths(tried: Sequence[Run], usual: Settings) -> Iterator[Settings]:
    """The models that are within chance of the best one, at strengths of the prior other than the usual."""
    best = max(tried, key=lambda run: run.agreement.f1)
    for run in tried:
        gain, error = best.agreement.gain_over(run.agreement)
        model = run.settings.annotator
        if gain > error or (model is AnnotatorModel.SPAM and len(tried) > 1):
            continue
        yield from (replace(run.settings, epsilon0=strength) for strength in _STRENGTHS if strength != usual.epsilon0)


def _among_rules(of_silence: NDArray[np.float64]) -> dict[str, Any]:
    """The settings for rules, of whom those who are hidden cannot tell settings apart.

    All are trusted less, as they make the same mistakes, unless hardly anything is marked twice: then nothing is
    counted twice. On the dev splits of three sets of rules of the first kind less trust gains up to 2 points, on two of
    the second kind it costs half a point.
    """
    return {**_USUAL, "temper": _USUAL["temper"] if hardly_meet(of_silence) else _LESS_TRUST, "max_iter": 8}


def _votes(encoded: Encoded, heard: Encoded, sharing: Sharing) -> tuple[float, float]:
    """How many annotators a document has, on average, and how many independent ones they are worth."""
    document, who = seen_pairs(encoded)
    documents = max(len(np.unique(document)), 1)
    return len(who) / documents, float(sharing.weights(*seen_pairs(heard)).sum()) / documents


def settings_left_open(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the settings whose value is ``"auto"``.

    >>> settings_left_open({"annotator": "auto", "epsilon0": 1.0})
    ('annotator',)
    """
    return tuple(name for name in CHOSEN if values.get(name) == AUTO)
