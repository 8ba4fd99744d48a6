# ruff: noqa: ANN401  numba and llvmlite have no types
"""Reads several bytes of a block at once. Numba has no operation for that, so this is LLVM code.

Bounds are not checked: the caller makes sure that enough bytes follow.

Example: ``to_newline`` of ``ab`` and a newline is 2, and 16 if there is none in 16 bytes.
"""

from collections.abc import Callable
from typing import Any, Final, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from usage_pipeline.kernels.values import Bytes

LOOKED_AT: Final = 16
QUOTE: Final = 0x22
BACKSLASH: Final = 0x5C
NEWLINE: Final = 0x0A


def _bytes_at(
    context: Any, builder: Any, signature: Any, arguments: Any, kind: ir.Type
) -> ir.Instruction:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    place = builder.gep(array.data, [arguments[1]])
    return builder.load(builder.bitcast(place, kind.as_pointer()), align=1)


def _splat(value: int) -> ir.Constant:
    byte = ir.IntType(8)
    return ir.Constant(ir.VectorType(byte, LOOKED_AT), [ir.Constant(byte, value)] * LOOKED_AT)


def _first(builder: Any, matches: ir.Instruction) -> ir.Instruction:
    """Return the number of the first match among 16 bytes; 16 if there is none."""
    bits = builder.zext(builder.bitcast(matches, ir.IntType(LOOKED_AT)), ir.IntType(64))
    marked = builder.or_(bits, ir.Constant(ir.IntType(64), 1 << LOOKED_AT))
    return builder.cttz(marked, ir.Constant(ir.IntType(1), 1))


@intrinsic
def _to_special(_typing: Any, block: Any, _at: Any) -> Any:
    """Return the bytes before a quote, backslash, control or non-ASCII byte; at most 16."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(ir.IntType(8), LOOKED_AT)
        read = _bytes_at(context, builder, signature, arguments, vector)
        quotes = builder.icmp_unsigned("==", read, _splat(QUOTE))
        escapes = builder.icmp_unsigned("==", read, _splat(BACKSLASH))
        # The comparison is signed, so non-ASCII bytes are below the space too.
        others = builder.icmp_signed("<", read, _splat(0x20))
        return _first(builder, builder.or_(builder.or_(quotes, escapes), others))

    return types.int64(block, types.int64), code


@intrinsic
def _to_newline(_typing: Any, block: Any, _at: Any) -> Any:
    """Return the number of bytes before the end of the line; at most 16."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(ir.IntType(8), LOOKED_AT)
        read = _bytes_at(context, builder, signature, arguments, vector)
        return _first(builder, builder.icmp_unsigned("==", read, _splat(NEWLINE)))

    return types.int64(block, types.int64), code


@intrinsic
def _word(_typing: Any, block: Any, _at: Any) -> Any:
    """Return the 8 bytes at a position as a number."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _bytes_at(context, builder, signature, arguments, ir.IntType(64))

    return types.int64(block, types.int64), code


_AtPlace = Callable[[Bytes, int], int]
to_special: Final = cast("_AtPlace", _to_special)
to_newline: Final = cast("_AtPlace", _to_newline)
word: Final = cast("_AtPlace", _word)
