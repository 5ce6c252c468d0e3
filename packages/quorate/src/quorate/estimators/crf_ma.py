"""CRF-MA (Rodrigues, Pereira and Ribeiro, 2014): a CRF over the text, and annotators who are right or wrong as a whole.

In each document one annotator r, unknown which, has given the sequence that the CRF stands for; the others answer at
random, every label alike. EM: annotator r of document n is the right one with probability

    γ_nr ∝ π_r · p_CRF(y_nr | x_n) · J^(tokens that r labelled)

(the last factor, the others' randomness, is the same for all and cancels where everybody labelled every token); π_r is
the mean of γ over r's documents, drawn a little towards the crowd's; and the CRF is trained on the annotators'
sequences, each weighted by its γ. What is given out is what the CRF makes of the text.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Corpus
from quorate.corpus.tags import MISSING, Invalid, TagSet
from quorate.crowd.algebra import document_of_events, token_of_events
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode
from quorate.errors import SettingsError
from quorate.estimators import options
from quorate.estimators.base import Estimator, ProgressCallback, checked_threads, meta_of
from quorate.model import loop
from quorate.model.engines.protocol import Decoded, Tables
from quorate.model.engines.threads import ThreadsEngine
from quorate.model.parts.annotators import AnnotatorPrior
from quorate.model.parts.arrays import check_arrays
from quorate.model.parts.confusions import ConfusionMatrix
from quorate.model.parts.truth import Chain, log_mask
from quorate.model.prepared import Known, crowd_of
from quorate.model.settings import Decode, check_number, choice, decode_of_tokens, scheme_named
from quorate.result.annotators import AnnotatorSummaries, summarise
from quorate.result.result import Result
from quorate.result.sources import Sources
from quorate.storage import model_files
from quorate.taggers.exact_crf import Crf, train
from quorate.taggers.features import BUCKETS, TokenFeatures, frequent, numbered

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_VOTE_SMOOTHING = 0.1


@dataclass(frozen=True)
class _Answers:
    """What was said of each document, each different sequence once: an *answer*. A of them, S by annotators.

    Answer a is about document ``doc[a]`` and gives its tokens the labels ``code[start[a]:start[a + 1]]``, ``MISSING``
    where not seen; ``token`` is the token that each is about. Annotator ``who[s]`` gave answer ``given[s]``.
    """

    doc: Ints
    start: Ints
    code: NDArray[np.int32]
    token: NDArray[np.int32]
    who: Ints
    given: Ints

    @classmethod
    def of(cls, encoded: Crowd, known: NDArray[np.int32] | None) -> _Answers:
        """Those of the annotators; where labels are known, they too are an answer, which nobody gave."""
        doc, who, start, code = _sequences(encoded)
        numbers: dict[tuple[int, bytes], int] = {}
        given = [
            numbers.setdefault((d, code[start[s] : start[s + 1]].tobytes()), len(numbers))
            for s, d in enumerate(doc.tolist())
        ]
        if known is not None:
            for d in range(encoded.n_docs):
                here = known[encoded.doc_start[d] : encoded.doc_start[d + 1]]
                if (here >= 0).any():
                    numbers.setdefault((d, here.astype(np.int32).tobytes()), len(numbers))
        of_doc = np.array([d for d, _ in numbers], np.int64)
        codes = np.frombuffer(b"".join(labels for _, labels in numbers), np.int32)
        lengths = np.diff(encoded.doc_start)[of_doc]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        token = np.arange(starts[-1]) + np.repeat(encoded.doc_start[:-1][of_doc] - starts[:-1], lengths)
        return cls(of_doc, starts, codes, token.astype(np.int32), who, np.array(given, np.int64))


def _sequences(encoded: Crowd) -> tuple[Ints, Ints, Ints, NDArray[np.int32]]:
    """Document, annotator, start and labels of every sequence; of a label with probabilities, the most probable."""
    event_token = token_of_events(encoded)
    event_doc = document_of_events(encoded)
    who, label = encoded.cells.annotator[encoded.event_cell], encoded.cells.label[encoded.event_cell]
    K, J = len(encoded.annotators), len(encoded.tagset.labels)
    pairs, sequence = np.unique(event_doc * K + who, return_inverse=True)
    doc, annotator = np.divmod(pairs, K)
    start = np.concatenate([[0], np.cumsum(np.diff(encoded.doc_start)[doc])])
    place = start[sequence] + event_token - encoded.doc_start[event_doc]
    code = np.full(start[-1], MISSING, np.int32)
    if encoded.event_weight is None:
        code[place] = label
    else:
        keys, which = np.unique(place * J + label, return_inverse=True)
        weight = np.bincount(which, encoded.event_weight)
        order = np.lexsort((-weight, keys // J))
        first = order[np.unique(keys[order] // J, return_index=True)[1]]
        code[keys[first] // J] = keys[first] % J
        code = encoded.tagset.repaired(code.astype(np.int16), start).codes.astype(np.int32)
    return doc, annotator, start, code


class _Weights(NamedTuple):
    """The E step: γ of every sequence ``[S]``, the weight of every answer ``[A]``, and the log-likelihood."""

    gamma: Floats
    answers: Floats
    log_likelihood: float


class _Crowd:
    """One corpus ready for EM: its answers, and engines over the documents and over the answers."""

    def __init__(self, corpus: Corpus, crowd: Crowd, threads: int | None) -> None:
        self.corpus, self.tagset, self.encoded, self.known = corpus, crowd.tagset, crowd, crowd.known
        self.answers = _Answers.of(self.encoded, self.known)
        every = np.arange(self.encoded.n_tokens, dtype=np.int32)
        self.documents = _text_engine(self.encoded, self.encoded.doc_start, every, self.known, threads)
        clamps = self.answers.code
        if self.known is not None:
            clamps = np.where(clamps == MISSING, self.known[self.answers.token], clamps)
        self._engine = _text_engine(self.encoded, self.answers.start, self.answers.token, clamps, threads)
        seen = np.concatenate([[0], np.cumsum(self.answers.code != MISSING)])
        self._seen = np.diff(seen[self.answers.start])
        self._possible = self._agree_with_known()

    def vote_scores(self, threads: int | None) -> Floats:
        """``[N, J]`` Logarithms of shares of votes, to start from."""
        engine = ThreadsEngine(self.encoded, known=self.known, text=False, threads=threads)
        engine.vote(np.eye(len(self.tagset.labels))[self.encoded.cells.label], _VOTE_SMOOTHING)
        return np.log(np.maximum(engine.posterior, 1e-9))

    def expect(self, scores: Floats, chain: Chain, reliability: Floats) -> tuple[_Weights, NDArray[np.int32]]:
        """γ under the CRF and the annotators' reliability; and the answers, what was not seen filled in."""
        J = len(self.tagset.labels)
        tables = Tables(np.zeros((0, J)), scores)
        clamped = self._engine.decode(tables, chain, by_token=False)
        free = self.documents.decode(tables, chain, by_token=False)
        who, given, doc = self.answers.who, self.answers.given, self.answers.doc
        at_random = -np.log(J) * self._seen
        log_p = np.where(self._possible, clamped.log_z - free.log_z[doc], -np.inf)
        log_weight = np.log(reliability[who]) + (log_p - at_random)[given]
        n_docs = self.encoded.n_docs
        top = np.full(n_docs, -np.inf)
        np.maximum.at(top, doc[given], log_weight)
        answered = np.isfinite(top)
        weight = np.exp(log_weight - np.where(answered, top, 0.0)[doc[given]])
        total = np.bincount(doc[given], weight, n_docs)
        gamma = np.divide(weight, total[doc[given]], out=np.zeros_like(weight), where=answered[doc[given]])
        share = np.bincount(doc[given], reliability[who], n_docs)
        log_likelihood = np.sum(np.log(total[answered]) + top[answered] - np.log(share[answered]))
        log_likelihood += at_random[given][answered[doc[given]]].sum()
        by_answer = np.bincount(given, gamma, len(doc)).astype(np.float64)
        # Where nobody agrees with what is known, what is known is learned from.
        nobody = ~np.isin(np.arange(len(doc)), given)
        by_answer[nobody & ~answered[doc]] = 1.0
        filled = np.where(self.answers.code == MISSING, clamped.path, self.answers.code)
        return _Weights(gamma, by_answer, float(log_likelihood)), filled

    def reliability(self, gamma: Floats) -> Floats:
        """``[K]`` π: the mean γ of each annotator's documents, and one more document of the crowd's mean."""
        K, who = len(self.encoded.annotators), self.answers.who
        mean = gamma.mean() if len(gamma) else 1.0
        return np.asarray((np.bincount(who, gamma, K) + mean) / (np.bincount(who, minlength=K) + 1.0))

    def expected_labels(self, weights: Floats, filled: NDArray[np.int32]) -> tuple[Floats, Floats]:
        """What answers of such weights teach: labels of tokens ``[N, J]``, neighbours in documents ``[D, J, J]``."""
        N, D, J = self.encoded.n_tokens, self.encoded.n_docs, len(self.tagset.labels)
        lengths = np.diff(self.answers.start)
        weight, doc = np.repeat(weights, lengths), np.repeat(self.answers.doc, lengths)
        labels = np.bincount(self.answers.token * np.int64(J) + filled, weight, N * J).astype(np.float64)
        first = np.zeros(len(filled), np.bool_)
        first[self.answers.start[:-1][lengths > 0]] = True
        later = np.flatnonzero(~first)
        step = (doc[later] * J + filled[later - 1]) * J + filled[later]
        pairs = np.bincount(step, weight[later], D * J * J).astype(np.float64)
        return labels.reshape(N, J), pairs.reshape(D, J, J)

    def _agree_with_known(self) -> NDArray[np.bool_]:
        """``[A]`` Which answers contradict no known label."""
        if self.known is None:
            return np.ones(len(self.answers.doc), np.bool_)
        truth, code = self.known[self.answers.token], self.answers.code
        wrong = np.concatenate([[0], np.cumsum((truth >= 0) & (code != MISSING) & (truth != code))])
        return np.asarray(np.diff(wrong[self.answers.start]) == 0)


def _text_engine(
    encoded: Crowd,
    doc_start: Ints,
    word: NDArray[np.int32],
    known: NDArray[np.int32] | None,
    threads: int | None,
) -> ThreadsEngine:
    """An engine in which nobody says anything, and a token's row, its ``word``, is what the CRF makes of it."""
    bare = replace(
        encoded,
        doc_start=doc_start,
        word=word,
        event_start=np.zeros(len(word) + 1, np.int64),
        event_cell=np.zeros(0, np.int32),
        event_weight=None,
    )
    return ThreadsEngine(bare, known=known, text=False, threads=threads)


def _valid(chain: Chain, tagset: TagSet) -> Chain:
    """The chain without what the scheme forbids."""
    return chain._replace(
        start=chain.start + log_mask(tagset.allowed_first),
        trans=chain.trans + log_mask(tagset.allowed),
        end=log_mask(tagset.allowed_last),
    )


class _Fitted(NamedTuple):
    crf: Crf
    buckets: NDArray[np.int32]  # the feature of each row of the CRF's weights
    reliability: Floats
    trace: loop.Trace


class CRFMA(Estimator):
    """CRF-MA: a conditional random field over the text, whose annotators are each right or wrong in a whole document.

    p(c_d | x_d) = Σ_r π_r · p_CRF(c_dr | x_d) · Π_{k≠r} J^−(labels of k), with the labels c_dr of annotator r.
    Rodrigues, Pereira and Ribeiro, *Sequence labeling with multiple annotators*, Machine Learning 95, 2014.

    ``max_iter`` rounds of EM, each with at most ``iterations`` steps of L-BFGS; ``l2`` is the weight of the squared
    norm. ``tol`` is the share of a document's weight that still moves between annotators at which to stop.

    After ``fit``: ``result_``, ``trace_`` (the log-likelihood of every round), ``annotators_``, ``reliability_`` (π by
    name), ``tagset_`` and ``meta_``. The tags are what the CRF makes of the text, for new documents too.

    >>> import quorate
    >>> model = CRFMA(max_iter=2, iterations=10).fit(quorate.sample())
    >>> model.reliability_["ana"] > model.reliability_["fay"]
    True
    """

    method = "crf-ma"

    def __init__(
        self,
        *,
        max_iter: int = 5,
        tol: float = 0.01,
        iterations: int = 30,
        l2: float = 1.0,
        decode: options.TokenDecodeName = "sequence",
        invalid: options.InvalidName = "repair",
        scheme: options.SchemeName | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.max_iter, self.tol, self.iterations, self.l2 = max_iter, tol, iterations, l2
        self.decode, self.invalid, self.scheme, self.n_jobs = decode, invalid, scheme, n_jobs

    def fit(self, corpus: Corpus, *, known: Known = None, progress: ProgressCallback | None = None) -> Self:
        """Learn the CRF and the annotators' reliability; returns self. ``progress`` is called after every round."""
        self._check_settings()
        encoded = crowd_of(corpus, scheme_named(self.scheme), choice(Invalid, "invalid", self.invalid), known)
        self.tagset_, clamped = encoded.tagset, encoded.known
        crowd = _Crowd(corpus, encoded, checked_threads(self.n_jobs))
        buckets, _ = TokenFeatures().end_to_end([document.tokens for document in corpus])
        kept = frequent(buckets)
        features = numbered(buckets, kept)
        self._fitted = self._em(crowd, features, kept, progress)
        self._names, self.trace_ = encoded.annotators, self._fitted.trace
        self.reliability_ = dict(zip(self._names, self._fitted.reliability.tolist(), strict=True))
        decoded = self._decoded(crowd.documents, features)
        counts = ThreadsEngine(encoded, text=False, threads=checked_threads(self.n_jobs)).cell_counts(decoded.posterior)
        prior = AnnotatorPrior(self.tagset_, 1.0, 1.0)
        self._annotators = ConfusionMatrix.of(prior, len(self._names)).updated(encoded.cells, counts)
        self.annotators_ = summarise(encoded, counts, self._annotators, decoded)
        self.settings_ = {"method": self.method, **self._plain_settings()}
        self.result_ = self._result(corpus, encoded, decoded, trace=self.trace_, known=clamped)
        self.meta_ = {"method": self.method, **meta_of(corpus, encoded, clamped, self._plain_settings())} | {
            "passes": self.trace_.passes,
            "bound": self.trace_.bound,
            "stopped": self.trace_.reason.value,
            "reliability": self.reliability_,
        }
        return self

    def combine(self, corpus: Corpus) -> Result:
        """What the CRF makes of other documents; what annotators say of them does not count."""
        self._check_fitted()
        invalid = choice(Invalid, "invalid", self.invalid)
        encoded = encode(corpus, self.tagset_, invalid=invalid, annotators=self._names, words=())
        buckets, _ = TokenFeatures().end_to_end([document.tokens for document in corpus])
        features = numbered(buckets, self._fitted.buckets)
        every = np.arange(encoded.n_tokens, dtype=np.int32)
        engine = _text_engine(encoded, encoded.doc_start, every, None, checked_threads(self.n_jobs))
        return self._result(corpus, encoded, self._decoded(engine, features), trace=None)

    @property
    def sources_(self) -> Sources:
        """The annotators, of whom nothing is known beforehand."""
        self._check_fitted()
        return Sources(self._names)

    def save(self, path: str | Path, *, documents: bool = True) -> None:
        """Write what was learned to a file, for :func:`quorate.load`.

        It never holds ``documents``: such a model cannot be updated.
        """
        model_files.save(self.stored(documents=documents), path)

    def stored(self, *, documents: bool = True) -> model_files.Stored:
        """What was learned, as a file holds it."""
        self._check_fitted()
        crf, buckets, reliability, trace = self._fitted
        arrays = self._annotators.arrays() | crf._asdict()
        arrays |= {"reliability": reliability, "summary": self.annotators_.table}
        arrays["buckets"] = buckets.astype(np.float64)
        meta = {
            "estimator": "CRFMA",
            "fit": self.meta_,
            "bounds": trace.bounds,
            "seconds": trace.seconds,
            "tags": {"scheme": self.tagset_.scheme.value, "labels": self.tagset_.labels},
            "annotators": self._names,
            "n_features": len(buckets),
        }
        return model_files.Stored(meta, arrays)

    @classmethod
    def loaded(cls, stored: model_files.Stored) -> Self:
        """From what :meth:`stored` gave."""
        meta, arrays = model_files.tagger_head(stored.meta), stored.arrays
        model = cls(**meta["fit"]["settings"])
        model.settings_ = {"method": model.method, **model._plain_settings()}
        model.meta_ = meta["fit"]
        model.tagset_ = TagSet(meta["tags"]["scheme"], tuple(meta["tags"]["labels"]))
        model._names = tuple(meta["annotators"])
        bounds = tuple(meta["bounds"])
        model.trace_ = loop.Trace(bounds, loop.StopReason(meta["fit"]["stopped"]), bounds[-1:], meta["seconds"])
        J, K = len(model.tagset_.labels), len(model._names)
        check_arrays(arrays, {"reliability": (K,)}, counts=True)
        F = meta["n_features"]
        check_arrays(arrays, {"weights": (F, J), "start": (J,), "transitions": (J, J)})
        check_arrays(arrays, {"buckets": (F,)}, counts=True)
        if arrays["buckets"].max(initial=0.0) >= BUCKETS:
            raise ValueError("array 'buckets' holds what is no feature")
        crf = Crf(*(arrays[name] for name in Crf._fields))
        model._fitted = _Fitted(crf, arrays["buckets"].astype(np.int32), arrays["reliability"], model.trace_)
        model.reliability_ = dict(zip(model._names, arrays["reliability"].tolist(), strict=True))
        model._annotators = ConfusionMatrix.of(AnnotatorPrior(model.tagset_, 1.0, 1.0), K).restored(arrays)
        model.annotators_ = AnnotatorSummaries.restored(
            model._names, arrays, model._annotators, model.tagset_.span_types
        )
        return model

    def _em(
        self,
        crowd: _Crowd,
        features: NDArray[np.int32],
        buckets: NDArray[np.int32],
        progress: ProgressCallback | None,
    ) -> _Fitted:
        began = time.perf_counter()
        J, encoded = len(crowd.tagset.labels), crowd.encoded
        votes = Chain(np.zeros(J), np.zeros((J, J)), np.zeros(J), True)
        everyone_alike = np.ones(len(encoded.annotators))
        weights, filled = crowd.expect(crowd.vote_scores(checked_threads(self.n_jobs)), votes, everyone_alike)
        reliability = crowd.reliability(weights.gamma)
        likelihoods: list[float] = []
        reason = loop.StopReason.MAX_PASSES
        while len(likelihoods) < self.max_iter and reason is not loop.StopReason.CONVERGED:
            crf = train(
                features,
                len(buckets),
                encoded.doc_start,
                *crowd.expected_labels(weights.answers, filled),
                l2=self.l2,
                iterations=self.iterations,
            )
            before = weights.gamma
            weights, filled = crowd.expect(crf.scores(features), crf.chain(), reliability)
            reliability = crowd.reliability(weights.gamma)
            likelihoods.append(weights.log_likelihood)
            if progress is not None:
                progress(loop.Progress(0, 1, len(likelihoods), self.max_iter, likelihoods[-1]))
            if np.abs(weights.gamma - before).sum() / 2 <= self.tol * encoded.n_docs:
                reason = loop.StopReason.CONVERGED
        trace = loop.Trace(tuple(likelihoods), reason, (likelihoods[-1],), time.perf_counter() - began)
        return _Fitted(crf, buckets, reliability, trace)

    def _decoded(self, engine: ThreadsEngine, features: NDArray[np.int32]) -> Decoded:
        crf = self._fitted.crf
        tables = Tables(np.zeros((0, len(self.tagset_.labels))), crf.scores(features))
        by_token = decode_of_tokens(self.decode) is Decode.TOKEN
        return engine.decode(tables, _valid(crf.chain(), self.tagset_), by_token=by_token)

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
            self.annotators_,
            trace,
            self.settings_,
            encoded.repaired,
            known=known,
        )

    def _plain_settings(self) -> dict[str, Any]:
        return {name: value for name, value in self.get_params().items() if name != "n_jobs"}

    def _check_settings(self) -> None:
        for name in ("max_iter", "iterations"):
            value = getattr(self, name)
            check_number(name, value, whole=True)
            if value < 1:
                raise SettingsError(f"{name} must be 1 or more, not {value}")
        for name in ("tol", "l2"):
            check_number(name, getattr(self, name))
            if not 0 <= getattr(self, name) < np.inf:
                raise SettingsError(f"{name} must be a number, 0 or more, not {getattr(self, name)}")
        decode_of_tokens(self.decode)
