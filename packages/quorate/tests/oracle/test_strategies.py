"""The uncertainty of a document, and the expected information of a label: against sums over every sequence."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pytest

from by_name import bsc
from problems import random_corpus, tagset
from quorate import BSC, Corpus, Document
from quorate.active.strategies import (
    Strategy,
    Uncertainty,
    diverse,
    document_entropy,
    expected_information,
    matrices_of,
    sequence_entropy,
    token_entropy,
)
from quorate.corpus.tags import Scheme
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode
from quorate.model import loop
from quorate.model.calibration import Calibration
from quorate.model.engines.factory import Engines
from quorate.model.engines.protocol import Decoded
from quorate.model.engines.threads import ThreadsEngine
from quorate.model.fit import fit
from quorate.model.parts.dirichlet import log_mean
from quorate.model.settings import Settings
from quorate.model.spans import mixed

Decode = Callable[[float], Decoded]
Fitted = tuple[Corpus, BSC, Crowd, Decode]


def fitted(seed: int, scheme: Scheme, annotator: str, truth: str, longest: int = 4) -> Fitted:
    tags = tagset(scheme, 1)
    rng = np.random.default_rng(seed)
    corpus = random_corpus(rng, tags, n_documents=6, longest=longest, n_annotators=3, missing=0.1)
    model = bsc(f"bsc-{annotator}", truth=truth, max_iter=3, scheme=scheme.value, temper=0.8).fit(corpus)
    encoded = encode(corpus, model.tagset_)
    engine = ThreadsEngine(encoded)
    return corpus, model, encoded, lambda power: loop.decode(engine, model.fitted_.model, encoded.cells, exponent=power)


def sequence_weights(model: BSC, encoded: Crowd, d: int) -> dict[tuple[int, ...], float]:
    """p(sequence) of a document under posterior means, by enumeration."""
    parts = model.fitted_.model
    assert parts.text is not None
    cells, words = parts.annotators.log_lik(encoded.cells, log_mean), parts.text.log_lik(log_mean)
    chain = parts.truth.chain(log_mean)
    tokens = range(encoded.doc_start[d], encoded.doc_start[d + 1])
    scores = {}
    for path in itertools.product(range(len(model.tagset_.labels)), repeat=len(tokens)):
        total = chain.end[path[-1]]
        for place, (t, label) in enumerate(zip(tokens, path, strict=True)):
            said = encoded.event_cell[encoded.event_start[t] : encoded.event_start[t + 1]]
            total += parts.temper * cells[said, label].sum() + words[encoded.word[t], label]
            total += chain.trans[path[place - 1], label] if place else chain.start[label]
        scores[path] = total
    weights = np.exp(np.array(list(scores.values())) - max(scores.values()))
    return dict(zip(scores, weights / weights.sum(), strict=True))


def entropy(probabilities: Iterable[float]) -> float:
    p = np.array([value for value in probabilities if value > 0])
    return float(-(p * np.log(p)).sum())


@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.PLAIN])
@pytest.mark.parametrize("truth", ["markov", "independent"])
@pytest.mark.parametrize("seed", range(3))
def test_entropies_by_enumeration(scheme: Scheme, truth: str, seed: int) -> None:
    _, model, encoded, decode = fitted(seed, scheme, "cm", truth)
    whole = sequence_entropy(lambda power: decode(power).log_z)
    tokens = token_entropy(decode(1.0).posterior, encoded.doc_start)
    for d in range(encoded.n_docs):
        weights = sequence_weights(model, encoded, d)
        assert whole[d] == pytest.approx(entropy(weights.values()), abs=1e-5)
        margins = np.zeros((int(np.diff(encoded.doc_start)[d]), len(model.tagset_.labels)))
        for path, weight in weights.items():
            margins[np.arange(len(path)), path] += weight
        assert tokens[d] == pytest.approx(sum(entropy(row) for row in margins), abs=1e-9)


def test_entropy_at_another_power_by_enumeration() -> None:
    _, model, encoded, decode = fitted(5, Scheme.BIO, "seq", "markov")
    whole = sequence_entropy(lambda power: decode(power).log_z, 0.6)
    for d in range(encoded.n_docs):
        powers = np.array(list(sequence_weights(model, encoded, d).values())) ** 0.6
        assert whole[d] == pytest.approx(entropy(powers / powers.sum()), abs=1e-5)


@pytest.mark.parametrize("annotator", ["cm", "pool"])
@pytest.mark.parametrize("seed", range(3))
def test_entropy_of_spans_by_enumeration(seed: int, annotator: str) -> None:
    """Of every set of candidates that do not overlap, mixed with the token model's entropy."""
    tags = tagset(Scheme.BIO, 2)
    corpus = random_corpus(np.random.default_rng(seed), tags, n_documents=5, longest=4, n_annotators=3, missing=0.1)
    corpus = Corpus([*corpus, Document("unlabelled", corpus[0].tokens)])
    crowd = encode(corpus, tags)
    fitted = replace(fit(crowd, Settings.of(annotator=annotator, max_iter=3)), calibration=Calibration(0.8, 0.7))
    crowd, engine = fitted.crowd(corpus), ThreadsEngine(fitted.crowd(corpus))
    evidence = fitted.consensus(engine, crowd, None, Engines()).evidence
    whole = document_entropy(engine, fitted, crowd, evidence)
    tokens = sequence_entropy(lambda power: loop.decode(engine, fitted.model, crowd.cells, exponent=power).log_z, 0.8)
    np.testing.assert_allclose(document_entropy(engine, fitted, crowd, None), tokens)
    assert evidence is not None
    assert fitted.spans is not None
    candidates, spans_of = evidence.candidates, evidence.engine
    for d in range(crowd.n_docs - 1):
        here, sets = range(candidates.first[d], candidates.first[d + 1]), []
        for one in itertools.chain.from_iterable(itertools.combinations(here, n) for n in range(len(here) + 1)):
            spans = sorted((candidates.start[c], candidates.end[c]) for c in one)
            if all(before[1] <= after[0] for before, after in itertools.pairwise(spans)):
                chosen = np.isin(np.arange(len(candidates.start)), one)
                sets.append(np.exp(spans_of.log_probability(fitted.spans, chosen, 0.7)[d]))
        assert sum(sets) == pytest.approx(1.0, abs=1e-9)
        assert whole[d] == pytest.approx(mixed(np.array(entropy(sets)), tokens[d]), abs=1e-5)
    assert whole[-1] == tokens[-1] > 0


def information(model: BSC, encoded: Crowd, decode: Decode, doc: list[int], who: list[int]) -> np.ndarray:
    decoded = decode(1.0)
    unsure = Uncertainty(
        decoded.log_probability,
        np.diff(encoded.doc_start),
        token_entropy(decoded.posterior, encoded.doc_start),
        sequence_entropy(lambda power: decode(power).log_z),
    )
    matrices = matrices_of(model.fitted_.model.annotators, range(len(encoded.annotators)))
    return expected_information(
        decoded, encoded.doc_start, unsure, matrices, model.tagset_, np.array(doc), np.array(who)
    )


@pytest.mark.parametrize("annotator", ["acc", "spam", "cv", "cm", "seq"])
def test_information_of_one_token_by_enumeration(annotator: str) -> None:
    """H(truth) − E over labels of H(truth | label), which is exact for documents of one token."""
    _, model, encoded, decode = fitted(1, Scheme.PLAIN, annotator, "markov", longest=1)
    pairs = list(itertools.product(range(encoded.n_docs), range(len(encoded.annotators))))
    gains = information(model, encoded, decode, *map(list, zip(*pairs, strict=True)))
    posterior = decode(1.0).posterior
    for (d, k), gain in zip(pairs, gains, strict=True):
        truth, matrix = posterior[d], model.fitted_.model.annotators.matrix(k)[-1]
        joint = truth[:, None] * matrix
        left = sum(
            joint[:, label].sum() * entropy(joint[:, label] / joint[:, label].sum()) for label in range(len(truth))
        )
        assert gain == pytest.approx(entropy(truth) - left, abs=1e-5)


def test_information_of_tokens_that_stand_alone_by_enumeration() -> None:
    """Over all sequences of truth and of labels: exact where neither has a memory."""
    _, model, encoded, decode = fitted(2, Scheme.PLAIN, "cm", "independent", longest=3)
    gains = information(model, encoded, decode, list(range(encoded.n_docs)), [0] * encoded.n_docs)
    matrix = model.fitted_.model.annotators.matrix(0)[0]
    for d in range(encoded.n_docs):
        truth = sequence_weights(model, encoded, d)
        said: dict[tuple[int, ...], float] = {}
        blur = 0.0
        for path, weight in truth.items():
            labels = {
                one: float(np.prod(matrix[list(path), list(one)]))
                for one in itertools.product(range(matrix.shape[1]), repeat=len(path))
            }
            blur += weight * entropy(labels.values())
            for one, probability in labels.items():
                said[one] = said.get(one, 0.0) + weight * probability
        assert gains[d] == pytest.approx(entropy(said.values()) - blur, abs=1e-5)


@pytest.mark.parametrize("annotator", ["cm", "seq"])
def test_information_in_chains_is_near_the_enumerated(annotator: str) -> None:
    """With memory it is an estimate; it stays below what is unknown, and within a third of the truth on average."""
    estimated, exact = [], []
    for seed in range(4):
        _, model, encoded, decode = fitted(seed, Scheme.BIO, annotator, "markov", longest=3)
        gains = information(model, encoded, decode, list(range(encoded.n_docs)), [0] * encoded.n_docs)
        matrix = model.fitted_.model.annotators.matrix(0)
        for d in range(encoded.n_docs):
            truth = sequence_weights(model, encoded, d)
            assert -1e-9 <= gains[d] <= entropy(truth.values()) + 1e-6
            said: dict[tuple[int, ...], float] = {}
            blur = 0.0
            for path, weight in truth.items():
                for one in itertools.product(range(matrix.shape[2]), repeat=len(path)):
                    probability = 1.0
                    for place, (j, i) in enumerate(zip(path, one, strict=True)):
                        before = (one[place - 1] if place else model.tagset_.outside) if len(matrix) > 1 else 0
                        probability *= float(matrix[before, j, i])
                    if probability > 0:
                        blur -= weight * probability * np.log(probability)
                        said[one] = said.get(one, 0.0) + weight * probability
            estimated.append(gains[d])
            exact.append(entropy(said.values()) - blur)
    assert np.mean(estimated) == pytest.approx(np.mean(exact), rel=0.34)
    assert np.corrcoef(estimated, exact)[0, 1] > 0.9


def test_a_good_annotator_is_more_informative_than_a_spammer(sample: Corpus) -> None:
    model = bsc("bsc-seq").fit(sample)
    encoded = encode(sample, model.tagset_)
    engine = ThreadsEngine(encoded)
    doc, who = np.divmod(np.arange(encoded.n_docs * len(encoded.annotators)), len(encoded.annotators))
    parts = model.fitted_.model
    gains = information(
        model, encoded, lambda p: loop.decode(engine, parts, encoded.cells, exponent=p), list(doc), list(who)
    )
    by_annotator = np.bincount(who, gains) / np.bincount(who)
    assert np.corrcoef(by_annotator, model.annotators_.informativeness)[0, 1] > 0.8


def test_strategies_rank_as_their_names_say() -> None:
    unsure = Uncertainty(
        np.log([0.5, 0.2, 0.9]), np.array([2, 10, 1]), np.array([0.9, 1.5, 0.4]), np.array([0.8, 1.9, 0.3])
    )
    rng = np.random.default_rng(0)
    best = {s: int(unsure.rank_by(s, np.array([0.1, 0.2, 0.3]), rng).argmax()) for s in Strategy}
    assert best[Strategy.LEAST_CONFIDENCE] == best[Strategy.SEQUENCE_ENTROPY] == 1
    assert best[Strategy.LEAST_CONFIDENCE_PER_TOKEN] == 0
    assert best[Strategy.TOKEN_ENTROPY] == 0
    assert best[Strategy.INFORMATION] == 2


def test_near_duplicates_are_not_asked_for_together() -> None:
    same = [Document(str(n), ("Ada", "Ng", "sang", f"x{n}")) for n in range(10)]
    other = [Document(f"o{n}", (f"a{n}", f"b{n}", f"c{n}")) for n in range(10)]
    merit = np.r_[np.linspace(2.0, 1.9, 10), np.linspace(1.5, 1.4, 10)]
    order = np.arange(20)
    assert diverse(order, merit, [*same, *other], 5, 0.0) == [0, 1, 2, 3, 4]
    chosen = diverse(order, merit, [*same, *other], 5, 1.0)
    assert sum(position < 10 for position in chosen) == 1
