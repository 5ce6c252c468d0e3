"""Methods that are votes: the majority on tokens, of those who speak, or on spans; oracles that follow one person."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import TagSet
from quorate.crowd.algebra import document_of_events, token_of_events, without
from quorate.crowd.crowd import Crowd
from quorate.model.candidates import Candidates, find_candidates
from quorate.model.engines.protocol import Decoded, Likely
from quorate.model.engines.threads import ThreadsEngine, cell_counts_of
from quorate.model.parts.annotators import AnnotatorPrior
from quorate.model.parts.confusions import ConfusionMatrix
from quorate.model.settings import Decode, Ties
from quorate.model.span_model import SpanEngine
from quorate.model.spans import GivenSpans, SpanEvidence, by_label, clamped_documents, with_known, with_spans

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
_NO_VOTE = 1e-300  # of a share whose logarithm is taken
_AS_LIKELY = 1 - 1e-9  # probabilities that differ by less are the same


class Votes(NamedTuple):
    """The decoded majority, and a confusion matrix of every annotator against it."""

    decoded: Decoded
    annotators: ConfusionMatrix


def majority(
    crowd: Crowd,
    *,
    voters: Crowd | None = None,
    ties: Ties = Ties.ENTITY_FIRST,
    seed: int = 0,
    decode: Decode = Decode.SEQUENCE,
    threads: int | None = None,
) -> Votes:
    """A vote on every token; its posterior is the share of votes, and all labels alike where nobody voted.

    The sequence is the valid one with the greatest product of shares; by token, the greatest share wins. ``seed`` is
    for ties that are broken at random. ``voters`` is the same corpus with other weights of events, where not all count
    alike. A token that nobody labelled is ``O``, where there is one.
    """
    rank = _without_votes(crowd, _tie_rank(crowd, ties, seed))
    return _voted(crowd, voters, rank, by_token=decode is Decode.TOKEN, threads=threads)


def silent_majority(
    crowd: Crowd,
    *,
    decode: Decode = Decode.SEQUENCE,
    threads: int | None = None,
) -> Votes:
    """A vote on every token in which ``O`` is silence: it wins only where nobody marked the token.

    Its posterior is the share among those who spoke (certainly ``O`` where none of those who saw the token did, and all
    labels alike where nobody saw it, which is then ``O`` if it can be). Of ties, and of what is not valid, it makes
    what :func:`majority` makes. Someone who gives probabilities speaks if no label is likelier than one that marks, and
    then all that mark count by theirs. In the plain scheme, which has no ``O``, it is the vote on tokens.
    """
    outside = crowd.tagset.outside
    if outside is None:
        return majority(crowd, decode=decode, threads=threads)
    token, marks = token_of_events(crowd), crowd.cells.label[crowd.event_cell] != outside
    speaks = marks & _marked_by_its_annotator(crowd, token, marks)
    spoken_of = np.bincount(token, speaks, crowd.n_tokens) > 0
    voters = without(crowd, ~np.where(spoken_of[token], speaks, ~marks))
    rank = _without_votes(crowd, _fixed_rank(crowd.tagset, Ties.ENTITY_FIRST)[None])
    return _voted(crowd, voters, rank, by_token=decode is Decode.TOKEN, threads=threads)


def _marked_by_its_annotator(crowd: Crowd, token: NDArray[np.int64], marks: Flags) -> Flags:
    """``[E]`` Whether the annotator of an event, by all that they say of its token, marks it."""
    if not crowd.soft or crowd.event_weight is None:
        return marks
    cell = crowd.event_cell
    pair = token * max(len(crowd.annotators), 1) + crowd.cells.annotator[cell]
    _, pair = np.unique(pair, return_inverse=True)
    said, label = np.unique(pair * crowd.cells.n_labels + crowd.cells.label[cell], return_inverse=True)
    weight = np.bincount(label, crowd.event_weight)  # over all labels that may have stood before
    of_pair, is_mark = said // crowd.cells.n_labels, said % crowd.cells.n_labels != crowd.tagset.outside
    most_marked, most = np.zeros((2, int(pair.max(initial=-1)) + 1))
    np.maximum.at(most_marked, of_pair[is_mark], weight[is_mark])
    np.maximum.at(most, of_pair, weight)
    return np.asarray((most_marked > 0) & (most_marked >= _AS_LIKELY * most))[pair]


def span_majority(crowd: Crowd, *, threads: int | None = None) -> Votes:
    """A vote on every span that somebody marked: at least half of those who saw all of it must have marked just it.

    A span's probability is its share of votes, a label's that of the spans that give it (all labels alike where nobody
    voted), a document's the product of its tokens', at most that of its least sure span. Documents of which labels are
    known are as the vote on tokens has them. So are all in the plain scheme, which has no spans.
    """
    tokens = majority(crowd, threads=threads)
    if crowd.tagset.outside is None:
        return tokens
    nowhere = np.zeros(0, np.int64)
    found = find_candidates(crowd, Likely(nowhere, nowhere, nowhere, np.zeros(0)), 1.0)
    engine = SpanEngine(found, np.zeros(len(found.start)), threads=threads)
    chosen = engine.best_set(_gains(found))
    evidence = SpanEvidence(crowd, found, engine, clamped_documents(crowd), None)
    votes, nothing = found.votes(), np.zeros(crowd.n_docs)
    given = GivenSpans(votes, votes, votes, chosen, nothing, nothing)
    voted = with_spans(evidence, given, tokens.decoded)
    posterior = by_label(found, given.true, crowd.tagset, crowd.n_tokens)
    nobody = np.diff(crowd.event_start) == 0
    posterior[nobody] = tokens.decoded.posterior[nobody]
    of_path = np.log(np.maximum(posterior[np.arange(len(voted.path)), voted.path], _NO_VOTE))
    document = np.repeat(np.arange(crowd.n_docs), np.diff(crowd.doc_start))
    probability = np.bincount(document, of_path, crowd.n_docs).astype(np.float64)
    np.minimum.at(probability, found.document[chosen], np.log(given.true[chosen]))
    voted = voted._replace(
        posterior=posterior,
        log_probability=probability,
        expected_spans=np.bincount(found.document, given.true, crowd.n_docs).astype(np.float64),
    )
    voted = with_known(voted, tokens.decoded, evidence.clamped, crowd)
    return _counted(crowd, voted, cell_counts_of(crowd, voted.posterior))


def _gains(candidates: Candidates) -> Floats:
    """``[C]`` The votes of spans that have half of them, 0 of others.

    Beside its votes, of spans that overlap directly or through others, the first has half a vote, the next a quarter,
    and so on: so sets with as many votes are told apart by the earliest, then longest span that is not in both, and
    then by the type that is marked more often.
    """
    enough = np.flatnonzero(2 * candidates.marked >= candidates.seen)
    start, end, kind, cluster = (
        column[enough] for column in (candidates.start, candidates.end, candidates.kind, candidates.cluster)
    )
    rarity = -np.bincount(candidates.kind, candidates.marked)[kind]
    order = np.lexsort((kind, rarity, -end, start, cluster))
    place = np.arange(len(order)) - np.searchsorted(cluster[order], cluster[order])
    gains = np.zeros(len(candidates.start))
    gains[enough[order]] = candidates.marked[enough[order]] + 0.5 ** (1 + place)
    return gains


def _voted(
    crowd: Crowd,
    voters: Crowd | None,
    rank: Floats,
    *,
    by_token: bool,
    threads: int | None,
) -> Votes:
    """A vote on every token by ``voters``, who are everybody unless given; labels win ties by their ``rank``."""
    engine = ThreadsEngine(voters or crowd, known=crowd.known, text=False, threads=threads)
    cells = engine.vote(np.eye(len(crowd.tagset.labels))[crowd.cells.label], 0.0).cells
    if voters is not None:
        cells = ThreadsEngine(crowd, text=False, threads=threads).cell_counts(engine.posterior)
    return _counted(crowd, engine.decode_votes(rank, by_token=by_token), cells)


def _counted(crowd: Crowd, decoded: Decoded, cells: Floats) -> Votes:
    """The consensus, with the annotators against it: ``cells [G, J]`` are their labels by true label."""
    prior = AnnotatorPrior(crowd.tagset, 1.0, 1.0)
    model = ConfusionMatrix.of(prior, len(crowd.annotators)).updated(crowd.cells, cells)
    return Votes(decoded._replace(cells=cells), model)


def _tie_rank(crowd: Crowd, ties: Ties, seed: int) -> Floats:
    """``[1, J]`` or ``[N, J]`` The order in which labels win ties."""
    if ties is Ties.RANDOM:
        return np.random.default_rng(seed).random((crowd.n_tokens, len(crowd.tagset.labels)))
    return _fixed_rank(crowd.tagset, ties)[None]


def _without_votes(crowd: Crowd, rank: Floats) -> Floats:
    """``[1, J]`` or ``[N, J]`` The same, in which ``O`` wins where nobody voted."""
    unseen = np.diff(crowd.event_start) == 0
    if not unseen.any() or crowd.tagset.outside is None:
        return rank
    return np.where(unseen[:, None], _fixed_rank(crowd.tagset, Ties.OUTSIDE_FIRST), rank)


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


def one_worker_a_document(crowd: Crowd, gold: NDArray[np.int32], *, best: bool) -> Crowd:
    """The same corpus in which only one annotator a document counts: the best, or the worst, of those who saw it.

    Annotators are ranked by token F1 against gold (``[N]``, −1 where not known), the mean over labels, on everything
    that each labelled. In a document where nobody labelled a token with gold, everybody counts.
    """
    K, J = len(crowd.annotators), len(crowd.tagset.labels)
    if not K:
        return crowd
    token = token_of_events(crowd)
    doc = document_of_events(crowd)
    who, label = crowd.cells.annotator[crowd.event_cell], crowd.cells.label[crowd.event_cell]
    scored = gold[token] >= 0
    f1 = _mean_f1(who[scored], gold[token[scored]], label[scored], K, J)
    can_be_ranked = np.zeros((crowd.n_docs, K), dtype=np.bool_)
    can_be_ranked[doc[scored], who[scored]] = True
    merit = np.where(can_be_ranked, f1 if best else -f1, -np.inf)
    chosen, has_gold = merit.argmax(axis=1), np.asarray(can_be_ranked.any(axis=1))
    counts = np.where(has_gold[doc], who == chosen[doc], True)
    weight = np.ones(len(token)) if crowd.event_weight is None else crowd.event_weight
    return replace(crowd, event_weight=weight * counts)


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
