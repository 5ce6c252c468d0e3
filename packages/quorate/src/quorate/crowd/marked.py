"""What annotators marked, counted over a corpus on all cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.algebra import with_likeliest_labels
from quorate.crowd.crowd import Crowd
from quorate.crowd.kernels import LabelEvents
from quorate.model.kernels.cores import available_threads, balanced, in_order

Floats = NDArray[np.float64]
_LEAST_EVENTS = 1 << 16  # that a piece has, of which there are so many at most
_MOST_PIECES = 64


def label_events(encoded: Crowd) -> LabelEvents:
    """What was said, as kernels take it; of someone's probabilities, the likeliest label."""
    tagset, one_label = encoded.tagset, with_likeliest_labels(encoded)
    cells = one_label.cells
    return LabelEvents(
        one_label.doc_start,
        one_label.event_start,
        one_label.event_cell,
        cells.annotator,
        cells.label,
        tagset.in_span,
        tagset.continues,
        tagset.type_of,
    )


def counted(
    events: LabelEvents, shapes: Sequence[tuple[int, ...]], add: Callable[[int, int, list[Floats]], None]
) -> list[Floats]:
    """Counts of these shapes; ``add`` adds to some those of the documents from one number to before another."""
    totals = [np.zeros(shape) for shape in shapes]

    def piece(documents: tuple[int, int]) -> list[Floats]:
        sums = [np.zeros(shape) for shape in shapes]
        add(*documents, sums)
        return sums

    cuts = balanced(events.doc_start, _n_pieces(len(events.event_cell), sum(total.size for total in totals)))
    for sums in in_order(piece, pairwise(cuts.tolist()), available_threads()):
        for total, each in zip(totals, sums, strict=True):
            total += each
    return totals


def _n_pieces(n_events: int, n_counts: int) -> int:
    """Into how many a corpus is cut, so that the counts of all pieces take less room than its events.

    Cores do not matter: sums are the same with any number of them.
    """
    return max(min(n_events // max(n_counts, _LEAST_EVENTS), _MOST_PIECES), 1)
