"""Documents in which the text allows two readings: which words, and what annotators say of them."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from quorate.corpus.records import Corpus, Document, hard_tags
from quorate.corpus.schemes import Invalid
from quorate.crowd.encode import encode
from quorate.result.ambiguity import ambiguity_of

_LIKELY = 0.5


class TwoReadings(NamedTuple):
    """A word, its place among the tokens, the probability that it allows two readings, and how many gave each label."""

    place: int
    word: str
    probability: float
    given: dict[str, int]


class AmbiguousDocument(NamedTuple):
    """A document, how many of its tokens allow two readings, as expected, and those that probably do."""

    id: str
    tokens: float
    words: list[TwoReadings]


def most_ambiguous(corpus: Corpus, n: int) -> list[AmbiguousDocument]:
    """The ``n`` documents in which most tokens allow two readings, those without a likely one left out.

    >>> from quorate import Corpus, Document
    >>> tags = {f"a{k}": ("B-X" if k % 2 else "O", "B-X", "O") for k in range(8)}
    >>> crowd = Corpus(Document(str(d), ("Bath", "Rome", "is"), tags) for d in range(20))
    >>> found = most_ambiguous(crowd, 3)
    >>> len(found), [word.word for word in found[0].words], found[0].words[0].given
    (3, ['Bath'], {'B-X': 4, 'O': 4})
    """
    ambiguity = ambiguity_of(encode(corpus, corpus.tagset(), invalid=Invalid.REPAIR))
    found: list[AmbiguousDocument] = []
    for d in np.argsort(-ambiguity.documents, kind="stable").tolist():
        words = _words(corpus[d], ambiguity.of(d))
        if len(found) == n:
            break
        if words:
            found.append(AmbiguousDocument(corpus[d].id, float(ambiguity.documents[d]), words))
    return found


def _words(document: Document, probability: np.ndarray) -> list[TwoReadings]:
    labels = [hard_tags(tags) for tags in document.annotations.values()]
    return [
        TwoReadings(place, document.tokens[place], float(probability[place]), _given(place, labels))
        for place in np.flatnonzero(probability >= _LIKELY).tolist()
    ]


def _given(place: int, labels: list[tuple[str | None, ...]]) -> dict[str, int]:
    """How many gave each label to a token, most first."""
    times = Counter(str(tags[place]) for tags in labels if tags[place] is not None)
    return dict(sorted(times.items(), key=lambda item: (-item[1], item[0])))
