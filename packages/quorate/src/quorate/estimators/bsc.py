"""Bayesian sequence combination as an estimator: scikit-learn's face of :func:`quorate.model.fit.fit`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.profiles import Profile
from quorate.corpus.records import Corpus
from quorate.corpus.tags import TagSet
from quorate.crowd.crowd import Crowd
from quorate.estimators import bsc_files, options
from quorate.estimators.base import Estimator, ProgressCallback, checked_threads, meta_of
from quorate.estimators.updating import FitState, Updated, check_update, update, updated_meta
from quorate.model.calibration import Calibration
from quorate.model.engines.factory import EngineName, Engines
from quorate.model.engines.protocol import Decoded
from quorate.model.engines.threads import cell_counts_of
from quorate.model.fit import Consensus, Fitted, fit_and_decode
from quorate.model.history import Past
from quorate.model.loop import Trace
from quorate.model.prepared import Known, check_corpus, crowd_of, known_tags
from quorate.model.settings import Decode, Settings, choice
from quorate.result.annotators import AnnotatorSummaries, summarise
from quorate.result.result import Result
from quorate.result.sources import Sources
from quorate.storage import model_files
from quorate.taggers import TaggerChoice, tagger_name
from quorate.taggers.loop import TAGGER, TaggerRound, joined_fit


class BSC(Estimator):
    """Bayesian sequence combination: a hidden Markov model of the truth and a model of each annotator, in one fit.

    p(t, c, w) = Π_n p(t_n | t_n−1) · p(w_n | t_n) · Π_k p(c_nk | t_n, c_n−1,k), with truths t, labels c and words w.
    Simpson and Gurevych, *A Bayesian Approach for Sequence Tagging with Crowds*, EMNLP-IJCNLP 2019.

    ``annotator`` is ``pool`` (three models at once, the default), ``acc``, ``spam``, ``cv``, ``cm`` or ``seq``.
    ``settings`` are those of :class:`quorate.model.settings.Settings`, the one home of defaults (``docs/settings.md``).
    ``tagger`` is ``"crf"``, ``"context"`` or one of your own: it learns from the consensus, and joins it
    (``docs/tagger.md``). ``n_jobs`` threads run passes, or the ``engine`` ``"jax"``, or a ``cluster``; without
    ``probabilities`` those of labels that are not given out are not kept. ``method`` is the name that results go by.

    After ``fit``: ``fitted_`` (what was learned), and what follows from it: ``result_`` (the consensus), ``trace_``
    (bound per pass, reason for stopping), ``annotators_``, ``tagset_``, ``settings_``, ``calibration_``, ``sources_``,
    ``tagger_rounds_`` and ``meta_`` (version, settings, hash of the input).

    >>> import quorate
    >>> model = BSC("cm", max_iter=3).fit(quorate.sample())
    >>> model.trace_.passes
    3
    """

    fitted_: Fitted
    tagger_rounds_: tuple[TaggerRound, ...] = ()

    def __init__(
        self,
        annotator: options.AnnotatorName = "pool",
        *,
        tagger: TaggerChoice = None,
        n_jobs: int | None = None,
        engine: options.EngineChoice = "threads",
        cluster: Any = None,
        probabilities: bool = True,
        method: str | None = None,
        **settings: Unpack[options.FitSettings],
    ) -> None:
        Settings.check_names(settings)
        self.annotator, self.tagger, self.n_jobs, self.engine, self.cluster = annotator, tagger, n_jobs, engine, cluster
        self.probabilities, self.method = probabilities, method
        for name, value in (Settings().plain() | dict(settings)).items():
            if name != "annotator":
                setattr(self, name, value)

    def fit(
        self,
        corpus: Corpus,
        *,
        known: Known = None,
        progress: ProgressCallback | None = None,
        history: BSC | None = None,
    ) -> Self:
        """Learn annotators, truth and text from a corpus, with ``known`` labels clamped; returns self.

        ``progress`` is called after every pass with a :class:`quorate.model.loop.Progress`. What another model,
        ``history``, learned of the annotators is their prior here; they are matched by name.
        """
        settings, past = self.checked_settings(), None if history is None else history.past
        if past is not None and self.annotator == "pool":
            settings = replace(settings, annotator=past.model)
        crowd = crowd_of(corpus, settings.scheme, settings.invalid, known)
        once = partial(fit_and_decode, settings=settings, engines=self.engines(), history=past, corpus=corpus)
        if self.tagger in (None, "none"):
            self.tagger_rounds_, found = (), once(crowd, posteriors=self.probabilities, progress=progress)
        else:
            self.tagger_rounds_, found = joined_fit(
                corpus, crowd, self.tagger, once, settings.random_state or 0, progress
            )
        self._take(corpus, crowd.known, *found)
        return self

    def _take(
        self, corpus: Corpus, known: NDArray[np.int32] | None, fitted: Fitted, seen: Crowd, of: Consensus
    ) -> None:
        """What follows from a fit."""
        self.fitted_ = fitted
        vars(self).pop("updated_", None)
        self._fit_state = FitState(fitted_to=(corpus, seen.doc_start, known))
        self.meta_ = {"method": self._name} | {
            **meta_of(corpus, seen, known, fitted.settings.plain()),
            "calibration": fitted.calibration.plain(),
            "passes": fitted.trace.passes,
            "bound": fitted.trace.bound,
            "stopped": fitted.trace.reason.value,
        }
        if self.tagger_rounds_:
            self.meta_ |= {"tagger": tagger_name(self.tagger), "rounds": len(self.tagger_rounds_)}
        self._conclude(corpus, seen, of)

    def combine(self, corpus: Corpus, *, known: Known = None) -> Result:
        """The consensus on other documents, with the annotators, words and transitions that were learned.

        An annotator who was not there in fitting is taken to behave as the crowd did on average. ``known`` labels of
        these documents are clamped. ``decode``, ``precision`` and ``recall`` may have been set anew since.

        >>> import quorate
        >>> model = quorate.BSC("cm").fit(quorate.sample())
        >>> sure = model.set_params(precision=0.99).combine(quorate.sample())
        >>> sum(map(len, sure.spans)) < sum(map(len, model.result_.spans))
        True
        """
        self._check_fitted()
        check_corpus(corpus)
        crowd = self.fitted_.crowd(corpus, known_tags(corpus, known))
        decoded = self.fitted_.decode(
            crowd, self._output_settings(), self.engines(), corpus=corpus, posteriors=self.probabilities
        )
        return self._result(corpus, crowd, decoded, trace=None)

    def update(self, corpus: Corpus, *, known: Known = None, passes: int = 0) -> Self:
        """Go on from the fit with new labels, documents, annotators and words; returns self.

        Only the documents of ``corpus`` are gone through, and ``passes`` times everything; ``updated_`` says how many
        of them were new. Labels are added to those that a document had, and replace the same annotator's.

        >>> import quorate
        >>> documents = quorate.sample().documents
        >>> model = quorate.BSC("cm").fit(quorate.Corpus(documents[:300]))
        >>> model.update(quorate.Corpus(documents[300:])).updated_
        Updated(new=20, changed=0, unchanged=0)
        """
        self._check_fitted()
        check_update(self._fit_state, self.meta_, corpus, passes)
        given = known_tags(corpus, known, none_yet=True)
        before = self._fit_state
        fitted, fit_state, self.updated_ = update(self.fitted_, self.engines(), before, corpus, given, passes)
        self.go_on_from(fitted, fit_state, updated_meta(self.meta_, before, corpus, len(fitted.names)))
        return self

    def go_on_from(self, fitted: Fitted, fit_state: FitState, meta: dict[str, Any]) -> None:
        """Take over what was learned since; the consensus is made when it is asked for."""
        self.fitted_, self._fit_state, self.meta_ = fitted, fit_state, meta
        for name in ("result_", "annotators_"):
            vars(self).pop(name, None)

    updated_: Updated

    @cached_property
    def result_(self) -> Result:  # type: ignore[override]
        """The consensus on the documents of the fit and of its updates."""
        self._conclude_again()
        return self.result_

    @cached_property
    def annotators_(self) -> AnnotatorSummaries:
        """What is known about each annotator."""
        earlier, fitted = self._fit_state.earlier, self.fitted_
        if earlier is None or len(self.kept_documents()):
            self._conclude_again()
            return self.annotators_
        names = [name for name in fitted.names if name not in fitted.helpers]
        numbers = [fitted.names.index(name) for name in names]
        nothing = np.zeros((len(earlier), len(names) - earlier.shape[1]))
        table = np.hstack([earlier, nothing])
        return AnnotatorSummaries(names, table, fitted.model.annotators, fitted.tagset.span_types, numbers)

    @property
    def trace_(self) -> Trace:
        """The bound after every pass, and why the fit stopped."""
        return self.fitted_.trace

    @property
    def tagset_(self) -> TagSet:
        """The labels."""
        return self.fitted_.tagset

    @property
    def calibration_(self) -> Calibration:
        """How the confidence is calibrated."""
        return self.fitted_.calibration

    @property
    def settings_(self) -> dict[str, Any]:  # type: ignore[override]
        """The method and its settings as plain values."""
        return {"method": self._name, **self.fitted_.settings.plain()}

    @property
    def profiles_(self) -> Mapping[str, Profile]:
        """What was said of the annotators."""
        return self.fitted_.profiles

    @property
    def sources_(self) -> Sources:
        """The annotators as people, models and rules, and what the changes of the crowd found."""
        self._check_fitted()
        return self._sources({})

    @property
    def past(self) -> Past:
        """What was learned of the annotators, as prior for another fit."""
        self._check_fitted()
        return self.fitted_.past

    @property
    def has_documents(self) -> bool:
        """Whether the documents of the fit are there."""
        return self._fit_state.whole

    def kept_documents(self) -> Corpus:
        """The documents of the fit and of its updates."""
        state = self._fit_state
        return state.fitted_to[0] if state.fitted_to is not None else Corpus(state.documents.values())

    def decided_documents(self) -> set[str]:
        """The ids of documents whose every label was known in the fit."""
        return self._fit_state.decided_documents()

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
        """The parameters as types; :class:`SettingsError` if one cannot be."""
        return Settings.of(**{each.name: getattr(self, each.name) for each in fields(Settings)})

    def engines(self) -> Engines:
        """Where passes run; :class:`SettingsError` if that cannot be."""
        return Engines(choice(EngineName, "engine", self.engine), checked_threads(self.n_jobs), self.cluster)

    @classmethod
    def parameters(cls) -> dict[str, Any]:
        """The parameters by name, with their defaults: those of a fit, and where it runs."""
        own = {"n_jobs": None, "engine": "threads", "cluster": None, "probabilities": True, "method": None}
        return {**Settings().plain(), "tagger": None, **own}

    @property
    def _name(self) -> str:
        return self.method or ("auto" if self.annotator == "pool" else f"bsc-{self.annotator}")

    def _output_settings(self) -> Settings:
        """The settings of the fit, with those of what is given out as they are set now."""
        decode = choice(Decode, "decode", self.decode)  # type: ignore[attr-defined]
        return replace(self.fitted_.settings, decode=decode, precision=self.precision, recall=self.recall)  # type: ignore[attr-defined]

    def _conclude_again(self) -> None:
        """The consensus and the annotators after an update."""
        corpus = self.kept_documents()
        if not len(corpus):
            raise AttributeError("this model has kept no documents, and so no consensus (use combine)")
        crowd = replace(self.fitted_.crowd(corpus), known=self._fit_state.known_codes(corpus))
        engines = self.engines()
        with closing(engines.over(crowd, text=self.fitted_.settings.text, corpus=corpus)) as engine:
            settings = self._output_settings()
            kept = self.probabilities or crowd.original is not None  # whose labels are counted under them
            found = self.fitted_.consensus(engine, crowd, settings, engines, posteriors=kept)
        self._conclude(corpus, crowd, found)

    def _conclude(self, corpus: Corpus, crowd: Crowd, found: Consensus) -> None:
        """What is given out, and what is known of the annotators."""
        decoded, given = found.decoded, crowd.as_given
        counts = decoded.cells
        if given is not crowd:
            counts = cell_counts_of(given, decoded.posterior)
        if not self.probabilities and len(decoded.posterior):
            decoded = decoded.of_path_alone()
        annotators = summarise(given, counts, self.fitted_.annotators_of(crowd, counts), decoded)
        annotators = annotators.without(self.fitted_.helpers)
        if self._fit_state.earlier is not None:
            annotators = annotators.with_earlier(self._fit_state.earlier)
        self.__dict__["annotators_"] = annotators
        self.__dict__["result_"] = self._result(corpus, crowd, decoded, trace=self.trace_)

    def _sources(self, profiles: Mapping[str, Profile]) -> Sources:
        known = {TAGGER: Profile.of(kind="model"), **self.profiles_, **profiles}
        fitted = self.fitted_
        names = [name for name in fitted.names if name not in fitted.helpers]
        return Sources.of(fitted.names, known, fitted.notes, fitted.priors)._replace(names=tuple(names))

    def _result(self, corpus: Corpus, crowd: Crowd, decoded: Decoded, *, trace: Trace | None) -> Result:
        return Result(
            self,
            corpus,
            self.tagset_,
            crowd.doc_start,
            decoded,
            vars(self).get("annotators_", partial(getattr, self, "annotators_")),  # only if asked for, after an update
            trace,
            {**self.settings_, **{name: getattr(self, name) for name in ("decode", "precision", "recall")}},
            crowd.repaired,
            known=crowd.known,
            sources=self._sources(corpus.profiles),
        )
