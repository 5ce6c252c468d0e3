"""Candidates and responses to them are those of their definition, whatever was marked, seen or left out."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from every_set import Place, components, overlap, places_of, response_to
from problems import random_corpus, tagset
from quorate.corpus.records import Corpus, Document, hard_tags
from quorate.corpus.tags import Scheme, TagSet, find_spans
from quorate.crowd.encode import encode
from quorate.model import candidates as module
from quorate.model import loop
from quorate.model.candidates import Candidates, find_candidates, voted_spans
from quorate.model.engines.protocol import Likely
from quorate.model.kernels import spans as kernels
from quorate.model.parts.responses import Responses
from quorate.model.span_model import SpanEngine, SpanModel, prior_log_odds

SOME = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
LEAST = 0.2
NOWHERE = np.zeros(0, np.int64)
NOTHING_LIKELY = Likely(start=NOWHERE, end=NOWHERE, kind=NOWHERE, probability=np.zeros(0))

problem = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10_000),
        "scheme": st.sampled_from([Scheme.BIO, Scheme.BIOES, Scheme.IO]),
        "n_documents": st.integers(0, 5),
        "n_annotators": st.integers(0, 4),
        "missing": st.sampled_from([0.0, 0.1, 0.5]),
        "soft": st.booleans(),
        "likely": st.booleans(),
        "edges": st.permutations(["empty", "empty too", "nobody", "nothing", "not seen"]),
    }
)


class Case(NamedTuple):
    corpus: Corpus
    tags: TagSet
    likely: Likely
    found: Candidates


def case_of(drawn: dict[str, Any]) -> Case:
    """A random corpus among documents that have no token, no annotator, no mark, or no label."""
    rng, tags = np.random.default_rng(drawn["seed"]), tagset(drawn["scheme"], 2)
    sizes = {name: drawn[name] for name in ("n_documents", "n_annotators", "missing")}
    made = list(random_corpus(rng, tags, longest=4, **sizes))
    if drawn["soft"]:
        made = [
            replace(d, annotations={name: softened(rng, tags, said) for name, said in d.annotations.items()})
            for d in made
        ]
    edges = {
        "empty": Document("empty", (), {}),
        "empty too": Document("empty too", (), {"a0": ()} if drawn["n_annotators"] else {}),
        "nobody": Document("nobody", ("w0", "w1"), {}),
        "nothing": Document("nothing", ("w0", "w1"), {"a0": ("O", "O"), "a1": ("O", None)}),
        "not seen": Document("not seen", ("w0", "w1"), {"a0": (None, None)}),
    }
    order = rng.permutation(len(made) + len(edges))
    documents = [*made, *(edges[name] for name in drawn["edges"])]
    corpus = Corpus([documents[i] for i in order])
    likely = likely_in(rng, corpus) if drawn["likely"] else NOTHING_LIKELY
    return Case(corpus, tags, likely, find_candidates(encode(corpus, tags), likely, LEAST))


def softened(rng: np.random.Generator, tags: TagSet, said: tuple[Any, ...]) -> tuple[Any, ...]:
    """Some tags as probabilities of which one is large."""
    return tuple(
        {tag: 0.95, "O" if tag != "O" else tags.labels[1]: 0.05} if tag and rng.random() < 0.4 else tag for tag in said
    )


def likely_in(rng: np.random.Generator, corpus: Corpus) -> Likely:
    """Any spans within documents, each once."""
    offsets = np.cumsum([0, *(len(document.tokens) for document in corpus)])
    spans = [
        (int(offset) + a, int(offset) + b, kind)
        for offset, document in zip(offsets, corpus, strict=False)
        for a, b in itertools.combinations(range(len(document.tokens) + 1), 2)
        for kind in range(2)
        if rng.random() < 0.2
    ]
    start, end, kind = np.array(spans, np.int64).reshape(-1, 3).T.copy()
    return Likely(start=start, end=end, kind=kind, probability=rng.random(len(spans)))


def marks_of(case: Case) -> list[dict[str, list[Place]]]:
    """What every annotator of each document marked, who has a label there; tokens count through the corpus."""
    marks, offset = [], 0
    for document in case.corpus:
        marks.append(
            {
                name: places_of(find_spans(hard_tags(said)), case.tags.types, offset)
                for name, said in sorted(document.annotations.items())
                if any(tag is not None for tag in said)
            }
        )
        offset += len(document.tokens)
    return marks


def places(found: Candidates) -> list[Place]:
    return list(zip(found.start.tolist(), found.end.tolist(), found.kind.tolist(), strict=True))


@SOME
@given(problem)
def test_candidates_are_all_that_was_marked_and_what_is_likely(drawn: dict[str, Any]) -> None:
    case = case_of(drawn)
    found, offset = case.found, 0
    columns = zip(case.likely.start.tolist(), case.likely.end.tolist(), case.likely.kind.tolist(), strict=True)
    likely = dict(zip(columns, case.likely.probability.tolist(), strict=True))
    assert len(found.first) == len(case.corpus) + 1
    assert found.first[-1] == len(found.start)
    for d, (document, marks) in enumerate(zip(case.corpus, marks_of(case), strict=True)):
        here = {place for row in marks.values() for place in row}
        inside = range(offset, offset + len(document.tokens))
        here |= {place for place, p in likely.items() if place[0] in inside and p >= LEAST}
        mine = places(found)[found.first[d] : found.first[d + 1]]
        assert mine == sorted(here, key=lambda place: (place[1], place[0], place[2]))
        assert all(offset <= start < end <= offset + len(document.tokens) for start, end, _ in mine)
        offset += len(document.tokens)
    assert found.likely.tolist() == [likely.get(place, 0.0) for place in places(found)]
    assert found.document.tolist() == [d for d, n in enumerate(np.diff(found.first)) for _ in range(n)]


@SOME
@given(problem)
def test_clusters_are_the_largest_groups_that_hang_together(drawn: dict[str, Any]) -> None:
    case = case_of(drawn)
    found = case.found
    clusters: list[int] = []
    assert found.apart == (1 if drawn["scheme"] is Scheme.IO else 0)
    for first, last in itertools.pairwise(found.first.tolist()):
        groups = components(places(found)[first:last], found.apart)
        clusters += [max(clusters, default=-1) + 1 + group for group in groups] if groups else []
    assert found.cluster.tolist() == clusters
    for number in set(clusters):
        members = np.flatnonzero(found.cluster == number)
        assert members.tolist() == list(range(members[0], members[-1] + 1))
        order = members[0] + found.by_start[members]
        assert sorted(order.tolist()) == members.tolist()
        assert np.all(np.diff(found.start[order]) >= 0)


@SOME
@given(problem)
def test_responses_are_what_everybody_did_with_each_candidate(drawn: dict[str, Any]) -> None:
    case = case_of(drawn)
    found, names, offset = case.found, encode(case.corpus, case.tags).annotators, 0
    who, response, pair_start, response_start = [], [], [0], [0]
    for d, (document, marks) in enumerate(zip(case.corpus, marks_of(case), strict=True)):
        mine = places(found)[found.first[d] : found.first[d + 1]]
        for name, row in marks.items():
            seen = [tag is not None for tag in document.annotations[name]]
            runs = [
                (offset + a, offset + b)
                for a, b in itertools.combinations(range(len(seen) + 1), 2)
                if all(seen[a:b])  # every run: one that is longest is among them
            ]
            who.append(names.index(name))
            response += [response_to(place, row, runs) for place in mine]
        pair_start.append(len(who))
        response_start.append(len(response))
        offset += len(document.tokens)
    assert found.who.tolist() == who
    assert found.pair_start.tolist() == pair_start
    assert found.response_start.tolist() == response_start
    assert found.response.tolist() == response
    np.testing.assert_allclose(found.weight, [1.0] * len(who))
    of_candidate: list[list[int]] = [[] for _ in found.start]
    for d in range(len(case.corpus)):
        said = found.response[found.response_start[d] : found.response_start[d + 1]]
        n = found.first[d + 1] - found.first[d]
        for place, code in enumerate(said.tolist()):
            of_candidate[found.first[d] + place % n].append(code)
    np.testing.assert_allclose(found.marked, [codes.count(kernels.EXACT) for codes in of_candidate])
    touched = [sum(code < kernels.OTHER_TYPE for code in codes) for codes in of_candidate]
    np.testing.assert_allclose(found.touched, touched)
    alike = [
        sum(one != other and one[2] == other[2] and overlap(one, other) for other in places(found))
        for one in places(found)
    ]
    np.testing.assert_allclose(found.spread, np.log(np.maximum(alike, 1)))


@SOME
@given(problem)
def test_a_fit_holds_whatever_there_is(drawn: dict[str, Any]) -> None:
    case = case_of(drawn)
    found, K = case.found, len(encode(case.corpus, case.tags).annotators)
    prior = prior_log_odds(found.likely, np.zeros(len(found.start)), None, found.middle())
    engine = SpanEngine(found, prior, threads=2)
    model, bounds, _ = loop.passes(engine, SpanModel(Responses.of(K)), found, 5, 0.0)
    assert np.all(np.diff(bounds) >= -1e-9 * np.abs(bounds[1:]))
    posterior = engine.posterior(model)
    assert np.all((posterior.true >= 0) & (posterior.true <= 1))
    n_tokens = sum(len(document.tokens) for document in case.corpus)
    covered = np.zeros(n_tokens + 1)
    np.add.at(covered, found.start, posterior.true)
    np.subtract.at(covered, found.end, posterior.true)
    assert np.all(np.cumsum(covered) <= 1 + 1e-9)  # candidates that share a token are never true together
    chosen = engine.best_set(posterior.true - 0.3)
    assert not any(
        overlap(one, other)
        for one, other in itertools.combinations([p for p, c in zip(places(found), chosen, strict=True) if c], 2)
    )
    whole = engine.log_probability(model, chosen)
    assert np.all(whole <= 0)
    assert np.all(whole[np.diff(found.first) == 0] == 0)  # nothing can be there: that is sure
    assert np.all(np.exp(whole)[found.document[chosen]] <= posterior.true[chosen] + 1e-12)


@SOME
@given(problem)
def test_of_too_many_candidates_those_that_most_marked_are_kept(drawn: dict[str, Any]) -> None:
    most = 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MOST_IN_CLUSTER", most)
        case = case_of(drawn)
    encoded = encode(case.corpus, case.tags)
    every = find_candidates(encoded, case.likely, LEAST)
    votes = dict.fromkeys(places(every), 0)
    for row in (row for marks in marks_of(case) for row in marks.values()):
        for place in row:
            votes[place] += 1
    kept = set(places(case.found))
    assert kept <= votes.keys()
    for number in set(every.cluster.tolist()):
        members = [places(every)[c] for c in np.flatnonzero(every.cluster == number)]
        left = [place for place in members if place in kept]
        assert len(left) == min(len(members), most)
        assert min(votes[p] for p in left) >= max((votes[p] for p in members if p not in kept), default=0)
    assert np.bincount(case.found.cluster, minlength=1).max(initial=0) <= most
    assert len(case.found.response) == case.found.response_start[-1]


@SOME
@given(problem)
def test_the_middle_is_where_as_many_bounds_lie_before_as_behind(drawn: dict[str, Any]) -> None:
    """Counted one by one, in documents that everybody saw whole."""
    case = case_of(drawn)
    found, middle = case.found, case.found.middle()
    assert np.isfinite(middle).all()
    for d, (document, marks) in enumerate(zip(case.corpus, marks_of(case), strict=True)):
        if any(tag is None for said in document.annotations.values() for tag in said):
            continue
        for c in range(found.first[d], found.first[d + 1]):
            place = places(found)[c]
            alike = [[one for one in row if one[2] == place[2] and overlap(one, place)] for row in marks.values()]
            starts = [min(one[0] for one in row) for row in alike if row]  # who cut it in two began with the first
            ends = [max(one[1] for one in row) for row in alike if row]
            expected = 0.0
            for bounds, mine in ((starts, place[0]), (ends, place[1])):
                rank = min(sum(one <= mine for one in bounds), sum(one >= mine for one in bounds))
                expected += np.log(2 * max(rank, 0.25) / len(bounds)) if bounds else 0.0
            np.testing.assert_allclose(middle[c], expected, atol=1e-12)


def test_medians_of_bounds_are_the_middle() -> None:
    said = {
        "ann": ("B-X", "I-X", "I-X", "O", "O"),
        "bob": ("O", "B-X", "I-X", "I-X", "O"),
        "cem": ("O", "O", "B-X", "I-X", "I-X"),
    }
    corpus = Corpus([Document("1", tuple("abcde"), said)])
    middle = find_candidates(encode(corpus, corpus.tagset()), NOTHING_LIKELY, LEAST).middle()
    np.testing.assert_allclose(middle, 2 * np.log([2 / 3, 4 / 3, 2 / 3]), atol=1e-12)  # ann's, bob's and cem's


def test_a_vote_keeps_neighbours_of_one_type_apart() -> None:
    said = {"ann": ("B-X", "B-X", "O", "B-X"), "bob": ("B-X", "B-X", "I-X", "O"), "cem": ("B-X", "I-X", "O", "B-X")}
    corpus = Corpus([Document("1", ("a", "b", "c", "d"), said)])
    voted = voted_spans(encode(corpus, corpus.tagset()))
    assert list(zip(voted.start.tolist(), voted.end.tolist(), strict=True)) == [(0, 1), (1, 2), (3, 4)]
    assert voted.probability.round(2).tolist() == [1.0, 1.0, 0.67]
