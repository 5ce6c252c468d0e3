"""What estimators share: parameters as attributes, predictions from results, and a corpus laid out for a fit."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

import quorate
from quorate.corpus import Corpus, Tag, known_gold
from quorate.decode import Result
from quorate.encode import Encoded, encode, encode_known
from quorate.errors import InputError, SettingsError
from quorate.infer import vb
from quorate.settings import check_number
from quorate.tags import Invalid, Scheme, TagSet

__all__ = [
    "Estimator",
    "Known",
    "Prepared",
    "ProgressCallback",
    "checked_threads",
    "choice_progress",
    "known_tags",
    "meta_of",
    "prepare",
]

Known = Literal["inline"] | Mapping[str, Sequence[Tag]] | None
"""Known labels: none, the corpus's own gold, or tags by document id."""

ProgressCallback = Callable[[vb.Progress], None]


class Estimator:
    """What estimators share: parameters as attributes, and predictions from ``result``."""

    method: str | None = None
    result_: Result
    meta_: dict[str, Any]

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

    def fit_predict(self, corpus: Corpus, **options: Any) -> list[list[str]]:
        """Learn from a corpus and return its tags."""
        return self.fit(corpus, **options).result_.tags

    def fit_predict_proba(self, corpus: Corpus, **options: Any) -> list[NDArray[np.float64]]:
        """Learn from a corpus and return, for every document, ``[L, J]`` the probability of each label."""
        return self.fit(corpus, **options).result_.probabilities

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters that the estimator was made with."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **values: Any) -> Self:
        """Change parameters; returns self."""
        for name, value in values.items():
            if name not in self.get_params():
                raise SettingsError(f"unknown setting {name!r} (one of: {', '.join(self.get_params())})")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        changed = [f"{k}={v!r}" for k, v in self.get_params().items() if v != defaults[k].default]
        return f"{type(self).__name__}({', '.join(changed)})"


class Prepared(NamedTuple):
    """A corpus ready for fits: its tags, its arrays, and its known labels as :func:`encode_known` gives them."""

    corpus: Corpus
    tagset: TagSet
    encoded: Encoded
    known: NDArray[np.int32] | None


def prepare(corpus: Corpus, scheme: Scheme | None, invalid: Invalid, known: Known = None) -> Prepared:
    """Lay out a corpus once, for one fit or many."""
    if not isinstance(corpus, Corpus):
        raise SettingsError(f"a Corpus is needed, not {type(corpus).__name__} (quorate.read gives one from files)")
    if not len(corpus):
        raise InputError("the corpus has no document")
    given = known_tags(corpus, known)
    tagset = corpus.tagset(scheme, known=(tag for tags in given.values() for tag in tags))
    encoded = encode(corpus, tagset, invalid=invalid)
    clamped = encode_known(corpus, tagset, given, invalid) if given else None
    return Prepared(corpus, tagset, encoded, clamped)


def meta_of(
    corpus: Corpus, encoded: Encoded, known: NDArray[np.int32] | None, settings: dict[str, Any]
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


def known_tags(corpus: Corpus, known: Known, *, none_yet: bool = False) -> Mapping[str, Sequence[Tag]]:
    """Known labels by document id, whichever way they were given; with ``none_yet``, there may be no gold."""
    if known is None:
        return {}
    if isinstance(known, str):
        if known != "inline":
            raise SettingsError(f"known must be None, 'inline' or tags by document id, not {known!r}")
        if none_yet:
            return {document.id: document.gold for document in corpus if document.gold is not None}
        return known_gold(corpus)
    return known


def checked_threads(threads: int | None) -> int | None:
    """How many threads, if that is possible."""
    if threads is not None:
        check_number("threads", threads, whole=True)
    if threads is not None and threads < 1:
        raise SettingsError(f"threads must be 1 or more, not {threads}")
    return threads


def choice_progress(progress: ProgressCallback) -> Callable[[int, int, str], None]:
    """The steps of a choice of settings, told as passes are."""

    def report(step: int, steps: int, note: str) -> None:
        progress(vb.Progress(0, 1, step, steps, note=note))

    return report
