"""Places and their types against loops over tokens and spans: shares, labels, probabilities, and tags without types."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import simulated_crowds as crowds
from problems import random_corpus
from quorate import BSC, Corpus, Document, Result
from quorate.corpus.records import SoftTag, Tag
from quorate.corpus.tags import Invalid, Scheme, TagSet, find_pieces
from quorate.crowd.encode import encode_known
from quorate.model.engines.protocol import Decoded
from quorate.model.places import known_places, places_of, typed_spans, with_types, without_types
from quorate.model.prepared import prepare

CLOSE: Any = {"rtol": 1e-9, "atol": 1e-12}
SCHEMES = [Scheme.BIO, Scheme.BIOES, Scheme.IO]
TYPES = {
    "one": ("ADR",),
    "several": ("ADR", "DRUG", "X-RAY"),
    "in pieces": ("ADR", "ADR…", "DRUG", "DRUG…"),
    "some in pieces": ("ADR", "ADR…", "DRUG", "X-RAY"),
}
FIXED: dict[str, Any] = {"annotator": "cm", "epsilon0": 10.0, "temper": 0.6, "max_iter": 3, "tagger": None}


class Problem(NamedTuple):
    """A consensus on places and one of tokens, of documents that begin at ``doc_start``."""

    where: Decoded
    tokens: Decoded
    tagset: TagSet
    places: TagSet
    doc_start: NDArray[np.int64]


def place_of(kind: str) -> str:
    return "span…" if kind.endswith("…") else "span"


def problem(scheme: Scheme, types: Sequence[str], seed: int, *, marked: float = 0.6, stated: bool = True) -> Problem:
    """Any places with any probabilities, and a token model that thinks anything of them, or nothing at all."""
    rng = np.random.default_rng(seed)
    tagset = TagSet.of_types(scheme, types)
    places = TagSet.of_types(scheme, sorted({place_of(kind) for kind in types}))
    lengths = [7, 0, 12, 1, 9]
    doc_start = np.concatenate([[0], np.cumsum(lengths)])
    N = int(doc_start[-1])
    path, span_end, probability = np.zeros(N, np.int32), np.zeros(N, np.int32), np.zeros(N)
    for first, length in zip(doc_start.tolist(), lengths, strict=False):
        codes = random_path(rng, places, length, marked)
        path[first : first + length] = codes
        for span in find_pieces([places.labels[code] for code in codes]):
            span_end[first + span.start], probability[first + span.start] = first + span.end, rng.random()
    posterior = rng.dirichlet(np.full(len(tagset.labels), 0.3), N)
    silent = (rng.random(N) < 0.3) & (span_end == 0)  # it gives nothing to any type; no span has such tokens alone
    posterior[silent] = np.eye(len(tagset.labels))[0]
    nothing = np.zeros(0)
    where = Decoded(
        rng.dirichlet(np.ones(len(places.labels)), N), path, np.log(rng.random(5)), rng.random(5), span_end,
        probability, nothing, expected_spans=rng.random(5), stated_spans=rng.random(5) if stated else nothing,
    )  # fmt: skip
    tokens = Decoded(
        posterior, np.zeros(N, np.int32), np.log(rng.random(5)), rng.random(5), np.zeros(N, np.int32), np.zeros(N),
        nothing,
    )  # fmt: skip
    return Problem(where, tokens, tagset, places, doc_start)


def random_path(rng: np.random.Generator, tags: TagSet, length: int, marked: float) -> list[int]:
    """A sequence that the scheme allows, in which many tokens are in spans."""
    codes: list[int] = []
    while len(codes) < length:
        if rng.random() > marked:
            codes.append(0)
            continue
        kind, size = str(rng.choice(tags.types)), int(rng.integers(1, min(4, length - len(codes)) + 1))
        prefixes = {"io": "I" * size, "bio": "B" + "I" * (size - 1)}.get(
            tags.scheme.value, "S" if size == 1 else "B" + "I" * (size - 2) + "E"
        )
        codes += [tags.index[f"{prefix}-{kind}"] for prefix in prefixes]
    return codes


def share(kind: str, row: Mapping[str, float], types: Sequence[str]) -> float:
    """Of what a token gives to types of one kind of place, the share of one of them; all alike where it gives none."""
    alike = [other for other in types if place_of(other) == place_of(kind)]
    given = {other: sum(p for label, p in row.items() if label[2:] == other) for other in alike}
    total = sum(given.values())
    return given[kind] / total if total else 1 / len(alike)


def by_loops(given: Problem) -> tuple[NDArray[np.float64], list[str], dict[int, float], list[float]]:
    """The posterior, the labels, the probability of every span by its first token, and that of every document."""
    where, tokens, tagset, places, doc_start = given
    types = tagset.types
    rows = [dict(zip(tagset.labels, row, strict=True)) for row in tokens.posterior.tolist()]
    shares = [{kind: share(kind, row, types) for kind in types} for row in rows]
    labels, probability, documents = ["O"] * len(rows), {}, []
    for d, log_probability in enumerate(where.log_probability.tolist()):
        first, last = int(doc_start[d]), int(doc_start[d + 1])
        written = [places.labels[code] for code in where.path[first:last].tolist()]
        certain = math.exp(log_probability)
        for span in find_pieces(written):
            here = range(first + span.start, first + span.end)
            mean = {kind: sum(shares[t][kind] for t in here) / len(here) for kind in types}
            best = max((kind for kind in types if place_of(kind) == span.label), key=lambda kind: mean[kind])
            for t in here:
                shares[t] = mean  # a token of a span is as sure of its type as the span
                labels[t] = f"{written[t - first][0]}-{best}"
            probability[here.start] = where.span_probability[here.start] * mean[best]
            certain *= mean[best]
        documents.append(certain)
    posterior = np.zeros((len(rows), len(tagset.labels)))
    for t, row in enumerate(where.posterior.tolist()):
        of_place = dict(zip(places.labels, row, strict=True))
        for j, label in enumerate(tagset.labels):
            kind = label[2:]
            posterior[t, j] = of_place["O"] if j == 0 else of_place[f"{label[0]}-{place_of(kind)}"] * shares[t][kind]
    return posterior, labels, probability, documents


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("types", TYPES.values(), ids=TYPES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_place_has_the_type_with_the_greatest_mean_share(scheme: Scheme, types: Sequence[str], seed: int) -> None:
    given = problem(scheme, types, seed)
    found = with_types(*given)
    posterior, labels, probability, documents = by_loops(given)
    np.testing.assert_allclose(found.posterior, posterior, **CLOSE)
    np.testing.assert_allclose(found.posterior.sum(axis=1), 1.0, **CLOSE)
    assert [given.tagset.labels[code] for code in found.path.tolist()] == labels
    np.testing.assert_array_equal(found.span_end, given.where.span_end)
    expected = [probability.get(t, 0.0) for t in range(len(labels))]
    np.testing.assert_allclose(found.span_probability, expected, **CLOSE)
    np.testing.assert_allclose(np.exp(found.log_probability), documents, **CLOSE)
    assert len(probability) > 3


@pytest.mark.parametrize("scheme", SCHEMES)
def test_labels_are_those_of_a_valid_sequence(scheme: Scheme) -> None:
    given = problem(scheme, TYPES["in pieces"], 5, marked=0.9)
    path, start = with_types(*given).path, given.doc_start
    for first, last in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
        assert given.tagset.is_valid([given.tagset.labels[code] for code in path[first:last].tolist()])


def test_as_many_spans_are_stated_to_be_right_as_places_by_their_shares() -> None:
    given = problem(Scheme.BIO, TYPES["several"], 3)
    found = with_types(*given)
    for d, stated in enumerate(given.where.stated_spans.tolist()):
        here = slice(int(given.doc_start[d]), int(given.doc_start[d + 1]))
        there, right = (one.span_probability[here].sum() for one in (given.where, found))
        assert found.stated_spans[d] == pytest.approx(stated * right / there if there else 0.0, rel=1e-9)
    np.testing.assert_array_equal(found.expected_spans, given.where.expected_spans)
    assert not len(with_types(*problem(Scheme.BIO, TYPES["several"], 3, stated=False)).stated_spans)


def test_where_there_is_no_place_there_is_no_span() -> None:
    given = problem(Scheme.BIOES, TYPES["several"], 1, marked=0.0)
    found = with_types(*given)
    assert not found.path.any()
    assert not found.span_probability.any()
    np.testing.assert_allclose(found.log_probability, given.where.log_probability, **CLOSE)
    np.testing.assert_allclose(found.posterior, by_loops(given)[0], **CLOSE)


def test_one_type_has_all_of_every_place() -> None:
    given = problem(Scheme.BIO, TYPES["one"], 2)
    found = with_types(*given)
    np.testing.assert_array_equal(found.path, given.where.path)
    np.testing.assert_allclose(found.posterior, given.where.posterior, **CLOSE)
    np.testing.assert_allclose(found.span_probability, given.where.span_probability, **CLOSE)
    np.testing.assert_allclose(found.log_probability, given.where.log_probability, **CLOSE)


@pytest.mark.parametrize("types", TYPES.values(), ids=TYPES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_span_by_itself_has_the_type_and_the_share_that_it_has_in_the_consensus(
    scheme: Scheme, types: Sequence[str]
) -> None:
    given = problem(scheme, types, 7)
    found = with_types(*given)
    start = np.flatnonzero(given.where.span_end)
    place = given.places.type_of[given.where.path[start]]
    end = given.where.span_end[start].astype(np.int64)
    kind, of_span = typed_spans(start, end, place, given.tokens.posterior, given.tagset, given.places)
    np.testing.assert_array_equal(kind, given.tagset.type_of[found.path[start]])
    np.testing.assert_allclose(given.where.span_probability[start] * of_span, found.span_probability[start], **CLOSE)


def test_spans_may_overlap_where_each_is_looked_at_by_itself() -> None:
    given = problem(Scheme.BIO, TYPES["several"], 9)
    types = given.tagset.types
    rows = [dict(zip(given.tagset.labels, row, strict=True)) for row in given.tokens.posterior.tolist()]
    start, end = np.array([0, 0, 2, 3], np.int64), np.array([3, 7, 4, 5], np.int64)
    kind, found = typed_spans(start, end, np.zeros(4, np.int64), given.tokens.posterior, given.tagset, given.places)
    for s, (first, last) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        mean = [sum(share(one, rows[t], types) for t in range(first, last)) / (last - first) for one in types]
        assert found[s] == pytest.approx(max(mean), rel=1e-9)
        assert mean[kind[s]] == max(mean)


@pytest.mark.parametrize("seed", range(3))
def test_types_that_are_equally_likely_are_told_apart_alike_in_all_documents(seed: int) -> None:
    """Where a document stands in a corpus changes nothing: not even what rounding decides."""
    rng = np.random.default_rng(seed)
    tagset, places = (TagSet.of_types(Scheme.BIO, types) for types in (TYPES["several"], ["span"]))
    unsure = np.array([0.4, *[0.1] * 6])
    posterior = np.vstack([rng.dirichlet(np.ones(7)) if n % 3 == 2 else unsure for n in range(3 * 50)])
    start = np.arange(0, len(posterior), 3)
    kind, of_span = typed_spans(start, start + 2, np.zeros(50, np.int64), posterior, tagset, places)
    assert set(kind.tolist()) == {0}
    np.testing.assert_allclose(of_span, 1 / 3, **CLOSE)


# --- tags without types -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (("O", "B-x", "I-x", "O", "B-y"), ("O", "B-span", "I-span", "O", "B-span")),
        (("B-x", "I-y", "I-y"), ("B-span", "B-span", "I-span")),  # another type that touches is another span
        (("B-x", "E-y"), ("B-span", "S-span")),
        (("B-x", "E-x", "S-y", "S-y"), ("B-span", "E-span", "S-span", "S-span")),
        (("I-x", "I-x", "I-y", "I-x"), ("I-span", "I-span", "B-span", "B-span")),
        (("B-x", None, "I-y"), ("B-span", None, "I-span")),  # after nothing was said it is as after O
        (("B-x", "O", "I-y"), ("B-span", "O", "I-span")),
        ((None, None), (None, None)),
        (("O", "O"), ("O", "O")),
        (("B-x-ray", "I-x-ray", "I-x"), ("B-span", "I-span", "B-span")),
        (("B-ADR", "O", "B-ADR…", "I-ADR…"), ("B-span", "O", "B-span…", "I-span…")),
        (("B-ADR", "I-ADR…"), ("B-span", "B-span…")),
        (("B-ADR…", "I-DRUG…"), ("B-span…", "B-span…")),
        (("B-…",), ("B-span",)),  # a label of nothing but dots is a label
        ((), ()),
    ],
)
def test_all_types_are_one_and_another_type_begins_anew(tags: tuple[Tag, ...], expected: tuple[Tag, ...]) -> None:
    document = Document("1", ("w",) * len(tags), {"ann": tags, "bob": tags}, gold=tags)
    [found] = without_types(Corpus([document]))
    assert found.annotations == {"ann": expected, "bob": expected}
    assert found.gold == expected
    assert (found.id, found.tokens) == (document.id, document.tokens)
    assert known_places({"1": tags, "2": ("O",)}) == {"1": expected, "2": ("O",)}


def test_soft_labels_add_up() -> None:
    soft: tuple[Tag | SoftTag, ...] = (
        {"B-x": 0.2, "B-y": 0.5, "O": 0.3},
        {"I-x": 0.25, "I-y": 0.25, "B-x": 0.25, "B-x…": 0.25},
        None,
        "I-y",
        "O",
    )
    [found] = without_types(Corpus([Document("1", ("w",) * 5, {"ann": soft})]))
    first, second, *rest = found.annotations["ann"]
    assert first == pytest.approx({"B-span": 0.7, "O": 0.3})
    assert second == pytest.approx({"I-span": 0.5, "B-span": 0.25, "B-span…": 0.25})
    assert rest == [None, "I-span", "O"]


def test_a_corpus_keeps_everything_but_its_types() -> None:
    corpus = crowds.every_kind(6)
    found = without_types(corpus)
    assert found.profiles == corpus.profiles
    assert [one.tokens for one in found] == [one.tokens for one in corpus]
    assert found.annotators == corpus.annotators
    assert found.tagset().types == ("span",)


@pytest.mark.parametrize("types", [("A", "B"), ("A", "A…")], ids=["types", "pieces"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_known_labels_of_places_are_those_of_tags_without_types(scheme: Scheme, types: tuple[str, ...]) -> None:
    corpus = random_corpus(np.random.default_rng(3), TagSet.of_types(scheme, types), n_documents=12, longest=4)
    known = {one.id: one.gold or () for one in corpus.documents[::2]}
    prepared = prepare(corpus, scheme, Invalid.REPAIR, known)
    found = places_of(prepared, Invalid.REPAIR)
    assert found.known is not None
    expected = encode_known(found.corpus, found.tagset, known_places(known), Invalid.REPAIR)
    np.testing.assert_array_equal(found.known, expected)
    assert set(found.tagset.types) == {place_of(kind) for kind in types}
    assert found.encoded.annotators == prepared.encoded.annotators


# --- the two steps of a fit ---------------------------------------------------------------------------------------


def test_a_fit_is_one_to_places_and_then_the_types_of_the_token_model() -> None:
    corpus = crowds.jury(8, 5, 4)
    result = BSC(**FIXED, evidence="places").fit(corpus).result_
    where = BSC(**FIXED, evidence="passages").fit(without_types(corpus)).result_
    tokens = BSC(**FIXED, evidence="tokens").fit(corpus).result_
    assert result.n_spans > 15
    for one, place, by_token in zip(result, where, tokens, strict=True):
        assert [(span.start, span.end) for span in one.spans] == [(span.start, span.end) for span in place.spans]
        for span, of_place in zip(one.spans, place.spans, strict=True):
            shares = mean_shares(tokens, by_token.probabilities[span.start : span.end])
            assert span.label == max(shares, key=lambda kind: shares[kind])
            assert span.sure == pytest.approx(of_place.sure * shares[span.label], rel=1e-6)


def mean_shares(result: Result, rows: NDArray[np.float64]) -> dict[str, float]:
    named = [dict(zip(result.labels, row, strict=True)) for row in rows.tolist()]
    types = result.tagset.types
    return {kind: sum(share(kind, row, types) for row in named) / len(named) for kind in types}
