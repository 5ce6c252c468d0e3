"""One trustworthy sequence from the noisy span annotations of many people, models and rules.

>>> import quorate
>>> corpus = quorate.sample()
>>> result = quorate.aggregate(corpus)
>>> result.tags[0] == result[0].tags
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorate import audit, report, reviews, types
    from quorate.active.simulation import simulate_active
    from quorate.active.suggest import next_labels
    from quorate.api import aggregate, aggregate_layers, load
    from quorate.corpus import simulate
    from quorate.corpus.profiles import Profile
    from quorate.corpus.records import Corpus, Document
    from quorate.corpus.sample import sample
    from quorate.corpus.spans import Span
    from quorate.corpus.tags import Scheme, TagSet
    from quorate.errors import (
        FitError,
        InputError,
        ModelFileError,
        NotFittedError,
        OutputError,
        QuorateError,
        ServerError,
        SettingsError,
        UnknownOptionError,
    )
    from quorate.estimators.bsc import BSC
    from quorate.estimators.crf_ma import CRFMA
    from quorate.estimators.layered import LayeredModel
    from quorate.estimators.methods import METHODS, estimator
    from quorate.estimators.options import MethodSettings
    from quorate.estimators.progress import progress_bar
    from quorate.estimators.streaming import batches, fit_stream
    from quorate.estimators.voting import AbstainVote, BestWorker, MajorityVote, SpanVote, WorstWorker
    from quorate.evaluate import metrics as score
    from quorate.formats import read_layers
    from quorate.formats.layers import Layers
    from quorate.result.consensus import Consensus
    from quorate.result.layers import LayeredResult
    from quorate.result.result import Result
    from quorate.storage.corpora import read

__version__ = "0.11.0"

__all__ = [
    "BSC",
    "CRFMA",
    "METHODS",
    "AbstainVote",
    "BestWorker",
    "Consensus",
    "Corpus",
    "Document",
    "FitError",
    "InputError",
    "LayeredModel",
    "LayeredResult",
    "Layers",
    "MajorityVote",
    "MethodSettings",
    "ModelFileError",
    "NotFittedError",
    "OutputError",
    "Profile",
    "QuorateError",
    "Result",
    "Scheme",
    "ServerError",
    "SettingsError",
    "Span",
    "SpanVote",
    "TagSet",
    "UnknownOptionError",
    "WorstWorker",
    "aggregate",
    "aggregate_layers",
    "audit",
    "batches",
    "estimator",
    "fit_stream",
    "load",
    "next_labels",
    "progress_bar",
    "read",
    "read_layers",
    "report",
    "reviews",
    "sample",
    "score",
    "simulate",
    "simulate_active",
    "types",
]

# Names are loaded on first use: ``import quorate`` costs nothing that is not asked for.
_HOMES = {
    "quorate.active.simulation": ("simulate_active",),
    "quorate.active.suggest": ("next_labels",),
    "quorate.api": ("aggregate", "aggregate_layers", "load"),
    "quorate.corpus.profiles": ("Profile",),
    "quorate.corpus.records": ("Corpus", "Document"),
    "quorate.corpus.sample": ("sample",),
    "quorate.corpus.spans": ("Span",),
    "quorate.corpus.tags": ("Scheme", "TagSet"),
    "quorate.errors": (
        "FitError",
        "InputError",
        "ModelFileError",
        "NotFittedError",
        "OutputError",
        "QuorateError",
        "ServerError",
        "SettingsError",
        "UnknownOptionError",
    ),
    "quorate.estimators.bsc": ("BSC",),
    "quorate.estimators.crf_ma": ("CRFMA",),
    "quorate.estimators.layered": ("LayeredModel",),
    "quorate.estimators.methods": ("METHODS", "estimator"),
    "quorate.estimators.options": ("MethodSettings",),
    "quorate.estimators.progress": ("progress_bar",),
    "quorate.estimators.streaming": ("batches", "fit_stream"),
    "quorate.estimators.voting": ("BestWorker", "MajorityVote", "AbstainVote", "SpanVote", "WorstWorker"),
    "quorate.formats": ("read_layers",),
    "quorate.formats.layers": ("Layers",),
    "quorate.result.consensus": ("Consensus",),
    "quorate.result.layers": ("LayeredResult",),
    "quorate.result.result": ("Result",),
    "quorate.storage.corpora": ("read",),
}
_MODULES = {
    "api": "quorate.api",
    "audit": "quorate.audit",
    "datasets": "quorate.datasets",
    "errors": "quorate.errors",
    "formats": "quorate.formats",
    "label_studio": "quorate.label_studio",
    "report": "quorate.report",
    "reviews": "quorate.reviews",
    "score": "quorate.evaluate.metrics",
    "simulate": "quorate.corpus.simulate",
    "types": "quorate.types",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name == "SilentVote":
        raise AttributeError("quorate.SilentVote is called quorate.AbstainVote")
    raise AttributeError(f"module 'quorate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
