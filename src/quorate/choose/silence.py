"""Sources that are silent: of a rule that knows twenty names, an ``O`` says nothing.

Someone's *coverage* is the share of what others marked, in documents that both saw, that they marked too, in whatever
way; the mean over types, as a rule may know one and be silent about the others. People mark most of it, rules little.
Whoever marks less than half is taken to be silent: in the votes that a fit starts from, their ``O`` counts c / (2 − c)
for a coverage of c, at which a span wins as soon as half as many marked it as could be expected to. From there on the
fit learns what an ``O`` is worth; it is the start that decides whether it ends where nothing is true.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.profiles import Profile
from quorate.encode.encoded import Cells, Encoded
from quorate.encode.sharing import Sharing
from quorate.infer.kernels.marked import add_coverage
from quorate.infer.marked import counted, said_in
from quorate.infer.start import FirstVotes, Start

__all__ = ["MOSTLY_THE_SAME", "Coverage", "coverage", "first_votes", "hardly_overlap", "mostly_silent", "silent_votes"]

Floats = NDArray[np.float64]
_SILENT = 0.5  # coverage below which an O is (partly) silence
_CLEARLY_SILENT = 0.25  # coverage of a rule: people with a weak recall have more
_BY_CHANCE = 1.1  # times the coverage of chance, which whoever marks at random does not reach
_HARDLY = 0.3  # median coverage: of four crowds of people 0.66 to 0.81, of a jury of models 0.34, of rules to 0.26
_ENOUGH = 40  # marks of others, below which nothing is told
_PRIOR = 5.0  # spans of the average annotator in everybody's coverage
_SMOOTHING = 0.1  # votes that every label has beforehand
_SMOOTHING_AMONG_SILENT = 0.02  # a lone mark must not drown in more
_NOTHING_SHARED = Sharing.of()
MOSTLY_THE_SAME = 0.5
"""How much of what two say they have in common, from which on they count as one in the coverage of others."""


class Coverage(NamedTuple):
    """Of every annotator ``[K]``: the ``share`` of what others marked that they marked too, mean over types; the share
    that ``chance`` would have them meet if they put their spans anywhere; and of how many marks of ``others`` that is.
    """

    share: Floats
    chance: Floats
    others: Floats

    @property
    def silent(self) -> NDArray[np.bool_]:
        """``[K]`` Who speaks as seldom as rules do: below a quarter or, where most of the crowd is so, below a half.

        Whoever marks at random meets no more than by chance, and is not silent; nor are those of whom little is known.
        """
        most = len(self.share) > 0 and float(np.median(self.share)) < _CLEARLY_SILENT
        few = self.share < (_SILENT if most else _CLEARLY_SILENT)
        return few & (self.share > _BY_CHANCE * self.chance) & (self.others >= _ENOUGH)


def coverage(encoded: Encoded, sharing: Sharing = _NOTHING_SHARED) -> Coverage:
    """How much of what others marked each annotator marked too; all of it in the plain scheme.

    Those who have most of what they say in common count as one: copies of somebody bear nobody out.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.encode.from_corpus import encode
    >>> both = ("B-PER", "O", "B-LOC")
    >>> tags = {"ann": both, "bob": both, "rule": ("B-PER", "O", "O")}
    >>> corpus = Corpus([Document(str(n), ("Ada", "left", "Rome"), tags) for n in range(50)])
    >>> coverage(encode(corpus, corpus.tagset())).share.round(1).tolist()
    [1.0, 1.0, 0.5]
    """
    K = len(encoded.annotators)
    if encoded.tagset.outside is None or not K:
        return Coverage(np.ones(K), np.zeros(K), np.zeros(K))
    said, T = said_in(encoded), len(encoded.tagset.types)
    team = np.arange(K)
    for members in sharing.at_least(MOSTLY_THE_SAME).groups(K):
        team[members] = members[0]
    met, total, own = counted(
        said, [(T, K), (T, K), (3, K)], lambda low, high, sums: add_coverage(said, team, low, high, *sums)
    )
    met, total = (np.ascontiguousarray(each.T) for each in (met, total))
    # Where hardly anybody saw what others marked, everybody is taken to speak up.
    usual = met.sum() / total.sum() if total.sum() >= _ENOUGH else 1.0
    share = ((met + _PRIOR * usual) / (total + _PRIOR))[:, total.sum(axis=0) > 0]
    everywhere = share.mean(axis=1) if share.shape[1] else np.full(K, usual)
    return Coverage(everywhere, _by_chance(*own), total.sum(axis=1))


def _by_chance(marks: Floats, length: Floats, tokens: Floats) -> Floats:
    """``[K]`` How likely a span is to be touched by one of someone's, wherever those lie among the ``tokens`` they saw.

    One of l tokens is touched by one of m that begins at any of l + m − 1 places; ``length`` is that of all of their
    ``marks`` together.
    """
    usual = length.sum() / marks.sum() if marks.sum() else 1.0
    return np.asarray(np.minimum((length + marks * (usual - 1)) / np.maximum(tokens, 1), 1.0))


def silent_votes(encoded: Encoded, profiles: Mapping[str, Profile], covered: Coverage | None = None) -> Floats:
    """``[K]`` How much an ``O`` of each counts in the first votes: 1 of those who speak up.

    What is ``covered`` is worked out from the corpus unless it is known.
    """
    c = (covered or coverage(encoded)).share
    told = [name in profiles and profiles[name].abstains for name in encoded.annotators]
    return np.where((c < _SILENT) | np.array(told, np.bool_), _of_silence(c), 1.0)


def _of_silence(covered: Floats | float) -> Floats:
    """How much an ``O`` counts of those who mark such a share of what others mark."""
    return np.asarray(covered / (2 - covered))


def first_votes(
    encoded: Encoded,
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
    weight = np.where(cells.label == encoded.tagset.outside, counts, 1.0)
    return FirstVotes(weight, _SMOOTHING_AMONG_SILENT if mostly_silent(of_silence) else _SMOOTHING)


def mostly_silent(of_silence: Floats) -> bool:
    """Whether most annotators are."""
    return bool(len(of_silence)) and float(np.median(of_silence)) < 1


def hardly_overlap(of_silence: Floats) -> bool:
    """Whether annotators mark so little of what others mark that those who are hidden tell nothing of the rest."""
    return bool(len(of_silence)) and float(np.median(of_silence)) < float(_of_silence(_HARDLY))
