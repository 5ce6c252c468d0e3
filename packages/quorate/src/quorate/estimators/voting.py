"""Votes as estimators: the majority on tokens, of those who speak, or on spans; oracles that follow one person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from quorate.corpus.records import Corpus
from quorate.corpus.tags import Invalid
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode_known
from quorate.errors import InputError
from quorate.estimators import options
from quorate.estimators.base import Estimator, ProgressCallback, checked_threads, meta_of
from quorate.model.prepared import Known, crowd_of
from quorate.model.settings import Ties, check_number, choice, decode_of_tokens, scheme_named
from quorate.model.votes import Votes, majority, one_worker_a_document, silent_majority, span_majority
from quorate.result.annotators import summarise
from quorate.result.result import Result


class MajorityVote(Estimator):
    """A vote on every token. ``ties`` is ``entity-first``, ``outside-first``, or ``random`` by ``random_state``.

    t_n = argmax_j Σ_k [c_nk = j]. Sheng, Provost and Ipeirotis, *Get Another Label?*, KDD 2008, say when it is enough.

    >>> import quorate
    >>> MajorityVote().fit(quorate.sample()).result_[0].tags[:4]
    ['O', 'O', 'O', 'O']
    """

    method = "mv"

    def __init__(
        self,
        ties: options.TiesName = "entity-first",
        *,
        random_state: int = 0,
        decode: options.TokenDecodeName = "sequence",
        invalid: options.InvalidName = "repair",
        scheme: options.SchemeName | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.ties, self.random_state, self.decode, self.invalid = ties, random_state, decode, invalid
        self.scheme, self.n_jobs = scheme, n_jobs

    def fit(self, corpus: Corpus, *, known: Known = None, progress: ProgressCallback | None = None) -> Self:
        """Count the votes; returns self."""
        vote, invalid = self._vote(), choice(Invalid, "invalid", self.invalid)
        encoded = crowd_of(corpus, scheme_named(self.scheme), invalid, known)
        votes = vote(corpus, encoded)
        self.tagset_ = encoded.tagset
        self.annotators_ = summarise(encoded, votes.decoded.cells, votes.annotators, votes.decoded)
        settings = {name: value for name, value in self.get_params().items() if name != "n_jobs"}
        self.settings_ = {"method": self.method, **settings}
        self.result_ = Result(
            self,
            corpus,
            self.tagset_,
            encoded.doc_start,
            votes.decoded,
            self.annotators_,
            None,
            self.settings_,
            encoded.repaired,
            known=encoded.known,
        )
        self.meta_ = {"method": self.method, **meta_of(corpus, encoded, encoded.known, settings)}
        return self

    def combine(self, corpus: Corpus) -> Result:
        """The vote on other documents: nothing carries over."""
        self._check_fitted()
        return type(self)(**self.get_params()).fit(corpus).result_

    def _vote(self) -> Callable[[Corpus, Crowd], Votes]:
        """How votes are counted, once the parameters have been checked."""
        check_number("random_state", self.random_state, whole=True)
        ties, decode = choice(Ties, "ties", self.ties), decode_of_tokens(self.decode)
        threads = checked_threads(self.n_jobs)

        def vote(corpus: Corpus, crowd: Crowd) -> Votes:
            return majority(
                crowd,
                voters=self._voters(corpus, crowd),
                ties=ties,
                seed=self.random_state,
                decode=decode,
                threads=threads,
            )

        return vote

    def _voters(self, corpus: Corpus, crowd: Crowd) -> Crowd | None:
        """The corpus with weights for those whose votes count; ``None``: everybody's do."""
        return None


class AbstainVote(MajorityVote):
    """A vote on every token in which ``O`` abstains: of those who gave it another label, most decide.

    t_n = argmax_{j≠O} Σ_k [c_nk = j], and ``O`` where the sum is 0 for all j; p(t_n = j) is the share among those who
    did not abstain. In the plain scheme it is the vote on tokens. So votes are counted where annotators are labelling
    rules, in Zhang, Yu, Li, Wang, Yang, Yang and Ratner, *WRENCH: A Comprehensive Benchmark for Weak Supervision*,
    NeurIPS 2021.

    >>> from quorate import Corpus, Document
    >>> rules = {"names": ("B-PER", "O", "O"), "towns": ("O", "O", "B-LOC"), "dates": ("O", "O", "O")}
    >>> AbstainVote().fit(Corpus([Document("1", ("Ada", "left", "Rome"), rules)])).result_[0].tags
    ['B-PER', 'O', 'B-LOC']
    """

    method = "mv-abstain"

    def __init__(
        self,
        *,
        decode: options.TokenDecodeName = "sequence",
        invalid: options.InvalidName = "repair",
        scheme: options.SchemeName | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.decode, self.invalid, self.scheme, self.n_jobs = decode, invalid, scheme, n_jobs

    def _vote(self) -> Callable[[Corpus, Crowd], Votes]:
        """The vote of those who do not abstain."""
        decode, threads = decode_of_tokens(self.decode), checked_threads(self.n_jobs)
        return lambda _, crowd: silent_majority(crowd, decode=decode, threads=threads)


class SpanVote(MajorityVote):
    """A vote on every span: it is given if at least half of those who saw all its tokens marked exactly it.

    T = argmax_T Σ_{σ∈T} v_σ over sets of spans that do not overlap and have v_σ ≥ n_σ / 2, where v_σ of the n_σ who saw
    span σ marked it; of sets with as many votes, that with the earliest, then longest span. p(σ) = v_σ / n_σ. In the
    plain scheme it is the vote on tokens. Rodrigues, Pereira and Ribeiro, *Sequence Labeling with Multiple Annotators*,
    Machine Learning 95, 2014, vote so (MVseg).

    >>> import quorate
    >>> SpanVote().fit(quorate.sample()).result_[0].spans[0].sure > 0.5
    True
    """

    method = "span-vote"

    def __init__(
        self,
        *,
        invalid: options.InvalidName = "repair",
        scheme: options.SchemeName | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.invalid, self.scheme, self.n_jobs = invalid, scheme, n_jobs

    def _vote(self) -> Callable[[Corpus, Crowd], Votes]:
        """The vote on spans."""
        threads = checked_threads(self.n_jobs)
        return lambda _, crowd: span_majority(crowd, threads=threads)


class BestWorker(MajorityVote):
    """An oracle: in each document, of those who saw it, the annotator with the highest token F1 against all gold.

    t_d = c_dk, k = argmax_k F1(c_dk, gold_d). A baseline of Simpson and Gurevych, EMNLP-IJCNLP 2019.

    >>> import quorate
    >>> best = BestWorker().fit(quorate.sample()).result_
    >>> quorate.score.strict(best.tags, [d.gold for d in quorate.sample()]).f1 > 0.8
    True
    """

    method = "best-worker"
    _best = True

    def _voters(self, corpus: Corpus, crowd: Crowd) -> Crowd | None:
        """One annotator's votes count in each document with gold."""
        gold = {d.id: d.gold for d in corpus if d.gold is not None}
        if not gold:
            raise InputError(f"method {self.method!r} needs gold to know whom to follow, and no document has any")
        index = crowd.tagset.index
        known = {name: tuple(tag if tag in index else None for tag in tags) for name, tags in gold.items()}
        codes = encode_known(corpus, crowd.tagset, known, Invalid.REPAIR)
        return one_worker_a_document(crowd, codes, best=self._best)


class WorstWorker(BestWorker):
    """An oracle: in each document, of those who saw it, the annotator with the lowest token F1 against all gold.

    t_d = c_dk, k = argmin_k F1(c_dk, gold_d). A baseline of Simpson and Gurevych, EMNLP-IJCNLP 2019.

    >>> import quorate
    >>> worst = WorstWorker().fit(quorate.sample()).result_
    >>> quorate.score.strict(worst.tags, [d.gold for d in quorate.sample()]).f1 < 0.3
    True
    """

    method = "worst-worker"
    _best = False
