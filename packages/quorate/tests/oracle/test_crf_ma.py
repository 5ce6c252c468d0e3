"""CRF-MA against every path enumerated, and on crowds of which the truth is known."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import quorate
from quorate import Corpus, Document, SettingsError, score
from quorate.corpus.tags import Invalid
from quorate.errors import ModelFileError
from quorate.estimators.crf_ma import CRFMA, _Crowd
from quorate.model.prepared import crowd_of
from quorate.storage import model_files
from quorate.taggers.exact_crf import Crf, train
from quorate.taggers.features import BUCKETS, TokenFeatures, frequent, numbered

Floats = NDArray[np.float64]
WORDS = ("Ada", "Ng", "sang", "in", "Oslo", ".")


def small_crowd(*, gaps: bool) -> Corpus:
    """Short sentences, three annotators; with gaps, some tokens of theirs were not seen."""
    rng = np.random.default_rng(3)
    documents = []
    for n in range(12):
        tokens = tuple(rng.choice(WORDS, size=int(rng.integers(1, 5))).tolist())
        truth = ["B-P" if token[0].isupper() else "O" for token in tokens]
        annotations = {}
        for name, error in (("good", 0.1), ("fair", 0.3), ("poor", 0.7)):
            if rng.random() < 0.15:
                continue
            tags: list[str | None] = [str(rng.choice(["O", "B-P"])) if rng.random() < error else tag for tag in truth]
            if gaps:
                tags = [None if rng.random() < 0.3 else tag for tag in tags]
            annotations[name] = tuple(tags)
        documents.append(Document(str(n), tokens, annotations))
    return Corpus(documents)


def log_score(crf: Crf, scores: Floats, path: tuple[int, ...]) -> float:
    steps = sum(crf.transitions[a, b] for a, b in itertools.pairwise(path))
    return float(crf.start[path[0]] + steps + sum(scores[t, label] for t, label in enumerate(path)))


def probability(crf: Crf, scores: Floats, seen: list[int | None]) -> float:
    """p(what was seen), by every path there is."""
    weights = {
        path: np.exp(log_score(crf, scores, path))
        for path in itertools.product(range(scores.shape[1]), repeat=len(scores))
    }
    agreeing = [w for path, w in weights.items() if all(s is None or s == j for s, j in zip(seen, path, strict=True))]
    return float(sum(agreeing) / sum(weights.values()))


@pytest.mark.parametrize("gaps", [False, True])
def test_e_step_equals_enumeration(gaps: bool) -> None:
    corpus = small_crowd(gaps=gaps)
    prepared = crowd_of(corpus, None, Invalid.KEEP)
    crowd, J = _Crowd(corpus, prepared, threads=2), len(prepared.tagset.labels)
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 2, (prepared.n_tokens, J))
    crf = Crf(np.zeros((0, J)), rng.normal(size=J), rng.normal(size=(J, J)))
    reliability = np.array([0.2, 0.7, 0.4])
    weights, filled = crowd.expect(scores, crf.chain(), reliability)

    names = prepared.annotators
    found = {
        (int(crowd.answers.doc[a]), names[k]): gamma
        for k, a, gamma in zip(crowd.answers.who, crowd.answers.given, weights.gamma, strict=True)
    }
    log_likelihood = 0.0
    for d, document in enumerate(corpus):
        here = scores[prepared.doc_start[d] : prepared.doc_start[d + 1]]
        said = {
            name: [None if tag is None else prepared.tagset.index[str(tag)] for tag in tags]
            for name, tags in document.annotations.items()
            if any(tag is not None for tag in tags)
        }
        chance = {name: float(J) ** -sum(s is not None for s in seen) for name, seen in said.items()}
        joint = {}
        for name, seen in said.items():
            others = np.prod([chance[other] for other in said if other != name])
            joint[name] = reliability[names.index(name)] * probability(crf, here, seen) * others
        for name, weight in joint.items():
            assert found.pop((d, name)) == pytest.approx(weight / sum(joint.values()), rel=1e-9)
        if joint:
            log_likelihood += np.log(sum(joint.values()) / sum(reliability[names.index(name)] for name in said))
    assert not found
    assert weights.log_likelihood == pytest.approx(log_likelihood, rel=1e-9)
    kept = crowd.answers.code >= 0
    np.testing.assert_array_equal(filled[kept], crowd.answers.code[kept])
    assert (filled >= 0).all()
    by_doc = np.bincount(crowd.answers.doc, weights.answers, len(corpus))
    np.testing.assert_allclose(by_doc[np.unique(crowd.answers.doc)], 1.0, rtol=1e-12)


def test_m_step_is_the_mean_of_gamma_drawn_towards_the_crowds() -> None:
    corpus = small_crowd(gaps=False)
    crowd = _Crowd(corpus, crowd_of(corpus, None, Invalid.KEEP), threads=1)
    gamma = np.random.default_rng(1).random(len(crowd.answers.who))
    for k, found in enumerate(crowd.reliability(gamma)):
        own = gamma[crowd.answers.who == k]
        assert found == pytest.approx((own.sum() + gamma.mean()) / (len(own) + 1), rel=1e-12)


def laid_out(documents: list[tuple[str, ...]]) -> tuple[NDArray[np.int32], int, NDArray[np.int64]]:
    """The features of all documents, how many there are, and where documents start."""
    buckets, doc_start = TokenFeatures().end_to_end(documents)
    kept = frequent(buckets)
    return numbered(buckets, kept), len(kept), doc_start


def test_what_sequences_teach_is_counted_by_their_weights() -> None:
    corpus = small_crowd(gaps=False)
    prepared = crowd_of(corpus, None, Invalid.KEEP)
    crowd, J = _Crowd(corpus, prepared, threads=1), len(prepared.tagset.labels)
    answers, first = crowd.answers, prepared.doc_start
    weights = np.random.default_rng(2).random(len(answers.doc))
    labels, pairs = np.zeros((prepared.n_tokens, J)), np.zeros((prepared.n_docs, J, J))
    for a, d in enumerate(answers.doc.tolist()):
        path = answers.code[answers.start[a] : answers.start[a + 1]].tolist()
        for t, label in enumerate(path):
            labels[first[d] + t, label] += weights[a]
        for before, after in itertools.pairwise(path):
            pairs[d, before, after] += weights[a]
    found = crowd.expected_labels(weights, answers.code)
    np.testing.assert_allclose(found[0], labels, rtol=1e-12)
    np.testing.assert_allclose(found[1], pairs, rtol=1e-12)


def test_training_finds_the_best_weights_for_weighted_sequences() -> None:
    """No weight can be moved, alone or with all others, so that every path enumerated says more for what was taught."""
    documents = [("Ada", "sang"), ("Ng", "sang", "in", "Oslo"), ("in", "Oslo"), ("Ada",)]
    taught = [(0, (1, 0), 0.7), (0, (0, 0), 0.3), (1, (1, 0, 0, 1), 1.0), (2, (0, 1), 0.6), (2, (1, 1), 0.4)]
    features, n_features, doc_start = laid_out(documents)
    target, pairs = np.zeros((len(features), 2)), np.zeros((len(documents), 2, 2))
    for d, path, weight in taught:
        for t, label in enumerate(path):
            target[doc_start[d] + t, label] += weight
        for before, after in itertools.pairwise(path):
            pairs[d, before, after] += weight
    crf = train(features, n_features, doc_start, target, pairs, l2=0.5, iterations=500)

    def loss(crf: Crf) -> float:
        scores = crf.scores(features)
        total = 0.5 * sum(float((part**2).sum()) for part in crf)
        for d, path, weight in taught:
            total -= weight * np.log(probability(crf, scores[doc_start[d] : doc_start[d + 1]], list(path)))
        return float(total)

    best, rng, step = loss(crf), np.random.default_rng(0), 1e-4
    for _ in range(20):
        moves = [rng.normal(size=part.shape) for part in crf]
        there, back = (
            loss(Crf(*(part + sign * step * move for part, move in zip(crf, moves, strict=True)))) for sign in (1, -1)
        )
        assert best < min(there, back)
        assert (there - back) / (2 * step) == pytest.approx(0.0, abs=1e-3 * best)


def test_a_label_that_was_never_taught_is_nearly_impossible() -> None:
    features, n_features, doc_start = laid_out([("Ada",), ("sang",)])
    target, pairs = np.eye(3)[[0, 1]], np.zeros((2, 3, 3))
    crf = train(features, n_features, doc_start, target, pairs)
    for d in range(2):
        assert probability(crf, crf.scores(features)[d : d + 1], [2]) < 1e-6


@pytest.fixture(scope="module")
def fitted(sample: Corpus) -> CRFMA:
    return CRFMA(max_iter=3, iterations=20).fit(sample)


def test_reliabilities_order_a_simulated_crowd(sample: Corpus) -> None:
    kinds = quorate.simulate.KINDS
    people = {f"{kind}{n}": kinds[kind] for kind in ("careful", "spammer") for n in range(2)}
    crowd = quorate.simulate.crowd(Corpus(sample.documents[:160]), people, seed=5)
    model = CRFMA(max_iter=3, iterations=15).fit(crowd)
    pi = model.reliability_
    assert min(pi["careful0"], pi["careful1"]) > 2 * max(pi["spammer0"], pi["spammer1"])
    gold = [document.gold for document in crowd]
    careful = score.strict(model.result_.tags, gold).f1
    assert careful > score.strict(quorate.aggregate(crowd, "mv").tags, gold).f1


def test_result_is_complete_and_deterministic(fitted: CRFMA, sample: Corpus) -> None:
    result = fitted.result_
    assert all(result.tagset.is_valid(tags) for tags in result.tags)
    for probabilities in result.probabilities:
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-9)
    assert result.annotators["ana"].accuracy > result.annotators["fay"].accuracy
    assert result.annotators["ana"].informativeness > result.annotators["fay"].informativeness
    assert result.settings_["method"] == "crf-ma"
    again = CRFMA(max_iter=3, iterations=20, n_jobs=1).fit(sample)
    assert again.trace_.bounds == fitted.trace_.bounds
    assert again.reliability_ == fitted.reliability_
    assert again.result_.tags == result.tags


def test_what_was_learned_is_applied_kept_and_read_back(fitted: CRFMA, sample: Corpus, tmp_path: Path) -> None:
    bare = Corpus([Document(d.id, d.tokens) for d in sample.documents[:20]])
    assert fitted.predict(bare) == fitted.result_.tags[:20]
    fitted.save(tmp_path / "crowd.quorate")
    loaded = quorate.load(tmp_path / "crowd.quorate")
    assert isinstance(loaded, CRFMA)
    assert loaded.predict(bare) == fitted.predict(bare)
    assert loaded.reliability_ == fitted.reliability_
    np.testing.assert_array_equal(loaded.annotators_["ana"].matrix, fitted.annotators_["ana"].matrix)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("summary", (2, 0), np.nan),
        ("annotator_cells", 0, 1e6),
        ("annotators", (0, 0), -1.0),
        ("reliability", 0, np.inf),
        ("buckets", 0, BUCKETS),
    ],
)
def test_a_damaged_file_is_refused(fitted: CRFMA, name: str, place: Any, value: float, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m")
    stored = model_files.load(tmp_path / "m")
    stored.arrays[name][place] = value
    model_files.save(stored, tmp_path / "m")
    with pytest.raises(ModelFileError, match=f"a damaged model file: array '{name}' holds"):
        quorate.load(tmp_path / "m")


def test_a_file_of_an_earlier_version_is_to_be_made_again(fitted: CRFMA, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m")
    stored = model_files.load(tmp_path / "m")
    model_files.save(stored._replace(meta=stored.meta | {"features": ["form=Ada"]}), tmp_path / "m")
    with pytest.raises(ModelFileError, match=r"the features of an earlier version \(fit and save it again\)"):
        quorate.load(tmp_path / "m")


def test_known_labels_stay_and_teach(sample: Corpus) -> None:
    corpus = Corpus(sample.documents[:60])
    known = {d.id: d.gold or () for d in corpus.documents[:30]}
    result = quorate.aggregate(corpus, "crf-ma", known=known, max_iter=2, iterations=10)
    assert [tuple(tags) for tags in result.tags[:30]] == list(known.values())


def test_odd_documents_are_tagged() -> None:
    """Empty ones, those that nobody annotated, probabilities in place of tags, and strange characters."""
    corpus = Corpus(
        [
            Document("empty", ()),
            Document("bare", ("Ada", "sang")),
            Document("soft", ("Ada", "sang"), {"m": ({"B-P": 0.8, "O": 0.2}, "O")}),
            Document("odd", ("\u0000", "a:b\\c", "-->", "\n\u2028", ""), {"m": ("O", "B-P", "O", "O", "O")}),
            Document("gap", ("Ada", "sang"), {"m": (None, None), "n": ("B-P", None)}),
        ]
    )
    result = quorate.aggregate(corpus, "crf-ma", max_iter=2, iterations=5)
    assert [len(tags) for tags in result.tags] == [0, 2, 2, 5, 2]


def test_plain_classes_of_single_items() -> None:
    corpus = Corpus(
        Document(
            str(n), (f"{'red' if n % 2 else 'blue'} {n}",), {"x": ("ab"[n % 2],), "y": ("ab"[n % 2],), "z": ("a",)}
        )
        for n in range(20)
    )
    model = CRFMA(max_iter=2)
    assert model.fit_predict(corpus) == [["ab"[n % 2]] for n in range(20)]
    assert model.reliability_["x"] > model.reliability_["z"]


@pytest.mark.parametrize(
    ("setting", "value"),
    [("max_iter", 0), ("iterations", 0), ("l2", -1.0), ("tol", float("nan"))],
)
def test_impossible_settings_are_refused(sample: Corpus, setting: str, value: float) -> None:
    changed: dict[str, Any] = {setting: value}
    with pytest.raises(SettingsError, match=setting):
        quorate.aggregate(sample, "crf-ma", **changed)
