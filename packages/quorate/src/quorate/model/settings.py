"""The choices of a fit, as types; a string becomes a type here, once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from numbers import Integral, Real
from typing import Any, NamedTuple, Self, TypeVar

from quorate.corpus.schemes import Invalid, Scheme
from quorate.errors import SettingsError, UnknownOptionError, did_you_mean
from quorate.model.start import Start

Choice = TypeVar("Choice", bound=StrEnum)

_MOST = 1e6  # prior counts above this would drown any data, and the digits of the bound with them


class AnnotatorModel(StrEnum):
    """How an annotator's mistakes are modelled: by one number up to a matrix for each previous label, or by three.

    >>> AnnotatorModel("seq").value
    'seq'
    """

    ACC = "acc"
    SPAM = "spam"
    CV = "cv"
    CM = "cm"
    SEQ = "seq"
    POOL = "pool"


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


class Decode(StrEnum):
    """How tags are read off: the spans of the highest expected F1, the likeliest sequence, or each token's label.

    ``best`` is the first where there is a span model, and the second elsewhere.

    >>> Decode("sequence").value
    'sequence'
    """

    BEST = "best"
    F1 = "f1"
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


READ, MODEL, WRITTEN = "What is read", "The model", "What is written"
"""The groups of options on the command line."""


def check_number(name: str, value: object, *, whole: bool = False) -> None:
    """Raise :class:`SettingsError` if a value is not a number, or not a whole one.

    >>> check_number("alpha0", "1")
    Traceback (most recent call last):
    quorate.errors.SettingsError: alpha0 must be a number, not '1'
    """
    if isinstance(value, bool) or not isinstance(value, Integral if whole else Real):
        raise SettingsError(f"{name} must be a {'whole ' if whole else ''}number, not {value!r}")


def as_share(value: float, *, below_one: bool = False) -> str:
    """What a number would be as a share, in brackets, if it looks like a percentage of one that is allowed; else "".

    >>> as_share(95), as_share(0.95), as_share(100), as_share(100, below_one=True)
    (' (95 % is 0.95)', '', ' (100 % is 1)', '')
    """
    allowed = 1 < value < 100 or (value == 100 and not below_one)
    return f" ({value:g} % is {value / 100:g})" if allowed else ""


class Range(NamedTuple):
    """What a number may be, in words and in figures: from ``low``, or above it, to ``high``.

    A ``share`` gets a hint if a percentage is given.
    """

    words: str
    low: float
    high: float = math.inf
    above: bool = False
    whole: bool = False
    share: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raise :class:`SettingsError` if a value is none of these.

        >>> Range("1 or more", 1, whole=True).check("max_iter", 0)
        Traceback (most recent call last):
        quorate.errors.SettingsError: max_iter must be 1 or more, not 0
        """
        check_number(name, value, whole=self.whole)
        inside = value > self.low if self.above else value >= self.low
        if not (inside and value <= self.high and math.isfinite(value)):
            hint = as_share(value) if self.share else ""
            raise SettingsError(f"{name} must be {self.words}, not {value:g}{hint}")


_COUNT = Range(f"a positive number, at most {_MOST:g}", 0, _MOST, above=True)
_ONE_OR_MORE = Range("1 or more", 1, whole=True)
_SHARE = Range("above 0 and at most 1", 0, 1, above=True, share=True)


def _told(
    metavar: str | None,
    help: str,
    *,
    option: str | None = None,
    within: Range | None = None,
    panel: str = MODEL,
    kind: type[StrEnum] | None = None,
) -> dict[str, Any]:
    """What is told of a setting: its option (by its own name unless given), what it may be, and of which kind."""
    return {"metavar": metavar, "help": help, "option": option, "within": within, "panel": panel, "kind": kind}


GONE: Mapping[str, str] = {
    "evidence": "spans=True is the default, spans=False looks at tokens alone, and method 'span-vote' is the vote",
    "zeros": "the prior mass of labels that cannot follow goes to what repair makes of them",
    "checkpoint": "a fit takes seconds",
}
"""Settings of 0.11 that are gone, and what there is instead."""


@dataclass(frozen=True)
class Settings:
    """Everything that decides a fit of Bayesian sequence combination. ``docs/settings.md`` explains each.

    >>> Settings(alpha0=-1)
    Traceback (most recent call last):
    quorate.errors.SettingsError: alpha0 must be a positive number, at most 1e+06, not -1
    """

    annotator: AnnotatorModel = field(
        default=AnnotatorModel.POOL,
        metadata=_told(
            "MODEL",
            "The model of annotators' mistakes: acc, spam, cv, cm, seq, or pool, three at once (default).",
            kind=AnnotatorModel,
        ),
    )
    truth: TruthModel = field(
        default=TruthModel.MARKOV,
        metadata=_told(
            "TRUTH", "How true labels follow one another: markov (default), independent or uniform.", kind=TruthModel
        ),
    )
    text: bool = field(default=True, metadata=_told(None, "Whether words are evidence (default: yes)."))
    shapes: bool = field(
        default=True,
        metadata=_told(None, "Words: whether capitals, digits and symbols in them count too (default: yes)."),
    )
    alpha0: float = field(
        default=1.0, metadata=_told(None, "Annotators: prior count of every label (default 1).", within=_COUNT)
    )
    epsilon0: float = field(
        default=10.0,
        metadata=_told(
            None,
            "Annotators: additional prior count for the right label (default 10).",
            within=Range(f"a number from 0 to {_MOST:g}", 0, _MOST),
        ),
    )
    gamma0: float = field(default=1.0, metadata=_told(None, "Transitions: prior count (default 1).", within=_COUNT))
    kappa0: float = field(default=1.0, metadata=_told(None, "Words: prior count (default 1).", within=_COUNT))
    guess_prior: float | None = field(
        default=None,
        metadata=_told(None, "In bsc-spam and mace: prior count of every label in a guess.", within=_COUNT),
    )
    inference: Inference = field(
        default=Inference.VB,
        metadata=_told("WAY", "How the model is fitted: vb (default), em or em-annotators.", kind=Inference),
    )
    spans: bool = field(
        default=True, metadata=_told(None, "Whether whole spans are evidence, on top of tokens (default: yes).")
    )
    adapt: bool = field(
        default=True,
        metadata=_told(
            None,
            "Whether duplicates are merged, abstaining is accounted for and correlated sources count less "
            "(default: yes).",
        ),
    )
    calibrate: bool = field(
        default=True,
        metadata=_told(None, "Whether confidence is calibrated on annotators who are held out (default: yes)."),
    )
    temper: float = field(
        default=1.0,
        metadata=_told(
            None,
            "How far annotators' evidence counts, above 0 to 1 (default 1).",
            within=Range("above 0 and at most 1", 0, 1, above=True),
        ),
    )
    start: Start = field(
        default=Start.VOTES,
        metadata=_told("START", "What a fit begins with: votes (default) or prior.", kind=Start),
    )
    max_iter: int = field(
        default=5,
        metadata=_told(
            None,
            "The maximum number of passes (default 5).",
            option="--max-passes",
            within=_ONE_OR_MORE,
        ),
    )
    tol: float = field(
        default=1e-7,
        metadata=_told(
            None,
            "Relative gain of the bound at which to stop (default 1e-07).",
            option="--tolerance",
            within=Range("a number, 0 or more", 0),
        ),
    )
    random_state: int | None = field(
        default=None,
        metadata=_told(
            None,
            "A seed: with another number, the fit starts slightly differently.",
            option="--seed",
            within=Range("0 or more", 0, whole=True),
        ),
    )
    n_init: int = field(
        default=1,
        metadata=_told(
            None,
            "How many starts to try; the best bound is kept (default 1).",
            option="--restarts",
            within=_ONE_OR_MORE,
        ),
    )
    decode: Decode = field(
        default=Decode.BEST,
        metadata=_told(
            "WAY",
            "How the consensus is read off. f1: spans of the highest expected F1; sequence: the likeliest tags; token: "
            "the likeliest tag of each token. Default best: f1 where there is a span model, sequence elsewhere.",
            panel=WRITTEN,
            kind=Decode,
        ),
    )
    precision: float | None = field(
        default=None,
        metadata=_told(
            "SHARE",
            "As many spans as possible with an expected precision of at least this, such as 0.9.",
            within=_SHARE,
            panel=WRITTEN,
        ),
    )
    recall: float | None = field(
        default=None,
        metadata=_told(
            "SHARE",
            "As few spans as possible with an expected recall of at least this, such as 0.9.",
            within=_SHARE,
            panel=WRITTEN,
        ),
    )
    invalid: Invalid = field(
        default=Invalid.REPAIR,
        metadata=_told(
            "RULE", "Tags that cannot follow the one before: repair (default), keep or error.", panel=READ, kind=Invalid
        ),
    )
    scheme: Scheme | None = field(
        default=None,
        metadata=_told(
            "SCHEME", "How tags mark spans: bio, bioes, io or plain; inferred if not given.", panel=READ, kind=Scheme
        ),
    )

    def __post_init__(self) -> None:
        for each in fields(self):
            within, value = each.metadata["within"], getattr(self, each.name)
            if within is not None and not (value is None and each.default is None):
                within.check(each.name, value)
                if not within.whole:
                    object.__setattr__(self, each.name, float(value))
        if self.inference is not Inference.VB and self.annotator in (AnnotatorModel.SEQ, AnnotatorModel.POOL):
            name = self.annotator.value
            raise SettingsError(
                f"the annotator model {name!r} is fitted by 'vb' only (choose another inference, or model)"
            )
        if self.precision is not None and self.recall is not None:
            raise SettingsError("a consensus keeps to a precision or to a recall, not to both (give one of them)")
        if self.decode is Decode.TOKEN and self.dialled:
            raise SettingsError("with decode 'token' no precision or recall of spans can be kept to (leave one out)")

    @property
    def dialled(self) -> bool:
        """Whether a precision or a recall is asked for."""
        return self.precision is not None or self.recall is not None

    @classmethod
    def of(cls, **values: Any) -> Self:
        """From plain values: strings become choices.

        >>> Settings.of(annotator="cm").annotator
        <AnnotatorModel.CM: 'cm'>
        """
        cls.check_names(values)
        kinds = {each.name: each.metadata["kind"] for each in fields(cls) if each.metadata["kind"] is not None}
        chosen: dict[str, Any] = {
            name: choice(kinds[name], name, value) if name in kinds and value is not None else value
            for name, value in values.items()
        }
        return cls(**chosen)

    @classmethod
    def check_names(cls, values: Iterable[str]) -> None:
        """:class:`UnknownOptionError` if one of these names is no setting."""
        names = {each.name for each in fields(cls)}
        for name in values:
            if name in GONE:
                raise UnknownOptionError(f"there is no setting {name!r} any more ({GONE[name]})")
            if name not in names:
                raise UnknownOptionError(f"unknown setting {name!r} ({did_you_mean(name, sorted(names))})")

    def plain(self) -> dict[str, Any]:
        """As plain values, for a file.

        >>> Settings().plain()["annotator"]
        'pool'
        """
        return {name: _plain(value) for name, value in asdict(self).items()}


def _plain(value: Any) -> Any:
    """A choice as its name, and a number of NumPy as one of Python."""
    if isinstance(value, StrEnum):
        return value.value
    return value.item() if hasattr(value, "item") else value


def choice(kind: type[Choice], name: str, value: str) -> Choice:
    """The choice that a string names.

    >>> choice(Start, "start", "votes")
    <Start.VOTES: 'votes'>
    """
    try:
        return kind(value)
    except ValueError:
        known = did_you_mean(str(value), [member.value for member in kind])
        raise SettingsError(f"{name} {value!r} is not known ({known})") from None


def decode_of_tokens(value: str) -> Decode:
    """How tags are read off by a method that knows no probabilities of spans.

    >>> decode_of_tokens("token")
    <Decode.TOKEN: 'token'>
    """
    decode = choice(Decode, "decode", value)
    if decode is Decode.F1:
        raise SettingsError(
            f"decode {value!r} needs probabilities of spans, which this method lacks (use sequence or token)"
        )
    return decode


def scheme_named(value: str | None) -> Scheme | None:
    """The scheme of that name; ``None``: to be inferred.

    >>> scheme_named("bio")
    <Scheme.BIO: 'bio'>
    """
    return None if value is None else choice(Scheme, "scheme", value)
