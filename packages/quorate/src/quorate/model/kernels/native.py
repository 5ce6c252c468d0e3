"""Kernels are written in C (the folder ``native`` of the repository), and declared in Python.

A declaration is a function without a body, of the same name and with the same arguments in the same order. An array
goes over as its place in memory, its length and the numbers in one entry; a NamedTuple as a pointer to a struct of its
fields; numbers as ``int64_t``, ``double`` and ``bool``. `tests/unit/test_native.py` compares declarations with headers
and sources. A call lets go of the interpreter lock.

The library is there for two levels of processor; the better one that this machine can run is loaded on the first call.
"""

from __future__ import annotations

import ctypes
import math
import sys
import typing
from collections.abc import Callable
from functools import cache, partial, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from quorate.errors import QuorateError

P = ParamSpec("P")
R = TypeVar("R")

DECLARED: list[Callable[..., Any]] = []
_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
_BASE, _VECTORS = "base", "avx2"
_MEND = "install quorate again, or in a checkout: python packages/quorate/hatch_build.py"
_NUMBERS: dict[Any, Any] = {int: ctypes.c_int64, float: ctypes.c_double, bool: ctypes.c_bool}


class _Array(ctypes.Structure):
    """An array of NumPy, as in ``native/arrays.h``."""

    _fields_ = (("at", ctypes.c_void_p), ("n", ctypes.c_int64), ("m", ctypes.c_int64))


def library_file(level: str) -> Path:
    """Where the build puts the library of a level, ``base`` or ``avx2``."""
    return Path(__file__).with_name(f"kernels-{level}{_SUFFIX}")


@cache
def _library() -> ctypes.CDLL:
    library = _opened(library_file(_BASE))
    has_avx2 = _function(library, "has_avx2")
    has_avx2.restype = ctypes.c_bool
    better = library_file(_VECTORS)
    return _opened(better) if has_avx2() and better.exists() else library


def _opened(path: Path) -> ctypes.CDLL:
    if not path.exists():
        raise QuorateError(f"{path}: the compiled kernels are missing ({_MEND})")
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        told = str(error).removeprefix(f"{path}: ")
        raise QuorateError(
            f"{path}: the compiled kernels are damaged, or of another machine: {told} ({_MEND})"
        ) from None


def _function(library: ctypes.CDLL, name: str) -> Any:
    """A function of the library: an object of its own, whose types nobody else sets."""
    try:
        return library[name]
    except AttributeError:
        raise QuorateError(f"{library._name}: the compiled kernels are of another version ({_MEND})") from None


def native(declared: Callable[P, R]) -> Callable[P, R]:
    """The compiled function that a declaration stands for."""
    DECLARED.append(declared)

    @wraps(declared)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs:
            raise TypeError(f"{declared.__name__} takes its arguments by place")
        function, convert, ran_out = _bound(declared)
        result: R = function(*[turn(value) for turn, value in zip(convert, args, strict=True)])
        if ran_out():
            raise MemoryError(f"not enough memory for {declared.__name__}")
        return result

    return call


@cache
def _bound(declared: Callable[..., Any]) -> tuple[Any, list[Callable[[Any], Any]], Any]:
    """The function of the library, what turns each argument into what it takes, and what tells of lacking memory."""
    library = _library()
    hints = typing.get_type_hints(declared)
    returned = hints.pop("return")
    function = _function(library, declared.__name__)
    function.restype = None if returned is type(None) else _NUMBERS[returned]
    passed = {name: _passed(hint) for name, hint in hints.items()}
    function.argtypes = [kind for kind, _ in passed.values()]
    ran_out = _function(library, "ran_out_of_memory")
    ran_out.restype = ctypes.c_bool
    return function, [turn for _, turn in passed.values()], ran_out


def number_type(hint: Any) -> Any:
    """Of the numbers in an array, where a hint says ``NDArray[…]``; ``None`` for other hints.

    >>> number_type(NDArray[np.int32]).__name__
    'int32'
    """
    origin, given = typing.get_origin(hint), typing.get_args(hint)
    if origin is NDArray:  # an alias of its own from NumPy 2.5 on
        return given[0]
    return typing.get_args(given[1])[0] if origin is np.ndarray else None


@cache
def _passed(hint: Any) -> tuple[Any, Callable[[Any], Any]]:
    """How an argument of this type goes over: its type in C, and what makes it of a value."""
    if hint in _NUMBERS:
        return _NUMBERS[hint], hint
    number = number_type(hint)
    if number is not None:
        return _Array, partial(_array, np.dtype(number))
    struct, fields = _struct(hint)
    return ctypes.POINTER(struct), lambda values: ctypes.byref(_filled(struct, fields, values))


@cache
def _struct(kind: Any) -> tuple[Any, list[Callable[[Any], Any]]]:
    """The struct of a NamedTuple, and what makes each of its fields."""
    passed = {name: _passed(hint) for name, hint in typing.get_type_hints(kind).items()}
    struct = type(kind.__name__, (ctypes.Structure,), {"_fields_": [(name, of) for name, (of, _) in passed.items()]})
    return struct, [turn for _, turn in passed.values()]


def _filled(struct: Any, fields: list[Callable[[Any], Any]], values: Any) -> Any:
    return struct(*[turn(value) for turn, value in zip(fields, values, strict=True)])


def _array(dtype: np.dtype[Any], array: Any) -> _Array:
    if array.dtype != dtype or not array.flags.c_contiguous:
        raise TypeError(f"a kernel takes numbers of type {dtype} end to end, not {array.dtype} {array.strides}")
    n, *entry = array.shape
    return _Array(array.ctypes.data, n, math.prod(entry))
