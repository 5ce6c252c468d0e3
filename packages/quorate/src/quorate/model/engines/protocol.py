"""What the loop knows of an engine: the protocol, what goes into a pass and what comes out."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from quorate.model.parts.truth import Chain, LabelCounts

Floats = NDArray[np.float64]


class Tables(NamedTuple):
    """Log-likelihood rows of the cells ``[G, J]`` and of the words ``[V, J]`` (no rows: without text).

    ``temper`` weighs what annotators said: in the likelihood, and in the counts that come back.
    """

    cells: Floats
    words: Floats
    temper: float = 1.0


class Counts(NamedTuple):
    """What a pass brings back: Σ ln Z, and expected counts of cells ``[G, J]``, words ``[V, J]`` and labels."""

    log_z: float
    cells: Floats
    words: Floats
    labels: LabelCounts


class Decoded(NamedTuple):
    """What is given out, for all tokens and documents end to end.

    ``posterior [N, J]``, decoded label ``path [N]``, ``log_probability [D]`` of that path, ``log_z [D]``; a span that
    begins at token t ends before token ``span_end[t]`` (0: none begins) and has ``span_probability[t]``;
    ``cells [G, J]`` are the counts of cells under this posterior. Where the posterior was not asked for it has
    no rows, and there is ``token_probability [N]``, that of each decoded label (else it is empty). Where spans were
    chosen one by one, ``expected_spans [D]`` is how many true ones each document is expected to have (else empty).
    """

    posterior: Floats
    path: NDArray[np.int32]
    log_probability: Floats
    log_z: Floats
    span_end: NDArray[np.int32]
    span_probability: Floats
    cells: Floats
    token_probability: Floats = np.zeros(0)
    expected_spans: Floats = np.zeros(0)

    def of_path_alone(self) -> Decoded:
        """The same without the probabilities of labels that were not decoded."""
        of_path = self.posterior[np.arange(len(self.path)), self.path]
        return self._replace(posterior=np.empty((0, self.posterior.shape[1])), token_probability=of_path)


class Paths(NamedTuple):
    """Decoded labels ``path [N]`` and the ends of spans ``span_end [N]``, as :class:`Decoded` has them."""

    path: NDArray[np.int32]
    span_end: NDArray[np.int32]


class Likely(NamedTuple):
    """Spans that the token model thinks likely, by place: first token, token after the last, type, probability."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    kind: NDArray[np.int64]
    probability: Floats

    def at_least(self, probability: float) -> Likely:
        """Those that have it."""
        enough = self.probability >= probability
        return Likely(self.start[enough], self.end[enough], self.kind[enough], self.probability[enough])


class Engine(Protocol):
    """One corpus, ready for passes over it.

    ``rounding`` is the share of a bound's terms by which it may fall unnoticed.
    """

    rounding: float

    def run(self, tables: Tables, chain: Chain) -> Counts:
        """Likelihood, forward–backward and counts."""

    def vote(self, table: Floats, smoothing: float, temper: float = 1.0) -> Counts:
        """Counts of a posterior made of votes: each event votes with its cell's row of ``table`` ``[G, J]``."""

    def decode(self, tables: Tables, chain: Chain, *, by_token: bool, posteriors: bool = True) -> Decoded:
        """Posteriors (if they are to be kept), sequences and spans with their probabilities."""

    def likely_spans(self, tables: Tables, chain: Chain, least: float) -> Likely:
        """Every span with a probability of at least ``least``, by place; for schemes that have spans."""

    def close(self) -> None:
        """Let go of threads, devices and workers."""
