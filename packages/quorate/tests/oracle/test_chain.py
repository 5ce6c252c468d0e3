"""The compiled recursion against every path, enumerated; and against hmmlearn on long sequences."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hmmlearn.hmm import CategoricalHMM
from numpy.typing import NDArray

from problems import Enumerated, enumerate_paths, random_corpus, tagset
from quorate.corpus.records import Corpus, Document
from quorate.corpus.tags import Invalid, Scheme, TagSet, find_spans
from quorate.crowd.encode import encode, encode_known
from quorate.errors import FitError
from quorate.model.engines import plain
from quorate.model.engines.protocol import Tables
from quorate.model.engines.threads import ThreadsEngine, cell_counts_of
from quorate.model.kernels import chain as kernels
from quorate.model.parts.truth import Chain

Floats = NDArray[np.float64]
CLOSE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12}


def random_chain(rng: np.random.Generator, tags: TagSet, spread: float = 2.0) -> Chain:
    """Sub-normalised steps, as VB passes them, without what the scheme forbids."""
    J = len(tags.labels)
    trans = rng.normal(-1.0, spread, (J, J))
    trans[~tags.allowed] = -np.inf
    start = rng.normal(-1.0, spread, J)
    start[~tags.allowed_first] = -np.inf
    return Chain(start, trans, np.where(tags.allowed_last, 0.0, -np.inf), True)


class Problem:
    """A small corpus with random tables: the engine on one side, every path on the other."""

    def __init__(self, rng: np.random.Generator, scheme: Scheme, *, known: bool, spread: float = 2.0) -> None:
        self.tags = tagset(scheme, 1 if scheme is Scheme.BIOES else 2)
        self.corpus = random_corpus(rng, self.tags, longest=4)
        self.encoded = encode(self.corpus, self.tags)
        self.known = None
        if known:
            clamp = {
                d.id: tuple(tag if rng.random() < 0.4 else None for tag in d.gold or ())
                for d in self.corpus
                if rng.random() < 0.7
            }
            clamp = {key: tags for key, tags in clamp.items() if self._possible(tags)}
            self.known = encode_known(self.corpus, self.tags, clamp, Invalid.REPAIR)
        J = len(self.tags.labels)
        self.tables = Tables(
            rng.normal(0, spread, (len(self.encoded.cells.label), J)),
            rng.normal(0, spread, (len(self.encoded.words), J)),
        )
        self.chain = random_chain(rng, self.tags)
        self.engine = ThreadsEngine(self.encoded, known=self.known, threads=2)

    def _possible(self, given: tuple[str | None, ...]) -> bool:
        codes = np.array([-1 if tag is None else self.tags.index[tag] for tag in given], np.int16)
        return not self.tags.invalid_positions(codes, np.array([0, len(codes)])).size

    def evidence(self, d: int) -> Floats:
        """What the kernel gathers, written out token by token."""
        rows = []
        for t in range(self.encoded.doc_start[d], self.encoded.doc_start[d + 1]):
            row = self.tables.words[self.encoded.word[t]].copy()
            for e in range(self.encoded.event_start[t], self.encoded.event_start[t + 1]):
                row += self.tables.cells[self.encoded.event_cell[e]]
            if self.known is not None and self.known[t] >= 0:
                row[np.arange(len(row)) != self.known[t]] = -np.inf
            rows.append(row)
        rows[-1] = rows[-1] + self.chain.end
        return np.array(rows)

    def enumerated(self, d: int) -> Enumerated:
        return enumerate_paths(self.evidence(d), self.chain.start, self.chain.trans)


SCHEMES = list(Scheme)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("seed", range(3))
def test_pass_equals_enumeration(scheme: Scheme, known: bool, seed: int) -> None:
    problem = Problem(np.random.default_rng(seed), scheme, known=known)
    counts = problem.engine.run(problem.tables, problem.chain)
    answers = [problem.enumerated(d) for d in range(len(problem.corpus))]
    posterior = np.concatenate([answer.posterior for answer in answers])
    np.testing.assert_allclose(counts.log_z, sum(answer.log_z for answer in answers), **CLOSE)
    np.testing.assert_allclose(problem.engine.posterior, posterior, **CLOSE)
    np.testing.assert_allclose(counts.labels.pairs, sum(answer.pairs for answer in answers), **CLOSE)
    np.testing.assert_allclose(counts.labels.first, sum(answer.posterior[0] for answer in answers), **CLOSE)
    np.testing.assert_allclose(counts.labels.all, posterior.sum(axis=0), **CLOSE)
    for g in range(len(problem.tables.cells)):
        tokens = [
            t
            for t in range(len(posterior))
            if g in problem.encoded.event_cell[slice(*problem.encoded.event_start[t : t + 2])]
        ]
        np.testing.assert_allclose(counts.cells[g], posterior[tokens].sum(axis=0), **CLOSE)
    for v in range(len(problem.tables.words)):
        np.testing.assert_allclose(counts.words[v], posterior[problem.encoded.word == v].sum(axis=0), **CLOSE)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("seed", range(3))
def test_decoding_equals_enumeration(scheme: Scheme, known: bool, seed: int) -> None:
    problem = Problem(np.random.default_rng(seed + 10), scheme, known=known)
    decoded = problem.engine.decode(problem.tables, problem.chain, by_token=False)
    n_spans = 0
    for d in range(len(problem.corpus)):
        answer = problem.enumerated(d)
        first, last = problem.encoded.doc_start[d], problem.encoded.doc_start[d + 1]
        assert tuple(decoded.path[first:last]) == answer.best
        np.testing.assert_allclose(decoded.log_probability[d], answer.best_log_probability, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(decoded.log_z[d], answer.log_z, **CLOSE)
        np.testing.assert_allclose(decoded.posterior[first:last], answer.posterior, **CLOSE)
        if scheme is Scheme.PLAIN:
            assert not decoded.span_end[first:last].any()
            continue
        best_spans = problem.tags.spans([problem.tags.labels[label] for label in answer.best])
        assert np.count_nonzero(decoded.span_end[first:last]) == len(best_spans)
        for span in best_spans:
            n_spans += 1
            exact = sum(
                weight
                for path, weight in answer.weights.items()
                if span in find_spans([problem.tags.labels[label] for label in path])
            )
            assert decoded.span_end[first + span.start] == first + span.end
            np.testing.assert_allclose(decoded.span_probability[first + span.start], exact, **CLOSE)
    assert n_spans > 0 or scheme is Scheme.PLAIN


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    ("scheme", "types", "spread"),
    [
        (Scheme.BIO, 2, 2.0),
        (Scheme.BIOES, 2, 2.0),
        (Scheme.PLAIN, 8, 2.0),
        (Scheme.BIO, 6, 2.0),
        (Scheme.BIO, 2, 150.0),
    ],
)
def test_documents_side_by_side_equal_each_alone(scheme: Scheme, types: int, spread: float, known: bool) -> None:
    """Many in a slice, of lengths from 0 on; where labels are hundreds of nats apart, some are done in log space."""
    rng = np.random.default_rng(3)
    tags = tagset(scheme, types)
    short = random_corpus(rng, tags, n_documents=40, longest=3)
    documents = []
    for number in range(170):
        parts = [list(short)[rng.integers(40)] for _ in range(rng.integers(0, 12))]
        told = {
            f"a{k}": sum((p.annotations.get(f"a{k}", (None,) * len(p.tokens)) for p in parts), ()) for k in range(3)
        }
        documents.append(
            Document(f"d{number}", sum((p.tokens for p in parts), ()), told, sum((p.gold or () for p in parts), ()))
        )
    encoded = encode(Corpus(documents), tags)
    J = len(tags.labels)
    tables = Tables(
        rng.normal(0, spread, (len(encoded.cells.label), J)), rng.normal(0, spread, (len(encoded.words), J)), 0.7
    )
    chain = random_chain(rng, tags)
    truth = np.array([tags.index[str(tag)] for d in documents for tag in d.gold or ()], np.int32)
    of_document = np.repeat(np.arange(len(documents)), [len(d.tokens) for d in documents])
    clamp = None
    if known:
        starts = encoded.doc_start
        possible = [
            not tags.invalid_positions(truth[first:last].astype(np.int16), np.array([0, last - first])).size
            for first, last in itertools.pairwise(starts)
        ]
        clamp = np.where(np.array(possible)[of_document] & (rng.random(len(truth)) < 0.3), truth, -1).astype(np.int32)
    engine = ThreadsEngine(encoded, known=clamp, threads=2)
    counts = engine.run(tables, chain)
    assert in_log_space(engine, tables, chain) == (spread > 100)
    alone = [
        plain.passed(plain.evidence_of(encoded, tables, chain, clamp, place), chain)
        for place in map(plain.Document, encoded.doc_start[:-1].tolist(), encoded.doc_start[1:].tolist())
        if place.last > place.first
    ]
    posterior = np.concatenate([each.posterior for each in alone])
    np.testing.assert_allclose(counts.log_z, sum(each.log_z for each in alone), rtol=1e-10)
    np.testing.assert_allclose(engine.posterior, posterior, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(counts.labels.pairs, sum(each.pairs for each in alone), rtol=1e-7, atol=1e-11)
    np.testing.assert_allclose(counts.labels.first, sum(each.posterior[0] for each in alone), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(counts.labels.all, posterior.sum(axis=0), rtol=1e-7)
    np.testing.assert_allclose(
        counts.words,
        [posterior[encoded.word == v].sum(axis=0) for v in range(len(encoded.words))],
        rtol=1e-7,
        atol=1e-12,
    )
    np.testing.assert_allclose(counts.cells, 0.7 * cell_counts_of(encoded, posterior), rtol=1e-7, atol=1e-12)


def in_log_space(engine: ThreadsEngine, tables: Tables, chain: Chain) -> bool:
    """Whether side by side too much is lost in some document."""
    rows, steps = kernels.Rows(*tables, chain.end), engine._steps(chain.start, chain.trans)
    none = np.zeros((0, len(chain.start)))
    return any(kernels.chain_pass(piece, rows, steps, none).redone for piece in engine._slices)


def test_a_long_document_is_done_by_itself() -> None:
    rng = np.random.default_rng(0)
    tags = tagset(Scheme.BIO, 1)
    said = tuple(tags.labels[code] for code in rng.integers(0, 3, kernels.LONG + 20))
    words = tuple(f"w{n}" for n in rng.integers(0, 5, len(said)))
    corpus = Corpus([Document("long", words, {"ann": said}), Document("short", words[:3], {"ann": said[:3]})])
    encoded = encode(corpus, tags)
    tables = Tables(rng.normal(0, 1, (len(encoded.cells.label), 3)), rng.normal(0, 1, (len(encoded.words), 3)))
    chain = random_chain(rng, tags)
    engine = ThreadsEngine(encoded)
    counts = engine.run(tables, chain)
    places = [plain.Document(0, len(said)), plain.Document(len(said), len(said) + 3)]
    alone = [plain.passed(plain.evidence_of(encoded, tables, chain, None, place), chain) for place in places]
    posterior = np.concatenate([each.posterior for each in alone])
    np.testing.assert_allclose(counts.log_z, sum(each.log_z for each in alone), rtol=1e-10)
    np.testing.assert_allclose(engine.posterior, posterior, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(counts.labels.pairs, sum(each.pairs for each in alone), rtol=1e-7)
    np.testing.assert_allclose(counts.labels.first, sum(each.posterior[0] for each in alone), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(counts.cells, cell_counts_of(encoded, posterior), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("rare", [-400.0, -800.0])
@pytest.mark.parametrize("coupled", [True, False])
def test_a_step_that_is_nothing_as_a_number_is_still_possible(rare: float, coupled: bool) -> None:
    tags = tagset(Scheme.BIO, 1)
    corpus = Corpus([Document("1", ("a", "b", "c"), {"ann": ("O", "B-T0", "I-T0")})])
    encoded = encode(corpus, tags)
    rng = np.random.default_rng(0)
    cells = rng.normal(0, 1, (len(encoded.cells.label), 3))
    cells[:, 0] -= 900.0
    tables = Tables(cells, np.zeros((len(encoded.words), 3)))
    chain = random_chain(rng, tags)
    chain.start[1] = rare
    if coupled:
        chain.trans[0, 1] = rare
    else:
        chain = chain._replace(trans=np.tile(chain.start, (3, 1)), coupled=False)
    engine = ThreadsEngine(encoded)
    counts = engine.run(tables, chain)
    alone = plain.passed(plain.evidence_of(encoded, tables, chain, None, plain.Document(0, 3)), chain)
    np.testing.assert_allclose(counts.log_z, alone.log_z, rtol=1e-9)
    np.testing.assert_allclose(engine.posterior, alone.posterior, rtol=1e-7, atol=1e-12)
    decoded = engine.decode(tables, chain, by_token=False)
    assert decoded.log_probability[0] <= 1e-9
    np.testing.assert_allclose(decoded.posterior, alone.posterior, rtol=1e-7, atol=1e-12)


def test_of_documents_without_a_path_the_first_is_named() -> None:
    tags = tagset(Scheme.BIO, 1)
    corpus = Corpus([Document(str(n), ("a",) * (2 + n), {"ann": ("O",) * (2 + n)}) for n in range(3)])
    encoded = encode(corpus, tags)
    tables = Tables(np.full((len(encoded.cells.label), 3), -np.inf), np.zeros((len(encoded.words), 3)))
    chain = random_chain(np.random.default_rng(0), tags)
    with pytest.raises(FitError, match="document 0"):
        ThreadsEngine(encoded).run(tables, chain)


def test_by_token_takes_each_tokens_best_label() -> None:
    problem = Problem(np.random.default_rng(4), Scheme.BIO, known=False)
    decoded = problem.engine.decode(problem.tables, problem.chain, by_token=True)
    np.testing.assert_array_equal(decoded.path, decoded.posterior.argmax(axis=1))


@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.BIOES])
def test_evidence_too_far_apart_for_scaling_is_done_in_log_space(scheme: Scheme) -> None:
    """Labels differ by thousands of nats, as with 120 annotators: a scaled sum is 0 for some documents."""
    fell_back = 0
    for seed in range(5):
        problem = Problem(np.random.default_rng(seed), scheme, known=True, spread=900.0)
        counts = problem.engine.run(problem.tables, problem.chain)
        posterior = problem.engine.posterior.copy()
        decoded = problem.engine.decode(problem.tables, problem.chain, by_token=False)
        answers = [problem.enumerated(d) for d in range(len(problem.corpus))]
        np.testing.assert_allclose(counts.log_z, sum(answer.log_z for answer in answers), rtol=1e-9)
        np.testing.assert_allclose(posterior, np.concatenate([a.posterior for a in answers]), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(decoded.posterior, posterior, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(counts.labels.pairs, sum(a.pairs for a in answers), rtol=1e-9, atol=1e-9)
        fell_back += in_log_space(problem.engine, problem.tables, problem.chain)
    assert fell_back > 0


def test_clamped_inside_after_near_certain_outside_is_done_in_log_space() -> None:
    """The known label leaves only paths of weight e^-2000: the scaled recursion loses them, log space does not."""
    tags = tagset(Scheme.BIO)
    corpus = Corpus([Document("1", ("a", "b"), {"x": ("O", "O")})])
    encoded = encode(corpus, tags)
    known = np.array([-1, tags.index["I-T0"]], np.int32)
    engine = ThreadsEngine(encoded, known=known, text=False)
    rows = np.zeros((len(encoded.cells.label), 3))
    rows[:, 1:] = -1000.0
    chain = random_chain(np.random.default_rng(0), tags)
    counts = engine.run(Tables(rows, np.zeros((0, 3))), chain)
    expected = chain.start[1] + chain.trans[1, 2] - 2000.0
    np.testing.assert_allclose(counts.log_z, expected, rtol=1e-12)
    np.testing.assert_allclose(engine.posterior, [[0, 1, 0], [0, 0, 1]], atol=1e-12)


def test_rare_steps_do_not_lose_a_path_in_silence() -> None:
    """A label that is unlikely at first, and a step that is, would underflow one after the other and then be missed."""
    tags = tagset(Scheme.BIO)
    L = 120
    corpus = Corpus([Document("1", tuple(f"w{min(t, 1)}" for t in range(L)))])
    encoded = encode(corpus, tags)
    words = np.array([[0.0, -660.0, -660.0], [-10.0, -665.0, 0.0]])
    trans = np.log(np.full((3, 3), 1 / 3))
    trans[1, 2] = -100.0
    trans[~tags.allowed] = -np.inf
    start = np.where(tags.allowed_first, np.log(1 / 3), -np.inf)
    chain = Chain(start, trans, np.zeros(3), True)
    engine = ThreadsEngine(encoded)
    counts = engine.run(Tables(np.zeros((0, 3)), words), chain)
    decoded = engine.decode(Tables(np.zeros((0, 3)), words), chain, by_token=False)
    log_alpha = start + words[0]
    for _ in range(1, L):
        log_alpha = np.logaddexp.reduce(log_alpha[:, None] + trans, axis=0) + words[1]
    np.testing.assert_allclose(counts.log_z, np.logaddexp.reduce(log_alpha), rtol=1e-9)
    np.testing.assert_allclose(decoded.log_z[0], counts.log_z, rtol=1e-9)
    assert decoded.log_probability[0] <= 0.0


@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.IO, Scheme.PLAIN])
def test_six_tokens_equal_enumeration(scheme: Scheme) -> None:
    tags = tagset(scheme)
    rng = np.random.default_rng(3)
    evidence = rng.normal(0.0, 2.0, (6, len(tags.labels)))
    corpus = Corpus([Document("1", tuple("abcdef"))])
    chain = random_chain(rng, tags)
    engine = ThreadsEngine(encode(corpus, tags))
    counts = engine.run(Tables(np.zeros((0, len(tags.labels))), evidence), chain)
    answer = enumerate_paths(evidence + np.outer(np.eye(6)[-1], chain.end), chain.start, chain.trans)
    np.testing.assert_allclose(counts.log_z, answer.log_z, **CLOSE)
    np.testing.assert_allclose(engine.posterior, answer.posterior, **CLOSE)
    np.testing.assert_allclose(counts.labels.pairs, answer.pairs, **CLOSE)


def test_long_sequence_agrees_with_hmmlearn() -> None:
    rng = np.random.default_rng(0)
    J, V, length = 4, 6, 3000
    model = CategoricalHMM(n_components=J, init_params="")
    model.startprob_ = rng.dirichlet(np.ones(J))
    model.transmat_ = rng.dirichlet(np.ones(J), size=J)
    model.emissionprob_ = rng.dirichlet(np.ones(V), size=J)
    words = rng.integers(V, size=length)
    log_prob, posterior = model.score_samples(words[:, None])
    path_log_prob, path = model.decode(words[:, None])

    tags = TagSet.of_types(Scheme.PLAIN, ["a", "b", "c", "d"])
    corpus = Corpus([Document("1", tuple(f"w{word}" for word in words))])
    encoded = encode(corpus, tags, words=[f"w{v}" for v in range(V)])
    engine = ThreadsEngine(encoded)
    tables = Tables(np.zeros((0, J)), np.log(model.emissionprob_.T))
    chain = Chain(np.log(model.startprob_), np.log(model.transmat_), np.zeros(J), True)
    counts = engine.run(tables, chain)
    np.testing.assert_allclose(counts.log_z, log_prob, rtol=1e-9)
    np.testing.assert_allclose(engine.posterior, posterior, rtol=1e-6, atol=1e-9)
    decoded = engine.decode(tables, chain, by_token=False)
    # Equally good paths may be told apart by rounding alone: the score must agree, the path nearly everywhere.
    np.testing.assert_allclose(decoded.log_probability[0], path_log_prob - log_prob, rtol=1e-9)
    assert np.mean(decoded.path == path) > 0.99


def test_independent_tokens_equal_a_chain_with_equal_rows() -> None:
    """Two routes to one answer: the short kernel and the recursion."""
    problem = Problem(np.random.default_rng(7), Scheme.PLAIN, known=False)
    row = np.log(np.random.default_rng(1).dirichlet(np.ones(len(problem.tags.labels))))
    chain = Chain(row, np.tile(row, (len(row), 1)), np.zeros(len(row)), False)
    alone = problem.engine.run(problem.tables, chain)
    posterior = problem.engine.posterior.copy()
    coupled = problem.engine.run(problem.tables, chain._replace(coupled=True))
    np.testing.assert_allclose(alone.log_z, coupled.log_z, **CLOSE)
    np.testing.assert_allclose(posterior, problem.engine.posterior, **CLOSE)
    np.testing.assert_allclose(alone.labels.all, coupled.labels.all, **CLOSE)
    np.testing.assert_allclose(alone.cells, coupled.cells, **CLOSE)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("by_token", [False, True])
def test_decoding_independent_tokens_equals_decoding_such_a_chain(scheme: Scheme, by_token: bool) -> None:
    n_spans = 0
    for seed in range(4):
        problem = Problem(np.random.default_rng(seed), scheme, known=seed % 2 == 1)
        row = np.log(np.random.default_rng(seed).dirichlet(np.ones(len(problem.tags.labels))))
        chain = Chain(row, np.tile(row, (len(row), 1)), np.zeros(len(row)), False)
        alone = problem.engine.decode(problem.tables, chain, by_token=by_token)
        coupled = problem.engine.decode(problem.tables, chain._replace(coupled=True), by_token=by_token)
        for one, other in zip(alone, coupled, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), **CLOSE)
        n_spans += int(np.count_nonzero(alone.span_end))
    assert n_spans > 0 or scheme is Scheme.PLAIN


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("by_token", [False, True])
def test_decoding_votes_equals_decoding_their_logarithms(scheme: Scheme, by_token: bool) -> None:
    """Two routes to one answer: shares of votes, and a chain whose evidence they are."""
    problem = Problem(np.random.default_rng(5), scheme, known=False)
    J, encoded = len(problem.tags.labels), problem.encoded
    engine = ThreadsEngine(encoded, text=False)
    engine.vote(np.eye(J)[encoded.cells.label], 0.3)
    rank = np.random.default_rng(0).permutation(J).astype(np.float64)
    votes = engine.decode_votes(rank[None], by_token=by_token)

    tokens = Corpus([Document(d.id, tuple(f"{d.id}:{t}" for t in range(len(d.tokens)))) for d in problem.corpus])
    every = [token for document in tokens for token in document.tokens]
    one_word_a_token = ThreadsEngine(encode(tokens, problem.tags, words=every))
    rows = np.log(votes.posterior) - 1e-9 * rank
    row = np.full(J, -np.log(J))
    chain = Chain(row, np.tile(row, (J, 1)), np.zeros(J), True)
    expected = one_word_a_token.decode(Tables(np.zeros((0, J)), rows), chain, by_token=by_token)
    np.testing.assert_array_equal(votes.path, expected.path)
    np.testing.assert_array_equal(votes.span_end, expected.span_end)
    np.testing.assert_allclose(votes.posterior, expected.posterior, atol=1e-7)
    np.testing.assert_allclose(votes.log_probability, expected.log_probability, atol=1e-6)
    np.testing.assert_allclose(votes.span_probability, expected.span_probability, atol=1e-7)
