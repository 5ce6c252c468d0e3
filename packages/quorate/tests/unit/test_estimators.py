"""What every estimator promises, as scikit-learn's do."""

from __future__ import annotations

import inspect
import json
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import quorate
import simulated_crowds as crowds
from by_name import from_file
from quorate import BSC, METHODS, Corpus, Document, NotFittedError, SettingsError
from quorate.crowd.crowd import AnnotatorPriors, Cells
from quorate.estimators.capabilities import Saves
from quorate.estimators.methods import estimator
from quorate.model import build
from quorate.model.parts.annotators import AnnotatorPrior
from quorate.model.settings import AnnotatorModel


@pytest.fixture(scope="module")
def few(sample: Corpus) -> Corpus:
    return Corpus(sample.documents[:30])


@pytest.mark.parametrize("method", METHODS)
def test_parameters_go_in_and_come_out_as_they_are(method: str) -> None:
    model = estimator(method)
    params = model.get_params()
    assert all(getattr(model, name) is value for name, value in params.items())
    assert vars(model) == params  # nothing else is stored before a fit
    other = type(model)()
    assert other.set_params(**params) is other
    assert other.get_params() == params
    with pytest.raises(SettingsError, match="unknown setting 'nope'"):
        model.set_params(nope=1)


@pytest.mark.parametrize("method", METHODS)
def test_a_clone_keeps_everything_its_method_too(method: str) -> None:
    model = estimator(method)
    copy = clone(model)
    assert copy is not model
    assert type(copy) is type(model)
    assert copy.get_params() == model.get_params()
    assert copy.method == model.method == method
    assert repr(copy) == repr(model)
    assert eval(repr(model), {type(model).__name__: type(model)}).get_params() == model.get_params()


@pytest.mark.parametrize("method", METHODS)
def test_fit_returns_self_and_predicts_what_fit_predict_does(method: str, few: Corpus) -> None:
    # A CRF takes long to converge, and what is promised does not depend on it.
    model = estimator(method, iterations=5) if method == "crf-ma" else estimator(method)
    params = model.get_params()
    assert model.fit(few) is model
    assert model.get_params() == params
    assert model.predict(few) == clone(model).fit_predict(few) == model.result_.tags
    assert model.meta_["method"] == model.settings_["method"] == method


@pytest.mark.parametrize("method", METHODS)
def test_model_and_result_tell_their_settings_in_the_same_words(method: str, few: Corpus, tmp_path: Path) -> None:
    model = estimator(method)
    assert not hasattr(model, "settings_")
    told = model.fit(few).settings_
    assert told == model.result_.settings_ == model.combine(few).settings_
    assert {name: value for name, value in told.items() if name != "method"} == model.meta_["settings"]
    assert json.loads(json.dumps(told)) == told
    if isinstance(model, Saves):
        model.save(tmp_path / "model.quorate")
        back = from_file(tmp_path / "model.quorate")
        assert back.settings_ == back.combine(few).settings_ == told


def test_bsc_is_what_aggregate_uses(sample: Corpus) -> None:
    one, other = BSC(method="auto"), estimator()
    assert one.get_params() == other.get_params()
    ours, theirs = BSC().fit(sample).result_, quorate.aggregate(sample)
    assert ours.tags == theirs.tags
    assert ours.confidence == pytest.approx(theirs.confidence, abs=0)
    assert ours.settings_ == theirs.settings_


@pytest.mark.parametrize("method", METHODS)
def test_an_estimator_that_was_not_fitted_says_so_as_scikit_learns_do(method: str, few: Corpus) -> None:
    model = estimator(method)
    for ask in (model.predict, model.predict_proba, model.combine):
        with pytest.raises(NotFittedError, match="has not been fitted yet") as found:
            ask(few)
        assert isinstance(found.value, ValueError)
        assert isinstance(found.value, AttributeError)
    assert not hasattr(model, "result_")


def test_what_is_fitted_by_vb_alone_says_so(few: Corpus) -> None:
    with pytest.raises(SettingsError, match="'pool' is fitted by 'vb' only"):
        BSC(inference="em").fit(few)


def test_a_model_with_duplicates_is_read_back_after_others_came(tmp_path: Path) -> None:
    corpus = crowds.copies(60)
    later = Document("later", ("w1", "w2"), {"newcomer": ("O", "O"), corpus.annotators[0]: ("O", "O")})
    model = BSC().fit(corpus)
    assert model.sources_.duplicates == (tuple(f"model{n}" for n in range(5)),)
    model.update(Corpus([later])).save(tmp_path / "model.quorate")
    back = from_file(tmp_path / "model.quorate")
    assert "newcomer" in back.annotators_.names
    assert isinstance(back, BSC)
    assert back.sources_ == model.sources_
    assert back.combine(corpus).tags == model.combine(corpus).tags


def test_whole_numbers_are_numbers(few: Corpus) -> None:
    """As prior counts they make arrays of whole numbers, to which no share can be added."""
    whole = BSC("cv", alpha0=1, epsilon0=30).fit(few)
    parts = BSC("cv", alpha0=1.0, epsilon0=30.0).fit(few)
    assert whole.result_.tags == parts.result_.tags
    np.testing.assert_array_equal(whole.result_.posterior, parts.result_.posterior)
    names: list[Any] = ["pool", "acc", "spam", "cm", "seq"]
    for name in names:
        numbers: dict[str, Any] = {"alpha0": 1, "epsilon0": 3, "gamma0": 1, "kappa0": 1, "guess_prior": 1, "tol": 0}
        BSC(name, **numbers, max_iter=2).fit(few)
    assert BSC("cm", temper=1, max_iter=2).fit(few).settings_["temper"] == 1.0


@pytest.mark.parametrize("method", METHODS)
def test_a_corpus_without_annotators_crashes_nothing(method: str) -> None:
    """With gold, so that there are labels; nobody gave any of them."""
    corpus = Corpus([Document(str(n), ("Ada", "sang"), gold=("B-PER", "O")) for n in range(6)])
    with suppress(quorate.QuorateError):  # one sentence
        result = estimator(method).fit(corpus).result_
        assert [len(tags) for tags in result.tags] == [2] * 6
        assert len(result.annotators) == 0


@dataclass(frozen=True)
class Constant:
    """An annotator model in one place: everybody is right nine times in ten, whoever they are; nothing is learned."""

    prior: AnnotatorPrior
    n_annotators: int

    @classmethod
    def of(cls, prior: AnnotatorPrior, n_annotators: int) -> Constant:
        return cls(prior, n_annotators)

    @classmethod
    def size(cls, cells: Cells) -> int:
        return 0

    def log_lik(self, cells: Cells, view: object = None) -> np.ndarray:
        table = np.full((len(cells.label), cells.n_labels), np.log(0.1 / (cells.n_labels - 1)))
        table[np.arange(len(table)), cells.label] = np.log(0.9)
        return table

    def updated(self, cells: Cells, counts: np.ndarray) -> Constant:
        return self

    def mixed(self, other: Constant, own: float, others: float) -> Constant:
        return self

    def changed(self, cells: Cells, *counts_and_sign: Any) -> Constant:
        return self

    def grown(self, n_annotators: int, priors: AnnotatorPriors) -> Constant:
        return replace(self, n_annotators=n_annotators)

    def kl(self) -> float:
        return 0.0

    @property
    def matrix_shape(self) -> tuple[int, int, int]:
        return 1, len(self.prior.tagset.labels), len(self.prior.tagset.labels)

    def collapsed(self) -> Constant:
        return self

    def matrix(self, annotator: int) -> np.ndarray:
        J = len(self.prior.tagset.labels)
        return np.where(np.eye(J), 0.9, 0.1 / (J - 1))[None]

    def cells_and_counts(self, labels: np.ndarray) -> Any:
        raise SettingsError("it learns nothing")

    def arrays(self) -> dict[str, np.ndarray]:
        return {}

    def restored(self, arrays: dict[str, np.ndarray]) -> Constant:
        return self


def test_a_new_annotator_model_is_one_class_in_the_table(
    few: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place of another, it is fitted, spans on top of it, calibrated, combined, updated, saved and loaded."""
    kind: Any = Constant
    monkeypatch.setitem(build._ANNOTATORS, AnnotatorModel.ACC, kind)
    model = BSC("acc").fit(few)
    assert isinstance(model.fitted_.model.annotators, Constant)
    assert model.fitted_.spans is not None
    assert {row.accuracy > 0 for row in model.annotators_} == {True}
    np.testing.assert_allclose(model.annotators_[few.annotators[0]].matrix.diagonal(axis1=-2, axis2=-1), 0.9)
    model.save(tmp_path / "model.quorate")
    back = from_file(tmp_path / "model.quorate")
    assert back.combine(few).tags == model.combine(few).tags == model.result_.tags
    assert isinstance(back, BSC)
    assert len(back.update(Corpus([replace(few[0], id="another")])).result_) == len(few) + 1


@pytest.mark.parametrize("method", METHODS)
def test_what_an_estimator_needs_of_itself_is_its_own(method: str) -> None:
    """A base class that is unfinished without its child is read in two files at once; only Estimator is one."""
    kinds = type(estimator(method)).__mro__
    unfinished = [
        kind.__name__
        for kind in kinds
        for member in vars(kind).values()
        if inspect.isfunction(member) and "NotImplementedError" in member.__code__.co_names
    ]
    assert set(unfinished) == {"Estimator"}
