"""How words are written, as numbers: what a rare word has in common with others.

A word that occurs once tells little by itself. That it is capitalised, or a number, tells what others written like it
were.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


class Shape(IntEnum):
    """The ways a word can be written."""

    SYMBOLS = 0
    NUMBER = 1
    WITH_DIGITS = 2
    WITHOUT_CASE = 3
    SMALL_LETTER = 4
    CAPITAL_LETTER = 5
    SMALL = 6
    SMALL_WITH_SYMBOLS = 7
    CAPITALISED = 8
    CAPITALISED_WITH_SYMBOLS = 9
    CAPITALS = 10
    MIXED = 11


@lru_cache(maxsize=1 << 17)
def shape_of(word: str) -> Shape:
    """How a word is written; kept, as a model that is loaded and the corpus it goes on with share most words.

    >>> [shape_of(word).name for word in ("Berlin", "U.S.", "1,000", "of", "McCall")]
    ['CAPITALISED', 'CAPITALS', 'NUMBER', 'SMALL', 'MIXED']
    """
    if word.isascii() and word.isalpha() and len(word) > 1:  # as most words are: no need to look at each letter
        if word.islower():
            return Shape.SMALL
        if word.isupper():
            return Shape.CAPITALS
        return Shape.CAPITALISED if word[0].isupper() and word[1:].islower() else Shape.MIXED
    letters = [c for c in word if c.isalpha()]
    has_digits = any(c.isdigit() for c in word)
    if not letters:
        return Shape.NUMBER if has_digits else Shape.SYMBOLS
    if has_digits:
        return Shape.WITH_DIGITS
    capital = [c.isupper() for c in letters]
    if not any(capital) and not any(c.islower() for c in letters):
        return Shape.WITHOUT_CASE
    if len(letters) == 1:
        return Shape.CAPITAL_LETTER if capital[0] else Shape.SMALL_LETTER
    if all(capital):
        return Shape.CAPITALS
    has_symbols = len(letters) < len(word)
    if not any(capital):
        return Shape.SMALL_WITH_SYMBOLS if has_symbols else Shape.SMALL
    if capital[0] and not any(capital[1:]):
        return Shape.CAPITALISED_WITH_SYMBOLS if has_symbols else Shape.CAPITALISED
    return Shape.MIXED


@lru_cache(maxsize=1)
def _of_vocabulary(words: tuple[str, ...]) -> NDArray[np.int8]:
    """A fit makes many models over one vocabulary."""
    shapes = np.fromiter(map(shape_of, words), np.int8, len(words))
    shapes.flags.writeable = False
    return shapes


def shapes_of(words: Sequence[str]) -> NDArray[np.int8]:
    """``[V]`` How each word of a vocabulary is written.

    >>> shapes_of(["Ada", "sang", "."]).tolist()
    [8, 6, 0]
    """
    return _of_vocabulary(tuple(words))
