"""The compiled kernels are what Python declares: a mismatch would read or write where it should not."""

from __future__ import annotations

import ctypes
import re
import typing
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quorate
import quorate.crowd.kernels
import quorate.model.kernels.chain
import quorate.model.kernels.distinct
import quorate.model.kernels.gain
import quorate.model.kernels.gamma
import quorate.model.kernels.layout
import quorate.model.kernels.likely
import quorate.model.kernels.lines
import quorate.model.kernels.marked
import quorate.model.kernels.output
import quorate.model.kernels.single
import quorate.model.kernels.spans
import quorate.model.kernels.tallies
import quorate.taggers.kernels
from quorate.errors import QuorateError
from quorate.model.kernels import native as native_module
from quorate.model.kernels.native import DECLARED, library_file, native, number_type

SOURCES = Path(__file__).parents[2] / "native"
ARRAYS = {
    "Floats": np.float64,
    "Floats32": np.float32,
    "Ints": np.int64,
    "Ints32": np.int32,
    "Ints16": np.int16,
    "Codes": np.int8,
    "Bytes": np.uint8,
    "Bools": np.bool_,
    "Hashes": np.uint64,
}
NUMBERS = {"int64_t": int, "double": float, "bool": bool, "void": type(None)}
pytestmark = pytest.mark.skipif(not SOURCES.exists(), reason="the sources of the kernels are not here")


@cache
def text() -> str:
    """All headers and sources without comments."""
    whole = "\n".join(path.read_text() for path in sorted(SOURCES.glob("*.[ch]")))
    return re.sub(r"/\*.*?\*/", "", whole, flags=re.S)


@cache
def structs() -> dict[str, list[tuple[str, str]]]:
    """Name of every struct: its fields' types and names in order."""
    found = {}
    for body, name in re.findall(r"typedef struct \{(.*?)\} (\w+);", text(), flags=re.S):
        fields = []
        for line in filter(None, (part.strip() for part in body.split(";"))):
            kind, names = line.split(maxsplit=1)
            fields += [(kind, each.strip()) for each in names.split(",")]
        found[name] = fields
    return found


@cache
def functions() -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """Name of every exported function: what it returns, its arguments' types and names."""
    found = {}
    for returned, name, arguments in re.findall(r"KERNEL (\w+) (\w+)\((.*?)\) \{", text(), flags=re.S):
        split = [part.split() for part in arguments.replace("const ", "").replace("*", " * ").split(",")]
        found[name] = (returned, [(" ".join(words[:-1]), words[-1]) for words in split if words != ["void"]])
    return found


def same(declared: Any, kind: str) -> bool:
    """Whether a type of Python goes over as this type of C."""
    if kind in ARRAYS:
        return number_type(declared) is ARRAYS[kind]
    if kind in NUMBERS:
        return bool(declared is NUMBERS[kind])
    struct = kind.removesuffix(" *")
    hints = typing.get_type_hints(declared)
    fields = structs()[struct]
    return (
        kind.endswith(" *")
        and declared.__name__.lstrip("_") == struct
        and list(hints) == [name for _, name in fields]
        and all(same(hints[name], of) for of, name in fields)
    )


@pytest.mark.parametrize("declared", DECLARED, ids=lambda declared: declared.__name__)
def test_a_declaration_is_what_the_source_says(declared: Any) -> None:
    returned, arguments = functions()[declared.__name__]
    hints = typing.get_type_hints(declared)
    assert same(hints.pop("return"), returned)
    assert list(hints) == [name for _, name in arguments]
    assert all(same(hints[name], kind) for kind, name in arguments)


def test_everything_that_is_exported_is_declared() -> None:
    assert {declared.__name__ for declared in DECLARED} | {"has_avx2", "ran_out_of_memory"} == set(functions())


def test_the_simpler_library_has_all_of_it() -> None:
    """What a machine without wide vectors runs."""
    library = ctypes.CDLL(str(library_file("base")))
    assert all(hasattr(library, name) for name in functions())


def test_both_libraries_give_the_same_consensus(monkeypatch: pytest.MonkeyPatch) -> None:
    """They round differently, and that is all."""
    corpus = quorate.sample()
    best = quorate.aggregate(corpus, method="bsc-seq")
    simple = ctypes.CDLL(str(library_file("base")))
    monkeypatch.setattr(native_module, "_library", lambda: simple)
    native_module._bound.cache_clear()
    try:
        other = quorate.aggregate(corpus, method="bsc-seq")
    finally:
        native_module._bound.cache_clear()
    assert [one.tags for one in other] == [one.tags for one in best]
    for ours, theirs in zip(best, other, strict=True):
        np.testing.assert_allclose(ours.token_confidence, theirs.token_confidence, rtol=1e-6)


def test_an_array_of_another_type_or_order_is_refused() -> None:
    merge = quorate.model.kernels.chain.merge
    numbers, rows, out = np.zeros(2, np.int32), np.ones((2, 3)), np.zeros((1, 3))
    merge(numbers, rows, out)
    assert out.tolist() == [[2.0, 2.0, 2.0]]
    with pytest.raises(TypeError, match="int32"):
        merge(np.zeros(2, np.int64), rows, out)
    with pytest.raises(TypeError, match="float64"):
        merge(numbers, np.ones((3, 2)).T, out)


def test_too_little_memory_is_told() -> None:
    class Endless(np.ndarray[Any, Any]):
        """Says that it is longer than any memory."""

        @property  # type: ignore[misc]
        def shape(self) -> tuple[int]:
            return (1 << 58,)

    from quorate.model.kernels.single import Steps, viterbi

    few = np.zeros(1)
    steps = Steps(few.view(Endless), np.zeros((1, 1)), few, few, few, 1.0, False)
    with pytest.raises(MemoryError, match="viterbi"):
        viterbi(np.zeros((1, 1)), 1, steps, few, np.zeros((1, 1), np.int32), np.zeros(1, np.int32))


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "are missing"), (b"", "are damaged, or of another machine"), (b"MZ" + bytes(4096), "are damaged")],
    ids=["missing", "empty", "of another system"],
)
def test_a_library_that_cannot_be_loaded_is_one_line(
    content: bytes | None, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "kernels-base.so"
    if content is not None:
        library.write_bytes(content)
    monkeypatch.setattr(native_module, "library_file", lambda level: library)
    with pytest.raises(QuorateError) as error:
        native_module._library.__wrapped__()
    assert str(error.value).startswith(f"{library}: the compiled kernels {told}")
    assert str(error.value).endswith(
        "(install quorate again, or in a checkout: python packages/quorate/hatch_build.py)"
    )
    assert "\n" not in str(error.value)


def test_a_library_without_a_function_is_of_another_version() -> None:
    library = ctypes.CDLL(str(library_file("base")))
    with pytest.raises(QuorateError, match="of another version"):
        native_module._function(library, "no_such_kernel")


def test_arguments_by_name_are_refused() -> None:
    @native
    def merge(numbers: Any, rows: Any, out: Any) -> None: ...

    DECLARED.pop()
    with pytest.raises(TypeError, match="by place"):
        merge(numbers=1, rows=2, out=3)
