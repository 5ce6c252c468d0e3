"""The bound against the evidence, which on tiny data can be summed over every truth in closed form."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from problems import dense_sequential_prior, random_corpus, tagset, valid_paths
from quorate.corpus.records import Corpus
from quorate.corpus.tags import Invalid, Scheme, TagSet
from quorate.crowd.crowd import Cells, Crowd
from quorate.crowd.encode import encode, encode_known
from quorate.model import loop
from quorate.model.engines.protocol import Counts
from quorate.model.engines.threads import ThreadsEngine
from quorate.model.parts.annotators import Accuracy, AnnotatorPrior, Annotators, ClassVector, Spammer
from quorate.model.parts.confusions import ConfusionMatrix, Sequential
from quorate.model.parts.text import Shapes, Words
from quorate.model.parts.truth import Independent, LabelCounts, Markov, Truth, Uniform

Floats = NDArray[np.float64]
ANNOTATORS = [Accuracy, Spammer, ClassVector, ConfusionMatrix, Sequential]
ALPHA0, EPSILON0, GAMMA0, KAPPA0 = 0.8, 1.7, 0.6, 0.4


def polya(prior: Floats, counts: Floats) -> float:
    """ln ∫ Π π^counts Dir(π | prior) dπ, over rows; entries without prior must have no count."""
    live = prior > 0
    assert not counts[~live].any()
    rows = gammaln(prior.sum(-1)) - gammaln(prior.sum(-1) + counts.sum(-1))
    return float(np.sum(rows) + np.sum(gammaln(prior[live] + counts[live]) - gammaln(prior[live])))


def truth_evidence(model: Truth, tags: TagSet, encoded: Crowd, truth: NDArray[np.int64]) -> float:
    J = len(tags.labels)
    if isinstance(model, Uniform):
        return -len(truth) * float(np.log(J))
    if isinstance(model, Independent):
        return polya(np.full(J, GAMMA0), np.bincount(truth, minlength=J).astype(float))
    assert isinstance(model, Markov)
    prior = model.prior
    counts = np.zeros_like(prior)
    for d in range(encoded.n_docs):
        path = truth[encoded.doc_start[d] : encoded.doc_start[d + 1]]
        counts[model.start_row, path[0]] += 1
        for a, b in itertools.pairwise(path):
            counts[a, b] += 1
    return polya(prior, counts)


def events(encoded: Crowd) -> list[tuple[int, int, int, int]]:
    """(token, annotator, previous, label) of everything that was said."""
    cells: Cells = encoded.cells
    return [
        (t, int(cells.annotator[g]), int(cells.previous[g]), int(cells.label[g]))
        for t in range(encoded.n_tokens)
        for g in encoded.event_cell[encoded.event_start[t] : encoded.event_start[t + 1]]
    ]


def annotator_evidence(kind: type[Annotators], tags: TagSet, encoded: Crowd, truth: NDArray[np.int64]) -> float:
    J, K = len(tags.labels), len(encoded.annotators)
    said = events(encoded)
    pair = np.array([ALPHA0 + EPSILON0, ALPHA0])
    right = np.array([float(truth[t] == i) for t, _, _, i in said])
    if kind is Accuracy or kind is ClassVector:
        counts = np.zeros((K, J, 2))
        for (t, k, _, _), is_right in zip(said, right, strict=True):
            counts[k, truth[t] if kind is ClassVector else 0, 0 if is_right else 1] += 1
        return polya(np.broadcast_to(pair, counts.shape), counts) - float((1 - right).sum() * np.log(J - 1))
    if kind is ConfusionMatrix:
        matrix = np.zeros((K, J, J))
        for t, k, _, i in said:
            matrix[k, truth[t], i] += 1
        return polya(np.broadcast_to(ALPHA0 + EPSILON0 * np.eye(J), matrix.shape), matrix)
    if kind is Sequential:
        prior = dense_sequential_prior(tags, ALPHA0, EPSILON0)
        table = np.zeros((K, *prior.shape))
        for t, k, previous, i in said:
            table[k, previous, truth[t], i] += 1
        return polya(np.broadcast_to(prior, table.shape), table)
    # spam: every right label was known or guessed, every wrong one guessed.
    maybe = [n for n, is_right in enumerate(right) if is_right]
    totals = []
    for bits in itertools.product([0, 1], repeat=len(maybe)):
        knew, habits = np.zeros((K, 2)), np.zeros((K, J))
        guessed = set(range(len(said))) - {n for n, bit in zip(maybe, bits, strict=True) if bit}
        for n, (_, k, _, i) in enumerate(said):
            knew[k, int(n in guessed)] += 1
            habits[k, i] += n in guessed
        totals.append(polya(np.broadcast_to(pair, knew.shape), knew) + polya(np.full(habits.shape, ALPHA0), habits))
    return float(logsumexp(totals))


def shapes_of(encoded: Crowd) -> Shapes:
    """All words but the last are written alike; one shape is that of no word."""
    shape = np.zeros(len(encoded.words), np.int8)
    shape[-1] = 1
    return Shapes(shape, 3)


def word_evidence(J: int, encoded: Crowd, truth: NDArray[np.int64], shapes: Shapes | None) -> float:
    counts = np.zeros((J, len(encoded.words)))
    np.add.at(counts, (truth, encoded.word), 1)
    if shapes is None:
        return polya(np.full(counts.shape, KAPPA0), counts)
    groups = [counts[:, shapes.of_word == shape] for shape in range(shapes.number)]
    by_shape = np.stack([group.sum(axis=1) for group in groups], axis=1)
    of_words = sum(polya(np.full(group.shape, KAPPA0), group) for group in groups if group.shape[1])
    return polya(np.ones(by_shape.shape), by_shape) + of_words


def log_evidence(
    kind: type[Annotators],
    truth_model: Truth,
    tags: TagSet,
    encoded: Crowd,
    known: NDArray[np.int32],
    shapes: Shapes | None = None,
) -> float:
    """Σ over every truth that fits what is known."""
    lengths = np.diff(encoded.doc_start)
    J = len(tags.labels)
    all_paths = [
        list(valid_paths(tags, length))
        if isinstance(truth_model, Markov)
        else list(itertools.product(range(J), repeat=length))
        for length in lengths
    ]
    totals = []
    for paths in itertools.product(*all_paths):
        truth = np.array([label for path in paths for label in path])
        if np.all((known < 0) | (known == truth)):
            totals.append(
                truth_evidence(truth_model, tags, encoded, truth)
                + annotator_evidence(kind, tags, encoded, truth)
                + word_evidence(J, encoded, truth, shapes)
            )
    return float(logsumexp(totals))


def problem(seed: int, tags: TagSet) -> tuple[Corpus, Crowd]:
    rng = np.random.default_rng(seed)
    corpus = random_corpus(rng, tags, n_documents=2, longest=2, n_annotators=2, n_words=2, missing=0.15)
    return corpus, encode(corpus, tags)


def fitted(
    kind: type[Annotators],
    truth_kind: type[Truth],
    tags: TagSet,
    encoded: Crowd,
    known: NDArray[np.int32],
    shapes: Shapes | None = None,
) -> tuple[loop.Fit, Truth]:
    truth = truth_kind.of(tags, GAMMA0)
    prior = AnnotatorPrior(tags, ALPHA0, EPSILON0)
    words = Words.of(len(encoded.words), len(tags.labels), KAPPA0, shapes=shapes)
    model = loop.Model(truth, kind.of(prior, len(encoded.annotators)), words)
    engine = ThreadsEngine(encoded, known=known, threads=1)
    return loop.fit(engine, model, encoded.cells, max_passes=200, tolerance=1e-13), truth


@pytest.mark.parametrize("truth_kind", [Markov, Independent, Uniform])
@pytest.mark.parametrize("kind", ANNOTATORS)
@pytest.mark.parametrize("seed", range(3))
def test_bound_never_exceeds_the_evidence(kind: type[Annotators], truth_kind: type[Truth], seed: int) -> None:
    tags = tagset(Scheme.BIO)
    _, encoded = problem(seed, tags)
    unknown = np.full(encoded.n_tokens, -1, np.int32)
    fit, truth = fitted(kind, truth_kind, tags, encoded, unknown)
    evidence = log_evidence(kind, truth, tags, encoded, unknown)
    assert fit.trace.bound <= evidence + 1e-9
    # A bound with a constant missing would be far below: mean field on a few labels is within a few nats.
    assert fit.trace.bound > evidence - 0.35 * abs(evidence) - 1.0


@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.BIOES, Scheme.PLAIN])
@pytest.mark.parametrize("truth_kind", [Markov, Independent, Uniform])
@pytest.mark.parametrize("kind", [Accuracy, ClassVector, ConfusionMatrix, Sequential])
def test_bound_equals_the_evidence_when_every_label_is_known(
    kind: type[Annotators], truth_kind: type[Truth], scheme: Scheme
) -> None:
    tags = tagset(scheme)
    corpus, encoded = problem(3, tags)
    known = encode_known(corpus, tags, {d.id: d.gold or () for d in corpus}, Invalid.REPAIR)
    fit, truth = fitted(kind, truth_kind, tags, encoded, known)
    evidence = log_evidence(kind, truth, tags, encoded, known)
    np.testing.assert_allclose(fit.trace.bound, evidence, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_shapes_of_words_are_in_the_bound(seed: int) -> None:
    tags = tagset(Scheme.BIO)
    rng = np.random.default_rng(seed)
    corpus = random_corpus(rng, tags, n_documents=2, longest=3, n_annotators=2, n_words=4, missing=0.15)
    encoded = encode(corpus, tags)
    known = encode_known(corpus, tags, {d.id: d.gold or () for d in corpus}, Invalid.REPAIR)
    for given in (known, np.full(encoded.n_tokens, -1, np.int32)):
        fit, truth = fitted(ConfusionMatrix, Markov, tags, encoded, given, shapes_of(encoded))
        evidence = log_evidence(ConfusionMatrix, truth, tags, encoded, given, shapes_of(encoded))
        assert fit.trace.bound <= evidence + 1e-9
        assert (np.diff(fit.trace.bounds) > -1e-9).all()
        if given is known:
            np.testing.assert_allclose(fit.trace.bound, evidence, rtol=1e-9)


def test_spam_bound_stays_below_when_every_label_is_known() -> None:
    tags = tagset(Scheme.BIO)
    corpus, encoded = problem(5, tags)
    known = encode_known(corpus, tags, {d.id: d.gold or () for d in corpus}, Invalid.REPAIR)
    assert any(known[t] == label for t, _, _, label in events(encoded))
    fit, truth = fitted(Spammer, Markov, tags, encoded, known)
    assert fit.trace.bound < log_evidence(Spammer, truth, tags, encoded, known)


@pytest.mark.parametrize("with_shapes", [False, True])
@pytest.mark.parametrize("truth_kind", [Markov, Independent])
@pytest.mark.parametrize("kind", [Accuracy, ClassVector, ConfusionMatrix, Spammer])
def test_point_estimates_are_stationary_points_of_the_penalised_likelihood(
    kind: type[Annotators], truth_kind: type[Truth], with_shapes: bool
) -> None:
    """EM: the objective, summed over every path, equals the bound, and no small step from the estimate is better."""
    tags = tagset(Scheme.BIO)
    rng = np.random.default_rng(1)
    corpus = random_corpus(rng, tags, n_documents=8, longest=4, n_annotators=3, n_words=3)
    encoded = encode(corpus, tags)
    truth = truth_kind.of(tags, GAMMA0, point=True)
    prior = AnnotatorPrior(tags, ALPHA0, EPSILON0, point=True)
    shapes = shapes_of(encoded) if with_shapes else None
    words = Words.of(len(encoded.words), len(tags.labels), KAPPA0, shapes=shapes, point=True)
    start = loop.Model(truth, kind.of(prior, len(encoded.annotators)), words)
    engine = ThreadsEngine(encoded, threads=1)
    fit = loop.fit(engine, start, encoded.cells, max_passes=3000, tolerance=1e-14)

    def objective(model: loop.Model) -> float:
        return engine.run(model.tables(encoded.cells), model.truth.chain()).log_z - model.kl()

    best = objective(fit.model)
    np.testing.assert_allclose(best, fit.trace.bound, rtol=1e-6)
    for _ in range(20):
        jolted = fit.model.updated(
            encoded.cells,
            _jolted(engine.run(fit.model.tables(encoded.cells), fit.model.truth.chain()), rng),
        )
        assert objective(jolted) <= best + 1e-7


def _jolted(counts: Counts, rng: np.random.Generator) -> Counts:
    def shake(values: Floats) -> Floats:
        return values * np.exp(rng.normal(0.0, 0.05, values.shape))

    labels = LabelCounts(*(shake(part) for part in counts.labels))
    return Counts(counts.log_z, shake(counts.cells), shake(counts.words), labels)
