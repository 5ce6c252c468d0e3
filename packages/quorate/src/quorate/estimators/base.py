"""What estimators share: parameters as attributes, and predictions from results."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import quorate
from quorate.corpus.records import Corpus
from quorate.crowd.crowd import Crowd
from quorate.errors import NotFittedError, SettingsError, UnknownOptionError, did_you_mean, knows_its_options
from quorate.model import loop
from quorate.model.prepared import Known
from quorate.model.settings import GONE, check_number
from quorate.result.result import Result

ProgressCallback = Callable[[loop.Progress], None]
_WITH_OPTIONS = {"fit", "combine", "update", "save"}  # methods that say what may be meant by an option they have not


class Estimator:
    """What estimators share: parameters as attributes, and predictions from ``result``."""

    result_: Result
    settings_: dict[str, Any]
    """The method and its settings as plain values; the result has the same."""
    meta_: dict[str, Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = knows_its_options(cls.__init__, cls.__name__)  # type: ignore[method-assign]
        for name in _WITH_OPTIONS & vars(cls).keys():
            setattr(cls, name, knows_its_options(vars(cls)[name]))

    def fit(self, corpus: Corpus, *, known: Known = None, progress: ProgressCallback | None = None) -> Self:
        """Learn from a corpus; returns self."""
        raise NotImplementedError

    def combine(self, corpus: Corpus) -> Result:
        """The consensus on other documents, with what was learned."""
        raise NotImplementedError

    def predict(self, corpus: Corpus) -> list[list[str]]:
        """Tags for the documents of a corpus, with what was learned."""
        return self.combine(corpus).tags

    def predict_proba(self, corpus: Corpus) -> list[NDArray[np.float64]]:
        """For every document ``[L, J]`` the probability of each label, with what was learned."""
        return self.combine(corpus).probabilities

    def fit_predict(
        self, corpus: Corpus, *, known: Known = None, progress: ProgressCallback | None = None
    ) -> list[list[str]]:
        """Learn from a corpus and return its tags."""
        return self.fit(corpus, known=known, progress=progress).result_.tags

    def fit_predict_proba(
        self, corpus: Corpus, *, known: Known = None, progress: ProgressCallback | None = None
    ) -> list[NDArray[np.float64]]:
        """Learn from a corpus and return, for every document, ``[L, J]`` the probability of each label."""
        return self.fit(corpus, known=known, progress=progress).result_.probabilities

    @classmethod
    def parameters(cls) -> dict[str, Any]:
        """The parameters by name, with their defaults."""
        return {name: one.default for name, one in inspect.signature(cls).parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters that the estimator was made with."""
        return {name: getattr(self, name) for name in self.parameters()}

    def set_params(self, **values: Any) -> Self:
        """Change parameters; returns self."""
        for name, value in values.items():
            if name in GONE:
                raise UnknownOptionError(f"there is no setting {name!r} any more ({GONE[name]})")
            if name not in self.get_params():
                raise UnknownOptionError(f"unknown setting {name!r} ({did_you_mean(name, self.get_params())})")
            setattr(self, name, value)
        return self

    def _check_fitted(self) -> None:
        if not hasattr(self, "meta_"):
            raise NotFittedError("this model has not been fitted yet (call fit first)")

    def __repr__(self) -> str:
        defaults = self.parameters()
        changed = [f"{k}={v!r}" for k, v in self.get_params().items() if v != defaults[k]]
        return f"{type(self).__name__}({', '.join(changed)})"


def meta_of(
    corpus: Corpus, encoded: Crowd, known: NDArray[np.int32] | None, settings: dict[str, Any]
) -> dict[str, Any]:
    """What is worth keeping with the output: from what, and how, it was made."""
    return {
        "version": quorate.__version__,
        "settings": settings,
        "labels": list(encoded.tagset.labels),
        "inputs": corpus.digests,
        "documents": len(corpus),
        "tokens": encoded.n_tokens,
        "annotators": len(encoded.annotators),
        "known": 0 if known is None else int((known >= 0).sum()),
        "repaired": encoded.repaired,
    }


def checked_threads(n_jobs: int | None) -> int | None:
    """How many threads, if that is possible; ``None`` for all cores, as in ``n_jobs=-1``."""
    if n_jobs is None:
        return None
    check_number("n_jobs", n_jobs, whole=True)
    if n_jobs < 1 and n_jobs != -1:
        raise SettingsError(f"n_jobs must be 1 or more, or -1 for all cores, not {n_jobs}")
    return None if n_jobs == -1 else n_jobs
