"""Sources that are silent: of a rule that knows twenty names, an ``O`` says nothing.

Someone's *coverage* is the share of what others marked, in documents that both saw, that they marked too, in whatever
way; the mean over types, as a rule may know one and be silent about the others. People mark most of it, rules little.
Whoever marks less than half is taken to be silent: in the votes that a fit starts from, their ``O`` counts c / (2 − c)
for a coverage of c, at which a span wins as soon as half as many marked it as could be expected to; and beforehand they
are taken to leave out as much as they do. From there on the fit learns what an ``O`` is worth; it is the start that
decides whether it ends where nothing is true, and the prior whether those who have nothing to say outvote the one who
has. An ``O`` of whoever marks nothing where others mark much is worth nothing, and tells nothing of the crowd. A crowd
that has read everything and marks little of what others mark looks like rules, and is taken for them; so are taggers
that have read everything beside rules, where settings are chosen and no profile says who is a person or a rule.

Where a mark ends, though, a rule has spoken: among sources that hardly overlap, a token beside a mark that nobody
marked is no part of a span, unless its word is mostly marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.discontinuous import whole_label
from quorate.corpus.profiles import Believed, Kind, Profile
from quorate.crowd.algebra import document_of, seen_pairs, token_of, with_likeliest_labels
from quorate.crowd.crowd import Cells, Crowd
from quorate.crowd.sharing import Sharing
from quorate.model.kernels.marked import add_coverage
from quorate.model.marked import counted, said_in
from quorate.model.start import FirstVotes, Start

__all__ = [
    "MOSTLY_THE_SAME",
    "SPOKEN_FOR",
    "Coverage",
    "OfOthers",
    "Silence",
    "coverage",
    "first_votes",
    "hardly_meet",
    "hardly_overlap",
    "marks_of_others",
    "mostly_silent",
    "only_rules",
    "read_everything",
    "silent_votes",
]

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]
_SILENT = 0.5  # coverage below which an O is (partly) silence
_CLEARLY_SILENT = 0.25  # coverage of a rule: people with a weak recall have more
_BY_CHANCE = 1.1  # times the coverage of chance, which whoever marks at random does not reach
_HARDLY = 0.3  # median coverage: of four crowds of people 0.66 to 0.81, of a jury of models 0.34, of rules to 0.26
_SELDOM = 0.1  # of two sets of rules, the median is 0.03; of two others, of taggers and lists of names, 0.23
# The same where everybody has read everything, as rules do: those that know what others know have up to 0.38.
_HARDLY_EVERYWHERE = 0.4
_SOME = 0.2  # of those who mark anything: one of five or fewer; of many people, one may overlook most
_NEARLY_ALL = 0.9  # of all pairs of a document and an annotator
_ENOUGH = 40  # marks of others, below which nothing is told of anybody
_STANDARD_ERRORS = 2.0
_PRIOR = 5.0  # spans of the average annotator in everybody's coverage
_SMOOTHING = 0.1  # votes that every label has beforehand
_SMOOTHING_AMONG_SILENT = 0.02  # a lone mark must not drown in more; times the votes for O of a token, at most 1
_LEAST = 0.001  # votes of an O, however silent its annotator: where nobody marks anything, O must win
# Share of a word's occurrences that somebody marked, above which it may go on where marks end. On the dev splits of
# four sets of rules, and on 64 parts of them, a fifth does as well.
_MOSTLY = 0.5
# The least share of prior counts that marks of a rule have. In expectation a count of 0.1 is e^−10 already: with less,
# one belief would outweigh whatever others say. On the dev splits of four sets of rules 0.3 does as well.
_LEAST_SPOKEN = 0.1
_NOTHING_SHARED = Sharing.of()
SPOKEN_FOR = -1.0
"""In place of how much an ``O`` counts: of copies, another one says what they say, and they count nowhere."""
MOSTLY_THE_SAME = 0.5
"""How much of what two say they have in common, from which on they count as one in the coverage of others."""


class Coverage(NamedTuple):
    """Of every annotator ``[K]``: the ``share`` of what others marked that they marked too, mean over types; the share
    that ``chance`` would have them meet if they put their spans anywhere; of how many marks of ``others`` that is; and
    how many are their ``own``.
    """

    share: Floats
    chance: Floats
    others: Floats
    own: Floats

    @property
    def usual(self) -> float:
        """The median of those who mark anything, where whoever does no more than by chance counts as 1."""
        speak = (self.own > 0) & (self.others >= _ENOUGH)
        tells = self.share > _BY_CHANCE * self.chance
        return float(np.median(np.where(tells, self.share, 1.0)[speak])) if speak.any() else 1.0

    @property
    def silent(self) -> NDArray[np.bool_]:
        """``[K]`` Who speaks as seldom as rules do: below a quarter or, where most of the crowd is so, below a half.

        Whoever marks at random meets no more than by chance, and is not silent; nor are those of whom little is known.
        """
        known = self.share[self.others > 0]
        most = len(known) > 0 and float(np.median(known)) < _CLEARLY_SILENT
        return self._below(_SILENT if most else _CLEARLY_SILENT)

    @property
    def like_rules(self) -> NDArray[np.bool_]:
        """``[K]`` Who marks anything, and as little of what others mark as crowds of rules do."""
        return self._below(_HARDLY) & (self.own > 0)

    def _below(self, share: float) -> NDArray[np.bool_]:
        """``[K]`` Who marks less than this share, but more than by chance, where much was marked."""
        return (self.share < share) & (self.share > _BY_CHANCE * self.chance) & (self.others >= _ENOUGH)


def coverage(encoded: Crowd, sharing: Sharing = _NOTHING_SHARED) -> Coverage:
    """How much of what others marked each annotator marked too; all of it in the plain scheme.

    Those who have most of what they say in common count as one: copies of somebody bear nobody out.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.crowd.encode import encode
    >>> both = ("B-PER", "O", "B-LOC")
    >>> tags = {"ann": both, "bob": both, "rule": ("B-PER", "O", "O")}
    >>> corpus = Corpus([Document(str(n), ("Ada", "left", "Rome"), tags) for n in range(50)])
    >>> coverage(encode(corpus, corpus.tagset())).share.round(1).tolist()
    [1.0, 1.0, 0.5]
    """
    K = len(encoded.annotators)
    if encoded.tagset.outside is None or not K:
        return Coverage(np.ones(K), np.zeros(K), np.zeros(K), np.zeros(K))
    met, total, own = marks_of_others(encoded, sharing)
    usual = _usual_share(float(met.sum()), float(total.sum()))
    share = ((met + _PRIOR * usual) / (total + _PRIOR))[:, total.sum(axis=0) > 0]
    everywhere = share.mean(axis=1) if share.shape[1] else np.full(K, usual)
    return Coverage(everywhere, _by_chance(*own), total.sum(axis=1), own[0])


class OfOthers(NamedTuple):
    """``met [K, T]`` How many marks of others each annotator touches, of how many (``total``), type by type.

    ``own [3, K]``: how many marks everybody has, how many tokens these have, and how many tokens everybody saw.
    """

    met: Floats
    total: Floats
    own: Floats

    @property
    def by_type(self) -> Floats:
        """``[K, T]`` The share of others' marks that each touches; of few, as the others do. 0 of what nobody marks."""
        everybody = self.met.sum(axis=0) / np.maximum(self.total.sum(axis=0), 1.0)
        return np.asarray((self.met + _PRIOR * everybody) / (self.total + _PRIOR))


def marks_of_others(encoded: Crowd, sharing: Sharing = _NOTHING_SHARED) -> OfOthers:
    """What :func:`coverage` is made of."""
    said, K, T = said_in(encoded), len(encoded.annotators), len(encoded.tagset.types)
    team = np.arange(K)
    for members in sharing.at_least(MOSTLY_THE_SAME).groups(K):
        team[members] = members[0]
    met, total, own = counted(
        said, [(T, K), (T, K), (3, K)], lambda low, high, sums: add_coverage(said, team, low, high, *sums)
    )
    return OfOthers(np.ascontiguousarray(met.T), np.ascontiguousarray(total.T), own)


def _usual_share(met: float, total: float) -> float:
    """Of all that others marked, the share that was marked too; of a handful, as much as it may well be.

    That is the upper bound of Wilson's interval, two standard errors above. Nothing tells of nobody: all speak up.

    >>> [round(_usual_share(met, total), 2) for met, total in ((0, 0), (0, 4), (0, 20), (15, 20), (600, 1000))]
    [1.0, 0.5, 0.17, 0.89, 0.6]
    """
    if total >= _ENOUGH or not total:
        return met / total if total else 1.0
    share, doubt = met / total, _STANDARD_ERRORS**2 / total
    upper = share + doubt / 2 + np.sqrt(doubt * share * (1 - share) + doubt**2 / 4)
    return float(upper / (1 + doubt))


def _by_chance(marks: Floats, length: Floats, tokens: Floats) -> Floats:
    """``[K]`` How likely a span is to be touched by one of someone's, wherever those lie among the ``tokens`` they saw.

    One of l tokens is touched by one of m that begins at any of l + m − 1 places; ``length`` is that of all of their
    ``marks`` together.
    """
    usual = length.sum() / marks.sum() if marks.sum() else 1.0
    return np.asarray(np.minimum((length + marks * (usual - 1)) / np.maximum(tokens, 1), 1.0))


def silent_votes(
    encoded: Crowd,
    profiles: Mapping[str, Profile],
    covered: Coverage | None = None,
    *,
    beside_rules: bool = False,
) -> Floats:
    """``[K]`` How much an ``O`` of each counts in the first votes: 1 of those who speak up, 0 of those who mark nothing
    where others marked much, :data:`SPOKEN_FOR` of those who said nothing at all.

    What is ``covered`` is worked out from the corpus unless it is known. Whoever is declared to abstain is taken to
    speak as seldom as rules do: a rule may know all that another one does, and look as if it spoke up. So are those who
    are silent in a crowd that looks like rules: it has read everything, and marks little of what others mark. And where
    some who have read everything speak as seldom as rules do, so are all ``beside_rules``, unless profiles say who they
    are: taggers that run beside rules overlap as people do.
    """
    if encoded.tagset.outside is None:
        return np.ones(len(encoded.annotators))
    covered = covered or coverage(encoded)
    told = np.array([name in profiles and profiles[name].abstains for name in encoded.annotators], np.bool_)
    said = np.bincount(seen_pairs(encoded)[1], minlength=len(told)) > 0
    # Rules know some of several types; of one type, a jury of models looks the same.
    if len({whole_label(kind) for kind in encoded.tagset.types}) > 1 and read_everything(encoded):
        if covered.usual < _HARDLY_EVERYWHERE:
            told |= covered.share < _SILENT
        if beside_rules and _run_beside_rules(encoded, profiles, covered, _counted(covered, told, said)):
            told[:] = True
    return _counted(covered, told, said)


def _run_beside_rules(encoded: Crowd, profiles: Mapping[str, Profile], covered: Coverage, of_silence: Floats) -> bool:
    """Whether some speak as seldom as rules do in a crowd that does not look like rules, and no profile says otherwise.

    A profile of a model says nothing: some formats make one.
    """
    told = any(name in profiles and profiles[name].kind is not Kind.MODEL for name in encoded.annotators)
    speak = int((covered.own > 0).sum())
    return not told and covered.like_rules.sum() >= max(_SOME * speak, 1) and not hardly_overlap(of_silence)


def only_rules(encoded: Crowd, profiles: Mapping[str, Profile], covered: Coverage) -> bool:
    """Whether annotators hardly overlap by themselves, not because they are taken for what others are."""
    return hardly_overlap(silent_votes(encoded, profiles, covered))


def _counted(covered: Coverage, told: NDArray[np.bool_], said: NDArray[np.bool_]) -> Floats:
    """What an ``O`` of each counts, with those who are ``told`` to speak as seldom as rules do."""
    c = np.where(told, np.minimum(covered.share, _CLEARLY_SILENT), covered.share)
    counts = np.where(c < _SILENT, np.maximum(_of_silence(c), _LEAST), 1.0)
    counts = np.where((covered.own == 0) & (covered.others >= _ENOUGH), 0.0, counts)
    return np.where(said, counts, SPOKEN_FOR)


def read_everything(encoded: Crowd) -> bool:
    """Whether nearly everybody has labelled nearly every document, as rules and models do.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.crowd.encode import encode
    >>> of_two, of_one = {"ann": ("B-X",), "bob": ("O",)}, {"bob": ("O",)}
    >>> corpus = Corpus([Document("1", ("Ada",), of_two), Document("2", ("sang",), of_one)])
    >>> read_everything(encode(corpus, corpus.tagset()))
    False
    """
    document, who = seen_pairs(encoded)
    return len(who) >= _NEARLY_ALL * len(np.unique(document)) * len(np.unique(who))


def _of_silence(covered: Floats | float) -> Floats:
    """How much an ``O`` counts of those who mark such a share of what others mark."""
    return np.asarray(covered / (2 - covered))


def first_votes(
    encoded: Crowd,
    profiles: Mapping[str, Profile],
    start: Start,
    *,
    cells: Cells | None = None,
    of_silence: Floats | None = None,
) -> FirstVotes | None:
    """How votes count in a start by coverage; ``None`` for another start.

    ``cells`` are the corpus's own unless given, ``of_silence`` is worked out from the corpus unless it is known.
    """
    if start is not Start.COVERAGE:
        return None
    cells = encoded.cells if cells is None else cells
    of_silence = silent_votes(encoded, profiles) if of_silence is None else of_silence
    strangers = np.ones(max(cells.n_annotators - len(of_silence), 0))  # a tagger, say, speaks up
    counts = np.concatenate([of_silence, strangers])[cells.annotator]
    weight = np.where(cells.label == encoded.tagset.outside, np.maximum(counts, _LEAST), 1.0)
    if not mostly_silent(of_silence):
        return FirstVotes(weight, _SMOOTHING)
    heard = np.concatenate([of_silence, strangers])[encoded.cells.annotator]
    of_outside = (encoded.cells.label == encoded.tagset.outside) * np.maximum(heard, _LEAST)
    votes = float(encoded.cell_weights() @ of_outside) / max(encoded.n_tokens, 1)
    return FirstVotes(weight, _SMOOTHING_AMONG_SILENT * min(votes, 1.0))


def mostly_silent(of_silence: Floats) -> bool:
    """Whether most annotators are."""
    return bool(len(of_silence)) and _usual(of_silence) < 1


def hardly_overlap(of_silence: Floats) -> bool:
    """Whether annotators mark so little of what others mark that those who are hidden tell nothing of the rest."""
    return bool(len(of_silence)) and _usual(of_silence) < float(_of_silence(_HARDLY))


def hardly_meet(of_silence: Floats) -> bool:
    """Whether hardly anything that one marks is marked by another too."""
    return bool(len(of_silence)) and _usual(of_silence) < float(_of_silence(_SELDOM))


def _usual(of_silence: Floats) -> float:
    """The median of those who mark anything."""
    heard = of_silence[of_silence > 0]
    return float(np.median(heard)) if len(heard) else 0.0


class Silence(NamedTuple):
    """What a fit, and whatever goes on from it, is told of silence.

    ``of_silence`` is how much an ``O`` of each annotator counts in the first votes. Where they hardly overlap, spans
    end with marks, except before words that ``go_on``: those that are mostly marked. Elsewhere (``None``) spans may end
    anywhere.
    """

    of_silence: tuple[float, ...] = ()
    go_on: frozenset[str] | None = None

    @classmethod
    def of(cls, encoded: Crowd, of_silence: Floats) -> Self:
        """In a corpus whose annotators' ``O`` :func:`silent_votes` found to count so much."""
        plain, outside = tuple(of_silence.tolist()), encoded.tagset.outside
        if outside is None or not hardly_overlap(of_silence):
            return cls(plain)
        V, marked, seen = len(encoded.words), np.zeros(encoded.n_tokens, np.bool_), np.diff(encoded.event_start) > 0
        marked[_marks(encoded, outside)[1]] = True
        often = _times(encoded.word[marked], V) > _MOSTLY * _times(encoded.word[seen], V)
        return cls(plain, frozenset(encoded.words[w] for w in np.flatnonzero(often).tolist()))

    def believed(self, names: Sequence[str], profiles: Mapping[str, Profile]) -> Believed:
        """What is believed of annotators beforehand: those who are silent are taken to leave out what they do.

        Where they hardly overlap, marks of theirs are rare beforehand, whether they are true or not.

        >>> Silence((1.0, 0.25)).believed(["ann", "rule", "eva"], {"eva": Profile.of(kind="expert")})
        Believed(trust=(1.0, 1.0, 10.0), marks=(1.0, 0.4), speaks=None)
        """
        counts = np.array(self.of_silence)
        silent = (counts >= 0) & (counts < 1)
        marks = np.where(silent, 2 * counts / (1 + np.maximum(counts, 0.0)), 1.0)
        speaks = np.ones(0)
        if self.go_on is not None:  # whoever marks nothing at all is told of by the marks alone
            speaks = np.where(marks > 0, np.maximum(marks, _LEAST_SPOKEN), 1.0)
        return Believed.of(names, profiles, marks.tolist(), speaks.tolist())

    def closed(self, encoded: Crowd, known: Labels | None) -> Labels | None:
        """``[N]`` The ``known`` labels and, where spans end with marks, ``O`` beside them; −1 where there is neither.

        Whoever marked the token beside it must have said ``O`` of it, and nobody anything else. Beside a known label
        nothing is closed, as its span may go on.

        >>> from quorate.corpus.records import Corpus, Document
        >>> from quorate.crowd.encode import encode
        >>> corpus = Corpus([Document("1", ("Ada", "(", "1815", ")"), {"rule": ("B-PER", "O", "O", "O")})])
        >>> Silence((0.1,), frozenset()).closed(encode(corpus, corpus.tagset()), None).tolist()
        [-1, 0, -1, -1]
        """
        outside, N = encoded.tagset.outside, encoded.n_tokens
        if self.go_on is None or outside is None or not N:
            return known
        said, token, who = _marks(encoded, outside)
        marked = np.zeros(N, np.bool_)
        marked[token] = True
        goes_on = np.array([word in self.go_on for word in encoded.words] + [False])
        may_end = ~marked & ~goes_on[encoded.word]
        document = document_of(encoded, np.arange(N))
        ends = np.zeros(N, np.bool_)
        for step in (-1, 1):
            beside = np.clip(token + step, 0, N - 1)
            asked = (document[beside] == document[token]) & may_end[beside]
            ends[_who_spoke(said, beside[asked], who[asked])] = True
        if known is not None:
            told = known >= 0
            ends[1:] &= ~told[:-1]
            ends[:-1] &= ~told[1:]
        labels = np.where(ends, outside, -1).astype(np.int32)
        return labels if known is None else np.where(known >= 0, known, labels)


def _marks(encoded: Crowd, outside: int) -> tuple[Crowd, NDArray[np.int64], NDArray[np.int64]]:
    """The corpus, in which of soft labels the likeliest alone is left, and the token and annotator of every mark."""
    if encoded.event_weight is not None:
        who = encoded.cells.annotator[encoded.event_cell]
        again = np.flatnonzero(np.diff(who) == 0) + 1
        if not np.isin(again, encoded.event_start).all():  # somebody said several labels of one token
            encoded = with_likeliest_labels(encoded)
    event = np.flatnonzero(encoded.cells.label[encoded.event_cell] != outside)
    return encoded, token_of(encoded, event), encoded.cells.annotator[encoded.event_cell[event]]


def _who_spoke(encoded: Crowd, token: NDArray[np.int64], who: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those of the tokens of which the annotator beside them said something."""
    first, last = encoded.event_start[token], encoded.event_start[token + 1]
    which = np.repeat(np.arange(len(token)), last - first)
    event = np.arange(len(which)) - np.repeat(np.cumsum(last - first) - last, last - first)
    spoke = encoded.cells.annotator[encoded.event_cell[event]] == who[which]
    return np.asarray(token[which[spoke]])


def _times(word: NDArray[np.integer], n_words: int) -> NDArray[np.int64]:
    """``[V]`` How often each word is among these, of which some may not be in the vocabulary."""
    return np.bincount(word, minlength=n_words + 1)[:n_words]
