"""The methods by name: an estimator with some of its parameters set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Unpack

from quorate.errors import SettingsError, UnknownOptionError, did_you_mean
from quorate.estimators.bsc import BSC
from quorate.estimators.crf_ma import CRFMA
from quorate.estimators.options import MethodName, MethodSettings, names_settings
from quorate.estimators.voting import AbstainVote, BestWorker, MajorityVote, SpanVote, WorstWorker


class Method(NamedTuple):
    """A name for an estimator with some of its parameters set."""

    description: str
    kind: type[BSC] | type[CRFMA] | type[MajorityVote]
    settings: Mapping[str, Any]


# The published models: tokens alone, no change of the crowd, confidence as the model states it, with the priors and the
# temper of docs/paper.md, under which they come to the published figures.
_PUBLISHED: dict[str, Any] = {
    "spans": False,
    "adapt": False,
    "calibrate": False,
    "shapes": False,
    "epsilon0": 30.0,
    "kappa0": 0.3,
    "temper": 0.6,
    "max_iter": 20,
}

# These look at no neighbour, so that a tag that cannot follow the one before is as good as any other.
_ALONE = {"truth": "independent", "text": False, "temper": 1.0, "invalid": "keep"}


METHODS: dict[str, Method] = {
    "auto": Method(
        "three annotator models at once, whole spans on top, calibrated confidence (default)",
        BSC,
        {},
    ),
    "mv": Method("majority vote on every token", MajorityVote, {}),
    "mv-abstain": Method("majority vote on every token, in which O abstains (for rules)", AbstainVote, {}),
    "span-vote": Method("majority vote on every span: half must have marked exactly it", SpanVote, {}),
    "best-worker": Method("in each document its best annotator (an oracle: needs gold)", BestWorker, {}),
    "worst-worker": Method("in each document its worst annotator (an oracle: needs gold)", WorstWorker, {}),
    "ds": Method(
        "Dawid and Skene: confusion matrices by EM, every token alone",
        BSC,
        {**_PUBLISHED, "annotator": "cm", "inference": "em", "alpha0": 0.01, "epsilon0": 0.0, "gamma0": 0.01, **_ALONE},
    ),
    "ibcc": Method(
        "independent Bayesian classifier combination: the same by VB",
        BSC,
        {**_PUBLISHED, "annotator": "cm", "alpha0": 1.0, "epsilon0": 1.0, **_ALONE},
    ),
    "mace": Method(
        "MACE: annotators know or guess, all labels alike, best of ten starts",
        BSC,
        {
            **_PUBLISHED,
            "annotator": "spam",
            "alpha0": 0.5,
            "epsilon0": 0.0,
            "guess_prior": 0.1,
            "n_init": 10,
            "random_state": 0,
            **_ALONE,
            "truth": "uniform",
        },
    ),
    "hmm-crowd": Method(
        "a hidden Markov model with an accuracy for each label",
        BSC,
        {
            **_PUBLISHED,
            "annotator": "cv",
            "inference": "em-annotators",
            "alpha0": 0.1,
            "epsilon0": 0.0,
            "gamma0": 0.1,
            "kappa0": 0.01,
            "temper": 1.0,
        },
    ),
    "crf-ma": Method("a CRF over the text, annotators right or wrong by document", CRFMA, {}),
    "bsc-acc": Method("one accuracy for each annotator", BSC, {**_PUBLISHED, "annotator": "acc"}),
    "bsc-spam": Method("knows, or guesses from a habit (as in MACE)", BSC, {**_PUBLISHED, "annotator": "spam"}),
    "bsc-cv": Method("an accuracy for each true label", BSC, {**_PUBLISHED, "annotator": "cv"}),
    "bsc-cm": Method("a confusion matrix", BSC, {**_PUBLISHED, "annotator": "cm"}),
    "bsc-seq": Method("a confusion matrix for each previous label", BSC, {**_PUBLISHED, "annotator": "seq"}),
    "bsc-cm-notext": Method("bsc-cm without words", BSC, {**_PUBLISHED, "annotator": "cm", "text": False}),
    "bsc-seq-notext": Method("bsc-seq without words", BSC, {**_PUBLISHED, "annotator": "seq", "text": False}),
    "bsc-cm-notrans": Method(
        "bsc-cm without transitions", BSC, {**_PUBLISHED, "annotator": "cm", "truth": "independent"}
    ),
    "bsc-seq-notrans": Method(
        "bsc-seq without transitions", BSC, {**_PUBLISHED, "annotator": "seq", "truth": "independent"}
    ),
}
"""The methods by name, as the command line has them."""


_GONE = {"bsc-span": "'auto' has whole spans as evidence", "silent-vote": "it is called 'mv-abstain'"}

DEFAULT_METHOD = "auto"
"""The method that is used unless another is named."""


@names_settings
def estimator(
    method: MethodName | str = DEFAULT_METHOD, **settings: Unpack[MethodSettings]
) -> BSC | CRFMA | MajorityVote:
    """The estimator that a method's name stands for, with some settings changed.

    >>> estimator("auto", annotator="cm", max_iter=5)
    BSC(annotator='cm', method='auto')
    >>> estimator("bsc-cm", max_itre=5)
    Traceback (most recent call last):
    quorate.errors.UnknownOptionError: estimator has no setting 'max_itre' (did you mean 'max_iter'?)
    """
    if method in _GONE:
        raise SettingsError(f"there is no method {method!r} any more ({_GONE[method]})")
    if method not in METHODS:
        raise SettingsError(f"unknown method {method!r} ({did_you_mean(method, METHODS)})")
    _, kind, fixed = METHODS[method]
    known = kind.parameters()
    for name in settings:
        if name not in known:
            raise UnknownOptionError(f"method {method!r} has no setting {name!r} ({did_you_mean(name, known)})")
    called = {"method": method} if "method" in known else {}  # the others are named by their class
    return kind(**{**fixed, **called, **settings})
