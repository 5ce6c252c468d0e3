"""Rows of doubles, four at a time: arithmetic that compilers do not vectorise by themselves on short rows.

A row is a piece of a flat array, ``blocks`` times four long and filled up with zeros, given by its array and its place.
Each function is a few vector instructions in the caller's compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["WIDTH", "add", "keep", "multiply", "product_sum", "scale", "scaled_product", "step"]

WIDTH = 4
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_INDEX = ir.IntType(64)
_ROW = 8  # doubles are aligned to their own size only


class _Rows:
    """Writes the instructions: vectors of rows that the arguments name."""

    def __init__(self, context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> None:
        self.builder, self._context = builder, context
        self._signature, self._arguments = signature, arguments

    def place(self, array: int, at: int) -> ir.Value:
        """Pointer to the row that begins at argument ``at`` of the array in argument ``array``."""
        kind = self._signature.args[array]
        base = self._context.make_array(kind)(self._context, self.builder, self._arguments[array]).data
        return self.builder.gep(base, [self._arguments[at]])

    def load(self, place: ir.Value, index: ir.Value) -> ir.Value:
        """Four entries of a row."""
        pointer = self.builder.gep(place, [index])
        return self.builder.load(self.builder.bitcast(pointer, _VECTOR.as_pointer()), align=_ROW)

    def store(self, value: ir.Value, place: ir.Value, index: ir.Value) -> None:
        """Four entries of a row."""
        pointer = self.builder.gep(place, [index])
        self.builder.store(value, self.builder.bitcast(pointer, _VECTOR.as_pointer()), align=_ROW)

    def spread(self, number: ir.Value) -> ir.Value:
        """The same number four times."""
        one = self.builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        return self.builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), zeros)

    def fused(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """a·b + c, in one instruction where there is one."""
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        name = f"llvm.fmuladd.v{WIDTH}f64"
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), [a, b, c])

    def blocks(self, count: ir.Value) -> Any:
        """A loop over the places of the blocks."""
        return cgutils.for_range_slice(
            self.builder,
            ir.Constant(_INDEX, 0),
            self.builder.mul(count, ir.Constant(_INDEX, WIDTH)),
            ir.Constant(_INDEX, WIDTH),
        )

    def sum(self, vector: ir.Value) -> ir.Value:
        """The four entries added up, two and two."""
        parts = [self.builder.extract_element(vector, ir.Constant(ir.IntType(32), number)) for number in range(WIDTH)]
        return self.builder.fadd(self.builder.fadd(parts[0], parts[2]), self.builder.fadd(parts[1], parts[3]))


def _row_operation(function: Callable[..., Any]) -> Callable[..., Any]:
    """For type checkers: the caller's arguments are not the function's own."""
    return intrinsic(function)


def _zero() -> ir.Value:
    return ir.Constant(_VECTOR, [0.0] * WIDTH)


@_row_operation
def multiply(typingctx, out, o, x, p, y, q, blocks):  # type: ignore[no-untyped-def]
    """out ← x·y."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = _Rows(context, builder, signature, arguments)
        to, one, other = rows.place(0, 1), rows.place(2, 3), rows.place(4, 5)
        with rows.blocks(arguments[6]) as (index, _):
            rows.store(builder.fmul(rows.load(one, index), rows.load(other, index)), to, index)
        return context.get_dummy_value()

    return types.void(out, types.intp, x, types.intp, y, types.intp, types.intp), emit


@_row_operation
def scaled_product(typingctx, out, o, x, p, y, q, factor, blocks):  # type: ignore[no-untyped-def]
    """out ← factor·x·y."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = _Rows(context, builder, signature, arguments)
        to, one, other = rows.place(0, 1), rows.place(2, 3), rows.place(4, 5)
        factors = rows.spread(arguments[6])
        with rows.blocks(arguments[7]) as (index, _):
            product = builder.fmul(rows.load(one, index), rows.load(other, index))
            rows.store(builder.fmul(factors, product), to, index)
        return context.get_dummy_value()

    return types.void(out, types.intp, x, types.intp, y, types.intp, types.float64, types.intp), emit


@_row_operation
def product_sum(typingctx, x, p, y, q, limit, blocks):  # type: ignore[no-untyped-def]
    """Σ x·y; its negative if some product is below the limit where x is above 0. Nothing is below 0."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = _Rows(context, builder, signature, arguments)
        one, other, limits = rows.place(0, 1), rows.place(2, 3), rows.spread(arguments[4])
        flags = ir.IntType(WIDTH)
        total = cgutils.alloca_once_value(builder, _zero())
        found = cgutils.alloca_once_value(builder, ir.Constant(flags, 0))
        with rows.blocks(arguments[5]) as (index, _):
            weights = rows.load(one, index)
            product = builder.fmul(weights, rows.load(other, index))
            builder.store(builder.fadd(builder.load(total), product), total)
            lost = builder.and_(builder.fcmp_ordered(">", weights, _zero()), builder.fcmp_ordered("<", product, limits))
            builder.store(builder.or_(builder.load(found), builder.bitcast(lost, flags)), found)
        sums = rows.sum(builder.load(total))
        is_lost = builder.icmp_unsigned("!=", builder.load(found), ir.Constant(flags, 0))
        return builder.select(is_lost, builder.fneg(sums), sums)

    return types.float64(x, types.intp, y, types.intp, types.float64, types.intp), emit


@_row_operation
def scale(typingctx, out, o, x, p, factor, blocks):  # type: ignore[no-untyped-def]
    """out ← factor·x."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = _Rows(context, builder, signature, arguments)
        to, one, factors = rows.place(0, 1), rows.place(2, 3), rows.spread(arguments[4])
        with rows.blocks(arguments[5]) as (index, _):
            rows.store(builder.fmul(factors, rows.load(one, index)), to, index)
        return context.get_dummy_value()

    return types.void(out, types.intp, x, types.intp, types.float64, types.intp), emit


@_row_operation
def add(typingctx, out, o, x, p, factor, blocks):  # type: ignore[no-untyped-def]
    """out ← out + factor·x."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = _Rows(context, builder, signature, arguments)
        to, one, factors = rows.place(0, 1), rows.place(2, 3), rows.spread(arguments[4])
        with rows.blocks(arguments[5]) as (index, _):
            rows.store(rows.fused(factors, rows.load(one, index), rows.load(to, index)), to, index)
        return context.get_dummy_value()

    return types.void(out, types.intp, x, types.intp, types.float64, types.intp), emit


@_row_operation
def step(typingctx, out, o, x, p, table, n, blocks):  # type: ignore[no-untyped-def]
    """out ← Σ_i x[i]·table[i], over the first n rows of a table; out may not be x."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = _Rows(context, builder, signature, arguments)
        to, weights = rows.place(0, 1), rows.place(2, 3)
        table = context.make_array(signature.args[4])(context, builder, arguments[4]).data
        width = builder.mul(arguments[6], ir.Constant(_INDEX, WIDTH))
        sums = cgutils.alloca_once(builder, _VECTOR)
        with rows.blocks(arguments[6]) as (index, _):
            builder.store(_zero(), sums)
            with cgutils.for_range(builder, arguments[5]) as row:
                weight = rows.spread(builder.load(builder.gep(weights, [row.index])))
                entry = rows.load(builder.gep(table, [builder.mul(row.index, width)]), index)
                builder.store(rows.fused(weight, entry, builder.load(sums)), sums)
            rows.store(builder.load(sums), to, index)
        return context.get_dummy_value()

    return types.void(out, types.intp, x, types.intp, table, types.intp, types.intp), emit


@_row_operation
def keep(typingctx, out, o, x, p, blocks):  # type: ignore[no-untyped-def]
    """out ← out where x is above 0, and 0 elsewhere."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = _Rows(context, builder, signature, arguments)
        to, one = rows.place(0, 1), rows.place(2, 3)
        with rows.blocks(arguments[4]) as (index, _):
            above = builder.fcmp_ordered(">", rows.load(one, index), _zero())
            rows.store(builder.select(above, rows.load(to, index), _zero()), to, index)
        return context.get_dummy_value()

    return types.void(out, types.intp, x, types.intp, types.intp), emit
