"""What every estimator promises, as scikit-learn's do."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest
from sklearn.base import clone

import simulated_crowds as crowds
import quorate
from by_name import from_file
from quorate import BSC, METHODS, Corpus, Document, NotFittedError, SettingsError
from quorate.estimators.capabilities import Saves
from quorate.estimators.methods import estimator


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
    assert {name: value for name, value in told.items() if name not in ("method", "why")} == model.meta_["settings"]
    assert told.get("why", []) == model.meta_.get("why", [])
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
    assert ours.choice is not None
    assert theirs.choice is not None
    assert ours.choice.settings == theirs.choice.settings


@pytest.mark.parametrize("method", METHODS)
def test_an_estimator_that_was_not_fitted_says_so_as_scikit_learns_do(method: str, few: Corpus) -> None:
    model = estimator(method)
    for ask in (model.predict, model.predict_proba, model.combine):
        with pytest.raises(NotFittedError, match="has not been fitted yet") as found:
            ask(few)
        assert isinstance(found.value, ValueError)
        assert isinstance(found.value, AttributeError)
    assert not hasattr(model, "result_")


def test_em_chooses_among_the_models_that_it_can_fit(sample: Corpus) -> None:
    assert BSC(inference="em").fit(sample).settings_["annotator"] != "seq"


def test_a_model_with_annotators_who_count_as_one_is_read_back_after_others_came(tmp_path: Path) -> None:
    corpus = crowds.copies(120)
    later = Document("later", ("w1", "w2"), {"newcomer": ("O", "O"), corpus.annotators[0]: ("O", "O")})
    model = BSC().fit(corpus)
    assert model.choice_ is not None
    assert model.choice_.together
    model.update(Corpus([later])).save(tmp_path / "model.quorate")
    assert "newcomer" in from_file(tmp_path / "model.quorate").annotators_.names


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
