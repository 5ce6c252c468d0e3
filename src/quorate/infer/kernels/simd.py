"""Vectors of doubles inside compiled code: arithmetic that compilers do not vectorise by themselves on short loops.

A *quad* is four doubles, a piece of a row of labels; *lanes* are eight, one for each of eight documents that are worked
on side by side. Both are values like any number: load them from a flat array, compute, store them. Every
operation is an instruction or a few in the caller's compiled code.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, overload, register_model

__all__ = [
    "LANES",
    "WIDTH",
    "add",
    "collect",
    "distribute",
    "exp",
    "fused",
    "load_lanes",
    "load_quad",
    "log",
    "lost_lanes",
    "multiply",
    "product_sum",
    "scale",
    "spread_lanes",
    "spread_quad",
    "store",
    "sum_of",
    "where_above",
]

WIDTH = 4
LANES = 8
_PLACE = ir.IntType(64)
_ALIGNED = 8  # doubles are aligned to their own size only


class _Vector(types.Type):
    """Some doubles as one value."""

    def __init__(self, size: int) -> None:
        super().__init__(name=f"Vector{size}")
        self.size = size
        self.ir = ir.VectorType(ir.DoubleType(), size)
        self.bits = ir.VectorType(ir.IntType(64), size)

    def filled(self, number: float) -> ir.Constant:
        """The same number in all places."""
        return ir.Constant(self.ir, [number] * self.size)

    def filled_bits(self, number: int) -> ir.Constant:
        """The same integer in all places."""
        return ir.Constant(self.bits, [number] * self.size)


_QUAD, _LANE = _Vector(WIDTH), _Vector(LANES)


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: _Vector) -> None:
        super().__init__(manager, kind, kind.ir)


def _doubles(array: Any, *, written: bool = False) -> None:
    """Refuse anything but doubles end to end."""
    fits = isinstance(array, types.Array) and array.dtype == types.float64 and array.layout == "C"
    if not fits or (written and not array.mutable):
        raise TypingError(f"vectors lie in flat arrays of doubles, not in {array}")


def _operation(function: Callable[..., Any]) -> Callable[..., Any]:
    """For type checkers: the caller's arguments are not the function's own."""
    return intrinsic(function)


class _Written:
    """Writes instructions: vectors that lie in the arrays among an operation's arguments."""

    def __init__(self, context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> None:
        self._context, self.builder, self._kinds, self._values = context, builder, signature.args, arguments

    def _data(self, array: int) -> ir.Value:
        made = self._context.make_array(self._kinds[array])(self._context, self.builder, self._values[array])
        return made.data

    def _pointer(self, array: int, place: ir.Value, kind: _Vector) -> ir.Value:
        return self.builder.bitcast(self.builder.gep(self._data(array), [place]), kind.ir.as_pointer())

    def load(self, array: int, place: ir.Value, kind: _Vector) -> ir.Value:
        """From the array in this argument."""
        return self.builder.load(self._pointer(array, place, kind), align=_ALIGNED)

    def store(self, value: ir.Value, array: int, place: ir.Value, kind: _Vector) -> None:
        """Into the array in this argument."""
        self.builder.store(value, self._pointer(array, place, kind), align=_ALIGNED)

    def integers(self, array: int) -> list[ir.Value]:
        """The first entries of an array of integers, one a lane."""
        data = self._data(array)
        return [self.builder.load(self.builder.gep(data, [_place(lane)])) for lane in range(LANES)]

    def picked(self, one: ir.Value, other: ir.Value | None, places: list[int]) -> ir.Value:
        """The entries at these places of two vectors end to end."""
        numbers = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)
        return self.builder.shuffle_vector(
            one, ir.Constant(one.type, ir.Undefined) if other is None else other, numbers
        )

    def turned(self, vectors: list[ir.Value]) -> list[ir.Value]:
        """Four vectors of eight, as two squares of four by four side by side, each turned."""
        one, two, three, four = vectors
        even, odd = [0, 8, 2, 10, 4, 12, 6, 14], [1, 9, 3, 11, 5, 13, 7, 15]
        front, rear = [0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]
        upper = [self.picked(one, two, places) for places in (even, odd)]
        lower = [self.picked(three, four, places) for places in (even, odd)]
        return [self.picked(upper[n], lower[n], places) for places in (front, rear) for n in (0, 1)]


def _place(number: int) -> ir.Constant:
    return ir.Constant(_PLACE, number)


def _loading(kind: _Vector) -> Callable[..., Any]:
    def load(typingctx, array, place):  # type: ignore[no-untyped-def]
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _Written(context, builder, signature, arguments).load(0, arguments[1], kind)

        _doubles(array)
        return kind(array, types.intp), emit

    return _operation(load)


def _spreading(kind: _Vector) -> Callable[..., Any]:
    def spread(typingctx, number):  # type: ignore[no-untyped-def]
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            undefined = ir.Constant(kind.ir, ir.Undefined)
            one = builder.insert_element(undefined, arguments[0], ir.Constant(ir.IntType(32), 0))
            return _Written(context, builder, signature, arguments).picked(one, None, [0] * kind.size)

        return kind(types.float64), emit

    return _operation(spread)


load_quad, load_lanes = _loading(_QUAD), _loading(_LANE)
spread_quad, spread_lanes = _spreading(_QUAD), _spreading(_LANE)


@_operation
def store(typingctx, array, place, value):  # type: ignore[no-untyped-def]
    """Into a flat array, from this place on."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _Written(context, builder, signature, arguments).store(arguments[2], 0, arguments[1], value)
        return context.get_dummy_value()

    _doubles(array, written=True)
    return types.void(array, types.intp, value), emit


@_operation
def fused(typingctx, x, y, z):  # type: ignore[no-untyped-def]
    """x·y + z, in one instruction where there is one."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(x.ir, [x.ir] * 3)
        name = f"llvm.fmuladd.v{x.size}f64"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)

    return x(x, x, x), emit


@_operation
def where_above(typingctx, x, limit, then, otherwise):  # type: ignore[no-untyped-def]
    """``then`` where x > limit, ``otherwise`` elsewhere."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *arguments[:2]), *arguments[2:])

    return x(x, x, x, x), emit


@_operation
def lost_lanes(typingctx, x, product, limit):  # type: ignore[no-untyped-def]
    """A bit for each place where x is above 0 and the product below the limit."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        above = builder.fcmp_ordered(">", arguments[0], x.filled(0.0))
        lost = builder.and_(above, builder.fcmp_ordered("<", arguments[1], arguments[2]))
        return builder.zext(builder.bitcast(lost, ir.IntType(x.size)), _PLACE)

    return types.int64(x, x, x), emit


@_operation
def sum_of(typingctx, x):  # type: ignore[no-untyped-def]
    """The entries added up, by halves."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        parts = [builder.extract_element(arguments[0], ir.Constant(ir.IntType(32), n)) for n in range(x.size)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [builder.fadd(one, other) for one, other in zip(parts[:half], parts[half:], strict=True)]
        return parts[0]

    return types.float64(x), emit


def _arithmetic(instruction: str) -> Callable[..., Any]:
    def compute(typingctx, x, y):  # type: ignore[no-untyped-def]
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return getattr(builder, instruction)(*arguments)

        return x(x, x), emit

    return _operation(compute)


def _define(sign: Callable[..., Any], instruction: str) -> None:
    compute = _arithmetic(instruction)

    @overload(sign, inline="always")
    def defined(x, y):  # type: ignore[no-untyped-def]
        if isinstance(x, _Vector) and x is y:
            return lambda x, y: compute(x, y)
        return None


for _sign, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _define(_sign, _instruction)


@_operation
def collect(typingctx, out, o, x, rows_of_x, y, rows_of_y, offset):  # type: ignore[no-untyped-def]
    """For four labels: the product of each lane's rows of x and y, turned so that a label's lanes lie together."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        written = _Written(context, builder, signature, arguments)
        quads = [
            builder.fmul(
                written.load(2, builder.add(one, arguments[6]), _QUAD),
                written.load(4, builder.add(other, arguments[6]), _QUAD),
            )
            for one, other in zip(written.integers(3), written.integers(5), strict=True)
        ]
        joined = [written.picked(quads[n], quads[n + WIDTH], list(range(LANES))) for n in range(WIDTH)]
        for label, lanes in enumerate(written.turned(joined)):
            written.store(lanes, 0, builder.add(arguments[1], _place(label * LANES)), _LANE)
        return context.get_dummy_value()

    _doubles(out, written=True)
    _doubles(x)
    _doubles(y)
    return types.void(out, types.intp, x, rows_of_x, y, rows_of_y, types.intp), emit


@_operation
def distribute(typingctx, out, rows_of_out, x, p, offset):  # type: ignore[no-untyped-def]
    """For four labels: add what each lane has of x to its row of ``out``."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        written = _Written(context, builder, signature, arguments)
        labels = [written.load(2, builder.add(arguments[3], _place(n * LANES)), _LANE) for n in range(WIDTH)]
        turned = written.turned(labels)
        for lane, row in enumerate(written.integers(1)):
            half = list(range(WIDTH)) if lane < WIDTH else list(range(WIDTH, LANES))
            place = builder.add(row, arguments[4])
            quad = written.picked(turned[lane % WIDTH], None, half)
            written.store(builder.fadd(written.load(0, place, _QUAD), quad), 0, place, _QUAD)
        return context.get_dummy_value()

    _doubles(out, written=True)
    _doubles(x)
    return types.void(out, rows_of_out, x, types.intp, types.intp), emit


@_operation
def _two_to_the(typingctx, x):  # type: ignore[no-untyped-def]
    """2^k, for x = 1.5·2^52 + k: the exponent is among the last bits of x."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        shifted = builder.shl(builder.bitcast(arguments[0], x.bits), x.filled_bits(52))
        return builder.bitcast(builder.add(shifted, x.filled_bits(1023 << 52)), x.ir)

    return x(x), emit


@_operation
def _exponent(typingctx, x):  # type: ignore[no-untyped-def]
    """k, where x > 0 is 2^k·m and m is in [1, 2)."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.lshr(builder.bitcast(arguments[0], x.bits), x.filled_bits(52))
        number = builder.bitcast(builder.or_(bits, x.filled_bits(0x433 << 52)), x.ir)  # 2^52 + k + 1023
        return builder.fsub(number, x.filled(2.0**52 + 1023.0))

    return x(x), emit


@_operation
def _mantissa(typingctx, x):  # type: ignore[no-untyped-def]
    """m, where x > 0 is 2^k·m and m is in [1, 2)."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.and_(builder.bitcast(arguments[0], x.bits), x.filled_bits((1 << 52) - 1))
        return builder.bitcast(builder.or_(bits, x.filled_bits(1023 << 52)), x.ir)

    return x(x), emit


_ROUNDING = 1.5 * 2.0**52
_LOG2_E = 1.4426950408889634
_LN2, _LN2_REST = 0.693147180369123816490, 1.90821492927058770002e-10  # the first has few enough bits for k·ln 2
_LEAST_EXPONENT = -708.0


@njit(nogil=True, cache=True)
def exp(x):  # type: ignore[no-untyped-def]
    """e^x of lanes, for x up to 700; 0 below −708."""
    rounded = fused(x, spread_lanes(_LOG2_E), spread_lanes(_ROUNDING))
    k = rounded - spread_lanes(_ROUNDING)
    r = fused(k, spread_lanes(-_LN2_REST), fused(k, spread_lanes(-_LN2), x))
    series = spread_lanes(1.0 / 479001600.0)
    for coefficient in (
        1.0 / 39916800.0,
        1.0 / 3628800.0,
        1.0 / 362880.0,
        1.0 / 40320.0,
        1.0 / 5040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ):
        series = fused(series, r, spread_lanes(coefficient))
    return where_above(x, spread_lanes(_LEAST_EXPONENT), series * _two_to_the(rounded), spread_lanes(0.0))


@njit(nogil=True, cache=True)
def log(x):  # type: ignore[no-untyped-def]
    """ln x of lanes, for normal numbers above 0."""
    k, m = _exponent(x), _mantissa(x)
    one, half = spread_lanes(1.0), spread_lanes(0.5)
    root = spread_lanes(1.4142135623730951)
    k = where_above(m, root, k + one, k)
    m = where_above(m, root, m * half, m)
    s = (m - one) / (m + one)
    z = s * s
    series = spread_lanes(1.0 / 21.0)
    for number in (19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
        series = fused(series, z, spread_lanes(1.0 / number))
    twice = s + s
    rest = fused(k, spread_lanes(_LN2_REST), twice * z * series)
    return fused(k, spread_lanes(_LN2), twice) + rest


@njit(nogil=True, cache=True)
def multiply(out, o, x, p, y, q, blocks):  # type: ignore[no-untyped-def]
    """Rows, each ``blocks`` quads from its place on: out ← x·y."""
    for n in range(0, blocks * WIDTH, WIDTH):
        store(out, o + n, load_quad(x, p + n) * load_quad(y, q + n))


@njit(nogil=True, cache=True)
def scale(out, o, x, p, factor, blocks):  # type: ignore[no-untyped-def]
    """Rows: out ← factor·x."""
    for n in range(0, blocks * WIDTH, WIDTH):
        store(out, o + n, spread_quad(factor) * load_quad(x, p + n))


@njit(nogil=True, cache=True)
def add(out, o, x, p, factor, blocks):  # type: ignore[no-untyped-def]
    """Rows: out ← out + factor·x."""
    for n in range(0, blocks * WIDTH, WIDTH):
        store(out, o + n, fused(spread_quad(factor), load_quad(x, p + n), load_quad(out, o + n)))


@njit(nogil=True, cache=True)
def product_sum(x, p, y, q, blocks):  # type: ignore[no-untyped-def]
    """Rows: Σ x·y."""
    products = spread_quad(0.0)
    for n in range(0, blocks * WIDTH, WIDTH):
        products = fused(load_quad(x, p + n), load_quad(y, q + n), products)
    return sum_of(products)
