"""The spans of a consensus, as columns."""

from __future__ import annotations

import numpy as np

from quorate.corpus.tags import TagSet
from quorate.crowd.algebra import Spans
from quorate.model.engines.protocol import Decoded, Paths


def consensus_spans(decoded: Decoded | Paths, tagset: TagSet) -> Spans:
    """The spans of a consensus; in the plain scheme, every token's label."""
    if tagset.outside is None:
        start = np.arange(len(decoded.path))
        end = start + 1
    else:
        start = np.flatnonzero(decoded.span_end)
        end = decoded.span_end[start].astype(np.int64)
    return Spans(start, end, tagset.type_of[decoded.path[start]], np.full(len(start), -1))
