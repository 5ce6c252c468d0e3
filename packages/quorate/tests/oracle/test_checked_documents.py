"""What checked documents teach about spans: by an independent optimiser, by hand, and on crowds that share mistakes."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import quorate
from problems import random_corpus, tagset
from quorate.corpus.records import Corpus
from quorate.corpus.simulate import Behaviour, crowd
from quorate.corpus.tags import Invalid, Scheme, find_spans
from quorate.crowd.algebra import spans_of_path
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode
from quorate.model.candidates import Candidates
from quorate.model.checked import _folds, _interval, _regression, checked_documents
from quorate.model.correction import FEATURES, Correction, features
from quorate.model.engines.factory import Engines
from quorate.model.fit import Fitted, fit
from quorate.model.prepared import crowd_of
from quorate.model.settings import Settings
from simulated_crowds import sentences

SLIPS = Behaviour(miss=0.15, confuse=0.05, start_late=0.05, invent=0.002)


def sharing_a_mistake(how_many: int = 200) -> Corpus:
    """Everybody marks names of one token, and by the guidelines these are none."""
    marked = crowd(sentences(how_many), dict.fromkeys(("ann", "bob", "cem", "dan"), SLIPS), seed=3)
    documents = []
    for document in marked:
        gold = list(document.gold or ())
        for span in find_spans(gold):
            if span.end - span.start == 1:
                gold[span.start] = "O"
        documents.append(replace(document, gold=tuple(gold)))
    return Corpus(documents)


def known_of(corpus: Corpus, how_many: int) -> dict[str, tuple[str | None, ...]]:
    return {document.id: document.gold or () for document in corpus.documents[:how_many]}


def candidates_of(fitted: Fitted, seen: Crowd) -> Candidates:
    engines = Engines()
    with closing(engines.over(seen, text=True)) as engine:
        return fitted.evidence(engine, seen, engines).candidates


def f1_of_the_rest(model: quorate.BSC, corpus: Corpus, how_many: int) -> float:
    rest = model.result_.tags[how_many:]
    return quorate.score.strict(rest, [document.gold for document in corpus.documents[how_many:]]).f1


def test_weights_are_those_of_the_highest_posterior() -> None:
    rng = np.random.default_rng(0)
    inputs, stated = rng.normal(size=(300, 5)), rng.uniform(0.01, 0.99, 300)
    log_odds = np.log(stated / (1 - stated))
    right = rng.random(300) < 1 / (1 + np.exp(-log_odds - inputs @ [0.5, -1.0, 1.0, 0.0, 2.0]))

    def loss(weights: np.ndarray) -> float:
        z = log_odds + inputs @ weights
        return float(np.logaddexp(0, np.where(right, -z, z)).sum() + (weights**2).sum() / 2)

    expected = minimize(loss, np.zeros(5), method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-9}).x
    assert _regression(inputs, stated, right) == pytest.approx(expected, abs=1e-4)


def test_features_by_hand() -> None:
    lines = {"ann": ("B-X", "I-X", "O", "B-X"), "bob": ("B-X", "I-X", "O", "O"), "cem": ("O", "O", "O", "O")}
    corpus = Corpus([quorate.Document("1", ("a", "b", "c", "d"), lines)])
    fitted = fit(crowd_of(corpus, None, Invalid.REPAIR), Settings(calibrate=False))
    seen = fitted.crowd(corpus)
    candidates = candidates_of(fitted, seen)
    rows = dict(zip(zip(candidates.start.tolist(), candidates.end.tolist(), strict=True), range(9), strict=False))
    found = features(candidates, np.full(len(candidates.start), 0.9))
    assert found[rows[0, 2]] == pytest.approx([1, np.log(9) / 2, 2 * 2 / 3 - 1, 0, 2])
    assert found[rows[3, 4]] == pytest.approx([1, np.log(9) / 2, 2 * 1 / 3 - 1, 1, 0])


def test_the_interval_is_the_jackknife_by_hand() -> None:
    counts = np.array([[3, 0, 2, 5], [4, 1, 2, 6], [3, 2, 4, 5]], float)

    def f1(columns: list[int]) -> float:
        right, given, true = counts[:, columns].sum(axis=1)
        return float(2 * right / (given + true))

    without = np.array([f1([1, 2, 3]), f1([0, 2, 3]), f1([0, 1, 3]), f1([0, 1, 2])])
    reach = 2.3533634 * np.sqrt(3 / 4 * ((without - without.mean()) ** 2).sum())  # t of three degrees, 95 %
    value = f1([0, 1, 2, 3])
    assert _interval(counts) == pytest.approx((value, value - reach, min(value + reach, 1.0)), abs=1e-6)


@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.BIOES, Scheme.IO])
def test_spans_of_a_path_are_those_of_its_tags(scheme: Scheme) -> None:
    rng = np.random.default_rng(1)
    tags = tagset(scheme, 2)
    corpus = random_corpus(rng, tags, n_documents=12)
    encoded = encode(corpus, tags, invalid=Invalid.REPAIR)
    path = rng.integers(len(tags.labels), size=encoded.n_tokens)
    found = spans_of_path(path, encoded)
    expected = []
    for first, end in zip(encoded.doc_start[:-1].tolist(), encoded.doc_start[1:].tolist(), strict=True):
        spans = find_spans([tags.labels[label] for label in path[first:end]])
        expected += [(first + span.start, first + span.end, span.label) for span in spans]
    assert [*zip(found.start, found.end, (tags.types[kind] for kind in found.kind), strict=True)] == expected


def test_they_take_back_a_mistake_that_everybody_makes() -> None:
    corpus = sharing_a_mistake()
    alone, taught = quorate.BSC().fit(corpus), quorate.BSC().fit(corpus, known=known_of(corpus, 30))
    correction = taught.fitted_.calibration.correction
    assert correction is not None
    assert correction.chooses
    assert correction.weights[FEATURES.index("long")] > 1
    before, after = f1_of_the_rest(alone, corpus, 30), f1_of_the_rest(taught, corpus, 30)
    assert after > before + 0.1
    assert correction.f1[1] < after < correction.f1[2]
    beliefs = {one.kind: one for one in correction.beliefs}
    single = beliefs["spans of one token"]
    assert single.corrected < 0.4 < single.stated


def test_confidence_becomes_what_the_checked_documents_show() -> None:
    corpus = sharing_a_mistake()

    def error(model: quorate.BSC) -> float:
        told, right = [], []
        for document, spans in list(zip(corpus, model.result_.spans, strict=True))[30:]:
            truth = {span.bare for span in find_spans(document.gold or ())}
            told += [span.sure for span in spans]
            right += [span.bare in truth for span in spans]
        return quorate.score.reliability(told, right).error

    taught = quorate.BSC().fit(corpus, known=known_of(corpus, 30))
    assert error(taught) < 0.1 < error(quorate.BSC().fit(corpus))


def test_few_documents_teach_nothing_of_it() -> None:
    corpus = sharing_a_mistake(60)
    assert quorate.BSC().fit(corpus, known=known_of(corpus, 9)).fitted_.calibration.correction is None
    assert quorate.BSC().fit(corpus).fitted_.calibration.correction is None


def test_neither_order_nor_part_of_a_document_matters() -> None:
    corpus = sharing_a_mistake(80)
    known = known_of(corpus, 20)
    turned = Corpus(list(corpus)[::-1])
    one, other = (quorate.BSC().fit(each, known=known).fitted_.calibration.correction for each in (corpus, turned))
    assert one is not None
    assert other is not None
    assert other.weights == pytest.approx(one.weights, abs=1e-6)
    half = {name: (*tags[:1], *[None] * (len(tags) - 1)) for name, tags in known_of(corpus, 40).items()}
    assert len(checked_documents(crowd_of(corpus, None, Invalid.REPAIR, {**half, **known}))) == 20


def test_folds_deal_out_every_document_once() -> None:
    corpus = sharing_a_mistake(40)
    fitted = fit(crowd_of(corpus, None, Invalid.REPAIR))
    seen = fitted.crowd(corpus)
    candidates = candidates_of(fitted, seen)
    documents = np.arange(3, 33)
    dealt = _folds(candidates, candidates.likely, documents)
    assert sorted(np.concatenate(dealt).tolist()) == documents.tolist()
    assert [len(one) for one in dealt] == [3] * 10


def test_a_model_file_keeps_it(tmp_path: Path) -> None:
    corpus = sharing_a_mistake(80)
    model = quorate.BSC().fit(corpus, known=known_of(corpus, 20))
    model.save(tmp_path / "model.qm")
    again = quorate.load(tmp_path / "model.qm")
    assert isinstance(again, quorate.BSC)
    assert again.calibration_ == model.calibration_
    more = sharing_a_mistake(100)
    assert again.combine(more).spans == model.combine(more).spans
    correction = model.calibration_.correction
    assert correction is not None
    with pytest.raises(ValueError, match="no number"):
        Correction.of({**correction.plain(), "missed": float("nan")})
