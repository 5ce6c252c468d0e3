"""Methods that are not settings of the loop. Now: majority vote."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.encode import Encoded
from quorate.infer.annotators import AnnotatorPrior, ConfusionMatrix
from quorate.infer.engine import Decoded, Tables, ThreadsEngine
from quorate.infer.truth import Uniform
from quorate.settings import Decode, Ties
from quorate.tags import TagSet

__all__ = ["Votes", "majority"]

_NO_VOTE = 1e-100
_TIE = 1e-9


class Votes(NamedTuple):
    """The decoded majority, and a confusion matrix of every annotator against it."""

    decoded: Decoded
    annotators: ConfusionMatrix


def majority(
    encoded: Encoded,
    *,
    known: NDArray[np.int32] | None = None,
    ties: Ties = Ties.ENTITY_FIRST,
    decode: Decode = Decode.SEQUENCE,
    threads: int | None = None,
) -> Votes:
    """A vote on every token; its posterior is the share of votes, and all labels alike where nobody voted.

    The sequence is the valid one with the greatest product of shares; by token, the greatest share wins.
    """
    engine = ThreadsEngine(encoded, known=known, text=False, threads=threads)
    J = len(encoded.tagset.labels)
    counts = engine.vote(np.eye(J)[encoded.cells.label], 0.0)
    shares = engine.posterior.copy()

    # Each token's shares enter the decoder as the row of a word that occurs nowhere else.
    rows = np.log(np.maximum(shares, _NO_VOTE)) - _TIE * _tie_rank(encoded.tagset, ties)
    no_events = replace(
        encoded,
        word=np.arange(encoded.n_tokens, dtype=np.int32),
        event_start=np.zeros(encoded.n_tokens + 1, np.int64),
        event_cell=np.zeros(0, np.int32),
        event_weight=None,
    )
    decoder = ThreadsEngine(no_events, text=False, threads=threads)
    chain = Uniform(J).chain()
    decoded = decoder.decode(Tables(np.zeros((0, J)), rows), chain, by_token=decode is Decode.TOKEN)
    prior = AnnotatorPrior(encoded.tagset, 1.0, 1.0)
    model = ConfusionMatrix.of(prior, len(encoded.annotators)).updated(encoded.cells, counts.cells)
    return Votes(decoded._replace(posterior=shares, cells=counts.cells), model)


def _tie_rank(tagset: TagSet, ties: Ties) -> NDArray[np.float64]:
    """``[J]`` The order in which labels win ties: openings before insides, by name, and ``O`` at one end."""
    prefixes = "BSIE"
    last = {Ties.ENTITY_FIRST: 1, Ties.OUTSIDE_FIRST: -1}[ties]
    order = sorted(
        range(len(tagset.labels)),
        key=lambda j: (
            last if j == tagset.outside else 0,
            prefixes.index(tagset.parts[j][0]) if tagset.parts[j][0] else 0,
            tagset.parts[j][1],
        ),
    )
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order))
    return rank
