"""Methods that are votes: the majority, and the oracles that follow one annotator a document."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import TagSet
from quorate.encode.algebra import document_of_events, token_of_events
from quorate.encode.encoded import Encoded
from quorate.infer.engines.protocol import Decoded
from quorate.infer.engines.threads import ThreadsEngine
from quorate.infer.parts.annotators import AnnotatorPrior
from quorate.infer.parts.confusions import ConfusionMatrix
from quorate.models.settings import Decode, Ties

__all__ = ["Votes", "majority", "one_worker_a_document"]

Floats = NDArray[np.float64]


class Votes(NamedTuple):
    """The decoded majority, and a confusion matrix of every annotator against it."""

    decoded: Decoded
    annotators: ConfusionMatrix


def majority(
    encoded: Encoded,
    *,
    voters: Encoded | None = None,
    known: NDArray[np.int32] | None = None,
    ties: Ties = Ties.ENTITY_FIRST,
    seed: int = 0,
    decode: Decode = Decode.SEQUENCE,
    threads: int | None = None,
) -> Votes:
    """A vote on every token; its posterior is the share of votes, and all labels alike where nobody voted.

    The sequence is the valid one with the greatest product of shares; by token, the greatest share wins. ``seed`` is
    for ties that are broken at random. ``voters`` is the same corpus with other weights of events, where not all count
    alike.
    """
    engine = ThreadsEngine(voters or encoded, known=known, text=False, threads=threads)
    J = len(encoded.tagset.labels)
    cells = engine.vote(np.eye(J)[encoded.cells.label], 0.0).cells
    if voters is not None:
        cells = ThreadsEngine(encoded, text=False, threads=threads).cell_counts(engine.posterior)
    decoded = engine.decode_votes(_tie_rank(encoded, ties, seed), by_token=decode is Decode.TOKEN)
    prior = AnnotatorPrior(encoded.tagset, 1.0, 1.0)
    model = ConfusionMatrix.of(prior, len(encoded.annotators)).updated(encoded.cells, cells)
    return Votes(decoded._replace(cells=cells), model)


def _tie_rank(encoded: Encoded, ties: Ties, seed: int) -> Floats:
    """``[1, J]`` or ``[N, J]`` The order in which labels win ties."""
    if ties is Ties.RANDOM:
        return np.random.default_rng(seed).random((encoded.n_tokens, len(encoded.tagset.labels)))
    return _fixed_rank(encoded.tagset, ties)[None]


def _fixed_rank(tagset: TagSet, ties: Ties) -> Floats:
    """Openings before insides, by name, and ``O`` at one end."""
    last = 1 if ties is Ties.ENTITY_FIRST else -1
    order = sorted(
        range(len(tagset.labels)),
        key=lambda j: (last if j == tagset.outside else 0, tagset.precedence[j], tagset.parts[j][1]),
    )
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order))
    return rank


def one_worker_a_document(encoded: Encoded, gold: NDArray[np.int32], *, best: bool) -> Encoded:
    """The same corpus in which only one annotator a document counts: the best, or the worst, of those who saw it.

    Annotators are ranked by token F1 against gold (``[N]``, −1 where not known), the mean over labels, on everything
    that each labelled. In a document where nobody labelled a token with gold, everybody counts.
    """
    K, J = len(encoded.annotators), len(encoded.tagset.labels)
    token = token_of_events(encoded)
    doc = document_of_events(encoded)
    who, label = encoded.cells.annotator[encoded.event_cell], encoded.cells.label[encoded.event_cell]
    scored = gold[token] >= 0
    f1 = _mean_f1(who[scored], gold[token[scored]], label[scored], K, J)
    can_be_ranked = np.zeros((encoded.n_docs, K), dtype=np.bool_)
    can_be_ranked[doc[scored], who[scored]] = True
    merit = np.where(can_be_ranked, f1 if best else -f1, -np.inf)
    chosen, has_gold = merit.argmax(axis=1), np.asarray(can_be_ranked.any(axis=1))
    counts = np.where(has_gold[doc], who == chosen[doc], True)
    weight = np.ones(len(token)) if encoded.event_weight is None else encoded.event_weight
    return replace(encoded, event_weight=weight * counts)


def _mean_f1(
    who: NDArray[np.int64], gold: NDArray[np.int32], label: NDArray[np.int64], n_annotators: int, n_labels: int
) -> Floats:
    """``[K]`` The mean over labels in use of the F1 of each, from what everybody said of tokens with gold."""

    def times(codes: NDArray[np.integer], those: NDArray[np.bool_] | slice = slice(None)) -> Floats:
        counts = np.bincount((who * n_labels + codes)[those], minlength=n_annotators * n_labels)
        return counts.reshape(n_annotators, n_labels).astype(np.float64)

    right, used = times(label, gold == label), times(label) + times(gold)
    f1 = np.divide(2 * right, used, out=np.zeros_like(right), where=used > 0)
    return np.asarray(f1.sum(axis=1) / np.maximum((used > 0).sum(axis=1), 1))
