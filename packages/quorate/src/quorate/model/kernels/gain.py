"""A compiled kernel: how many nats an annotator's labels of a document are expected to tell about its tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.native import native

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def token_information(
    posterior: Floats, doc_start: Ints, matrices: Floats, noise: Floats, before: int, doc: Ints, who: Ints
) -> Floats:
    """``[U]`` For every pair of document and annotator, Σ over tokens of the mutual information of label and truth.

    ``matrices [K, P, J, J]`` is p(label i | own previous label ι, truth j) at ``[k, ι, j, i]``, and ``noise [K, P, J]``
    the entropy of each row; ``before`` is the own label before the first token. Own previous labels are weighed as the
    annotator is expected to give them.
    """
    out = np.zeros(len(doc))
    posterior, matrices = np.ascontiguousarray(posterior), np.ascontiguousarray(matrices)
    add_information(posterior, doc_start, matrices, np.ascontiguousarray(noise), before, doc, who, out)
    return out


@native
def add_information(
    posterior: Floats, doc_start: Ints, matrices: Floats, noise: Floats, before: int, doc: Ints, who: Ints, out: Floats
) -> None:
    """The same, added to ``out`` ``[U]``."""
