"""What a tagger may know of a token: its form, its affixes, its shape, and its neighbours. No language is assumed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["FeatureTable", "shape", "token_features"]

_LONGEST_AFFIX = 3
_LONGEST_FORM = 40  # what is longer is a link or a mistake, and its beginning tells as much


def shape(token: str) -> str:
    """Capitals as ``X``, other letters as ``x``, digits as ``0``, the rest as it is; of a run alike, two are kept.

    >>> shape("McDonald's"), shape("1996-08-22")
    ("XxXxx'x", '00-00-00')
    """
    drawn: list[str] = []
    for character in token[:_LONGEST_FORM]:
        kind = "0" if character.isdigit() else character
        if character.isalpha():
            kind = "x" if character.islower() or character.lower() == character.upper() else "X"
        if drawn[-2:] != [kind, kind]:
            drawn.append(kind)
    return "".join(drawn)


@lru_cache(maxsize=1 << 17)
def _own_features(token: str) -> tuple[str, ...]:
    form = token[:_LONGEST_FORM]
    lower = form.lower()
    affixes = range(1, min(_LONGEST_AFFIX, len(lower)) + 1)
    return (
        f"form={form}",
        f"lower={lower}",
        f"shape={shape(token)}",
        *(f"prefix={lower[:n]}" for n in affixes),
        *(f"suffix={lower[-n:]}" for n in affixes),
    )


@lru_cache(maxsize=1 << 17)
def _neighbour_features(token: str, place: int) -> tuple[str, ...]:
    return (f"{place:+d} lower={token[:_LONGEST_FORM].lower()}", f"{place:+d} shape={shape(token)}")


def token_features(tokens: Sequence[str]) -> list[list[str]]:
    """For every token of a document, what is known of it: strings that each hold or do not hold.

    >>> token_features(["Ada", "sang"])[1][:3]
    ['any', 'form=sang', 'lower=sang']
    >>> "-1 lower=ada" in token_features(["Ada", "sang"])[1]
    True
    """
    described = []
    for position, token in enumerate(tokens):
        features = ["any", *_own_features(token)]
        for place in (-2, -1, 1, 2):
            if 0 <= position + place < len(tokens):
                features += _neighbour_features(tokens[position + place], place)
        if position == 0:
            features.append("first")
        if position == len(tokens) - 1:
            features.append("last")
        described.append(features)
    return described


class FeatureTable(NamedTuple):
    """The features of many tokens as numbers: token t has ``number[start[t]:start[t + 1]]``; ``names`` says of what.

    >>> table = FeatureTable.of([["Ada", "sang"], ["Ada"]])
    >>> len(table.start) - 1, table.names[0]
    (3, 'any')
    """

    start: NDArray[np.int64]
    number: NDArray[np.int32]
    names: tuple[str, ...]

    @classmethod
    def of(cls, documents: Iterable[Sequence[str]], names: Sequence[str] | None = None) -> FeatureTable:
        """The features of the tokens of all documents, end to end; given ``names``, those of them alone."""
        known = {name: number for number, name in enumerate(names or ())}
        lengths, numbers = [0], []
        for tokens in documents:
            for features in token_features(tokens):
                if names is None:
                    found = [known.setdefault(feature, len(known)) for feature in features]
                else:
                    found = [known[feature] for feature in features if feature in known]
                lengths.append(len(found))
                numbers.append(np.array(found, np.int32))
        number = np.concatenate(numbers) if numbers else np.zeros(0, np.int32)
        return cls(np.cumsum(lengths, dtype=np.int64), number, tuple(known))

    def without_rare(self, least: int) -> FeatureTable:
        """Without the features that fewer than ``least`` tokens have.

        >>> table = FeatureTable.of([["Ada"], ["Ada"], ["sang"]]).without_rare(2)
        >>> "form=Ada" in table.names, "form=sang" in table.names
        (True, False)
        """
        kept = np.bincount(self.number, minlength=len(self.names)) >= least
        renumbered = np.cumsum(kept, dtype=np.int32) - 1
        stays = kept[self.number]
        before = np.concatenate([[0], np.cumsum(stays)])
        names = tuple(name for name, keep in zip(self.names, kept.tolist(), strict=True) if keep)
        return FeatureTable(before[self.start], renumbered[self.number[stays]], names)

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """``[N, J]`` For every token the sum of its features' rows of ``weights`` ``[F, J]``."""
        from scipy.sparse import csr_array

        shape = len(self.start) - 1, len(self.names)
        ones = np.ones(len(self.number))
        return np.asarray(csr_array((ones, self.number, self.start), shape=shape) @ weights)
