"""Options have names and types: type checkers know those that there are, and a misspelt one is refused."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

import quorate
from quorate import (
    BSC,
    CRFMA,
    METHODS,
    AbstainVote,
    BestWorker,
    Corpus,
    Document,
    MajorityVote,
    MethodSettings,
    SettingsError,
    SpanVote,
    UnknownOptionError,
    WorstWorker,
    formats,
)
from quorate.corpus.offsets import Unit
from quorate.corpus.schemes import Scheme
from quorate.estimators import options
from quorate.formats.opened import Samples
from quorate.model.engines.factory import EngineName
from quorate.model.settings import Settings, Ties
from quorate.storage import corpora

ONE = Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O")})])
ESTIMATORS: list[Any] = [BSC, CRFMA, MajorityVote, AbstainVote, SpanVote, BestWorker, WorstWorker]


def members(hint: Any) -> set[Any]:
    """A union as the types in it, and a literal as its values."""
    if get_origin(hint) is Literal:
        return set(get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return set().union(*(members(one) for one in get_args(hint)))
    return {hint}


def values(hint: Any) -> set[str]:
    return {one for one in members(hint) if type(one) is str}


def test_the_settings_that_checkers_know_are_the_parameters_of_the_estimators() -> None:
    told = get_type_hints(MethodSettings)
    taken: dict[str, set[Any]] = {}
    for kind in ESTIMATORS:
        hints = get_type_hints(kind.__init__)
        hints |= get_type_hints(options.FitSettings) if "settings" in hints else {}
        for name in kind.parameters():
            taken.setdefault(name, set()).update(members(hints[name]))
    assert taken.pop("method") == {str, type(None)}  # an estimator's own; a call names its method elsewhere
    assert {name: members(hint) for name, hint in told.items()} == taken


@pytest.mark.parametrize("field", [one for one in Settings.__dataclass_fields__.values() if one.metadata["kind"]])
def test_a_choice_is_a_literal_of_every_value(field: Any) -> None:
    assert values(get_type_hints(MethodSettings)[field.name]) == {one.value for one in field.metadata["kind"]}


@pytest.mark.parametrize(
    ("hint", "kind"),
    [
        (options.TiesName, Ties),
        (options.EngineChoice, EngineName),
        (formats.SamplesName, Samples),
        (formats.UnitName, Unit),
        (options.SchemeName, Scheme),
    ],
)
def test_other_choices_are_literals_of_every_value(hint: Any, kind: type[StrEnum]) -> None:
    assert values(hint) == {one.value for one in kind}


def test_methods_are_a_literal_of_every_name() -> None:
    assert get_args(options.MethodName) == tuple(METHODS)


def test_every_setting_has_one_default() -> None:
    plain, made = Settings().plain(), BSC().get_params()
    assert {name: made[name] for name in plain} == plain


def test_files_are_read_with_the_same_options_everywhere() -> None:
    by_hand = [dict(inspect.signature(one).parameters) for one in (formats.read, formats.read_layers, corpora.read)]
    by_hand[1].pop("layers")  # those of an earlier read, which only layers have
    assert by_hand[0] == by_hand[1] == by_hand[2]


@pytest.mark.parametrize(
    ("called", "option", "message"),
    [
        (partial(quorate.read, "x"), "map_lables", "read has no option 'map_lables' (did you mean 'map_labels'?)"),
        (partial(quorate.read_layers, "x"), "ofsets", "read_layers has no option 'ofsets' (did you mean 'offsets'?)"),
        (quorate.estimator, "max_itre", "estimator has no setting 'max_itre' (did you mean 'max_iter'?)"),
        (partial(quorate.aggregate, ONE), "max_itre", "'max_itre' (did you mean 'max_iter'?)"),
        (partial(quorate.aggregate, ONE), "knwon", "aggregate has no setting 'knwon' (did you mean 'known'?)"),
        (partial(quorate.aggregate, ONE, "mv"), "tie", "aggregate has no setting 'tie' (did you mean 'ties'?)"),
        (partial(quorate.aggregate, ONE, "mv"), "iterations", "method 'mv' has no setting 'iterations' (one of: ti"),
        (partial(quorate.aggregate_layers, {"X": ONE}), "temprr", "did you mean 'temper'?"),
        (partial(quorate.fit_stream, [ONE]), "kapa0", "did you mean 'kappa0'?"),
        (BSC, "max_itre", "unknown setting 'max_itre' (did you mean 'max_iter'?)"),
        (CRFMA, "iteration", "CRFMA has no option 'iteration' (did you mean 'iterations'?)"),
        (WorstWorker, "n_job", "has no option 'n_job' (did you mean 'n_jobs'?)"),
        (SpanVote, "decode", "SpanVote has no option 'decode' (one of: invalid, scheme, n_jobs)"),
        (BSC().save, "document", "save has no option 'document' (did you mean 'documents'?)"),
        (CRFMA().save, "document", "save has no option 'document' (did you mean 'documents'?)"),
        (quorate.LayeredModel().save, "document", "save has no option 'document' (did you mean 'documents'?)"),
        (partial(quorate.LayeredModel().combine, {"X": ONE}), "layer", "combine has no option 'layer'"),
        (partial(BSC().update, ONE), "pases", "update has no option 'pases' (did you mean 'passes'?)"),
        (partial(BSC().update, ONE), "knwon", "update has no option 'knwon' (did you mean 'known'?)"),
        (partial(MajorityVote().fit, ONE), "knwon", "fit has no option 'knwon' (did you mean 'known'?)"),
        (partial(quorate.report.write_report, BSC(), "r.html"), "document", "(did you mean 'documents'?)"),
        (partial(quorate.next_labels, ONE), "stratgy", "next_labels has no option 'stratgy' (did you mean"),
        (partial(quorate.audit.plan, "c.jsonl"), "sequental", "plan has no option 'sequental' (did you mean"),
        (partial(quorate.audit.result, "c.jsonl", "a.jsonl"), "confidense", "result has no option 'confidense' (did"),
        (partial(quorate.load, "m.quorate"), "maxsize", "load has no option 'maxsize' (did you mean 'max_size'?)"),
        (BSC().set_params, "alfa0", "unknown setting 'alfa0' (did you mean 'alpha0'?)"),
    ],
)  # fmt: skip
def test_a_misspelt_option_is_refused_at_once_with_what_was_meant(
    called: Callable[..., object], option: str, message: str
) -> None:
    with pytest.raises(UnknownOptionError, match=re.escape(message)) as caught:
        called(**{option: 1})
    assert isinstance(caught.value, TypeError)  # as Python itself says it


@pytest.mark.parametrize(
    "function", [quorate.aggregate, quorate.aggregate_layers, quorate.estimator, quorate.fit_stream]
)
def test_notebooks_complete_every_setting(function: Callable[..., object]) -> None:
    assert get_type_hints(MethodSettings).keys() <= inspect.signature(function).parameters.keys()


def test_a_misspelt_method_is_refused_with_what_was_meant(sample: Corpus) -> None:
    with pytest.raises(SettingsError, match=r"unknown method 'bsc-sec' \(did you mean 'bsc-seq'\?\)"):
        quorate.aggregate(sample, "bsc-sec")


def test_estimators_of_others_may_take_any_option() -> None:
    class Own(BSC):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)

    assert Own(max_iter=3).get_params()["max_iter"] == 3
    with pytest.raises(UnknownOptionError, match="unknown setting 'nope'"):
        Own(nope=1)
