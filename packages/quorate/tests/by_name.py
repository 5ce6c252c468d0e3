"""Estimators by the names of their methods, as the type that they are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import quorate
from quorate import BSC, CRFMA, LayeredModel
from quorate.corpus.records import Corpus
from quorate.estimators.methods import estimator
from quorate.estimators.streaming import fit_stream


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


def from_file(path: str | Path) -> BSC | CRFMA:
    """A model without layers from its file."""
    model = quorate.load(path)
    assert not isinstance(model, LayeredModel)
    return model


def streamed(stream: Iterable[Corpus], method: str = "bsc-seq", **settings: Any) -> BSC:
    """A :class:`BSC` fitted to a stream."""
    model = fit_stream(stream, method, **settings)
    assert isinstance(model, BSC)
    return model
