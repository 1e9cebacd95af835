"""Operators on values without alternatives."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from codemods import formulas, operations, terms
from codemods.evaluate import arrays
from codemods.evaluate.arrays.dtypes import NARROWED
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.shape_parts import part_of
from codemods.formulas import Formula
from codemods.values import (
    Array,
    External,
    Instance,
    Opaque,
    Reason,
    Term,
    Value,
    as_int,
    describe,
    is_constant,
    plain_of,
    same,
)

NAMES: Mapping[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.MatMult: "@",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip

DUNDERS: Mapping[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow",
    ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.MatMult: "matmul",
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.In: "contains",
}  # fmt: skip

_PYTHON: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

_TERMS: Mapping[str, Callable[[terms.Int, terms.Int], terms.Int]] = {
    "+": terms.add, "-": terms.subtract, "*": terms.multiply, "//": operations.floordiv, "%": operations.mod,
}  # fmt: skip

_UNDECIDED = formulas.Compare | formulas.Equals | formulas.Truthy | formulas.Not | formulas.And  # truth values that are not known
_COMPARISONS: Mapping[str, Callable[[terms.Int, terms.Int], Formula]] = {
    "==": formulas.equal,
    "!=": lambda left, right: formulas.invert(formulas.equal(left, right)),
    "<": formulas.less,
    "<=": formulas.at_most,
    ">": lambda left, right: formulas.less(right, left),
    ">=": lambda left, right: formulas.at_most(right, left),
}

_SIGNS: Mapping[type[ast.unaryop], str] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}

_MAX_LENGTH = 100_000  # of a string or tuple that an operator makes
_MAX_AXES = 5  # of unknown arrays of one shape that are known to be equal


class Raises(Exception):
    """The operation raises in the scanned program."""


def binary(op: str, left: Value, right: Value) -> Value:
    """Return `left op right`.

    Raises:
        Raises: the scanned program would raise here.
        Unmodelled: the result cannot be told.
    """
    left, right = plain_of(left), plain_of(right)
    if is_constant(left) and is_constant(right):
        return _constants(op, left, right)
    if (scaled := _scaled(op, left, right)) is not None:
        return scaled
    if isinstance(left, Array) or isinstance(right, Array):
        return arrays.binary(op, left, right)
    if isinstance(left, tuple) or isinstance(right, tuple):
        return _tuples(op, left, right)
    a, b = as_int(left), as_int(right)
    if op == "/" and a is not None and b is not None:
        if b == 0:
            raise Raises
        return Opaque(("/", a, b), f"{a} / {b}", Reason(f"`{a} / {b}` is a float that is not known"))
    if isinstance(b, int) and a is not None and (function := _with_constant(op, b)) is not None:
        return function(a)
    if a is None or b is None or op not in _TERMS:
        raise Unmodelled(f"`{describe(left)} {op} {describe(right)}` is not known")
    try:
        return _TERMS[op](a, b)
    except ZeroDivisionError:
        raise Raises from None


def _scaled(op: str, left: Value, right: Value) -> Opaque | None:
    """Return what an operator makes of something unknown and a float, or an array that is a number: if the one is an array,
    an array of its shape.
    """
    kinds = (_number_kind(left), _number_kind(right))
    key = (op, getattr(left, "key", left), getattr(right, "key", right))
    text = f"{describe(left)} {op} {describe(right)}"
    if {"float", "number"} & set(kinds) and not {"", "array"} & set(kinds):
        reason = next((each.reason for each in (left, right) if isinstance(each, Opaque)), Reason(f"`{text}` is not known"))
        return Opaque(key, text, reason, kind="float" if "float" in kinds else "number")
    for value, kind in ((left, kinds[1]), (right, kinds[0])):
        if isinstance(value, Opaque) and not _number_kind(value) and kind in ("float", "number", "array"):
            return Opaque(key, text, value.reason, pure=value.pure, shaped=value)
    return None


def _number_kind(value: Value) -> str:
    """Return what number a value is: `int`, `float`, `number` or `array`, of rank 0; empty for anything else."""
    match value:
        case bool() | int() | Term() | Opaque(at_least=int()):
            return "int"
        case float():
            return "float"
        case Opaque(kind=kind):
            return kind
        case Array(shape=()):
            return "array"
        case _:
            return ""


def _with_constant(op: str, constant: int) -> Callable[[terms.Int], terms.Int] | None:
    """Return what an operator that is not one of the ring's does with a constant on its right, where it is arithmetic."""
    match op:
        case "<<" if 0 <= constant < terms.MAX_BITS:
            return lambda value: terms.multiply(value, 1 << constant)
        case ">>" if 0 <= constant < terms.MAX_BITS:
            return lambda value: operations.floordiv(value, 1 << constant)
        case "&" if constant >= 0 and not constant & (constant + 1):  # a mask of the lowest bits
            return lambda value: operations.mod(value, constant + 1)
        case "&" if constant < 0 and not -constant & (-constant - 1):  # of all but the lowest bits
            return lambda value: terms.subtract(value, operations.mod(value, -constant))
        case "**" if constant in (1, 2, 3):
            return lambda value: reduce(terms.multiply, [value] * constant)
        case _:
            return None


def quotient(value: Value) -> tuple[terms.Int, terms.Int] | None:
    """Return dividend and divisor of an unknown `a / b`."""
    return value.key[1:] if isinstance(value, Opaque) and isinstance(value.key, tuple) and value.key[:1] == ("/",) else None


def _constants(op: str, left: Any, right: Any) -> Value:
    if op == "@":
        raise Raises
    if isinstance(left, int) and isinstance(right, int):
        shift = op == "<<" and right > terms.MAX_BITS
        power = op == "**" and left not in (-1, 0, 1) and right * left.bit_length() > 2 * terms.MAX_BITS
        if shift or power:
            raise terms.TermError("an integer too large to reason about")
    elif op == "*" and isinstance(left, str | bytes | int) and isinstance(right, str | bytes | int):
        length = len(left) * right if isinstance(left, str | bytes) and isinstance(right, int) else 0
        length = len(right) * left if isinstance(right, str | bytes) and isinstance(left, int) else length
        if length > _MAX_LENGTH:
            raise Unmodelled("a string too long to reason about")
    elif op == "+" and isinstance(left, str | bytes) and isinstance(right, str | bytes):
        if len(left) + len(right) > _MAX_LENGTH:
            raise Unmodelled("a string too long to reason about")
    elif op == "%" and isinstance(left, str | bytes):
        raise Unmodelled("a formatted string")
    try:
        return _PYTHON[op](left, right)
    except (ArithmeticError, TypeError, ValueError):
        raise Raises from None


def _tuples(op: str, left: Value, right: Value) -> Value:
    if op == "+" and isinstance(left, tuple) and isinstance(right, tuple) and len(left) + len(right) <= _MAX_LENGTH:
        return left + right
    pair, times = (left, right) if isinstance(left, tuple) else (right, left)
    if op == "*" and isinstance(times, Term | Opaque) and (count := as_int(times)) is not None:
        text = f"({describe(pair)}) * {describe(times)}"
        return Opaque(("repeated", pair, count), text, Reason(f"the length of `{text}` is not known"))
    if op == "*" and isinstance(times, int) and len(pair) * times <= _MAX_LENGTH:
        return pair * times
    raise Unmodelled(f"the result of `{op}` is not known for a tuple")


def unary(op: ast.unaryop, value: Value) -> Value:
    """Return `-value`, `+value` or `~value`."""
    if isinstance(value, Array):
        return arrays.unary(_SIGNS[type(op)], value)
    if is_constant(value):
        functions: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
            ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
        }  # fmt: skip
        try:
            return functions[type(op)](value)
        except TypeError:
            raise Raises from None
    number = as_int(value)
    if number is None or isinstance(op, ast.Invert):
        raise Unmodelled(f"`{_SIGNS[type(op)]}{describe(value)}` is not known")
    return terms.negate(number) if isinstance(op, ast.USub) else number


def compare(op: str, left: Value, right: Value) -> Value:
    """Return `left op right` as a formula, or as an array of truth values."""
    left, right = plain_of(left), plain_of(right)
    if isinstance(left, Array) or isinstance(right, Array):
        if left is None or right is None or isinstance(left, str) or isinstance(right, str):
            return op == "!="
        return arrays.binary(op, left, right)
    if op in ("==", "!="):
        outcome = equals(left, right)
        return outcome if op == "==" else formulas.invert(outcome)
    if is_constant(left) and is_constant(right):
        return _constants(op, left, right)
    a, b = as_int(left), as_int(right)
    if a is None or b is None:
        raise Unmodelled(f"whether `{describe(left)} {op} {describe(right)}` is not known")
    return _COMPARISONS[op](a, b)


def equals(left: Value, right: Value) -> Formula:
    """Return the condition under which two values are equal; raises `Unmodelled` where there is none to state."""
    left, right = plain_of(left), plain_of(right)
    if isinstance(left, tuple) and isinstance(right, tuple):
        if len(left) != len(right):
            return False
        return formulas.both(*(equals(a, b) for a, b in zip(left, right, strict=True)))
    if is_constant(left) and is_constant(right):
        return bool(left == right)
    if same(left, right) and not isinstance(left, float):
        return True
    for side, other in ((left, right), (right, left)):
        if isinstance(other, tuple) and (part := part_of(side)) is not None and (found := part.sizes(len(other))) is not None:
            long_enough, sizes = found
            return formulas.both(long_enough, *(equals(*pair) for pair in zip(sizes, other, strict=False)))
        if isinstance(side, Opaque) and _is_dtype(side) and (dtype := arrays.dtype_of(other)) is not None:
            if dtype.name in NARROWED:  # which jit makes another of
                raise Unmodelled(f"whether `{describe(left)}` is equal to `{describe(right)}` is not known")
            return formulas.Equals(side.key, side.text, dtype.name)
    if isinstance(left, Opaque) and isinstance(right, Opaque) and left.length is not None and right.length is not None:
        return _same_shape(left, right)
    if isinstance(left, Opaque) and is_constant(right) and not isinstance(right, int):
        return formulas.Equals(left.key, left.text, right)
    if isinstance(right, Opaque) and is_constant(left) and not isinstance(left, int):
        return formulas.Equals(right.key, right.text, left)
    if (a := arrays.dtype_of(left)) and (b := arrays.dtype_of(right)):
        return a == b
    if isinstance(left, Opaque | Term | int) and isinstance(right, Opaque | Term | int):
        a, b = as_int(left), as_int(right)
        assert a is not None
        assert b is not None
        return formulas.equal(a, b)
    if isinstance(left, Instance) and isinstance(right, Instance) and left.cls.kind == right.cls.kind == "enum":
        return left.id == right.id
    for side, other in ((left, right), (right, left)):
        if isinstance(side, _UNDECIDED) and isinstance(other, int | float | _UNDECIDED):
            return _equivalent(side, other)
    if isinstance(left, Opaque) or isinstance(right, Opaque) or isinstance(left, Instance) or isinstance(right, Instance):
        raise Unmodelled(f"whether `{describe(left)}` is equal to `{describe(right)}` is not known")
    if type(left) is not type(right) and not isinstance(left, External) and not isinstance(right, External):
        return False
    raise Unmodelled(f"whether `{describe(left)}` is equal to `{describe(right)}` is not known")


def _same_shape(left: Opaque, right: Opaque) -> Formula:
    """Return the condition under which two unknown arrays have the same shape. That they differ says nothing of any one axis."""
    axes = [equals(left.item(axis), right.item(axis)) for axis in range(_MAX_AXES)]
    whole = formulas.Truthy(("same", frozenset({left.key, right.key})), f"{left.text} == {right.text}")
    return formulas.both(equals(left.length, right.length), *axes, whole)


def _equivalent(condition: Formula, other: float | Formula) -> Formula:
    """Return the condition under which a truth value that is not known is equal to another one, or to a number."""
    if isinstance(other, int | float):
        return condition if other == 1 else formulas.invert(condition) if other == 0 else False
    return formulas.either(formulas.both(condition, other), formulas.both(formulas.invert(condition), formulas.invert(other)))


def _is_dtype(value: Opaque) -> bool:
    """Say whether an unknown value is the dtype of an unknown array."""
    return isinstance(value.key, tuple) and value.key[1:3] == (".", "dtype")


def identical(left: Value, right: Value) -> Formula:
    """Return the condition under which `left is right`."""
    if isinstance(left, Opaque) and (right is None or isinstance(right, bool)):
        return formulas.Equals(left.key, left.text, right)
    if isinstance(right, Opaque) and (left is None or isinstance(left, bool)):
        return formulas.Equals(right.key, right.text, left)
    for side, other in ((left, right), (right, left)):
        if isinstance(side, _UNDECIDED) and isinstance(other, bool | _UNDECIDED):
            return _equivalent(side, other)
    if left is None or right is None or isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Instance) and isinstance(right, Instance):
        return left.id == right.id
    if same(left, right) and not is_constant(left):
        return True
    raise Unmodelled(f"whether `{describe(left)}` is `{describe(right)}` is not known")
