"""The bound against the evidence, which on tiny data can be summed over every truth in closed form."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from problems import dense_sequential_prior, enumerate_paths, random_corpus, tagset, valid_paths
from quorate.corpus.records import Corpus
from quorate.corpus.tags import Invalid, Scheme, TagSet
from quorate.crowd.algebra import without
from quorate.crowd.crowd import AnnotatorPriors, Cells, Crowd
from quorate.crowd.encode import encode, encode_known
from quorate.model import loop
from quorate.model.engines.protocol import Counts
from quorate.model.engines.threads import ThreadsEngine
from quorate.model.history import WithHistory
from quorate.model.parts.annotators import Accuracy, AnnotatorPrior, Annotators, ClassVector, Spammer
from quorate.model.parts.confusions import ConfusionMatrix, Sequential
from quorate.model.parts.pool import Pool
from quorate.model.parts.text import Shapes, Words
from quorate.model.parts.truth import Independent, LabelCounts, Markov, Truth, Uniform

Floats = NDArray[np.float64]
ANNOTATORS = [Accuracy, Spammer, ClassVector, ConfusionMatrix, Sequential, Pool]
POOLED: list[type[Annotators]] = [Spammer, ConfusionMatrix, Sequential]
EVERYBODY = AnnotatorPriors()
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


def of_abstaining(tags: TagSet, coverage: float) -> Floats:
    """``[j, i]`` The prior of *cm* of a source that abstains: of what marks would have, all but its coverage is O's."""
    rows, outside = ALPHA0 + EPSILON0 * np.eye(len(tags.labels)), tags.labels.index("O")
    for row in rows:
        for label in range(len(row)):
            if label != outside:
                row[outside] += (1 - coverage) * row[label]
                row[label] *= coverage
    return rows


def annotator_evidence(
    kind: type[Annotators],
    tags: TagSet,
    encoded: Crowd,
    truth: NDArray[np.int64],
    coverage: Sequence[float] = (),
) -> float:
    """Of a label by somebody whose ``coverage`` is below 1 there is one model, whichever ``kind`` the others have."""
    J, K = len(tags.labels), len(encoded.annotators)
    said, alone = list[tuple[int, int, int, int]](), 0.0
    for one in events(encoded):
        if not coverage or coverage[one[1]] == 1.0:
            said.append(one)
    for k, share in enumerate(coverage):
        if share < 1.0:
            matrix = np.zeros((J, J))
            for t, who, _, i in events(encoded):
                matrix[truth[t], i] += who == k
            alone += polya(of_abstaining(tags, share), matrix)
    return alone + evidence_of_people(kind, tags, said, truth, K)


def evidence_of_people(
    kind: type[Annotators], tags: TagSet, said: list[tuple[int, int, int, int]], truth: NDArray[np.int64], K: int
) -> float:
    J = len(tags.labels)
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
    coverage: Sequence[float] = (),
) -> float:
    """Σ over every truth that fits what is known; of a pool, the mean of its models' logarithms."""
    if kind is Pool:
        own = [log_evidence(each, truth_model, tags, encoded, known, shapes, coverage) for each in POOLED]
        return float(np.mean(own))
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
                + annotator_evidence(kind, tags, encoded, truth, coverage)
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
    of_each: AnnotatorPriors = EVERYBODY,
) -> tuple[loop.Fit, Truth]:
    truth = truth_kind.of(tags, GAMMA0)
    prior = AnnotatorPrior(tags, ALPHA0, EPSILON0, of_each=of_each)
    words = Words.of(len(encoded.words), len(tags.labels), KAPPA0, shapes=shapes)
    model = loop.Model(truth, kind.of(prior, len(encoded.annotators)), words)
    engine = ThreadsEngine(encoded, known=known, threads=1)
    return loop.fit(engine, model, encoded, max_passes=200, tolerance=1e-13), truth


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
    fit = loop.fit(engine, start, encoded, max_passes=3000, tolerance=1e-14)

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


@pytest.mark.parametrize("some_known", [False, True])
@pytest.mark.parametrize("coverage", [(1.0, 1.0), (1.0, 0.4), (0.05, 1.0), (0.3, 0.7)])
@pytest.mark.parametrize("seed", range(3))
def test_bound_of_a_pool_is_below_the_mean_evidence_of_its_models_and_never_falls(
    seed: int, coverage: tuple[float, float], some_known: bool
) -> None:
    """With labels missing, sources that abstain, and some labels known."""
    tags = tagset(Scheme.BIO)
    rng = np.random.default_rng(100 + seed)
    corpus = random_corpus(rng, tags, n_documents=2, longest=2, n_annotators=2, n_words=2, missing=0.15)
    encoded = encode(corpus, tags)
    if len(encoded.annotators) < 2:
        pytest.skip("one of the two labelled nothing")
    known = encode_known(corpus, tags, {corpus[0].id: corpus[0].gold or ()} if some_known else {}, Invalid.REPAIR)
    fit, truth = fitted(Pool, Markov, tags, encoded, known, of_each=AnnotatorPriors(coverage=coverage))
    shares = [max(share, 0.1) if share < 1 else 1.0 for share in coverage]
    evidence = log_evidence(Pool, truth, tags, encoded, known, coverage=shares)
    assert fit.trace.bound <= evidence + 1e-9
    assert fit.trace.bound > evidence - 0.35 * abs(evidence) - 1.0
    assert (np.diff(fit.trace.bounds) > -1e-9).all()


@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.BIOES, Scheme.PLAIN])
@pytest.mark.parametrize("coverage", [None, (1.0, 0.4)])
def test_bound_of_a_pool_is_the_mean_of_its_models_bounds_when_every_label_is_known(
    scheme: Scheme, coverage: tuple[float, float] | None
) -> None:
    """Of *cm* and *seq* those are their evidence; what somebody who abstains adds is that of their own matrix."""
    tags = tagset(scheme)
    if tags.outside is None:
        coverage = None
    corpus, encoded = problem(3, tags)
    assert len(encoded.annotators) == 2
    known = encode_known(corpus, tags, {d.id: d.gold or () for d in corpus}, Invalid.REPAIR)
    pool, truth = fitted(Pool, Markov, tags, encoded, known, of_each=AnnotatorPriors(coverage=coverage))
    exact = [
        log_evidence(kind, truth, tags, encoded, known, coverage=coverage or ())
        for kind in (ConfusionMatrix, Sequential)
    ]
    # Of spam alone the bound is not the evidence; what is not said by those who abstain is all that it sees.
    people = without(encoded, np.array([bool(coverage) and k == 1 for k in who_said(encoded)]))
    spam = fitted(Spammer, Markov, tags, people, known)[0].trace.bound
    alone = log_evidence(Spammer, truth, tags, encoded, known, coverage=coverage or ())
    alone -= log_evidence(Spammer, truth, tags, people, known)
    np.testing.assert_allclose(pool.trace.bound, np.mean([*exact, spam + alone]), rtol=1e-9)


def who_said(encoded: Crowd) -> list[int]:
    return [int(k) for k in encoded.cells.annotator[encoded.event_cell]]


@pytest.mark.parametrize("coverage", [None, (1.0, 0.3, 1.0)])
@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.PLAIN])
@pytest.mark.parametrize("seed", range(2))
def test_a_pass_of_a_pool_is_that_over_every_path(
    seed: int, scheme: Scheme, coverage: tuple[float, ...] | None
) -> None:
    """ln Z and posteriors, from the three models' tables one by one; and each takes the full counts of those."""
    tags = tagset(scheme)
    J = len(tags.labels)
    rng = np.random.default_rng(seed)
    corpus = random_corpus(rng, tags, n_documents=4, longest=4, n_annotators=3, n_words=3)
    encoded = encode(corpus, tags)
    assert len(encoded.annotators) == 3
    if tags.outside is None:
        coverage = None
    prior = AnnotatorPrior(tags, ALPHA0, EPSILON0, of_each=AnnotatorPriors(coverage=coverage))
    words = Words.of(len(encoded.words), J, KAPPA0)
    model = loop.Model(Markov.of(tags, GAMMA0), Pool.of(prior, 3), words)
    engine = ThreadsEngine(encoded, threads=1)
    model = loop.more_passes(engine, loop.initial_model(engine, model, encoded), encoded.cells, 2)
    pool = model.annotators
    assert isinstance(pool, Pool)
    abstains = [bool(coverage) and k == 1 for k in range(3)]
    tables = [part.log_lik(encoded.cells) for part in (pool.spam, pool.cm, pool.seq)]
    of_alone = pool.alone.log_lik(encoded.cells)
    word_rows, chain = model.text.log_lik(None) if model.text else np.zeros(0), model.truth.chain()
    log_z, counts = 0.0, np.zeros((len(encoded.cells.label), J))
    for first, last in itertools.pairwise(encoded.doc_start.tolist()):
        evidence = np.zeros((last - first, J))
        for t in range(first, last):
            evidence[t - first] = word_rows[encoded.word[t]]
            for g in encoded.event_cell[encoded.event_start[t] : encoded.event_start[t + 1]]:
                if abstains[encoded.cells.annotator[g]]:
                    evidence[t - first] += of_alone[g]
                else:
                    evidence[t - first] += sum(table[g] for table in tables) / 3
        evidence[-1] += chain.end
        answer = enumerate_paths(evidence, chain.start, chain.trans)
        log_z += answer.log_z
        for t in range(first, last):
            for g in encoded.event_cell[encoded.event_start[t] : encoded.event_start[t + 1]]:
                counts[g] += answer.posterior[t - first]
    found = engine.run(model.tables(encoded.cells), chain)
    np.testing.assert_allclose(found.log_z, log_z, rtol=1e-9)
    np.testing.assert_allclose(found.cells, counts, rtol=1e-9, atol=1e-12)
    updated = pool.updated(encoded.cells, found.cells)
    silent = np.array([abstains[k] for k in encoded.cells.annotator.tolist()])
    for part, before, own in (
        (updated.spam, pool.spam, ~silent),
        (updated.cm, pool.cm, ~silent),
        (updated.seq, pool.seq, ~silent),
        (updated.alone, pool.alone, silent),
    ):
        expected = before.updated(encoded.cells, np.where(own[:, None], counts, 0.0))
        for k in range(3):
            np.testing.assert_allclose(part.matrix(k), expected.matrix(k), rtol=1e-9)


def test_a_history_of_a_pool_is_in_the_priors_of_its_models() -> None:
    """With every label known: for *cm* and *seq* the evidence with earlier counts in the prior, for all the mean."""
    tags = tagset(Scheme.BIO)
    J, K, rng = len(tags.labels), 2, np.random.default_rng(5)
    corpus, encoded = problem(3, tags)
    known = encode_known(corpus, tags, {d.id: d.gold or () for d in corpus}, Invalid.REPAIR)
    past = Cells(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([0, 2, 1]), K, J, J)
    earlier = rng.gamma(2.0, 2.0, (3, J))
    bounds: dict[type[Annotators], float] = {}
    kinds: list[type[Annotators]] = [*POOLED, Pool]
    for kind in kinds:
        blank = WithHistory.around(kind.of(AnnotatorPrior(tags, ALPHA0, EPSILON0), K), past, earlier)
        model = loop.Model(Markov.of(tags, GAMMA0), blank, None)
        engine = ThreadsEngine(encoded, known=known, text=False, threads=1)
        trace = loop.fit(engine, model, encoded, max_passes=300, tolerance=1e-15).trace
        assert (np.diff(trace.bounds) > -1e-9).all()
        bounds[kind] = trace.bound
    np.testing.assert_allclose(bounds[Pool], np.mean([bounds[kind] for kind in POOLED]), rtol=1e-9)
    truth = truth_evidence(Markov.of(tags, GAMMA0), tags, encoded, known.astype(np.int64))
    dense: dict[type[Annotators], Floats] = {
        ConfusionMatrix: np.tile(ALPHA0 + EPSILON0 * np.eye(J), (K, 1, 1, 1)),
        Sequential: np.tile(dense_sequential_prior(tags, ALPHA0, EPSILON0), (K, 1, 1, 1)),
    }
    for kind, prior in dense.items():
        counts = np.zeros_like(prior)
        for k, before, i, row in zip(past.annotator, past.previous, past.label, earlier, strict=True):
            prior[k, before if kind is Sequential else 0, :, i] += row
        for t, k, before, i in events(encoded):
            counts[k, before if kind is Sequential else 0, known[t], i] += 1
        np.testing.assert_allclose(bounds[kind], truth + polya(prior, counts), rtol=1e-9)


def _jolted(counts: Counts, rng: np.random.Generator) -> Counts:
    def shake(values: Floats) -> Floats:
        return values * np.exp(rng.normal(0.0, 0.05, values.shape))

    labels = LabelCounts(*(shake(part) for part in counts.labels))
    return Counts(counts.log_z, shake(counts.cells), shake(counts.words), labels)
