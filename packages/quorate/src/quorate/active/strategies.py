"""Query strategies: the uncertainty of each document, and the expected information of an annotator's labels of it.

The entropy of a document's sequence is H = ln Z(1) − Z'(1)/Z(1), where Z(s) sums p(sequence)^s over all sequences: the
slope of ln Z, which the output pass gives at any power s. The information of annotator k's labels is their mutual
information with the truth. Token by token that is Σ_τ I(t_τ; c_τ). Neighbouring tokens are dependent, so the sum is
scaled by H / Σ_τ H(t_τ), which is 1 for independent tokens and keeps the information below the entropy.

Where the text allows two readings (:mod:`quorate.result.ambiguity`), annotators differ however many labels there are.
Every strategy but the random one therefore ranks by the uncertainty of tokens with one reading.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Document
from quorate.corpus.tags import TagSet
from quorate.crowd.algebra import seen_pairs
from quorate.crowd.crowd import Crowd, Note
from quorate.crowd.encode import label_before
from quorate.model import loop
from quorate.model.engines.protocol import Decoded, Engine
from quorate.model.fit import Fitted
from quorate.model.kernels.gain import token_information
from quorate.model.parts.annotators import Annotators
from quorate.model.spans import SpanEvidence, mixed
from quorate.result.annotators import check_matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_NOTHING = 1e-9  # nats that are rounding error
_STEP = 1e-4  # relative step of the power, for the slope of ln Z
_MOST_NUMBERS = 50_000_000  # in all matrices; beyond this, they do not depend on the previous label
_FEW_PAIRS = 1_000  # of document and annotator that are not worth a second thread
_SHORTLIST = 20  # candidates for each document that is chosen with diversity


class Strategy(StrEnum):
    """How documents are ranked.

    >>> Strategy("least-confidence") is Strategy.LEAST_CONFIDENCE
    True
    """

    RANDOM = "random"
    LEAST_CONFIDENCE = "least-confidence"
    LEAST_CONFIDENCE_PER_TOKEN = "least-confidence-per-token"
    TOKEN_ENTROPY = "token-entropy"
    SEQUENCE_ENTROPY = "sequence-entropy"
    INFORMATION = "information"


class Uncertainty(NamedTuple):
    """The uncertainty of each document: ``[D]`` ln p(best sequence), its length in tokens, and entropies in nats.

    ``token`` is the sum of the tokens' entropies, ``sequence`` the entropy of the whole.
    """

    log_probability: Floats
    length: Integers
    token: Floats
    sequence: Floats

    def reducible(self, share: Floats) -> Uncertainty:
        """The share ``[D]`` of it that labels can reduce: that of tokens with one reading.

        >>> unsure = Uncertainty(np.log([0.5]), np.array([1]), np.array([0.6]), np.array([0.6]))
        >>> unsure.reducible(np.array([0.5])).sequence
        array([0.3])
        """
        return Uncertainty(self.log_probability * share, self.length, self.token * share, self.sequence * share)

    def rank_by(self, strategy: Strategy, information: Floats, rng: np.random.Generator) -> Floats:
        """``[D]`` What a strategy ranks by, in descending order; ``information`` is the best annotator's per cost.

        >>> unsure = Uncertainty(np.log([0.9, 0.4]), np.array([1, 9]), np.array([0.3, 0.9]), np.array([0.3, 0.8]))
        >>> unsure.rank_by(Strategy.LEAST_CONFIDENCE, np.zeros(2), np.random.default_rng(0)).round(3)
        array([0.105, 0.916])
        """
        length = np.maximum(self.length, 1)
        if strategy is Strategy.RANDOM:
            return rng.random(len(length))
        if strategy is Strategy.LEAST_CONFIDENCE:  # −ln p ranks as 1 − p does, and does not round off to 1
            return -self.log_probability
        if strategy is Strategy.LEAST_CONFIDENCE_PER_TOKEN:
            return -self.log_probability / length
        if strategy is Strategy.TOKEN_ENTROPY:
            return self.token / length
        return self.sequence if strategy is Strategy.SEQUENCE_ENTROPY else information


def entropies(rows: Floats) -> Floats:
    """The entropy of every row of probabilities, in nats.

    >>> entropies(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4)
    array([0.6931, 0.    ])
    """
    logs = np.log(rows, out=np.zeros_like(rows), where=rows > 0)
    return np.asarray((rows * -logs).sum(axis=-1))


def token_entropy(posterior: Floats, doc_start: Integers) -> Floats:
    """``[D]`` The sum of the entropies of each document's tokens, in nats.

    >>> token_entropy(np.array([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]]), np.array([0, 2, 3])).round(4)
    array([1.3863, 0.    ])
    """
    running = np.concatenate([[0.0], np.cumsum(entropies(posterior))])
    return np.diff(running[doc_start])


def share_with_one_reading(posterior: Floats, ambiguous: Floats, doc_start: Integers) -> Floats:
    """``[D]`` The share of each document's token entropy that is of tokens with one reading.

    Where the text allows two readings, one more label is one more annotator's reading, and no evidence of the truth.
    ``ambiguous [N]`` is the probability of that, token by token.

    >>> posterior = np.array([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]])
    >>> share_with_one_reading(posterior, np.array([1.0, 0.5, 1.0]), np.array([0, 2, 3]))
    array([0.25, 1.  ])
    """
    entropy = entropies(posterior)
    running = np.concatenate([np.zeros((1, 2)), np.cumsum(np.stack([entropy * (1 - ambiguous), entropy], 1), axis=0)])
    of_one_reading, total = np.diff(running[doc_start], axis=0).T
    share = np.divide(of_one_reading, total, out=np.ones_like(total), where=total > _NOTHING)
    return np.asarray(share.clip(0.0, 1.0))


def sequence_entropy(log_z: Callable[[float], Floats], power: float = 1.0, *, rounding: float = 0.0) -> Floats:
    """``[D]`` The entropy of p(sequence)^power, normalised, from ``log_z`` at any power, in nats.

    ``rounding`` is that of the engine which ``log_z`` comes from: the coarser, the wider the step that takes a slope.

    >>> sequence_entropy(lambda s: np.log(np.array([0.5**s + 0.5**s]))).round(4)
    array([0.6931])
    """
    step = max(_STEP, math.sqrt(rounding))
    above, below = log_z(power * (1 + step)), log_z(power * (1 - step))
    return np.maximum(log_z(power) - (above - below) / (2 * step), 0.0)


def document_entropy(engine: Engine, fitted: Fitted, crowd: Crowd, evidence: SpanEvidence | None) -> Floats:
    """``[D]`` The entropy of each document's consensus, in nats; ``engine`` is one over the crowd.

    With ``evidence`` on spans two distributions are mixed, of which this is the mean entropy: that of the mixture is no
    less, and exceeds it by the entropy of the shares at most. In documents without labels, and in those with known
    ones, the consensus is that of tokens, and so is the entropy.
    """
    tokens = sequence_entropy(
        lambda power: loop.decode(engine, fitted.model, crowd.cells, exponent=power, posteriors=False).log_z,
        fitted.calibration.tokens,
        rounding=engine.rounding,
    )
    if evidence is None or fitted.spans is None:
        return tokens
    sets_of, spans = evidence.engine, fitted.spans.grown(len(crowd.annotators))
    sets = sequence_entropy(lambda power: sets_of.posterior(spans, power).log_z, fitted.calibration.spans)
    of_tokens = (np.diff(evidence.candidates.pair_start) == 0) | evidence.clamped
    return np.where(of_tokens, tokens, mixed(sets, tokens))


def merged_numbers(notes: Iterable[Note], n: int) -> Integers:
    """``[n]`` The number that each annotator has in a crowd with these notes: of duplicates, that of the first."""
    number = np.arange(n)
    for note in notes:
        for first, *others in getattr(note, "groups", ()):
            number[others] = first
    return number


def unlabelled(crowd: Crowd, doc: Integers, who: Integers) -> NDArray[np.bool_]:
    """``[U]`` Which pairs of a document and an annotator's number in the crowd have no labels."""
    K = len(crowd.annotators) + 1  # with somebody new
    seen_doc, seen_by = seen_pairs(crowd)
    return np.isin(doc * K + who, seen_doc * K + seen_by, invert=True)


def matrices_of(annotators: Annotators, numbers: Sequence[int]) -> Floats:
    """``[K, P, J, J]`` Posterior means of p(label i | own previous label ι, truth j), of some annotators.

    Where those would be too many numbers, ``[K, 1, J, J]``, without the previous label.
    """
    if len(numbers) * math.prod(annotators.matrix_shape) > _MOST_NUMBERS:
        annotators = annotators.collapsed()
    check_matrix(annotators.matrix_shape, len(numbers))
    return np.stack([annotators.matrix(int(number)) for number in numbers])


def expected_information(
    decoded: Decoded,
    doc_start: Integers,
    uncertainty: Uncertainty,
    matrices: Floats,
    tagset: TagSet,
    doc: Integers,
    who: Integers,
    *,
    threads: int = 1,
) -> Floats:
    """``[U]`` For every pair of document and annotator, the expected information of these labels, in nats.

    ``who`` counts along ``matrices`` (see :func:`matrices_of`).
    """
    matrices, before = np.ascontiguousarray(matrices), label_before(tagset)
    noise = entropies(matrices)

    def information(some: slice) -> Floats:
        pairs = doc[some].astype(np.int64), who[some].astype(np.int64)
        return token_information(decoded.posterior, doc_start, matrices, noise, before, *pairs)

    step = max(-(-len(doc) // threads), _FEW_PAIRS)
    with ThreadPoolExecutor(threads) as pool:
        parts = pool.map(information, [slice(first, first + step) for first in range(0, len(doc), step)])
        found = np.concatenate([np.zeros(0), *parts])
    whole, alone = uncertainty.sequence[doc], uncertainty.token[doc]
    found = np.where(found > 0, found, 0.0)  # rounding leaves less than nothing, or minus zero
    return np.asarray(found * np.divide(np.minimum(whole, alone), alone, out=np.ones_like(found), where=alone > 0))


def text_vectors(documents: Sequence[Document]) -> csr_array[np.float64, tuple[int, int]]:
    """``[D, V]`` Sparse rows of length 1: the words of each document, rare ones weighing more."""
    from scipy.sparse import csr_array

    number: dict[str, int] = {}
    words = [[number.setdefault(token.casefold(), len(number)) for token in one.tokens] for one in documents]
    row = np.repeat(np.arange(len(words)), [len(one) for one in words])
    column = np.fromiter(chain.from_iterable(words), np.int64, len(row))
    counts = csr_array((np.ones(len(row)), (row, column)), shape=(len(words), max(len(number), 1)))
    counts.sum_duplicates()
    seen = np.bincount(counts.indices, minlength=counts.shape[1])
    counts.data *= np.log(1 + len(words) / np.maximum(seen[counts.indices], 1))
    length = np.sqrt(np.bincount(row_of(counts.indptr), counts.data**2, minlength=len(words)))
    counts.data /= length[row_of(counts.indptr)]
    return counts


def row_of(indptr: NDArray[np.integer]) -> Integers:
    """The row of each entry of a compressed matrix."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def diverse(ranked: Integers, merit: Floats, documents: Sequence[Document], n: int, diversity: float) -> list[int]:
    """``n`` of the ranked positions, one after another: the next is the best by merit·(1 − diversity·similarity).

    Similarity is the cosine of a document's words to the nearest one already chosen. ``merit`` goes with ``ranked``.

    >>> one, other = Document("1", ("Ada", "sang")), Document("3", ("rain", "fell"))
    >>> diverse(np.arange(3), np.array([3.0, 2.9, 1.0]), [one, one, other], 2, 1.0)
    [0, 2]
    """
    if diversity <= 0 or len(ranked) <= 1:
        return [int(position) for position in ranked[:n]]
    listed = ranked[: max(_SHORTLIST * n, 200)]
    worth = merit[: len(listed)] - min(float(merit[: len(listed)].min(initial=0.0)), 0.0)
    vectors = text_vectors([documents[int(position)] for position in listed])
    return [int(listed[place]) for place in _chosen_one_by_one(vectors, worth, n, diversity)]


def _chosen_one_by_one(
    vectors: csr_array[np.float64, tuple[int, int]], worth: Floats, n: int, diversity: float
) -> Iterator[int]:
    nearest = np.zeros(len(worth))
    left = np.ones(len(worth), dtype=np.bool_)
    for _ in range(min(n, len(worth))):
        value = np.where(left, worth * (1 - diversity * np.minimum(nearest, 1.0)), -np.inf)
        place = int(value.argmax())
        left[place] = False
        nearest = np.maximum(nearest, (vectors @ vectors[[place]].T).toarray().ravel())
        yield place
