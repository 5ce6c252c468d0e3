"""When the model is fitted again."""

from __future__ import annotations

from quorate_serve.live.pace import Pace


def rested(labels: int = 100, seconds: float = 1.0) -> Pace:
    """After a fit to so many labels that ended at 100 s."""
    pace = Pace()
    pace.begun()
    pace.fitted(labels, seconds=seconds, now=100.0)
    return pace


def test_nothing_is_fitted_to_nothing() -> None:
    assert not Pace(must=True).due(labels=0, now=1e9)


def test_where_nothing_has_happened_nothing_is_fitted() -> None:
    assert not rested().due(labels=100, now=1e9)


def test_little_waits_for_a_minute_and_a_tenth_does_not() -> None:
    pace = rested()
    pace.happened(9)
    assert not pace.due(109, now=102.0)
    assert pace.due(109, now=160.0)
    pace.happened(1)
    assert pace.due(110, now=102.0)


def test_a_fit_that_took_long_is_rarer() -> None:
    pace = rested(seconds=30.0)
    pace.happened(50, must=True)
    assert not pace.due(150, now=129.0)
    assert pace.due(150, now=131.0)
    few = rested(seconds=30.0)
    few.happened(1)
    assert not few.due(101, now=399.0)
    assert few.due(101, now=701.0)


def test_what_happens_while_a_fit_runs_is_for_the_next() -> None:
    pace = rested()
    pace.happened(20)
    pace.begun()
    pace.happened(30)
    pace.fitted(120, seconds=1.0, now=103.0)
    assert pace.due(150, now=104.5)


def test_a_fit_that_failed_is_tried_again_later() -> None:
    pace = Pace()
    pace.begun()
    pace.failed(60.0, now=100.0)
    assert not pace.due(10, now=159.0)
    assert pace.due(10, now=160.0)
