"""Sources that abstain: of a rule that knows twenty names, an ``O`` mostly means that it has nothing to say.

Two facts tell a crowd of rules from people, systems and models: nearly every source has read nearly everything, and
the median source marks less than a quarter of what others mark; of fewer than 40 marks in all, nothing is concluded. A
profile can also say that somebody abstains.

The *coverage* c of a source is the share of others' marks that it touches. Among sources that abstain an ``O`` counts
c / (2 − c) in the votes that a fit begins with, so that a mark wins as soon as half of those vote for it who would be
expected to; and beforehand a share of 1 − c of all that a source says is taken for ``O``, whatever is true.

Where its own mark ends, though, a source that abstains has decided: the tokens beside it, if nobody marked them and
their words are not mostly marked, are labelled ``O`` by one more annotator, :data:`ENDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.profiles import Profile
from quorate.crowd.algebra import document_of, seen_pairs, token_of, with_annotator, with_likeliest_labels
from quorate.crowd.crowd import AnnotatorPriors, Crowd
from quorate.crowd.kernels import add_coverage
from quorate.crowd.marked import counted, label_events
from quorate.crowd.together import ENOUGH
from quorate.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Labels = NDArray[np.int32]

ENDS = "(ends of marks)"
"""The annotator that says where marks of sources that abstain end."""
_NEARLY_ALL = 0.9  # of all pairs of a document and a source
_LITTLE = 0.25  # median coverage, below which sources that have read everything abstain
_MOST = 0.999  # coverage of a source that abstains, so that it differs from one that does not
_PRIOR = 5.0  # marks of the average source in everybody's coverage
_MOSTLY = 0.5  # share of a word's occurrences that somebody marked, above which a span may go on with it


class Coverage(NamedTuple):
    """Of every annotator ``[K]`` the ``share`` of others' marks that they touch (mean over types), and their ``marks``.

    Who marks little compared with others is drawn towards the crowd's mean.
    """

    share: Floats
    marks: Floats


def coverage(crowd: Crowd) -> Coverage:
    """How much of what others marked, where both looked, each annotator marked too; all of it in the plain scheme.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.crowd.encode import encode
    >>> both = ("B-PER", "O", "B-LOC")
    >>> tags = {"ann": both, "bob": both, "rule": ("B-PER", "O", "O")}
    >>> corpus = Corpus([Document(str(n), ("Ada", "left", "Rome"), tags) for n in range(50)])
    >>> coverage(encode(corpus, corpus.tagset())).share.round(1).tolist()
    [1.0, 1.0, 0.5]
    """
    K, T = len(crowd.annotators), len(crowd.tagset.types)
    if crowd.tagset.outside is None or not K:
        return Coverage(np.ones(K), np.zeros(K))
    events, alone = label_events(crowd), np.arange(K)
    met, total, own = counted(
        events, [(T, K), (T, K), (3, K)], lambda low, high, sums: add_coverage(events, alone, low, high, *sums)
    )
    usual = met.sum() / total.sum() if total.sum() else 1.0
    share = ((met + _PRIOR * usual) / (total + _PRIOR))[total.sum(axis=1) > 0]
    return Coverage(share.mean(axis=0) if len(share) else np.full(K, usual), own[0])


def account_for_abstaining(crowd: Crowd) -> Crowd:
    """The crowd with the coverage of those who abstain, and one more annotator who says where their marks end."""
    if crowd.tagset.outside is None:
        return crowd
    declared = np.array([crowd.profiles.get(name, Profile()).abstains for name in crowd.annotators], np.bool_)
    everything = _read_everything(crowd)
    if not everything and not declared.any():
        return crowd
    found = coverage(crowd)
    marks = found.marks > 0
    if everything and found.marks.sum() >= ENOUGH and np.median(found.share[marks]) < _LITTLE:
        share = np.minimum(found.share, _MOST)
    elif declared.any():
        share = np.where(declared, np.minimum(found.share, _LITTLE), 1.0)
    else:
        return crowd
    return crowd.noting(Abstaining(tuple(share.tolist()), _words_that_go_on(crowd)))


class Abstaining(NamedTuple):
    """Who abstains, by ``coverage`` below 1, and the words that are mostly marked, so that a span may ``go_on``."""

    coverage: tuple[float, ...]
    go_on: frozenset[str]

    def applied(self, crowd: Crowd) -> Crowd:
        """With this coverage and, beside marks of those who abstain, the labels of :data:`ENDS`."""
        if ENDS in crowd.annotators and (crowd.cells.annotator == crowd.annotators.index(ENDS)).any():
            raise InputError(f"an annotator is called {ENDS!r}, as a helper of the fit is (rename it)")
        priors = AnnotatorPriors(coverage=self.coverage)
        ends = self._ends(crowd, priors.abstains(len(crowd.annotators)))
        with_ends = with_annotator(crowd, ENDS, ends)
        share = priors.coverage_of(len(with_ends.annotators))
        share[with_ends.annotators.index(ENDS)] = 1.0
        return replace(with_ends, coverage=share)

    @property
    def merges(self) -> bool:
        """It does not."""
        return False

    @property
    def adds(self) -> tuple[str, ...]:
        """The annotator that says where marks end."""
        return (ENDS,)

    def plain(self) -> dict[str, Any]:
        """As plain values, for a file."""
        return {"coverage": list(self.coverage), "go_on": sorted(self.go_on)}

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Self:
        """What :meth:`plain` gave."""
        return cls(tuple(map(float, plain["coverage"])), frozenset(map(str, plain["go_on"])))

    def dependent(self, document: Integers, who: Integers) -> tuple[Integers, Integers]:
        """Nobody: ends of marks are found anew of what is left."""
        return document[:0], who[:0]

    def _ends(self, crowd: Crowd, abstains: NDArray[np.bool_]) -> Labels:
        """``[N]`` ``O`` beside a mark of a source that abstains and saw that token, if nobody marked it; −1 elsewhere.

        >>> from quorate.corpus.records import Corpus, Document
        >>> from quorate.crowd.encode import encode
        >>> corpus = Corpus([Document("1", ("Ada", "(", "1815", ")"), {"rule": ("B-PER", "O", "O", "O")})])
        >>> Abstaining((0.1,), frozenset())._ends(encode(corpus, corpus.tagset()), np.array([True])).tolist()
        [-1, 0, -1, -1]
        """
        N = crowd.n_tokens
        events, token, who = _marks(crowd)
        marked = np.zeros(N, np.bool_)
        marked[token] = True
        goes_on = np.array([word in self.go_on for word in crowd.words] + [False])
        may_end = ~marked & ~goes_on[crowd.word]
        document = document_of(crowd, np.arange(N))
        ends = np.full(N, -1, np.int32)
        token, who = token[abstains[who]], who[abstains[who]]
        for step in (-1, 1):
            beside = np.clip(token + step, 0, max(N - 1, 0))
            asked = (document[beside] == document[token]) & may_end[beside]
            ends[_seen_by(events, beside[asked], who[asked])] = crowd.tagset.outside or 0
        return ends


def _read_everything(crowd: Crowd) -> bool:
    """Whether nearly everybody has labelled nearly every document, as rules and models do."""
    document, who = seen_pairs(crowd)
    return len(who) >= _NEARLY_ALL * len(np.unique(document)) * len(np.unique(who))


def _words_that_go_on(crowd: Crowd) -> frozenset[str]:
    V, marked, seen = len(crowd.words), np.zeros(crowd.n_tokens, np.bool_), np.diff(crowd.event_start) > 0
    marked[_marks(crowd)[1]] = True
    often = _times(crowd.word[marked], V) > _MOSTLY * _times(crowd.word[seen], V)
    return frozenset(crowd.words[w] for w in np.flatnonzero(often).tolist())


def _marks(crowd: Crowd) -> tuple[Crowd, Integers, Integers]:
    """The crowd, of whose soft labels the likeliest alone are left, and the token and annotator of every mark."""
    crowd = with_likeliest_labels(crowd)
    event = np.flatnonzero(crowd.cells.label[crowd.event_cell] != crowd.tagset.outside)
    return crowd, token_of(crowd, event), crowd.cells.annotator[crowd.event_cell[event]]


def _seen_by(crowd: Crowd, token: Integers, who: Integers) -> Integers:
    """Those of the tokens that the annotator beside them labelled."""
    first, last = crowd.event_start[token], crowd.event_start[token + 1]
    which = np.repeat(np.arange(len(token)), last - first)
    event = np.arange(len(which)) - np.repeat(np.cumsum(last - first) - last, last - first)
    labelled = crowd.cells.annotator[crowd.event_cell[event]] == who[which]
    return np.asarray(token[which[labelled]])


def _times(word: NDArray[np.integer], n_words: int) -> Integers:
    """``[V]`` How often each word is among these, of which some may not be in the vocabulary."""
    return np.bincount(word, minlength=n_words + 1)[:n_words]
