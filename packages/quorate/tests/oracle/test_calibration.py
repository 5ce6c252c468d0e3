"""A trust prior of one's own, against fits of one annotator at a time with that prior for all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from by_name import bsc, loaded
from problems import random_corpus, tagset
from quorate import Corpus, Document
from quorate.corpus.profiles import Profile
from quorate.corpus.tags import Invalid, Scheme, TagSet
from quorate.crowd.crowd import AnnotatorPriors
from quorate.crowd.encode import encode, encode_known
from quorate.model import loop
from quorate.model.engines.threads import ThreadsEngine
from quorate.model.parts.annotators import Accuracy, AnnotatorPrior, Annotators, ClassVector, Spammer
from quorate.model.parts.confusions import ConfusionMatrix, Sequential
from quorate.model.parts.pool import Pool
from quorate.model.parts.truth import Markov

ALPHA0, EPSILON0 = 1.0, 3.0


def bound(
    kind: type[Annotators], tags: TagSet, corpus: Corpus, epsilon0: float, trust: tuple[float, ...] | None
) -> float:
    """The bound when every label is known: exactly the evidence, to which each annotator adds a term of their own."""
    encoded = encode(corpus, tags)
    known = encode_known(corpus, tags, {d.id: d.gold or () for d in corpus}, Invalid.REPAIR)
    prior = AnnotatorPrior(tags, ALPHA0, epsilon0, of_each=AnnotatorPriors(trust))
    model = loop.Model(Markov.of(tags, 1.0), kind.of(prior, len(encoded.annotators)), None)
    engine = ThreadsEngine(encoded, known=known, text=False, threads=1)
    return loop.fit(engine, model, encoded, max_passes=50, tolerance=1e-14).trace.bound


@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.BIOES, Scheme.PLAIN])
@pytest.mark.parametrize("kind", [Accuracy, ClassVector, ConfusionMatrix, Sequential, Spammer, Pool])
def test_everybody_has_the_prior_of_their_own_trust(kind: type[Annotators], scheme: Scheme) -> None:
    tags = tagset(scheme)
    corpus = random_corpus(
        np.random.default_rng(4), tags, n_documents=6, longest=4, n_annotators=3, n_words=2, missing=0.1
    )
    names = corpus.annotators
    trust = (0.0, 1.0, 7.5)

    def only(*chosen: str) -> Corpus:
        kept = [{name: tags for name, tags in d.annotations.items() if name in chosen} for d in corpus]
        return Corpus(replace(d, annotations=said) for d, said in zip(corpus, kept, strict=True))

    alone = [bound(kind, tags, only(name), EPSILON0 * own, None) for name, own in zip(names, trust, strict=True)]
    base = bound(kind, tags, only(), EPSILON0, None)
    together = bound(kind, tags, corpus, EPSILON0, trust)
    np.testing.assert_allclose(together, sum(alone) - (len(names) - 1) * base, rtol=1e-9)


@pytest.mark.parametrize("annotator", ["acc", "spam", "cv", "cm", "seq", "pool"])
def test_the_trusted_one_wins_a_dispute(annotator: str) -> None:
    first, second = ("B-X", "O"), ("O", "B-X")
    pairs = [(first, second) if n % 2 else (second, first) for n in range(20)]
    documents = [Document(str(n), ("a", "b"), {"ann": one, "bob": two}) for n, (one, two) in enumerate(pairs)]
    for trusted in ("ann", "bob"):
        corpus = Corpus(documents, profiles={trusted: Profile.of(kind="expert", trust=50)})
        result = bsc("auto", annotator=annotator, text=False, adapt=False).fit(corpus).result_
        assert result.tags == [list(d.annotations[trusted]) for d in corpus]


def test_trust_is_kept_in_the_file_of_a_model(tmp_path: Path, sample: Corpus) -> None:

    corpus = Corpus(
        sample.documents, profiles={"fay": Profile.of(kind="model", trust=0.0), "ana": Profile.of("expert")}
    )
    model = bsc("bsc-seq", max_iter=3).fit(corpus)
    model.save(tmp_path / "m.quorate")
    again = loaded(tmp_path / "m.quorate")
    assert again.profiles_ == corpus.profiles
    np.testing.assert_array_equal(again.annotators_["fay"].matrix, model.annotators_["fay"].matrix)
    np.testing.assert_allclose(again.predict_proba(corpus)[0], model.predict_proba(corpus)[0], atol=1e-12)
