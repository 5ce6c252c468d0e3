"""What can be asked of an estimator beyond ``fit`` and ``combine``: an estimator that has the methods can do it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from quorate.corpus.records import Corpus
from quorate.encode.encoded import Encoded
from quorate.estimators.base import Estimator
from quorate.infer.engines.protocol import Tables
from quorate.infer.parts.truth import Chain
from quorate.models.prepared import Prepared
from quorate.models.settings import Settings
from quorate.result.calibration import Calibration

__all__ = ["Explains", "Saves", "Tunes", "Updates"]


@runtime_checkable
class Saves(Protocol):
    """What was learned can be written to a file.

    >>> from quorate.estimators.methods import estimator
    >>> isinstance(estimator("crf-ma"), Saves), isinstance(estimator("mv"), Saves)
    (True, False)
    """

    def save(self, path: str | Path) -> None:
        """Write what was learned to a file."""


@runtime_checkable
class Tunes(Protocol):
    """Settings can be tried one after the other on a corpus that was prepared once."""

    def checked_settings(self) -> Settings:
        """The parameters as types; :class:`quorate.SettingsError` if one cannot be."""

    def fit_prepared(self, prepared: Prepared) -> Estimator:
        """Learn from a prepared corpus; returns the fitted estimator."""


@runtime_checkable
class Updates(Protocol):
    """A fit can go on with new labels, and what it learned of the annotators can be the prior of another fit."""

    def update(self, corpus: Corpus) -> Self:
        """Go on from the fit; returns self."""


@runtime_checkable
class Explains(Protocol):
    """The probability of a span can be worked out with and without an annotator."""

    @property
    def calibration_(self) -> Calibration:
        """How the confidence is to be read."""

    def encoded(self, corpus: Corpus) -> Encoded:
        """A corpus as arrays, in which names have the numbers that they had in the fit."""

    def output_tables(self, encoded: Encoded) -> tuple[Tables, Chain]:
        """What the output pass reads."""
