"""The choices of a fit, as types; a string becomes a type here, once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from numbers import Integral, Real
from typing import Any, Self, TypeVar

from quorate.corpus.tags import Invalid, Scheme
from quorate.errors import SettingsError
from quorate.infer.loop import Start

__all__ = [
    "AnnotatorModel",
    "Decode",
    "Inference",
    "Settings",
    "Ties",
    "TruthModel",
    "Zeros",
    "check_number",
    "choice",
    "present_names",
    "scheme_named",
]

Choice = TypeVar("Choice", bound=StrEnum)

_FORMER_NAMES = {  # in files of version 0.1
    "habit0": "guess_prior",
    "max_passes": "max_iter",
    "tolerance": "tol",
    "seed": "random_state",
    "restarts": "n_init",
    "threads": "n_jobs",
}
_MOST = 1e6  # prior counts above this would drown any data, and the digits of the bound with them


class AnnotatorModel(StrEnum):
    """How an annotator's mistakes are modelled, from one number to a matrix for each previous label.

    >>> AnnotatorModel("seq").value
    'seq'
    """

    ACC = "acc"
    SPAM = "spam"
    CV = "cv"
    CM = "cm"
    SEQ = "seq"


class TruthModel(StrEnum):
    """How true labels follow one another.

    >>> TruthModel("markov").value
    'markov'
    """

    MARKOV = "markov"
    INDEPENDENT = "independent"
    UNIFORM = "uniform"


class Inference(StrEnum):
    """What is estimated of each parameter: a distribution (``vb``), a point (``em``), or a point for annotators alone.

    >>> Inference("em").value
    'em'
    """

    VB = "vb"
    EM = "em"
    EM_ANNOTATORS = "em-annotators"


class Zeros(StrEnum):
    """What becomes of the prior mass of labels that the scheme forbids, in *seq*.

    >>> Zeros("moved").value
    'moved'
    """

    MOVED = "moved"
    DROPPED = "dropped"


class Decode(StrEnum):
    """How tags are read off: the most probable valid sequence, or each token's most probable label.

    >>> Decode("sequence").value
    'sequence'
    """

    SEQUENCE = "sequence"
    TOKEN = "token"


class Ties(StrEnum):
    """Who wins a tied vote: the label that opens a span, then the one inside, ``O`` last; ``O`` first; or by lot.

    >>> Ties("entity-first").value
    'entity-first'
    """

    ENTITY_FIRST = "entity-first"
    OUTSIDE_FIRST = "outside-first"
    RANDOM = "random"


@dataclass(frozen=True)
class Settings:
    """Everything that decides a fit of Bayesian sequence combination. ``docs/settings.md`` explains each.

    >>> Settings(alpha0=-1)
    Traceback (most recent call last):
    quorate.errors.SettingsError: alpha0 must be a positive number, at most 1e+06, not -1
    """

    annotator: AnnotatorModel = AnnotatorModel.SEQ
    truth: TruthModel = TruthModel.MARKOV
    text: bool = True
    alpha0: float = 1.0
    epsilon0: float = 30.0
    gamma0: float = 1.0
    kappa0: float = 0.3
    guess_prior: float | None = None
    zeros: Zeros = Zeros.MOVED
    inference: Inference = Inference.VB
    temper: float = 0.6
    start: Start = Start.VOTES
    max_iter: int = 20
    tol: float = 1e-7
    random_state: int | None = None
    n_init: int = 1
    decode: Decode = Decode.SEQUENCE
    invalid: Invalid = Invalid.REPAIR
    scheme: Scheme | None = None

    def __post_init__(self) -> None:
        for name in ("alpha0", "epsilon0", "gamma0", "kappa0", "guess_prior", "temper", "tol"):
            if name != "guess_prior" or self.guess_prior is not None:
                check_number(name, getattr(self, name))
        for name in ("max_iter", "n_init", "random_state"):
            if name != "random_state" or self.random_state is not None:
                check_number(name, getattr(self, name), whole=True)
        for name in ("alpha0", "gamma0", "kappa0"):
            _positive(name, getattr(self, name))
        if self.guess_prior is not None:
            _positive("guess_prior", self.guess_prior)
        if self.inference is not Inference.VB and self.annotator is AnnotatorModel.SEQ:
            raise SettingsError("the annotator model 'seq' is fitted by 'vb' only (choose another inference, or model)")
        if not 0 <= self.epsilon0 <= _MOST:
            raise SettingsError(f"epsilon0 must be a number from 0 to {_MOST:g}, not {self.epsilon0:g}")
        if not 0 < self.temper <= 1:
            raise SettingsError(f"temper must be above 0 and at most 1, not {self.temper}")
        if not (math.isfinite(self.tol) and self.tol >= 0):
            raise SettingsError(f"tol must be a number, 0 or more, not {self.tol}")
        for name in ("max_iter", "n_init"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be 1 or more, not {getattr(self, name)}")
        if self.random_state is not None and self.random_state < 0:
            raise SettingsError(f"random_state must be 0 or more, not {self.random_state}")

    @classmethod
    def of(cls, **values: Any) -> Self:
        """From plain values: strings become choices.

        >>> Settings.of(annotator="cm").annotator
        <AnnotatorModel.CM: 'cm'>
        """
        names = {field.name for field in fields(cls)}
        for name in values:
            if name not in names:
                raise SettingsError(f"unknown setting {name!r} (one of: {', '.join(sorted(names))})")
        kinds: dict[str, type[StrEnum]] = {
            "annotator": AnnotatorModel,
            "truth": TruthModel,
            "zeros": Zeros,
            "inference": Inference,
            "start": Start,
            "decode": Decode,
            "invalid": Invalid,
            "scheme": Scheme,
        }
        chosen: dict[str, Any] = {
            name: choice(kinds[name], name, value) if name in kinds and value is not None else value
            for name, value in values.items()
        }
        return cls(**chosen)

    def plain(self) -> dict[str, Any]:
        """As plain values, for a file.

        >>> Settings().plain()["annotator"]
        'seq'
        """
        return {name: _plain(value) for name, value in asdict(self).items()}


def _plain(value: Any) -> Any:
    """A choice as its name, and a number of NumPy as one of Python."""
    if isinstance(value, StrEnum):
        return value.value
    return value.item() if hasattr(value, "item") else value


def choice(kind: type[Choice], name: str, value: str) -> Choice:
    """The choice that a string names.

    >>> choice(Zeros, "zeros", "moved")
    <Zeros.MOVED: 'moved'>
    """
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise SettingsError(f"{name} {value!r} is not known (one of: {known})") from None


def check_number(name: str, value: object, *, whole: bool = False) -> None:
    """Raise :class:`SettingsError` if a value is not a number, or not a whole one.

    >>> check_number("alpha0", "1")
    Traceback (most recent call last):
    quorate.errors.SettingsError: alpha0 must be a number, not '1'
    """
    if isinstance(value, bool) or not isinstance(value, Integral if whole else Real):
        raise SettingsError(f"{name} must be a {'whole ' if whole else ''}number, not {value!r}")


def present_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings from a file, under the names that they have now.

    >>> present_names({"habit0": 0.1, "alpha0": 1.0})
    {'guess_prior': 0.1, 'alpha0': 1.0}
    """
    return {_FORMER_NAMES.get(name, name): value for name, value in values.items()}


def scheme_named(value: str | None) -> Scheme | None:
    """The scheme of that name; ``None``: to be inferred.

    >>> scheme_named("bio")
    <Scheme.BIO: 'bio'>
    """
    return None if value is None else choice(Scheme, "scheme", value)


def _positive(name: str, value: float) -> None:
    if not 0 < value <= _MOST:
        raise SettingsError(f"{name} must be a positive number, at most {_MOST:g}, not {value:g}")
