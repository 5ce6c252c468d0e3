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
    from quorate import report, score, simulate
    from quorate.active import simulate_active
    from quorate.advice import next_labels
    from quorate.api import BSC, CRFMA, METHODS, BestWorker, MajorityVote, WorstWorker, aggregate, load
    from quorate.corpus import Corpus, Document
    from quorate.decode import Consensus, ConsensusSpan, Result
    from quorate.errors import (
        FitError,
        InputError,
        ModelFileError,
        OutputError,
        QuorateError,
        ServerError,
        SettingsError,
    )
    from quorate.formats import read_layers
    from quorate.layers import LayeredResult, aggregate_layers
    from quorate.people import Profile
    from quorate.samples import sample
    from quorate.stored import read
    from quorate.streaming import batches, fit_stream
    from quorate.tags import Scheme, Span, TagSet

__version__ = "0.1.0"

__all__ = [
    "BSC",
    "CRFMA",
    "METHODS",
    "BestWorker",
    "Consensus",
    "ConsensusSpan",
    "Corpus",
    "Document",
    "FitError",
    "InputError",
    "LayeredResult",
    "MajorityVote",
    "ModelFileError",
    "OutputError",
    "Profile",
    "QuorateError",
    "Result",
    "Scheme",
    "ServerError",
    "SettingsError",
    "Span",
    "TagSet",
    "WorstWorker",
    "aggregate",
    "aggregate_layers",
    "batches",
    "fit_stream",
    "load",
    "next_labels",
    "read",
    "read_layers",
    "report",
    "sample",
    "score",
    "simulate",
    "simulate_active",
]

# Names are loaded on first use: ``import quorate`` costs nothing that is not asked for.
_HOMES = {
    "quorate.active": ("simulate_active",),
    "quorate.advice": ("next_labels",),
    "quorate.api": ("BSC", "CRFMA", "METHODS", "BestWorker", "MajorityVote", "WorstWorker", "aggregate", "load"),
    "quorate.corpus": ("Corpus", "Document"),
    "quorate.decode": ("Consensus", "ConsensusSpan", "Result"),
    "quorate.errors": (
        "FitError",
        "InputError",
        "ModelFileError",
        "OutputError",
        "QuorateError",
        "ServerError",
        "SettingsError",
    ),
    "quorate.formats": ("read_layers",),
    "quorate.layers": ("LayeredResult", "aggregate_layers"),
    "quorate.people": ("Profile",),
    "quorate.samples": ("sample",),
    "quorate.stored": ("read",),
    "quorate.streaming": ("batches", "fit_stream"),
    "quorate.tags": ("Scheme", "Span", "TagSet"),
}
_MODULES = ("api", "errors", "formats", "label_studio", "report", "score", "simulate")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    if name in _MODULES:
        return import_module(f"quorate.{name}")
    raise AttributeError(f"module 'quorate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
