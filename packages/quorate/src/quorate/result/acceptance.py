"""Which documents of a consensus meet an expected precision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.spans import Span
from quorate.errors import SettingsError
from quorate.model.settings import as_share, check_number
from quorate.wording import counted

_DIGITS = 9  # decimals of a probability; later ones are rounding error


class Accepted(NamedTuple):
    """Positions of the documents that meet an expected precision, and of the others; that precision, and the cut.

    Documents are ranked by the mean confidence of their spans; those accepted are at or above the ``cut``. It is a
    ranking: the precision is what the model expects.

    >>> Accepted([0, 2], [1], 0.96, 0.91).review
    [1]
    >>> Accepted([0, 2], [1], 0.96, 0.91)
    <Accepted: 2 documents, 1 to review, cut 0.910, expected precision 0.960>
    """

    documents: list[int]
    review: list[int]
    precision: float
    cut: float

    def __repr__(self) -> str:
        counts = f"{counted(len(self.documents), 'document')}, {len(self.review):,} to review"
        return f"<Accepted: {counts}, cut {self.cut:.3f}, expected precision {self.precision:.3f}>"


def check_precision(precision: float, name: str = "accept") -> None:
    """:class:`SettingsError` if this is no precision that can be asked for.

    >>> check_precision(95)
    Traceback (most recent call last):
    quorate.errors.SettingsError: accept must be a precision above 0 and below 1, not 95 (95 % is 0.95)
    """
    check_number(name, precision)
    if not 0 < precision < 1:
        hint = as_share(precision, below_one=True)
        raise SettingsError(f"{name} must be a precision above 0 and below 1, not {precision:g}{hint}")


def accepted(
    spans: Sequence[Sequence[Span]],
    confidence: NDArray[np.float64],
    precision: float,
    tokens: Sequence[int] | NDArray[np.int64],
) -> Accepted:
    """Part documents by their spans: as many of the surest as meet an expected precision together, and the others.

    ``confidence [D]`` stands for a document without a span. In one without any of the ``tokens [D]`` nothing can be
    wrong: it is accepted, and does not count.

    >>> accepted([[Span(0, 1, "X", 0.9)], [Span(0, 1, "X", 0.5)]], np.array([0.9, 0.5]), 0.8, [1, 1]).documents
    [0]
    """
    check_precision(precision)
    counts = np.asarray(tokens) > 0
    count = np.array([max(len(one), 1) for one in spans], np.float64)
    right = np.array([sum(span.sure for span in one) if one else confidence[d] for d, one in enumerate(spans)])
    mean = np.where(counts, np.round(right / count, _DIGITS), 1.0)
    order = np.argsort(-mean, kind="stable")
    wrong, total = (np.cumsum((column * counts)[order]) for column in (count - right, count))
    expected = np.round(1 - wrong / np.maximum(total, 1), _DIGITS)
    last_alike = np.append(np.diff(mean[order]) != 0, True)
    enough = np.flatnonzero(last_alike & (expected >= precision))
    n = int(enough[-1]) + 1 if len(enough) else 0
    reached, cut = (float(expected[n - 1]), float(mean[order[n - 1]])) if n else (math.nan, math.nan)
    return Accepted(sorted(order[:n].tolist()), sorted(order[n:].tolist()), reached, cut)
