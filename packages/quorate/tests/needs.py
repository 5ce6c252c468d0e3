"""What some tests need beside the code: where it is missing they are skipped, and in CI they fail."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

ALL_THERE = "QUORATE_CI"
"""Set by ``.ci/run``, which sees to it that everything is there."""


def missing(what: str) -> NoReturn:
    """End a test that cannot run without it."""
    if os.environ.get(ALL_THERE):
        pytest.fail(f"{what} ({ALL_THERE} is set: nothing may be missing)", pytrace=False)
    pytest.skip(what)
