"""What can be asked of an estimator beyond ``fit`` and ``combine``: an estimator that has the methods can do it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from quorate.corpus.records import Corpus
from quorate.corpus.tags import TagSet
from quorate.estimators.updating import FitState
from quorate.model.engines.factory import Engines
from quorate.model.fit import Fitted
from quorate.model.history import Past
from quorate.model.prepared import Known
from quorate.model.settings import Settings
from quorate.result.result import Result
from quorate.result.sources import Sources
from quorate.storage.model_files import Stored


@runtime_checkable
class Saves(Protocol):
    """What was learned can be written to a file.

    >>> from quorate.estimators.methods import estimator
    >>> isinstance(estimator("crf-ma"), Saves), isinstance(estimator("mv"), Saves)
    (True, False)
    """

    def save(self, path: str | Path, *, documents: bool = True) -> None:
        """Write what was learned to a file, with the ``documents`` if an update needs them."""

    def stored(self) -> Stored:
        """What was learned, as a file holds it."""


@runtime_checkable
class Tunes(Protocol):
    """Settings can be tried one after the other on a crowd that was laid out once."""

    def checked_settings(self) -> Settings:
        """The parameters as types; :class:`quorate.SettingsError` if one cannot be."""

    def engines(self) -> Engines:
        """Where passes run."""


@runtime_checkable
class Updates(Protocol):
    """A fit can go on with new labels, and what it learned of the annotators can be the prior of another fit."""

    def update(self, corpus: Corpus, *, known: Known = None, passes: int = 0) -> Self:
        """Go on from the fit; returns self."""


@runtime_checkable
class FitsInPasses(Protocol):
    """A fit is passes of an engine under some settings, so that others can make them on a corpus that changes."""

    def get_params(self) -> dict[str, Any]:
        """The parameters that the estimator was made with."""

    def checked_settings(self) -> Settings:
        """The parameters as types; :class:`quorate.SettingsError` if one cannot be."""

    def engines(self) -> Engines:
        """Where passes run."""


@runtime_checkable
class Advises(Protocol):
    """What a fit is not sure of can be worked out, and with it what to have labelled next."""

    fitted_: Fitted

    def engines(self) -> Engines:
        """Where passes run."""

    def combine(self, corpus: Corpus, *, known: Known = None) -> Result:
        """The consensus on a corpus, with what was learned, and what is known of its documents."""

    def decided_documents(self) -> set[str]:
        """The ids of documents whose every label was known in the fit."""


@runtime_checkable
class Remembers(Protocol):
    """What a fit was made of is still there: its documents, unless they were left out, and the history it began with.

    >>> import quorate
    >>> isinstance(quorate.BSC("cm").fit(quorate.sample()), Remembers)
    True
    >>> isinstance(quorate.aggregate(quorate.sample(), "mv").model, Remembers)
    False
    """

    _fit_state: FitState
    tagset_: TagSet
    sources_: Sources

    def kept_documents(self) -> Corpus:
        """The documents of the fit and of its updates."""

    @property
    def has_documents(self) -> bool:
        """Whether the documents of the fit are there."""

    @property
    def past(self) -> Past:
        """What was learned of the annotators."""


@runtime_checkable
class Explains(Protocol):
    """The probability of a span can be worked out with and without an annotator."""

    fitted_: Fitted

    def engines(self) -> Engines:
        """Where passes run."""
