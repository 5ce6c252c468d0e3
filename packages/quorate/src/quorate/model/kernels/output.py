"""The compiled kernels of the output pass: posteriors, the best path, the probability of every span in it.

Letters as in :mod:`quorate.model.kernels.chain`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.chain import Rows
from quorate.model.kernels.layout import Slice
from quorate.model.kernels.native import native
from quorate.model.kernels.single import Steps

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]


class SpanShape(NamedTuple):
    """For each label: does it always open a span, or always close one (1 or 0), and of which type is it (−1: none)."""

    opens: Ints32
    closes: Ints32
    kind: Ints32


@native
def decode_slice(
    piece: Slice,
    rows: Rows,
    steps: Steps,
    coupled: bool,
    allowed: Steps,
    allowed_end: Floats,
    shape: SpanShape,
    by_token: bool,
    posterior: Floats,
    path: Ints32,
    log_probability: Floats,
    log_zs: Floats,
    span_end: Ints32,
    span_probability: Floats,
) -> int:
    """Posterior, decoded path with its probability, its spans with theirs; the first document without a path, or −1.

    All of one slice, its tokens and documents counted from its first. Where labels are not ``coupled``, every token
    stands alone under ``steps.log_start``. ``allowed`` and ``allowed_end`` are for Viterbi: the steps, and the last
    labels, without what the scheme forbids. A span that begins at token t is written to ``span_end[t]`` and
    ``span_probability[t]``.
    """


@native
def best_paths_slice(
    piece: Slice,
    rows: Rows,
    allowed: Steps,
    allowed_end: Floats,
    shape: SpanShape,
    path: Ints32,
    span_end: Ints32,
) -> None:
    """The best path of each document and where its spans end, as :func:`decode_slice` has them, and nothing besides."""


@native
def decode_votes_slice(
    doc_start: Ints,
    shares: Floats,
    rank: Floats,
    allowed: Steps,
    allowed_end: Floats,
    shape: SpanShape,
    by_token: bool,
    first: int,
    last: int,
    path: Ints32,
    log_probability: Floats,
    span_end: Ints32,
    span_probability: Floats,
) -> None:
    """As :func:`decode_slice`, for shares of votes ``[N, J]``. Of labels with equal shares the one of lower rank wins.

    ``rank`` is ``[N, J]``, or ``[1, J]`` for all tokens alike. A label without a vote has a tiny share, not 0.
    """
