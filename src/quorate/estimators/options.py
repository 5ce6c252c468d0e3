"""The settings of all methods as named options, for type checkers and for whoever completes a call.

The declaration itself is :class:`quorate.model.settings.Settings` and the parameters of the estimators; a test
compares them with what stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypedDict, TypeVar

from quorate.corpus.schemes import Scheme
from quorate.errors import knows_its_options
from quorate.taggers import TaggerChoice

__all__ = [
    "AnnotatorName",
    "DecodeName",
    "EngineChoice",
    "EvidenceName",
    "InferenceName",
    "InvalidName",
    "MethodName",
    "MethodSettings",
    "SchemeName",
    "StartName",
    "TiesName",
    "TokenDecodeName",
    "TruthName",
    "ZerosName",
    "names_settings",
]

P = ParamSpec("P")
R = TypeVar("R")

MethodName = Literal[
    "auto", "bsc-span", "mv", "silent-vote", "span-vote", "best-worker", "worst-worker", "ds", "ibcc", "mace",
    "hmm-crowd", "crf-ma", "bsc-acc", "bsc-spam", "bsc-cv", "bsc-cm", "bsc-seq", "bsc-cm-notext", "bsc-seq-notext",
    "bsc-cm-notrans", "bsc-seq-notrans",
]  # fmt: skip
"""The methods by name: see :data:`quorate.METHODS`."""

AnnotatorName = Literal["auto", "acc", "spam", "cv", "cm", "seq"]
TruthName = Literal["markov", "independent", "uniform"]
ZerosName = Literal["moved", "dropped"]
InferenceName = Literal["vb", "em", "em-annotators"]
EvidenceName = Literal["auto", "tokens", "spans", "passages", "votes", "places"]
StartName = Literal["prior", "votes", "coverage"]
DecodeName = Literal["best", "f1", "token-f1", "sequence", "token"]
TokenDecodeName = Literal["best", "sequence", "token"]
InvalidName = Literal["repair", "keep", "error"]
SchemeName = Literal["bio", "bioes", "io", "plain"] | Scheme
TiesName = Literal["entity-first", "outside-first", "random"]
EngineChoice = Literal["threads", "jax"]


class MethodSettings(TypedDict, total=False):
    """The settings of all methods, by name; a method that has not one of them says so.

    >>> settings: MethodSettings = {"annotator": "cm", "max_iter": 5}
    >>> import quorate
    >>> quorate.aggregate(quorate.sample(), **settings).settings_["annotator"]
    'cm'
    """

    annotator: AnnotatorName
    truth: TruthName
    text: bool
    shapes: bool
    alpha0: float
    epsilon0: float | Literal["auto"]
    gamma0: float
    kappa0: float
    guess_prior: float | None
    zeros: ZerosName
    inference: InferenceName
    temper: float | Literal["auto"]
    evidence: EvidenceName
    start: StartName
    max_iter: int | Literal["auto"]
    tol: float
    random_state: int | None
    n_init: int
    decode: DecodeName
    precision: float | None
    recall: float | None
    invalid: InvalidName
    scheme: SchemeName | None
    tagger: TaggerChoice
    n_jobs: int | None
    engine: EngineChoice
    cluster: Any
    checkpoint: str | Path | None
    probabilities: bool
    ties: TiesName
    iterations: int
    l2: float


def names_settings(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose signature names every setting in place of ``**settings``, and which refuses others.

    Type checkers know them without; notebooks and ``help`` look at the signature.

    >>> @names_settings
    ... def fit(corpus, **settings): ...
    >>> "max_iter" in signature(fit).parameters
    True
    """
    own = signature(function)
    kept = [one for one in own.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    settings = [Parameter(name, Parameter.KEYWORD_ONLY, default=...) for name in MethodSettings.__annotations__]
    function.__signature__ = own.replace(parameters=[*kept, *settings])  # type: ignore[attr-defined]
    return knows_its_options(function, what="setting")
