"""Moments as pages show them."""

from __future__ import annotations

from datetime import UTC, datetime


def day_of(at: float | None) -> str:
    """A day, in UTC; a dash for never.

    >>> day_of(0.0), day_of(None)
    ('1970-01-01', '–')
    """
    return "–" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def minute_of(at: float) -> str:
    """A minute, in UTC.

    >>> minute_of(60.0)
    '1970-01-01 00:01'
    """
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
