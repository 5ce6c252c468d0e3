"""What must hold for every model on any data."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quorate
from by_name import bsc
from problems import certain, random_corpus, tagset
from quorate import BSC, Corpus, Document, Result
from quorate.corpus.records import SoftTag, Tag
from quorate.corpus.tags import Scheme
from quorate.crowd.encode import encode
from quorate.errors import FitError
from quorate.model.condense import condense
from quorate.model.engines.protocol import Tables
from quorate.model.engines.threads import ThreadsEngine
from quorate.model.parts.annotators import AnnotatorPrior
from quorate.model.parts.confusions import ConfusionMatrix
from quorate.model.parts.text import Words
from quorate.model.parts.truth import Independent, LabelCounts, Markov

FEW = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)

problem = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10_000),
        "scheme": st.sampled_from(list(Scheme)),
        "annotator": st.sampled_from(["acc", "spam", "cv", "cm", "seq", "pool"]),
        "truth": st.sampled_from(["markov", "independent", "uniform"]),
        "text": st.booleans(),
        "temper": st.sampled_from([1.0, 0.7, 0.3]),
        "start": st.sampled_from(["votes", "prior"]),
        "alpha0": st.sampled_from([0.05, 1.0, 5.0]),
        "known": st.sampled_from([None, "inline"]),
        "inference": st.sampled_from(["vb", "em", "em-annotators"]),
    }
)


def corpus_of(seed: int, scheme: Scheme) -> Corpus:
    rng = np.random.default_rng(seed)
    return random_corpus(rng, tagset(scheme, 2), n_documents=6, longest=4, n_annotators=4)


def fit(case: dict[str, Any], corpus: Corpus, **changes: object) -> BSC:
    names = ("annotator", "truth", "text", "temper", "start", "alpha0", "inference")
    options = {name: case[name] for name in names}
    if case["annotator"] in ("seq", "pool"):
        options["inference"] = "vb"
    options = options | {"scheme": case["scheme"].value, "max_iter": 8} | changes
    return bsc("bsc-seq", **options).fit(corpus, known=case["known"])


@FEW
@given(problem)
def test_bound_never_falls_and_posteriors_sum_to_one(case: dict[str, Any]) -> None:
    model = fit(case, corpus_of(case["seed"], case["scheme"]), tol=0.0)
    bounds = np.array(model.trace_.bounds)
    assert np.all(np.diff(bounds) >= -1e-9 * np.abs(bounds[1:]))
    for consensus in model.result_:
        np.testing.assert_allclose(consensus.probabilities.sum(axis=1), 1.0, rtol=1e-9)
        assert 0.0 <= consensus.confidence <= 1.0 + 1e-9
        assert all(0.0 <= span.sure <= 1.0 + 1e-9 for span in consensus.spans)


@FEW
@given(problem)
def test_no_output_breaks_the_scheme(case: dict[str, Any]) -> None:
    result = fit(case, corpus_of(case["seed"], case["scheme"])).result_
    assert all(result.tagset.is_valid(tags) for tags in result.tags)
    for consensus in result:
        assert [span.bare for span in consensus.spans] == result.tagset.spans(consensus.tags)


_ANY_STRENGTH = st.sampled_from([1e-6, 0.1, 30.0, 1e5, 5e5, 1e6])


@FEW
@given(problem, *(_ANY_STRENGTH for _ in range(5)))
def test_no_prior_however_strong_makes_the_bound_seem_to_fall(
    case: dict[str, Any], alpha0: float, epsilon0: float, gamma0: float, kappa0: float, guess_prior: float
) -> None:
    """A fall raises: rounding must stay below what is taken for one, however large the numbers that cancel."""
    corpus = corpus_of(case["seed"], case["scheme"])
    priors = {"alpha0": alpha0, "epsilon0": epsilon0, "gamma0": gamma0, "kappa0": kappa0, "guess_prior": guess_prior}
    model = fit(case, corpus, tol=0.0, max_iter=30, **priors)
    bounds = np.array(model.trace_.bounds)
    assert np.all(np.diff(bounds) >= -1e-9 * np.abs(bounds[1:]))


@pytest.mark.parametrize("annotator", ["acc", "spam", "cv", "cm", "seq", "pool"])
@pytest.mark.parametrize("priors", [{"gamma0": 5e5}, {"alpha0": 1e5}, {"alpha0": 1e6, "epsilon0": 1e6, "gamma0": 1e6}])
def test_strong_priors_fit_a_crowd(sample: Corpus, annotator: str, priors: dict[str, float]) -> None:
    bounds = np.array(bsc("auto", annotator=annotator, max_iter=60, tol=0.0, **priors).fit(sample).trace_.bounds)
    assert np.all(np.diff(bounds) >= -1e-9 * np.abs(bounds[1:]))


@pytest.mark.parametrize("strength", [1.0, 1e6])
@pytest.mark.parametrize("part", ["truth", "annotators", "text"])
def test_a_part_that_is_updated_wrongly_is_found_by_the_falling_bound(
    sample: Corpus, part: str, strength: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind: Any = {"truth": Markov, "annotators": ConfusionMatrix, "text": Words}[part]
    updated, calls = kind.updated, 0

    def wrongly(self: object, *given: object) -> object:
        nonlocal calls
        calls += 1
        *rest, counts = given
        if calls > 3:
            few = LabelCounts(*(0.5 * c for c in counts)) if isinstance(counts, LabelCounts) else 0.5 * counts  # type: ignore[operator]
            return updated(self, *rest, few)
        return updated(self, *rest, counts)

    monkeypatch.setattr(kind, "updated", wrongly)
    priors = {"alpha0": strength, "epsilon0": strength, "gamma0": strength, "kappa0": min(strength, 100.0)}
    with pytest.raises(FitError, match="the bound fell"):
        bsc("bsc-cm", max_iter=40, tol=0.0, **priors).fit(sample)


def same(one: Result, other: Result, labels: list[int] | None = None) -> None:
    """The same probabilities, by document id; ``labels`` says where the first's labels are in the second."""
    for consensus in one:
        twin = other[consensus.document.id]
        columns = labels or list(range(len(one.labels)))
        np.testing.assert_allclose(consensus.probabilities, twin.probabilities[:, columns], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(consensus.confidence, twin.confidence, rtol=1e-6)


@FEW
@given(problem)
def test_order_of_documents_changes_nothing(case: dict[str, Any]) -> None:
    corpus = corpus_of(case["seed"], case["scheme"])
    order = np.random.default_rng(case["seed"]).permutation(len(corpus))
    same(fit(case, corpus).result_, fit(case, Corpus([corpus[int(d)] for d in order])).result_)


@FEW
@given(problem)
def test_names_of_annotators_change_nothing(case: dict[str, Any]) -> None:
    corpus = corpus_of(case["seed"], case["scheme"])
    name = {"a0": "zoe", "a1": "ann", "a2": "mia", "a3": "bob"}
    renamed = Corpus(replace(d, annotations={name[a]: tags for a, tags in d.annotations.items()}) for d in corpus)
    one, other = fit(case, corpus), fit(case, renamed)
    same(one.result_, other.result_)
    for old, new in name.items():
        if old in one.annotators_.names:
            np.testing.assert_allclose(one.annotators_[old].matrix, other.annotators_[new].matrix, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(one.annotators_[old].accuracy, other.annotators_[new].accuracy, rtol=1e-6)


@FEW
@given(problem)
def test_names_of_labels_change_nothing(case: dict[str, Any]) -> None:
    corpus = corpus_of(case["seed"], case["scheme"])

    def rename(tags: Sequence[Tag]) -> tuple[Tag, ...]:
        swap = {"T0": "T1", "T1": "T0"}
        return tuple(tag and tag[:-2] + swap.get(tag[-2:], tag[-2:]) for tag in tags)

    renamed = Corpus(
        replace(
            d, annotations={a: rename(certain(tags)) for a, tags in d.annotations.items()}, gold=rename(d.gold or ())
        )
        for d in corpus
    )
    one, other = fit(case, corpus).result_, fit(case, renamed).result_
    columns = [other.labels.index(str(label)) for label in rename(one.labels)]
    same(one, other, columns)


@FEW
@given(problem)
def test_one_thread_and_many_agree_to_the_bit(case: dict[str, Any]) -> None:
    corpus = corpus_of(case["seed"], case["scheme"])
    one, many = fit(case, corpus, n_jobs=1), fit(case, corpus, n_jobs=4)
    assert one.trace_.bounds == many.trace_.bounds
    for a, b in zip(one.result_.probabilities, many.result_.probabilities, strict=True):
        np.testing.assert_array_equal(a, b)


@FEW
@given(st.integers(0, 10_000), st.sampled_from(list(Scheme)), st.sampled_from([Markov, Independent]))
def test_what_is_decoded_in_part_is_what_is_decoded_whole(
    seed: int, scheme: Scheme, truth: type[Markov] | type[Independent]
) -> None:
    tags = tagset(scheme, 2)
    encoded = encode(corpus_of(seed, scheme), tags)
    rng = np.random.default_rng(seed)
    J = len(tags.labels)
    tables = Tables(rng.normal(size=(len(encoded.cells.label), J)), rng.normal(size=(len(encoded.words), J)), 0.7)
    chain, engine = truth.of(tags, 1.0).chain(), ThreadsEngine(encoded)
    whole = engine.decode(tables, chain, by_token=False)
    paths, posterior = engine.best_paths(tables, chain), engine.posteriors(tables, chain)
    np.testing.assert_array_equal(paths.path, whole.path)
    np.testing.assert_array_equal(paths.span_end, whole.span_end)
    np.testing.assert_allclose(posterior, whole.posterior, rtol=1e-9, atol=1e-12)


@FEW
@given(st.integers(0, 10_000), st.sampled_from(list(Scheme)))
def test_counts_of_shards_add_up_to_counts_of_the_whole(seed: int, scheme: Scheme) -> None:
    corpus, tags = corpus_of(seed, scheme), tagset(scheme, 2)
    whole = encode(corpus, tags)
    rng = np.random.default_rng(seed)
    J = len(tags.labels)
    tables = Tables(rng.normal(size=(len(whole.cells.label), J)), rng.normal(size=(len(whole.words), J)))
    chain = Markov.of(tags, 1.0).chain()
    expected = ThreadsEngine(whole).run(tables, chain)
    log_z, pairs, words = 0.0, np.zeros((J, J)), np.zeros_like(tables.words)
    for part in ([0, 1, 2], [3, 4, 5]):
        shard = encode(Corpus([corpus[d] for d in part]), tags, annotators=whole.annotators, words=whole.words)
        rows = tables.cells[np.searchsorted(whole.cells.keys, shard.cells.keys)]
        counts = ThreadsEngine(shard).run(Tables(rows, tables.words), chain)
        log_z += counts.log_z
        pairs += counts.labels.pairs
        words += counts.words
    np.testing.assert_allclose(log_z, expected.log_z, rtol=1e-12)
    np.testing.assert_allclose(pairs, expected.labels.pairs, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(words, expected.words, rtol=1e-9, atol=1e-12)


@FEW
@given(st.integers(0, 10_000), st.sampled_from(["acc", "spam", "cv", "cm", "seq", "pool"]))
def test_soft_labels_that_are_certain_equal_tags(seed: int, annotator: str) -> None:
    corpus = corpus_of(seed, Scheme.BIO)
    soft = Corpus(
        replace(
            d,
            annotations={
                a: tuple(t if t is None else {t: 1.0} for t in certain(tags)) for a, tags in d.annotations.items()
            },
        )
        for d in corpus
    )
    one = bsc("auto", annotator=annotator, scheme="bio", max_iter=5, calibrate=False).fit(corpus)
    other = bsc("auto", annotator=annotator, scheme="bio", max_iter=5, calibrate=False).fit(soft)
    np.testing.assert_allclose(one.trace_.bounds, other.trace_.bounds, rtol=1e-9)
    same(one.result_, other.result_)


@FEW
@given(st.integers(0, 10_000), st.sampled_from(["acc", "spam", "cv", "cm", "seq", "pool"]))
def test_bound_never_falls_with_soft_labels(seed: int, annotator: str) -> None:
    rng = np.random.default_rng(seed)
    corpus = corpus_of(seed, Scheme.BIO)
    labels = tagset(Scheme.BIO, 2).labels

    def soften(tag: Tag) -> Tag | SoftTag:
        if tag is None or rng.random() < 0.3:
            return tag
        return dict(zip(labels, rng.dirichlet(np.ones(len(labels))).tolist(), strict=True))

    soft = Corpus(
        replace(d, annotations={a: tuple(map(soften, certain(tags))) for a, tags in d.annotations.items()})
        for d in corpus
    )
    bounds = np.array(bsc("auto", annotator=annotator, max_iter=10, tol=0.0).fit(soft).trace_.bounds)
    assert np.all(np.diff(bounds) >= -1e-9 * np.abs(bounds[1:]))


@pytest.mark.parametrize("start", ["votes", "prior"])
def test_seeds_repeat_and_restarts_differ(sample: Corpus, start: str) -> None:
    one, again, other = (
        bsc("bsc-spam", start=start, random_state=seed, n_init=3, max_iter=3).fit(sample) for seed in (3, 3, 4)
    )
    assert one.trace_.starts == again.trace_.starts
    assert len(set(one.trace_.starts)) == 3
    assert one.trace_.bound == max(one.trace_.starts)
    assert set(one.trace_.starts).isdisjoint(other.trace_.starts)


def test_a_million_restarts_make_no_million_generators(sample: Corpus) -> None:
    class EnoughError(Exception):
        pass

    def stop(progress: object) -> None:
        raise EnoughError

    for seed in (None, 3):
        model = bsc("bsc-acc", text=False, random_state=seed, n_init=100_000)
        tracemalloc.start()
        try:
            with pytest.raises(EnoughError):
                model.fit(sample, progress=stop)
            assert tracemalloc.get_traced_memory()[1] < 30e6  # 100,000 generators take twice that
        finally:
            tracemalloc.stop()


def test_folder_of_shards_reads_as_one_file(tmp_path: object, sample: Corpus) -> None:
    from pathlib import Path

    from quorate.formats.jsonl import write_corpus
    from quorate.storage.files.atomic import written_whole

    folder = Path(str(tmp_path))
    (folder / "shards").mkdir()
    for name, corpus in [
        ("whole.jsonl", sample),
        ("shards/1.jsonl", Corpus(sample.documents[:100])),
        ("shards/2.jsonl", Corpus(sample.documents[100:])),
    ]:
        with written_whole(folder / name) as stream:
            write_corpus(corpus, stream)
    whole, shards = quorate.read(folder / "whole.jsonl"), quorate.read(folder / "shards")
    assert [d.id for d in whole] == [d.id for d in shards]
    assert [d.annotations for d in whole] == [d.annotations for d in shards]


@pytest.mark.parametrize("annotator", ["acc", "spam", "cv", "cm", "seq", "pool"])
def test_a_document_without_annotators_is_tagged(annotator: str, sample: Corpus) -> None:
    corpus = Corpus([*sample, Document("bare", sample[0].tokens)])
    result = bsc("auto", annotator=annotator, max_iter=3).fit(corpus).result_
    assert len(result["bare"].tags) == len(sample[0].tokens)


@FEW
@given(problem)
def test_distinct_tokens_give_the_counts_of_all_tokens(case: dict[str, Any]) -> None:
    """Two routes to one answer: every token, and every distinct token as often as it occurs."""
    once, tags = corpus_of(case["seed"], case["scheme"]), tagset(case["scheme"], 2)
    corpus = Corpus([*once, *(replace(document, id=f"{document.id} again") for document in once)])
    encoded = encode(corpus, tags)
    known = np.where(np.arange(encoded.n_tokens) % 5 == 0, 1, -1).astype(np.int32) if case["known"] else None
    condensed = condense(replace(encoded, known=known), by_previous=True)
    assert condensed is not None
    assert condensed.times.sum() == encoded.n_tokens
    assert len(condensed.times) < encoded.n_tokens
    rng = np.random.default_rng(case["seed"])
    J = len(tags.labels)
    tables = Tables(rng.normal(size=(len(encoded.cells.label), J)), np.zeros((0, J)), case["temper"])
    chain = Independent.of(tags, 1.0).chain()
    votes = rng.random(tables.cells.shape)
    whole = ThreadsEngine(encoded, known=known, text=False)
    distinct = ThreadsEngine(condensed.crowd, known=condensed.crowd.known, text=False, times=condensed.times)
    for one, other in (
        (whole.run(tables, chain), distinct.run(tables, chain)),
        (whole.vote(votes, 0.1), distinct.vote(votes, 0.1)),
    ):
        np.testing.assert_allclose(one.log_z, other.log_z, rtol=1e-9)
        np.testing.assert_allclose(one.cells, other.cells, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(one.labels.all, other.labels.all, rtol=1e-9)


@FEW
@given(problem)
def test_distinct_tokens_without_previous_labels_give_the_same_annotators(case: dict[str, Any]) -> None:
    once, tags = corpus_of(case["seed"], case["scheme"]), tagset(case["scheme"], 2)
    encoded = encode(Corpus([*once, *(replace(document, id=f"{document.id} again") for document in once)]), tags)
    condensed = condense(encoded, by_previous=False)
    assert condensed is not None
    cells = condensed.crowd.cells
    assert np.all(np.diff(cells.keys) > 0)
    model = ConfusionMatrix.of(AnnotatorPrior(tags, 1.0, 2.0), len(encoded.annotators))
    chain, no_words = Independent.of(tags, 1.0).chain(), np.zeros((0, len(tags.labels)))
    whole = ThreadsEngine(encoded, text=False).run(Tables(model.log_lik(encoded.cells), no_words), chain)
    distinct = ThreadsEngine(condensed.crowd, text=False, times=condensed.times)
    counts = distinct.run(Tables(model.log_lik(cells), no_words), chain)
    np.testing.assert_allclose(counts.log_z, whole.log_z, rtol=1e-9)
    one, other = model.updated(encoded.cells, whole.cells), model.updated(cells, counts.cells)
    np.testing.assert_array_equal(one.keys, other.keys)
    np.testing.assert_allclose(one.counts, other.counts, rtol=1e-9, atol=1e-12)
