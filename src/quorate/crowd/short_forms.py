"""Short forms: *atrial fibrillation (AF)* says what AF stands for, wherever it is in the document.

They are found by the text alone, as by Schwartz and Hearst (A simple algorithm for identifying abbreviation definitions
in biomedical text, Pacific Symposium on Biocomputing 2003): what stands in parentheses is a short form if its letters
are found, in their order, in the few words before it, the first of them at the beginning of a word.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.algebra import document_of
from quorate.crowd.crowd import Crowd

__all__ = ["ShortForms", "short_forms"]

Integers = NDArray[np.int64]
_OPENS = frozenset({"(", "[", "（", "［", "-LRB-", "-LSB-"})
_CLOSES = frozenset({")", "]", "）", "］", "-RRB-", "-RSB-"})
_FEWEST, _MOST = 2, 10  # characters; this and the next two are Schwartz and Hearst's
_MORE_WORDS, _TIMES_AS_MANY = 5, 2  # than characters, that a long form may have: the fewer of both
_MOST_TOKENS = 3  # of a short form: some tokenizers take IL-2 apart


class ShortForms(NamedTuple):
    """Where short forms are: one row for each place in a document where one stands, that of its definition included.

    The tokens ``start`` to ``end`` stand for a long form that ends before ``long_end`` and begins at ``long_start``, or
    up to ``earliest`` with words that the short form leaves out.
    """

    start: Integers
    end: Integers
    long_start: Integers
    long_end: Integers
    earliest: Integers


def short_forms(encoded: Crowd, ends: Integers) -> ShortForms:
    """Those whose definition follows one of the places ``ends``, and whose words are in the vocabulary.

    What is defined several times in a document stands for the definition before it, or for the first one.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.crowd.encode import encode
    >>> tokens = ("new", "atrial", "fibrillation", "(", "AF", ")", "and", "old", "AF")
    >>> corpus = Corpus([Document("1", tokens, {"ann": ("O", "B-X", "I-X", *"OOOOOO")})])
    >>> found = short_forms(encode(corpus, corpus.tagset()), np.array([3]))
    >>> found.start.tolist(), found.long_start.tolist(), found.long_end.tolist()
    ([4, 8], [1, 1], [3, 3])
    """
    rows = sorted(_rows(encoded, ends[ends < encoded.n_tokens]))
    return ShortForms(*np.array(rows, np.int64).reshape(-1, len(ShortForms._fields)).T.copy())


def _rows(encoded: Crowd, ends: Integers) -> Iterator[tuple[int, ...]]:
    for (begin, end, numbers), definitions in _definitions(encoded, np.unique(ends)).items():
        places = sorted(definitions)
        here = np.ones(max(end - len(numbers) + 1 - begin, 0), np.bool_)
        for further, number in enumerate(numbers):
            here &= encoded.word[begin + further : end - len(numbers) + 1 + further] == number
        most = _most_words(_short(encoded, numbers))
        for start in (begin + np.flatnonzero(here)).tolist():
            place = places[max(bisect_left(places, start) - 1, 0)]
            yield start, start + len(numbers), definitions[place], place, max(place - most, begin)


def _definitions(encoded: Crowd, ends: Integers) -> dict[tuple[int, int, tuple[int, ...]], dict[int, int]]:
    """Where the long form of each short one begins, by where it ends; by the bounds of a document, and the words."""
    word, words = encoded.word, encoded.words
    opens, closes = ({number for number, w in enumerate(words) if w in marks} for marks in (_OPENS, _CLOSES))
    brackets = ends[np.isin(word[ends], list(opens))]
    document = document_of(encoded, brackets)
    first, last = encoded.doc_start[document].tolist(), encoded.doc_start[document + 1].tolist()
    found: dict[tuple[int, int, tuple[int, ...]], dict[int, int]] = {}
    for place, begin, end in zip(brackets.tolist(), first, last, strict=True):
        inside = word[place + 1 : min(place + 2 + _MOST_TOKENS, end)].tolist()
        size = next((n for n, number in enumerate(inside) if number in closes), 0)
        numbers = tuple(inside[:size])
        if not size or max(numbers) >= len(words) or not opens.isdisjoint(numbers):
            continue
        long = _long_form(_short(encoded, numbers), _before(encoded, begin, place))
        if long:
            found.setdefault((begin, end, numbers), {})[place] = place - long
    return found


def _short(encoded: Crowd, numbers: Sequence[int]) -> str:
    return "".join(encoded.words[number] for number in numbers)


def _most_words(short: str) -> int:
    """That a long form may have."""
    return min(len(short) + _MORE_WORDS, _TIMES_AS_MANY * len(short))


def _before(encoded: Crowd, begin: int, place: int) -> list[str]:
    """The words before a place, back to one that is not in the vocabulary."""
    found: list[str] = []
    for w in encoded.word[max(begin, place - _most_words("x" * _MOST)) : place].tolist():
        found = [*found, encoded.words[w]] if w < len(encoded.words) else []
    return found


def _long_form(short: str, before: Sequence[str]) -> int:
    """How many of the words ``before`` a short form it stands for; 0: of none.

    >>> _long_form("AF", ["new", "atrial", "fibrillation"]), _long_form("AF", ["a", "new", "one"])
    (2, 0)
    """
    if not (_FEWEST <= len(short) <= _MOST and short[0].isalnum() and any(map(str.isalpha, short))):
        return 0
    words = [word.lower() for word in before[-_most_words(short) :]]
    text, letters = " ".join(words), [letter for letter in short.lower() if letter.isalnum()]
    place = len(text)
    for number in range(len(letters) - 1, -1, -1):
        place -= 1
        while place >= 0 and (text[place] != letters[number] or (number == 0 and text[place - 1 : place].isalnum())):
            place -= 1
        if place < 0:
            return 0
    begins = list(accumulate((len(word) + 1 for word in words[:-1]), initial=0))
    found = words[bisect_right(begins, place) - 1 :]
    return len(found) if len(" ".join(found)) > len(short) and short.lower() not in found else 0
