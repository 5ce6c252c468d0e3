"""Estimators by the names of their methods, as the type that they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import quorate
from quorate import BSC
from quorate.estimators.methods import estimator


def bsc(method: str = "auto", **settings: Any) -> BSC:
    """The estimator of a method that is a :class:`BSC` with other settings."""
    model = estimator(method, **settings)
    assert isinstance(model, BSC)
    return model


def loaded(path: str | Path) -> BSC:
    """A :class:`BSC` from its file."""
    model = quorate.load(path)
    assert isinstance(model, BSC)
    return model
