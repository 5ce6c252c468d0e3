"""When the model is fitted again, and when its settings are chosen again."""

from __future__ import annotations

from quorate.service.live.pace import Due, Pace


def rested(labels: int = 100, seconds: float = 1.0) -> Pace:
    """After a fit to so many labels, whose settings were chosen by them, that ended at 100 s."""
    pace = Pace()
    pace.begun()
    pace.fitted(labels, chosen=labels, seconds=seconds, now=100.0, anew=True)
    return pace


def test_nothing_is_fitted_to_nothing() -> None:
    assert Pace(must=True).due(labels=0, now=1e9) is Due.NOTHING


def test_little_waits_for_a_minute_and_a_tenth_does_not() -> None:
    pace = rested()
    pace.happened(9, now=101.0)
    assert pace.due(109, now=102.0) is Due.NOTHING
    assert pace.due(109, now=160.0) is Due.FIT
    pace.happened(1, now=102.0)
    assert pace.due(110, now=102.0) is Due.FIT


def test_a_fit_that_took_long_is_rarer() -> None:
    pace = rested(seconds=30.0)
    pace.happened(50, now=101.0, must=True)
    assert pace.due(150, now=129.0) is Due.NOTHING
    assert pace.due(150, now=131.0) is Due.FIT
    few = rested(seconds=30.0)
    few.happened(1, now=101.0)
    assert few.due(101, now=399.0) is Due.NOTHING
    few.happened(1, now=600.0)
    assert few.due(102, now=701.0) is Due.FIT


def test_settings_are_chosen_again_when_labels_have_doubled_or_it_is_quiet() -> None:
    pace = rested()
    pace.happened(100, now=101.0)
    assert pace.due(200, now=102.0) is Due.CHOOSE
    quiet = rested()
    quiet.happened(1, now=101.0)
    quiet.begun()
    quiet.fitted(101, chosen=100, seconds=1.0, now=161.0, anew=False)
    assert quiet.due(101, now=300.0) is Due.NOTHING
    assert quiet.due(101, now=401.0) is Due.CHOOSE
    quiet.begun()
    quiet.fitted(101, chosen=101, seconds=9.0, now=410.0, anew=True)
    assert quiet.due(101, now=9e9) is Due.NOTHING


def test_settings_are_chosen_again_for_changes_that_leave_as_many_labels() -> None:
    pace = rested()
    pace.happened(1, now=101.0, must=True)
    pace.begun()
    pace.fitted(100, chosen=100, seconds=1.0, now=103.0, anew=False)
    assert pace.due(100, now=402.0) is Due.CHOOSE


def test_what_happens_while_a_fit_runs_is_for_the_next() -> None:
    pace = rested()
    pace.happened(20, now=101.0)
    pace.begun()
    pace.happened(30, now=102.0)
    pace.fitted(120, chosen=100, seconds=1.0, now=103.0, anew=False)
    assert pace.due(150, now=104.5) is Due.FIT


def test_a_fit_that_failed_is_tried_again_later() -> None:
    pace = Pace()
    pace.begun()
    pace.failed(60.0, now=100.0)
    assert pace.due(10, now=159.0) is Due.NOTHING
    assert pace.due(10, now=160.0) is Due.CHOOSE
