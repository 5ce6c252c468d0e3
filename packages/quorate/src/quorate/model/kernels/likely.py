"""The compiled kernel that finds the spans a token model thinks likely.

Letters as in :mod:`quorate.model.kernels.chain`, and T types.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.chain import Rows
from quorate.model.kernels.layout import Slice
from quorate.model.kernels.native import native
from quorate.model.kernels.output import SpanShape
from quorate.model.kernels.single import Steps

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class SpanLabels(NamedTuple):
    """``[T]`` How the scheme writes a span of each type: alone, or its first, inner and last token."""

    single: Ints
    first: Ints
    inside: Ints
    last: Ints


def likely_spans_slice(
    piece: Slice, rows: Rows, steps: Steps, shape: SpanShape, labels: SpanLabels, least: float
) -> tuple[Ints, Ints, Ints, Floats]:
    """Start, end, type and probability of every span that has a probability of at least ``least``, by its start.

    Tokens are counted from the slice's first. A span is looked for where one begins with that probability, and for as
    long as it may go on with it.
    """
    room = 4 * len(piece.token_set)  # nearly always enough, and what is not written to takes no memory
    while True:
        start, end, kind = (np.empty(room, np.int64) for _ in range(3))
        probability = np.empty(room)
        n = fill_likely_spans(piece, rows, steps, shape, labels, least, start, end, kind, probability)
        if n <= room:
            return start[:n].copy(), end[:n].copy(), kind[:n].copy(), probability[:n].copy()
        room = n


@native
def fill_likely_spans(
    piece: Slice,
    rows: Rows,
    steps: Steps,
    shape: SpanShape,
    labels: SpanLabels,
    least: float,
    start: Ints,
    end: Ints,
    kind: Ints,
    probability: Floats,
) -> int:
    """Those of :func:`likely_spans_slice` as far as there is room; returns how many there are."""
