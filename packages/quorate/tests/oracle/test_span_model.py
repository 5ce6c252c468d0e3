"""The span model against every set of candidates that do not overlap, enumerated; its bound; what it learns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, logsumexp
from scipy.stats import dirichlet

import quorate
from every_set import Place, components, overlap, places_of, response_to, sets_of
from problems import certain, enumerate_paths, random_corpus, tagset
from quorate.corpus.records import Corpus, Document
from quorate.corpus.simulate import Behaviour, crowd
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme, find_spans
from quorate.crowd.algebra import only_documents
from quorate.crowd.correlated import Correlated
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode
from quorate.crowd.hold_out import hold_out
from quorate.model import loop
from quorate.model.build import model_of
from quorate.model.calibration import AS_STATED, Calibration
from quorate.model.candidates import Candidates, find_candidates
from quorate.model.engines import plain
from quorate.model.engines.protocol import Likely, Tables
from quorate.model.engines.threads import ThreadsEngine
from quorate.model.kernels import spans as kernels
from quorate.model.kernels.likely import SpanLabels
from quorate.model.parts.dirichlet import expected_log, log_mean
from quorate.model.parts.responses import _POOLED, _USUAL, _USUAL_MARKS, _WORTH, RESPONSES, Responses
from quorate.model.parts.truth import Chain
from quorate.model.settings import Settings
from quorate.model.span_model import SpanEngine, SpanModel
from quorate.model.spans import (
    NOTED,
    SpanEvidence,
    by_label,
    fit_spans,
    given_spans,
    highest_f1,
    span_evidence,
)
from simulated_crowds import sentences

Floats = NDArray[np.float64]
CLOSE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12}
NOWHERE = np.zeros(0, np.int64)
NOTHING_LIKELY = Likely(start=NOWHERE, end=NOWHERE, kind=NOWHERE, probability=np.zeros(0))
OFF = (kernels.SHIFTED, kernels.SPLIT, kernels.OTHER_TYPE_SHIFTED)
EXACT, MISSED = kernels.EXACT, kernels.MISSED


@dataclass
class Answer:
    """What follows from the weight of every set of one document."""

    log_weights: dict[tuple[int, ...], float]
    log_z: float
    true: Floats
    free: Floats
    responses: Floats
    marks: Floats


@dataclass
class Case:
    """A problem as the kernels take it, with tables; and its answers by enumeration."""

    problem: kernels.Problem
    of_true: Floats
    of_free: Floats

    @property
    def n_docs(self) -> int:
        return len(self.problem.first) - 1

    def spans(self, d: int) -> list[Place]:
        p = self.problem
        return [(int(p.start[c]), int(p.end[c]), int(p.kind[c])) for c in range(p.first[d], p.first[d + 1])]

    def answer(self, d: int, temper: float, exponent: float) -> Answer:
        p, spans, a = self.problem, self.spans(d), int(self.problem.first[d])
        n = len(spans)
        said = [
            (int(p.who[pair]), float(p.weight[pair]), p.response[p.response_start[d] + number * n :][:n].tolist())
            for number, pair in enumerate(range(p.pair_start[d], p.pair_start[d + 1]))
        ]

        def log_true(c: int) -> float:
            told = [
                weight * (self.of_true[k, codes[c]] - (p.spread[a + c] if codes[c] in OFF else 0.0))
                for k, weight, codes in said
                if codes[c] != kernels.UNSEEN
            ]
            return float(temper * sum(told) + p.prior[a + c])

        def log_free(c: int) -> float:
            told = [w * self.of_free[k, int(codes[c] == EXACT)] for k, w, codes in said if codes[c] != kernels.UNSEEN]
            return float(temper * sum(told))

        free_in = {
            members: [c for c in range(n) if not any(overlap(spans[c], spans[m]) for m in members)]
            for members in sets_of(spans, p.apart)
        }
        log_weights = {
            members: exponent * (sum(map(log_true, members)) + sum(map(log_free, others)))
            for members, others in free_in.items()
        }
        log_z = float(logsumexp(list(log_weights.values())))
        true, free = np.zeros(n), np.zeros(n)
        for members, weight in log_weights.items():
            true[list(members)] += np.exp(weight - log_z)
            free[free_in[members]] += np.exp(weight - log_z)
        responses, marks = np.zeros_like(self.of_true), np.zeros_like(self.of_free)
        for k, weight, codes in said:
            for c, code in enumerate(codes):
                if code != kernels.UNSEEN:
                    responses[k, code] += temper * weight * true[c]
                    marks[k, int(code == EXACT)] += temper * weight * free[c]
        return Answer(log_weights, log_z, true, free, responses, marks)


def random_case(seed: int, apart: int, *, n_docs: int = 5, most: int = 8, spread: float = 2.0) -> Case:
    """Documents of no to ``most`` candidates of three types, seen by no to four annotators who said anything."""
    rng = np.random.default_rng(seed)
    K, offset = 4, 0
    start: list[int] = []
    end: list[int] = []
    kind: list[int] = []
    cluster: list[int] = []
    by_start: list[int] = []
    who: list[int] = []
    response: list[int] = []
    first, pair_start, response_start = [0], [0], [0]
    for _ in range(n_docs):
        length = int(rng.integers(4, 14))
        drawn = {
            (b, min(b + int(rng.integers(1, 5)), length), int(rng.integers(3)))
            for b in rng.integers(0, length, rng.integers(0, most + 1)).tolist()
        }
        found = sorted(drawn, key=lambda span: (span[1], span[0], span[2]))
        groups = components(found, apart)
        for g in sorted(set(groups)):
            members = [c for c, group in enumerate(groups) if group == g]
            assert members == list(range(members[0], members[-1] + 1))
            by_start += sorted(range(len(members)), key=lambda c: found[members[c]][0])
        cluster += [g + (max(cluster) + 1 if cluster else 0) for g in groups] if groups else []
        start += [offset + span[0] for span in found]
        end += [offset + span[1] for span in found]
        kind += [span[2] for span in found]
        first.append(len(start))
        here = np.flatnonzero(rng.random(K) < 0.7).tolist()
        who += here
        pair_start.append(len(who))
        response += rng.integers(0, kernels.UNSEEN + 1, len(found) * len(here)).tolist()
        response_start.append(len(response))
        offset += length
    C = len(start)
    problem = kernels.Problem(
        start=np.array(start, np.int64),
        end=np.array(end, np.int64),
        kind=np.array(kind, np.int64),
        cluster=np.array(cluster, np.int64),
        by_start=np.array(by_start, np.int64),
        first=np.array(first, np.int64),
        pair_start=np.array(pair_start, np.int64),
        who=np.array(who, np.int64),
        weight=rng.choice([1.0, 0.5, 1 / 3], len(who)),
        response_start=np.array(response_start, np.int64),
        response=np.array(response, np.int8),
        spread=np.log(rng.integers(1, 5, C)),
        prior=rng.normal(0, spread, C),
        apart=apart,
    )
    return Case(
        problem,
        rng.normal(-1.5, spread / 2, (K, kernels.N_RESPONSES)),
        rng.normal(-1.0, spread / 2, (K, 2)),
    )


def passed(case: Case, temper: float, exponent: float) -> tuple[kernels.SpanSums, Floats, Floats]:
    true, log_zs = np.zeros(len(case.problem.start)), np.zeros(case.n_docs)
    tables = (case.of_true, case.of_free, temper, exponent)
    return kernels.span_pass(case.problem, *tables, 0, case.n_docs, true, log_zs), true, log_zs


@pytest.mark.parametrize("apart", [0, 1])
@pytest.mark.parametrize("spread", [2.0, 40.0])
@pytest.mark.parametrize(("temper", "exponent"), [(1.0, 1.0), (0.4, 1.0), (0.7, 0.5)])
def test_pass_equals_enumeration_of_sets(apart: int, spread: float, temper: float, exponent: float) -> None:
    largest = 0
    for seed in range(12):
        case = random_case(seed, apart, spread=spread)
        sums, true, log_zs = passed(case, temper, exponent)
        answers = [case.answer(d, temper, exponent) for d in range(case.n_docs)]
        np.testing.assert_allclose(log_zs, [answer.log_z for answer in answers], **CLOSE)
        np.testing.assert_allclose(sums.log_z, sum(answer.log_z for answer in answers), **CLOSE)
        np.testing.assert_allclose(true, np.concatenate([answer.true for answer in answers]), **CLOSE)
        np.testing.assert_allclose(sums.responses, sum(answer.responses for answer in answers), **CLOSE)
        np.testing.assert_allclose(sums.marks, sum(answer.marks for answer in answers), **CLOSE)
        largest = max(largest, np.bincount(case.problem.cluster).max(initial=0))
    assert largest >= 5


@pytest.mark.parametrize("apart", [0, 1])
def test_a_candidate_is_free_as_often_as_enumeration_says(apart: int) -> None:
    """One annotator who marked just this candidate, and saw no other: counted marks are its probability."""
    for seed in range(10):
        case = random_case(seed, apart, n_docs=1)
        p, (n, C) = case.problem, (1, len(case.problem.start))
        for c in range(C):
            codes = np.full(C, kernels.UNSEEN, np.int8)
            codes[c] = EXACT
            alone = case.problem._replace(
                pair_start=np.array([0, n]), who=np.array([0]), weight=np.ones(1), response=codes,
                response_start=np.array([0, C]), prior=p.prior,
            )  # fmt: skip
            one = replace(case, problem=alone)
            answer = one.answer(0, 1.0, 1.0)
            sums, _, _ = passed(one, 1.0, 1.0)
            np.testing.assert_allclose(sums.marks[0], [0.0, answer.free[c]], **CLOSE)
            np.testing.assert_allclose(sums.responses[0, EXACT], answer.true[c], **CLOSE)


@pytest.mark.parametrize("apart", [0, 1])
def test_candidates_that_cannot_be_and_must_be_true(apart: int) -> None:
    """Prior odds of nothing to something, and a thousand nats: what is known of a document."""
    for seed in range(10):
        case = random_case(seed, apart)
        rng = np.random.default_rng(seed)
        prior = case.problem.prior.copy()
        prior[rng.random(len(prior)) < 0.3] = -np.inf
        prior[rng.random(len(prior)) < 0.2] = 1000.0
        case = replace(case, problem=case.problem._replace(prior=prior))
        sums, true, log_zs = passed(case, 1.0, 1.0)
        answers = [case.answer(d, 1.0, 1.0) for d in range(case.n_docs)]
        np.testing.assert_allclose(log_zs, [answer.log_z for answer in answers], **CLOSE)
        np.testing.assert_allclose(true, np.concatenate([answer.true for answer in answers]), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(sums.marks, sum(answer.marks for answer in answers), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("apart", [0, 1])
@pytest.mark.parametrize(("temper", "exponent"), [(1.0, 1.0), (0.4, 0.6)])
def test_weight_of_every_set_is_that_of_enumeration(apart: int, temper: float, exponent: float) -> None:
    for seed in range(6):
        case = random_case(seed, apart, most=6)
        answers = [case.answer(d, temper, exponent) for d in range(case.n_docs)]
        sets = [list(answer.log_weights) for answer in answers]
        for number in range(max(map(len, sets))):
            members = [one[number % len(one)] for one in sets]
            chosen = np.zeros(len(case.problem.start), np.bool_)
            for d, those in enumerate(members):
                chosen[case.problem.first[d] + np.array(those, np.int64)] = True
            out = np.empty(case.n_docs)
            kernels.log_weight_of_set(case.problem, case.of_true, case.of_free, temper, exponent, chosen, out)
            expected = [answer.log_weights[those] for answer, those in zip(answers, members, strict=True)]
            np.testing.assert_allclose(out, expected, **CLOSE)


@pytest.mark.parametrize("apart", [0, 1])
@pytest.mark.parametrize("whole", [False, True])
def test_best_set_is_the_best_of_all_and_of_equals_one_with_fewest_spans(apart: int, whole: bool) -> None:
    """Gains that are whole numbers often add up to the same."""
    for seed in range(60):
        case, p = random_case(seed, apart), random_case(seed, apart).problem
        rng = np.random.default_rng(seed)
        gain = rng.integers(-2, 4, len(p.start)).astype(np.float64) if whole else rng.normal(0.2, 1.0, len(p.start))
        chosen = np.ones(len(p.start), np.bool_)
        kernels.best_set(p.start, p.end, p.kind, p.first, apart, gain, chosen)
        for d in range(case.n_docs):
            worth = gain[p.first[d] : p.first[d + 1]]
            found = tuple(np.flatnonzero(chosen[p.first[d] : p.first[d + 1]]).tolist())
            every = list(sets_of(case.spans(d), apart))
            assert found in every
            best = max(sum(worth[list(members)]) for members in every)
            np.testing.assert_allclose(sum(worth[list(found)]), best, **CLOSE)
            if whole:
                assert len(found) == min(len(members) for members in every if sum(worth[list(members)]) == best)


@pytest.mark.parametrize("apart", [0, 1])
@pytest.mark.parametrize("temper", [1.0, 0.4])
def test_likeliest_set_has_the_highest_weight_of_all(apart: int, temper: float) -> None:
    sizes = set()
    for seed in range(30):
        case, p = random_case(seed, apart), random_case(seed, apart).problem
        chosen = np.ones(len(p.start), np.bool_)
        kernels.likeliest_set(p, case.of_true, case.of_free, temper, chosen)
        for d in range(case.n_docs):
            weights = case.answer(d, temper, 1.0).log_weights
            found = tuple(np.flatnonzero(chosen[p.first[d] : p.first[d + 1]]).tolist())
            np.testing.assert_allclose(weights[found], max(weights.values()), **CLOSE)
            sizes.add(len(found))
    assert max(sizes) >= 3


def test_spans_of_different_types_that_touch_are_both_true_where_all_say_so() -> None:
    """In IO too, where only spans of one type that touch are one."""
    said = ("I-T0", "I-T1", "I-T1", "O", "I-T0")
    corpus = Corpus([Document(f"{n}", ("w",) * 5, dict.fromkeys("abc", said)) for n in range(20)])
    found = candidates_of(encode(corpus, tagset(Scheme.IO, 2)))
    engine = SpanEngine(found, np.zeros(len(found.start)))
    model, _, _ = loop.passes(engine, SpanModel(Responses.of(3), 1.0), found, 8, 0.0)
    true = engine.posterior(model).true
    assert true.min() > 0.9
    assert engine.best_set(true - 0.5).all()
    assert engine.likeliest_set(model).all()


@pytest.mark.parametrize("apart", [0, 1])
def test_clusters_and_neighbours_are_those_of_their_definition(apart: int) -> None:
    for seed in range(40):
        case, p = random_case(seed, apart, most=12), random_case(seed, apart, most=12).problem
        np.testing.assert_array_equal(kernels.cluster_of(p.start, p.end, p.first, apart), p.cluster)
        expected = [
            sum(
                other != c and p.kind[other] == p.kind[c] and overlap(spans[other - a], spans[c - a])
                for other in range(a, b)
            )
            for d in range(case.n_docs)
            for a, b, spans in [(p.first[d], p.first[d + 1], case.spans(d))]
            for c in range(a, b)
        ]
        np.testing.assert_array_equal(kernels.overlapping(p.start, p.end, p.kind, p.cluster), expected)


def test_responses_are_those_of_their_definition() -> None:
    seen: set[int] = set()
    for seed in range(30):
        case = random_case(seed, 0)
        p, rng = case.problem, np.random.default_rng(seed)
        marks: list[list[Place]] = []
        runs: list[list[tuple[int, int]]] = []
        expected = []
        for d in range(case.n_docs):
            spans = case.spans(d)
            low, high = min((span[0] for span in spans), default=0), max((span[1] for span in spans), default=1)
            for _ in range(p.pair_start[d], p.pair_start[d + 1]):
                cuts = np.unique(rng.integers(low, high + 1, 6)).tolist()
                marks.append([(a, b, int(rng.integers(3))) for a, b in itertools.pairwise(cuts) if rng.random() < 0.7])
                hidden = int(rng.integers(low, high))
                runs.append([(low, high)] if rng.random() < 0.7 else [(low, hidden), (hidden + 1, high)])
                for span in spans:
                    if rng.random() < 0.3 and not any(overlap(mark, span) for mark in marks[-1]):
                        marks[-1] = sorted([*marks[-1], span])
                expected += [response_to(span, marks[-1], runs[-1]) for span in spans]

        def columns(rows: Sequence[Sequence[tuple[int, ...]]], width: int) -> list[NDArray[np.int64]]:
            start = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
            flat = np.array([one for row in rows for one in row], np.int64).reshape(-1, width)
            return [start.astype(np.int64), *(np.ascontiguousarray(flat[:, i]) for i in range(width))]

        out = np.empty(p.response_start[-1], np.int8)
        mark_start, mark_from, mark_to, mark_kind = columns(marks, 3)
        run_start, run_from, run_to = columns(runs, 2)
        kernels.responses(
            p.start, p.end, p.kind, p.first, p.pair_start, p.response_start,
            mark_start, mark_from, mark_to, mark_kind, run_start, run_from, run_to, out,
        )  # fmt: skip
        assert out.tolist() == expected
        seen |= set(expected)
    assert seen == set(range(kernels.UNSEEN + 1))


@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.BIOES, Scheme.IO])
def test_words_support_a_candidate_by_the_labels_that_the_scheme_writes_it_with(scheme: Scheme) -> None:
    rng = np.random.default_rng(0)
    tags, (V, N) = tagset(scheme, 2), (5, 12)
    rows, word = rng.normal(0, 1, (V, len(tags.labels))), rng.integers(0, V + 1, N).astype(np.int32)
    start, end, kind = np.array([0, 2, 5, 7]), np.array([1, 6, 7, 12]), np.array([0, 1, 0, 1])
    expected = []
    for first, after, number in zip(start.tolist(), end.tolist(), kind.tolist(), strict=True):
        labels = tags.tags([Span(first, after, tags.types[number])], N)[first:after]
        known = [(w, label) for w, label in zip(word[first:after].tolist(), labels, strict=True) if w < V]
        expected.append(sum(rows[w, tags.index[label]] - rows[w, 0] for w, label in known))
    assert (word == V).any()
    found = kernels.word_support(start, end, kind, word, rows, SpanLabels(*tags.span_labels), 0)
    np.testing.assert_allclose(found, expected, **CLOSE)


def sequences(
    seed: int, scheme: Scheme, *, coupled: bool, known: bool
) -> tuple[ThreadsEngine, Tables, Chain, list[dict[tuple[int, ...], float]]]:
    """A few short documents with random tables; the probability of every path of each document."""
    rng = np.random.default_rng(seed)
    tags = tagset(scheme, 1 if scheme is Scheme.BIOES else 2)
    corpus = random_corpus(rng, tags, longest=5 if len(tags.labels) < 5 else 4, n_documents=6)
    encoded, J = encode(corpus, tags), len(tags.labels)
    gold = np.array([tags.index[str(tag)] for document in corpus for tag in document.gold or ()], np.int32)
    clamp = np.where(rng.random(len(gold)) < 0.25, gold, -1).astype(np.int32) if known else None
    tables = Tables(rng.normal(0, 1.5, (len(encoded.cells.label), J)), rng.normal(0, 1.5, (len(encoded.words), J)))
    start, trans = rng.normal(-1, 1, J), rng.normal(-1, 1, (J, J))
    end = np.zeros(J)
    if coupled:
        start[~tags.allowed_first], trans[~tags.allowed] = -np.inf, -np.inf
        end[~tags.allowed_last] = -np.inf
    else:
        trans = np.tile(start, (J, 1))
    chain = Chain(start, trans, end, coupled)
    answers = [
        enumerate_paths(plain.evidence_of(encoded, tables, chain, clamp, place), start, trans).weights
        for place in map(plain.Document, encoded.doc_start[:-1].tolist(), encoded.doc_start[1:].tolist())
    ]
    engine = ThreadsEngine(encoded, known=clamp, threads=2)
    return engine, tables, chain, answers


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("coupled", [True, False])
@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.BIOES, Scheme.IO])
def test_likely_spans_are_those_of_enumerated_sequences(scheme: Scheme, coupled: bool, known: bool) -> None:
    """A span is there where a sequence writes it as the scheme does, and its neighbours do not go on with it."""
    found_any = 0
    for seed, least in itertools.product(range(3), [1e-9, 0.05]):
        engine, tables, chain, answers = sequences(seed, scheme, coupled=coupled, known=known)
        encoded = engine._encoded
        tags = encoded.tagset
        expected: dict[tuple[int, int, int], float] = {}
        for offset, weights in zip(encoded.doc_start.tolist(), answers, strict=False):
            for path, weight in weights.items():
                labels = [tags.labels[label] for label in path]
                for span in find_spans(labels):
                    if labels[span.start : span.end] == tags.tags([span], len(labels))[span.start : span.end]:
                        key = (offset + span.start, offset + span.end, tags.types.index(span.label))
                        expected[key] = expected.get(key, 0.0) + weight
        likely = engine.likely_spans(tables, chain, least)
        found = {
            (int(a), int(b), int(k)): p
            for a, b, k, p in zip(likely.start, likely.end, likely.kind, likely.probability, strict=True)
        }
        assert len(found) == len(likely.start)
        assert found.keys() == {key for key, p in expected.items() if p >= least}
        for key, p in found.items():
            np.testing.assert_allclose(p, expected[key], **CLOSE)
        found_any += len(found)
    assert found_any > 20


def candidates_of(encoded: Crowd, group: Sequence[int] = ()) -> Candidates:
    """Those that were marked; all that those of a group say is one piece of evidence."""
    together = [(k, n, 1.0) for k, n in itertools.combinations(range(len(group)), 2) if group[k] == group[n]]
    return find_candidates(Correlated.of(together).applied(encoded) if together else encoded, NOTHING_LIKELY, 0.1)


PEOPLE = {
    "careful": Behaviour(miss=0.08, confuse=0.04, start_late=0.04, invent=0.004),
    "early": Behaviour(miss=0.15, confuse=0.05, start_early=0.3, invent=0.01),
    "lazy": Behaviour(miss=0.5, confuse=0.1, end_late=0.1, invent=0.003),
    "mixes": Behaviour(miss=0.12, confuse=0.35, end_early=0.1, invent=0.006),
    "noisy": Behaviour(miss=0.2, confuse=0.1, split=0.3, invent=0.05),
    "random": Behaviour(spam=0.9),
}


def simulated(how_many: int, seed: int, per_document: int | None = None) -> Corpus:
    return crowd(sentences(how_many, seed=seed), PEOPLE, per_document=per_document, seed=seed)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("temper", [1.0, 0.4, 0.05])
def test_bound_never_falls(seed: int, temper: float) -> None:
    corpus = simulated(60, seed, per_document=[None, 3, 1, 2][seed])
    found = candidates_of(encode(corpus, corpus.tagset()))
    prior = np.random.default_rng(seed).normal(-0.5, [0.0, 1.0, 4.0, 9.0][seed], len(found.start))
    engine = SpanEngine(found, prior, threads=2)
    model = SpanModel(Responses.of(len(PEOPLE)), temper)
    bounds = np.array(loop.passes(engine, model, found, 20, -1.0)[1])
    assert len(bounds) == 20
    assert np.all(np.diff(bounds) >= -1e-9 * np.abs(bounds[1:]))
    assert bounds[-1] > bounds[0]


def tiny(seed: int) -> tuple[Candidates, SpanEngine, Floats]:
    """Two short documents, of which every set of candidates can be looked at."""
    rng = np.random.default_rng(seed)
    tags = tagset(Scheme.BIO, 2)
    corpus = random_corpus(rng, tags, n_documents=2, longest=4, shortest=3, n_annotators=3, missing=0.15)
    found = candidates_of(encode(corpus, tags))
    prior = rng.normal(0, 1, len(found.start))
    assert 2 <= len(found.start) <= 12
    return found, SpanEngine(found, prior, threads=1), prior


def case_of(engine: SpanEngine, of_true: Floats, of_free: Floats) -> Case:
    return Case(engine._problem, of_true, of_free)


def log_density_of_means(part: Responses) -> float:
    of_true = dirichlet.logpdf(part.crowd_true / part.crowd_true.sum(), 1 + _WORTH * _USUAL / _USUAL.sum())
    return float(of_true + dirichlet.logpdf(part.crowd_free, 1 + _WORTH * _USUAL_MARKS))


def dirichlet_kl(a: Floats, p: Floats) -> float:
    log_pi = digamma(a) - digamma(a.sum())
    return float(gammaln(a.sum()) - gammaln(p.sum()) - gammaln(a).sum() + gammaln(p).sum() + np.sum((a - p) * log_pi))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("temper", [1.0, 0.4])
def test_bound_is_the_sum_over_sets_less_the_divergence(seed: int, temper: float) -> None:
    found, engine, _ = tiny(seed)
    model = SpanModel(Responses.of(3), temper)
    for _ in range(3):
        model = model.updated(found, engine.run(model))
        part = model.responses
        of_true = digamma(part.true) - digamma(part.true.sum(axis=1, keepdims=True))
        of_free = digamma(part.free) - digamma(part.free.sum(axis=1, keepdims=True))
        case = case_of(engine, of_true, of_free)
        said = sum(case.answer(d, temper, 1.0).log_z - case.answer(d, 0.0, 1.0).log_z for d in range(2))
        kl = sum(dirichlet_kl(row, _POOLED * part.crowd_true) for row in part.true)
        kl += sum(dirichlet_kl(row, _POOLED * part.crowd_free) for row in part.free)
        expected = said - kl + log_density_of_means(part)
        np.testing.assert_allclose(engine.run(model).log_z - model.kl(), expected, rtol=1e-9)


def polya(prior: Floats, counts: Floats) -> float:
    """ln ∫ Π π^counts Dir(π | prior) dπ."""
    total = gammaln(prior.sum()) - gammaln(prior.sum() + counts.sum())
    return float(total + np.sum(gammaln(prior + counts) - gammaln(prior)))


def log_evidence(case: Case, part: Responses) -> float:
    """ln p(what everybody did | the crowd's means), summed over every choice of sets; all annotators count 1."""
    p, K = case.problem, len(part.true)
    of_sets, of_prior = [], []
    for members in itertools.product(*(list(sets_of(case.spans(d), p.apart)) for d in range(case.n_docs))):
        responses, marks, score, prior = np.zeros((K, 6)), np.zeros((K, 2)), 0.0, 0.0
        for d, those in enumerate(members):
            spans, a, r = case.spans(d), p.first[d], p.response_start[d]
            prior += sum(p.prior[a + c] for c in those)
            for pair, c in itertools.product(range(p.pair_start[d], p.pair_start[d + 1]), range(len(spans))):
                code = p.response[r + (pair - p.pair_start[d]) * len(spans) + c]
                if code == kernels.UNSEEN:
                    continue
                if c in those:
                    responses[p.who[pair], code] += 1
                    score -= p.spread[a + c] if code in OFF else 0.0
                elif not any(overlap(spans[c], spans[m]) for m in those):
                    marks[p.who[pair], int(code == EXACT)] += 1
        score += sum(polya(_POOLED * part.crowd_true, row) for row in responses)
        score += sum(polya(_POOLED * part.crowd_free, row) for row in marks)
        of_sets.append(score + prior)
        of_prior.append(prior)
    return float(logsumexp(of_sets) - logsumexp(of_prior))


@pytest.mark.parametrize("seed", range(6))
def test_bound_never_exceeds_the_evidence(seed: int) -> None:
    found, engine, _ = tiny(seed)
    model, _, _ = loop.passes(engine, SpanModel(Responses.of(3), 1.0), found, 30, 0.0)
    bound = engine.run(model).log_z - model.kl()
    case = case_of(engine, *model.responses.log_lik())
    evidence = log_evidence(case, model.responses) + log_density_of_means(model.responses)
    assert bound <= evidence + 1e-9
    # A bound with a constant missing would be far below: mean field on a few spans is within a few nats.
    assert bound > evidence - 3.0


@pytest.mark.parametrize("seed", range(6))
def test_bound_equals_the_evidence_when_the_truth_is_known(seed: int) -> None:
    found, engine, prior = tiny(seed)
    case = case_of(engine, np.zeros((3, 6)), np.zeros((3, 2)))
    sets = [list(sets_of(case.spans(d), found.apart)) for d in range(2)]
    known = np.concatenate([np.isin(np.arange(len(case.spans(d))), sets[d][-1]) for d in range(2)])
    prior = np.where(known, 600.0, -600.0)
    engine = SpanEngine(found, prior, threads=1)
    start = Responses.of(3)
    updated = SpanModel(start, 1.0).updated(found, engine.run(SpanModel(start, 1.0))).responses
    model = SpanModel(replace(updated, crowd_true=start.crowd_true, crowd_free=start.crowd_free), 1.0)
    case = case_of(engine, *model.responses.log_lik())
    evidence = log_evidence(case, model.responses) + log_density_of_means(start)
    np.testing.assert_allclose(engine.run(model).log_z - model.kl(), evidence, rtol=1e-9)


def test_probabilities_of_all_sets_of_a_document_add_up_to_one() -> None:
    for seed, exponent in itertools.product(range(4), [1.0, 0.5]):
        found, engine, _ = tiny(seed)
        model, _, _ = loop.passes(engine, SpanModel(Responses.of(3)), found, 3, 0.0)
        case = case_of(engine, np.zeros((3, 6)), np.zeros((3, 2)))
        for d in range(2):
            total = 0.0
            for members in sets_of(case.spans(d), found.apart):
                chosen = np.zeros(len(found.start), np.bool_)
                chosen[found.first[d] + np.array(members, np.int64)] = True
                total += np.exp(engine.log_probability(model, chosen, exponent)[d])
            np.testing.assert_allclose(total, 1.0, rtol=1e-9)


def test_a_document_is_no_surer_than_the_least_sure_of_its_spans() -> None:
    corpus = simulated(80, 5)
    found = candidates_of(encode(corpus, corpus.tagset()))
    engine = SpanEngine(found, np.zeros(len(found.start)))
    model, _, _ = loop.passes(engine, SpanModel(Responses.of(len(PEOPLE))), found, 8, 0.0)
    for exponent, threshold in itertools.product([1.0, 0.5], [0.2, 0.5]):
        posterior = engine.posterior(model, exponent)
        chosen = engine.best_set(posterior.true - threshold)
        whole = np.exp(engine.log_probability(model, chosen, exponent))
        assert chosen.sum() > 30
        assert np.all(whole[found.document[chosen]] <= posterior.true[chosen] + 1e-12)


def told(rng: np.random.Generator, of_true: Floats, of_free: Floats, prior: float) -> tuple[Crowd, Likely]:
    """From the story itself: at every place four spans may be true, two of each type, and at most one is."""
    tags, K, D, places = tagset(Scheme.BIO, 2), len(of_true), 300, 8
    here = [Span(0, 4, "T0"), Span(0, 3, "T0"), Span(0, 4, "T1"), Span(0, 3, "T1")]
    # What is marked by someone who does this with a true span, by its number: one bit for bounds, one for types.
    change = {EXACT: 0, kernels.SHIFTED: 1, kernels.OTHER_TYPE: 2, kernels.OTHER_TYPE_SHIFTED: 3}
    one_is_true = 4 * np.exp(prior) / (1 + 4 * np.exp(prior))
    documents = []
    for d in range(D):
        said: list[list[str]] = [[] for _ in range(K)]
        for _ in range(places):
            true = int(rng.integers(4)) if rng.random() < one_is_true else None
            for k in range(K):
                marked = rng.choice(5, p=[*[of_free[k]] * 4, 1 - 4 * of_free[k]])
                if true is not None:
                    did = int(rng.choice(6, p=of_true[k]))
                    marked = 4 if did == MISSED else true ^ change[did]
                said[k] += tags.tags([] if marked == 4 else [here[marked]], length=5)
        documents.append(Document(f"{d}", ("w",) * 5 * places, {f"a{k}": tuple(row) for k, row in enumerate(said)}))
    first = 5 * np.repeat(np.arange(D * places), 4)
    start, end = (
        np.tile(bounds, D * places) for bounds in ([span.start for span in here], [span.end for span in here])
    )
    kind = np.tile([tags.types.index(span.label) for span in here], D * places)
    return encode(Corpus(documents), tags), Likely(first + start, first + end, kind, np.full(len(first), 0.5))


def test_parameters_of_the_story_are_recovered() -> None:
    """About 1,200 true spans: a rate that was drawn is within 0.03 (two standard deviations) by chance alone."""
    careful, lazy = [0.8, 0.08, 0.0, 0.03, 0.02, 0.07], [0.35, 0.12, 0.0, 0.06, 0.07, 0.4]
    shifts, mixes = [0.3, 0.5, 0.0, 0.03, 0.02, 0.15], [0.4, 0.1, 0.0, 0.27, 0.08, 0.15]
    of_true, of_free = np.array([careful, lazy, shifts, mixes, careful]), np.array([0.03, 0.02, 0.08, 0.05, 0.12])
    prior = float(np.log(0.25))
    encoded, likely = told(np.random.default_rng(3), of_true, of_free, prior)
    found = find_candidates(encoded, likely, 0.1)
    assert len(found.start) == 4 * 8 * 300
    engine = SpanEngine(found, np.full(len(found.start), prior))
    part = loop.passes(engine, SpanModel(Responses.of(5), 1.0), found, 60, 1e-9)[0].responses
    np.testing.assert_allclose(part.true / part.true.sum(axis=1, keepdims=True), of_true, rtol=0, atol=0.05)
    np.testing.assert_allclose(part.free[:, 1] / part.free.sum(axis=1), of_free, rtol=0, atol=0.02)


def test_habits_of_a_simulated_crowd_are_recovered() -> None:
    """Against what each did with the gold spans that somebody marked exactly: the others are no candidates.

    Within eight points of a hundred: spans that hardly anybody marked are held untrue, so that all seem to find more.
    """
    people = {name: behaviour for name, behaviour in PEOPLE.items() if name != "random"}
    corpus = crowd(sentences(400, seed=1), people, seed=1)
    encoded = encode(corpus, corpus.tagset())
    types = encoded.tagset.types
    rates = np.zeros((len(people), 6))
    for document in corpus:
        marks = [places_of(find_spans(certain(document.annotations[name])), types) for name in encoded.annotators]
        gold = places_of(find_spans(document.gold or ()), types)
        for span, (k, row) in itertools.product(gold, enumerate(marks)):
            if any(span in each for each in marks):
                rates[k, response_to(span, row, [(0, len(document.tokens))])] += 1
    rates /= rates.sum(axis=1, keepdims=True)
    found = candidates_of(encoded)
    engine = SpanEngine(found, np.zeros(len(found.start)))
    part = loop.passes(engine, SpanModel(Responses.of(len(people)), 1.0), found, 40, 0.0)[0].responses
    learned = part.true / part.true.sum(axis=1, keepdims=True)
    assert len(RESPONSES) == learned.shape[1]
    np.testing.assert_allclose(learned, rates, rtol=0, atol=0.08)
    assert encoded.annotators[int(np.argmax(part.free[:, 1] / part.free.sum(axis=1)))] == "noisy"


def fitted(corpus: Corpus, threads: int) -> tuple[Crowd, Responses, dict[tuple[str, int, int, int], float]]:
    """What was learned, and the probability of every candidate by document and place in it."""
    encoded = encode(corpus, corpus.tagset())
    found = candidates_of(encoded)
    engine = SpanEngine(found, np.full(len(found.start), -0.3), threads=threads)
    model, _, _ = loop.passes(engine, SpanModel(Responses.of(len(encoded.annotators))), found, 8, 0.0)
    true = engine.posterior(model).true
    places = zip(found.document.tolist(), found.start.tolist(), found.end.tolist(), found.kind.tolist(), strict=True)
    by_place = {
        (corpus[d].id, a - int(encoded.doc_start[d]), b - int(encoded.doc_start[d]), kind): p
        for (d, a, b, kind), p in zip(places, true.tolist(), strict=True)
    }
    return encoded, model.responses, by_place


def test_numbers_do_not_hang_on_how_many_threads_there_are() -> None:
    corpus = simulated(120, 2, per_document=4)
    _, one, by_one = fitted(corpus, 1)
    _, four, by_four = fitted(corpus, 4)
    for mine, theirs in zip(one.arrays().values(), four.arrays().values(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert by_one == by_four


def test_names_and_order_change_nothing() -> None:
    corpus = simulated(120, 2, per_document=4)
    encoded, one, by_place = fitted(corpus, 1)
    rng = np.random.default_rng(0)
    named = dict(zip(corpus.annotators, (f"w{n}" for n in rng.permutation(1000)), strict=False))
    shuffled = Corpus(
        [
            replace(document, annotations={named[name]: tags for name, tags in document.annotations.items()})
            for document in (corpus[int(d)] for d in rng.permutation(len(corpus)))
        ]
    )
    other, two, again = fitted(shuffled, 1)
    order = [other.annotators.index(named[name]) for name in encoded.annotators]
    assert order != sorted(order)
    np.testing.assert_allclose(two.true[order], one.true, rtol=1e-9)
    np.testing.assert_allclose(two.free[order], one.free, rtol=1e-9)
    np.testing.assert_allclose(two.crowd_true, one.crowd_true, rtol=1e-9)
    assert again.keys() == by_place.keys()
    np.testing.assert_allclose([again[key] for key in by_place], list(by_place.values()), rtol=1e-9)


def test_those_of_a_group_count_as_one() -> None:
    """Three copies who always say the same weigh as the one they copy; who is alone in a document counts there."""
    corpus = simulated(60, 3)
    copied = Corpus(
        [
            replace(d, annotations={**d.annotations, "careful2": d.annotations["careful"]})
            for d in [replace(d, annotations={**d.annotations, "careful1": d.annotations["careful"]}) for d in corpus]
        ]
    )
    encoded, more = encode(corpus, corpus.tagset()), encode(copied, corpus.tagset())
    stands_for = [encoded.annotators.index(name.rstrip("12")) for name in more.annotators]
    plain_of, grouped = candidates_of(encoded), candidates_of(more, stands_for)
    K, rng = len(encoded.annotators), np.random.default_rng(0)
    part = replace(Responses.of(K), true=rng.gamma(2.0, 3.0, (K, 6)), free=rng.gamma(2.0, 3.0, (K, 2)))
    copies = replace(part, true=part.true[stands_for], free=part.free[stands_for])
    prior = rng.normal(0, 1, len(plain_of.start))
    one, three = SpanEngine(plain_of, prior), SpanEngine(grouped, prior)
    mine, theirs = one.run(SpanModel(part)), three.run(SpanModel(copies))
    np.testing.assert_allclose(theirs.log_z, mine.log_z, rtol=1e-9)
    for name in ("responses", "marks"):
        summed = np.zeros_like(getattr(mine, name))
        np.add.at(summed, stands_for, getattr(theirs, name))
        np.testing.assert_allclose(summed, getattr(mine, name), **CLOSE)
    np.testing.assert_allclose(
        three.posterior(SpanModel(copies)).true, one.posterior(SpanModel(part)).true, rtol=1e-9, atol=1e-12
    )

    partly = Corpus(
        [
            replace(
                d, annotations={k: v for k, v in d.annotations.items() if n % 2 or k not in ("careful1", "careful2")}
            )
            for n, d in enumerate(copied)
        ]
    )
    weighed = candidates_of(encode(partly, corpus.tagset()), stands_for)
    document = np.repeat(np.arange(len(partly)), np.diff(weighed.pair_start))
    together = np.array([more.annotators[k].startswith("careful") for k in weighed.who])
    np.testing.assert_allclose(weighed.weight, np.where(together & (document % 2 == 1), 1 / 3, 1.0))


def test_expected_logarithms_are_what_a_pass_looks_at() -> None:
    part = Responses.of(2).updated(np.arange(12.0).reshape(2, 6), np.ones((2, 2)))
    for mine, concentration in zip(part.log_lik(), (part.true, part.free), strict=True):
        np.testing.assert_allclose(mine, digamma(concentration) - digamma(concentration.sum(axis=1, keepdims=True)))
        np.testing.assert_array_equal(mine, expected_log(concentration))


@pytest.mark.parametrize("scheme", [Scheme.IO, Scheme.BIO, Scheme.BIOES])
def test_the_labels_of_tokens_are_those_of_every_candidate_in_turn(scheme: Scheme) -> None:
    rng, tags = np.random.default_rng(8), tagset(scheme, 2)
    encoded = encode(random_corpus(rng, tags, n_documents=12), tags)
    candidates = candidates_of(encoded)
    assert set(candidates.end - candidates.start) >= {1, 2, 3}
    true = rng.uniform(0.0, 0.3, len(candidates.start))
    expected = np.zeros((encoded.n_tokens, len(tags.labels)))
    for start, end, kind, probability in zip(*candidates[:3], true, strict=True):
        prefixes = ["B", *"I" * (end - start - 2), "E"] if end - start > 1 else ["S"]
        for position, prefix in zip(range(start, end), prefixes, strict=True):
            written = {Scheme.IO: "I", Scheme.BIO: "B" if prefix in "BS" else "I", Scheme.BIOES: prefix}[scheme]
            expected[position, tags.index[f"{written}-{tags.types[kind]}"]] += probability
    expected[:, tags.index["O"]] = np.maximum(1 - expected.sum(axis=1), 0.0)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(by_label(candidates, true, tags, encoded.n_tokens), expected, **CLOSE)


def test_without_candidates_every_token_is_outside() -> None:
    corpus = Corpus([Document("1", ("no", "mark"), {"ann": ("O", "O")})])
    tags = tagset(Scheme.BIO)
    found = by_label(candidates_of(encode(corpus, tags)), np.zeros(0), tags, 2)
    assert found.tolist() == [[1.0, 0.0, 0.0]] * 2


def test_the_set_of_the_highest_expected_f1_is_the_best_of_all() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        true = rng.random(6)
        chosen = highest_f1(lambda gain: gain > 0, true, float(true.sum()))  # as where none overlaps another
        sets = [np.array(one) for one in itertools.product([False, True], repeat=6)]
        expected = [2 * true[one].sum() / (one.sum() + true.sum()) for one in sets]
        np.testing.assert_array_equal(chosen, sets[int(np.argmax(expected))])


def test_what_is_hardly_likely_is_not_given_out_even_where_nothing_else_is() -> None:
    true = np.array([0.04, 0.05, 0.09, 0.02])
    assert not highest_f1(lambda gain: gain > 0, true, float(true.sum())).any()


def test_evidence_of_some_documents_is_what_is_found_of_them_alone() -> None:
    corpus = quorate.sample()
    found = hold_out(encode(corpus, corpus.tagset()))
    assert found is not None
    whole_crowd = Correlated.of([(0, 1, 0.6)]).applied(found[0])
    part_of_it = only_documents(whole_crowd, found[1].documents)
    with closing(ThreadsEngine(whole_crowd)) as engine, closing(ThreadsEngine(part_of_it)) as there:
        model = loop.more_passes(engine, model_of(Settings(), whole_crowd), whole_crowd.cells, 3)
        whole, alone = (
            span_evidence(
                model,
                crowd,
                each.likely_spans(*loop.output_tables(model, crowd.cells, 1.0), NOTED),
                loop.posteriors(each, model, crowd.cells, 1.0),
                whole_crowd.annotator_weights(),
            )
            for crowd, each in ((whole_crowd, engine), (part_of_it, there))
        )
    assert part_of_it.n_docs < whole_crowd.n_docs
    part = whole.only(found[1].documents, part_of_it)
    assert len(part.candidates.start) > 100
    for name in Candidates._fields:
        mine, expected = (np.asarray(getattr(evidence.candidates, name)) for evidence in (part, alone))
        if name == "cluster":  # only where another begins matters
            mine, expected = np.diff(mine) > 0, np.diff(expected) > 0
        np.testing.assert_allclose(mine, expected, **CLOSE, err_msg=name)
    assert part.beginning is not None
    assert alone.beginning is not None
    np.testing.assert_allclose(part.beginning, alone.beginning, **CLOSE)
    learned = fit_spans(whole)
    assert learned.responses.true.shape == (len(corpus.annotators), len(RESPONSES))


BEYOND = 0.3
"""How many spans that are no candidates the token model expects in each document."""


def made_evidence(seed: int, *, nobody: bool = False) -> tuple[SpanEvidence, SpanModel]:
    """Two short documents with random prior log odds, and what random annotators do; and one that nobody labelled."""
    rng = np.random.default_rng(seed)
    tags = tagset(Scheme.BIO, 2)
    corpus = random_corpus(rng, tags, n_documents=2, longest=5, shortest=4, n_annotators=3, missing=0.1)
    if nobody:
        corpus = Corpus([*corpus, Document("nobody's", ("w0", "w1", "w2"))])
    encoded = encode(corpus, tags)
    last = np.array([encoded.n_tokens])
    thought = Likely(last - 2, last, np.array([1]), np.array([0.4])) if nobody else NOTHING_LIKELY
    found = find_candidates(encoded, thought, 0.1)
    found = found._replace(likely=np.where(found.likely > 0, found.likely, rng.uniform(0.05, 0.95, len(found.start))))
    engine = SpanEngine(found, rng.normal(0, 1.5, len(found.start)), threads=1)
    K = len(encoded.annotators)
    part = replace(Responses.of(K), true=rng.gamma(2.0, 3.0, (K, 6)), free=rng.gamma(2.0, 3.0, (K, 2)))
    beginning = np.array([float(found.likely[a:b].sum()) + BEYOND for a, b in itertools.pairwise(found.first)])
    return SpanEvidence(encoded, found, engine, np.zeros(encoded.n_docs, np.bool_), beginning), SpanModel(part, 0.4)


def enumerated(
    evidence: SpanEvidence, model: SpanModel, calibration: Calibration
) -> tuple[Floats, Floats, list[list[int]]]:
    """Of every candidate how likely it is that it is in the true set, by itself and mixed with the token model."""
    case = case_of(evidence.engine, *model.responses.log_lik(log_mean))
    of_sets = np.concatenate([case.answer(d, model.temper, calibration.spans).true for d in range(case.n_docs)])
    p = evidence.candidates.likely
    powered = p**calibration.tokens / (p**calibration.tokens + (1 - p) ** calibration.tokens)
    read = np.diff(evidence.candidates.pair_start)[evidence.candidates.document] > 0
    of_sets = np.where(read, of_sets, powered)
    true = np.where(read, 0.8 * of_sets + 0.2 * powered, powered)
    every = list(
        itertools.product(
            *(
                [tuple(int(evidence.candidates.first[d]) + c for c in members) for members in sets_of(case.spans(d), 0)]
                for d in range(case.n_docs)
            )
        )
    )
    return of_sets, true, [[c for members in one for c in members] for one in every]


@pytest.mark.parametrize("nobody", [False, True])
@pytest.mark.parametrize("calibration", [AS_STATED, Calibration(0.6, 0.4)])
@pytest.mark.parametrize("seed", range(4))
def test_given_spans_are_those_of_the_highest_expected_f1_of_all_sets(
    seed: int, calibration: Calibration, nobody: bool
) -> None:
    """Whatever the calibration: which spans are given out does not depend on how sure one may be of them."""
    evidence, model = made_evidence(seed, nobody=nobody)
    given = given_spans(evidence, model, Settings(), calibration)
    of_sets, true, every = enumerated(evidence, model, calibration)
    np.testing.assert_allclose(given.of_sets, of_sets, rtol=1e-9)
    np.testing.assert_allclose(given.true, true, rtol=1e-9)
    _, stated, _ = enumerated(evidence, model, AS_STATED)
    np.testing.assert_allclose(given.stated, stated, rtol=1e-9)
    np.testing.assert_allclose(given.elsewhere, 0.0, atol=1e-12)
    beyond = 0.2 * BEYOND * 2 + BEYOND * nobody  # of a document that nobody labelled only the token model knows

    def expected_f1(one: Sequence[int]) -> float:
        return float(2 * stated[list(one)].sum() / max(len(one) + stated.sum() + beyond, 1e-9))

    assert expected_f1(np.flatnonzero(given.chosen).tolist()) == pytest.approx(max(map(expected_f1, every)), rel=1e-9)


@pytest.mark.parametrize("unseen", [0.0, 0.1])
@pytest.mark.parametrize("asked", [0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("seed", range(4))
def test_a_recall_that_is_asked_for_is_met_by_the_models_own_posterior(seed: int, asked: float, unseen: float) -> None:
    """Of all true spans, those too that are no candidates: what the token model expects beyond, and what nobody saw.

    So few spans as one threshold of probabilities gives, in enumerated cases; where not all can be found, as many as
    can be had.
    """
    evidence, model = made_evidence(seed)
    model = replace(model, unseen=unseen)
    given = given_spans(evidence, model, Settings(recall=asked), beginning=evidence.beginning)
    _, true, every = enumerated(evidence, model, AS_STATED)
    elsewhere = np.maximum(unseen * np.diff(evidence.crowd.doc_start), 0.2 * BEYOND)
    np.testing.assert_allclose(given.elsewhere, elsewhere, rtol=1e-9)
    all_true = float(true.sum() + elsewhere.sum())
    recall = true[given.chosen].sum() / all_true
    worth = best_of_each_size(true, every)
    if max(worth) < asked * all_true:
        assert true[given.chosen].sum() == pytest.approx(max(worth), rel=1e-9)
        return
    assert recall >= asked - 1e-9
    # Of all thresholds the highest at which it is met: a set's worth is the sum of how much its spans are above that.
    met = [size for size in best_at_thresholds(worth) if worth[size] >= asked * all_true]
    assert given.chosen.sum() == met[-1]


def best_of_each_size(true: Floats, every: Sequence[Sequence[int]]) -> list[float]:
    """Of the sets with no, one, two … spans, the greatest sum of probabilities."""
    sums = [(len(one), float(true[list(one)].sum())) for one in every]
    return [max(total for n, total in sums if n == size) for size in range(max(n for n, _ in sums) + 1)]


def best_at_thresholds(worth: Sequence[float]) -> list[int]:
    """How many spans the best set has, at one threshold of their probability after another."""
    sizes = range(len(worth))
    return [max(sizes, key=lambda n: (worth[n] - t * n, -n)) for t in np.linspace(0.0, 1.0, 20_001)]


@pytest.mark.parametrize("asked", [0.3, 0.6, 0.8])
@pytest.mark.parametrize("seed", range(4))
def test_a_precision_that_is_asked_for_is_kept(seed: int, asked: float) -> None:
    evidence, model = made_evidence(seed)
    given = given_spans(evidence, model, Settings(precision=asked))
    _, true, every = enumerated(evidence, model, AS_STATED)
    chosen = np.flatnonzero(given.chosen)
    assert true[chosen].sum() >= asked * len(chosen) - 1e-9
    worth = best_of_each_size(true, every)
    assert len(chosen) == max(size for size in best_at_thresholds(worth) if worth[size] >= asked * size)


def test_what_the_span_model_learned_is_in_its_file() -> None:
    blank = SpanModel(Responses.of(3))
    arrays = replace(blank, unseen=0.01).arrays()
    assert blank.restored(arrays).unseen == 0.01
    with pytest.raises(ValueError, match="'span_unseen' is missing"):
        blank.restored({name: array for name, array in arrays.items() if name != "span_unseen"})
    with pytest.raises(ValueError, match="not a count"):
        blank.restored(arrays | {"span_unseen": np.array([-1.0])})
