"""Bayesian sequence combination as an estimator. The maths is in :mod:`quorate.model`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from quorate.choose.choice import Choice, choose, settings_left_open
from quorate.choose.kept import taken_over
from quorate.choose.silence import Silence, first_votes
from quorate.corpus.profiles import Profile
from quorate.corpus.records import Corpus
from quorate.crowd.algebra import without_annotator
from quorate.crowd.crowd import Crowd
from quorate.crowd.sharing import Sharing
from quorate.estimators import bsc_files, bsc_places, bsc_tagger, options
from quorate.estimators.base import Estimator, ProgressCallback, checked_threads, choice_progress, meta_of
from quorate.estimators.checkpoints import Checkpoints
from quorate.estimators.updating import FitState, ModelState, Updated, check_update, update, updated_meta
from quorate.model import loop
from quorate.model.build import check_fits, condensed_engine, model_of
from quorate.model.consensus import Concluded, SpanProbabilities, candidate_probabilities, conclude, with_copies
from quorate.model.engines.factory import EngineName, Engines
from quorate.model.engines.protocol import Decoded, Engine, Tables
from quorate.model.engines.threads import cell_counts_of
from quorate.model.history import Past, WithHistory, past_cells
from quorate.model.parts.truth import Chain
from quorate.model.prepared import Known, Prepared, known_tags, prepare
from quorate.model.settings import AnnotatorModel, Decode, Settings, choice
from quorate.model.span_model import SpanModel
from quorate.model.spans import Heard, needs_spans
from quorate.result.annotators import AnnotatorSummaries, summarise
from quorate.result.calibration import AS_STATED, Calibration
from quorate.result.result import Result
from quorate.result.sources import Sources
from quorate.storage import model_files
from quorate.taggers import TaggerChoice
from quorate.taggers.loop import TAGGER, TaggerRound

__all__ = ["BSC"]


# What decides nothing of the outcome.
_NOT_THE_MODELS = ("method", "tagger", "n_jobs", "engine", "cluster", "checkpoint", "probabilities")


class BSC(Estimator):
    """Bayesian sequence combination: a hidden Markov model of the truth and a model of each annotator, in one fit.

    p(t, c, w) = Π_n p(t_n | t_n−1) · p(w_n | t_n) · Π_k p(c_nk | t_n, c_n−1,k), with truths t, labels c and words w.
    Simpson and Gurevych, *A Bayesian Approach for Sequence Tagging with Crowds*, EMNLP-IJCNLP 2019.

    ``annotator`` is ``acc``, ``spam``, ``cv``, ``cm`` or ``seq``; ``truth`` is ``markov``, ``independent`` or
    ``uniform``; ``text`` says whether words count, and ``shapes`` whether it counts how they are written. ``alpha0``,
    ``epsilon0``, ``gamma0`` and ``kappa0`` are the priors, ``temper`` how far annotators' evidence is trusted. The
    others are explained in ``docs/settings.md``. ``tagger`` is ``"crf"``, ``"context"`` or one of your own: it learns
    from the consensus, and joins it (``docs/tagger.md``); with ``"auto"``, beside settings that are chosen, where that
    is found to help and does not take long.
    ``evidence`` is ``tokens``, ``spans`` (and tokens beside them), ``passages`` (the same, where bounds are anywhere),
    ``votes`` for spans (``docs/spans.md``), or ``places``: where spans are, then their types (``docs/sources.md``);
    ``precision`` or ``recall`` ask for as many, or as few, spans as keep to it. Those of ``annotator``, ``epsilon0``,
    ``temper``, ``max_iter`` and ``evidence`` that are ``"auto"``, as all are unless given, are chosen by what they
    predict of annotators who were hidden, and confidence is calibrated in the same way.
    ``method`` is the name that the results go by; ``bsc-`` and the annotator model if not given.

    After ``fit``: ``result_`` (the consensus), ``trace_`` (bound per pass, reason for stopping), ``annotators_``,
    ``tagset_``, ``settings_``, ``calibration_``, ``choice_`` (what was chosen and why, or ``None``), ``places_`` (the
    model of where spans are, if that comes first),
    ``tagger_rounds_`` (what each round of the tagger did), ``tagger_note_`` (why there is one, or none) and ``meta_``
    (version, settings, hash of the input).

    >>> import quorate
    >>> model = BSC(annotator="cm", max_iter=5).fit(quorate.sample())
    >>> model.trace_.passes
    5
    """

    choice_: Choice | None
    places_: BSC | None = None
    _silence = Silence()  # until something was found of it

    def __init__(
        self,
        annotator: options.AnnotatorName = "auto",
        *,
        truth: options.TruthName = "markov",
        text: bool = True,
        shapes: bool = True,
        alpha0: float = Settings.alpha0,
        epsilon0: float | Literal["auto"] = "auto",
        gamma0: float = Settings.gamma0,
        kappa0: float = Settings.kappa0,
        guess_prior: float | None = None,
        zeros: options.ZerosName = "moved",
        inference: options.InferenceName = "vb",
        temper: float | Literal["auto"] = "auto",
        evidence: options.EvidenceName = "auto",
        start: options.StartName = "coverage",
        max_iter: int | Literal["auto"] = "auto",
        tol: float = Settings.tol,
        random_state: int | None = None,
        n_init: int = 1,
        decode: options.DecodeName = "best",
        precision: float | None = None,
        recall: float | None = None,
        invalid: options.InvalidName = "repair",
        scheme: options.SchemeName | None = None,
        tagger: TaggerChoice = "auto",
        n_jobs: int | None = None,
        engine: options.EngineChoice = "threads",
        cluster: Any = None,
        checkpoint: str | Path | None = None,
        probabilities: bool = True,
        method: str | None = None,
    ) -> None:
        self.annotator, self.truth, self.text, self.shapes, self.tagger = annotator, truth, text, shapes, tagger
        self.alpha0, self.epsilon0, self.gamma0, self.kappa0 = alpha0, epsilon0, gamma0, kappa0
        self.guess_prior, self.zeros, self.inference = guess_prior, zeros, inference
        self.temper, self.start, self.max_iter, self.tol = temper, start, max_iter, tol
        self.random_state, self.n_init = random_state, n_init
        self.evidence, self.decode, self.precision, self.recall = evidence, decode, precision, recall
        self.invalid, self.scheme, self.checkpoint = invalid, scheme, checkpoint
        self.n_jobs, self.engine, self.cluster = n_jobs, engine, cluster
        self.probabilities, self.method = probabilities, method

    def fit(
        self,
        corpus: Corpus,
        *,
        known: Known = None,
        progress: ProgressCallback | None = None,
        history: BSC | None = None,
        choice: Choice | None = None,
    ) -> Self:
        """Learn annotators, truth and text from a corpus, with ``known`` labels clamped; returns self.

        ``progress`` is called after every pass with a :class:`quorate.model.loop.Progress`. What another model,
        ``history``, learned of the annotators is their prior here; they are matched by name. With the ``choice_`` of an
        earlier fit to almost the same labels, settings are not chosen again, which takes most of the time.
        """
        settings = self.checked_settings()
        prepared = prepare(corpus, settings.scheme, settings.invalid, known)
        return self.fit_prepared(prepared, progress, history, choice)

    def fit_prepared(
        self,
        prepared: Prepared,
        progress: ProgressCallback | None = None,
        history: BSC | None = None,
        choice: Choice | None = None,
    ) -> Self:
        """Like ``fit``, on a corpus that was prepared once for several fits."""
        past = None if history is None else history.past
        self.tagger_rounds_: tuple[TaggerRound, ...] = ()
        self.tagger_note_, self._without_tagger, self._heard_tagger = "", dict[str, Any](), False
        self._spans: SpanModel | None = None
        self._chose_before = choice is not None
        self._kept = Checkpoints(self.checkpoint, str(self.engine))
        settings = self._choose(prepared, past, progress, choice)
        self.places_ = bsc_places.fitted(self, prepared, settings, progress, history)
        if self.places_ is not None:
            self.tagger_note_ = self.places_.tagger_note_
        if self.choice_ is not None:
            self.choice_ = self.choice_._replace(places=None if self.places_ is None else self.places_.choice_)
        weighed = self._weigh(prepared.encoded)
        self._keeps_posteriors = self.probabilities
        if bsc_tagger.is_wanted(self, prepared, settings, past):
            self._keeps_posteriors = True  # a tagger learns from them
            bsc_tagger.fit_with_tagger(self, prepared, weighed, settings, progress, past)
            return self
        return self._fit_once(prepared, weighed, settings, progress, past)

    def _choose(
        self, prepared: Prepared, past: Past | None, progress: ProgressCallback | None, before: Choice | None
    ) -> Settings:
        """The settings of the fit; those that are left open are chosen, and confidence is calibrated."""
        settings, self.calibration_, self.choice_ = self.checked_settings(), AS_STATED, None
        needs_spans(settings, prepared.tagset)  # says so now if there can be none
        free = settings_left_open(self.get_params())
        if past is not None and "annotator" in free:
            free = tuple(name for name in free if name != "annotator")
            settings = replace(settings, annotator=past.model)
        self._chosen = list(free)
        if not free:
            return settings
        if before is None:
            told = None if progress is None else choice_progress(progress)
            chosen = partial(choose, prepared, settings, free, engines=self.engines(), progress=told)
            self.choice_ = self._kept.choice(prepared, settings, free, chosen)
        else:
            self.choice_ = taken_over(before, settings, free, prepared.encoded.annotators)
        self.calibration_ = self.choice_.calibration
        return self.choice_.settings

    def _weigh(self, encoded: Crowd) -> Crowd:
        """What was said, in which what annotators were found to have in common counts once."""
        found = self.choice_
        self._sharing = Sharing.of() if found is None else found.sharing
        self._votes: tuple[float, float] | None = None if found is None else found.votes
        self._silent: tuple[str, ...] = () if found is None else found.silent
        weighed = self._sharing.weighed(encoded)
        self._silence = Silence() if found is None else Silence.of(weighed, found.of_silence)
        return weighed

    def _fit_once(
        self,
        prepared: Prepared,
        encoded: Crowd,
        settings: Settings,
        progress: ProgressCallback | None,
        past: Past | None,
    ) -> Self:
        """One fit to what was said, as weighed in ``encoded``."""
        corpus, tagset, _, clamped = prepared
        check_fits(settings, encoded, posteriors=self._keeps_posteriors or needs_spans(settings, tagset))
        blank = model_of(settings, tagset, encoded, self._silence.believed(encoded.annotators, corpus.profiles))
        if past is not None:
            seen = past_cells(past, settings.annotator, tagset, encoded.annotators, encoded.cells.n_previous)
            blank = replace(blank, annotators=WithHistory.around(blank.annotators, *seen))
        known = self._silence.closed(encoded, clamped)
        with closing(self.engines().over(encoded, known=known, text=self.text, corpus=corpus)) as engine:
            fit_engine, cells = condensed_engine(self.engines(), settings, blank.annotators, encoded, known) or (
                engine,
                encoded.cells,
            )
            of_silence = None if self.choice_ is None else self.choice_.of_silence
            votes = first_votes(encoded, corpus.profiles, settings.start, cells=cells, of_silence=of_silence)
            fitted = loop.fit(
                fit_engine,
                blank,
                cells,
                start=settings.start,
                max_passes=settings.max_iter,
                tolerance=settings.tol,
                seed=settings.random_state,
                restarts=settings.n_init,
                progress=progress,
                first_votes=votes,
                checkpoint=self._kept.of_fit(prepared._replace(encoded=encoded, known=known), settings, blank),
            )
            self._settings, self.tagset_, self.trace_, self.profiles_ = settings, tagset, fitted.trace, corpus.profiles
            self.settings_ = self._told([] if self.choice_ is None else self.choice_.reasons)
            self._model, self._names, self._words = fitted.model, encoded.annotators, encoded.words
            self._fit_state = FitState(fitted_to=(corpus, encoded.doc_start, clamped))
            self._conclude(corpus, prepared.encoded, encoded, engine, clamped, fresh=True)
        self.meta_ = {"method": self.settings_["method"]} | {
            **meta_of(corpus, encoded, clamped, settings.plain()),
            "calibration": self.calibration_._asdict(),
            "why": [] if self.choice_ is None else self.choice_.reasons,
            "chosen": self._chosen,
            "passes": fitted.trace.passes,
            "bound": fitted.trace.bound,
            "stopped": fitted.trace.reason.value,
        }
        return self

    def combine(self, corpus: Corpus, *, known: Known = None) -> Result:
        """The consensus on other documents, with the annotators, words and transitions that were learned.

        An annotator who was not there in fitting is taken to behave as the crowd did on average. ``known`` labels of
        these documents are clamped. ``decode``, ``precision`` and ``recall`` may have been set anew since.

        >>> import quorate
        >>> model = quorate.BSC(annotator="cm", max_iter=5).fit(quorate.sample())
        >>> sure = model.set_params(precision=0.99).combine(quorate.sample())
        >>> sum(map(len, sure.spans)) < sum(map(len, model.result_.spans))
        True
        """
        state = self.model_state()
        said = state.encoded(corpus)
        weighed = state.weighed(said)
        given = known_tags(corpus, known)
        certain = state.known_codes(corpus, given)
        with closing(self._engine(corpus, weighed, certain)) as engine:
            where = None if (first := self._first()) is None else bsc_places.combined(first, corpus, given)
            found = self._consensus(engine, said, weighed, certain, where=where)
            return self._result(corpus, weighed, found.decoded, trace=None, known=certain)

    def update(self, corpus: Corpus, *, known: Known = None, passes: int = 0) -> Self:
        """Go on from the fit with new labels of old documents, new documents, annotators and words; returns self.

        Documents are matched by id, and new labels are added to old ones; an annotator's labels of a document replace
        their earlier ones. Only documents in which something is new are gone through, so that a whole export can be
        given again and again; then everything for ``passes`` more passes. ``updated_`` says how many documents were
        new, changed and unchanged. Settings stay as they are. A model from a file goes on in the same way, unless it
        was saved without its documents: then everything is new to it, so give it each label once. ``known="inline"``
        takes the gold that is there, if any.

        >>> import quorate
        >>> documents = quorate.sample().documents
        >>> model = quorate.BSC(max_iter=5).fit(Corpus(documents[:300])).update(Corpus(documents))
        >>> len(model.result_), model.updated_.sentence()
        (320, '20 new documents, 0 changed, 300 unchanged')
        """
        self._check_fitted()
        check_update(self._fit_state, self.meta_, corpus, passes)
        if not len(corpus):
            self.updated_ = Updated(0, 0, 0)
            return self
        if self._without_tagger:  # nobody asked for one: it is left behind
            vars(self).update(self._without_tagger)
            self.tagger_rounds_, self._without_tagger = (), {}
            self.tagger_note_ = "a tagger had joined, and an update goes on without it"
        state, before = self.model_state(), self._fit_state.opened()
        certain = known_tags(corpus, known, none_yet=True)  # a day's documents may be without gold
        state = state._replace(profiles={**state.profiles, **corpus.profiles})
        state, fit_state, updated = update(state, before, corpus, certain, passes)
        if self.places_ is not None:
            self.places_ = bsc_places.updated(bsc_places.as_set(self.places_, self), corpus, certain, passes)
        self.updated_ = updated
        self.go_on_from(state, fit_state, updated_meta(self.meta_, before, corpus, len(state.names)))
        return self

    def model_state(self) -> ModelState:
        """What was learned, from which a fit goes on."""
        self._check_fitted()
        return ModelState(
            self._model,
            self._names,
            self._words,
            self._settings,
            self.tagset_,
            self.profiles_,
            self.engines(),
            self._sharing,
            self._spans,
            self._silence,
        )

    def decided_documents(self) -> set[str]:
        """The ids of documents whose every label was known in the fit."""
        self._check_fitted()
        return self._fit_state.decided_documents()

    @property
    def has_documents(self) -> bool:
        """Whether the documents of the fit are there: all are, unless it is from a file without them, or a stream."""
        self._check_fitted()
        return self._fit_state.whole

    def kept_documents(self) -> Corpus:
        """The documents that are there, with all that was said of them.

        >>> import quorate
        >>> len(quorate.BSC("cm", max_iter=2).fit(quorate.sample()).kept_documents())
        320
        """
        self._check_fitted()
        self._fit_state = self._fit_state.opened()
        return Corpus(self._fit_state.documents.values(), profiles=self.profiles_)

    def go_on_from(self, state: ModelState, fit_state: FitState, meta: dict[str, Any]) -> None:
        """Take over what an update learned; the consensus is worked out again when it is asked for."""
        self._model, self._names, self._words, self.profiles_ = state.model, state.names, state.words, state.profiles
        self._fit_state, self._spans, self.meta_, self._without_tagger = fit_state, state.spans, meta, {}
        for name in ("result_", "annotators_"):
            self.__dict__.pop(name, None)

    @cached_property
    def result_(self) -> Result:  # type: ignore[override]
        """The consensus."""
        self._conclude_again()
        return self.result_

    @cached_property
    def annotators_(self) -> AnnotatorSummaries:
        """What is known about each annotator."""
        state, earlier = self.model_state(), self._fit_state.earlier
        if earlier is not None and not self._fit_state.documents:  # none was kept of a stream
            return AnnotatorSummaries(state.names, earlier, state.model.annotators, self.tagset_.span_types)
        self._conclude_again()
        return self.annotators_

    @property
    def sources_(self) -> Sources:
        """The annotators as people, models and rules, who of them errs together, and what that is worth."""
        self._check_fitted()
        return self._sources({})

    def _sources(self, profiles: Mapping[str, Profile]) -> Sources:
        known = {TAGGER: Profile.of(kind="model"), **self.profiles_, **profiles}
        return Sources(self._names, known, self._sharing, self._votes, self._silent)

    @property
    def past(self) -> Past:
        """What was learned of the annotators, as prior for another fit."""
        self._check_fitted()
        return Past(self._settings.annotator, self.tagset_, self._names, self._model.annotators)

    def _conclude_again(self) -> None:
        """The consensus and the annotators after an update."""
        state, corpus = self.model_state(), self.kept_documents()
        if not len(corpus):
            raise AttributeError("this model has kept no documents, and so no consensus (use combine)")
        encoded = state.encoded(corpus)
        weighed = state.weighed(encoded)
        known = self._fit_state.known_codes(corpus)
        with closing(self._engine(corpus, weighed, known)) as engine:
            self._conclude(corpus, encoded, weighed, engine, known)

    def _conclude(
        self,
        corpus: Corpus,
        encoded: Crowd,
        weighed: Crowd,
        engine: Engine,
        known: NDArray[np.int32] | None,
        *,
        fresh: bool = False,
    ) -> None:
        """The consensus and the annotators; in ``weighed`` copies are one. A ``fresh`` model has no rows of theirs."""
        where = None if (first := self._first()) is None else first.result_
        found = self._consensus(engine, encoded, weighed, known, learn=self._fit_state.whole, where=where)
        decoded, self._spans = found.decoded, found.spans
        said, annotators = decoded.cells, found.model.annotators
        if weighed is not encoded:  # whoever has something in common with others is still judged by all they said
            said = cell_counts_of(encoded, decoded.posterior)
            own = partial(with_copies, self._sharing, encoded.cells, self._settings.temper * said)
            if fresh:
                self._model = replace(self._model, annotators=own(self._model.annotators))
            if fresh or (self._spans is not None and self._fit_state.whole):  # then they were counted again
                annotators = own(annotators)
                self._spans = self._spans and replace(self._spans, annotators=annotators)
        self.annotators_ = summarise(encoded, said, annotators, decoded, self._calibration)
        if self._fit_state.earlier is not None:
            self.annotators_ = self.annotators_.with_earlier(self._fit_state.earlier)
        self.result_ = self._result(corpus, weighed, decoded, trace=self.trace_, known=known)

    def encoded(self, corpus: Corpus) -> Crowd:
        """A corpus as arrays, in which names have the numbers that they had in the fit."""
        state = self.model_state()
        return state.weighed(state.encoded(corpus))

    def closed_labels(self, encoded: Crowd) -> NDArray[np.int32] | None:
        """``[N]`` The label of tokens that cannot have another, as the output pass has them; −1 of the others."""
        return self._silence.closed(encoded, None)

    def output_tables(self, encoded: Crowd) -> tuple[Tables, Chain]:
        """What the output pass reads, for a corpus that ``encoded`` gave."""
        return loop.output_tables(self.model_state().output_model, encoded.cells, self.calibration_.sharpness)

    def span_probabilities(self, corpus: Corpus) -> SpanProbabilities | None:
        """The spans that may be true, and the probability of each as ``combine`` gives it out.

        ``None`` where the consensus is a sequence of labels, in which any span can be.
        """
        first = self._first()
        if first is not None:
            return bsc_places.candidates(self, first, corpus)
        if not needs_spans(self._settings, self.tagset_):
            return None
        state = self.model_state()
        said = state.encoded(corpus)
        weighed = state.weighed(said)
        with closing(self._engine(corpus, weighed, None)) as engine:
            heard = self._heard(said, weighed)
            return candidate_probabilities(engine, self._model, heard, self._settings, self.calibration_, self._spans)

    @property
    def for_token_f1(self) -> bool:
        """Whether the spans are given out whose tokens have the highest expected F1."""
        return (self._first() or self)._output_settings().for_token_f1

    def save(self, path: str | Path, *, documents: bool = True) -> None:
        """Write what was learned to a file, for :func:`quorate.load`.

        The ``documents`` are in it too, so that :meth:`update` can go on from the file as it would from here; without
        them it holds no text but the words, one by one.
        """
        model_files.save(self.stored(documents=documents), path)

    def stored(self, *, documents: bool = True) -> model_files.Stored:
        """What was learned, as a file holds it."""
        self._check_fitted()
        return bsc_files.stored(self, documents=documents)

    @classmethod
    def of_file(cls, stored: model_files.Stored) -> BSC:
        """The model that a file keeps; ``ValueError`` and its like if it keeps none."""
        return bsc_files.loaded(cls, stored)

    def checked_settings(self) -> Settings:
        """The parameters as types, with defaults for what is to be chosen; :class:`SettingsError` if one cannot be."""
        params = self.get_params()
        left_open = {*_NOT_THE_MODELS, *settings_left_open(params)}
        if "annotator" in left_open:  # any that every kind of inference has
            params["annotator"] = AnnotatorModel.CM.value
            left_open.remove("annotator")
        return Settings.of(**{name: value for name, value in params.items() if name not in left_open})

    def engines(self) -> Engines:
        """Where passes run; :class:`SettingsError` if that cannot be."""
        return Engines(choice(EngineName, "engine", self.engine), checked_threads(self.n_jobs), self.cluster)

    def _consensus(
        self,
        engine: Engine,
        said: Crowd,
        weighed: Crowd,
        known: NDArray[np.int32] | None,
        *,
        learn: bool = False,
        where: Result | None = None,
    ) -> Concluded:
        """The consensus; with ``learn``, what annotators do with spans is learned from these documents first.

        ``where`` is the consensus on places, if those come first.
        """
        keeps = self._keeps_posteriors or weighed is not said
        found = conclude(
            engine,
            self._model,
            self._heard(said, weighed, known),
            self._output_settings(),
            self.calibration_,
            spans=None if learn else self._spans,
            posteriors=keeps or where is not None,
        )
        if where is None:
            return found
        decoded = bsc_places.typed(where, found.decoded, weighed, known)
        return found._replace(decoded=decoded if keeps else decoded.of_path_alone())

    @property
    def _calibration(self) -> Calibration:
        """How the confidence of a consensus is to be read; that of places is calibrated by their own model."""
        return self.calibration_ if self._first() is None else Calibration(self.calibration_.sharpness)

    def _first(self) -> BSC | None:
        """The model of places, unless a precision or a recall is kept to: that is of spans with their types."""
        if self.places_ is None or self.precision is not None or self.recall is not None:
            return None
        self.places_ = bsc_places.as_set(self.places_, self)
        return self.places_

    def _heard(self, said: Crowd, weighed: Crowd, known: NDArray[np.int32] | None = None) -> Heard:
        """A corpus as the two models hear it."""
        of_people = self._sharing.heard(without_annotator(said, TAGGER) if self._heard_tagger else said)
        return Heard(of_people, weighed, known, self._sharing, self.engines().threads)

    def _output_settings(self) -> Settings:
        """The settings of the fit, with those of what is given out as they are set now."""
        decode = choice(Decode, "decode", self.decode)
        return replace(self._settings, decode=decode, precision=self.precision, recall=self.recall)

    def _engine(self, corpus: Corpus, encoded: Crowd, known: NDArray[np.int32] | None) -> Engine:
        known = self._silence.closed(encoded, known)
        return self.engines().over(encoded, known=known, text=self.text, corpus=corpus)

    def _told(self, why: list[str]) -> dict[str, Any]:
        """The settings of the fit as everybody is told them."""
        method = self.method or f"bsc-{self._settings.annotator.value}"
        return {"method": method, **self._settings.plain(), **({"why": why} if why else {})}

    def _result(
        self,
        corpus: Corpus,
        encoded: Crowd,
        decoded: Decoded,
        *,
        trace: loop.Trace | None,
        known: NDArray[np.int32] | None = None,
    ) -> Result:
        return Result(
            self,
            corpus,
            self.tagset_,
            encoded.doc_start,
            decoded,
            vars(self).get("annotators_", partial(getattr, self, "annotators_")),  # only if asked for, after an update
            trace,
            {**self.settings_, "decode": self.decode, "precision": self.precision, "recall": self.recall},
            encoded.repaired,
            self._calibration,
            self.choice_,
            known,
            self._sources(corpus.profiles),
        )
