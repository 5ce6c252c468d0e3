"""Every type that a public function or attribute gives can be imported from a public module."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from enum import Enum
from functools import cache, cached_property
from types import ModuleType
from typing import Any, get_args, get_type_hints

import pytest

import quorate
import quorate.types
from quorate import Corpus
from quorate.estimators import capabilities

MODULES: dict[str, ModuleType] = {
    name: getattr(quorate, name)
    for name in ("types", "audit", "datasets", "errors", "formats", "label_studio", "report", "score", "simulate")
}
# What the rooms of the library ask of an estimator, a corpus or a result: the seams between them, not for users.
SEAMS = {
    *("checked_settings", "decided_documents", "encoded_as", "engines", "go_on_from", "loaded", "of_file", "past"),
    *("repaired", "span_habits", "stored"),
}
# What a fit learned can be kept, passed on and saved; of what parts it is made is the library's own affair.
CLOSED = {quorate.types.Fitted}


def exported() -> set[type]:
    places = [*((quorate, name) for name in quorate.__all__), *((m, n) for m in MODULES.values() for n in m.__all__)]
    return {value for module, name in places if isinstance(value := getattr(module, name), type)}


@cache
def names_for_checkers() -> dict[str, Any]:
    """What modules import for type checkers alone, by name."""
    import pandas
    import pyarrow
    from matplotlib.figure import Figure

    from quorate.formats.frames import CorpusTable

    public = {name: getattr(module, name) for module in (quorate, *MODULES.values()) for name in module.__all__}
    ours = {name: value for name, value in public.items() if isinstance(value, type)}
    others = {"Figure": Figure, "pandas": pandas, "pyarrow": pyarrow}
    return {**ours, **others, "CorpusTable": CorpusTable, "ProgressCallback": Any}


def hints(value: Any) -> dict[str, Any]:
    return get_type_hints(value, localns={**names_for_checkers(), **vars(sys.modules[value.__module__])})


def types_in(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and not get_args(hint):
        yield hint
    for inner in get_args(hint):
        for one in inner if isinstance(inner, list) else [inner]:
            yield from types_in(one)


def returned(function: Any) -> Iterator[type]:
    return types_in(hints(function).get("return"))


def given_by(kind: type) -> Iterator[tuple[str, type]]:
    """The types of the fields of a class, and of what its methods and properties return."""
    for name, hint in hints(kind).items():
        if not name.startswith("_"):
            yield from ((name, one) for one in types_in(hint))
    for name, member in vars(kind).items():
        if name in SEAMS or (name.startswith("_") and name not in ("__iter__", "__getitem__")):
            continue
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        function = member.func if isinstance(member, cached_property) else inspect.unwrap(function)
        if inspect.isfunction(function):
            yield from ((name, one) for one in returned(function))


def ours(kind: type) -> bool:
    return kind.__module__.startswith("quorate")


@pytest.fixture(scope="module")
def fitted() -> list[object]:
    few = Corpus(quorate.sample().documents[:40])
    taught, updated = quorate.BSC(tagger="crf").fit(few), quorate.BSC("cm", max_iter=2).fit(few).update(few)
    models = [taught, updated, quorate.CRFMA(max_iter=1, iterations=2).fit(few), quorate.MajorityVote().fit(few)]
    return [*models, *(model.result_ for model in models)]


def test_every_type_that_a_user_gets_can_be_imported(fitted: list[object]) -> None:
    found: dict[type, str] = {}
    for name in quorate.__all__:
        value = getattr(quorate, name)
        found |= dict.fromkeys([value] if isinstance(value, type) else [], name)
        if inspect.isfunction(value):
            found |= dict.fromkeys(returned(inspect.unwrap(value)), name)
    for place, module in MODULES.items():
        for name in module.__all__:
            value = getattr(module, name)
            found |= dict.fromkeys([value] if isinstance(value, type) else [], f"{place}.{name}")
            if inspect.isfunction(value):
                found |= dict.fromkeys(returned(inspect.unwrap(value)), f"{place}.{name}")
    for one in fitted:  # what is set in a fit is no annotation of a class
        for name, value in vars(one).items():
            if not name.startswith("_"):
                held = [value, *(value if isinstance(value, tuple) else ())]
                found |= {type(each): f"{type(one).__name__}.{name}" for each in held}
    queue = [kind for kind in found if ours(kind)]
    for kind in queue:
        for name, inner in [] if issubclass(kind, Enum) or kind in CLOSED else given_by(kind):
            if ours(inner) and inner not in found:
                found[inner] = f"{kind.__name__}.{name}"
                queue.append(inner)
    public = exported()
    assert len(queue) > 80
    assert {f"{kind.__module__}.{kind.__name__}": found[kind] for kind in queue if kind not in public} == {}


def test_seams_are_what_rooms_ask_of_each_other() -> None:
    asked = {
        name
        for protocol in vars(capabilities).values()
        if inspect.isclass(protocol) and protocol.__module__ == capabilities.__name__
        for name in vars(protocol)
    }
    kinds = (quorate.BSC, quorate.CRFMA, Corpus, quorate.Result, quorate.TagSet)
    assert asked.union(*map(vars, kinds)) >= SEAMS


def test_types_are_there_once() -> None:
    assert sorted(quorate.types.__all__) == quorate.types.__all__
    assert not set(quorate.types.__all__) & set(quorate.__all__)
