"""Copies of one annotator: every two say nearly the same, and one of them may be who the others were copied from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.choose.alike import ENOUGH, Pairs
from quorate.encode.algebra import document_of, marked_spans, seen_pairs
from quorate.encode.encoded import Encoded
from quorate.encode.sharing import Sharing

__all__ = ["FEWEST_COPIES", "copies_of_one", "nearly_the_same"]

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


def copies_of_one(encoded: Encoded, pairs: Pairs, members: NDArray[np.int64]) -> list[int]:
    """Those of the members who are copies of one of them, each with mistakes of its own, and that one; perhaps nobody.

    Who they were copied from is hardly ever alone with what it marks or leaves out, and the others often are. What two
    copies have in common is what either has in common with the original; whoever has more in common with another is no
    copy. So it would be too with good annotators beside one who is nearly perfect; then it must do no harm if they are
    heard as one, and two others must bear out what they say. ``pairs`` are of spans of all types.

    >>> from quorate.choose.alike import in_common
    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.encode.from_corpus import encode
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
    beside = pairs.where((pairs.one == members[first]) | (pairs.other == members[first]))
    beside = beside.where((beside.cosine >= _BORNE_OUT) & (beside.spans >= ENOUGH))
    here = pairs.within(members.tolist())
    one, other = np.searchsorted(members, here.one), np.searchsorted(members, here.other)
    common = np.eye(len(members))
    common[one, other] = common[other, one] = here.cosine
    error = np.sqrt(np.maximum(here.cosine * (1 - here.cosine), _LEAST_VARIANCE) / here.spans)
    more = here.cosine - common[first, one] * common[first, other] > _ERRORS * error
    more &= (one != first) & (other != first)
    kept = np.ones(len(members), np.bool_)
    kept[one[more]] = kept[other[more]] = False
    is_borne_out = (~np.isin(np.concatenate([beside.one, beside.other]), members[kept])).sum() >= _LEAST_WITNESSES
    return members[kept].tolist() if kept.sum() >= FEWEST_COPIES and is_borne_out else []


def _alone(encoded: Encoded, members: NDArray[np.int64]) -> NDArray[np.int64]:
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
