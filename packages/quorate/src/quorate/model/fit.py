"""One fit: ``fit(crowd, settings) -> Fitted``, a pure function.

The token model comes first, then spans on top of it, then calibration on held-out annotators, by the same fit without
their labels. Everything that combines labels calls this: estimators, updates, layers, simulations, the live consensus.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.profiles import Profile
from quorate.corpus.records import Corpus
from quorate.corpus.tags import TagSet
from quorate.crowd.algebra import only_documents, sums_between
from quorate.crowd.changes import changed, with_notes
from quorate.crowd.crowd import AnnotatorPriors, Crowd, Note
from quorate.crowd.hold_out import MOST_FOLDS, HeldOut, folds
from quorate.model import loop
from quorate.model.build import check_fits, condensed_engine, model_of, room_for_spans, with_more_words
from quorate.model.calibrate import Confirmations, Said, fit_exponent, fit_span_exponent
from quorate.model.calibration import AS_STATED, Calibration
from quorate.model.checked import LEAST_DOCUMENTS, checked_documents, learned_correction
from quorate.model.correction import Correction
from quorate.model.engines.factory import Engines
from quorate.model.engines.protocol import Decoded, Engine, Tables
from quorate.model.engines.threads import cell_counts_of
from quorate.model.history import Past, WithHistory, past_cells
from quorate.model.parts.annotators import Annotators
from quorate.model.parts.truth import Chain
from quorate.model.prepared import Known, encoded_with, known_tags
from quorate.model.settings import Decode, Settings
from quorate.model.span_model import SpanModel
from quorate.model.spans import (
    NOTED,
    SpanEvidence,
    decode_spans,
    fit_spans,
    given_spans,
    needs_spans,
    span_evidence,
    stated_spans,
)

Progress = Callable[[loop.Progress], None]
DEFAULTS, HERE = Settings(), Engines()


@dataclass(frozen=True)
class Fitted:
    """What was learned: the token ``model``, what annotators do with ``spans``, and how confidence is calibrated.

    ``names`` and ``words`` have the numbers that they had in the fit; ``notes`` are the changes that its crowd called
    for, which other documents go through as well, and ``labels [K]`` is how many each annotator gave in the fit.
    """

    model: loop.Model
    spans: SpanModel | None
    calibration: Calibration
    settings: Settings
    tagset: TagSet
    names: tuple[str, ...]
    words: tuple[str, ...]
    profiles: Mapping[str, Profile]
    notes: tuple[Note, ...]
    labels: NDArray[np.float64]
    trace: loop.Trace

    def crowd(self, corpus: Corpus, known: Known = None) -> Crowd:
        """Documents as this fit sees them; new annotators get the numbers after those of the fit."""
        given = known_tags(corpus, known)
        crowd = encoded_with(corpus, self.tagset, self.settings.invalid, given, self.names, self.words)
        return with_notes(replace(crowd, profiles={**self.profiles, **crowd.profiles}), self.notes)

    def decode(
        self,
        crowd: Crowd,
        settings: Settings | None = None,
        engines: Engines = HERE,
        *,
        corpus: Corpus | None = None,
        posteriors: bool = True,
    ) -> Decoded:
        """The consensus on a crowd that :meth:`crowd` gave; ``settings`` may ask for another output than the fit's."""
        with closing(engines.over(crowd, text=self.settings.text, corpus=corpus)) as engine:
            return self.consensus(engine, crowd, settings, engines, posteriors=posteriors).decoded

    def consensus(
        self,
        engine: Engine,
        crowd: Crowd,
        settings: Settings | None = None,
        engines: Engines = HERE,
        *,
        evidence: SpanEvidence | None = None,
        posteriors: bool = True,
    ) -> Consensus:
        """The same by an ``engine`` over the crowd, with the ``evidence`` on spans if that is there already."""
        asked = self.settings if settings is None else settings
        on_spans = needs_spans(asked, crowd.tagset)
        by_token = asked.decode is Decode.TOKEN
        exponent = self.calibration.tokens
        tokens = loop.decode(
            engine, self.model, crowd.cells, by_token=by_token, exponent=exponent, posteriors=posteriors or on_spans
        )
        if not on_spans:
            return Consensus(tokens, None)
        evidence = evidence or self.evidence(engine, crowd, engines)
        spans = None if self.spans is None else self.spans.grown(len(crowd.annotators))
        decoded = decode_spans(evidence, spans, tokens, asked, self.calibration)
        if spans is not None:
            decoded = decoded._replace(cells=cell_counts_of(crowd, decoded.posterior))
        return Consensus(decoded if posteriors else decoded.of_path_alone(), evidence)

    def evidence(self, engine: Engine, crowd: Crowd, engines: Engines = HERE) -> SpanEvidence:
        """What there is to say about spans of a crowd, of which ``engine`` is."""
        return _evidence(engine, self.model, crowd, self.labels, engines)

    def output_tables(self, crowd: Crowd) -> tuple[Tables, Chain]:
        """What the output pass reads."""
        return loop.output_tables(self.model, crowd.cells, self.calibration.tokens)

    def annotators_of(self, crowd: Crowd, counts: NDArray[np.float64]) -> Annotators:
        """The annotators of a crowd as given, from counts under the consensus: merged ones have rows of their own."""
        if crowd.original is None:
            return self.model.annotators
        cells = crowd.as_given.cells._replace(n_annotators=len(self.names))
        return self.model.annotators.updated(cells, self.model.temper * counts)

    def with_names_of(self, documents: Corpus) -> Self:
        """With room for the annotators and words of these documents too."""
        new_names = sorted(set(documents.annotators).difference(self.names))
        new_words = sorted({token for one in documents for token in one.tokens}.difference(self.words))
        if not new_names and not new_words:
            return self
        names, words = (*self.names, *new_names), (*self.words, *new_words)
        labels = np.concatenate([self.labels, np.zeros(len(new_names))])
        return replace(self, names=names, words=words, labels=labels).with_model(self.model)

    def with_model(self, model: loop.Model) -> Self:
        """With another model, in which there is room for everybody."""
        annotators = model.annotators.grown(len(self.names), self.priors)
        return replace(self, model=replace(with_more_words(model, self.words, self.settings), annotators=annotators))

    @property
    def helpers(self) -> frozenset[str]:
        """Names of annotators that changes of the crowd have added."""
        return frozenset(name for note in self.notes for name in note.adds)

    @property
    def priors(self) -> AnnotatorPriors:
        """What is assumed of its annotators before any label."""
        return replace(self, words=()).crowd(Corpus([])).priors

    @cached_property
    def past(self) -> Past:
        """What was learned of the annotators, as prior of another fit."""
        return Past(self.settings.annotator, self.tagset, self.names, self.model.annotators)


class Consensus(NamedTuple):
    """What is given out, and the evidence on spans that it was read off, if there was any."""

    decoded: Decoded
    evidence: SpanEvidence | None


def fit(
    crowd: Crowd,
    settings: Settings = DEFAULTS,
    engines: Engines = HERE,
    *,
    history: Past | None = None,
    corpus: Corpus | None = None,
    progress: Progress | None = None,
) -> Fitted:
    """Learn annotators, truth, text and spans from a crowd; ``corpus`` is where documents have names for messages.

    Documents that nobody labelled teach nothing. ``history`` is what another fit learned of the annotators.

    >>> import quorate
    >>> from quorate.corpus.tags import Invalid
    >>> from quorate.model.prepared import crowd_of
    >>> fitted = fit(crowd_of(quorate.sample(), None, Invalid.REPAIR))
    >>> fitted.trace.passes
    5
    """
    return _fit(crowd, settings, engines, history, corpus, progress)[0]


def fit_and_decode(
    crowd: Crowd,
    settings: Settings,
    engines: Engines,
    *,
    history: Past | None = None,
    corpus: Corpus | None = None,
    posteriors: bool = True,
    progress: Progress | None = None,
    teaches: NDArray[np.bool_] | None = None,
) -> tuple[Fitted, Crowd, Consensus]:
    """A fit, its crowd with all changes, and the consensus on it, from one look at the evidence.

    ``teaches [D]`` are the documents to learn from; those that somebody labelled, unless given.
    """
    fitted, seen, consensus = _fit(crowd, settings, engines, history, corpus, progress, posteriors, teaches)
    if consensus is None:  # some documents were left out of the fit
        seen = with_notes(_with_words(crowd, fitted.words), fitted.notes)
        posteriors = posteriors or seen.original is not None
        with closing(engines.over(seen, text=settings.text, corpus=corpus)) as engine:
            consensus = fitted.consensus(engine, seen, None, engines, posteriors=posteriors)
    return fitted, seen, consensus


def _fit(
    crowd: Crowd,
    settings: Settings,
    engines: Engines,
    history: Past | None,
    corpus: Corpus | None,
    progress: Progress | None,
    posteriors: bool | None = None,
    teaches: NDArray[np.bool_] | None = None,
) -> tuple[Fitted, Crowd, Consensus | None]:
    needs_spans(settings, crowd.tagset)  # says so now if there can be none
    taught = _labelled(crowd, teaches)
    seen = changed(taught) if settings.adapt and not taught.notes else taught
    if settings.spans and (crowd.tagset.outside is None or not room_for_spans(seen)):
        settings = replace(settings, spans=False)
    check_fits(settings, seen, posteriors=bool(posteriors) or needs_spans(settings, seen.tagset))
    named = corpus if taught is crowd else None
    with closing(engines.over(seen, text=settings.text, corpus=named)) as engine:
        learned = _learn(engine, seen, settings, engines, history, progress)
        calibration = AS_STATED
        if settings.calibrate:
            calibration = _calibrated(seen, settings, engines, history, progress)
        if settings.calibrate and settings.spans:
            correction = _correction(seen, settings, engines, history, progress)
            calibration = calibration._replace(correction=correction)
        fitted = Fitted(
            learned.model,
            learned.spans,
            calibration,
            settings,
            seen.tagset,
            seen.annotators,
            seen.words,
            seen.profiles,
            seen.notes,
            seen.annotator_weights() if settings.spans else np.zeros(len(seen.annotators)),
            learned.trace,
        )
        if posteriors is None or taught is not crowd:
            return fitted, seen, None
        posteriors = posteriors or seen.original is not None  # its labels as given are counted under them
        found = fitted.consensus(engine, seen, None, engines, evidence=learned.evidence, posteriors=posteriors)
        return fitted, seen, found


def _labelled(crowd: Crowd, teaches: NDArray[np.bool_] | None) -> Crowd:
    """The documents that somebody labelled, or of which some labels are known, and the words in these."""
    if teaches is None:
        teaches = _given_labels(crowd)
    if crowd.known is not None:
        teaches = teaches | (sums_between(crowd.known >= 0, crowd.doc_start) > 0)
    return _with_documents(crowd, teaches)


def _given_labels(crowd: Crowd) -> NDArray[np.bool_]:
    """``[D]`` Whether somebody labelled each document."""
    return np.asarray(np.diff(crowd.event_start[crowd.doc_start]) > 0)


def _with_documents(crowd: Crowd, teaches: NDArray[np.bool_]) -> Crowd:
    """These documents, empty ones, and the words in them."""
    teaches = teaches | (np.diff(crowd.doc_start) == 0)
    if teaches.all():
        return crowd
    some = only_documents(crowd, np.flatnonzero(teaches))
    met = np.unique(some.word)
    return _with_words(some, [crowd.words[w] for w in met[met < len(crowd.words)].tolist()])


def _with_words(crowd: Crowd, words: Sequence[str]) -> Crowd:
    """The crowd with these words alone, in their order; any other is one that the fit has not met."""
    number = {word: n for n, word in enumerate(words)}
    renumbered = np.array([*(number.get(word, len(words)) for word in crowd.words), len(words)], np.int32)
    return replace(crowd, words=tuple(words), word=renumbered[crowd.word], slices=None)


class _Learned(NamedTuple):
    model: loop.Model
    trace: loop.Trace
    evidence: SpanEvidence | None
    spans: SpanModel | None


def _learn(
    engine: Engine, crowd: Crowd, settings: Settings, engines: Engines, history: Past | None, progress: Progress | None
) -> _Learned:
    """The token model, and spans on top of it."""
    blank = model_of(settings, crowd)
    if history is not None:
        cells = past_cells(history, settings.annotator, crowd.tagset, crowd.annotators, crowd.cells.n_previous)
        blank = replace(blank, annotators=WithHistory.around(blank.annotators, *cells))
    fit_engine, fit_crowd = condensed_engine(engines, settings, blank.annotators, crowd) or (engine, crowd)
    model, trace = loop.fit(
        fit_engine,
        blank,
        fit_crowd,
        start=settings.start,
        max_passes=settings.max_iter,
        tolerance=settings.tol,
        seed=settings.random_state,
        restarts=settings.n_init,
        progress=progress,
    )
    if not settings.spans:
        return _Learned(model, trace, None, None)
    evidence = _evidence(engine, model, crowd, crowd.annotator_weights(), engines)
    return _Learned(model, trace, evidence, fit_spans(evidence))


def _evidence(
    engine: Engine, model: loop.Model, crowd: Crowd, labels: NDArray[np.float64], engines: Engines
) -> SpanEvidence:
    likely = engine.likely_spans(*loop.output_tables(model, crowd.cells, 1.0), NOTED)
    posterior = loop.posteriors(engine, model, crowd.cells, 1.0)
    return span_evidence(model, crowd, likely, posterior, labels, engines.threads)


class _Fold(NamedTuple):
    """A fit without some labels: its consensus on the documents that these are of, token by token and in spans."""

    held_out: HeldOut
    engine: Engine
    model: loop.Model
    sample: Crowd
    evidence: SpanEvidence | None
    spans: SpanModel | None

    @classmethod
    def of(cls, rest: Crowd, held_out: HeldOut, settings: Settings, engines: Engines, history: Past | None) -> Self:
        """The fit to ``rest``."""
        with closing(engines.over(rest, text=settings.text)) as engine:
            learned = _learn(engine, rest, settings, engines, history, None)
        sample = only_documents(rest, held_out.documents)
        evidence = learned.evidence and learned.evidence.only(held_out.documents, sample, engines.threads)
        own = engines.over(sample, text=settings.text)
        return cls(held_out, own, learned.model, sample, evidence, learned.spans)

    def said(self, exponent: float) -> Said:
        """The held-out labels beside the token model's posterior."""
        posterior = loop.posteriors(self.engine, self.model, self.sample.cells, exponent)
        return Said(posterior, self.held_out.token, self.held_out.label)


def _calibrated(
    crowd: Crowd, settings: Settings, engines: Engines, history: Past | None, progress: Progress | None
) -> Calibration:
    """The exponents at which held-out annotators are predicted best; 1 where nobody can be held out."""
    merged = with_notes(crowd.as_given, [note for note in crowd.notes if note.merges])
    notes = [note for note in crowd.notes if not note.merges]
    found: list[_Fold] = []
    try:
        for rest, held in folds(merged, seed=settings.random_state or 0, notes=notes):
            if progress is not None:
                done = len(found) + 1
                progress(loop.Progress(0, 1, done, MOST_FOLDS, note="calibrating on held-out annotators"))
            found.append(_Fold.of(with_notes(rest, notes), held, settings, engines, history))
        if not found:
            return AS_STATED
        tokens = fit_exponent(lambda power: [one.said(power) for one in found], threads=engines.threads)
    finally:
        for one in found:
            one.engine.close()
    if not settings.spans:
        return Calibration(tokens)
    confirmed = _confirmed(found, settings)
    spans = fit_span_exponent([one.held_out for one in found], confirmed)
    return Calibration(tokens, spans, matched=confirmed(1.0).share)


def _correction(
    crowd: Crowd, settings: Settings, engines: Engines, history: Past | None, progress: Progress | None
) -> Correction | None:
    """What documents whose truth is known say of the confidence of spans, by a fit that does not know it."""
    if len(checked_documents(crowd)) < LEAST_DOCUMENTS:
        return None
    if progress is not None:
        progress(loop.Progress(0, 1, 1, 1, note="predicting the checked documents"))
    labelled = _with_documents(crowd, _given_labels(crowd))
    unknowing = replace(labelled, known=None)
    with closing(engines.over(unknowing, text=settings.text)) as engine:
        learned = _learn(engine, unknowing, settings, engines, history, None)
    assert learned.evidence is not None
    undialled = replace(settings, precision=None, recall=None)
    given = given_spans(learned.evidence, learned.spans, undialled, beginning=learned.evidence.beginning)
    return learned_correction(labelled, learned.evidence, given)


def _confirmed(found: list[_Fold], settings: Settings) -> Callable[[float], Confirmations]:
    """What held-out annotators confirm of the spans that are given out, as these are stated at a power."""
    undialled = replace(settings, precision=None, recall=None)
    chosen = []
    for one in found:
        assert one.evidence is not None
        chosen.append(given_spans(one.evidence, one.spans, undialled).chosen)

    def at_power(power: float) -> Confirmations:
        stated = []
        for one, given in zip(found, chosen, strict=True):
            assert one.evidence is not None
            assert one.spans is not None
            stated.append(one.evidence.spans_of(given, stated_spans(one.evidence, one.spans, power)))
        return Confirmations.of([one.held_out for one in found], stated)

    return at_power
