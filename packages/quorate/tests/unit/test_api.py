"""The estimators, the result, and model files."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quorate
from by_name import bsc, from_file
from quorate import BSC, Corpus, Document, FitError, InputError, MajorityVote, ModelFileError, SettingsError
from quorate.crowd.encode import encode
from quorate.model import loop
from quorate.model.engines.protocol import Counts, Tables
from quorate.model.engines.threads import ThreadsEngine
from quorate.model.loop import Progress
from quorate.model.parts.annotators import Accuracy, AnnotatorPrior
from quorate.model.parts.truth import Chain, Markov


@pytest.fixture(scope="module")
def model(sample: Corpus) -> BSC:
    return bsc("bsc-seq", max_iter=5).fit(sample)


def test_fit_returns_self_and_fitted_names(model: BSC, sample: Corpus) -> None:
    assert model.fit(sample) is model
    assert model.trace_.passes == 5
    assert model.trace_.reason == "max passes"
    assert model.annotators_.names == sample.annotators
    assert model.fit_predict(sample) == model.result_.tags
    assert model.get_params()["max_iter"] == 5
    assert repr(model).startswith("BSC(annotator='seq', ")
    assert repr(model).endswith(", method='bsc-seq')")
    assert "spans=False" in repr(model)


def test_result_by_column_and_by_document(model: BSC, sample: Corpus) -> None:
    result = model.result_
    one = result["s004"]
    assert one.document is sample["s004"]
    assert one.tags == result.tags[3]
    assert one.spans == result.spans[3]
    assert one.confidence == pytest.approx(result.confidence[3])
    np.testing.assert_array_equal(one.probabilities, result.probabilities[3])
    emitted = [result.labels.index(tag) for tag in one.tags]
    np.testing.assert_array_equal(one.token_confidence, one.probabilities[np.arange(len(emitted)), emitted])


def test_predict_on_the_fitted_corpus_is_the_result(model: BSC, sample: Corpus) -> None:
    assert model.predict(sample) == model.result_.tags
    for a, b in zip(model.predict_proba(sample), model.result_.probabilities, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("annotator", ["acc", "spam", "cv", "cm", "seq"])
@pytest.mark.parametrize("truth", ["markov", "independent", "uniform"])
def test_saved_and_loaded_models_predict_alike(tmp_path: Path, sample: Corpus, annotator: str, truth: str) -> None:
    fitted = bsc(f"bsc-{annotator}", truth=truth, text=truth != "uniform", max_iter=2).fit(sample)
    fitted.save(tmp_path / "m.quorate")
    loaded = from_file(tmp_path / "m.quorate")
    assert loaded.trace_ == fitted.trace_
    assert loaded.meta_ == fitted.meta_
    np.testing.assert_array_equal(loaded.annotators_.table, fitted.annotators_.table)
    np.testing.assert_array_equal(loaded.annotators_["ana"].matrix, fitted.annotators_["ana"].matrix)
    new = Corpus(
        [Document("n", ("Ada", "sang"), {"ana": ("B-PER", "O"), "stranger": ("B-PER", "O")}), Document("m", ("x",))]
    )
    np.testing.assert_array_equal(loaded.predict_proba(new)[0], fitted.predict_proba(new)[0])


def test_the_same_fit_makes_the_same_file(tmp_path: Path, sample: Corpus) -> None:
    for name in ("a", "b"):
        model = bsc("bsc-seq", max_iter=2).fit(sample)
        model.fitted_ = replace(model.fitted_, trace=model.trace_._replace(seconds=0.0))
        model.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("annotator", ["acc", "spam", "cv", "cm", "seq"])
def test_a_stranger_behaves_as_the_crowd_on_average(sample: Corpus, annotator: str) -> None:
    """Everyone alike: then a stranger is like everyone, up to the prior."""
    people = {f"a{n}": quorate.simulate.Behaviour(miss=0.3) for n in range(4)}
    model = bsc(f"bsc-{annotator}", max_iter=10).fit(quorate.simulate.crowd(sample, people))
    stranger = model.fitted_.model.annotators.matrix(4)
    known = np.mean([model.annotators_[name].matrix for name in people], axis=0)
    np.testing.assert_allclose(stranger[0], known[0], rtol=0.0, atol=0.05)


def test_matrices_are_distributions(sample: Corpus) -> None:
    for annotator in ("acc", "spam", "cv", "cm", "seq"):
        matrix = bsc(f"bsc-{annotator}", max_iter=2).fit(sample).annotators_["ana"].matrix
        np.testing.assert_allclose(matrix.sum(axis=2), 1.0, rtol=1e-9)


def test_known_labels_are_kept_and_teach(sample: Corpus) -> None:
    result = quorate.aggregate(sample, known="inline")
    assert all(tuple(c.tags) == c.document.gold for c in result)
    some = {d.id: d.gold for d in sample.documents[:100] if d.gold}
    partly = quorate.aggregate(sample, known=some)
    assert all(tuple(partly[key].tags) == gold for key, gold in some.items())


def test_gold_is_not_read_unless_asked(sample: Corpus) -> None:
    from dataclasses import replace

    without = Corpus(replace(d, gold=None) for d in sample)
    strange = Corpus(replace(d, gold=("B-STRANGE",) * len(d.tokens)) for d in sample)
    assert quorate.aggregate(without).tags == quorate.aggregate(strange).tags


def test_conflicting_known_labels_name_document_and_token() -> None:
    corpus = Corpus([Document("d", ("a", "b"), {"x": ("S-P", "O"), "y": ("B-P", "E-P")})])
    tags = corpus.tagset()
    encoded = encode(corpus, tags)
    known = np.array([tags.index["B-P"], tags.index["O"]], np.int32)
    engine = ThreadsEngine(encoded, known=known, names=lambda d: corpus[d].where())
    tables = Tables(np.zeros((len(encoded.cells.label), 5)), np.zeros((2, 5)))
    with pytest.raises(FitError, match=r"document 'd'.*first conflict is at token 2"):
        engine.run(tables, Markov.of(tags, 1.0).chain())


def test_progress_is_told_of_every_pass(sample: Corpus) -> None:
    steps: list[Progress] = []
    bsc("bsc-seq", max_iter=3, n_init=2).fit(sample, progress=steps.append)
    assert [(step.start, step.passes) for step in steps] == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)]


def test_progress_is_told_of_every_fold_of_the_calibration(sample: Corpus) -> None:
    steps: list[Progress] = []
    BSC(max_iter=2).fit(sample, progress=steps.append)
    assert [(step.passes, step.max_passes) for step in steps[:2]] == [(1, 2), (2, 2)]
    folds = steps[2:]
    assert {step.note for step in folds} == {"calibrating on held-out annotators"}
    assert [step.passes for step in folds] == list(range(1, folds[0].max_passes + 1))


def test_converged_is_said_only_when_it_is(sample: Corpus) -> None:
    trace = bsc("bsc-acc", tol=1e-6, max_iter=200).fit(sample).trace_
    assert trace.reason == "converged"
    assert trace.bounds[-1] - trace.bounds[-2] <= 1e-6 * abs(trace.bounds[-1])
    assert trace.bounds[-2] - trace.bounds[-3] > 1e-6 * abs(trace.bounds[-2])


def test_classification_is_one_token_a_document() -> None:
    votes = {"1": "yyn", "2": "nnn", "3": "yyy", "4": "nny"}
    corpus = Corpus(Document(key, (key,), {f"a{n}": (vote,) for n, vote in enumerate(v)}) for key, v in votes.items())
    for method in ("mv", "bsc-cm", "bsc-seq"):
        assert [tags[0] for tags in quorate.aggregate(corpus, method).tags] == ["y", "n", "y", "n"]


def test_majority_vote_ties_and_shares() -> None:
    corpus = Corpus([Document("1", ("a", "b"), {"x": ("B-P", "I-P"), "y": ("O", "O")}), Document("2", ("c",))])
    votes = MajorityVote().fit(corpus).result_
    assert votes[0].tags == ["B-P", "I-P"]
    np.testing.assert_allclose(votes[0].probabilities[0], [0.5, 0.5, 0.0])
    np.testing.assert_allclose(votes[1].probabilities[0], [1 / 3, 1 / 3, 1 / 3])
    assert MajorityVote("outside-first").fit(corpus).result_[0].tags == ["O", "O"]


def test_majority_vote_by_token_and_by_sequence() -> None:
    corpus = Corpus(
        [Document("1", ("a", "b"), {"x": ("O", "O"), "y": ("O", "I-P"), "z": ("O", "I-P"), "w": ("B-P", "I-P")})]
    )
    assert MajorityVote(invalid="keep", decode="token").fit(corpus).result_.tags == [["O", "I-P"]]
    by_sequence = MajorityVote(invalid="keep").fit(corpus).result_
    assert by_sequence.tags == [["B-P", "I-P"]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: quorate.aggregate(c, "nope"), "unknown method 'nope'"),
        (lambda c: quorate.aggregate(c, "mv", alpha0=1), "method 'mv' has no setting 'alpha0'"),
        (lambda c: BSC("wrong").fit(c), "annotator 'wrong' is not known"),  # type: ignore[arg-type]
        (lambda c: BSC(alpha0=0).fit(c), "alpha0 must be a positive number"),
        (lambda c: BSC(kappa0=float("nan")).fit(c), "kappa0 must be a positive number"),
        (lambda c: BSC(temper=1.5).fit(c), "temper must be above 0 and at most 1"),
        (lambda c: BSC(max_iter=0).fit(c), "max_iter must be 1 or more"),
        (lambda c: BSC(n_jobs=0).fit(c), "n_jobs must be 1 or more"),
        (lambda c: BSC(random_state=-1).fit(c), "random_state must be 0 or more"),
        (lambda c: BSC().predict(c), "has not been fitted yet"),
        (lambda c: BSC().fit(c, known="gold"), "known must be None, 'inline' or"),  # type: ignore[arg-type]
        (lambda c: BSC().set_params(alpha=1), "unknown setting 'alpha'"),
    ],
)
def test_bad_settings_say_what(sample: Corpus, call: object, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        call(sample)  # type: ignore[operator]


@pytest.mark.parametrize(
    "change",
    [
        {"annotator": "cm"}, {"truth": "independent"}, {"text": False}, {"shapes": True}, {"alpha0": 2.0},
        {"epsilon0": 5.0}, {"gamma0": 3.0}, {"kappa0": 1.0}, {"temper": 0.9}, {"start": "prior"},
        {"random_state": 1}, {"start": "prior", "random_state": 1}, {"annotator": "cv", "inference": "em"},
        {"annotator": "spam", "guess_prior": 3.0},
    ],
)  # fmt: skip
def test_every_setting_reaches_the_model(sample: Corpus, change: dict[str, Any]) -> None:
    plain: dict[str, Any] = {
        name: change[name] for name in ("annotator", "start") if name in change and len(change) > 1
    }
    changed, usual = (bsc("bsc-seq", max_iter=2, **settings).fit(sample) for settings in (change, plain))
    assert changed.trace_.bounds != usual.trace_.bounds


def test_a_bound_that_falls_raises(sample: Corpus) -> None:
    tags = sample.tagset()
    encoded = encode(sample, tags)

    class Worsening(ThreadsEngine):
        passes = 0

        def run(self, tables: Tables, chain: Chain) -> Counts:
            self.passes += 1
            counts = super().run(tables, chain)
            return counts._replace(log_z=counts.log_z - 1e6 * self.passes)

    model = loop.Model(Markov.of(tags, 1.0), Accuracy.of(AnnotatorPrior(tags, 1.0, 1.0), len(encoded.annotators)), None)
    with pytest.raises(FitError, match=r"the bound fell from .* in pass 2"):
        loop.fit(Worsening(encoded, text=False), model, encoded)


def test_what_is_given_out_comes_from_posterior_means(sample: Corpus) -> None:
    """One token alone: p(truth | its labels) by Bayes' rule from the mean matrices and the mean label shares."""
    fitted = bsc("bsc-cm", truth="independent", text=False, temper=1.0, max_iter=3).fit(sample)
    labels = fitted.tagset_.labels
    shares = fitted.fitted_.model.truth.arrays()["labels"]
    document = sample[5]
    weight = shares / shares.sum()
    for name, tags in document.annotations.items():
        weight = weight * fitted.annotators_[name].matrix[0][:, labels.index(str(tags[0]))]
    np.testing.assert_allclose(fitted.result_[5].probabilities[0], weight / weight.sum(), rtol=1e-9)


def test_an_unseen_word_gives_no_evidence(sample: Corpus) -> None:
    fitted = bsc("bsc-seq", max_iter=3).fit(sample)
    said = {"ana": ("B-PER",), "ben": ("O",)}
    unseen = fitted.predict_proba(Corpus([Document("1", ("neverseen",), said)]))[0]
    fitted.fitted_ = replace(fitted.fitted_, model=replace(fitted.fitted_.model, text=None))
    without = fitted.predict_proba(Corpus([Document("1", ("neverseen",), said)]))[0]
    np.testing.assert_allclose(unseen, without, rtol=1e-12)


def test_damaged_model_files_raise_our_error_alone(tmp_path: Path, model: BSC) -> None:
    model.save(tmp_path / "good")
    content = (tmp_path / "good").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(60):
        broken = bytearray(content)
        for place in rng.integers(len(broken), size=3):
            broken[place] ^= 0xFF
        (tmp_path / "bad").write_bytes(bytes(broken))
        with suppress(ModelFileError):  # a change that does no harm is no error; any other must be this one
            quorate.load(tmp_path / "bad")


def test_tags_that_are_not_strings() -> None:
    with pytest.raises(InputError, match="1 is not a tag"):
        BSC().fit(Corpus([Document("1", ("a",), {"x": (1,)})]))  # type: ignore[dict-item]


def test_empty_corpora() -> None:
    with pytest.raises(InputError, match="no document"):
        BSC().fit(Corpus([]))
    with pytest.raises(InputError, match="nobody gave any tag"):
        BSC().fit(Corpus([Document("1", ("a",), {"x": (None,)})]))


def test_model_files_that_are_not(tmp_path: Path, model: BSC) -> None:
    with pytest.raises(ModelFileError, match="no such file"):
        quorate.load(tmp_path / "nothing")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ModelFileError, match=r"not a model file \(make one with --save\)"):
        quorate.load(tmp_path / "text")
    model.save(tmp_path / "good")
    content = (tmp_path / "good").read_bytes()
    (tmp_path / "cut").write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelFileError, match="not a model file, or a damaged one"):
        quorate.load(tmp_path / "cut")
    with zipfile.ZipFile(tmp_path / "good") as old, zipfile.ZipFile(tmp_path / "future", "w") as new:
        for name in old.namelist():
            body = old.read(name)
            if name == "meta.json":
                body = json.dumps(json.loads(body) | {"version": 99}).encode()
            new.writestr(name, body)
    with pytest.raises(ModelFileError, match="a model file of version 99, where 1 is read"):
        quorate.load(tmp_path / "future")


@pytest.mark.parametrize(
    "make",
    [
        *(
            (lambda c, n=name: BSC(**{n: "1"}).fit(c))  # type: ignore[arg-type]
            for name in (
                *("alpha0", "epsilon0", "gamma0", "kappa0", "guess_prior", "temper", "tol"),
                *("max_iter", "random_state", "n_init", "n_jobs"),
            )
        ),
        lambda c: BSC(alpha0=None).fit(c),  # type: ignore[arg-type]
        lambda c: BSC(alpha0=True).fit(c),
        lambda c: BSC(max_iter=2.5).fit(c),  # type: ignore[arg-type]
        lambda c: quorate.aggregate(c, "auto", gamma0=[1]),  # type: ignore[arg-type]
        lambda c: quorate.aggregate(c, "mv", random_state="1"),  # type: ignore[arg-type]
        lambda c: quorate.aggregate(c, "mv", n_jobs="1"),  # type: ignore[arg-type]
        *((lambda c, n=name: quorate.aggregate(c, "crf-ma", **{n: "1"})) for name in ("max_iter", "l2", "iterations")),  # type: ignore[arg-type]
        lambda c: bsc("bsc-seq", max_iter=1).fit(c).update(c, passes="1"),  # type: ignore[arg-type]
        lambda c: quorate.aggregate(c, "mv").accept("0.9"),  # type: ignore[arg-type]
        lambda c: quorate.next_labels(c, n="5"),  # type: ignore[arg-type]
        lambda c: quorate.next_labels(c, diversity="0.5"),  # type: ignore[arg-type]
        lambda c: quorate.next_labels(c, bsc("bsc-seq", max_iter=1).fit(c), cost={"ana": "1"}),  # type: ignore[dict-item]
    ],
)
def test_a_number_of_a_wrong_type_is_one_clear_error(sample: Corpus, make: Callable[[Corpus], object]) -> None:
    with pytest.raises(SettingsError, match=r"must be a (whole )?number, not"):
        make(sample)


def test_numbers_of_numpy_are_numbers(sample: Corpus, tmp_path: Path) -> None:
    few = Corpus(sample.documents[:20])
    settings = {"alpha0": np.float32(1), "epsilon0": np.int64(3), "max_iter": np.int64(2), "n_jobs": np.int32(1)}
    model = bsc("bsc-seq", **settings).fit(few)
    assert model.trace_.passes == 2
    model.save(tmp_path / "m")
    assert quorate.load(tmp_path / "m").get_params()["epsilon0"] == 3


def test_a_table_of_annotators_has_no_private_columns(sample: Corpus) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    result = quorate.aggregate(sample, "bsc-cm", max_iter=2)
    table = pandas.DataFrame(result.annotators)
    told = ["name", "n_labels", "accuracy", "informativeness"]
    of_spans = ["found", "exact", "shifted", "split", "wrong_type", "missed", "invented", "precision", "coverage"]
    assert list(table.columns) == [*told, *of_spans]
    assert table["informativeness"].tolist() == result.annotators.informativeness.tolist()
    assert result.annotators["ana"].matrix.shape == (1, 9, 9)
