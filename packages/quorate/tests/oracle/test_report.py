"""What a report computes for itself, against other ways to the same numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score

import quorate
from by_name import bsc
from problems import certain, random_corpus, tagset, valid_paths
from quorate import BSC, Corpus
from quorate.corpus.records import Tag
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme, TagSet
from quorate.errors import SettingsError
from quorate.model.parts.dirichlet import log_mean
from quorate.report.data import collect
from quorate.report.influence import influences
from quorate.report.people import people, wilson
from quorate.result.clusters import choose_clusters, group_annotators, k_means, silhouette
from simulated_crowds import copies, every_kind, rules

Floats = NDArray[np.float64]
Weights = dict[tuple[int, ...], float]
CLOSE: dict[str, Any] = {"rtol": 1e-8, "atol": 1e-10}
ROUGHLY: dict[str, Any] = {"rtol": 1e-8, "atol": 1e-6}  # what is less probable is 0


def blobs(rng: np.random.Generator, n_groups: int, size: int = 15, spread: float = 0.2) -> tuple[Floats, list[int]]:
    centres = 5 * np.eye(n_groups)
    points = [rng.normal(centre, spread, (size, n_groups)) for centre in centres]
    return np.concatenate(points), [group for group in range(n_groups) for _ in range(size)]


@pytest.mark.parametrize("seed", range(4))
def test_k_means_finds_as_good_a_grouping_as_scikit_learn(seed: int) -> None:
    points = np.random.default_rng(seed).random((60, 7))
    for n in (1, 2, 5):
        theirs = KMeans(n, n_init=10, random_state=seed).fit(points)
        mine = k_means(points, n, seed=seed)
        assert mine.inertia <= 1.02 * theirs.inertia_
        again = ((points - mine.centres[mine.member]) ** 2).sum()
        np.testing.assert_allclose(mine.inertia, again, **CLOSE)
        for group in range(n):
            np.testing.assert_allclose(mine.centres[group], points[mine.member == group].mean(axis=0), **CLOSE)


@pytest.mark.parametrize("n_groups", [2, 4, 6])
def test_separate_groups_are_found_and_counted(n_groups: int) -> None:
    points, truth = blobs(np.random.default_rng(n_groups), n_groups)
    found, tried = choose_clusters(points)
    assert len(found.centres) == n_groups == max(tried, key=lambda n: tried[n])
    assert adjusted_rand_score(truth, found.member) == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_silhouette_is_scikit_learns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, member = rng.random((40, 3)), rng.integers(0, 4, 40)
    np.testing.assert_allclose(silhouette(points, member), silhouette_score(points, member), **CLOSE)


def test_k_means_repeats_and_does_not_depend_on_the_order_of_points() -> None:
    points, _ = blobs(np.random.default_rng(5), 3)
    shuffled = np.random.default_rng(1).permutation(len(points))
    one, other = k_means(points, 3), k_means(points[shuffled], 3)
    assert np.array_equal(one.member, k_means(points, 3).member)
    assert np.array_equal(one.member[shuffled], other.member)


def test_points_that_are_alike_are_one_group() -> None:
    found, tried = choose_clusters(np.ones((9, 4)))
    assert len(found.centres) == 1
    assert not tried
    assert k_means(np.ones((9, 4)), 3).inertia == 0.0


def test_more_groups_than_annotators_are_refused(sample: Corpus) -> None:
    annotators = bsc("bsc-cm", max_iter=2).fit(sample).annotators_
    with pytest.raises(SettingsError, match="12 annotators cannot be put into 13 groups"):
        group_annotators(annotators, 13)


def test_groups_of_the_sample_are_the_kinds_it_was_made_of(sample: Corpus) -> None:
    from quorate.corpus.sample import SAMPLE_CROWD

    model = bsc("bsc-seq").fit(sample)
    groups = group_annotators(model.annotators_, 6)
    made_as = [SAMPLE_CROWD[name] for name in model.annotators_.names]
    assert adjusted_rand_score(made_as, groups.member) == 1.0
    told = [model.annotators_.informativeness[groups.member == group].mean() for group in range(6)]
    assert told == sorted(told, reverse=True)
    np.testing.assert_allclose(groups.matrices.sum(axis=-1)[:, 0], 1.0, **CLOSE)


def rewritten(tags: TagSet, given: tuple[Tag, ...]) -> tuple[Tag, ...]:
    """The same spans in tags that follow the scheme on both sides of a missing one, so that nothing is repaired."""
    if tags.scheme is Scheme.PLAIN:
        return given
    valid = tags.tags(tags.spans(given), len(given))
    return tuple(None if tag is None else new for tag, new in zip(given, valid, strict=True))


def path_weights(model: BSC, corpus: Corpus, d: int, left_out: str | None, *, nobody: bool = False) -> Weights:
    """Every path of a document and its log weight, from the posterior means written out one by one."""
    document, tags, learned = corpus[d], model.tagset_, model.fitted_.model
    chain = learned.truth.chain(log_mean)
    words = None if learned.text is None else learned.text.log_lik(log_mean)
    index = {word: v for v, word in enumerate(model.fitted_.words)}
    start_row = len(tags.labels) if tags.outside is None else tags.outside
    weights = {}
    for path in valid_paths(tags, len(document.tokens)):
        total = chain.start[path[0]] + sum(chain.trans[a, b] for a, b in itertools.pairwise(path))
        if words is not None:
            total += sum(words[index[word], truth] for word, truth in zip(document.tokens, path, strict=True))
        for name, given in document.annotations.items():
            if nobody or name == left_out:
                continue
            with np.errstate(divide="ignore"):
                matrix, before = np.log(model.annotators_[name].matrix), start_row
            for tag, truth in zip(certain(given), path, strict=True):
                if tag is None:
                    before = start_row
                    continue
                label = tags.index[tag]
                total += model.settings_["temper"] * matrix[before if len(matrix) > 1 else 0, truth, label]
                before = label
        weights[path] = total
    return weights


def probability(model: BSC, weights: Weights, span: Span) -> float:
    tags = model.tagset_
    top = max(weights.values())
    all_ = has = 0.0
    for path, weight in weights.items():
        written = [tags.labels[code] for code in path]
        mass = np.exp(weight - top)
        all_ += mass
        if tags.scheme is Scheme.PLAIN:
            has += mass * (written[span.start] == span.label)
        else:
            has += mass * (span in tags.spans(written))
    return has / all_


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize("annotator", ["cm", "seq"])
def test_influence_is_what_every_path_says(scheme: Scheme, annotator: str) -> None:
    rng = np.random.default_rng(11)
    tags = tagset(scheme, 1 if scheme is Scheme.BIOES else 2)
    corpus = random_corpus(rng, tags, n_documents=6, longest=4, n_annotators=3)
    corpus = Corpus(
        replace(
            document,
            gold=None,
            annotations={name: rewritten(tags, certain(given)) for name, given in document.annotations.items()},
        )
        for document in corpus
    )
    model = bsc(
        f"bsc-{annotator}", max_iter=3, scheme=scheme.value, temper=0.7, spans=False, calibrate=False, adapt=False
    ).fit(corpus)
    asked = []
    for document in corpus:
        length = len(document.tokens)
        if scheme is Scheme.PLAIN:
            asked.append([Span(at, at + 1, label) for at in range(length) for label in model.tagset_.types])
        else:
            asked.append(
                [
                    Span(a, b, kind)
                    for a in range(length)
                    for b in range(a + 1, length + 1)
                    for kind in model.tagset_.types
                ]
            )
    compared = 0
    for d, found in enumerate(influences(model, model.result_, range(len(corpus)), asked)):
        with_all, with_none = path_weights(model, corpus, d, None), path_weights(model, corpus, d, None, nobody=True)
        for s, span in enumerate(asked[d]):
            np.testing.assert_allclose(found.with_all[s], probability(model, with_all, span), **ROUGHLY)
            np.testing.assert_allclose(found.with_none[s], probability(model, with_none, span), **ROUGHLY)
        for a, name in enumerate(found.annotators):
            left = path_weights(model, corpus, d, name)
            best = max(left, key=lambda path: left[path])
            written = [model.tagset_.labels[code] for code in best]
            for s, span in enumerate(asked[d]):
                np.testing.assert_allclose(found.without[a, s], probability(model, left, span), **ROUGHLY)
                compared += 1
            if scheme is Scheme.PLAIN:
                assert [span.label for span in found.spans_without[a]] == written
            else:
                assert found.spans_without[a] == model.tagset_.spans(written)
    assert compared > 50


def without(corpus: Corpus, d: int, kept: Iterable[str]) -> Corpus:
    """The same documents, one of them with the labels of some annotators alone."""
    documents = list(corpus)
    documents[d] = replace(documents[d], annotations={name: documents[d].annotations[name] for name in kept})
    return Corpus(documents, profiles=corpus.profiles)


SETTINGS: list[dict[str, Any]] = [
    {},
    {"decode": "sequence"},
    {"precision": 0.9},
    {"recall": 0.8},
    {"spans": False},
    {"spans": False, "decode": "f1"},
    {"text": False},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_span_without_someone_is_as_likely_as_in_a_consensus_without_them(settings: dict[str, Any]) -> None:
    """Where spans are chosen by their sum over all documents, they are those of these alone."""
    corpus = Corpus(quorate.sample().documents[:80])
    model = BSC(**settings).fit(corpus)
    positions, compared = [0, 3, 7], 0
    asked = [[piece.bare for piece in model.result_.pieces(d)] for d in positions]
    by_itself = settings.get("decode") == "sequence" or settings == {"spans": False}
    for d, spans, found in zip(positions, asked, influences(model, model.result_, positions, asked), strict=True):
        given = [piece.sure for piece in model.result_.pieces(d)]
        np.testing.assert_allclose(found.with_all, given, **CLOSE)
        assert found.spans_with_all == spans or not by_itself
        names = set(corpus[d].annotations)
        versions = [*(names - {name} for name in found.annotators), set()]
        for kept, probabilities, chosen in zip(
            versions, [*found.without, found.with_none], [*found.spans_without, None], strict=True
        ):
            again = model.combine(without(corpus, d, kept))[d]
            sure = {span.bare: span.sure for span in again.spans}
            assert chosen == list(sure) or chosen is None or not by_itself
            for span, probability in zip(spans, probabilities.tolist(), strict=True):
                if span in sure:
                    np.testing.assert_allclose(probability, sure[span], **CLOSE)
                    compared += 1
    assert compared > 5


@pytest.mark.parametrize("made", [copies, rules, every_kind])
def test_influence_goes_through_the_changes_of_the_crowd(made: Callable[[int], Corpus]) -> None:
    corpus = made(60)
    model = BSC(calibrate=False).fit(corpus)
    positions = [d for d in range(len(corpus)) if model.result_.pieces(d)][:4]
    asked = [[piece.bare for piece in model.result_.pieces(d)] for d in positions]
    for d, found in zip(positions, influences(model, model.result_, positions, asked), strict=True):
        np.testing.assert_allclose(found.with_all, [piece.sure for piece in model.result_.pieces(d)], **CLOSE)
        assert set(found.annotators) == set(corpus[d].annotations)


def test_influence_of_one_of_several_duplicates_is_none() -> None:
    corpus = copies(60)
    model = BSC(calibrate=False).fit(corpus)
    assert len(model.sources_.duplicates) == 1
    asked = [[piece.bare for piece in model.result_.pieces(d)] for d in range(10)]
    for found in influences(model, model.result_, range(10), asked):
        moved = np.abs(found.without - found.with_all).max(axis=1, initial=0.0)
        assert (moved[[name.startswith("model") for name in found.annotators]] < 1e-12).all()


def test_influence_is_the_same_however_many_documents_are_combined_at_once(
    sample: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = bsc("bsc-cm").fit(sample)
    asked = [[piece.bare for piece in model.result_.pieces(d)] for d in range(5)]
    together = list(influences(model, model.result_, range(5), asked))
    monkeypatch.setattr("quorate.report.influence._AT_ONCE", 8)
    for one, other in zip(together, influences(model, model.result_, range(5), asked), strict=True):
        np.testing.assert_allclose(one.without, other.without, **CLOSE)
        assert (one.spans_without, one.spans_with_all) == (other.spans_without, other.spans_with_all)


def test_every_document_of_the_default_consensus_says_why(sample: Corpus) -> None:
    model = BSC().fit(sample)
    rows = collect(model, model.result_, title="", documents=40).documents.list
    assert all(row.why is not None for row in rows)
    for row in rows:
        assert row.why is not None
        agreed = {tuple(span[:3]) for span in row.spans}
        assert all(agreed.issuperset(gone) and not agreed & set(come) for gone, come in row.why.changes)


def test_kinds_of_the_sample_are_those_it_was_made_of(sample: Corpus) -> None:
    from quorate.corpus.sample import SAMPLE_CROWD

    kinds = {
        "careful": "careful",
        "lazy": "misses many",
        "spammer": "noise",
        "starts late": "starts late",
        "splits spans": "splits spans",
        "misses a type": "misses ORG",
    }
    found = {person.name: person.kind for person in people(bsc("bsc-seq").fit(sample).result_)}
    assert found == {name: kinds[kind] for name, kind in SAMPLE_CROWD.items()}


def test_accuracy_and_confusions_are_the_posteriors_own(sample: Corpus) -> None:
    result = bsc("bsc-seq", max_iter=3).fit(sample).result_
    for person in people(result):
        summary = result.annotators[person.name]
        assert person.accuracy is not None
        np.testing.assert_allclose(person.accuracy, summary.accuracy, **CLOSE)
        np.testing.assert_allclose(person.truths.sum(), summary.n_labels, **CLOSE)
        right = person.truths[np.arange(len(person.given)), person.given].sum()
        np.testing.assert_allclose(right / summary.n_labels, summary.accuracy, **CLOSE)
        assert person.low < person.accuracy < person.high  # type: ignore[operator]


def test_the_interval_holds_the_accuracy_in_about_95_of_100_draws() -> None:
    """Annotators with one accuracy each, on documents whose labels are known: how often is it in the interval?"""
    rng = np.random.default_rng(3)
    from quorate import Document

    documents = []
    for number in range(40):
        truth = tuple("AB"[int(rng.integers(2))] for _ in range(10))
        said = {f"a{k:03}": tuple(t if rng.random() < 0.8 else "BA"["AB".index(t)] for t in truth) for k in range(200)}
        documents.append(Document(f"d{number}", tuple("x" * 10), said, truth))
    result = bsc("bsc-acc", max_iter=1, truth="independent", text=False).fit(Corpus(documents), known="inline").result_
    inside = [person.low <= 0.8 <= person.high for person in people(result)]  # type: ignore[operator]
    assert 0.9 <= np.mean(inside) <= 0.99


@pytest.mark.parametrize(("right", "n"), [(0, 10), (5, 10), (10, 10), (1, 1000), (300, 301)])
def test_wilson_is_scipys(right: int, n: int) -> None:
    from scipy.stats import binomtest

    theirs = binomtest(right, n).proportion_ci(0.95, method="wilson")
    np.testing.assert_allclose(wilson(right, n), (theirs.low, theirs.high), atol=1e-6)
