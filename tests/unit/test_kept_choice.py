"""A choice of settings that is kept: a fit that takes it over is the fit that made it, in a fraction of the time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quorate
from simulated_crowds import careful_three
from quorate import BSC, Corpus
from quorate.choose import choice as choosing
from quorate.choose.kept import as_plain, from_plain, taken_over


@pytest.fixture(scope="module")
def crowd() -> Corpus:
    return quorate.sample()


@pytest.fixture(scope="module")
def fitted(crowd: Corpus) -> BSC:
    return BSC().fit(crowd)


def test_a_fit_that_takes_a_choice_over_is_the_fit_that_made_it(
    crowd: Corpus, fitted: BSC, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted.save(tmp_path / "model.quorate")
    model = quorate.load(tmp_path / "model.quorate")
    assert isinstance(model, BSC)
    kept = model.choice_
    monkeypatch.setattr("quorate.estimators.bsc.choose", _never)
    again = BSC().fit(crowd, choice=kept)
    assert again.result_.tags == fitted.result_.tags
    assert again.result_.expected == fitted.result_.expected
    np.testing.assert_array_equal(again.result_.confidence, fitted.result_.confidence)
    assert again.settings_ == fitted.settings_
    assert again.calibration_ == fitted.calibration_


def test_a_setting_that_is_given_wins_over_the_choice(crowd: Corpus, fitted: BSC) -> None:
    other = BSC(temper=0.5, max_iter=3).fit(crowd, choice=fitted.choice_)
    assert (other.settings_["temper"], other.settings_["max_iter"]) == (0.5, 3)
    assert other.settings_["annotator"] == fitted.settings_["annotator"]


def test_everything_of_a_choice_is_kept(fitted: BSC) -> None:
    before = fitted.choice_
    assert before is not None
    after = from_plain(as_plain(before))
    for name in before._fields:
        if name in ("of_silence", "sharing"):
            continue
        assert getattr(after, name) == getattr(before, name), name
    np.testing.assert_array_equal(after.of_silence, before.of_silence)
    assert after.sharing.pairs() == before.sharing.pairs()
    assert after.reasons == before.reasons


def test_a_choice_with_the_check_of_earlier_versions_is_read(fitted: BSC) -> None:
    assert fitted.choice_ is not None
    assert from_plain(as_plain(fitted.choice_) | {"check": [0.02, None, ""]}).settings == fitted.choice_.settings


def test_who_errs_together_is_found_again_by_name(fitted: BSC) -> None:
    before = fitted.choice_
    assert before is not None
    names = before.annotators
    one, other = names[2], names[5]
    before = before._replace(
        sharing=type(before.sharing).of([(2, 5, 0.5)]), of_silence=np.linspace(0.1, 1.0, len(names)), silent=(one,)
    )
    fewer = ["aaa", *(name for name in reversed(names) if name != names[0])]
    after = taken_over(before, before.settings, (), fewer)
    assert after.sharing.pairs() == [(fewer.index(one), fewer.index(other), 0.5)]
    assert after.of_silence[0] == 1.0
    assert after.of_silence[fewer.index(one)] == before.of_silence[2]
    assert taken_over(before, before.settings, (), [name for name in names if name != one]).silent == ()


@pytest.mark.parametrize("damage", [{"of_silence": [1.0]}, {"sharing": [[0, 99, 0.5]]}, {"votes": "many"}])
def test_a_damaged_choice_is_refused(fitted: BSC, damage: dict[str, Any]) -> None:
    assert fitted.choice_ is not None
    with pytest.raises(ValueError, match=r"choice|Expected"):
        from_plain(as_plain(fitted.choice_) | damage)


def test_labels_that_were_added_count(fitted: BSC) -> None:
    """Only the choice is taken over: what is learned is learned from all that is there."""
    crowd = careful_three(60)
    first = BSC().fit(Corpus(crowd.documents[:50]))
    again = BSC().fit(crowd, choice=first.choice_)
    assert len(again.result_) == 60
    assert again.meta_["documents"] == 60
    assert choosing.CHOSEN[0] in again.meta_["chosen"]


def _never(*_: Any, **__: Any) -> None:
    raise AssertionError("settings were chosen again")
