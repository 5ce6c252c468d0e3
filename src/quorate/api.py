"""What people import: the estimators and :func:`aggregate`. Names become types here; the maths is elsewhere."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

import quorate
from quorate import modelfile
from quorate.corpus import Corpus
from quorate.decode import Result
from quorate.encode import Encoded, encode, encode_known
from quorate.errors import InputError, ModelFileError, SettingsError
from quorate.infer import vb
from quorate.infer.annotators import (
    Accuracy,
    AnnotatorPrior,
    Annotators,
    ClassVector,
    ConfusionMatrix,
    Sequential,
    Spammer,
)
from quorate.infer.condense import condense
from quorate.infer.engine import Decoded, Engine, ThreadsEngine
from quorate.infer.engines import EngineName, engine_named
from quorate.infer.text import Words
from quorate.infer.truth import Independent, Markov, Truth, Uniform
from quorate.prepared import Known, Prepared, prepare
from quorate.rivals import majority, one_worker_a_document
from quorate.settings import AnnotatorModel, Decode, Inference, Settings, Ties, TruthModel, Zeros, choice, scheme_named
from quorate.summaries import AnnotatorSummaries, summarise
from quorate.tags import Invalid, Scheme, TagSet

__all__ = [
    "BSC",
    "METHODS",
    "BestWorker",
    "MajorityVote",
    "Method",
    "Prepared",
    "WorstWorker",
    "aggregate",
    "estimator",
    "load",
    "prepare",
]

ProgressCallback = Callable[[vb.Progress], None]

_WHERE_IT_RUNS = ("threads", "engine", "cluster")  # parameters that decide nothing about the outcome

_TRUTHS: dict[TruthModel, type[Truth]] = {
    TruthModel.MARKOV: Markov,
    TruthModel.INDEPENDENT: Independent,
    TruthModel.UNIFORM: Uniform,
}
_ANNOTATORS: dict[AnnotatorModel, type[Annotators]] = {
    AnnotatorModel.ACC: Accuracy,
    AnnotatorModel.SPAM: Spammer,
    AnnotatorModel.CV: ClassVector,
    AnnotatorModel.CM: ConfusionMatrix,
    AnnotatorModel.SEQ: Sequential,
}


class _Estimator:
    """What estimators share: parameters as attributes, and predictions from ``result``."""

    method: str | None = None
    result_: Result
    meta_: dict[str, Any]

    def fit(
        self,
        corpus: Corpus,
        *,
        known: Known = None,
        progress: ProgressCallback | None = None,
        probabilities: bool | None = None,
    ) -> Self:
        """Learn from a corpus; returns self."""
        raise NotImplementedError

    def combine(self, corpus: Corpus) -> Result:
        """The consensus on other documents, with what was learned."""
        raise NotImplementedError

    def predict(self, corpus: Corpus) -> list[list[str]]:
        """Tags for the documents of a corpus, with what was learned."""
        return self.combine(corpus).tags

    def predict_proba(self, corpus: Corpus) -> list[NDArray[np.float64]]:
        """For every document ``[L, J]`` the probability of each label, with what was learned."""
        return self.combine(corpus).probabilities

    def fit_predict(self, corpus: Corpus, **options: Any) -> list[list[str]]:
        """Learn from a corpus and return its tags."""
        return self.fit(corpus, **options).result_.tags

    def fit_predict_proba(self, corpus: Corpus, **options: Any) -> list[NDArray[np.float64]]:
        """Learn from a corpus and return, for every document, ``[L, J]`` the probability of each label."""
        return self.fit(corpus, probabilities=True, **options).result_.probabilities

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters that the estimator was made with."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **values: Any) -> Self:
        """Change parameters; returns self."""
        for name, value in values.items():
            if name not in self.get_params():
                raise SettingsError(f"unknown setting {name!r} (one of: {', '.join(self.get_params())})")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        changed = [f"{k}={v!r}" for k, v in self.get_params().items() if v != defaults[k].default]
        return f"{type(self).__name__}({', '.join(changed)})"


class BSC(_Estimator):
    """Bayesian sequence combination: a hidden Markov model of the truth and a model of each annotator, in one fit.

    ``annotator`` is ``acc``, ``spam``, ``cv``, ``cm`` or ``seq``; ``truth`` is ``markov``, ``independent`` or
    ``uniform``; ``text`` says whether words count. ``alpha0``, ``epsilon0``, ``gamma0`` and ``kappa0`` are the priors,
    ``temper`` how far annotators' evidence is trusted. The others are explained in ``docs/settings.md``.

    After ``fit``: ``result_`` (the consensus), ``trace_`` (bound per pass, reason for stopping), ``annotators_``,
    ``tagset_``, ``settings_`` and ``meta_`` (version, settings, hash of the input).

    >>> import quorate
    >>> model = BSC(annotator="cm", max_passes=5).fit(quorate.sample())
    >>> model.trace_.passes
    5
    """

    def __init__(
        self,
        annotator: str = "seq",
        *,
        truth: str = "markov",
        text: bool = True,
        alpha0: float = Settings.alpha0,
        epsilon0: float = Settings.epsilon0,
        gamma0: float = Settings.gamma0,
        kappa0: float = Settings.kappa0,
        habit0: float | None = None,
        zeros: str = Settings.zeros.value,
        inference: str = Settings.inference.value,
        temper: float = Settings.temper,
        start: str = Settings.start.value,
        max_passes: int = Settings.max_passes,
        tolerance: float = Settings.tolerance,
        seed: int | None = None,
        restarts: int = 1,
        decode: str = Settings.decode.value,
        invalid: str = Settings.invalid.value,
        scheme: str | None = None,
        threads: int | None = None,
        engine: str = EngineName.THREADS.value,
        cluster: Any = None,
    ) -> None:
        self.annotator, self.truth, self.text = annotator, truth, text
        self.alpha0, self.epsilon0, self.gamma0, self.kappa0 = alpha0, epsilon0, gamma0, kappa0
        self.habit0, self.zeros, self.inference, self.temper, self.start = habit0, zeros, inference, temper, start
        self.max_passes, self.tolerance, self.seed, self.restarts = max_passes, tolerance, seed, restarts
        self.decode, self.invalid, self.scheme = decode, invalid, scheme
        self.threads, self.engine, self.cluster = threads, engine, cluster

    def fit(
        self,
        corpus: Corpus,
        *,
        known: Known = None,
        progress: ProgressCallback | None = None,
        probabilities: bool | None = None,
    ) -> Self:
        """Learn annotators, truth and text from a corpus, with ``known`` labels clamped; returns self.

        ``progress`` is called after every pass with a :class:`quorate.infer.vb.Progress`. ``probabilities`` says
        whether those of all labels are kept (``None``: unless the corpus is an encoded one on disk).
        """
        settings = self.checked_settings()
        return self.fit_prepared(prepare(corpus, settings.scheme, settings.invalid, known), progress, probabilities)

    def fit_prepared(
        self, prepared: Prepared, progress: ProgressCallback | None = None, probabilities: bool | None = None
    ) -> Self:
        """Like ``fit``, on a corpus that was prepared once for several fits."""
        settings = self.checked_settings()
        corpus, tagset, encoded, clamped = prepared
        with closing(self._engine(corpus, encoded, clamped)) as engine:
            fitted = vb.fit(
                self._condensed(settings, encoded, clamped) or engine,
                _model(settings, tagset, encoded),
                encoded.cells,
                start=settings.start,
                max_passes=settings.max_passes,
                tolerance=settings.tolerance,
                seed=settings.seed,
                restarts=settings.restarts,
                progress=progress,
            )
            self.settings_, self.tagset_, self.trace_ = settings, tagset, fitted.trace
            self._model, self._names, self._words = fitted.model, encoded.annotators, encoded.words
            keep = encoded.slices is None if probabilities is None else probabilities
            by_token = settings.decode is Decode.TOKEN
            decoded = vb.decode(engine, fitted.model, encoded.cells, by_token=by_token, posteriors=keep)
        self.annotators_ = summarise(encoded, decoded.cells, fitted.model.annotators)
        self.result_ = self._result(corpus, encoded, decoded, trace=fitted.trace)
        self.meta_ = {"method": self.method or f"bsc-{settings.annotator.value}"} | {
            **_meta(corpus, encoded, clamped, settings.plain()),
            "passes": fitted.trace.passes,
            "bound": fitted.trace.bound,
            "stopped": fitted.trace.reason.value,
        }
        return self

    def combine(self, corpus: Corpus) -> Result:
        """The consensus on other documents, with the annotators, words and transitions that were learned.

        An annotator who was not there in fitting is taken to behave as the crowd did on average.
        """
        self._check_fitted()
        encoded = encode(
            corpus, self.tagset_, invalid=self.settings_.invalid, annotators=self._names, words=self._words
        )
        with closing(self._engine(corpus, encoded, None)) as engine:
            decoded = vb.decode(engine, self._model, encoded.cells, by_token=self.settings_.decode is Decode.TOKEN)
        return self._result(corpus, encoded, decoded, trace=None)

    def save(self, path: str | Path) -> None:
        """Write what was learned to a file, for :func:`load`."""
        self._check_fitted()
        arrays = self._model.truth.arrays() | self._model.annotators.arrays()
        if self._model.text is not None:
            arrays |= self._model.text.arrays()
        arrays["summary"] = self.annotators_.table
        meta = {
            "estimator": "BSC",
            "fit": self.meta_,
            "bounds": self.trace_.bounds,
            "starts": self.trace_.starts,
            "seconds": self.trace_.seconds,
            "tags": {"scheme": self.tagset_.scheme.value, "labels": self.tagset_.labels},
            "annotators": self._names,
            "words": self._words,
        }
        modelfile.save(modelfile.Stored(meta, arrays), path)

    @classmethod
    def _loaded(cls, stored: modelfile.Stored) -> Self:
        meta, arrays = stored
        model = cls(**meta["fit"]["settings"])
        model.settings_ = settings = model.checked_settings()
        model.meta_ = meta["fit"]
        model.method = meta["fit"].get("method")
        reason = vb.StopReason(meta["fit"]["stopped"])
        model.trace_ = vb.Trace(tuple(meta["bounds"]), reason, tuple(meta["starts"]), meta["seconds"])
        model.tagset_ = TagSet(Scheme(meta["tags"]["scheme"]), tuple(meta["tags"]["labels"]))
        model._names, model._words = tuple(meta["annotators"]), tuple(meta["words"])
        blank = _parts(settings, model.tagset_, len(model._names), len(model._words))
        model._model = vb.Model(
            blank.truth.restored(arrays),
            blank.annotators.restored(arrays),
            None if blank.text is None else blank.text.restored(arrays),
            settings.temper,
        )
        model.annotators_ = AnnotatorSummaries(model._names, arrays["summary"], model._model.annotators)
        return model

    def checked_settings(self) -> Settings:
        """The parameters as types; :class:`SettingsError` if one is not possible."""
        return Settings.of(**{name: value for name, value in self.get_params().items() if name not in _WHERE_IT_RUNS})

    def _engine(self, corpus: Corpus, encoded: Encoded, known: NDArray[np.int32] | None) -> Engine:
        kind = engine_named(choice(EngineName, "engine", self.engine), self.cluster)
        threads = _checked_threads(self.threads)
        return kind(encoded, known=known, text=self.text, threads=threads, names=lambda d: corpus[d].where())

    def _condensed(self, settings: Settings, encoded: Encoded, known: NDArray[np.int32] | None) -> ThreadsEngine | None:
        """An engine over distinct tokens, where neither neighbours nor words count."""
        if settings.text or settings.truth is TruthModel.MARKOV or (self.engine, self.cluster) != ("threads", None):
            return None
        condensed = condense(encoded, known)
        if condensed is None:
            return None
        return ThreadsEngine(
            condensed.encoded,
            known=condensed.known,
            text=False,
            times=condensed.times,
            threads=_checked_threads(self.threads),
        )

    def _result(self, corpus: Corpus, encoded: Encoded, decoded: Decoded, *, trace: vb.Trace | None) -> Result:
        settings = {"method": self.method or f"bsc-{self.settings_.annotator.value}", **self.settings_.plain()}
        annotators = self.annotators_
        return Result(corpus, self.tagset_, encoded.doc_start, decoded, annotators, trace, settings, encoded.repaired)

    def _check_fitted(self) -> None:
        if not hasattr(self, "_model"):
            raise SettingsError("this model has not been fitted yet (call fit first)")


class MajorityVote(_Estimator):
    """A vote on every token. ``ties`` is ``entity-first``, ``outside-first``, or ``random`` by ``seed``.

    >>> import quorate
    >>> MajorityVote().fit(quorate.sample()).result_[0].tags[:4]
    ['O', 'O', 'O', 'O']
    """

    method = "mv"

    def __init__(
        self,
        ties: str = Ties.ENTITY_FIRST.value,
        *,
        seed: int = 0,
        decode: str = Decode.SEQUENCE.value,
        invalid: str = Invalid.REPAIR.value,
        scheme: str | None = None,
        threads: int | None = None,
    ) -> None:
        self.ties, self.seed, self.decode, self.invalid = ties, seed, decode, invalid
        self.scheme, self.threads = scheme, threads

    def fit(
        self,
        corpus: Corpus,
        *,
        known: Known = None,
        progress: ProgressCallback | None = None,
        probabilities: bool | None = None,
    ) -> Self:
        """Count the votes; returns self."""
        ties, decode = choice(Ties, "ties", self.ties), choice(Decode, "decode", self.decode)
        invalid = choice(Invalid, "invalid", self.invalid)
        prepared = prepare(corpus, scheme_named(self.scheme), invalid, known)
        encoded = prepared.encoded
        votes = majority(
            encoded,
            voters=self._voters(prepared),
            known=prepared.known,
            ties=ties,
            seed=self.seed,
            decode=decode,
            threads=_checked_threads(self.threads),
        )
        self.tagset_ = prepared.tagset
        self.annotators_ = summarise(encoded, votes.decoded.cells, votes.annotators)
        settings = {name: value for name, value in self.get_params().items() if name != "threads"}
        self.result_ = Result(
            corpus,
            self.tagset_,
            encoded.doc_start,
            votes.decoded,
            self.annotators_,
            None,
            {"method": self.method, **settings},
            encoded.repaired,
        )
        self.meta_ = {"method": self.method, **_meta(corpus, encoded, prepared.known, settings)}
        return self

    def combine(self, corpus: Corpus) -> Result:
        """The vote on other documents: nothing carries over."""
        return type(self)(**self.get_params()).fit(corpus).result_

    def _voters(self, prepared: Prepared) -> Encoded | None:
        """The corpus with weights for those whose votes count; ``None``: everybody's do."""
        return None


class BestWorker(MajorityVote):
    """An oracle: in each document, of those who saw it, the annotator with the highest token F1 against all gold.

    >>> import quorate
    >>> best = BestWorker().fit(quorate.sample()).result_
    >>> quorate.score.strict(best.tags, [d.gold for d in quorate.sample()]).f1 > 0.8
    True
    """

    method = "best-worker"
    _best = True

    def _voters(self, prepared: Prepared) -> Encoded | None:
        """One annotator's votes count in each document with gold."""
        gold = {d.id: d.gold for d in prepared.corpus if d.gold is not None}
        if not gold:
            raise InputError(f"method {self.method!r} needs gold to know whom to follow, and no document has any")
        index = prepared.tagset.index
        known = {name: tuple(tag if tag in index else None for tag in tags) for name, tags in gold.items()}
        codes = encode_known(prepared.corpus, prepared.tagset, known, Invalid.REPAIR)
        return one_worker_a_document(prepared.encoded, codes, best=self._best)


class WorstWorker(BestWorker):
    """An oracle: in each document, of those who saw it, the annotator with the lowest token F1 against all gold.

    >>> import quorate
    >>> worst = WorstWorker().fit(quorate.sample()).result_
    >>> quorate.score.strict(worst.tags, [d.gold for d in quorate.sample()]).f1 < 0.3
    True
    """

    method = "worst-worker"
    _best = False


class Method(NamedTuple):
    """A name for an estimator with some of its parameters set."""

    description: str
    kind: type[BSC] | type[MajorityVote]
    settings: Mapping[str, Any]


# These look at no neighbour, so that a tag that cannot follow the one before is as good as any other.
_ALONE = {"truth": "independent", "text": False, "temper": 1.0, "invalid": "keep"}


METHODS: dict[str, Method] = {
    "mv": Method("majority vote on every token", MajorityVote, {}),
    "best-worker": Method("in each document its best annotator (an oracle: needs gold)", BestWorker, {}),
    "worst-worker": Method("in each document its worst annotator (an oracle: needs gold)", WorstWorker, {}),
    "ds": Method(
        "Dawid and Skene: confusion matrices by EM, every token alone",
        BSC,
        {"annotator": "cm", "inference": "em", "alpha0": 0.01, "epsilon0": 0.0, "gamma0": 0.01, **_ALONE},
    ),
    "ibcc": Method(
        "independent Bayesian classifier combination: the same by VB",
        BSC,
        {"annotator": "cm", "alpha0": 1.0, "epsilon0": 1.0, **_ALONE},
    ),
    "mace": Method(
        "MACE: annotators know or guess, all labels alike, best of ten starts",
        BSC,
        {
            "annotator": "spam",
            "alpha0": 0.5,
            "epsilon0": 0.0,
            "habit0": 0.1,
            "restarts": 10,
            "seed": 0,
            **_ALONE,
            "truth": "uniform",
        },
    ),
    "hmm-crowd": Method(
        "a hidden Markov model with an accuracy for each label",
        BSC,
        {
            "annotator": "cv",
            "inference": "em-annotators",
            "alpha0": 0.1,
            "epsilon0": 0.0,
            "gamma0": 0.1,
            "kappa0": 0.01,
            "temper": 1.0,
        },
    ),
    "bsc-acc": Method("one accuracy for each annotator", BSC, {"annotator": "acc"}),
    "bsc-spam": Method("knows, or guesses from a habit (as in MACE)", BSC, {"annotator": "spam"}),
    "bsc-cv": Method("an accuracy for each true label", BSC, {"annotator": "cv"}),
    "bsc-cm": Method("a confusion matrix", BSC, {"annotator": "cm"}),
    "bsc-seq": Method("a confusion matrix for each previous label", BSC, {"annotator": "seq"}),
    "bsc-cm-notext": Method("bsc-cm without words", BSC, {"annotator": "cm", "text": False}),
    "bsc-seq-notext": Method("bsc-seq without words", BSC, {"annotator": "seq", "text": False}),
    "bsc-cm-notrans": Method("bsc-cm without transitions", BSC, {"annotator": "cm", "truth": "independent"}),
    "bsc-seq-notrans": Method("bsc-seq without transitions", BSC, {"annotator": "seq", "truth": "independent"}),
}
"""The methods by name, as the command line has them."""


def estimator(method: str = "bsc-seq", **settings: Any) -> BSC | MajorityVote:
    """The estimator that a method's name stands for, with some settings changed.

    >>> estimator("bsc-cm", max_passes=5)
    BSC(annotator='cm', max_passes=5)
    """
    if method not in METHODS:
        raise SettingsError(f"unknown method {method!r} (one of: {', '.join(METHODS)})")
    _, kind, fixed = METHODS[method]
    known = inspect.signature(kind).parameters
    for name in settings:
        if name not in known:
            raise SettingsError(f"method {method!r} has no setting {name!r} (it has: {', '.join(known)})")
    model = kind(**{**fixed, **settings})
    model.method = method
    return model


def aggregate(
    corpus: Corpus,
    method: str = "bsc-seq",
    *,
    known: Known = None,
    progress: ProgressCallback | None = None,
    **settings: Any,
) -> Result:
    """The consensus on every document of a corpus.

    ``method`` is a name from :data:`METHODS`; ``settings`` change the method's own (see :class:`BSC`). ``known`` gives
    labels that are certain: ``"inline"`` for the corpus's own gold, or tags by document id.

    >>> import quorate
    >>> result = aggregate(quorate.sample(), max_passes=5)
    >>> len(result.tags) == len(quorate.sample())
    True
    """
    return estimator(method, **settings).fit(corpus, known=known, progress=progress).result_


def load(path: str | Path) -> BSC:
    """A fitted model from a file that :meth:`BSC.save` wrote.

    >>> import quorate, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     BSC(max_passes=2).fit(quorate.sample()).save(f"{folder}/model.quorate")
    ...     load(f"{folder}/model.quorate").trace_.passes
    2
    """
    stored = modelfile.load(path)
    try:
        return BSC._loaded(stored)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ModelFileError(f"{path}: a damaged model file: {error!r} (fit and save it again)") from None


def _meta(
    corpus: Corpus, encoded: Encoded, known: NDArray[np.int32] | None, settings: dict[str, Any]
) -> dict[str, Any]:
    """What is worth keeping with the output: from what, and how, it was made."""
    return {
        "version": quorate.__version__,
        "settings": settings,
        "labels": list(encoded.tagset.labels),
        "inputs": corpus.digests,
        "documents": len(corpus),
        "tokens": encoded.n_tokens,
        "annotators": len(encoded.annotators),
        "known": 0 if known is None else int((known >= 0).sum()),
        "repaired": encoded.repaired,
    }


class _Parts(NamedTuple):
    truth: Truth
    annotators: Annotators
    text: Words | None


def _parts(settings: Settings, tagset: TagSet, n_annotators: int, n_words: int) -> _Parts:
    """The model's parts before any data."""
    prior = AnnotatorPrior(
        tagset,
        settings.alpha0,
        settings.epsilon0,
        moved=settings.zeros is Zeros.MOVED,
        forbid=settings.invalid is not Invalid.KEEP,
        habit0=settings.habit0,
        point=settings.inference is not Inference.VB,
    )
    point = settings.inference is Inference.EM
    return _Parts(
        _TRUTHS[settings.truth].of(tagset, settings.gamma0, point=point),
        _ANNOTATORS[settings.annotator].of(prior, n_annotators),
        Words.of(n_words, len(tagset.labels), settings.kappa0, point=point) if settings.text else None,
    )


def _model(settings: Settings, tagset: TagSet, encoded: Encoded) -> vb.Model:
    return vb.Model(*_parts(settings, tagset, len(encoded.annotators), len(encoded.words)), settings.temper)


def _checked_threads(threads: int | None) -> int | None:
    if threads is not None and threads < 1:
        raise SettingsError(f"threads must be 1 or more, not {threads}")
    return threads
