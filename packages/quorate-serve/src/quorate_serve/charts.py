"""Small charts as coordinates: templates draw them, without a script and without inline style."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_WIDEST = 48.0  # a bar and the gap beside it


class Bar(NamedTuple):
    """A bar: its place in the chart, and what it says."""

    x: float
    y: float
    width: float
    height: float
    label: str
    value: float


class Bars(NamedTuple):
    """Bars side by side, ``width`` by ``height``, and the highest value."""

    width: float
    height: float
    bars: list[Bar]
    most: float


class Point(NamedTuple):
    """A value with its interval: where they are in the chart, and what is said of it."""

    x: float
    y: float
    low: float
    high: float
    label: str


class Course(NamedTuple):
    """Shares in the order of time, from 0 at the bottom to 1 at the top; ``line`` joins them."""

    width: float
    height: float
    points: list[Point]
    line: str


def bars(values: Sequence[tuple[str, float]], *, width: float = 640.0, height: float = 120.0) -> Bars:
    """A bar for every value, from the bottom up; the highest is as high as the chart. Few are narrow all the same.

    >>> [(bar.x, bar.height) for bar in bars([("Mon", 1), ("Tue", 2)], width=60, height=10).bars]
    [(3.0, 5.0), (33.0, 10.0)]
    """
    most = max((value for _, value in values), default=0.0)
    step = min(width / max(len(values), 1), _WIDEST)
    found = []
    for number, (label, value) in enumerate(values):
        tall = height * value / most if most else 0.0
        found.append(
            Bar(_short(step * (number + 0.1)), _short(height - tall), _short(0.8 * step), _short(tall), label, value)
        )
    return Bars(width, height, found, most)


def course(shares: Sequence[tuple[str, float, float, float]], *, width: float = 320.0, height: float = 90.0) -> Course:
    """Shares with their intervals, as (label, share, low, high).

    >>> course([("now", 0.5, 0.25, 1.0)], width=100, height=100).points[0][:4]
    (50.0, 50.0, 75.0, 0.0)
    """
    step = width / max(len(shares), 1)
    points = []
    for number, (label, share, low, high) in enumerate(shares):
        y, bottom, top = (_short(height * (1 - value)) for value in (share, low, high))
        points.append(Point(_short(step * (number + 0.5)), y, bottom, top, label))
    return Course(width, height, points, " ".join(f"{point.x},{point.y}" for point in points))


def _short(value: float) -> float:
    return round(value, 2)
