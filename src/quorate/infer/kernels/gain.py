"""A compiled kernel: how many nats an annotator's labels of a document are expected to tell about its tokens."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["token_information"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST = 1e-4  # an own previous label less likely than this is left out


@njit(nogil=True, cache=True)
def token_information(
    posterior: Floats, doc_start: Ints, matrices: Floats, noise: Floats, before: int, doc: Ints, who: Ints
) -> Floats:
    """``[U]`` For every pair of document and annotator, Σ over tokens of the mutual information of label and truth.

    ``matrices [K, P, J, J]`` is p(label i | own previous label ι, truth j) at ``[k, ι, j, i]``, and ``noise [K, P, J]``
    the entropy of each row; ``before`` is the own label before the first token. Own previous labels are weighed as the
    annotator is expected to give them.
    """
    P, J = matrices.shape[1], matrices.shape[2]
    out = np.zeros(doc.shape[0])
    own, following, said = np.empty(P), np.empty(P), np.empty(J)
    for u in range(doc.shape[0]):
        k = who[u]
        own[:] = 0.0
        own[before if P > 1 else 0] = 1.0
        for t in range(doc_start[doc[u]], doc_start[doc[u] + 1]):
            following[:] = 0.0
            for p in range(P):
                if own[p] < LEAST:
                    continue
                said[:] = 0.0
                blur = 0.0
                for j in range(J):
                    r = posterior[t, j]
                    if r > 0.0:
                        blur += r * noise[k, p, j]
                        for i in range(J):
                            said[i] += r * matrices[k, p, j, i]
                spread = 0.0
                for i in range(J):
                    if said[i] > 0.0:
                        spread -= said[i] * math.log(said[i])
                    if P > 1:
                        following[i] += own[p] * said[i]
                out[u] += own[p] * max(spread - blur, 0.0)
            if P > 1:
                own[:] = following
    return out
