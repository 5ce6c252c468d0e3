"""The compiled kernel that counts what annotators did with the spans of a consensus."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.kernels import LabelEvents
from quorate.model.kernels.native import native

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class SureSpans(NamedTuple):
    """The spans of a consensus by place, and how probable each is; document d has ``first[d]`` to ``first[d + 1]``."""

    start: Ints
    end: Ints
    kind: Ints
    first: Ints
    sure: Floats


@native
def add_habits(events: LabelEvents, truth: SureSpans, low: int, high: int, habits: Floats, tokens: Floats) -> None:
    """Adds what everybody did with the spans of documents ``low`` to ``high`` to ``habits [12·T, K]``.

    The rows are :class:`quorate.result.habits.SpanHabits`, each by type. To ``tokens [K]`` it adds how long the
    documents are of which each annotator labelled something.
    """
