"""Copies of one annotator: every two say nearly the same, and where nobody else marks anything they say it too.

One of them may be who the others were copied from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.choose.alike import ENOUGH, Pairs
from quorate.choose.silence import marks_of_others
from quorate.crowd.algebra import document_of, marked_spans, seen_pairs, without
from quorate.crowd.crowd import Crowd
from quorate.crowd.sharing import Sharing

__all__ = ["FEWEST_COPIES", "copies_of_one", "copies_unseen", "nearly_the_same"]

FEWEST_COPIES = 3
"""Of two who say nearly the same, nobody can tell which one erred."""
# What every two copies have in common at least, as a cosine. Of three people in two real crowds it is below 0.7, of
# noisy copies, of whose spans a tenth was changed, 0.8 and more, of variants of one rule up to 1.
_NEARLY_THE_SAME = 0.75
_MOST_ALIKE = 2000  # annotators of whom each is nearly the same as another: of more, copies are not looked for
# An original differs from what most of its copies say this many times as seldom as they do. Where a tenth of a copy's
# spans was changed, three of five copies lose the same span in one of a hundred; people whose mistakes are their own
# differ about as often as each other.
_AS_SELDOM = 4
_BY_CHANCE = 2  # spans more that it may differ in
_ERRORS, _LEAST_VARIANCE = 3.0, 0.01
# What others must have in common with an original. Beside one expert, simulated annotators of whom each finds half of
# what is true have 0.45; annotators with vague bounds, who would outvote a single voice, 0.25 at most.
_BORNE_OUT = 0.4
_LEAST_WITNESSES = 2
# How many times as much as is expected to be overlooked by all outsiders copies have alone: what one overlooks, others
# overlook more often than by chance. Of three good people in a real crowd it is less, of copies there 2.7 times.
_TIMES_AS_EXPECTED = 2.0
_KNOWN_TO_OTHERS = 0.25  # of a type that outsiders mark so many times as often as members, something can be told
_LEAST_OVERLOOKED = 0.01  # share of what others mark


def nearly_the_same(pairs: Pairs, K: int) -> NDArray[np.int64]:
    """``[K]`` Who has the same number as others, two or more, says nearly the same as each of them; −1 for nobody.

    ``pairs`` are of spans of all types.

    >>> one, other = np.array([0, 0, 1, 2]), np.array([1, 2, 2, 3])
    >>> cosine = np.array([0.9, 0.8, 0.85, 0.4])
    >>> nearly_the_same(Pairs(one, other, np.zeros(4, np.int64), cosine, np.full(4, 100.0)), 4).tolist()
    [0, 0, 0, -1]
    """
    near = pairs.where((pairs.spans >= ENOUGH) & (pairs.cosine >= _NEARLY_THE_SAME))
    number, sets = np.full(K, -1), 0
    for members in Sharing(near.one, near.other, near.cosine).groups(K):
        if not FEWEST_COPIES <= len(members) <= _MOST_ALIKE:
            continue
        place, here = np.array(members), near.within(members)
        one, other = np.searchsorted(place, here.one), np.searchsorted(place, here.other)
        apart = 1 - np.eye(len(place))
        apart[one, other] = apart[other, one] = np.maximum(1 - here.cosine, 0.0)
        found = _all_near(apart, 1 - _NEARLY_THE_SAME)
        for each in np.flatnonzero(np.bincount(found) >= FEWEST_COPIES).tolist():
            number[place[found == each]], sets = sets, sets + 1
    return number


def _all_near(apart: NDArray[np.float64], most: float) -> NDArray[np.int32]:
    """The number of everybody's set, in which no two are further apart, of sets that are as large as that allows."""
    from scipy.cluster.hierarchy import complete, fcluster  # takes a while, and is seldom needed
    from scipy.spatial.distance import squareform

    return np.asarray(fcluster(complete(squareform(apart)), most, criterion="distance"))


def copies_of_one(encoded: Crowd, pairs: Pairs, members: NDArray[np.int64]) -> list[int]:
    """Those of the members who are copies of one of them, each with mistakes of its own, and that one; perhaps nobody.

    Who they were copied from is hardly ever alone with what it marks or leaves out, and the others often are. What two
    copies have in common is what either has in common with the original; whoever has more in common with another is no
    copy. So it would be too with good annotators beside one who is nearly perfect; then it must do no harm if they are
    heard as one, and two others must bear out what they say. ``pairs`` are of spans of all types.

    >>> from quorate.choose.alike import in_common
    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.crowd.encode import encode
    >>> said = [{f"copy{who}": ("O" if n % 6 == who else "B-PER",) for who in range(4)} for n in range(60)]
    >>> others = {name: ("B-PER",) for name in ("first", "x", "y")}
    >>> corpus = Corpus([Document(str(n), ("Ada",), one | others) for n, one in enumerate(said)])
    >>> encoded = encode(corpus, corpus.tagset())
    >>> pairs = in_common(encoded, [None], 0.0)
    >>> copies_of_one(encoded, pairs, np.arange(5)), copies_of_one(encoded, pairs, np.arange(4))
    ([0, 1, 2, 3, 4], [])
    """
    alone = _alone(encoded, members)
    first = int(np.argmin(alone))
    if _AS_SELDOM * (alone[first] + _BY_CHANCE) > np.median(np.delete(alone, first)):
        return []
    here = pairs.within(members.tolist())
    one, other = np.searchsorted(members, here.one), np.searchsorted(members, here.other)
    common = np.eye(len(members))
    common[one, other] = common[other, one] = here.cosine
    error = np.sqrt(np.maximum(here.cosine * (1 - here.cosine), _LEAST_VARIANCE) / here.spans)
    more = here.cosine - common[first, one] * common[first, other] > _ERRORS * error
    more &= (one != first) & (other != first)
    kept = np.ones(len(members), np.bool_)
    kept[one[more]] = kept[other[more]] = False
    if kept.sum() < FEWEST_COPIES or not _are_borne_out(pairs, members[[first]], members[kept]):
        return []
    return [int(k) for k in members[kept]]


def copies_unseen(encoded: Crowd, pairs: Pairs, members: NDArray[np.int64]) -> list[int]:
    """Those of the members who say nearly the same also where nobody else marked anything; perhaps nobody.

    What is true is seldom overlooked by everybody else. So those who are right, each by themselves, agree on little
    that no outsider touches, and copies agree there as much as elsewhere. There must be clearly more of it than if
    all that most of them mark were true and overlooked as often as outsiders overlook what other outsiders mark. Types
    that outsiders hardly ever mark tell nothing.

    >>> from quorate.choose.alike import in_common
    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.crowd.encode import encode
    >>> copies = {f"copy{who}": ("B-PER", "O", "B-PER") for who in range(3)}
    >>> others = {name: ("B-PER", "O", "O") for name in ("ann", "bob")}
    >>> corpus = Corpus([Document(str(n), ("Ada", "in", "Oz"), copies | others) for n in range(60)])
    >>> encoded = encode(corpus, corpus.tagset())
    >>> copies_unseen(encoded, in_common(encoded, [None], 0.0), np.array([2, 3, 4]))
    [2, 3, 4]
    """
    if not _are_borne_out(pairs, members, members):
        return []
    unseen = _unseen(encoded, members)
    by_chance = unseen.expected + _ERRORS * np.sqrt(max(unseen.expected, 1.0))
    if unseen.spans < ENOUGH or unseen.agreed < max(by_chance, _TIMES_AS_EXPECTED * unseen.expected):
        return []
    kept = members[unseen.confirmed >= _NEARLY_THE_SAME * np.maximum(unseen.possible, 1)]
    return [int(k) for k in kept] if len(kept) >= FEWEST_COPIES else []


class _Unseen(NamedTuple):
    """What members mark where nobody else marks anything, in documents that two outsiders and two members saw.

    How many different ``spans`` that is, how many of them most members ``agreed`` on, and how many that would be if all
    that they agree on were true (``expected``). How often others ``confirmed`` what each member marks there, of how
    many that were ``possible``.
    """

    spans: int
    agreed: int
    expected: float
    confirmed: NDArray[np.int64]
    possible: NDArray[np.int64]


def _unseen(encoded: Crowd, members: NDArray[np.int64]) -> _Unseen:
    K, D, T = len(encoded.annotators), encoded.n_docs, len(encoded.tagset.types)
    is_member = np.isin(np.arange(K), members)
    document, who = seen_pairs(encoded)
    mine = is_member[who]
    said_by = np.bincount(document[mine], minlength=D)
    others = marks_of_others(without(encoded, is_member[encoded.cells.annotator][encoded.event_cell]))
    overlooks = np.log(np.maximum(1 - others.by_type, _LEAST_OVERLOOKED))
    by_all = np.stack([np.bincount(document[~mine], overlooks[who[~mine], t], minlength=D) for t in range(T)], axis=1)
    judged = (np.bincount(document[~mine], minlength=D) >= _LEAST_WITNESSES) & (said_by > 1)
    spans = marked_spans(encoded)
    of_member = is_member[spans.who]
    theirs = spans.where(~of_member).tokens_before(encoded.n_tokens)
    marks, of_others = (np.bincount(spans.kind[these], minlength=T) for these in (of_member, ~of_member))
    known = of_others * mine.sum() >= _KNOWN_TO_OTHERS * marks * (~mine).sum()
    spans = spans.where(of_member & known[spans.kind])
    spans = spans.where(judged[document_of(encoded, spans.start)])
    _, first, span = np.unique(spans.key(encoded.n_tokens, T), return_index=True, return_inverse=True)
    where, votes = document_of(encoded, spans.start[first]), np.bincount(span, minlength=len(first))
    alone, agreed = spans.where(first).share(theirs) == 0, 2 * votes > said_by[where]

    def of_each(count: NDArray[np.int64]) -> NDArray[np.int64]:
        """``[members]`` The sum over what each of them marks alone."""
        return np.bincount(spans.who, (alone * count)[span], minlength=K)[members].round().astype(np.int64)

    return _Unseen(
        int(alone.sum()),
        int((agreed & alone).sum()),
        float(np.exp(by_all[where[agreed], spans.kind[first[agreed]]]).sum()),
        of_each(votes - 1),
        of_each(said_by[where] - 1),
    )


def _are_borne_out(pairs: Pairs, some: NDArray[np.int64], members: NDArray[np.int64]) -> bool:
    """Whether enough outsiders have much in common with one of ``some``: then it does no harm if they are one."""
    alike = pairs.where((pairs.cosine >= _BORNE_OUT) & (pairs.spans >= ENOUGH))
    beside = np.concatenate([alike.other[np.isin(alike.one, some)], alike.one[np.isin(alike.other, some)]])
    return len(np.setdiff1d(beside, members)) >= _LEAST_WITNESSES


def _alone(encoded: Crowd, members: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many spans each of the members marks, or leaves out, against most of the others who saw the document."""
    K, D, T = len(encoded.annotators), encoded.n_docs, len(encoded.tagset.types)
    is_member = np.zeros(K, np.bool_)
    is_member[members] = True
    document, who = seen_pairs(encoded)
    document, who = document[is_member[who]], who[is_member[who]]
    others = np.bincount(document, minlength=D) - 1
    spans = marked_spans(encoded)
    spans = spans.where(is_member[spans.who])
    _, first, span = np.unique(spans.key(encoded.n_tokens, T), return_index=True, return_inverse=True)
    where, votes = document_of(encoded, spans.start[first]), np.bincount(span, minlength=len(first))
    expected = 2 * votes > others[where]  # of whoever did not mark it
    left_out = np.bincount(who, np.bincount(where[expected], minlength=D)[document], minlength=K)
    left_out -= np.bincount(spans.who, expected[span], minlength=K)
    marked = np.bincount(spans.who, (2 * (votes - 1) < others[where])[span], minlength=K)
    return np.asarray((left_out + marked)[members].round().astype(np.int64))
