"""The settings of all methods as named options, for type checkers and for whoever completes a call.

The declaration itself is :class:`quorate.model.settings.Settings` and the parameters of the estimators; a test
compares them with what stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Literal, ParamSpec, TypedDict, TypeVar

from quorate.corpus.schemes import Scheme
from quorate.errors import UnknownOptionError, knows_its_options
from quorate.model.settings import GONE
from quorate.taggers import TaggerChoice

P = ParamSpec("P")
R = TypeVar("R")

MethodName = Literal[
    "auto", "mv", "mv-abstain", "span-vote", "best-worker", "worst-worker", "ds", "ibcc", "mace",
    "hmm-crowd", "crf-ma", "bsc-acc", "bsc-spam", "bsc-cv", "bsc-cm", "bsc-seq", "bsc-cm-notext", "bsc-seq-notext",
    "bsc-cm-notrans", "bsc-seq-notrans",
]  # fmt: skip
"""The methods by name: see :data:`quorate.METHODS`."""

AnnotatorName = Literal["pool", "acc", "spam", "cv", "cm", "seq"]
TruthName = Literal["markov", "independent", "uniform"]
InferenceName = Literal["vb", "em", "em-annotators"]
StartName = Literal["prior", "votes"]
DecodeName = Literal["best", "f1", "sequence", "token"]
TokenDecodeName = Literal["best", "sequence", "token"]
InvalidName = Literal["repair", "keep", "error"]
SchemeName = Literal["bio", "bioes", "io", "plain"] | Scheme
TiesName = Literal["entity-first", "outside-first", "random"]
EngineChoice = Literal["threads", "jax"]


class FitSettings(TypedDict, total=False):
    """The settings of a fit, by name, but for the annotator model."""

    truth: TruthName
    text: bool
    shapes: bool
    alpha0: float
    epsilon0: float
    gamma0: float
    kappa0: float
    guess_prior: float | None
    inference: InferenceName
    spans: bool
    adapt: bool
    calibrate: bool
    temper: float
    start: StartName
    max_iter: int
    tol: float
    random_state: int | None
    n_init: int
    decode: DecodeName
    precision: float | None
    recall: float | None
    invalid: InvalidName
    scheme: SchemeName | None


class MethodSettings(FitSettings, total=False):
    """The settings of all methods, by name; a method that has not one of them says so.

    >>> settings: MethodSettings = {"annotator": "cm", "max_iter": 3}
    >>> import quorate
    >>> quorate.aggregate(quorate.sample(), **settings).settings_["annotator"]
    'cm'
    """

    annotator: AnnotatorName
    tagger: TaggerChoice
    n_jobs: int | None
    engine: EngineChoice
    cluster: Any
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
    settings = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=...)
        for name in (*MethodSettings.__required_keys__, *sorted(MethodSettings.__optional_keys__))
    ]
    function.__signature__ = own.replace(parameters=[*kept, *settings])  # type: ignore[attr-defined]
    checked = knows_its_options(function, what="setting")

    @wraps(function)
    def called(*args: P.args, **options: P.kwargs) -> R:
        for name in GONE.keys() & options.keys():
            raise UnknownOptionError(f"there is no setting {name!r} any more ({GONE[name]})")
        return checked(*args, **options)

    return called
