"""How far probabilities can be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus import Tag

__all__ = ["CrossEntropy", "cross_entropy"]

_CLIP = 1e-100


class CrossEntropy(NamedTuple):
    """Mean of −ln p(gold label), over how many tokens, and how many of those had a gold label outside the label set.

    >>> CrossEntropy(0.5, 10, 0).mean
    0.5
    """

    mean: float
    tokens: int
    unknown: int


def cross_entropy(
    probabilities: Iterable[NDArray[np.float64]], gold: Iterable[Sequence[Tag]], labels: Sequence[str]
) -> CrossEntropy:
    """The cross entropy error (CEE): mean over tokens with gold of −ln p(gold label), clipped at p = 1e-100.

    A gold label outside the label set scores at the clip. Without any gold token the mean is nan, and ``tokens`` 0.

    >>> cross_entropy([np.array([[0.5, 0.5], [1.0, 0.0]])], [["O", None]], ["O", "B-X"])
    CrossEntropy(mean=0.6931471805599453, tokens=1, unknown=0)
    """
    index = {label: position for position, label in enumerate(labels)}
    given: list[float] = []
    unknown = 0
    for rows, truth in zip(probabilities, gold, strict=True):
        for row, label in zip(rows, truth, strict=True):
            if label is not None:
                unknown += label not in index
                given.append(float(row[index[label]]) if label in index else 0.0)
    if not given:
        return CrossEntropy(float("nan"), 0, 0)
    return CrossEntropy(float(-np.log(np.maximum(given, _CLIP)).mean()), len(given), unknown)
