"""A consensus on spans is one distribution: nothing is surer than what it is a part of, however it is decoded."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from problems import random_corpus, tagset
from quorate import Corpus, Result
from quorate.corpus.tags import Scheme
from quorate.estimators.methods import estimator

FEW = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)

problem = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10_000),
        "scheme": st.sampled_from([Scheme.BIO, Scheme.BIOES, Scheme.IO]),
        "decode": st.sampled_from(["f1", "sequence"]),
        "annotator": st.sampled_from(["seq", "pool"]),
        "text": st.booleans(),
        "missing": st.sampled_from([0.0, 0.2]),
    }
)


def corpus_of(drawn: dict[str, Any]) -> Corpus:
    rng = np.random.default_rng(drawn["seed"])
    tags = tagset(drawn["scheme"], 2)
    return random_corpus(rng, tags, n_documents=12, longest=4, n_annotators=4, missing=drawn["missing"])


def consensus(drawn: dict[str, Any], corpus: Corpus, **changes: Any) -> Result:
    options = {name: drawn[name] for name in ("annotator", "decode", "text")}
    return estimator("auto", scheme=drawn["scheme"].value, max_iter=5, **(options | changes)).fit(corpus).result_


def assert_coherent(result: Result) -> None:
    for one in result:
        assert 0.0 <= one.confidence <= 1.0
        for span in one.spans:
            assert span.confidence is not None
            assert one.confidence <= span.confidence + 1e-9
            assert span.confidence <= one.token_confidence[span.start : span.end].min() + 1e-9


@FEW
@given(problem)
def test_no_document_is_surer_than_a_span_of_it_and_no_span_surer_than_a_token(drawn: dict[str, Any]) -> None:
    assert_coherent(consensus(drawn, corpus_of(drawn)))


@FEW
@given(problem)
def test_that_holds_where_only_the_labels_given_out_are_asked_for(drawn: dict[str, Any]) -> None:
    assert_coherent(consensus(drawn, corpus_of(drawn), probabilities=False))


@FEW
@given(problem)
def test_what_is_given_out_does_not_hang_on_whether_all_probabilities_are_kept(drawn: dict[str, Any]) -> None:
    corpus = corpus_of(drawn)
    for kept, left in zip(consensus(drawn, corpus), consensus(drawn, corpus, probabilities=False), strict=True):
        assert kept.tags == left.tags
        assert [span.confidence for span in kept.spans] == [span.confidence for span in left.spans]
        np.testing.assert_allclose(kept.confidence, left.confidence, rtol=1e-9)
        np.testing.assert_allclose(kept.token_confidence, left.token_confidence, rtol=1e-9, atol=1e-12)


@FEW
@given(problem)
def test_tags_are_valid_and_probabilities_of_labels_add_up(drawn: dict[str, Any]) -> None:
    result = consensus(drawn, corpus_of(drawn))
    for one in result:
        assert result.tagset.is_valid(one.tags)
        assert [span.bare for span in one.spans] == [span.bare for span in result.tagset.spans(one.tags)]
        np.testing.assert_allclose(one.probabilities.sum(axis=1), 1.0, rtol=1e-9)
        assert one.probabilities.min(initial=0.0) >= 0.0
