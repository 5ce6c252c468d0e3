"""How words are written, as numbers: what a rare word has in common with others.

A word that occurs once tells little by itself. That it is capitalised, or a number, tells what others written like it
were.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import compress

import numpy as np
from numpy.typing import NDArray

__all__ = ["Shape", "shape_of", "shapes_of"]


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


def shape_of(word: str) -> Shape:
    """How a word is written.

    >>> [shape_of(word).name for word in ("Berlin", "U.S.", "1,000", "of", "McCall")]
    ['CAPITALISED', 'CAPITALS', 'NUMBER', 'SMALL', 'MIXED']
    """
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


@lru_cache(maxsize=4)
def _of_vocabulary(words: tuple[str, ...]) -> NDArray[np.int8]:
    """A fit makes many models over one vocabulary."""
    shapes = np.empty(len(words), np.int8)
    plain = np.fromiter(map(str.isascii, words), np.bool_, len(words))
    shapes[plain] = _of_ascii(list(compress(words, plain)))
    shapes[~plain] = [shape_of(word) for word in compress(words, ~plain)]
    shapes.flags.writeable = False
    return shapes


def _of_ascii(words: Sequence[str]) -> NDArray[np.int8]:
    """:func:`shape_of` each word, all at once."""
    end = np.cumsum(np.fromiter(map(len, words), np.int64, len(words)))
    begin = np.concatenate([[0], end[:-1]])[: len(words)]
    character = np.frombuffer("".join(words).encode("ascii"), np.uint8)
    before = [np.concatenate([[0], np.cumsum(of_kind[character])]) for of_kind in _KINDS_OF_ASCII]
    capitals, small, digits = (count[end] - count[begin] for count in before)
    # Where there is one capital, it is the first letter if no small one stands before it.
    place_of_capital = np.append(np.flatnonzero(_KINDS_OF_ASCII[0][character]), 0)
    leads = before[1][place_of_capital[before[0][begin]]] == before[1][begin]
    letters, has_symbols = capitals + small, capitals + small < end - begin
    return np.select(
        [
            (letters == 0) & (digits > 0),
            letters == 0,
            digits > 0,
            (letters == 1) & (capitals == 1),
            letters == 1,
            small == 0,
            (capitals == 0) & has_symbols,
            capitals == 0,
            (capitals == 1) & leads & has_symbols,
            (capitals == 1) & leads,
        ],
        [
            Shape.NUMBER,
            Shape.SYMBOLS,
            Shape.WITH_DIGITS,
            Shape.CAPITAL_LETTER,
            Shape.SMALL_LETTER,
            Shape.CAPITALS,
            Shape.SMALL_WITH_SYMBOLS,
            Shape.SMALL,
            Shape.CAPITALISED_WITH_SYMBOLS,
            Shape.CAPITALISED,
        ],
        Shape.MIXED,
    ).astype(np.int8)


_KINDS_OF_ASCII = tuple(
    np.array([is_one(chr(code)) for code in range(128)]) for is_one in (str.isupper, str.islower, str.isdigit)
)


def shapes_of(words: Sequence[str]) -> NDArray[np.int8]:
    """``[V]`` How each word of a vocabulary is written.

    >>> shapes_of(["Ada", "sang", "."]).tolist()
    [8, 6, 0]
    """
    return _of_vocabulary(tuple(words))
